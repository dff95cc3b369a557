// The parts of the simulated world: a checker is worth no more than the world that it looks at.

import Primitives
import Simulator
import Testing
import TrackerLogic
import Wire

@Suite("Simulated machinery", .computes)
struct MachineryTests {
    // MARK: - The queue

    @Test
    func `events come in the order of time, and of two at one time the first put in`() {
        var queue = EventQueue<Int>()
        var random = RandomStream(seed: 3)
        var expected: [(time: Int64, number: Int)] = []
        for number in 0..<2000 {
            let time = Int64(random.below(50))
            queue.put(number, at: Instant(nanoseconds: time))
            expected.append((time, number))
        }
        expected.sort { ($0.time, $0.number) < ($1.time, $1.number) }
        for next in expected {
            let taken = queue.take()
            #expect(taken?.time == Instant(nanoseconds: next.time))
            #expect(taken?.event == next.number)
        }
        #expect(queue.count == 0)
        let nothing = queue.take()
        #expect(nothing == nil)
    }

    // MARK: - Clocks

    @Test(arguments: [-500_000, -1000, -1, 0, 1, 37, 1000, 500_000] as [Int64])
    func `a node is woken at the first time at which its clock shows the deadline`(_ drift: Int64) {
        let clock = SimulatedClock(origin: 123_456_789, drift: drift, wallError: -77)
        var random = RandomStream(seed: 4)
        for _ in 0..<500 {
            let deadline = Instant(nanoseconds: 123_456_789 + Int64(random.below(UInt64(100_000_000_000_000))))
            let time = clock.worldTime(of: deadline)
            #expect(clock.reading(at: time).monotonic >= deadline)
            if time.nanoseconds > 0 {
                #expect(clock.reading(at: time - Duration(nanoseconds: 1)).monotonic < deadline)
            }
        }
    }

    @Test
    func `setting the wall clock moves it and nothing else`() {
        var clock = SimulatedClock(origin: 0, drift: 1000, wallError: 5)
        let time = Instant(nanoseconds: 0) + .seconds(1000)
        let before = clock.reading(at: time)
        clock.step(wall: -3_600_000)
        let after = clock.reading(at: time)
        #expect(after.monotonic == before.monotonic)
        #expect(after.wall.milliseconds == before.wall.milliseconds - 3_600_000)
        // A thousandth fast.
        #expect((1_000_999...1_001_000).contains(before.monotonic.nanoseconds / 1_000_000))
    }

    // MARK: - Disks

    private func write(_ token: UInt64, _ index: UInt64) -> Persist {
        Persist(token: PersistToken(token), change: .append(.opaque(index, [UInt8(index)])))
    }

    private func disk(_ seed: UInt64, maxGroup: Int = 64) -> SimulatedDisk {
        var options = DiskOptions()
        options.maxGroup = maxGroup
        return SimulatedDisk(options: options, random: RandomStream(seed: seed))
    }

    @Test
    func `what ended well is there after a crash, what waited is not, what was under way may be in part`() {
        var survived = Array(repeating: 0, count: 5)
        for seed: UInt64 in 0..<200 {
            var disk = disk(seed, maxGroup: 4)
            disk.submit((1...3).map { write($0, $0) })
            _ = disk.beginGroup()
            let end = disk.endGroup()
            #expect(end.failure == nil)
            #expect(end.durableCount == 3)
            disk.submit((4...9).map { write($0, $0) })
            _ = disk.beginGroup()
            let survivors = disk.crash()
            #expect(survivors == (4..<4 + UInt64(survivors.count)).map { write($0, $0) })
            #expect(disk.record.entries.count == 3 + survivors.count)
            #expect(disk.record.lastIndex <= 7)
            #expect(disk.pendingCount == 0)
            survived[survivors.count] += 1
        }
        #expect(survived.allSatisfy { $0 > 0 })
    }

    @Test(arguments: [StorageFailure.full, .locked, .readOnly])
    func `what failed for certain is not there`(_ failure: StorageFailure) {
        var disk = disk(1)
        disk.failure = failure
        disk.submit([write(1, 1)])
        _ = disk.beginGroup()
        let end = disk.endGroup()
        #expect(end.failure == failure)
        #expect(disk.record == DiskRecord())
        let survivors = disk.crash()
        #expect(survivors.isEmpty)
        #expect(disk.record == DiskRecord())
    }

