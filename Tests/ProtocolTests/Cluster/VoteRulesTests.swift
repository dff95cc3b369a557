// What is decided: the rules of docs/rules.md about entries, voters and the state, each shown on three trackers.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Rules: what is decided")
struct VoteRulesTests {
    private static let client = SocketAddress.v4(1)
    private static let other = SocketAddress.v4(2)

    private func isOK(_ body: ClusterMessage.Body) -> Bool { if case .ok = body { true } else { false } }
    private func isPrepare(_ body: ClusterMessage.Body) -> Bool { if case .prepare = body { true } else { false } }

    private func knows(_ trio: Trio, _ id: UInt32, _ client: SocketAddress) -> Bool {
        trio[id].state.table.contains(.numbered(1), client)
    }

    /// The entry that was proposed last, with the position before it.
    private func proposed(_ trio: Trio) -> (entry: Entry, at: Position)? {
        for letter in trio.said.reversed() { if case .prepare(let entry, let at) = letter.body { return (entry, at) } }
        return nil
    }

    // MARK: - Rule 2: a time-out is no abort

    @Test func `rule 2: what has been proposed is proposed again until it is decided, and its client waits`() throws {
        var trio = Trio.serving()
        trio.holdMessages { isOK($0.body) }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.forget()
        trio.run(.milliseconds(1500))
        #expect(trio.said(by: 3, where: isPrepare).count >= 4)
        #expect(trio.replies(to: Self.client).isEmpty)
        trio.releaseMessages()
        #expect(trio.replies(to: Self.client).count == 1)
        #expect(knows(trio, 3, Self.client))
    }

    // MARK: - Rule 3: who is answered, and by whom

    @Test func `rule 3: no client is answered before its entry is decided and applied`() throws {
        var trio = Trio.serving()
        trio.holdMessages { isOK($0.body) }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        #expect(!knows(trio, 3, Self.client))
        trio.deliver { $0.from == 1 }
        #expect(trio.replies(to: Self.client).map(\.by) == [3])
        #expect(knows(trio, 3, Self.client))
    }

    @Test func `rule 3: a deposed master is silent about what it was asked`() throws {
        var trio = Trio.serving()
        trio.holdMessages { isOK($0.body) }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.forget()
        trio.cutOff(3)
        trio.holdMessages { _ in false }
        trio.run(.seconds(6))
        #expect(trio.masters == [2])
        trio.deliver { _ in true }
        trio.run(.seconds(4))
        #expect(trio.replies.filter { $0.by == 3 }.isEmpty)
    }

    // MARK: - Rule 4: time is data

