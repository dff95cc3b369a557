// A tracker that stands for master: rounds, phases and answers, event by event. What it makes of entries that it is
// told of is in `InheritanceTests`.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct CandidateTableTests {
    private static let epoch = Epoch(4, by: 1)

    private static func answer(_ index: UInt64 = 0, chain: UInt64 = 1) -> VoterAnswer {
        VoterAnswer(position: Position(index: index, chain: chain), pending: nil)
    }

    /// One that stands for epoch 4.1, or did, with tracker 2's answer where answers count.
    private static func candidate(_ phase: Candidate.Phase) -> Candidate {
        var candidate = Candidate()
        candidate.stand(epoch, electionDeadline: .at(900))
        switch phase {
        case .idle: candidate.giveUp()
        case .promising: break
        case .asking, .recovering, .leading:
            _ = candidate.promisePersisted(epoch)
            candidate.answerReceived(Life(2), answer(), epoch: epoch)
            if phase == .recovering { candidate.beginRecovery(electionDeadline: .at(1800)) }
            if phase == .leading { candidate.lead() }
        }
        return candidate
    }

    private static let phases: [Candidate.Phase] = [.idle, .promising, .asking, .recovering, .leading]

    @Test func `at first nothing is stood for, and nothing known`() {
        let candidate = Candidate()
        #expect(candidate.phase == .idle)
        #expect(candidate.epoch == .zero)
        #expect(candidate.answers.isEmpty)
        #expect(candidate.electionDeadline == nil)
        #expect(candidate.highestRound == 0)
        #expect(candidate.lastMaster == 0)
        #expect(!candidate.couldNotRecover)
        #expect(!candidate.isLeading)
    }

    // MARK: - Rounds

    @Test(arguments: [(0, 0, 5), (4, 0, 5), (5, 0, 6), (0, 5, 6), (7, 6, 8), (6, 7, 8)] as [(UInt64, UInt64, UInt64)])
    func `the next round is above all that were promised, heard of and stood in`(
        _ promised: UInt64, _ heard: UInt64, _ next: UInt64
    ) {
        var candidate = Self.candidate(.idle)
        candidate.note(heard)
        #expect(candidate.nextRound(above: promised) == next)
    }

    @Test func `a lower round that is heard of changes nothing`() {
        var candidate = Candidate()
        candidate.note(7)
        candidate.note(6)
        #expect(candidate.highestRound == 7)
        candidate.note(8)
        #expect(candidate.highestRound == 8)
    }

    @Test(arguments: [(50, 0), (0, 50), (50, 20), (20, 50)] as [(UInt64, UInt64)])
    func `how far ahead a round is counts from the highest promised or heard`(_ promised: UInt64, _ heard: UInt64) {
        var candidate = Candidate()
        candidate.note(heard)
        func admitRound(_ round: UInt64) -> Bool {
            candidate.admitRound(round, promised: promised, now: .at(0), pause: .seconds(2))
        }
        #expect(!admitRound(50 + NumberBounds.roundJump + 1))
        // The jump is used up, and what is plausible has moved by it.
        #expect(admitRound(50 + NumberBounds.roundJump + NumberBounds.roundStep))
        #expect(!admitRound(50 + NumberBounds.roundJump + NumberBounds.roundStep + 1))
        #expect(candidate.highestRound == heard, "to believe is not to note")
    }

    @Test func `the last master is the one that was known last`() {
        var candidate = Self.candidate(.leading)
        candidate.note(master: 3)
        #expect(candidate.lastMaster == 3)
        candidate.note(master: 2)
        candidate.giveUp()
        #expect(candidate.lastMaster == 2)
    }

    @Test(arguments: [(1999, false), (2000, true), (2001, true)] as [(Int64, Bool)])
    func `a master stands again at once, and the second time after a pause`(_ now: Int64, _ isAllowed: Bool) {
        var candidate = Self.candidate(.leading)
        #expect(candidate.mayStandAgain(now: .at(0), pause: .seconds(2)))
        candidate.noteStoodAgain(now: .at(0))
        #expect(candidate.mayStandAgain(now: .at(now), pause: .seconds(2)) == isAllowed)
    }

    // MARK: - Phases

    @Test func `who stands names its epoch, and waits for its own promise`() {
        var candidate = Candidate()
        candidate.stand(Self.epoch, electionDeadline: .at(900))
        #expect(candidate.phase == .promising)
        #expect(candidate.epoch == Self.epoch)
        #expect(candidate.electionDeadline == .at(900))
        #expect(candidate.answers.isEmpty)
        candidate.giveUp()
        candidate.stand(Epoch(4, by: 2), electionDeadline: nil)
        #expect(candidate.epoch == Epoch(4, by: 2))
        #expect(candidate.electionDeadline == nil)
    }

    @Test(arguments: phases)
    func `only the promise that it waits for, and of its own epoch, lets it ask`(_ phase: Candidate.Phase) {
        for kept in [Epoch(3, by: 1), Epoch(4, by: 0), Epoch(4, by: 2), Epoch(5, by: 1)] {
            var candidate = Self.candidate(phase)
            #expect(candidate.promisePersisted(kept) == false)
            #expect(candidate == Self.candidate(phase))
        }
        var candidate = Self.candidate(phase)
        #expect(candidate.promisePersisted(Self.epoch) == (phase == .promising))
        #expect(candidate.phase == (phase == .promising ? .asking : phase))
        #expect(candidate.electionDeadline == Self.candidate(phase).electionDeadline)
    }

    @Test func `it notes when it asked`() {
        var candidate = Self.candidate(.asking)
        #expect(candidate.askedAt == .at(0))
        candidate.noteAsked(now: .at(70))
        #expect(candidate.askedAt == .at(70))
    }

    @Test func `after a quorum of answers it recovers, with time of its own`() {
        var candidate = Self.candidate(.asking)
        let answers = candidate.answers
        candidate.beginRecovery(electionDeadline: .at(1800))
        #expect(candidate.phase == .recovering)
        #expect(candidate.electionDeadline == .at(1800))
        #expect(candidate.answers == answers)
        #expect(candidate.epoch == Self.epoch)
    }

    @Test(arguments: [.asking, .recovering] as [Candidate.Phase])
    func `who leads gives up no more, and keeps its answers`(_ phase: Candidate.Phase) {
        var candidate = Self.candidate(phase)
        candidate.lead()
        #expect(candidate.phase == .leading)
        #expect(candidate.isLeading)
        #expect(candidate.epoch == Self.epoch)
        #expect(candidate.electionDeadline == nil)
        #expect(candidate.answeredIDs == [2])
    }

    @Test(arguments: phases)
    func `who gives up forgets the answers, and keeps the epoch that it has named`(_ phase: Candidate.Phase) {
        var candidate = Self.candidate(phase)
        #expect(candidate.isLeading == (phase == .leading))
        candidate.giveUp()
        #expect(candidate.phase == .idle)
        #expect(candidate.epoch == Self.epoch)
        #expect(candidate.electionDeadline == nil)
        #expect(candidate.answers.isEmpty)
        #expect(candidate.couldNotRecover == (phase == .recovering), "only what was not sent keeps it behind")
    }

    @Test func `that it could not recover is so until it leads, or is welcomed`() {
        var candidate = Self.candidate(.recovering)
        candidate.giveUp()
        candidate.giveUp()
        candidate.stand(Epoch(5, by: 1), electionDeadline: nil)
        _ = candidate.promisePersisted(Epoch(5, by: 1))
        #expect(candidate.couldNotRecover)
        var welcomed = candidate
        welcomed.noteWelcome()
        #expect(!welcomed.couldNotRecover)
        candidate.lead()
        #expect(!candidate.couldNotRecover)
    }

    // MARK: - Answers

    @Test(arguments: phases)
    func `answers count from when it asks, and those of this epoch`(_ phase: Candidate.Phase) {
        let before = Self.candidate(phase)
        for epoch in [Epoch(3, by: 1), Epoch(4, by: 0), Epoch(4, by: 2), Epoch(5, by: 1)] {
            var candidate = before
            candidate.answerReceived(Life(3), Self.answer(8), epoch: epoch)
            #expect(candidate == before)
        }
        var candidate = before
        candidate.answerReceived(Life(3), Self.answer(8), epoch: Self.epoch)
        let isHeard = phase != .idle && phase != .promising
        #expect(candidate.answeredIDs == (isHeard ? [2, 3] : []))
        #expect(candidate.answers.last?.life == (isHeard ? Life(3) : nil))
        #expect(candidate.answers.last?.answer == (isHeard ? Self.answer(8) : nil))
        #expect(candidate.answers.allSatisfy { !$0.isOutOfReach })
    }

    @Test func `a voter counts once, with what it said last`() {
        var candidate = Self.candidate(.asking)
        candidate.answerReceived(Life(3), Self.answer(8), epoch: Self.epoch)
        candidate.answerReceived(Life(2, life: 9), Self.answer(5), epoch: Self.epoch)
        #expect(candidate.answers.map(\.life) == [Life(3), Life(2, life: 9)])
        #expect(candidate.answers.map(\.answer) == [Self.answer(8), Self.answer(5)])
    }

    @Test func `answers of a life that has ended are forgotten, and no others`() {
        var candidate = Self.candidate(.asking)
        candidate.answerReceived(Life(3), Self.answer(), epoch: Self.epoch)
        candidate.forgetAnswer(of: 2)
        #expect(candidate.answeredIDs == [3])
        candidate.forgetAnswer(of: 7)
        #expect(candidate.answeredIDs == [3])
    }

    @Test func `the next epoch begins without answers`() {
        var candidate = Self.candidate(.leading)
        candidate.giveUp()
        candidate.stand(Epoch(5, by: 1), electionDeadline: nil)
        _ = candidate.promisePersisted(Epoch(5, by: 1))
        #expect(candidate.answers.isEmpty)
        candidate.answerReceived(Life(2), Self.answer(), epoch: Self.epoch)
        #expect(candidate.answers.isEmpty, "that was an answer of the last epoch")
    }

    // MARK: - Who knows most

    /// Trackers 2, 3 and 4, of which 3 knows most.
    private static func told() -> Candidate {
        var candidate = candidate(.asking)
        for (id, index) in [(2, 5), (3, 8), (4, 7)] as [(UInt32, UInt64)] {
            candidate.answerReceived(Life(id), answer(index, chain: index * 10), epoch: epoch)
        }
        return candidate
    }

    @Test func `who knows most is who is furthest, and of two the first that said so`() {
        #expect(Candidate().mostAdvanced == nil)
        var candidate = Self.told()
        #expect(candidate.mostAdvanced?.life == Life(3))
        #expect(candidate.mostAdvanced?.position == Position(index: 8, chain: 80))
        candidate.answerReceived(Life(5), Self.answer(8), epoch: Self.epoch)
        #expect(candidate.mostAdvanced?.life == Life(3))
        candidate.answerReceived(Life(5), Self.answer(9), epoch: Self.epoch)
        #expect(candidate.mostAdvanced?.life == Life(5))
    }

    @Test func `who is out of reach is set aside, that life and no other`() {
        var candidate = Self.told()
        candidate.markOutOfReach(Life(3, life: 2))
        #expect(candidate.mostAdvanced?.life == Life(3))
        candidate.markOutOfReach(Life(3))
        #expect(candidate.mostAdvanced?.life == Life(4))
        #expect(candidate.answeredIDs == [2, 3, 4], "its promise counts still")
        candidate.markOutOfReach(Life(4))
        candidate.markOutOfReach(Life(2))
        #expect(candidate.mostAdvanced == nil)
        candidate.clearOutOfReach()
        #expect(candidate.mostAdvanced?.life == Life(3))
        #expect(!candidate.isAnyOutOfReach(ahead: 0))
    }

    @Test(arguments: [(6, true), (7, false), (8, false)] as [(UInt64, Bool)])
    func `something is out of reach where who was set aside knows more`(_ index: UInt64, _ isMore: Bool) {
        var candidate = Self.told()
        #expect(!candidate.isAnyOutOfReach(ahead: index), "nobody was set aside")
        candidate.markOutOfReach(Life(4))
        #expect(candidate.isAnyOutOfReach(ahead: index) == isMore)
    }

    @Test func `who answers again is in reach again`() {
        var candidate = Self.told()
        candidate.markOutOfReach(Life(3))
        candidate.answerReceived(Life(3), Self.answer(9), epoch: Self.epoch)
        #expect(candidate.mostAdvanced?.life == Life(3))
        #expect(!candidate.isAnyOutOfReach(ahead: 0))
    }

    // MARK: - What would be our own mistake

    @Test func `it stands once at a time, and once for an epoch`() async {
        await #expect(processExitsWith: .failure) {
            var candidate = Candidate()
            candidate.stand(Epoch(4, by: 1), electionDeadline: nil)
            candidate.stand(Epoch(5, by: 1), electionDeadline: nil)
        }
        await #expect(processExitsWith: .failure) {
            var candidate = Candidate()
            candidate.stand(Epoch(4, by: 1), electionDeadline: nil)
            candidate.giveUp()
            candidate.stand(Epoch(4, by: 1), electionDeadline: nil)
        }
    }

    @Test func `without answers it neither recovers nor leads`() async {
        await #expect(processExitsWith: .failure) {
            var candidate = Candidate()
            candidate.stand(Epoch(4, by: 1), electionDeadline: nil)
            candidate.beginRecovery(electionDeadline: nil)
        }
        await #expect(processExitsWith: .failure) {
            var candidate = Candidate()
            candidate.stand(Epoch(4, by: 1), electionDeadline: nil)
            candidate.lead()
        }
    }
}
