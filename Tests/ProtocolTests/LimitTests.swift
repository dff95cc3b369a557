// Everything that a stranger can grow has a bound, and those who are in stay in when it is reached.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Limits")
struct LimitTests {
    private func harness(_ change: (inout Limits) -> Void) -> NodeHarness {
        var configuration = NodeConfiguration.test
        change(&configuration.limits)
        return NodeHarness(configuration)
    }

    @Test func `a tracker full of torrents goes on with those that it has`() throws {
        var harness = harness { $0.torrents = 10 }
        for number in 0..<10 { _ = try harness.peers(.numbered(number), from: .v4(1)) }
        let before = harness.node.state
        let refused = try harness.announce(.numbered(10), from: .v4(1))
        #expect(refused.errorText == Refusal.trackerFull.clientText)
        let answer = try harness.request(
            .announce(Announce(infoHash: .numbered(10), peerID: .zero, left: 1, port: 1)), from: .v4(1))
        #expect(answer == .failure(.trackerFull))
        #expect(harness.node.state == before)

        #expect(try harness.peers(.numbered(9), from: .v4(2)).leechers == 2)
        #expect(try harness.peers(.numbered(10), from: .v4(1), event: .stopped).peers.isEmpty)
        _ = try harness.peers(.numbered(0), from: .v4(1), event: .stopped)
        #expect(try harness.peers(.numbered(10), from: .v4(1)).leechers == 1)
        #expect(harness.node.state.table.counts.torrents == 10)
    }

    @Test func `a tracker full of peers goes on with those that it has`() throws {
        var harness = harness { $0.peers = 10 }
        for number in 0..<10 {
            _ = try harness.peers(.numbered(number % 2), from: number % 3 == 0 ? .v6(number) : .v4(number))
        }
        let refused = try harness.announce(.numbered(0), from: .v4(10))
        #expect(refused.errorText == Refusal.trackerFull.clientText)
        #expect(try harness.peers(.numbered(0), from: .v4(8), left: 0).seeders == 1)
        #expect(try harness.peers(.numbered(0), from: .v6(0), left: 0).seeders == 2)
        _ = try harness.peers(.numbered(0), from: .v4(8), event: .stopped)
        #expect(try harness.peers(.numbered(0), from: .v4(10)).leechers == 4)
        #expect(harness.node.state.table.counts.peers == 10)
    }

    @Test func `a swarm that is full goes on with those that it has, and other swarms with all`() throws {
        var harness = harness { $0.peersPerSwarm = 10 }
        for number in 0..<10 { _ = try harness.peers(.numbered(0), from: number % 3 == 0 ? .v6(number) : .v4(number)) }
        let refused = try harness.announce(.numbered(0), from: .v4(10))
        #expect(refused.errorText == Refusal.swarmFull.clientText)
        #expect(try harness.peers(.numbered(0), from: .v4(8), left: 0).seeders == 1)
        #expect(try harness.peers(.numbered(1), from: .v4(10)).leechers == 1)
        _ = try harness.peers(.numbered(0), from: .v4(8), event: .stopped)
        #expect(try harness.peers(.numbered(0), from: .v4(10)).leechers == 10)
    }

    @Test func `a flood that comes faster than the disk passes the limits by two entries at most`() throws {
        var harness = harness {
            $0.torrents = 50
            $0.peers = 60
            $0.updatesPerEntry = 16
        }
        var random = RandomStream(seed: 61)
        for number in 0..<5_000 {
            let announce = Announce(infoHash: .numbered(number), peerID: .zero, left: 1, port: 1)
            harness.step(.requestReceived(ClientRequest(id: 1, source: .v4(number), content: .announce(announce))))
            if random.oneIn(20), !harness.pending.isEmpty { harness.completeWrite() }
        }
        harness.completeWrites()
        #expect((50...82).contains(harness.node.state.table.counts.torrents))
    }

    @Test(arguments: [StorageFailure.full, .broken])
    func `who waits when the disk fails is told within the limit of errors`(_ failure: StorageFailure) throws {
        var harness = harness { $0.errorsPerSecond = 3 }
        let id = try harness.connect(.v4(1))
        let announces = (1...8).map { port -> [UInt8] in
            var bytes: [UInt8] = []
            AnnounceRequest(
                connectionID: id, transactionID: TransactionID(UInt32(port)), infoHash: .numbered(1), peerID: .zero,
                left: 1, port: UInt16(port)
            ).encode(into: &bytes)
            return bytes
        }
        harness.receive(announces, from: .v4(1))
        _ = harness.takeSent()
        // The first entry, and where that was refused, the one that has gathered meanwhile.
        while !harness.pending.isEmpty, harness.node.status.waitingRequests > 0 { harness.failWrite(failure) }
        #expect(harness.takeSent().count == 3)
        #expect(harness.node.status.counters.errorsWithheld == 5)
        #expect(harness.node.status.waitingRequests == 0)
    }

