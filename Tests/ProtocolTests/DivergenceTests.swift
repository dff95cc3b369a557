// In quorum mode there is one history. A slave that finds its master in another one, or behind what was decided before
// its election, has no vote and answers nobody until it has fetched all anew; and it is said.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("A slave that differs from its master")
struct DivergenceTests {
    private static let secret = ClusterSecret(1, 2, 3, 4)
    private static let first = Epoch(round: 1, id: 3)
    private static let second = Epoch(round: 2, id: 3)
    private static let master = Life(id: 3, incarnation: 33)

    /// A slave that has decided four entries in the first epoch.
    private struct Slave {
        var node: TrackerNode
        /// What the history comes to, through each entry.
        var chains: [UInt64] = [0]
        var effects = Effects()
        private var time: Int64 = 0

        init() throws {
            var configuration = NodeConfiguration()
            configuration.id = 2
            configuration.shardCount = 2
            configuration.cluster = ClusterProfile.paxos.configuration(members: [1, 2, 3])
            let promise = Promise(epoch: first, incarnation: 1, secret: secret, shardCount: 2)
            node = TrackerNode(configuration: configuration, incarnation: 22, secret: secret, record: promise, seed: 1)
            // The last one is not known to be decided.
            for index in UInt64(1)...5 {
                var bytes: [UInt8] = []
                EntryHeader.reserve(in: &bytes)
                let header = EntryHeader(
                    index: index, epoch: first, time: WallTime(milliseconds: 1), updateCount: 0,
                    previous: chains[Int(index) - 1])
                chains.append(header.seal(&bytes))
                try node.restore(entry: bytes)
            }
            step(.started)
            step(.busConnected)
            #expect(node.inspection.position == position(4) && node.inspection.hasFullState)
        }

        func position(_ index: UInt64) -> Position { Position(index: index, chain: chains[Int(index)]) }

        mutating func step(_ event: Event) {
            time += 1_000_000
            let now = ClockReading(
                monotonic: Instant(nanoseconds: time), wall: WallTime(milliseconds: 1_000 + time / 1_000_000))
            node.step(event, now: now, into: &effects)
            // Whatever it writes is durable at once.
            let persists = effects.persists
            effects.persists = []
            for persist in persists { step(.persisted(persist.token)) }
        }

        mutating func hear(_ body: ClusterMessage.Body, _ epoch: Epoch) {
            step(.messageReceived(ClusterMessage(sender: master, destination: .all, epoch: epoch, body: body)))
        }

        /// A master says where it is, and lets the slave in.
        mutating func follow(_ epoch: Epoch, at position: Position) {
            let settings = SettingsPrint(node.configuration)
            hear(
                .keepalive(
                    Keepalive(role: .master, position: position, digest: 7, hasFullState: true, settings: settings)),
                epoch)
            hear(
                .welcome(
                    Welcome(
                        id: 2, position: position, answered: .start, servesFrom: 0, attempt: 0, needsTransfer: false,
                        secret: secret, shardCount: 2)), epoch)
        }

        var divergences: [Position] {
            effects.observations.compactMap { if case .diverged(let position) = $0 { position } else { nil } }
        }
    }

    private func expectDiverged(_ slave: inout Slave) {
        #expect(slave.divergences == [slave.position(4)])
        #expect(!slave.node.inspection.hasFullState && slave.node.inspection.isFenced)
        let hello = slave.effects.messages.last { if case .hello = $0.body { true } else { false } }
        guard case .hello(let hello)? = hello?.body else {
            Issue.record("it does not ask to be let in anew")
            return
        }
        #expect(!hello.hasFullState)
        // Asked for its vote, it says nothing.
        slave.effects.removeAll()
        slave.hear(.election, Epoch(round: 9, id: 3))
        #expect(!slave.effects.messages.contains { if case .answer = $0.body { true } else { false } })
    }

    @Test func `a master that lacks what was decided before its election`() throws {
        var slave = try Slave()
        slave.follow(Self.second, at: slave.position(2))
        expectDiverged(&slave)
    }

    @Test func `a master with another entry at the same place`() throws {
        var slave = try Slave()
        slave.follow(Self.second, at: Position(index: 3, chain: 99))
        expectDiverged(&slave)
    }

    @Test func `a master that proposes another entry where one was decided`() throws {
        var slave = try Slave()
        slave.follow(Self.second, at: slave.position(3))
        #expect(slave.divergences.isEmpty)
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        EntryHeader(
            index: 4, epoch: Self.second, time: WallTime(milliseconds: 77), updateCount: 0, previous: slave.chains[3]
        ).seal(&bytes)
        slave.hear(.prepare(entry: try Entry(bytes), at: slave.position(3)), Self.second)
        expectDiverged(&slave)
    }

    /// It may not know yet of the last entry, and an old word of a master says nothing.
    @Test func `a master that is behind by one, or was`() throws {
        var slave = try Slave()
        slave.follow(Self.second, at: slave.position(3))
        #expect(slave.divergences.isEmpty && slave.node.inspection.hasFullState)
        var other = try Slave()
        other.follow(Self.first, at: other.position(1))
        #expect(other.divergences.isEmpty && other.node.inspection.hasFullState)
    }
}
