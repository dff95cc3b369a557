// How far the disk is behind the log, event by event: what is written next, and what the end of a write comes to.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct EntryLogDiskTests {
    /// Entries 1 to 5.
    private static let history: [Entry] = (1...5).reduce(into: []) { entries, index in
        entries.append(.made(index, after: entries.last?.chain ?? 0))
    }

    private static func entry(_ index: Int) -> Entry { history[index - 1] }
    /// Another one in the place of entry 3, of a later master.
    private static let other = Entry.made(3, after: history[1].chain, Epoch(2, by: 2), updates: [.setInterval(7)])

    /// A log with entries decided, of which the disk has the first ones.
    private static func log(decided: Int, durable: UInt64, maxTailCount: Int = 100) -> EntryLog {
        var log = EntryLog(maxTailCount: maxTailCount)
        decide(1..<decided + 1, in: &log)
        log.restored(through: durable)
        return log
    }

    private static func decide(_ indices: Range<Int>, in log: inout EntryLog) {
        for index in indices { log.append(decided: entry(index)) }
    }

    // MARK: - What to write next

    @Test(
        arguments: [
            (0, 0, nil), (2, 2, nil), (2, 1, 2), (2, 0, 1), (5, 3, 4),
        ] as [(Int, UInt64, Int?)])
    func `what was decided is written in order`(_ decided: Int, _ durable: UInt64, _ next: Int?) {
        let log = Self.log(decided: decided, durable: durable)
        #expect(log.nextWrite == next.map { .entry(Self.entry($0)) })
        #expect(log.mayWrite == (next != nil))
    }

    @Test func `what is pending is written when all before it is on the disk`() {
        var log = Self.log(decided: 2, durable: 1)
        log.accept(Self.entry(3))
        #expect(log.nextWrite == .entry(Self.entry(2)), "one is missing")
        log.restored(through: 2)
        #expect(log.nextWrite == .entry(Self.entry(3)))
        log.accept(Self.other)
        #expect(log.nextWrite == .entry(Self.other))
    }

    @Test func `what is pending and on the disk is not written again, what takes its place is`() {
        var log = Self.log(decided: 2, durable: 2)
        log.restorePending(Self.entry(3))
        #expect(log.nextWrite == nil)
        log.accept(Self.other)
        #expect(log.nextWrite == .entry(Self.other))
        let again = Self.entry(3).proposed(Ballot(epoch: Epoch(1, by: 1), attempt: 1, index: 3), isAlone: false)
        log.accept(again)
        #expect(log.nextWrite == .entry(again), "a further attempt is another vote")
    }

    @Test func `a disk that is behind all that is in memory needs everything`() {
        var log = Self.log(decided: 5, durable: 0, maxTailCount: 3)
        #expect(log.tailStart > 1)
        #expect(log.nextWrite == .everything)
        log.restored(through: log.tailStart - 2)
        #expect(log.nextWrite == .everything)
        log.restored(through: log.tailStart - 1)
        #expect(log.nextWrite == .entry(Self.entry(Int(log.tailStart))))
    }

    /// Rule 15: a voter that is about to store a vote does not say that it cannot.
    @Test func `what is being written is stored, as far as a vote goes`() {
        var log = Self.log(decided: 2, durable: 2)
        log.accept(Self.entry(3))
        #expect(!log.stores(Self.entry(3)))
        log.beginWrite(Self.entry(3))
        log.accept(Self.other)
        #expect(log.stores(Self.entry(3)) && !log.stores(Self.other))
        _ = log.writeSucceeded()
        #expect(log.stores(Self.entry(3)))
    }

    @Test func `who cannot write a further attempt still has what it stored of an earlier one`() {
        var log = Self.log(decided: 2, durable: 2)
        let first = Self.entry(3)
        log.accept(first)
        log.beginWrite(first)
        _ = log.writeSucceeded()
        let ballot = Ballot(epoch: first.header.epoch, attempt: first.header.attempt + 1, index: 3)
        let again = first.proposed(ballot, isAlone: false)
        log.accept(again)
        log.beginWrite(again)
        #expect(log.writeFailed(retryAt: .at(9)) == again)
        #expect(log.stores(again) && log.pending == first)
    }

    @Test func `one write is under way at a time`() {
        var log = Self.log(decided: 2, durable: 0)
        #expect(!log.isWriting)
        log.beginWrite(Self.entry(1))
        #expect(log.isWriting && !log.mayWrite)
        #expect(log.nextWrite == nil)
        #expect(log.writeSucceeded() == Self.entry(1))
        #expect(!log.isWriting)
        #expect(log.nextWrite == .entry(Self.entry(2)))
        log.beginWritingEverything()
        #expect(log.isWriting && !log.mayWrite)
        #expect(log.nextWrite == nil)
    }

    // MARK: - An entry was written

    @Test func `what is pending and written waits on the disk to be decided`() {
        var log = Self.log(decided: 2, durable: 2)
        log.accept(Self.entry(3))
        log.beginWrite(Self.entry(3))
        #expect(log.durableThrough == 2)
        #expect(log.writeSucceeded() == Self.entry(3))
        #expect(log.durableThrough == 3)
        #expect(log.durablePending == Self.entry(3))
        #expect(log.pending == Self.entry(3))
        Self.decide(3..<4, in: &log)
        #expect(log.durablePending == nil)
        #expect(log.durableThrough == 3)
        #expect(log.nextWrite == nil)
    }

    @Test func `where another is decided than is on the disk, it is written over`() {
        var log = Self.log(decided: 2, durable: 2)
        log.restorePending(Self.other)
        Self.decide(3..<4, in: &log)
        #expect(log.durablePending == nil)
        #expect(log.pending == nil)
        #expect(log.durableThrough == 2)
        #expect(log.nextWrite == .entry(Self.entry(3)))
    }

    @Test func `what is on the disk and not decided yet is not touched by what comes before it`() {
        var log = Self.log(decided: 1, durable: 1)
        log.restorePending(Self.entry(3))
        Self.decide(2..<3, in: &log)
        #expect(log.durablePending == Self.entry(3))
        #expect(log.durableThrough == 3)
    }

    @Test(arguments: [(true, 3), (false, 2)] as [(Bool, UInt64)])
    func `a write that ends after the decision counts if it was what is decided`(_ isSame: Bool, _ through: UInt64) {
        let written = isSame ? Self.entry(3) : Self.other
        var log = Self.log(decided: 2, durable: 2)
        log.accept(written)
        log.beginWrite(written)
        Self.decide(3..<4, in: &log)
        #expect(log.writeSucceeded() == written)
        #expect(log.durableThrough == through)
        #expect(log.durablePending == nil)
        #expect(log.nextWrite == (isSame ? nil : .entry(Self.entry(3))))
    }

    @Test func `a write of what has gone from memory since says nothing of its place`() {
        var log = Self.log(decided: 0, durable: 0, maxTailCount: 2)
        log.beginWrite(Self.entry(1))
        Self.decide(1..<4, in: &log)
        #expect(log.tailStart == 2)
        #expect(log.writeSucceeded() == Self.entry(1))
        #expect(log.durableThrough == 0)
        #expect(log.durablePending == nil)
        #expect(log.nextWrite == .everything)
    }

    @Test func `nothing is told durable that nobody writes`() async {
        await #expect(processExitsWith: .failure) {
            var log = EntryLog(maxTailCount: 8)
            _ = log.writeSucceeded()
        }
    }

    // MARK: - An entry was not written

    @Test(arguments: [(1999, false), (2000, true), (2001, true)] as [(Int64, Bool)])
    func `after a write that failed nothing is written for a while`(_ now: Int64, _ resumes: Bool) {
        var log = Self.log(decided: 2, durable: 0)
        log.beginWrite(Self.entry(1))
        #expect(log.writeFailed(retryAt: .at(2000)) == Self.entry(1))
        #expect(!log.isWriting)
        #expect(log.durableThrough == 0)
        #expect(log.writesResumeAt == .at(2000))
        #expect(!log.mayWrite)
        #expect(log.nextWrite == nil)
        log.resume(now: .at(now))
        #expect(log.writesResumeAt == (resumes ? nil : .at(2000)))
        #expect(log.nextWrite == (resumes ? .entry(Self.entry(1)) : nil))
    }

    @Test func `what could not be written is in no log, and what it was to replace stays`() {
        var log = Self.log(decided: 2, durable: 2)
        log.accept(Self.entry(3))
        log.beginWrite(Self.entry(3))
        _ = log.writeFailed(retryAt: .at(2000))
        #expect(log.pending == nil)
        log.restorePending(Self.entry(3))
        log.accept(Self.other)
        log.beginWrite(Self.other)
        #expect(log.writesResumeAt == nil, "a write that begins ends the pause")
        #expect(log.writeFailed(retryAt: .at(2000)) == Self.other)
        #expect(log.pending == Self.entry(3))
        #expect(log.durablePending == Self.entry(3))
        #expect(log.durableThrough == 3)
    }

    @Test func `what was accepted while another could not be written stays`() {
        var log = Self.log(decided: 2, durable: 2)
        log.accept(Self.entry(3))
        log.beginWrite(Self.entry(3))
        log.accept(Self.other)
        _ = log.writeFailed(retryAt: .at(2000))
        #expect(log.pending == Self.other)
    }

    // MARK: - Begun anew

    @Test func `a write from before all was begun anew says nothing, however it ends`() {
        var log = Self.log(decided: 2, durable: 2)
        log.accept(Self.entry(3))
        log.beginWrite(Self.entry(3))
        log.reset(to: Position(index: 40, chain: 0))
        var failed = log
        #expect(log.isWriting)
        #expect(log.writeSucceeded() == nil)
        #expect(log.durableThrough == 0)
        #expect(log.durablePending == nil)
        #expect(!log.isWriting)
        #expect(failed.writeFailed(retryAt: .at(2000)) == nil)
        #expect(failed.writesResumeAt == nil, "there is no reason to wait")
        #expect(!failed.isWriting)
        let next = Entry.made(41)
        log.beginWrite(next)
        #expect(log.writeSucceeded() == next, "the next write counts")
        #expect(log.durableThrough == 41)
    }

    @Test func `a write from after all was begun anew counts`() {
        var log = Self.log(decided: 2, durable: 2)
        log.reset(to: Self.entry(2).position)
        log.accept(Self.entry(3))
        log.beginWrite(Self.entry(3))
        #expect(log.writeSucceeded() == Self.entry(3))
        #expect(log.durableThrough == 3)
        #expect(log.durablePending == Self.entry(3))
    }

    // MARK: - Everything

    @Test(arguments: [(4, 4), (2, 2), (1, 2)] as [(UInt64, UInt64)])
    func `all of the state on the disk is durable up to its index`(_ index: UInt64, _ through: UInt64) {
        var log = Self.log(decided: 1, durable: 1)
        log.restorePending(Self.entry(2))
        log.beginWritingEverything()
        #expect(log.durableThrough == 2)
        #expect(log.wroteEverything(through: index) == true)
        #expect(!log.isWriting)
        #expect(log.durableThrough == through)
        #expect(log.durablePending == nil)
    }

    @Test func `of two writes of everything, the last one counts`() {
        var log = Self.log(decided: 0, durable: 0)
        log.beginWritingEverything()
        log.beginWritingEverything()
        #expect(log.wroteEverything(through: 9) == false)
        #expect(log.durableThrough == 0)
        #expect(log.isWriting)
        #expect(log.wroteEverything(through: 7) == true)
        #expect(log.durableThrough == 7)
        #expect(!log.isWriting)
    }

    @Test func `everything that could not be written is written again after a while, before all else`() {
        var log = Self.log(decided: 2, durable: 1)
        log.beginWritingEverything()
        #expect(log.everythingNotWritten(retryAt: .at(2000)) == true)
        #expect(!log.isWriting)
        #expect(log.writesResumeAt == .at(2000))
        #expect(log.nextWrite == nil)
        log.resume(now: .at(2000))
        log.accept(Self.entry(3))
        #expect(log.nextWrite == .everything)
        log.beginWritingEverything()
        #expect(log.wroteEverything(through: 2) == true)
        #expect(log.nextWrite == .entry(Self.entry(3)))
    }

    @Test func `everything is written again also where no entry is missing`() {
        var log = Self.log(decided: 2, durable: 2)
        log.beginWritingEverything()
        _ = log.everythingNotWritten(retryAt: .at(2000))
        log.beginWritingEverything()
        #expect(log.writesResumeAt == nil, "a write that begins ends the pause")
        _ = log.everythingNotWritten(retryAt: .at(3000))
        log.resume(now: .at(3000))
        #expect(log.mayWrite)
        #expect(log.nextWrite == .everything)
    }

    @Test func `a write of everything that failed is of no interest while another is under way`() {
        var log = Self.log(decided: 0, durable: 0)
        log.beginWritingEverything()
        log.beginWritingEverything()
        #expect(log.everythingNotWritten(retryAt: .at(2000)) == false)
        #expect(log.writesResumeAt == nil)
        #expect(log.isWriting)
        #expect(log.wroteEverything(through: 7) == true)
        #expect(log.nextWrite == nil)
    }
}
