// Which peers an announce is told of: how many, of which kind, and each with the same chance.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Tracker protocol: peers")
struct PeerListTests {
    static let torrent = InfoHash.numbered(1)

    /// A swarm of leechers, and of seeders after them.
    private func swarm(
        leechers: Int, seeders: Int = 0, isIPv6: Bool = false, _ configuration: NodeConfiguration = .test
    ) -> NodeHarness {
        var harness = NodeHarness(configuration)
        harness.fill(
            Self.torrent,
            (0..<leechers + seeders).map {
                (isIPv6 ? .v6(1_000 + $0) : .v4(1_000 + $0), $0 < leechers ? 1 : 0)
            })
        return harness
    }

    // MARK: How many

    static let wants: [(numWant: Int32, ipv4: Int, ipv6: Int)] = [
        (-1, 50, 50), (0, 0, 0), (1, 1, 1), (49, 49, 49), (76, 76, 76), (77, 77, 76), (199, 199, 76),
        (200, 200, 76), (201, 200, 76), (500, 200, 76), (.max, 200, 76), (.min, 50, 50), (-200, 50, 50),
    ]

    @Test(arguments: wants)
    func `the number wanted is signed and capped, 0 is none, and the reply has just the size for it`(
        _ want: (numWant: Int32, ipv4: Int, ipv6: Int)
    ) throws {
        for isIPv6 in [false, true] {
            var harness = swarm(leechers: 300, isIPv6: isIPv6)
            let client = isIPv6 ? SocketAddress.v6(1) : .v4(1)
            let id = try harness.connect(client)
            var bytes: [UInt8] = []
            AnnounceRequest(
                connectionID: id, transactionID: TransactionID(1), infoHash: Self.torrent, peerID: .zero, left: 1,
                numWant: want.numWant, port: 5
            ).encode(into: &bytes)
            let reply = harness.ask(bytes, from: client)
            let size = isIPv6 ? 20 + 18 * want.ipv6 : 20 + 6 * want.ipv4
            #expect(reply?.count == size)
            #expect(size <= 1_400)
        }
    }

    @Test func `the default and the cap are what the operator says`() throws {
        var configuration = NodeConfiguration.test
        configuration.numWant = 7
        configuration.maxNumWant = 60
        var harness = swarm(leechers: 100, configuration)
        #expect(try harness.peers(Self.torrent, from: .v4(1), numWant: -1).peers.count == 7)
        #expect(try harness.peers(Self.torrent, from: .v4(1), numWant: 100).peers.count == 60)
        var harness6 = swarm(leechers: 100, isIPv6: true, configuration)
        #expect(try harness6.peers(Self.torrent, from: .v6(1), numWant: 100).peers.count == 60)
    }

    @Test(arguments: [1, 2, 3, 16, 17, 18, 49, 50, 51, 52])
    func `a small swarm is told whole, but for the announcer`(_ others: Int) throws {
        var harness = swarm(leechers: others)
        for round in 0..<3 {
            let reply = try harness.peers(Self.torrent, from: .v4(1), numWant: Int32(others + round))
            #expect(Set(reply.peers) == Set((0..<others).map { SocketAddress.v4(1_000 + $0) }))
            #expect(reply.peers.count == others)
        }
    }

    @Test func `the first peer is told of nobody`() throws {
        var harness = NodeHarness()
        let reply = try harness.peers(Self.torrent, from: .v4(1))
        #expect(reply.peers.isEmpty)
        #expect(reply.leechers == 1)
        #expect(reply.seeders == 0)
    }

    // MARK: Of which kind

    @Test func `seeders are told of leechers only, leechers of both`() throws {
        var harness = swarm(leechers: 30, seeders: 40)
        let toSeeder = try harness.peers(Self.torrent, from: .v4(1), left: 0, numWant: 200)
        #expect(Set(toSeeder.peers) == Set((0..<30).map { SocketAddress.v4(1_000 + $0) }))
        #expect(toSeeder.seeders == 41)
        #expect(toSeeder.leechers == 30)
        let toLeecher = try harness.peers(Self.torrent, from: .v4(2), left: 1, numWant: 200)
        #expect(Set(toLeecher.peers) == Set((0..<70).map { SocketAddress.v4(1_000 + $0) } + [.v4(1)]))
        #expect(toLeecher.leechers == 31)
    }

