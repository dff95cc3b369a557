// A node that is told to stop: what it still answers, and what it leaves on its disk.

import Primitives
import Testing
import TrackerLogic
import Wire

extension TrackerNodeTests {
    @Test func `a drain answers what waits, takes nothing new, and empties the swarms`() throws {
        var (harness, id) = try master()
        harness.receive([announce(id, port: 1)], from: Self.client)
        harness.receive([announce(id, port: 2)], from: Self.client)
        harness.step(.commandReceived(.drain))
        #expect(harness.node.status.role == .draining)
        harness.receive([announce(id, port: 3)], from: Self.client)
        harness.completeWrite()
        harness.completeWrite()
        #expect(try replies(&harness).count == 2)
        #expect(harness.observations.isEmpty)

        #expect(harness.pending.count == 1)
        guard case .replaceAll(let chunks)? = harness.pending.first?.change else {
            Issue.record("the last write is not the whole record")
            return
        }
        #expect(chunks.map(\.number) == [0])
        harness.completeWrite()
        #expect(harness.observations == [.drained])
        #expect(harness.node.status.role == .stopped)
        #expect(harness.node.nextDeadline == nil)

        let next = NodeHarness(try harness.disk.restored(), harness.disk)
        #expect(next.counts(Self.torrent) == SwarmCounts())
        #expect(next.node.status.commitIndex == 2)
    }

    /// A command that came while the record was read is obeyed first.
    @Test(arguments: [ClusterConfiguration.alone, ClusterConfiguration(mode: .survivor)])
    func `whoever is told to stop before it begins does not begin`(cluster: ClusterConfiguration) {
        var configuration = NodeConfiguration.test
        configuration.cluster = cluster
        var harness = NodeHarness(configuration, starts: false)
        harness.step(.commandReceived(.drain))
        harness.step(.started)
        harness.completeWrites()
        #expect(harness.node.status.role == .stopped)
        #expect(harness.observations.contains(.drained))
        #expect(harness.node.nextDeadline == nil)
    }

    @Test func `a drain keeps the registry and the access rules`() throws {
        var (harness, id) = try master()
        let torrent = RegisteredTorrent(infoHash: Self.torrent, name: "Räksmörgås", byteCount: 1 << 40)
        let rules = AccessRules(
            mode: .private, infoHashes: [.numbered(7)], users: [User(name: "ann", passkey: [0x61])])
        harness.step(.commandReceived(.fileTorrents([torrent])))
        harness.receive([announce(id)], from: Self.client)
        harness.step(.commandReceived(.setAccess(rules)))
        harness.completeWrites()
        harness.step(.commandReceived(.drain))
        harness.completeWrites()

        let next = try harness.disk.restored()
        #expect(next.state.registry.all == [torrent])
        #expect(next.state.access.mode == .private)
        #expect(next.state.access.userCount == 1)
        #expect(next.state.access.infoHashCount == 1)
        #expect(next.state.table.counts == TableCounts())
    }

    @Test func `whoever stops before its operator's rules are in force does not open its doors under the old ones`() {
        var harness = NodeHarness(starts: false)
        harness.step(.started)
        harness.step(.commandReceived(.setAccess(AccessRules(mode: .allow))))
        var batch = DatagramBatch()
        var bytes: [UInt8] = []
        ConnectRequest(transactionID: TransactionID(1)).encode(into: &bytes)
        batch.append(bytes, remote: Self.client, local: .unspecified, socket: 0)
        harness.step(.datagramsReceived(batch))
        harness.completeWrite()
        harness.step(.commandReceived(.drain))
        harness.completeWrites()
        harness.run(.seconds(5))
        harness.completeWrites()
        #expect(harness.observations.last == .drained)
        #expect(!harness.observations.contains { if case .becameMaster = $0 { true } else { false } })
        #expect(harness.sent.isEmpty)
    }

    @Test func `a drain that keeps the swarms leaves the record as it is`() throws {
        var configuration = NodeConfiguration.test
        configuration.keepsSwarms = true
        var (harness, id) = try master(configuration)
        harness.receive([announce(id)], from: Self.client)
        harness.step(.commandReceived(.drain))
        harness.completeWrites()
        #expect(harness.observations == [.drained])
        let next = NodeHarness(try harness.disk.restored(configuration), harness.disk)
        #expect(next.node.state == harness.node.state)
        #expect(harness.counts(Self.torrent).leechers == 1)
    }

    @Test(arguments: [StorageFailure.full, .locked, .readOnly])
    func `a drain ends although the last write fails`(_ failure: StorageFailure) throws {
        var (harness, id) = try master()
        harness.receive([announce(id)], from: Self.client)
        harness.step(.commandReceived(.drain))
        harness.failWrite(failure)
        #expect(try replies(&harness).map(\.errorText) == [Refusal.notStored.clientText])
        harness.failWrite(failure)
        #expect(harness.observations.last == .drained)
        #expect(harness.node.status.role == .stopped)
    }

    @Test func `a drain before the start stops at once`() {
        var harness = NodeHarness(starts: false)
        harness.step(.commandReceived(.drain))
        #expect(harness.observations == [.drained])
        #expect(harness.pending.isEmpty)
        #expect(harness.node.status.role == .stopped)
    }

    @Test func `a drain during the election waits for the promise`() {
        var harness = NodeHarness(starts: false)
        harness.step(.started)
        harness.step(.commandReceived(.drain))
        #expect(harness.observations.isEmpty)
        harness.completeWrites()
        #expect(harness.observations == [.drained])
    }
}
