import Client
import Foundation
import Testing
import TrackerLogic

/// "In sync?", as `tracker status` answers it.
@Suite("In sync")
struct ClusterStepTests {
    /// Tracker 1 of three, which has applied a thousand entries.
    private func view(
        _ id: Int, role: String = "slave", commitIndex: Int, lag: Int, agreement: String = "same", isWhole: Bool = true,
        master: Int = 3
    ) throws -> ClusterView.Step {
        let json = """
            {"id":1,"mode":"quorum","epoch":{"round":1,"id":2},"master":\(master),"isServing":true,"isFenced":false,
            "voters":[1,2,3],"commitIndex":1000,"digest":"0","trackers":[
            {"id":\(id),"incarnation":"0","isThis":\(id == 1),"role":"\(role)","epoch":{"round":1,"id":2},
            "silentSeconds":0,"commitIndex":\(commitIndex),"lag":\(lag),"agreement":"\(agreement)","isWhole":\(isWhole),
            "hasVote":true}]}
            """
        let view = try JSONDecoder().decode(ClusterView.self, from: Data(json.utf8))
        return view.step(of: view.trackers[0])
    }

    @Test
    func `eight entries either way are in sync, as the election counts it; more are not`() throws {
        #expect(Succession.inStepCount == 8)
        for distance in 0...8 {
            #expect(try view(2, commitIndex: 1000 - distance, lag: distance) == .inStep)
            #expect(try view(3, role: "master", commitIndex: 1000 + distance, lag: 0, agreement: "ahead") == .inStep)
            #expect(try view(1, commitIndex: 1000, lag: distance) == .inStep)
        }
        #expect(try view(2, commitIndex: 991, lag: 9) == .behind)
        #expect(try view(3, role: "master", commitIndex: 1009, lag: 0, agreement: "ahead") == .ahead)
        // The tracker that is asked says it of itself.
        #expect(try view(1, commitIndex: 1000, lag: 9) == .behind)
        #expect(try view(1, commitIndex: 1000, lag: 4_579) == .behind)
        #expect(ClusterView.Step.inStep.rawValue == "yes")
    }

    @Test
    func `under load a keepalive may be so old that its place was cut from the log; who is down is not excused`() throws
    {
        #expect(try view(2, commitIndex: 0, lag: 3, agreement: "unknown") == .inStep)
        #expect(try view(2, commitIndex: 0, lag: 900, agreement: "unknown") == .farBehind)
        #expect(try view(2, role: "down", commitIndex: 0, lag: 3, agreement: "unknown") == .farBehind)
    }

    @Test
    func `who holds something else, or not all of it, or follows nobody, is not in sync`() throws {
        #expect(try view(2, commitIndex: 1000, lag: 0, agreement: "different") == .apart)
        #expect(try view(2, commitIndex: 1000, lag: 0, isWhole: false) == .fetches)
        #expect(try view(1, role: "newcomer", commitIndex: 1000, lag: 0, master: 0) == .noMaster)
        #expect(try view(2, commitIndex: 1000, lag: 0, master: 0) == .inStep)
    }
}
