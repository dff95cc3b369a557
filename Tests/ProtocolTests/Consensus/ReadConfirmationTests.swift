// Reads that wait until it is certain that their master still is one, event by event.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct ReadConfirmationTests {
    private static let three = Electorate(voters: [1, 2, 3])
    private static let pause = Duration.milliseconds(250)
    private var reads = ReadConfirmation()

    private static func read(_ number: UInt64, of life: Life = Life(1)) -> WaitingRead {
        WaitingRead(life: life, number: number, infoHashes: [])
    }

    /// Reads come, and a round begins.
    private static func asking(_ numbers: [UInt64] = [], newcomers: [Life] = []) -> ReadConfirmation {
        var reads = ReadConfirmation()
        for number in numbers { _ = reads.add(read(number)) }
        for newcomer in newcomers { reads.add(newcomer: newcomer) }
        _ = reads.begin(isServing: true, now: .at(100))
        return reads
    }

    // MARK: - Rounds

    @Test(arguments: [
        (false, false, false, false),
        (true, false, false, false),
        (true, false, true, true),
        (false, true, false, true),
        (false, true, true, true),
        (true, true, false, true),
    ])
    func `a round begins where a newcomer waits, or a read that may be answered`(
        _ hasRead: Bool, _ hasNewcomer: Bool, _ isServing: Bool, _ begins: Bool
    ) {
        var reads = reads
        if hasRead { _ = reads.add(Self.read(1)) }
        if hasNewcomer { reads.add(newcomer: Life(3)) }
        #expect(reads.begin(isServing: isServing, now: .at(100)) == begins)
        #expect(reads.isRoundUnderWay == begins)
        #expect(reads.round == (begins ? 1 : 0))
        #expect(reads.count == (hasRead ? 1 : 0))
        #expect(reads.waitingNewcomers == (hasNewcomer ? [Life(3)] : []))
    }

    @Test mutating func `one round is under way at a time`() {
        reads = Self.asking([1])
        _ = reads.add(Self.read(2))
        reads.add(newcomer: Life(3))
        #expect(reads.begin(isServing: true, now: .at(200)) == false)
        #expect(reads.round == 1)
        #expect(reads.count == 2)
    }

    @Test(arguments: [(349, false), (350, true), (351, true)] as [(Int64, Bool)])
    func `the others are asked again a pause after they were`(_ now: Int64, _ isDue: Bool) {
        var reads = Self.asking([1])
        #expect(reads.isDue(now: .at(now), pause: Self.pause) == isDue)
        #expect(reads.takeResend(now: .at(now), pause: Self.pause) == isDue)
        #expect(!reads.isDue(now: .at(now), pause: Self.pause))
        #expect(reads.isDue(now: .at(isDue ? now + 250 : 350), pause: Self.pause))
        #expect(reads.round == 1, "it is the same question")
    }

    @Test mutating func `nobody is asked again where no round is under way`() {
        _ = reads.add(Self.read(1))
        #expect(!reads.isDue(now: .at(9999), pause: Self.pause))
        #expect(reads.takeResend(now: .at(9999), pause: Self.pause) == false)
    }

    // MARK: - Reads

    @Test mutating func `reads are answered when a quorum has confirmed, in the order in which they came`() {
        reads = Self.asking([5, 4])
        #expect(reads.take(Self.three) == [])
        reads.confirmed(by: 1, round: 1)
        #expect(reads.take(Self.three) == [])
        #expect(reads.count == 2)
        reads.confirmed(by: 2, round: 1)
        #expect(reads.take(Self.three) == [Self.read(5), Self.read(4)])
        #expect(reads.count == 0)
        #expect(!reads.isRoundUnderWay)
        #expect(reads.take(Self.three) == [], "they are answered once")
    }

    @Test mutating func `a voter confirms once`() {
        reads = Self.asking([1])
        reads.confirmed(by: 1, round: 1)
        reads.confirmed(by: 1, round: 1)
        #expect(reads.take(Electorate(voters: [1, 2])) == [])
    }

    @Test(arguments: [0, 1, 3] as [UInt64])
    func `a word about another round confirms nothing`(_ round: UInt64) {
        var reads = Self.asking([1])
        reads.confirmed(by: 1, round: 1)
        _ = reads.take(Electorate(voters: [1]))
        _ = reads.add(Self.read(2))
        _ = reads.begin(isServing: true, now: .at(200))
        reads.confirmed(by: 1, round: round)
        #expect(reads.take(Electorate(voters: [1])) == [])
    }

    @Test mutating func `what was confirmed in one round says nothing about the next`() {
        reads = Self.asking([1])
        reads.confirmed(by: 1, round: 1)
        reads.confirmed(by: 2, round: 1)
        _ = reads.take(Self.three)
        reads.confirmed(by: 3, round: 1)
        _ = reads.add(Self.read(2))
        _ = reads.begin(isServing: true, now: .at(200))
        #expect(reads.round == 2)
        #expect(reads.take(Self.three) == [])
        reads.confirmed(by: 3, round: 2)
        reads.confirmed(by: 2, round: 2)
        #expect(reads.take(Self.three) == [Self.read(2)])
    }

    @Test mutating func `a read that came while a round was under way waits for the next`() {
        reads = Self.asking([1])
        _ = reads.add(Self.read(2))
        reads.confirmed(by: 1, round: 1)
        #expect(reads.take(Electorate(voters: [1])) == [Self.read(1)])
        #expect(reads.count == 1)
        #expect(!reads.isRoundUnderWay)
        #expect(reads.begin(isServing: true, now: .at(200)) == true)
        #expect(reads.round == 2)
    }

    @Test mutating func `a read before the doors are open is not asked for by a newcomer's round`() {
        _ = reads.add(Self.read(1))
        reads.add(newcomer: Life(3))
        _ = reads.begin(isServing: false, now: .at(100))
        reads.confirmed(by: 1, round: 1)
        reads.confirmed(by: 2, round: 1)
        #expect(reads.take(Self.three) == [])
        #expect(reads.count == 1)
    }

    @Test mutating func `a read is known while it waits, by its number and the life that it came from`() {
        reads = Self.asking([1])
        _ = reads.add(Self.read(2, of: Life(2)))
        #expect(reads.contains(Life(1), 1), "it is asked for")
        #expect(reads.contains(Life(2), 2), "it waits for the next round")
        #expect(!reads.contains(Life(1), 2))
        #expect(!reads.contains(Life(2), 1))
        #expect(!reads.contains(Life(1, life: 2), 1))
        reads.confirmed(by: 1, round: 1)
        _ = reads.take(Electorate(voters: [1]))
        #expect(!reads.contains(Life(1), 1))
    }

    @Test mutating func `so many reads wait and no more, asked for or not`() {
        for number in 0..<UInt64(ReadConfirmation.maxCount - 1) { _ = reads.add(Self.read(number)) }
        _ = reads.begin(isServing: true, now: .at(100))
        #expect(reads.add(Self.read(9_000)) == true)
        #expect(reads.count == ReadConfirmation.maxCount)
        #expect(reads.add(Self.read(9_001)) == false)
        #expect(reads.count == ReadConfirmation.maxCount)
        #expect(!reads.contains(Life(1), 9_001))
    }

    // MARK: - Newcomers

    @Test mutating func `a newcomer is let in when a quorum without it has confirmed`() {
        reads = Self.asking(newcomers: [Life(3)])
        reads.confirmed(by: 1, round: 1)
        #expect(reads.takeNewcomers(Self.three) == [])
        #expect(reads.waitingNewcomers == [Life(3)])
        reads.confirmed(by: 2, round: 1)
        #expect(reads.takeNewcomers(Self.three) == [Life(3)])
        #expect(reads.waitingNewcomers == [])
        #expect(!reads.isRoundUnderWay)
    }

    @Test mutating func `a newcomer whose own word made the quorum asks again`() {
        reads = Self.asking(newcomers: [Life(3), Life(4)])
        reads.confirmed(by: 1, round: 1)
        reads.confirmed(by: 3, round: 1)
        #expect(reads.takeNewcomers(Self.three) == [Life(4)], "for the other one that word counts")
        #expect(reads.waitingNewcomers == [])
    }

    @Test mutating func `of a tracker one life waits for the next round, the last`() {
        reads.add(newcomer: Life(3, life: 1))
        reads.add(newcomer: Life(4))
        reads.add(newcomer: Life(3, life: 2))
        #expect(reads.waitingNewcomers == [Life(4), Life(3, life: 2)])
        reads.add(newcomer: Life(3, life: 2))
        #expect(reads.waitingNewcomers == [Life(4), Life(3, life: 2)])
    }

    @Test mutating func `a life that is asked about is not asked about once more`() {
        reads = Self.asking(newcomers: [Life(3)])
        reads.add(newcomer: Life(3))
        #expect(reads.waitingNewcomers == [Life(3)])
        reads.add(newcomer: Life(4))
        reads.confirmed(by: 1, round: 1)
        reads.confirmed(by: 2, round: 1)
        #expect(reads.takeNewcomers(Self.three) == [Life(3)])
        #expect(reads.waitingNewcomers == [Life(4)], "it came after the round began")
    }

    @Test mutating func `a round of both ends when both are taken`() {
        reads = Self.asking([1], newcomers: [Life(3)])
        reads.confirmed(by: 1, round: 1)
        reads.confirmed(by: 2, round: 1)
        #expect(reads.take(Self.three) == [Self.read(1)])
        #expect(reads.isRoundUnderWay)
        #expect(reads.takeNewcomers(Self.three) == [Life(3)])
        #expect(!reads.isRoundUnderWay)
    }

    // MARK: - The end of an office

    @Test mutating func `who is master no more has nobody waiting, and its rounds are told from later ones`() {
        reads = Self.asking([1], newcomers: [Life(3)])
        _ = reads.add(Self.read(2))
        reads.add(newcomer: Life(4))
        reads.removeAll()
        #expect(reads.count == 0)
        #expect(reads.waitingNewcomers == [])
        #expect(!reads.isRoundUnderWay)
        #expect(reads.begin(isServing: true, now: .at(200)) == false)
        #expect(reads.round == 1)
    }
}
