// Which entry a new master proposes again, of those that it and its voters have accepted: the heart of Paxos (Lamport,
// "Paxos Made Simple", 2001, 2.2, P2c).

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct InheritanceTests {
    private static let epoch = Epoch(9, by: 1)
    private static let position = Position(index: 4, chain: 77)

    /// An entry right behind the position; each interval is another value.
    private static func entry(
        _ epoch: Epoch, attempt: UInt32 = 0, interval: UInt32 = 60, at index: UInt64 = 5, after chain: UInt64 = 77
    ) -> Entry {
        .made(index, after: chain, epoch, attempt: attempt, updates: [.setInterval(interval)], waiting: [1])
    }

    /// An empty one in its place, for the same client.
    private static func void(_ epoch: Epoch, waiting: [UInt64] = [1]) -> Entry {
        .made(5, after: 77, epoch, updates: [], waiting: waiting)
    }

    private func inherited(own: Entry? = nil, _ answers: [Entry?], keepsOwn: Bool = false) -> Entry? {
        var candidate = Candidate()
        candidate.stand(Self.epoch, electionDeadline: nil)
        _ = candidate.promisePersisted(Self.epoch)
        for (place, pending) in answers.enumerated() {
            candidate.answerReceived(
                Life(UInt32(place + 2)), VoterAnswer(position: Self.position, pending: pending), epoch: Self.epoch)
        }
        return candidate.inherited(behind: Self.position, own: own, keepsOwn: keepsOwn)
    }

    @Test func `nothing is inherited where nobody has accepted anything`() {
        #expect(inherited([]) == nil)
        #expect(inherited([nil, nil]) == nil)
    }

    @Test(
        arguments: [
            (Epoch(2, by: 1), 0, Epoch(1, by: 9), 9, true),
            (Epoch(2, by: 2), 0, Epoch(2, by: 1), 9, true),
            (Epoch(2, by: 1), 1, Epoch(2, by: 1), 0, true),
            (Epoch(2, by: 1), 0, Epoch(2, by: 1), 0, true),
            (Epoch(2, by: 1), 0, Epoch(2, by: 1), 1, false),
            (Epoch(2, by: 1), 9, Epoch(2, by: 2), 0, false),
            (Epoch(2, by: 9), 9, Epoch(3, by: 1), 0, false),
        ] as [(Epoch, UInt32, Epoch, UInt32, Bool)])
    func `the one of the greatest ballot is proposed again, whoever has it`(
        _ one: Epoch, _ attempt: UInt32, _ other: Epoch, _ otherAttempt: UInt32, _ isFirst: Bool
    ) {
        let first = Self.entry(one, attempt: attempt, interval: 1)
        let second = Self.entry(other, attempt: otherAttempt, interval: 2)
        let expected = isFirst ? first : second
        #expect(inherited(own: first, [second]) == expected)
        #expect(inherited([first, second]) == expected)
        #expect(inherited([nil, first, nil, second]) == expected)
    }

    @Test(arguments: [(4, 77), (6, 77), (5, 76), (5, 0)] as [(UInt64, UInt64)])
    func `what does not follow the position is passed over, whoever has it`(_ index: UInt64, _ chain: UInt64) {
        let astray = Self.entry(Epoch(8, by: 1), at: index, after: chain)
        let following = Self.entry(Epoch(1, by: 1), interval: 2)
        #expect(inherited(own: astray, []) == nil)
        #expect(inherited([astray]) == nil)
        #expect(inherited(own: astray, [following]) == following)
        #expect(inherited(own: following, [astray]) == following)
    }

    // MARK: - Survivor mode

    @Test func `in survivor mode what another side may have decided does not take the place of the own`() {
        let own = Self.entry(Epoch(2, by: 1), interval: 1)
        let other = Self.entry(Epoch(3, by: 2), interval: 2)
        #expect(inherited(own: own, [other], keepsOwn: true) == own)
        #expect(inherited(own: own, [other], keepsOwn: false) == other)
        #expect(inherited([own, other], keepsOwn: true) == own, "nor that of who answered first")
    }

    @Test func `in survivor mode the own gives way to the same value, a further attempt, and to its own void`() {
        let own = Self.entry(Epoch(2, by: 1), interval: 1)
        let again = Self.entry(Epoch(3, by: 2), interval: 1)
        let attempt = Self.entry(Epoch(2, by: 1), attempt: 1, interval: 2)
        let void = Self.void(Epoch(3, by: 2))
        for better in [again, attempt, void] {
            #expect(inherited(own: own, [better], keepsOwn: true) == better)
        }
        let another = Self.void(Epoch(3, by: 2), waiting: [2])
        #expect(inherited(own: own, [another], keepsOwn: true) == own, "a void of another entry says nothing")
    }

    @Test func `in survivor mode an own that says nothing gives way to any`() {
        let other = Self.entry(Epoch(3, by: 2))
        #expect(inherited(own: Self.void(Epoch(2, by: 1)), [other], keepsOwn: true) == other)
    }

    @Test func `in survivor mode, too, a lower ballot takes no place`() {
        let own = Self.entry(Epoch(3, by: 1), interval: 1)
        let again = Self.entry(Epoch(2, by: 2), interval: 1)
        #expect(inherited(own: own, [again], keepsOwn: true) == own)
    }
}
