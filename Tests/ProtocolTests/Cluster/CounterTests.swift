// Whose figures a reply is in: those of the tracker that sends it to its client, and nobody else's.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Counters of a cluster")
struct CounterTests {
    /// What a client of HTTP asks of all three: from a port at which nobody can be reached it is refused.
    private func announce(port: UInt16) -> ClientRequest.Content {
        .announce(Announce(infoHash: .numbered(1), peerID: .of(.v4(9)), left: 1, port: port))
    }

    private func count(_ trio: Trio, _ figure: KeyPath<Counters, UInt64>) -> [UInt64] {
        trio.ids.map { trio[$0].counters[keyPath: figure] }
    }

    @Test func `what a slave sends on and then answers counts at the slave, and not at the master`() throws {
        var trio = Trio.serving()
        #expect(trio.masters == [3])
        try trio.announce(.v4(1), at: 1)
        for client in 2...3 { try trio.announce(.v4(client), at: 2) }
        for client in 4...6 { try trio.announce(.v4(client), at: 3) }
        trio.run(.milliseconds(100))
        #expect(count(trio, \.announces) == [1, 2, 3])
        #expect(count(trio, \.announces).reduce(0, +) == UInt64(trio.replies.count))
    }

    @Test func `scrapes and announces over HTTP count where they were asked`() throws {
        var trio = Trio.serving()
        for id: UInt32 in [1, 2, 3] {
            try trio.scrape(.v4(1), at: id)
            #expect(trio.request(.scrape([.numbered(1)]), from: .v4(8), at: id, within: .seconds(1)).count == 1)
            #expect(trio.request(announce(port: 6881), from: .v4(9), at: id, within: .seconds(1)).count == 1)
        }
        #expect(count(trio, \.announces) == [1, 1, 1])
        #expect(count(trio, \.scrapes) == [2, 2, 2])
        #expect(count(trio, \.errors) == [0, 0, 0])
    }

    @Test func `an announce that is refused is an error of whoever was asked, and no announce`() {
        var trio = Trio.serving()
        for id: UInt32 in [1, 2, 3] {
            let answers = trio.request(announce(port: 0), from: .v4(9), at: id, within: .seconds(1))
            #expect(answers.map(\.content) == [.failure(.portZero)])
        }
        #expect(count(trio, \.announces) == [0, 0, 0])
        #expect(count(trio, \.errors) == [1, 1, 1])
    }

    @Test func `an announce that is sent on twice, since a master died, counts once`() throws {
        var trio = Trio.serving()
        trio.holdMessages { if case .forward = $0.body { true } else { false } }
        #expect(try trio.announce(.v4(1), at: 1) == nil)
        trio.crash(3)
        trio.holdMessages { _ in false }
        trio.run(.seconds(4))
        #expect(trio.masters == [2])
        #expect([1, 2].map { trio[$0].counters.announces } == [1, 0])
    }

    @Test func `in a group, what all have heard counts at the master, which answers it`() throws {
        var trio = Trio.serving { $1.cluster.entry = .group }
        let master = trio.masters[0]
        // The master answers the connect, too.
        for id in trio.ids.reversed() { try trio.announce(.v4(1), at: id) }
        trio.run(.seconds(3))
        #expect(trio.replies(to: .v4(1)).map(\.by) == [master])
        #expect(count(trio, \.announces) == trio.ids.map { $0 == master ? 1 : 0 })
        let slave: UInt32 = master == 1 ? 2 : 1
        #expect(trio.request(announce(port: 6881), from: .v4(9), at: slave, within: .seconds(2)).count == 1)
        #expect(trio[slave].counters.announces == 1)
    }
}
