// Design 4 through the front door: datagrams in, datagrams out. What is accepted, what is refused, what gets silence.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Tracker protocol: requests")
struct TrackerProtocolTests {
    static let torrent = InfoHash.numbered(1)
    static let client = SocketAddress.v4(1)

    /// An announce, byte by byte from BEP 15.
    private func announce(
        _ id: ConnectionID, transaction: UInt32 = 0x0102_0304, event: UInt32 = 0, port: UInt16 = 6881
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: id.rawValue)
        bytes.append(bigEndian: UInt32(1))
        bytes.append(bigEndian: transaction)
        bytes.append(Self.torrent.bytes)
        bytes.append(PeerID.of(Self.client).bytes)
        bytes += Array(repeating: 0, count: 8)  // downloaded
        bytes.append(bigEndian: UInt64(1))  // left
        bytes += Array(repeating: 0, count: 8)  // uploaded
        bytes.append(bigEndian: event)
        bytes += Array(repeating: 0, count: 8)  // ip, key
        bytes.append(bigEndian: Int32(-1))
        bytes.append(bigEndian: port)
        #expect(bytes.count == 98)
        return bytes
    }

    private func scrape(_ id: ConnectionID, _ hashes: some Sequence<InfoHash>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: id.rawValue)
        bytes.append(bigEndian: UInt32(2))
        bytes.append(bigEndian: UInt32(0x0102_0304))
        for hash in hashes { bytes.append(hash.bytes) }
        return bytes
    }

    private func connectRequest(magic: UInt64 = 0x417_2710_1980, action: UInt32 = 0) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: magic)
        bytes.append(bigEndian: action)
        bytes.append(bigEndian: UInt32(0x0102_0304))
        return bytes
    }

    /// The text of an error that echoes the transaction id; nil for anything else.
    private func error(_ reply: [UInt8]?) -> String? {
        guard let reply, reply.prefix(8).elementsEqual([0, 0, 0, 3, 1, 2, 3, 4]) else { return nil }
        return String(decoding: reply[8...], as: UTF8.self)
    }

    // MARK: Lengths

    @Test(arguments: [
        (0, "exactly BEP 15"), (2, "aria2 sends 100"), (1, "a stray byte"), (400, "much more than there is to say"),
    ])
    func `an announce has 98 bytes or more`(_ excess: Int, _ why: String) throws {
        var harness = NodeHarness()
        let id = try harness.connect(Self.client)
        let reply = harness.ask(announce(id) + Array(repeating: 0, count: excess), from: Self.client)
        #expect(reply?.prefix(8).elementsEqual([0, 0, 0, 1, 1, 2, 3, 4]) == true, "\(why)")
        #expect(harness.counts(Self.torrent).leechers == 1)
    }

    @Test(arguments: [
        [2, 9] + [UInt8](ascii: "/announce"), [2, 3, 47], [9, 2, 1, 1, 1, 1, 2, 0], [0, 0, 0], [1, 1, 1],
        [200, 255], [2], [2, 1, 47, 0, 255, 255],
    ])
    func `options of BEP 41, known, unknown or broken, do not disturb an announce`(_ options: [UInt8]) throws {
        var harness = NodeHarness()
        let id = try harness.connect(Self.client)
        let reply = harness.ask(announce(id) + options, from: Self.client)
        #expect(reply?.prefix(4).elementsEqual([0, 0, 0, 1]) == true)
    }

    @Test func `an announce that is too short is told so, once its connection id is proven`() throws {
        var configuration = NodeConfiguration.test
        configuration.limits.errorsPerSecond = 1_000
        var harness = NodeHarness(configuration)
        let id = try harness.connect(Self.client)
        for count in 0..<98 {
            let reply = harness.ask(Array(announce(id)[..<count]), from: Self.client)
            if count < 16 {
                #expect(reply == nil)
            } else {
                #expect(error(reply) == Refusal.malformedAnnounce.clientText)
            }
            let forged = ConnectionID(id.rawValue ^ 1)
            #expect(harness.ask(Array(announce(forged)[..<count]), from: Self.client) == nil)
        }
        #expect(harness.counts(Self.torrent) == SwarmCounts())
    }

    @Test func `an action that does not exist is told so, once the connection id is proven`() throws {
        var harness = NodeHarness()
        let id = try harness.connect(Self.client)
        for action in [3, 4, 5, UInt32.max] {
            var bytes = announce(id)
            withUnsafeBytes(of: action.bigEndian) { bytes.replaceSubrange(8..<12, with: $0) }
            #expect(error(harness.ask(bytes, from: Self.client)) == Refusal.unknownAction.clientText)
            bytes[3] ^= 1
            #expect(harness.ask(bytes, from: Self.client) == nil)
        }
    }

    // MARK: Connect

    @Test func `a connect is answered with its transaction id and an id`() throws {
        var harness = NodeHarness()
        let answer = harness.ask(connectRequest(), from: Self.client)
        let reply = try #require(answer)
        #expect(reply.count == 16)
        #expect(reply.prefix(8).elementsEqual([0, 0, 0, 0, 1, 2, 3, 4]))
        let id = ConnectionID(reply.span.bytes.u64(at: 8))
        #expect(harness.ask(announce(id), from: Self.client)?.count == 20)
        #expect(harness.ask(connectRequest() + [1, 2, 3], from: Self.client)?.count == 16)
    }

    @Test func `a connect with another magic, or less than 16 bytes, gets silence`() throws {
        var harness = NodeHarness()
        for bit in 0..<64 {
            #expect(harness.ask(connectRequest(magic: 0x417_2710_1980 ^ 1 << UInt64(bit)), from: Self.client) == nil)
        }
        for count in 0..<16 { #expect(harness.ask(Array(connectRequest()[..<count]), from: Self.client) == nil) }
        // Not even with a connection id in place of the magic.
        let id = try harness.connect(Self.client)
        #expect(harness.ask(connectRequest(magic: id.rawValue), from: Self.client) == nil)
        #expect(harness.node.status.counters.ignored == 64 + 16 + 1)
    }

    @Test func `from port 0, everything gets silence`() throws {
        var harness = NodeHarness()
        let id = try harness.connect(Self.client)
        let nowhere = Self.client.port(0)
        for bytes in [connectRequest(), announce(id), scrape(id, [Self.torrent]), announce(ConnectionID(1)), []] {
            #expect(harness.ask(bytes, from: nowhere) == nil)
        }
        #expect(harness.node.status.counters.ignored == 5)
        #expect(harness.counts(Self.torrent) == SwarmCounts())
    }

    // MARK: Connection ids

    /// Whether a connection id is good for an announce.
    private func isAccepted(_ id: ConnectionID, from client: SocketAddress, _ harness: NodeHarness) throws -> Bool {
        var harness = harness
        let answer = harness.ask(announce(id), from: client)
        let reply = try #require(answer)
        if error(reply) == Refusal.connectionIDExpired.clientText { return false }
        #expect(reply.prefix(4).elementsEqual([0, 0, 0, 1]))
        return true
    }

    @Test func `a connection id is good for two minutes at least, and for three at most`() throws {
        for phase in stride(from: Int64(0), to: 20_000, by: 999) {
            var harness = NodeHarness()
            harness.pass(.milliseconds(phase))
            let id = try harness.connect(Self.client)
            for second in [0, 1, 59, 60, 119, 120] {
                var later = harness
                later.pass(.seconds(Int64(second)))
                #expect(try isAccepted(id, from: Self.client, later), "after \(second) s")
            }
            // The id carries eight bits of time, which come round every 2,560 s.
            for second in Array(stride(from: 180, to: 3_000, by: 10)) + [25_600, 86_400, 655_360] {
                var later = harness
                later.pass(.seconds(Int64(second)))
                #expect(try !isAccepted(id, from: Self.client, later), "after \(second) s")
            }
        }
    }

    @Test func `a connection id of another tracker is good although clocks are 30 s apart`() throws {
        for skew: Int64 in [-30, -17, 0, 17, 30] {
            for phase in stride(from: Int64(0), to: 10_000, by: 999) {
                var first = NodeHarness()
                first.pass(.milliseconds(phase))
                let id = try first.connect(Self.client)
                for age: Int64 in [0, 60, 120] {
                    var second = NodeHarness(
                        TrackerNode(
                            configuration: .test, incarnation: 9, secret: NodeHarness.secret, record: nil, seed: 9),
                        DiskImage(), at: first.now.wall.milliseconds + (skew + age) * 1_000)
                    #expect(second.disk.promise?.incarnation == 9)
                    second.pass(.zero)
                    #expect(try isAccepted(id, from: Self.client, second), "\(skew) s, \(age) s old")
                }
            }
        }
    }

    @Test func `a connection id from the future is refused`() throws {
        let harness = NodeHarness()
        var ahead = harness
        ahead.pass(.seconds(60))
        let id = try ahead.connect(Self.client)
        #expect(try !isAccepted(id, from: Self.client, harness))
    }

    @Test func `a connection id is bound to the address, not to the port`() throws {
        var harness = NodeHarness()
        let id = try harness.connect(Self.client)
        #expect(try isAccepted(id, from: Self.client.port(1), harness))
        #expect(try isAccepted(id, from: Self.client.port(65_535), harness))
        for other in [SocketAddress.v4(2), .v4(257), .v6(1), SocketAddress(high: 1, low: Self.client.low, port: 6881)] {
            #expect(try !isAccepted(id, from: other, harness))
        }
        let id6 = try harness.connect(.v6(1))
        #expect(try isAccepted(id6, from: .v6(1, port: 9), harness))
        #expect(try !isAccepted(id6, from: .v6(2), harness))
    }

    @Test func `a connection id under another secret, or guessed, is refused`() throws {
        var stranger = NodeHarness(
            TrackerNode(
                configuration: .test, incarnation: 1, secret: ClusterSecret(0x1111, 0x2222, 0x3333, 0x4445),
                record: nil, seed: 1), DiskImage())
        let foreign = try stranger.connect(Self.client)
        var harness = NodeHarness()
        #expect(try !isAccepted(foreign, from: Self.client, harness))
        let id = try harness.connect(Self.client)
        for bit in 0..<64 {
            #expect(try !isAccepted(ConnectionID(id.rawValue ^ 1 << UInt64(bit)), from: Self.client, harness))
        }
        for value in [0, UInt64.max, 0x417_2710_1980] {
            #expect(try !isAccepted(ConnectionID(value), from: Self.client, harness))
        }
    }

    @Test func `a connection id outlives the tracker that gave it`() throws {
        var first = NodeHarness()
        let id = try first.connect(Self.client)
        let next = NodeHarness(try first.disk.restored(), first.disk)
        #expect(try isAccepted(id, from: Self.client, next))
    }

    // MARK: Errors

    @Test func `a connection id that is not good gets a short error, for announce and scrape`() throws {
        var harness = NodeHarness()
        let bad = ConnectionID(1)
        for request in [announce(bad), scrape(bad, [Self.torrent]), scrape(bad, (0..<74).map { .numbered($0) })] {
            let reply = harness.ask(request, from: Self.client)
            #expect(error(reply) == Refusal.connectionIDExpired.clientText)
            #expect((reply?.count ?? 0) <= 36)
        }
        #expect(harness.counts(Self.torrent) == SwarmCounts())
    }

    @Test func `before an address is proven, no reply is larger than its request`() throws {
        var configuration = NodeConfiguration.test
        configuration.limits.errorsPerSecond = .max
        var harness = NodeHarness(configuration)
        let good = try harness.connect(Self.client)
        let samples = [
            connectRequest(), connectRequest() + [7], announce(good), announce(good) + [2, 1, 47], scrape(good, []),
            scrape(good, [Self.torrent]), scrape(good, (0..<75).map { .numbered($0) }),
        ]
        var random = RandomStream(seed: 51)
        var answered = 0
        for round in 0..<rounds(40_000) {
            var bytes = samples[random.below(samples.count)]
            if random.oneIn(3) { bytes.removeSubrange(random.below(bytes.count + 1)...) }
            for _ in 0..<random.below(3) where !bytes.isEmpty {
                bytes[random.below(min(bytes.count, 16))] ^= 1 << UInt8(random.below(8))
            }
            if random.oneIn(4) { bytes += Array(repeating: 0, count: random.below(40)) }
            // The id was given to another address.
            let reply = harness.ask(bytes, from: .v4(2 + round % 1_000))
            answered += reply == nil ? 0 : 1
            if let reply, reply.count > bytes.count {
                Issue.record("\(bytes.count) bytes in, \(reply.count) bytes out: \(printable(bytes))")
                return
            }
        }
        #expect(answered > 100)
    }

    @Test func `errors to one address are limited`() throws {
        var harness = NodeHarness()
        func errors(_ count: Int, from client: SocketAddress) -> Int {
            (0..<count).count { _ in harness.ask(announce(ConnectionID(1)), from: client) != nil }
        }
        #expect(errors(50, from: Self.client) == 10)
        #expect(errors(50, from: Self.client.port(7)) == 0, "another port is no other address")
        #expect(errors(50, from: .v4(2)) == 10)
        #expect(errors(50, from: .v6(2)) == 10)
        #expect(harness.node.status.counters.errors == 30)
        #expect(harness.node.status.counters.errorsWithheld == 170)

        // Good requests go on.
        let id = try harness.connect(Self.client)
        #expect(harness.ask(announce(id), from: Self.client)?.count == 20)
        #expect(harness.ask(announce(id, port: 0), from: Self.client) == nil, "errors of any kind count")

        harness.pass(.seconds(1))
        #expect(errors(50, from: Self.client) == 10)
    }

    @Test func `no setting of the wall clock lifts the limit on errors`() {
        var harness = NodeHarness()
        var count = 0
        for _ in 0..<100 {
            harness.now.wall.milliseconds += 10_000
            if harness.ask(announce(ConnectionID(1)), from: Self.client) != nil { count += 1 }
        }
        #expect(count == 10)
    }

    @Test func `junk gets silence, and traps nothing`() {
        var harness = NodeHarness()
        var random = RandomStream(seed: 52)
        var replies = 0
        for _ in 0..<rounds(20_000) {
            let junk = (0..<random.below(200)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            if harness.ask(junk, from: .v4(random.below(1 << 20))) != nil { replies += 1 }
        }
        #expect(replies == 0)
        #expect(harness.node.state.table.counts == TableCounts())
    }

    // MARK: Where replies leave from

    @Test func `replies leave from the address and the socket that were asked`() throws {
        var harness = NodeHarness()
        let id = try harness.connect(Self.client)
        let asked: [(local: SocketAddress, socket: UInt16)] = [
            (.v4(99, port: 6969), 0), (.v6(99, port: 6969), 1), (.unspecified, 2),
        ]
        let requests = [
            connectRequest(), announce(id), announce(id, event: 3), scrape(id, [Self.torrent]),
            announce(ConnectionID(1)), announce(id, port: 0),
        ]
        for (local, socket) in asked {
            harness.receive(requests, from: Self.client, local: local, socket: socket)
            harness.completeWrites()
            let sent = harness.takeSent()
            #expect(sent.count == requests.count)
            #expect(sent.allSatisfy { $0.datagram.local == local && $0.datagram.socket == socket })
            #expect(sent.allSatisfy { $0.datagram.remote == Self.client })
        }
        harness.receive([announce(id)], from: Self.client, local: asked[1].local, socket: 1)
        harness.failWrite(.full)
        #expect(harness.sent.map(\.datagram.local) == [asked[1].local])
        #expect(harness.sent.map(\.datagram.socket) == [1])
    }

    // MARK: Scrape

    @Test func `a scrape answers in the order asked, repeats and unknown ones included`() throws {
        var harness = NodeHarness()
        harness.fill(.numbered(1), [(.v4(1), 0), (.v4(2), 1), (.v6(3), 1)])
        harness.fill(.numbered(2), [(.v4(1), 0)])
        _ = try harness.peers(.numbered(2), from: .v4(9), left: 0, event: .completed)
        let id = try harness.connect(Self.client)
        let answer = harness.ask(scrape(id, [2, 9, 1, 2, 1].map { .numbered($0) }), from: Self.client)
        let reply = try #require(answer)
        #expect(reply.count == 8 + 12 * 5)
        guard case .scrape(TransactionID(0x0102_0304), let counts) = try TrackerReply(reply, isIPv6: false) else {
            Issue.record("not a scrape reply")
            return
        }
        let one = TrackerReply.Scrape(seeders: 1, completed: 0, leechers: 2)
        let two = TrackerReply.Scrape(seeders: 2, completed: 1, leechers: 0)
        #expect(counts == [two, TrackerReply.Scrape(seeders: 0, completed: 0, leechers: 0), one, two, one])
    }

    @Test func `a scrape takes 1 to 74 info hashes of 20 bytes, and nothing else`() throws {
        var configuration = NodeConfiguration.test
        configuration.limits.errorsPerSecond = 1_000
        var harness = NodeHarness(configuration)
        let id = try harness.connect(Self.client)
        let hashes = (0..<100).map { InfoHash.numbered($0) }
        for count in [1, 2, 73, 74] {
            #expect(harness.ask(scrape(id, hashes[..<count]), from: Self.client)?.count == 8 + 12 * count)
        }
        for count in [0, 75, 76, 100] {
            let reply = harness.ask(scrape(id, hashes[..<count]), from: Self.client)
            #expect(error(reply) == Refusal.malformedScrape.clientText)
        }
        for cut in 1..<20 {
            let reply = harness.ask(scrape(id, hashes[..<3]).dropLast(cut), from: Self.client)
            #expect(error(reply) == Refusal.malformedScrape.clientText)
        }
        #expect(harness.ask(scrape(ConnectionID(1), []), from: Self.client) == nil)
    }
}
