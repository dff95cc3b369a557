// Who is master: the rules of docs/rules.md about elections, each shown on three trackers.
//
// A test is named by what the rule says, and does what the rule forbids to be believed. Three trackers are 1, 2 and 3;
// where nothing else is said 3 is master, of epoch e.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Rules: who is master")
struct ElectionRulesTests {
    private static let client = SocketAddress.v4(1)

    private func isAnswer(_ body: ClusterMessage.Body) -> Bool { if case .answer = body { true } else { false } }
    private func isElection(_ body: ClusterMessage.Body) -> Bool { body == .election }

    // MARK: - Rule 1: the failure detector decides nothing

    @Test func `rule 1: whoever has promised an epoch hears no lower one`() throws {
        var trio = Trio.serving()
        let old = trio.epoch(3)
        trio.cutOff(3)
        trio.run(.seconds(4))
        #expect(trio.masters == [2])
        let entry = try #require(trio[3].committedEntry(at: 1))
        let before = trio.index(1)
        trio.forget()
        trio.tell(1, .prepare(entry: entry, at: .start), from: 3, in: old)
        trio.tell(1, .commit(at: Position(index: before + 5, chain: 9)), from: 3, in: old)
        #expect(trio.epoch(1) > old)
        #expect(trio.index(1) == before)
        #expect(trio.said(by: 1) { if case .ok = $0 { true } else { false } }.isEmpty)
    }

    @Test func `rule 1: without a quorum of promises nobody leads, whoever is silent`() {
        var trio = Trio.serving()
        trio.holdMessages { isAnswer($0.body) }
        trio.crash(3)
        trio.run(.milliseconds(4000))
        #expect(trio.masters.isEmpty)
        #expect(!trio.said(by: 2, where: isElection).isEmpty)
    }

    @Test func `rule 1: an epoch belongs to one life of one tracker`() {
        var trio = Trio.serving()
        let next = Epoch(round: trio.epoch(1).round + 1, id: 2)
        trio.forget()
        // Tracker 3 stands in the name of 2.
        trio.tell(1, .election, from: 3, in: next)
        #expect(trio.epoch(1) < next)
        #expect(trio.said(by: 1, where: isAnswer).isEmpty)
    }

    // MARK: - Rule 6: whom the policy prefers

    @Test(
        arguments: [(ClusterProfile.classic, 2), (.rotating, 1), (.lowest, 2), (.paxos, 2)]
            as [(ClusterProfile, UInt32)])
    func `rule 6: when the master dies, whom the policy prefers is elected, in one election`(
        _ profile: ClusterProfile, _ successor: UInt32
    ) {
        var trio = Trio.serving(profile)
        let dead: UInt32 = profile == .lowest ? 1 : 3
        if profile == .rotating {
            // The turn comes to 3 by deaths only.
            while trio.masters != [3] {
                let master = trio.masters[0]
                trio.crash(master)
                trio.run(.seconds(8))
                trio.start(master)
                trio.run(.seconds(8))
            }
        }
        #expect(trio.masters == [dead])
        trio.forget()
        trio.crash(dead)
        trio.run(.seconds(8))
        #expect(trio.masters == [successor])
        #expect(trio.told.count { if case .stands = $0.observation { true } else { false } } == 1)
    }

    @Test func `rule 6: a preferred tracker that comes back is handed the role, and tears nobody down`() throws {
        var trio = Trio.serving()
        trio.crash(3)
        trio.run(.seconds(8))
        #expect(trio.masters == [2])
        trio.forget()
        trio.start(3)
        trio.run(.seconds(1))
        #expect(trio.masters == [2], "it has not been in step for four keepalives")
        trio.run(.seconds(8))
        #expect(trio.masters == [3])
        #expect(!trio.said(by: 2) { $0 == .handover }.isEmpty)
        #expect(try trio.announce(Self.client, at: 1) != nil)
    }

    @Test func `rule 6: the role waits until what is under way is decided`() throws {
        var trio = Trio.serving()
        trio.crash(3)
        trio.run(.seconds(8))
        trio.start(3)
        trio.run(.seconds(1))
        trio.forget()
        // An entry that nobody may vote for yet.
        trio.holdMessages { if case .ok = $0.body { true } else { false } }
        #expect(try trio.announce(Self.client, at: 2) == nil)
        trio.run(.seconds(8))
        #expect(trio.said(by: 2) { $0 == .handover }.isEmpty)
        trio.releaseMessages()
        trio.run(.seconds(3))
        #expect(trio.masters == [3])
        #expect(trio.replies(to: Self.client).count == 1)
    }

    @Test func `rule 6: an entry that an earlier master left, and nobody replaces, does not keep the role`() throws {
        var trio = Trio.serving()
        // 3 has written an entry that no other has heard of when it is cut off; then nobody asks for anything.
        trio.holdMessages { if case .prepare = $0.body { true } else { false } }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.cutOff(3)
        trio.run(.seconds(6))
        trio.drop { _ in true }
        trio.holdMessages { _ in false }
        #expect(trio.masters == [2])
        #expect(trio[3].inspection.pending != nil)
        trio.mend(3)
        trio.run(.seconds(12))
        #expect(trio.masters == [3])
        #expect(trio.replies(to: Self.client).count <= 1)
        #expect(trio[1].inspection.digest == trio[3].inspection.digest)
    }

    // MARK: - Rule 7: a quorum keeps the master

