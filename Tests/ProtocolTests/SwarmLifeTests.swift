// The life of a peer: events, completed downloads, intervals, expiry.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Tracker protocol: life of a swarm")
struct SwarmLifeTests {
    static let torrent = InfoHash.numbered(1)
    static let client = SocketAddress.v4(1)

    // MARK: What a request may say

    @Test func `port 0 is refused, and leaves no trace`() throws {
        var harness = NodeHarness()
        for event: AnnounceEvent in [.none, .started, .stopped, .completed] {
            let reply = try harness.announce(Self.torrent, from: Self.client, event: event) { $0.port = 0 }
            #expect(reply.errorText == Refusal.portZero.clientText)
        }
        #expect(harness.disk.entries.isEmpty)
        let answer = try harness.request(
            .announce(Announce(infoHash: Self.torrent, peerID: .zero, left: 1, port: 0)), from: Self.client)
        #expect(answer == .failure(.portZero))
    }

    @Test func `the ip field is ignored`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: Self.client) { $0.ip = 0x0102_0304 }
        let reply = try harness.peers(Self.torrent, from: .v4(2))
        #expect(reply.peers == [Self.client])
    }

    @Test func `the ip field is believed from those that the operator trusts`() throws {
        var configuration = NodeConfiguration.test
        configuration.trusted = ["10.0.0.0/28", "192.0.2.7", "2001:db8::/64"].compactMap { AddressPrefix($0) }
        var harness = NodeHarness(configuration)
        let sources: [(SocketAddress, Bool)] = [
            (.v4(0), true), (.v4(15), true), (.v4(16), false), (SocketAddress(ipv4: 0xC000_0207, port: 9), true),
            (SocketAddress(ipv4: 0xC000_0208, port: 9), false),
        ]
        for (number, (source, isTrusted)) in sources.enumerated() {
            let torrent = InfoHash.numbered(100 + number)
            let reply = try harness.peers(torrent, from: source) { $0.ip = 0x0102_0304 }
            #expect(reply.leechers == 1)
            let claimed = SocketAddress(ipv4: 0x0102_0304, port: source.port)
            let peers = try harness.peers(torrent, from: .v4(99)).peers
            #expect(peers == [isTrusted ? claimed : source])
        }
        // 0 means the sender's own.
        _ = try harness.peers(.numbered(200), from: .v4(3))
        #expect(try harness.peers(.numbered(200), from: .v4(99)).peers == [.v4(3)])
    }

    @Test func `over IPv6 there is no ip field to believe, since replies have peers of 18 bytes`() throws {
        var configuration = NodeConfiguration.test
        configuration.trusted = ["2001:db8::/32"].compactMap { AddressPrefix($0) }
        var harness = NodeHarness(configuration)
        _ = try harness.peers(Self.torrent, from: .v6(1)) { $0.ip = 0x0102_0304 }
        let reply = try harness.peers(Self.torrent, from: .v6(2)) { $0.ip = 0x0102_0304 }
        #expect(reply.peers == [.v6(1)])
    }

    /// An announce with an event that the enumeration does not have.
    private func announce(event: UInt32, left: UInt64, _ harness: inout NodeHarness) throws -> TrackerReply {
        let id = try harness.connect(Self.client)
        var bytes: [UInt8] = []
        AnnounceRequest(
            connectionID: id, transactionID: TransactionID(1), infoHash: Self.torrent, peerID: .zero, left: left,
            port: 6881
        ).encode(into: &bytes)
        withUnsafeBytes(of: event.bigEndian) { bytes.replaceSubrange(80..<84, with: $0) }
        let reply = harness.ask(bytes, from: Self.client)
        return try TrackerReply(try #require(reply), isIPv6: false)
    }

    @Test(arguments: [4, 5, 255, 256 + 3, .max] as [UInt32])
    func `paused and unknown events mean none`(_ event: UInt32) throws {
        var harness = NodeHarness()
        for (left, counts) in [
            (7, SwarmCounts(leechers: 1)), (0, SwarmCounts(seeders: 1)), (7, SwarmCounts(leechers: 1)),
        ] as [(UInt64, SwarmCounts)] {
            guard case .announce = try announce(event: event, left: left, &harness) else {
                Issue.record("event \(event) is refused")
                return
            }
            #expect(harness.counts(Self.torrent) == counts)
        }
    }

    @Test func `stopped gets a normal reply without peers, and the peer is gone`() throws {
        var harness = NodeHarness()
        harness.fill(Self.torrent, [(.v4(2), 1), (.v4(3), 0)])
        _ = try harness.peers(Self.torrent, from: Self.client)
        let reply = try harness.peers(Self.torrent, from: Self.client, event: .stopped, numWant: 50)
        #expect(reply.peers.isEmpty)
        #expect(reply.leechers == 1)
        #expect(reply.seeders == 1)
        #expect((1740...1860).contains(reply.interval))
        #expect(try !harness.peers(Self.torrent, from: .v4(4)).peers.contains(Self.client))

        let again = try harness.peers(Self.torrent, from: Self.client, event: .stopped)
        #expect(again.leechers == 2, "a stop that comes twice takes out nobody else")
    }

    @Test func `stopped on a torrent that is unknown is answered, and makes none`() throws {
        var harness = NodeHarness()
        let reply = try harness.peers(Self.torrent, from: Self.client, event: .stopped)
        #expect(reply.peers.isEmpty)
        #expect(reply.leechers == 0)
        #expect(harness.node.state.table.counts == TableCounts())
    }

    // MARK: Completed

    @Test func `completed with something left makes no seeder and no download`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: Self.client, left: 1, event: .completed)
        #expect(harness.counts(Self.torrent) == SwarmCounts(leechers: 1))
        _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .completed)
        #expect(harness.counts(Self.torrent) == SwarmCounts(seeders: 1, completed: 1))
    }

    @Test func `nothing left makes a seeder, but no download`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .started)
        _ = try harness.peers(Self.torrent, from: Self.client, left: 0)
        #expect(harness.counts(Self.torrent) == SwarmCounts(seeders: 1))
    }

    @Test func `a download counts once, however often it is told`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: Self.client, left: 5, event: .started)
        for _ in 0..<3 { _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .completed) }
        _ = try harness.peers(Self.torrent, from: Self.client, left: 0)
        _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .started)
        _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .completed)
        #expect(harness.counts(Self.torrent) == SwarmCounts(seeders: 1, completed: 1))
        #expect(harness.node.status.counters.completed == 1)

        // Told twice in one entry.
        let id = try harness.connect(.v4(2))
        var bytes: [UInt8] = []
        AnnounceRequest(
            connectionID: id, transactionID: TransactionID(1), infoHash: Self.torrent, peerID: .zero, left: 0,
            event: .completed, port: 1
        ).encode(into: &bytes)
        harness.receive([bytes, bytes], from: .v4(2))
        harness.completeWrites()
        #expect(harness.counts(Self.torrent).completed == 2)

        // Told again to the tracker's next life, with and without a snapshot.
        for wait: Int64 in [0, 700] {
            harness.run(.seconds(wait))
            var next = NodeHarness(
                try harness.disk.restored(), harness.disk, at: harness.now.wall.milliseconds)
            _ = try next.peers(Self.torrent, from: Self.client, left: 0, event: .completed)
            #expect(next.counts(Self.torrent).completed == 2)
        }
    }

    @Test func `a download that another client begins at an address may complete anew`() throws {
        var harness = NodeHarness()
        for count: UInt32 in 1...3 {
            let peerID = PeerID(Bytes20(Array(repeating: UInt8(count), count: 20).span.bytes, at: 0))
            _ = try harness.peers(Self.torrent, from: Self.client, left: 5, event: .started) { $0.peerID = peerID }
            _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .completed) { $0.peerID = peerID }
            #expect(harness.counts(Self.torrent).completed == count)
        }
    }

    @Test func `an old copy of an announce does not let a download be counted twice`() throws {
        var harness = NodeHarness()
        for _ in 1...3 {
            _ = try harness.peers(Self.torrent, from: Self.client, left: 5, event: .started)
            _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .completed)
            #expect(harness.counts(Self.torrent).completed == 1)
        }
    }

    @Test func `the count of downloads outlives the peers`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .completed)
        _ = try harness.peers(Self.torrent, from: Self.client, left: 0, event: .stopped)
        #expect(harness.counts(Self.torrent) == SwarmCounts(completed: 1))
        harness.run(.seconds(29 * 86_400))
        #expect(harness.counts(Self.torrent) == SwarmCounts(completed: 1))
        harness.run(.seconds(2 * 86_400))
        #expect(harness.counts(Self.torrent) == SwarmCounts())
        #expect(harness.node.state.table.counts.torrents == 0)
    }

    // MARK: Intervals

    @Test func `the interval is 1,800 s, spread evenly by up to a minute either way`() throws {
        var harness = NodeHarness()
        let id = try harness.connect(Self.client)
        var bytes: [UInt8] = []
        AnnounceRequest(
            connectionID: id, transactionID: TransactionID(1), infoHash: Self.torrent, peerID: .zero, left: 0, port: 1
        ).encode(into: &bytes)
        harness.receive(Array(repeating: bytes, count: 4_000), from: Self.client)
        harness.completeWrites()
        let intervals = try harness.takeSent().map { sent -> UInt32 in
            guard case .announce(_, let reply) = try TrackerReply(sent.payload, isIPv6: false) else { return 0 }
            return reply.interval
        }
        #expect(intervals.count == 4_000)
        #expect(intervals.min() == 1_740)
        #expect(intervals.max() == 1_860)
        let mean = intervals.reduce(0.0) { $0 + Double($1) } / 4_000
        #expect((1_797...1_803).contains(mean))
        #expect(Set(intervals).count == 121)
    }

    @Test func `without jitter, the interval is exact`() throws {
        var configuration = NodeConfiguration.test
        configuration.interval = 600
        configuration.intervalJitter = 0
        var harness = NodeHarness(configuration)
        for port: UInt16 in 1...20 {
            #expect(try harness.peers(Self.torrent, from: .v4(1, port: port)).interval == 600)
        }
    }

    @Test func `more peers than the tracker wants to hear stretch the interval, up to four times`() throws {
        var configuration = NodeConfiguration.test
        configuration.interval = 100
        configuration.intervalJitter = 0
        configuration.targetRate = 2
        var harness = NodeHarness(configuration)
        func interval(_ peers: Int) throws -> UInt32 {
            harness.fill(Self.torrent, (0..<peers).map { (.v4(1_000 + $0), 1) })
            harness.run(.seconds(10))
            return try harness.peers(Self.torrent, from: .v4(1_000)).interval
        }
        #expect(try interval(200) == 100)
        // Small changes are not worth an entry.
        #expect(try interval(201) == 100)
        #expect(try interval(220) == 110)
        #expect(try interval(500) == 250)
        #expect(try interval(5_000) == 400)
        #expect(harness.node.status.interval == 400)

        // Whoever was told 400 s lives 480 s, although the interval is short again by then.
        harness.run(.seconds(440))
        #expect(harness.counts(Self.torrent).leechers == 5_000)
        harness.run(.seconds(110))
        #expect(harness.counts(Self.torrent).leechers == 0)
        #expect(try harness.peers(Self.torrent, from: .v4(1_000)).interval == 100)
    }

    // MARK: Expiry

    @Test func `a silent peer goes after 1.2 times the longest interval, by an update`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: Self.client)
        let entries = harness.disk.entries.count
        harness.run(.seconds(2_232))
        #expect(harness.counts(Self.torrent).leechers == 1)
        harness.run(.seconds(62))
        #expect(harness.counts(Self.torrent).leechers == 0)
        #expect(harness.node.status.counters.expired == 1)
        // The log was cut meanwhile; what came last is the expiry.
        let last = try #require(harness.disk.entries.last)
        var cursor = UpdateCursor(last.header)
        guard case .expire(let shard, _, _)? = try cursor.next(last.bytes) else {
            Issue.record("the peer is gone, but not by an update")
            return
        }
        #expect(shard == harness.node.state.table.shard(of: Self.torrent))
        #expect(harness.disk.entries.count + entries >= 1)
    }

    @Test func `with a short interval a silent peer does not stay for a minute's round of the sweep`() throws {
        var configuration = NodeConfiguration.test
        configuration.interval = 3
        configuration.intervalJitter = 0
        var harness = NodeHarness(configuration)
        // By then nobody is there who may have been told more by an earlier life.
        harness.run(.seconds(60))
        for start in 0..<5 {
            harness.run(.milliseconds(300))
            _ = try harness.peers(Self.torrent, from: .v4(10 + start))
            harness.run(.seconds(3))
            #expect(harness.counts(Self.torrent).leechers == 1)
            harness.run(.seconds(4))
            #expect(harness.counts(Self.torrent).leechers == 0)
        }
    }

    @Test func `the operator says for how long a silent peer is believed to be there`() throws {
        var configuration = NodeConfiguration.test
        configuration.peerLifetime = 200
        var harness = NodeHarness(configuration)
        _ = try harness.peers(Self.torrent, from: Self.client)
        harness.run(.seconds(3_720))
        #expect(harness.counts(Self.torrent).leechers == 1)
        harness.run(.seconds(62))
        #expect(harness.counts(Self.torrent).leechers == 0)
    }

    @Test func `a peer is there until its expiry is durable`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: Self.client)
        harness.run(.seconds(2_231))
        var expiry: Persist?
        for _ in 0..<200 where expiry == nil {
            harness.pass(.seconds(1))
            harness.step(.deadlineReached)
            expiry = harness.pending.first
        }
        guard case .append? = expiry?.change else {
            Issue.record("no entry with an expiry")
            return
        }
        #expect(harness.counts(Self.torrent).leechers == 1)
        var failing = harness
        failing.failWrite(.full)
        #expect(failing.counts(Self.torrent).leechers == 1)
        failing.run(.seconds(61))
        #expect(failing.counts(Self.torrent).leechers == 0, "the next round finds it again")
        harness.completeWrite()
        #expect(harness.counts(Self.torrent).leechers == 0)
    }

    @Test func `a peer that announces in time stays for ever`() throws {
        var harness = NodeHarness()
        for _ in 0..<60 {
            let reply = try harness.peers(Self.torrent, from: Self.client)
            #expect(reply.leechers == 1)
            harness.run(.seconds(Int64(reply.interval)))
        }
        #expect(harness.node.status.counters.expired == 0)
    }

    @Test(arguments: [1, 2, 3, 4, 5, 7, 60])
    func `however short the interval, a peer that keeps it stays`(_ interval: UInt32) throws {
        var configuration = NodeConfiguration.test
        configuration.interval = interval
        configuration.intervalJitter = 0
        var harness = NodeHarness(configuration)
        // The sweep comes just after a second has turned.
        harness.pass(.milliseconds(700))
        for _ in 0..<100 {
            _ = try harness.peers(Self.torrent, from: Self.client)
            harness.run(.seconds(Int64(interval)))
        }
        #expect(harness.node.status.counters.expired == 0)
        harness.run(.seconds(Int64(interval) + 62))
        #expect(harness.counts(Self.torrent).leechers == 0)
    }

    @Test func `a clock that is set back makes nobody expire`() throws {
        var harness = NodeHarness()
        _ = try harness.peers(Self.torrent, from: Self.client)
        harness.now.wall.milliseconds -= 86_400_000
        harness.run(.seconds(2_000))
        #expect(harness.counts(Self.torrent).leechers == 1)
        _ = try harness.peers(Self.torrent, from: .v4(2))
        #expect(harness.counts(Self.torrent).leechers == 2)
    }
}