    @Test func `a leecher that has become a seeder is told of leechers at once`() throws {
        var harness = swarm(leechers: 3, seeders: 3)
        #expect(try harness.peers(Self.torrent, from: .v4(1), left: 1).peers.count == 6)
        #expect(try harness.peers(Self.torrent, from: .v4(1), left: 0, event: .completed).peers.count == 3)
        #expect(try harness.peers(Self.torrent, from: .v4(1), left: 1).peers.count == 6)
    }

    @Test(arguments: [2, 5, 16, 17, 18, 60])
    func `nobody is told of himself`(_ count: Int) throws {
        for isIPv6 in [false, true] {
            var harness = swarm(leechers: count / 2, seeders: count - count / 2, isIPv6: isIPv6)
            for number in 0..<count {
                let own = isIPv6 ? SocketAddress.v6(1_000 + number) : .v4(1_000 + number)
                for wanted: Int32 in [1, Int32(count - 1), 200] {
                    for left: UInt64 in [1, 0, number < count / 2 ? 1 : 0] {
                        let reply = try harness.peers(Self.torrent, from: own, left: left, numWant: wanted)
                        #expect(!reply.peers.contains(own))
                        #expect(Set(reply.peers).count == reply.peers.count)
                    }
                }
            }
        }
    }

    @Test func `peers are told apart by address and port`() throws {
        var harness = NodeHarness()
        for port: UInt16 in 1...3 { _ = try harness.peers(Self.torrent, from: .v4(1, port: port)) }
        let again = try harness.peers(Self.torrent, from: .v4(1, port: 2)) { $0.peerID = .zero }
        #expect(again.leechers == 3)
        #expect(Set(again.peers) == [.v4(1, port: 1), .v4(1, port: 3)])
        // The port that counts is the one in the request, not the one it came from.
        let other = try harness.peers(Self.torrent, from: .v4(1, port: 999)) { $0.port = 2 }
        #expect(other.leechers == 3)
        #expect(Set(other.peers) == [.v4(1, port: 1), .v4(1, port: 3)])
    }

    @Test func `each family is told of its own kind, and the counts are of both`() throws {
        var harness = NodeHarness()
        harness.fill(Self.torrent, [(.v4(1), 1), (.v4(2), 0), (.v6(1), 1), (.v6(2), 0), (.v6(3), 0)])
        let four = try harness.peers(Self.torrent, from: .v4(9))
        #expect(Set(four.peers) == [.v4(1), .v4(2)])
        #expect(four.seeders == 3)
        #expect(four.leechers == 3)
        let six = try harness.peers(Self.torrent, from: .v6(9))
        #expect(Set(six.peers) == [.v6(1), .v6(2), .v6(3)])
        #expect(six.leechers == 4)
    }