    @Test func `requests wait in bounded number: those beyond are dropped and counted`() throws {
        var harness = harness {
            $0.updatesPerEntry = 8
            $0.waitingRequests = 12
        }
        let id = try harness.connect(.v4(1))
        func announce(_ port: UInt16) -> [UInt8] {
            var bytes: [UInt8] = []
            AnnounceRequest(
                connectionID: id, transactionID: TransactionID(UInt32(port)), infoHash: .numbered(1), peerID: .zero,
                left: 1, port: port
            ).encode(into: &bytes)
            return bytes
        }
        #expect(harness.node.hasRoom)
        harness.receive([announce(1)], from: .v4(1))
        #expect(harness.node.hasRoom, "the first is on its way to the disk")
        harness.receive((2...4).map(announce), from: .v4(1))
        #expect(harness.node.hasRoom)
        harness.receive((5...6).map(announce), from: .v4(1))
        #expect(!harness.node.hasRoom)
        harness.receive((7...20).map(announce), from: .v4(1))
        #expect(harness.node.status.waitingRequests == 12, "one under way, eight that gather, and three behind them")
        #expect(harness.node.status.counters.dropped == 8)

        harness.step(
            .requestReceived(
                ClientRequest(
                    id: 3, source: .v4(1),
                    content: .announce(Announce(infoHash: .numbered(1), peerID: .zero, left: 1, port: 99)))))
        #expect(harness.takeAnswers() == [Answer(id: 3, content: .failure(.busy))])
        #expect(harness.sent.isEmpty, "over UDP: silence, and the client asks again")

        harness.completeWrites()
        #expect(harness.takeSent().count == 12)
        #expect(harness.counts(.numbered(1)).leechers == 12)
        #expect(harness.node.hasRoom)
        // Connects and scrapes do not wait for announces.
        harness.receive((1...11).map(announce), from: .v4(1))
        var scrape: [UInt8] = []
        ScrapeRequest(connectionID: id, transactionID: TransactionID(1), infoHashes: [.numbered(1)])
            .encode(into: &scrape)
        harness.receive([scrape], from: .v4(1))
        #expect(harness.takeSent().count == 1)
    }

    @Test func `what waits is bounded in bytes, too, and the last datagram may be longer than the room`() {
        var configuration = NodeConfiguration.test
        configuration.limits.waitingRequests = 8
        var harness = NodeHarness(configuration, starts: false)
        harness.step(.started)
        // A connect is one, whatever stands behind it.
        var connect: [UInt8] = []
        ConnectRequest(transactionID: TransactionID(1)).encode(into: &connect)
        connect += Array(repeating: 0, count: 1_500)
        harness.receive(Array(repeating: connect, count: 4), from: .v4(1))
        #expect(harness.node.status.waitingRequests == 3, "512 bytes for each that may wait")
        #expect(harness.node.status.counters.dropped == 1)
        harness.completeWrites()
        #expect(harness.takeSent().count == 3)
        harness.receive([connect], from: .v4(1))
        #expect(harness.takeSent().count == 1)
    }

    @Test func `a table that is nearly full forgets empty torrents within the hour`() throws {
        var harness = harness { $0.torrents = 20 }
        for number in 0..<20 {
            _ = try harness.peers(.numbered(number), from: .v4(1), left: 0, event: .completed)
            _ = try harness.peers(.numbered(number), from: .v4(1), left: 0, event: .stopped)
        }
        #expect(harness.node.state.table.counts.torrents == 20)
        harness.run(.seconds(3_500))
        #expect(harness.node.state.table.counts.torrents == 20)
        harness.run(.seconds(200))
        #expect(harness.node.state.table.counts.torrents < 20)
        #expect(harness.node.state.table.counts.torrents > 5, "no more than needed")
        let reply = try harness.peers(.numbered(99), from: .v4(1))
        #expect(reply.leechers == 1)
    }

    static let prefixes: [(String, [String], [String])] = [
        ("192.0.2.0/24", ["192.0.2.0", "192.0.2.255"], ["192.0.1.255", "192.0.3.0", "::c000:0200"]),
        ("192.0.2.77", ["192.0.2.77"], ["192.0.2.76", "192.0.2.78"]),
        ("0.0.0.0/0", ["1.2.3.4", "255.255.255.255"], ["::1", "2001:db8::1"]),
        ("10.0.0.0/31", ["10.0.0.0", "10.0.0.1"], ["10.0.0.2"]),
        ("2001:db8::/32", ["2001:db8::", "2001:db8:ffff::1"], ["2001:db9::", "1.2.3.4"]),
        ("2001:db8::/65", ["2001:db8::7fff:0:0:1"], ["2001:db8::8000:0:0:1"]),
        ("2001:db8::1/128", ["2001:db8::1"], ["2001:db8::2"]),
        ("::/0", ["::1", "1.2.3.4"], []),
    ]

    @Test(arguments: prefixes)
    func `a prefix holds its addresses, and no others`(_ text: String, _ inside: [String], _ outside: [String]) throws {
        let prefix = try #require(AddressPrefix(text))
        for host in inside { #expect(prefix.contains(try #require(SocketAddress(host: host, port: 9))), "\(host)") }
        for host in outside { #expect(!prefix.contains(try #require(SocketAddress(host: host, port: 9))), "\(host)") }
    }

    @Test(arguments: [
        "", "/", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3/8", "::/129", "host/8", "1.2.3.4/8/8",
    ])
    func `what is no prefix is refused`(_ text: String) {
        #expect(AddressPrefix(text) == nil)
    }
}
