// What a record is taken for, by its seals, its head and its mark.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("The judging of a record")
struct RecordAuditTests {
    private static let salt: UInt64 = 5
    private static let promise = Promise(
        epoch: Epoch(round: 4, id: 2), incarnation: 9, secret: ClusterSecret(1, 2, 3, 4), shardCount: 2)

    private struct Record {
        var salt = RecordAuditTests.salt
        var head = RecordHead()
        var mark: RecordMark?
        var promise: Promise? = RecordAuditTests.promise
        var chunks: [SnapshotChunk] = [
            SnapshotChunk(number: 0, index: 2, bytes: [1]),
            SnapshotChunk(number: 1, index: 3, bytes: [2]),
        ]
        var seals: [UInt64] = []
        var entries: [(index: UInt64, bytes: [UInt8], seal: UInt64)] = []

        init() {
            seals = chunks.map { RecordSeal.of($0, salt: salt) }
            var chain: UInt64 = 0
            for index in UInt64(1)...5 {
                var bytes: [UInt8] = []
                EntryHeader.reserve(in: &bytes)
                let header = EntryHeader(
                    index: index, epoch: RecordAuditTests.promise.epoch, time: WallTime(milliseconds: 1),
                    updateCount: 0, previous: chain)
                chain = header.seal(&bytes)
                entries.append((index, bytes, RecordSeal.of(entry: bytes, index: index, salt: salt)))
            }
            entries.removeFirst(2)
            head.turn = 8
            head.epoch = RecordAuditTests.promise.epoch
            head.promise = RecordSeal.of(RecordAuditTests.promise, salt: salt)
            head.trimmedThrough = 2
            head.lastIndex = 5
            head.lastEntry = entries[2].seal
            head.snapshot = seals[0] &+ seals[1]
            mark = RecordMark(salt: salt, head: head)
        }

        /// In what it is damaged; nil for one that is whole.
        func judge() -> RecordDamage? {
            do throws(RecordDamage) {
                var audit = try RecordAudit(head, salt: salt, mark: mark)
                try audit.check(promise)
                for (chunk, seal) in zip(chunks, seals) { try audit.check(chunk, seal: seal) }
                try audit.checkSnapshot()
                for entry in entries { try audit.check(entry: entry.bytes, index: entry.index, seal: entry.seal) }
                try audit.checkLog()
                return nil
            } catch {
                return error
            }
        }
    }

    @Test func `what was written is whole, also behind its mark`() {
        var record = Record()
        #expect(record.judge() == nil)
        record.mark?.head.turn = 7
        record.mark?.head.lastIndex = 4
        #expect(record.judge() == nil)
        record.mark = nil
        #expect(record.judge() == nil)
        // What was trimmed may still be there.
        record.entries.insert((2, [7], 7), at: 0)
        #expect(record.judge() == nil)
    }

    @Test func `a record that is older than its mark`() {
        var record = Record()
        record.mark?.head.turn = 9
        record.mark?.head.lastIndex = 7
        #expect(record.judge() == .olderThanMark(found: 5, marked: 7))
        record = Record()
        record.mark?.head.lastEntry = 1
        #expect(record.judge() == .headDiffers)
        record.mark?.salt = 6
        #expect(record.judge() == .markOfAnother)
    }

    private static let changes: [(RecordDamage, @Sendable (inout Record) -> Void)] = [
        (.promise, { $0.promise = nil }),
        (.promise, { $0.promise?.epoch.round = 3 }),
        (.promise, { $0.promise?.hasFullState = false }),
        (.chunk(1), { $0.chunks[1].bytes = [3] }),
        (.chunk(1), { $0.chunks[1].index = 4 }),
        (.chunk(0), { $0.seals[0] ^= 1 }),
        (.snapshot, { $0.chunks.removeLast() }),
        // An older one, with its seal.
        (
            .snapshot,
            {
                $0.chunks[0].index = 1
                $0.seals[0] = RecordSeal.of($0.chunks[0], salt: $0.salt)
            }
        ),
        (.entryMissing(3), { $0.entries.removeFirst() }),
        (.entryMissing(4), { $0.entries.remove(at: 1) }),
        (.entryMissing(5), { $0.entries.removeLast() }),
        (.entryMissing(3), { $0.entries.removeAll() }),
        (.entry(4), { $0.entries[1].bytes[20] ^= 1 }),
        (.entry(5), { $0.entries[2].seal ^= 1 }),
        (
            .entry(3),
            {
                $0.entries[0].bytes = $0.entries[1].bytes; $0.entries[0].seal = $0.entries[1].seal
            }
        ),
        // Another entry of the same place, with its seal.
        (
            .chain(5),
            {
                EntryHeader.reserve(in: &$0.entries[1].bytes)
                EntryHeader(
                    index: 4, epoch: RecordAuditTests.promise.epoch, time: WallTime(milliseconds: 2), updateCount: 0,
                    previous: EntryHeader.chain($0.entries[0].bytes)
                ).seal(&$0.entries[1].bytes)
                $0.entries[1].seal = RecordSeal.of(entry: $0.entries[1].bytes, index: 4, salt: $0.salt)
            }
        ),
    ]

    @Test func `a part that is not what was written, or is missing`() {
        for (place, change) in Self.changes.enumerated() {
            var record = Record()
            change.1(&record)
            #expect(record.judge() == change.0, "change \(place)")
        }
    }

    /// Each with its seal.
    @Test func `a number beyond its bound`() {
        func excess(_ change: (inout Record) -> Void) -> UInt64? {
            var record = Record()
            record.mark = nil
            change(&record)
            if let promise = record.promise {
                record.head.epoch = promise.epoch
                record.head.promise = RecordSeal.of(promise, salt: record.salt)
            }
            record.seals = record.chunks.map { RecordSeal.of($0, salt: record.salt) }
            record.head.snapshot = record.seals.reduce(0, &+)
            guard case .beyondBounds(let excess)? = record.judge() else { return nil }
            return excess.found
        }
        #expect(excess { _ in } == nil)
        #expect(excess { $0.promise?.epoch.round = NumberBounds.round } == nil)
        #expect(excess { $0.promise?.epoch.round = NumberBounds.round + 1 } == NumberBounds.round + 1)
        #expect(excess { $0.promise?.shardCount = 0 } == 0)
        #expect(excess { $0.promise?.shardCount = 3 } == 3)
        #expect(excess { $0.promise?.shardCount = NumberBounds.shardCount * 2 } == UInt64(NumberBounds.shardCount) * 2)
        #expect(excess { $0.chunks[0].index = NumberBounds.index } == nil)
        #expect(excess { $0.chunks[0].index = NumberBounds.index + 1 } == NumberBounds.index + 1)
        #expect(excess { $0.chunks[1].number = .max } == UInt64(UInt32.max))
        #expect(excess { $0.head.turn = .max } == .max)
        #expect(excess { $0.head.lastIndex = .max } == .max)
        #expect(excess { $0.head.trimmedThrough = .max } == .max)
        #expect(
            excess {
                $0.mark = RecordMark(salt: $0.salt, head: $0.head)
                $0.mark?.head.turn = .max
            } == .max)
    }

    @Test func `a head is read back as it was written`() {
        let head = Record().head
        #expect(RecordHead(bytes: head.bytes) == head)
        #expect(head.bytes.count == RecordHead.byteCount)
        #expect(RecordHead(bytes: head.bytes.dropLast()) == nil)
    }
}