    @Test func `::ffff:a.b.c.d is the IPv4 peer a.b.c.d`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: .v4(1))
        let mapped = SocketAddress(high: 0, low: 0xFFFF_0A00_0001, port: 6881)
        let reply = try harness.peers(Self.torrent, from: mapped)
        #expect(reply.leechers == 1)
        #expect(harness.node.state.table.counts.peersIPv6 == 0)
        let other = try harness.peers(Self.torrent, from: SocketAddress(high: 0, low: 0xFFFF_0A00_0002, port: 1))
        #expect(other.peers == [.v4(1)])
    }

    @Test func `the zone of a link-local address makes no other peer`() throws {
        var harness = NodeHarness()
        for scope: UInt32 in 1...3 {
            let client = SocketAddress(high: 0xFE80_0000_0000_0000, low: 1, scope: scope, port: 5)
            let reply = try harness.peers(Self.torrent, from: client)
            #expect(reply.leechers == 1)
        }
    }

    // MARK: With the same chance

    /// How often each of the others was drawn, in so many announces of the same peer.
    private func drawn(
        leechers: Int, seeders: Int, asSeeder: Bool, wanted: Int, announces: Int
    ) throws -> [Int] {
        var harness = swarm(leechers: leechers, seeders: seeders)
        let client = SocketAddress.v4(1)
        let id = try harness.connect(client)
        var bytes: [UInt8] = []
        AnnounceRequest(
            connectionID: id, transactionID: TransactionID(1), infoHash: Self.torrent, peerID: .zero,
            left: asSeeder ? 0 : 1, numWant: Int32(wanted), port: 5
        ).encode(into: &bytes)
        let batch = Array(repeating: bytes, count: 1_000)
        var drawn = Array(repeating: 0, count: leechers + seeders)
        var last = Array(repeating: -1, count: leechers + seeders)
        var reply = 0
        for _ in 0..<announces / 1_000 {
            harness.receive(batch, from: client)
            harness.completeWrites()
            for sent in harness.takeSent() {
                let span = sent.payload.span.bytes
                try #require(sent.payload.count == 20 + 6 * wanted)
                for offset in stride(from: 20, to: sent.payload.count, by: 6) {
                    let peer = Int(span.u32(at: offset)) - 0x0A00_0000 - 1_000
                    if last[peer] == reply { Issue.record("a peer twice in one reply") }
                    last[peer] = reply
                    drawn[peer] += 1
                }
                reply += 1
            }
        }
        return drawn
    }

    /// A swarm, and how many are wanted of those that there are to choose from.
    struct Draw: Sendable, CustomTestStringConvertible {
        var leechers: Int
        var seeders: Int
        var asSeeder = false
        var wanted: Int
        var candidates: Int { asSeeder ? leechers : leechers + seeders }
        var testDescription: String {
            "\(wanted) of \(leechers) leechers\(asSeeder ? ", not of" : " and") \(seeders) seeders"
        }
    }

    static let draws = [
        Draw(leechers: 2, seeders: 0, wanted: 1), Draw(leechers: 1, seeders: 1, wanted: 1),
        Draw(leechers: 9, seeders: 8, wanted: 1), Draw(leechers: 9, seeders: 8, wanted: 5),
        Draw(leechers: 17, seeders: 0, wanted: 16), Draw(leechers: 10, seeders: 7, asSeeder: true, wanted: 3),
        Draw(leechers: 30, seeders: 30, wanted: 50), Draw(leechers: 50, seeders: 10, wanted: 59),
        Draw(leechers: 40, seeders: 20, asSeeder: true, wanted: 7), Draw(leechers: 60, seeders: 0, wanted: 31),
        Draw(leechers: 1_000, seeders: 4_000, wanted: 50), Draw(leechers: 4_900, seeders: 100, wanted: 200),
        Draw(leechers: 2_500, seeders: 2_500, asSeeder: true, wanted: 50),
    ]

    @Test(arguments: draws)
    func `every peer is drawn with the same chance, and none twice`(_ draw: Draw) throws {
        let announces = rounds(20_000)
        let drawn = try drawn(
            leechers: draw.leechers, seeders: draw.seeders, asSeeder: draw.asSeeder, wanted: draw.wanted,
            announces: announces)
        #expect(drawn[draw.candidates...].allSatisfy { $0 == 0 }, "a seeder is told of seeders")

        // Draws without replacement spread less than chance alone, by 1 - wanted / candidates.
        let expected = Double(announces * draw.wanted) / Double(draw.candidates)
        let spread = 1 - Double(draw.wanted) / Double(draw.candidates)
        let counts = drawn[..<draw.candidates]
        let chiSquare = counts.reduce(0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected } / spread
        let freedom = Double(draw.candidates - 1)
        #expect(chiSquare < freedom + 6 * (2 * freedom).squareRoot() + 6, "\(chiSquare) with \(freedom) degrees")
        // A sum hides one rotten place among thousands: none is further off than six standard deviations.
        let furthest = counts.map { (Double($0) - expected).magnitude }.max() ?? 0
        #expect(furthest < 6 * (expected * spread).squareRoot() + 1, "off by \(furthest) from \(expected)")
    }

    @Test func `the draw does not follow the order in which peers came`() throws {
        // Of the halves that came first and last, every reply has a share, and neither is always the larger.
        var harness = swarm(leechers: 1_000)
        var firstLarger = 0
        for _ in 0..<200 {
            let reply = try harness.peers(Self.torrent, from: .v4(1), numWant: 51)
            let early = reply.peers.count { $0.ipv4 < 0x0A00_0000 + 1_500 }
            #expect((10...41).contains(early))
            if early > 25 { firstLarger += 1 }
        }
        #expect((30...170).contains(firstLarger))
    }
}