    @Test func `rule 4: all trackers hold the same times, those of their master`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 1)
        trio.run(.seconds(3))
        #expect(Set([1, 2, 3].map { trio[$0].inspection.digest }).count == 1)
        #expect(Set([1, 2, 3].map { trio[$0].state.time }).count == 1)
    }

    // MARK: - Rule 13: a quorum decides

    @Test func `rule 13: an entry is decided by a quorum that has it on disk, not by one that has heard it`() throws {
        var trio = Trio.serving()
        trio.holdWrites(1)
        trio.holdWrites(2)
        #expect(try trio.announce(Self.client, at: 3) == nil)
        #expect(trio.heldWrites(1).count == 1)
        #expect(trio.said.filter { isOK($0.body) }.isEmpty)
        trio.releaseWrites(2)
        #expect(trio.replies(to: Self.client).count == 1)
        #expect(knows(trio, 2, Self.client))
        #expect(trio.disk(1).entries.count + 1 == trio.disk(2).entries.count)
    }

    @Test func `rule 13: a voter takes no entry before it has the one that comes before`() throws {
        var trio = Trio.serving()
        trio.holdMessages { $0.to == 1 && (isPrepare($0.body) || $0.from == 3) }
        #expect(try trio.announce(Self.client, at: 3) != nil)
        trio.drop { _ in true }
        #expect(try trio.announce(Self.other, at: 3) != nil)
        let before = trio.index(1)
        trio.forget()
        trio.deliver { isPrepare($0.body) }
        #expect(trio.said(by: 1, where: isOK).isEmpty)
        #expect(!trio.said(by: 1) { if case .fetch = $0 { true } else { false } }.isEmpty)
        #expect(trio.index(1) == before)
        trio.releaseMessages()
        trio.run(.seconds(1))
        #expect(knows(trio, 1, Self.client) && knows(trio, 1, Self.other))
    }

    @Test func `rule 13: a vote counts for the ballot that it names`() throws {
        var trio = Trio.serving()
        trio.holdMessages { isOK($0.body) }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        let (entry, _) = try #require(proposed(trio))
        var ballot = entry.header.ballot
        ballot.attempt += 1
        for id: UInt32 in [1, 2] { trio.tell(3, .ok(ballot), from: id, in: ballot.epoch) }
        #expect(trio.replies(to: Self.client).isEmpty)
        ballot.attempt -= 1
        trio.tell(3, .ok(ballot), from: 1, in: ballot.epoch)
        #expect(trio.replies(to: Self.client).count == 1)
    }

    // MARK: - Rule 15: an abort is final

    @Test func `rule 15: an empty entry is decided in the place of a refused one before anybody is told`() throws {
        var trio = Trio.serving()
        trio.failWrites(1, .full)
        trio.failWrites(2, .full)
        trio.holdMessages { isPrepare($0.body) }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.deliver { _ in true }
        let (void, _) = try #require(proposed(trio))
        #expect(void.header.updateCount == 0)
        #expect(trio.replies(to: Self.client).isEmpty)
        trio.failWrites(1, nil)
        trio.failWrites(2, nil)
        trio.holdMessages { _ in false }
        trio.deliver { _ in true }
        trio.run(.milliseconds(1500))
        let replies = try trio.replies(to: Self.client).map { try TrackerReply($0.payload, isIPv6: false) }
        #expect(replies.map(\.errorText) == [Refusal.notStored.clientText])
    }

    @Test func `rule 15: a voter that has refused an entry does not take it when it comes again`() throws {
        var trio = Trio.serving()
        trio.failWrites(1, .full)
        trio.holdMessages { $0.to == 2 }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        let (entry, position) = try #require(proposed(trio))
        #expect(!trio.said(by: 1) { if case .error = $0 { true } else { false } }.isEmpty)
        trio.failWrites(1, nil)
        trio.forget()
        let epoch = trio.epoch(3)
        trio.tell(1, .prepare(entry: entry, at: position), from: 3, in: epoch)
        #expect(trio.said(by: 1, where: isOK).isEmpty)
        let refusals = trio.said(by: 1) { if case .error(_, .cannotStore) = $0 { true } else { false } }
        #expect(refusals.count == 1)
    }

    // MARK: - Rule 16: voters change one at a time

    @Test func `rule 16: one tracker takes another's vote in two entries`() {
        var trio = Trio.serving(count: 4) { id, configuration in
            configuration.cluster = ClusterProfile.paxos.configuration(members: [1, 2, 3])
        }
        trio.run(.seconds(4))
        trio.forget()
        trio.command(3, .replaceMember(1, by: 4))
        trio.run(.seconds(2))
        let changes = trio.observed(by: 3).compactMap { observation -> [UInt32]? in
            if case .membersChanged(let members) = observation { return members }
            return nil
        }
        #expect(changes.prefix(2) == [[1, 2, 3, 4], [2, 3, 4]])
        #expect(trio[2].state.members == [2, 3, 4])
    }

    @Test func `rule 16: who is not in step gets no vote, and its operator is told why`() {
        var trio = Trio.serving(count: 4) { id, configuration in
            configuration.cluster = ClusterProfile.paxos.configuration(members: [1, 2, 3])
        }
        trio.crash(4)
        trio.run(.seconds(4))
        trio.forget()
        trio.command(3, .addMember(4))
        trio.run(.seconds(1))
        #expect(trio[3].state.members == [1, 2, 3])
        let refusals = trio.observed(by: 3).compactMap { observation -> String? in
            if case .commandRefused(let why) = observation { return why }
            return nil
        }
        #expect(refusals == ["tracker 4 does not follow, or is not in sync yet"])
    }

    /// It may have been told of others itself.
    @Test func `rule 16: a master that inherits the first voters does not name them anew`() throws {
        var trio = Trio()
        trio.holdMessages { isOK($0.body) }
        for id in trio.ids { trio.start(id) }
        for _ in 0..<200 where !trio.held.contains(where: { $0.from == 2 }) { trio.run(.milliseconds(50)) }
        // The voters are on all disks, and nobody knows that they are decided.
        #expect(trio.masters == [3])
        #expect(trio.held.contains { $0.from == 2 })
        trio.crash(3)
        trio.drop { _ in true }
        trio.holdMessages { _ in false }
        trio.forget()
        trio.run(.seconds(8))
        #expect(trio.masters == [2])
        #expect(trio[2].state.members == [1, 2, 3])
        for letter in trio.said(by: 2, where: isPrepare) {
            guard case .prepare(let entry, _) = letter.body, entry.header.index > 1 else { continue }
            var cursor = UpdateCursor(entry.header)
            while let update = try cursor.next(entry.bytes) {
                if case .setMembers = update { Issue.record("entry \(entry.header.index) names the voters again") }
            }
        }
    }

    // MARK: - Rule 17: a transfer is whole

    @Test func `rule 17: a state that is fetched is one state, whatever is decided meanwhile`() throws {
        var trio = Trio.serving { _, configuration in configuration.tailCount = 4 }
        trio.crash(1)
        trio.eraseDisk(1)
        for number in 10..<30 { try trio.announce(.v4(number), at: 3, torrent: number % 5) }
        trio.holdMessages { if case .chunk(let number, _, _) = $0.body { number > 2 } else { false } }
        trio.start(1)
        trio.run(.seconds(10))
        // The first chunks are here; the others are of later.
        for number in 30..<40 { try trio.announce(.v4(number), at: 3, torrent: number % 5) }
        trio.releaseMessages()
        trio.run(.seconds(10))
        #expect(trio[1].inspection.hasFullState)
        #expect(trio[1].inspection.position == trio[3].inspection.position)
        #expect(trio[1].inspection.digest == trio[3].inspection.digest)
    }

    // MARK: - Rule 5: reads are confirmed

    @Test func `rule 5: a read is answered after a quorum has said, after the read came, that its master is one`()
        throws
    {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.holdMessages { if case .confirmed = $0.body { true } else { false } }
        #expect(try trio.scrape(Self.client, at: 3) == nil)
        trio.forget()
        // The answer to an earlier round says nothing about this one.
        trio.tell(3, .confirmed(round: 0), from: 1, in: trio.epoch(3))
        #expect(trio.replies(to: Self.client).isEmpty)
        trio.deliver { $0.from == 2 }
        #expect(trio.replies(to: Self.client).count == 1)
    }

    // MARK: - Rule 20: damage is said

    /// It had once been told up to where to fetch, and has that: but that was of a history that it has given up since.
    @Test(arguments: [false, true])
    func `rule 9: who has found itself in another history is whole again only when it has fetched anew`(
        hasFetchedBefore: Bool
    ) throws {
        var trio = Trio.serving { _, configuration in configuration.tailCount = 4 }
        if hasFetchedBefore {
            trio.cutOff(1)
            for number in 10..<40 { try trio.announce(.v4(number), at: 3, torrent: number % 5) }
            trio.mend(1)
            trio.run(.seconds(10))
            #expect(trio.observed(by: 1).contains { if case .transferEnded = $0 { true } else { false } })
        }
        #expect(trio[1].inspection.position == trio[3].inspection.position)
        let position = trio[1].inspection.position
        trio.holdMessages { $0.to == 1 || $0.from == 1 }
        trio.tell(
            1, .commit(at: Position(index: position.index, chain: position.chain ^ 1)), from: 3, in: trio.epoch(3))
        #expect(!trio[1].inspection.hasFullState)
        trio.run(.seconds(1))
        #expect(!trio[1].inspection.hasFullState, "whole again, with nothing fetched")
    }

    @Test func `rule 20: a slave whose history is another says so, and answers nobody until it is whole again`() throws
    {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.run(.seconds(1))
        let position = trio[1].inspection.position
        trio.forget()
        trio.holdMessages { $0.to == 1 || $0.from == 1 }
        trio.tell(
            1, .commit(at: Position(index: position.index, chain: position.chain ^ 1)), from: 3, in: trio.epoch(3))
        #expect(trio.observed(by: 1).contains { if case .diverged = $0 { true } else { false } })
        #expect(!trio.isServing(1))
        #expect(!trio[1].inspection.hasFullState)
        trio.releaseMessages()
        trio.run(.seconds(20))
        #expect(trio.isServing(1))
    }
}
