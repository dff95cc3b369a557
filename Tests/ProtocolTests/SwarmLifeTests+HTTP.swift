// What HTTP clients are answered: peers of both families, so many as they may have, and counts.

import Primitives
import Testing
import TrackerLogic
import Wire

extension SwarmLifeTests {
    @Test func `an HTTP client is told of peers of both families, with their ids`() throws {
        var harness = NodeHarness()
        harness.fill(Self.torrent, [(.v4(1), 1), (.v4(2), 0), (.v6(1), 1), (.v6(2), 0)])
        func ask(_ client: SocketAddress, left: UInt64 = 1, wanted: Int?) throws -> AnnounceAnswer {
            let announce = Announce(
                infoHash: Self.torrent, peerID: .of(client), left: left, numWant: wanted, port: client.port)
            guard case .announce(let answer) = try harness.request(.announce(announce), from: client) else {
                throw UnexpectedReply(reply: .error(TransactionID(0), message: []))
            }
            return answer
        }
        let all = try ask(.v4(9), wanted: nil)
        #expect(all.counts == SwarmCounts(seeders: 2, leechers: 3))
        #expect(all.minInterval == 900)
        #expect((1_740...1_860).contains(all.interval))
        #expect(Set(all.ipv4.map(\.endpoint.socketAddress)) == [.v4(1), .v4(2)])
        #expect(Set(all.ipv6.map(\.endpoint.socketAddress)) == [.v6(1), .v6(2)])
        #expect(all.ipv4.allSatisfy { $0.peerID == .of($0.endpoint.socketAddress) })
        #expect(all.ipv6.allSatisfy { $0.peerID == .of($0.endpoint.socketAddress) })

        let own = try ask(.v6(9), wanted: 3)
        #expect(own.ipv6.count == 2, "the client's own family first")
        #expect(own.ipv4.count == 1)
        let seeder = try ask(.v6(8), left: 0, wanted: 50)
        #expect(Set(seeder.ipv6.map(\.endpoint.socketAddress)) == [.v6(1), .v6(9)])
        #expect(Set(seeder.ipv4.map(\.endpoint.socketAddress)) == [.v4(1), .v4(9)])
        let none = try ask(.v4(9), wanted: 0)
        #expect(none.ipv4.isEmpty && none.ipv6.isEmpty)
    }

    @Test func `an HTTP client gets at most 200 peers, and 50 if it does not say`() throws {
        var harness = NodeHarness()
        harness.fill(Self.torrent, (0..<400).map { ($0 % 2 == 0 ? .v4($0) : .v6($0), 1) })
        for (wanted, expected) in [(nil, 50), (-1, 50), (1, 1), (199, 199), (500, 200), (Int.max, 200)] {
            let announce = Announce(
                infoHash: Self.torrent, peerID: .zero, left: 1, numWant: wanted, port: 1)
            guard case .announce(let answer) = try harness.request(.announce(announce), from: .v4(9_999)) else {
                Issue.record("no announce answer")
                return
            }
            #expect(answer.ipv4.count + answer.ipv6.count == expected)
        }
    }

    @Test func `an HTTP scrape is answered in the order asked`() throws {
        var harness = NodeHarness()
        harness.fill(.numbered(1), [(.v4(1), 0)])
        harness.fill(.numbered(2), [(.v4(1), 1), (.v6(1), 1)])
        let answer = try harness.request(
            .scrape([2, 3, 1, 2].map { .numbered($0) }), from: Self.client)
        #expect(
            answer
                == .scrape([
                    SwarmCounts(leechers: 2), SwarmCounts(), SwarmCounts(seeders: 1), SwarmCounts(leechers: 2),
                ]))
    }
}
