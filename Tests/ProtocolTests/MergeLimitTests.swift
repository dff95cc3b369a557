// What a merge may bring: all that two honest sides have granted, be their tables full, and no more than they can
// have.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Limits of a merge")
struct MergeLimitTests {
    /// Two trackers in survivor mode, each of which is master until they hear each other.
    private struct Pair {
        private(set) var nodes: [TrackerNode]
        private(set) var merges: [Observation] = []
        var hasFullState = false
        private var effects = Effects()
        private var now = ClockReading(
            monotonic: Instant(nanoseconds: 5_000_000_000), wall: WallTime(milliseconds: NodeHarness.wallStart))

        init(_ change: (inout NodeConfiguration) -> Void) {
            nodes = ([1, 2] as [UInt32]).map { id in
                var configuration = NodeConfiguration.test
                configuration.id = id
                configuration.cluster = ClusterProfile.classic.configuration(members: [])
                change(&configuration)
                return TrackerNode(
                    configuration: configuration, incarnation: UInt64(id), secret: NodeHarness.secret, record: nil,
                    seed: UInt64(id))
            }
            for node in nodes.indices {
                step(node, .started)
                step(node, .busConnected)
            }
            run(.seconds(10))
        }

        mutating func step(_ node: Int, _ event: Event) {
            var queue = [(node, event)]
            var count = 0
            while !queue.isEmpty {
                let (node, event) = queue.removeFirst()
                nodes[node].step(event, now: now, into: &effects)
                merges += effects.observations.filter { if case .merged = $0 { true } else { false } }
                for persist in effects.persists { queue.append((node, .persisted(persist.token))) }
                if hasFullState {
                    for message in effects.messages { queue.append((1 - node, .messageReceived(message))) }
                }
                effects.removeAll()
                count += 1
                precondition(count < 100_000, "messages lead to messages without end")
            }
        }

        mutating func run(_ span: Duration) {
            let end = now.monotonic + span
            while now.monotonic < end {
                now.monotonic = now.monotonic + .milliseconds(50)
                now.wall.milliseconds += 50
                for node in nodes.indices { step(node, .deadlineReached) }
            }
        }

        mutating func announce(_ torrent: Int, _ address: SocketAddress, at node: Int) {
            let announce = Announce(
                infoHash: .numbered(torrent), peerID: .of(address), left: 1, event: .started, port: address.port)
            step(node, .requestReceived(ClientRequest(id: 1, source: address, content: .announce(announce))))
            run(.milliseconds(50))
        }

        mutating func heal() {
            hasFullState = true
            run(.seconds(60))
        }

        func table(_ node: Int) -> SwarmTable { nodes[node].state.table }

        var leftOut: Int? {
            guard case .merged(_, _, let leftOut)? = merges.first, merges.count == 1 else { return nil }
            return leftOut
        }
    }

    private func expectOne(_ pair: Pair) {
        #expect(pair.nodes[0].inspection.position == pair.nodes[1].inspection.position)
        // All trackers apply what the master has chosen.
        #expect(pair.nodes[0].state.digest == pair.nodes[1].state.digest)
    }

    /// Bounds of a master, with `limit` in the place of one of them.
    private static let most = 20
    private static let perEntry = 4
    /// Two sides with all they may have, and what was on its way there and here.
    private static let bound = 2 * (most + 2 * perEntry)...2 * (most + 2 * perEntry) + 2 * perEntry

    private func pair(
        liarsBound: Int? = nil, _ limit: WritableKeyPath<Limits, Int>
    ) -> Pair {
        Pair {
            $0.limits.updatesPerEntry = Self.perEntry
            $0.limits[keyPath: limit] = $0.id == 1 ? liarsBound ?? Self.most : Self.most
        }
    }

    @Test func `what two sides have granted one address is all there, though one may hold no more`() {
        var pair = pair(\.peersPerAddress)
        let address = SocketAddress.v4(7)
        for side in 0..<2 {
            for port in 0..<Self.most { pair.announce(port, address.port(UInt16(1_000 + 100 * side + port)), at: side) }
            pair.announce(1, address.port(5_000), at: side)
            #expect(pair.table(side).peers(at: address) == Self.most)
        }
        pair.heal()
        expectOne(pair)
        #expect(pair.table(0).peers(at: address) == 2 * Self.most)
        #expect(pair.leftOut == 0)
        pair.announce(1, address.port(5_000), at: 0)
        #expect(!pair.table(0).contains(.numbered(1), address.port(5_000)), "the next is refused as ever")
    }

    @Test func `two full tables make one with all of both`() {
        for limit in [\Limits.peers, \Limits.torrents] {
            var pair = pair(limit)
            for side in 0..<2 {
                for number in 100 * side..<100 * side + Self.most + 5 {
                    pair.announce(number, .v4(number), at: side)
                }
                #expect(pair.table(side).counts.peers == Self.most)
            }
            pair.heal()
            expectOne(pair)
            #expect(pair.table(0).counts.peers == 2 * Self.most)
            #expect(pair.leftOut == 0)
        }
    }

    @Test func `who claims more of an address than it can have granted fills no table`() {
        var pair = pair(liarsBound: 10_000, \.peersPerAddress)
        let address = SocketAddress.v4(7)
        for port in 0..<300 { pair.announce(port % 10, address.port(UInt16(1_000 + port)), at: 0) }
        for number in 0..<30 { pair.announce(number, .v4(100 + number), at: 0) }
        pair.announce(5, address, at: 1)
        pair.heal()
        expectOne(pair)
        let held = pair.table(1).peers(at: address)
        #expect(Self.bound.contains(held))
        #expect(pair.leftOut == 301 - held)
        for number in 0..<30 { #expect(pair.table(1).contains(.numbered(number), .v4(100 + number))) }
    }

    @Test func `who claims more peers, or torrents, than it can have granted fills no table`() {
        for limit in [\Limits.peers, \Limits.torrents] {
            var pair = pair(liarsBound: 10_000, limit)
            for number in 0..<200 { pair.announce(number, .v4(number), at: 0) }
            pair.announce(900, .v4(900), at: 1)
            pair.heal()
            expectOne(pair)
            #expect(Self.bound.contains(pair.table(1).counts.peers))
            #expect(pair.leftOut == 201 - pair.table(1).counts.peers)
            #expect(pair.table(1).contains(.numbered(900), .v4(900)), "what the master has granted stays")
        }
    }

    @Test func `a swarm that fits no message is not made`() {
        var pair = pair(liarsBound: 10_000, \.peersPerSwarm)
        for number in 0..<60 { pair.announce(1, .v4(number), at: 0) }
        for number in 0..<60 { pair.announce(number, .v4(500), at: 0) }
        pair.announce(5, .v4(900), at: 1)
        pair.heal()
        expectOne(pair)
        let swarm = Int(pair.table(1).counts(of: .numbered(1)).leechers)
        #expect((2 * Self.most...2 * Self.most + 2 * Self.perEntry).contains(swarm))
        #expect(pair.table(1).peers(at: .v4(500)) >= 59, "other swarms are as welcome as ever")
    }
}
