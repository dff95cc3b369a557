// Connects that wait for a master: they prove nothing yet, so they may not fill the books.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Connects that wait")
struct GroupConnectTests {
    /// A group hears what anybody sends to its address, in anybody's name.
    @Test(arguments: [ClusterConfiguration.Entry.group, .any])
    func `connects take half of the places at most, and are answered when there is a master`(
        _ entry: ClusterConfiguration.Entry
    ) throws {
        var configuration = NodeConfiguration.test
        configuration.cluster = ClusterProfile.classic.configuration(members: [])
        configuration.cluster.entry = entry
        configuration.limits.waitingRequests = 8
        var harness = NodeHarness(configuration)
        for number in 0..<100 {
            var bytes: [UInt8] = []
            ConnectRequest(transactionID: TransactionID(UInt32(number))).encode(into: &bytes)
            harness.receive([bytes], from: .v4(number))
        }
        #expect(harness.takeSent().isEmpty)
        #expect(harness.node.status.waitingRequests == 4)
        harness.step(.busConnected)
        harness.run(.seconds(10))
        #expect(harness.takeSent().count == 4)
    }
}
