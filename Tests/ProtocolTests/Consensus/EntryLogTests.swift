// The log in memory: its tail and what is pending, event by event. How far the disk is, is in `EntryLogDiskTests`.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct EntryLogTests {
    /// Entries 5 to 9, the first one after a history that comes to 55.
    private static let history: [Entry] = (5...9).reduce(into: []) { entries, index in
        entries.append(.made(index, after: entries.last?.chain ?? 55))
    }

    private static func entry(_ index: Int) -> Entry { history[index - 5] }

    /// A log with entries 5 to 7 decided, of which the disk has all.
    private static func log(maxTailCount: Int = 100) -> EntryLog {
        var log = EntryLog(maxTailCount: maxTailCount)
        log.restored(through: 4)
        for index in 5...7 { log.append(decided: entry(index)) }
        log.restored(through: 7)
        return log
    }

    /// As many entries of so many bytes, from 1 on; their contents are of no account.
    private static func filled(_ byteCounts: [Int], maxTailCount: Int, isCut: Bool = true) -> EntryLog {
        var log = EntryLog(maxTailCount: maxTailCount)
        for (place, count) in byteCounts.enumerated() {
            log.append(decided: .opaque(UInt64(place) + 1, byteCount: count), isCut: isCut)
        }
        return log
    }

    @Test func `at first it is empty, and the disk has nothing`() {
        let log = EntryLog(maxTailCount: 8)
        #expect(log.tailCount == 0)
        #expect(log.tailStart == 1)
        #expect(log.tailEnd == 0)
        #expect(log.tailByteCount == 0)
        #expect(log.entry(0) == nil && log.entry(1) == nil)
        #expect(log.pending == nil && log.durablePending == nil)
        #expect(log.durableThrough == 0)
        #expect(!log.isWriting && !log.mayWrite)
        #expect(log.nextWrite == nil)
    }

    // MARK: - The tail

    @Test func `the tail begins with the first entry that is decided, and ends with the last`() {
        let log = Self.log()
        #expect(log.tailStart == 5)
        #expect(log.tailEnd == 7)
        #expect(log.tailCount == 3)
        #expect(log.tailByteCount == Self.history[..<3].reduce(0) { $0 + $1.bytes.count })
        #expect((4...8).map { log.entry($0) } == [nil, Self.entry(5), Self.entry(6), Self.entry(7), nil])
    }

    @Test(
        arguments: [
            (3, nil),
            (4, 55),
            (5, history[0].chain),
            (6, history[1].chain),
            // What is applied is known, though no entry follows.
            (7, 777),
            (8, nil),
            (.max - 1, nil),
        ] as [(UInt64, UInt64?)])
    func `what the history comes to is told by the next entry`(_ index: UInt64, _ chain: UInt64?) {
        let log = Self.log()
        #expect(log.chain(at: index, applied: Position(index: 7, chain: 777)) == chain)
        let isBeginning = chain.map { _ in true }
        let position = Position(index: index, chain: chain ?? 1)
        #expect(log.contains(position, applied: Position(index: 7, chain: 777)) == isBeginning)
        let stray = Position(index: index, chain: (chain ?? 1) ^ 2)
        #expect(log.contains(stray, applied: Position(index: 7, chain: 777)) == isBeginning.map { _ in false })
    }

    @Test func `the empty history is the beginning of any`() {
        #expect(EntryLog(maxTailCount: 8).contains(Position(index: 0, chain: 9), applied: .start) == true)
        #expect(Self.log().contains(.start, applied: Self.entry(7).position) == true)
    }

    @Test(
        arguments: [
            // So many are kept; one more, and a quarter of that goes at once.
            (8, 8, 1, 8),
            (9, 8, 3, 7),
            (10, 8, 3, 8),
            (11, 8, 5, 7),
            (3, 3, 1, 3),
            (4, 3, 2, 3),
            // The last one stays, whatever was asked for.
            (2, 0, 2, 1),
            (2, 1, 2, 1),
        ] as [(Int, Int, UInt64, Int)])
    func `who lags far behind is left behind`(_ count: Int, _ maxCount: Int, _ start: UInt64, _ left: Int) {
        let log = Self.filled(Array(repeating: 3, count: count), maxTailCount: maxCount)
        #expect(log.tailStart == start)
        #expect(log.tailCount == left)
        #expect(log.tailEnd == UInt64(count))
        #expect(log.tailByteCount == left * 3)
        #expect(log.entry(start - 1) == nil && log.entry(start) != nil)
    }

    @Test func `entries that somebody is still to read stay, and go together later`() {
        var log = Self.filled(Array(repeating: 3, count: 20), maxTailCount: 8, isCut: false)
        #expect(log.tailCount == 20)
        #expect(log.tailByteCount == 60)
        log.append(decided: .opaque(21, byteCount: 3))
        #expect(log.tailCount == 8)
        #expect(log.tailStart == 14)
        #expect(log.tailByteCount == 24)
    }

    private static let half = EntryLog.maxTailByteCount / 2

    @Test(
        arguments: [
            ([half, half], 1, 2),
            ([half, half + 1], 2, 1),
            ([half, half, 1], 2, 2),
            // One goes for the count; with it not enough bytes do.
            ([1, half, half + 1], 3, 1),
            ([2, half, half], 2, 2),
            ([2 * half + 1], 1, 1),
            ([1, 2 * half + 1], 2, 1),
        ] as [([Int], UInt64, Int)])
    func `so many bytes are kept, and the last entry in any case`(
        _ byteCounts: [Int], _ start: UInt64, _ left: Int
    ) {
        let log = Self.filled(byteCounts, maxTailCount: 4)
        #expect(log.tailStart == start)
        #expect(log.tailCount == left)
        #expect(log.tailByteCount == byteCounts.suffix(left).reduce(0, +))
    }

    // MARK: - What is pending

    @Test func `what is accepted is pending until it is decided`() {
        var log = Self.log()
        log.accept(Self.entry(8))
        #expect(log.pending == Self.entry(8))
        #expect(log.durablePending == nil)
        #expect(log.tailEnd == 7)
        log.append(decided: Self.entry(8))
        #expect(log.pending == nil)
        #expect(log.tailEnd == 8)
    }

    @Test func `whatever is decided in its place ends it, and what comes before does not`() {
        var log = Self.log()
        log.accept(Self.entry(9))
        log.append(decided: Self.entry(8))
        #expect(log.pending == Self.entry(9))
        let other = Entry.made(9, after: Self.entry(8).chain, updates: [.setInterval(7)])
        log.append(decided: other)
        #expect(log.pending == nil)
    }

    @Test func `what is in no log for certain gives way to what is on the disk`() {
        var log = Self.log()
        log.accept(Self.entry(8))
        log.dropPending()
        #expect(log.pending == nil)
        log.restorePending(Self.entry(8))
        log.accept(.made(8, after: Self.entry(7).chain, Epoch(2, by: 2), updates: [.setInterval(7)]))
        log.dropPending()
        #expect(log.pending == Self.entry(8))
        #expect(log.durablePending == Self.entry(8))
    }

    // MARK: - Read back, and begun anew

    @Test func `what was read back is on the disk, with what was accepted behind it`() {
        var log = EntryLog(maxTailCount: 8)
        log.restored(through: 4)
        #expect(log.tailStart == 5)
        #expect(log.tailEnd == 4)
        #expect(log.durableThrough == 4)
        log.restorePending(Self.entry(5))
        #expect(log.pending == Self.entry(5))
        #expect(log.durablePending == Self.entry(5))
        #expect(log.durableThrough == 5)
        #expect(log.nextWrite == nil)
        let tail = Self.log()
        #expect(tail.tailStart == 5, "a tail that was read back stays where it is")
        #expect(tail.durableThrough == 7)
    }

    @Test func `a log that begins anew has nothing in memory, and nothing on the disk`() {
        var log = Self.log()
        log.restorePending(Self.entry(8))
        log.reset(to: Position(index: 40, chain: 0))
        #expect(log.tailCount == 0)
        #expect(log.tailByteCount == 0)
        #expect(log.tailStart == 41)
        #expect(log.tailEnd == 40)
        #expect(log.pending == nil && log.durablePending == nil)
        #expect(log.durableThrough == 0)
        #expect(log.nextWrite == .everything)
    }
}