    @Test
    func `a broken disk holds some first writes, and takes no more`() {
        var counts = Set<Int>()
        for seed: UInt64 in 0..<100 {
            var disk = disk(seed)
            disk.failure = .broken
            disk.submit([write(1, 1), write(2, 2)])
            _ = disk.beginGroup()
            counts.insert(disk.endGroup().durableCount)
            disk.failure = nil
            let before = disk.record
            disk.submit([write(3, 3)])
            _ = disk.beginGroup()
            let end = disk.endGroup()
            #expect(end.failure == .broken)
            #expect(disk.record == before)
        }
        #expect(counts == [0, 1, 2])
    }

    @Test
    func `a disk that takes writes again refuses what would miss one that failed, until that is made or it crashes`() {
        var disk = disk(1)
        func end(_ writes: Persist...) -> [StorageFailure?] {
            disk.submit(writes)
            _ = disk.beginGroup()
            let end = disk.endGroup()
            #expect(end.misfit == nil)
            return writes.indices.map { end.failure ?? end.refusal(at: $0) }
        }
        #expect(end(write(1, 1)) == [nil])
        disk.failure = .locked
        #expect(end(write(2, 2), write(3, 3)) == [.locked, .locked])
        disk.failure = nil
        #expect(end(write(4, 3), write(5, 4)) == [.locked, .locked])
        #expect(disk.record.lastIndex == 1)
        #expect(end(write(6, 4), write(7, 2), write(8, 3)) == [.locked, nil, nil])
        #expect(disk.record.lastIndex == 3)

        let old = SnapshotChunk(number: 0, index: 1, bytes: [1])
        disk.failure = .full
        #expect(end(Persist(token: PersistToken(9), change: .replaceAll(chunks: [old]))) == [.full])
        disk.failure = nil
        #expect(end(write(10, 4)) == [.full])
        _ = disk.crash()
        #expect(end(write(11, 4)) == [nil])
        #expect(disk.record.lastIndex == 4)
    }

    @Test
    func `a record takes nothing that leaves a gap`() {
        var record = DiskRecord()
        let changes: [(change: Persist.Change, fits: Bool)] = [
            (.append(.opaque(1, [1])), true),
            (.append(.opaque(3, [3])), false),
            (.append(.opaque(2, [8])), true),
            // In the place of all from there on.
            (.append(.opaque(1, [9])), true),
            (.append(.opaque(3, [3])), false),
            (.append(.opaque(2, [2])), true),
            (.append(.opaque(3, [3])), true),
            (.saveChunk(SnapshotChunk(number: 1, index: 2, bytes: [7])), true),
            (.trim(through: 3), true),
            // An empty log begins anywhere.
            (.append(.opaque(4, [3])), true),
            (.append(.opaque(3, [4])), false),
            (.append(.opaque(6, [6])), false),
            (.append(.opaque(4, [4])), true),
        ]
        for (change, fits) in changes {
            let isDone = record.apply(change)
            #expect(isDone == fits, "\(change)")
        }
        #expect(record.entry(2) == nil)
        #expect(record.entry(4)?.bytes == [4])
        #expect(record.lastIndex == 4)
        #expect(record.chunks.map(\.number) == [1])
        let isReplaced = record.apply(.replaceAll(chunks: [SnapshotChunk(number: 0, index: 3, bytes: [])]))
        #expect(isReplaced)
        #expect(record.entries.isEmpty)
        #expect(record.chunks.map(\.number) == [0])
        let isNext = record.apply(.append(.opaque(5, [5])))
        #expect(isNext)
    }
}

extension Entry {
    /// An entry whose bytes say nothing: for what must not look at them.
    fileprivate static func opaque(_ index: UInt64, _ bytes: [UInt8]) -> Entry {
        let header = EntryHeader(index: index, epoch: .zero, time: WallTime(milliseconds: 0), updateCount: 0)
        return Entry(sealed: bytes, header, chain: 1)
    }
}