    @Test func `rule 7: a master without a quorum steps down`() {
        var trio = Trio.serving()
        trio.crash(1)
        trio.crash(2)
        trio.forget()
        trio.run(.milliseconds(1900))
        #expect(trio.masters == [3])
        // It takes a detection time to find the others silent, and one more to give up.
        trio.run(.milliseconds(2300))
        #expect(trio.masters.isEmpty)
        #expect(trio.observed(by: 3).contains { if case .steppedDown(_, .quorumLost) = $0 { true } else { false } })
    }

    @Test func `rule 7: a tracker that is merely deaf brings nobody down`() {
        var trio = Trio.serving()
        let epoch = trio.epoch(3)
        trio.holdMessages { $0.to == 1 }
        trio.run(.seconds(20))
        #expect(!trio.said(by: 1) { if case .suspect = $0 { true } else { false } }.isEmpty)
        #expect(trio.said(by: 1, where: isElection).isEmpty)
        #expect(trio.masters == [3] && trio.epoch(3) == epoch)
    }

    @Test func `rule 7: a tracker that was held up finds out how late it is before it listens to anybody`() {
        var trio = Trio.serving()
        trio.holdMessages { $0.to == 3 || $0.from == 3 }
        trio.run(.seconds(5))
        #expect(trio.masters == [2])
        #expect(!trio.isServing(3))
    }

    // MARK: - Rule 8: without its bus

    @Test func `rule 8: a tracker without its bus answers nobody`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.loseBus(3)
        trio.forget()
        #expect(try trio.announce(Self.client, at: 3) == nil)
        #expect(trio.masters.isEmpty)
        #expect(!trio.isServing(3))
        trio.connectBus(3)
        trio.run(.seconds(8))
        #expect(trio.replies(to: Self.client).count <= 1)
        #expect(trio.masters == [3])
    }

    // MARK: - Rule 9: durable before it is said

    @Test func `rule 9: a promise is on the disk before it is told`() {
        var trio = Trio.serving()
        trio.holdWrites(1)
        trio.crash(3)
        trio.forget()
        trio.run(.milliseconds(2600))
        #expect(!trio.said(by: 2, where: isElection).isEmpty)
        #expect(trio.said(by: 1, where: isAnswer).isEmpty)
        #expect(trio.masters.isEmpty)
        trio.releaseWrites(1)
        #expect(trio.said(by: 1, where: isAnswer).count >= 1)
        #expect(trio.masters == [2])
    }

    @Test func `rule 9: a candidate's own promise is on its disk before it asks`() {
        var trio = Trio.serving()
        trio.holdWrites(2)
        trio.crash(3)
        let stands = { (trio: Trio) in trio.observed(by: 2).contains { if case .stands = $0 { true } else { false } } }
        for _ in 0..<80 where !stands(trio) { trio.run(.milliseconds(50)) }
        #expect(stands(trio))
        #expect(trio.said(by: 2, where: isElection).isEmpty)
        trio.releaseWrites(2)
        #expect(!trio.said(by: 2, where: isElection).isEmpty)
    }

    @Test func `rule 9: whoever has lost its memory has no vote until it holds the whole state again`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 1)
        trio.crash(1)
        trio.eraseDisk(1)
        trio.start(1)
        #expect(!trio[1].inspection.hasFullState)
        trio.forget()
        trio.cutOff(3)
        trio.run(.seconds(20))
        #expect(trio.said(by: 1, where: isAnswer).isEmpty)
        #expect(trio.masters.isEmpty, "of three one is away, and one has forgotten what it has promised")
        trio.mend(3)
        trio.run(.seconds(20))
        #expect(trio[1].inspection.hasFullState)
        #expect(trio[1].inspection.digest == trio[3].inspection.digest)
    }

    // MARK: - Rule 10: two lives with one id

    @Test func `rule 10: the later of two lives with one id is refused`() throws {
        var trio = Trio.serving()
        let namesake = Life(id: 1, incarnation: 77)
        let hello = Hello(
            position: .start, hasFullState: false, isBlank: true, heard: [],
            settings: SettingsPrint(trio[3].configuration))
        trio.forget()
        trio.tell(3, .hello(hello), from: namesake, in: .zero)
        let refusals = trio.said(by: 3) { $0 == .refused(.idTaken) }
        #expect(refusals.map(\.message.destination) == [.one(namesake)])
        #expect(try trio.announce(Self.client, at: 1) != nil, "the earlier one goes on")
    }

    // MARK: - Rule 14: a new master recovers

    @Test func `rule 14: a new master first decides what an earlier one may have decided`() throws {
        var trio = Trio.serving()
        // 1 has accepted the entry, and its OK is on the way when the master dies: nobody knows whether it counted.
        trio.holdMessages { letter in
            if case .ok = letter.body { return true }
            if case .prepare = letter.body { return letter.to == 2 }
            return false
        }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.crash(3)
        trio.drop { _ in true }
        trio.holdMessages { _ in false }
        trio.run(.seconds(8))
        #expect(trio.masters == [2])
        #expect(trio[1].state.table.contains(.numbered(1), Self.client))
        #expect(trio[2].state.table.contains(.numbered(1), Self.client))
    }

    @Test func `rule 14: a new master serves nobody before that is decided`() throws {
        var trio = Trio.serving()
        trio.holdMessages { letter in
            if case .ok = letter.body { return true }
            if case .prepare = letter.body { return letter.to == 2 }
            return false
        }
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.crash(3)
        trio.run(.seconds(4))
        #expect(trio.masters == [2])
        #expect(!trio.isServing(2), "1 has not voted for the entry in the new epoch")
        trio.releaseMessages()
        trio.run(.seconds(1))
        #expect(trio.isServing(2))
    }
}
