// What clients get: the rules of docs/rules.md about requests, each shown on three trackers.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Rules: what clients get")
struct ClientRulesTests {
    private static let client = SocketAddress.v4(1)
    private static let other = SocketAddress.v4(2)

    private static func group(_ id: UInt32, _ configuration: inout NodeConfiguration) {
        configuration.cluster.entry = .group
    }

    private func isForward(_ body: ClusterMessage.Body) -> Bool { if case .forward = body { true } else { false } }

    // MARK: - Rule 11: a request counts once

    @Test func `rule 11: a request that is forwarded twice is in the log once`() throws {
        var trio = Trio.serving()
        trio.holdMessages { isForward($0.body) }
        #expect(try trio.announce(Self.client, at: 1) == nil)
        let letter = try #require(trio.held.first)
        trio.releaseMessages()
        trio.run(.milliseconds(100))
        let index = trio.index(3)
        #expect(trio.replies(to: Self.client).map(\.by) == [1])
        trio.tell(3, letter.body, from: 1, in: trio.epoch(3))
        trio.run(.milliseconds(100))
        #expect(trio.index(3) == index)
        #expect(trio.replies(to: Self.client).count == 1)
    }

    @Test func `rule 11: a download counts once, however often its end is announced`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 1, left: 9)
        for id: UInt32 in [1, 2, 3] { try trio.announce(Self.client, at: id, left: 0, event: .completed) }
        #expect(trio[2].state.table.counts(of: .numbered(1)).completed == 1)
    }

    // MARK: - Rule 12: a merge is by age

    @Test func `rule 12: after a partition the newer word on a peer wins, and a stop outlives an older one`() throws {
        var trio = Trio.serving(.classic)
        for client in [Self.client, Self.other] { try trio.announce(client, at: 3) }
        trio.cutOff(1)
        trio.run(.seconds(8))
        #expect(trio.masters.count == 2)
        // The one stops on this side, the other on that, each after the other side has heard it for the last time.
        try trio.announce(Self.client, at: 1)
        try trio.announce(Self.other, at: 3)
        trio.run(.seconds(2))
        try trio.announce(Self.client, at: 3, event: .stopped)
        try trio.announce(Self.other, at: 1, event: .stopped)
        try trio.announce(.v4(3), at: 1)
        trio.mend(1)
        trio.run(.seconds(20))
        #expect(trio.masters.count == 1)
        for id: UInt32 in [1, 2, 3] {
            let table = trio[id].state.table
            #expect(!table.contains(.numbered(1), Self.client))
            #expect(!table.contains(.numbered(1), Self.other))
            #expect(table.contains(.numbered(1), .v4(3)))
        }
        #expect(Set([1, 2, 3].map { trio[$0].inspection.digest }).count == 1)
    }

    // MARK: - Rule 18: a request is kept until it is answered

    @Test func `rule 18: what a dead master has not decided its slave hands to the next one`() throws {
        var trio = Trio.serving()
        trio.holdMessages { isForward($0.body) }
        #expect(try trio.announce(Self.client, at: 1) == nil)
        trio.crash(3)
        trio.holdMessages { _ in false }
        trio.run(.seconds(4))
        #expect(trio.masters == [2])
        #expect(trio.replies(to: Self.client).map(\.by) == [1])
    }

    @Test func `rule 18: a master that loses its role forwards what it has taken of its own clients`() throws {
        var trio = Trio.serving()
        // One announce is under way, and another one gathers behind it.
        trio.holdMessages { if case .prepare = $0.body { true } else { false } }
        for client in [Self.client, Self.other] { #expect(try trio.announce(client, at: 3) == nil) }
        #expect(trio[3].inspection.waitingRequests == 2)
        trio.loseBus(3)
        trio.holdMessages { _ in false }
        trio.drop { _ in true }
        trio.run(.seconds(4))
        #expect(trio.masters == [2])
        trio.connectBus(3)
        trio.run(.seconds(3))
        for client in [Self.client, Self.other] { #expect(trio.replies(to: client).map(\.by) == [3]) }
        #expect(trio[2].state.table.counts(of: .numbered(1)).leechers == 2)
    }

    @Test func `rule 18: in a group one tracker answers, and after its death the next`() throws {
        var trio = Trio.serving(change: Self.group)
        let master = trio.masters[0]
        try trio.announce(Self.client, at: master)
        trio.forget()
        for id in trio.ids { try trio.announce(Self.client, at: id, left: 3) }
        trio.run(.seconds(3))
        #expect(trio.replies(to: Self.client).map(\.by) == [master])
        trio.forget()
        trio.crash(master)
        for id in trio.ids where trio.isAlive(id) { try trio.announce(Self.client, at: id, left: 2) }
        trio.run(.seconds(4))
        #expect(trio.replies(to: Self.client).map(\.by) == trio.masters)
    }

    /// Over HTTP one tracker alone has heard it, so that one answers.
    @Test(arguments: [1, 2, 3] as [UInt32])
    func `rule 18: in a group a request over HTTP is answered by the tracker that was asked`(_ id: UInt32) throws {
        var trio = Trio.serving(change: Self.group)
        try trio.announce(Self.client, at: trio.masters[0])
        #expect(trio.request(.scrape([.numbered(1)]), from: Self.client, at: id, within: .seconds(2)).count == 1)
        let announce = Announce(infoHash: .numbered(1), peerID: .of(Self.other), left: 1, port: 6881)
        #expect(trio.request(.announce(announce), from: Self.other, at: id, within: .seconds(2)).count == 1)
        #expect(trio[id].state.table.counts(of: .numbered(1)).leechers == 2)
    }

    /// Nothing decides a read: where no quorum confirms its master, nobody else gives it up (seed 8034926 of `paxos`).
    @Test func `rule 18: a master gives up a read that waits for its confirmation once it is fifteen seconds old`() {
        var trio = Trio.serving()
        for id: UInt32 in [1, 2] { trio.crash(id) }
        trio.run(.seconds(5))
        #expect(trio.masters == [])
        #expect(trio.request(.scrape([.numbered(1)]), from: Self.client, at: 3, within: .seconds(10)) == [])
        trio.holdMessages { if case .confirm = $0.body { true } else { false } }
        trio.start(1)
        trio.run(.milliseconds(4800))
        #expect(trio.masters == [3])
        #expect(trio.answers == [], "it may be confirmed still")
        trio.run(.milliseconds(500))
        #expect(trio.masters == [3])
        #expect(trio.answers == [Answer(id: 4711, content: .failure(.notServing))])
        trio.releaseMessages()
        trio.run(.seconds(1))
        #expect(trio.answers.count == 1, "late words do not answer it again")
    }

    // MARK: - Rule 19: queues are bounded

    @Test func `rule 19: without a master no more requests wait than are allowed`() throws {
        var trio = Trio.serving { _, configuration in configuration.limits.waitingRequests = 8 }
        try trio.announce(Self.client, at: 1)
        trio.crash(2)
        trio.crash(3)
        trio.run(.seconds(8))
        for number in 0..<20 { try trio.announce(Self.client, at: 1, torrent: number) }
        #expect(trio[1].inspection.waitingRequests <= 8)
        #expect(trio[1].counters.dropped >= 12)
    }

    // MARK: - Rule 21: expiry is patient

    @Test func `rule 21: a peer stays for the interval that it was told and a fifth of it`() throws {
        var trio = Trio.serving { _, configuration in
            configuration.interval = 30
            configuration.intervalJitter = 0
        }
        guard case .announce(_, let told)? = try trio.announce(Self.client, at: 1) else {
            Issue.record("no answer")
            return
        }
        trio.run(.seconds(Int64(told.interval) * 6 / 5 - 1))
        #expect(trio[3].state.table.contains(.numbered(1), Self.client))
        trio.run(.seconds(Int64(told.interval) * 2))
        #expect(!trio[3].state.table.contains(.numbered(1), Self.client))
    }

    // MARK: - Rule 22: an orderly stop empties the swarms

    /// Trackers 1 and 2 leave in good order; then 1 and 3 come back, so both are of the quorum that elects.
    @Test(arguments: [false, true])
    func `rule 22: swarms are gone after an orderly stop of all voters, and stay where one has crashed`(
        crashes: Bool
    ) throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 1)
        trio.run(.seconds(1))
        if crashes {
            for id: UInt32 in [1, 2] { trio.command(id, .drain) }
        } else {
            trio.command(3, .stopCluster)
        }
        trio.run(.seconds(20))
        for id in trio.ids { trio.crash(id) }
        for id: UInt32 in [1, 3] { trio.start(id) }
        trio.run(.seconds(10))
        #expect(trio.masters == [3])
        #expect(trio[3].state.table.contains(.numbered(1), Self.client) == crashes)
    }

    /// Both trackers leave in good order, tracker 1 as the last, which has served alone.
    ///
    /// Tracker 2 is elected by both. Until the entry that empties the swarms is on its disk it may die, and then what
    /// tracker 1 has granted is to be found there (seed 8000366 of `rotating`).
    @Test func `rule 22: who is merged without its swarms keeps them until the master's are gone`() throws {
        // Nothing of a log is kept, so that whoever lacks entries has to merge.
        var trio = Trio.serving(.classic, count: 2) { $1.tailCount = 0 }
        try trio.announce(Self.client, at: 2)
        for id: UInt32 in [2, 1] {
            trio.command(id, .drain)
            trio.run(.seconds(20))
            trio.crash(id)
        }
        trio.start(1)
        trio.run(.seconds(20))
        #expect(!trio[1].state.table.contains(.numbered(1), Self.client), "it begins without swarms")
        try trio.announce(Self.other, at: 1)
        #expect(trio[1].state.table.contains(.numbered(1), Self.other))
        trio.command(1, .drain)
        trio.run(.seconds(20))
        trio.crash(1)

        trio.forget()
        trio.holdMessages { if case .answer = $0.body { true } else { false } }
        trio.start(1)
        trio.start(2)
        for _ in 0..<400 where trio.held.isEmpty { trio.run(.milliseconds(50)) }
        #expect(trio.held.first?.to == 2)
        trio.holdWrites(2)
        trio.releaseMessages()
        #expect(trio.masters == [2])
        #expect(!trio.said(by: 2) { $0 == .fetchChunk(0) }.isEmpty)
        trio.run(.milliseconds(500))
        #expect(trio[1].state.table.contains(.numbered(1), Self.other))
    }

    // MARK: - Rule 24: replies are right

    @Test func `rule 24: a connection id that one tracker has issued is good at every other`() throws {
        var trio = Trio.serving()
        // `announce` connects once, at the first of them.
        for id: UInt32 in [1, 2, 3] {
            guard case .announce? = try trio.announce(Self.client, at: id) else {
                Issue.record("tracker \(id) does not take it")
                continue
            }
        }
    }
}
