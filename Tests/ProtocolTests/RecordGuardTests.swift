// Which changes are refused after one that failed, and until when.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct RecordGuardTests {
    private static func promise(hasFullState: Bool) -> Persist.Change {
        .promise(
            Promise(
                epoch: Epoch(round: 3, id: 1), incarnation: 1, secret: ClusterSecret(1, 2, 3, 4), shardCount: 2,
                hasFullState: hasFullState))
    }

    /// `chain` is the running hash that it comes to, `previous` the one that it follows.
    private static func append(_ index: UInt64, chain: UInt64 = 1, previous: UInt64 = 0) -> Persist.Change {
        let header = EntryHeader(
            index: index, epoch: .zero, time: WallTime(milliseconds: 0), updateCount: 0, previous: previous)
        return .append(Entry(sealed: [1], header, chain: chain))
    }

    private static func save(_ number: UInt32) -> Persist.Change {
        .saveChunk(SnapshotChunk(number: number, index: 4, bytes: [1]))
    }

    private static let replace = Persist.Change.replaceAll(chunks: [SnapshotChunk(number: 0, index: 9, bytes: [1])])

    private struct Row {
        var hasFullState = true
        /// What the record ends with when it is opened.
        var last: Position?
        /// What was made and what was not, in this order.
        var past: [(Persist.Change, StorageFailure?)]
        var allowed: [Persist.Change] = []
        var refused: [Persist.Change] = []
        var line = #line
    }

    private static let everythingNew = [append(5), append(10), .trim(through: 4), save(1), save(0)]

    private static let rows: [Row] = [
        Row(past: [], allowed: everythingNew + [replace, promise(hasFullState: true), promise(hasFullState: false)]),
        // Entries.
        Row(past: [(append(5), .full)], allowed: [append(5), append(4), .trim(through: 4)], refused: [append(6)]),
        Row(past: [(append(5), .full), (append(5), nil)], allowed: [append(6)]),
        // The record holds another attempt at it: what follows that one by its hash builds on nothing that is missing.
        Row(
            past: [(append(5, chain: 50), nil), (append(5, chain: 51), .full)],
            allowed: [append(5, chain: 52), append(6, previous: 50)],
            refused: [append(6, previous: 51), append(6), append(7, previous: 50)]),
        Row(
            last: Position(index: 5, chain: 50), past: [(append(5, chain: 51), .full)],
            allowed: [append(6, previous: 50)], refused: [append(6, previous: 51)]),
        Row(
            past: [
                (append(5, chain: 50), nil), (append(5, chain: 51), .full), (append(6, chain: 60, previous: 50), nil),
            ], allowed: [append(7, previous: 60), append(7, previous: 61)]),
        Row(
            past: [
                (append(5, chain: 50), nil), (append(6, chain: 60, previous: 50), nil), (append(5, chain: 51), .full),
            ], allowed: [append(7, previous: 60)], refused: [append(6, previous: 50), append(7, previous: 61)]),
        // What was cut off is there no more.
        Row(
            past: [
                (append(5, chain: 50), nil), (append(6, chain: 60, previous: 50), nil), (append(5, chain: 51), nil),
                (append(6, chain: 61, previous: 51), .full),
            ], allowed: [append(6)], refused: [append(7, previous: 60), append(7, previous: 61)]),
        Row(
            past: [(append(5, chain: 50), nil), (replace, nil), (append(5, chain: 51), .full)],
            refused: [append(6, previous: 50)]),
        // Chunks.
        Row(past: [(save(1), .full)], allowed: [save(1), save(2), append(5)], refused: [.trim(through: 2)]),
        Row(past: [(save(1), .full), (save(2), nil)], refused: [.trim(through: 2)]),
        Row(past: [(save(1), .full), (save(1), nil)], allowed: [.trim(through: 2)]),
        // The record holds the old state, and what comes now is of the new one.
        Row(past: [(replace, .full)], allowed: [replace], refused: everythingNew),
        // Its own word about the old state stands; whatever it promises is the tracker's to promise.
        Row(past: [(replace, .full)], allowed: [promise(hasFullState: true), promise(hasFullState: false)]),
        // The old state was given up before: to call it whole would bring it back as the new one.
        Row(
            hasFullState: false, past: [(replace, .full)], allowed: [promise(hasFullState: false)],
            refused: everythingNew + [promise(hasFullState: true)]),
        Row(
            past: [(promise(hasFullState: false), nil), (replace, .full)],
            allowed: [promise(hasFullState: false), replace],
            refused: [promise(hasFullState: true)]),
        Row(past: [(promise(hasFullState: false), .full), (replace, .full)], allowed: [promise(hasFullState: true)]),
        // What would mend a gap in the old log mends nothing here.
        Row(past: [(append(5), .full), (replace, .full)], refused: [append(5)]),
        Row(past: [(replace, .full), (promise(hasFullState: false), nil)], refused: everythingNew),
        // Only a replacement that is made ends it, and with it all that came before.
        Row(past: [(replace, .full), (replace, .full)], refused: everythingNew),
        Row(
            hasFullState: false, past: [(append(5), .full), (save(1), .full), (replace, .full), (replace, nil)],
            allowed: everythingNew + [promise(hasFullState: true)]),
    ]

    @Test func `what means something else after a failure is refused`() {
        for row in Self.rows {
            var holes = RecordGuard(hasFullState: row.hasFullState, last: row.last)
            for (change, failure) in row.past {
                if let failure { holes.failed(change, failure) } else { holes.succeeded(change) }
            }
            for change in row.allowed { #expect(holes.refusal(of: change) == nil, "line \(row.line): \(change)") }
            for change in row.refused { #expect(holes.refusal(of: change) == .full, "line \(row.line): \(change)") }
        }
    }

    @Test func `a refusal says what stood in the way`() {
        var holes = RecordGuard(hasFullState: true)
        holes.failed(Self.append(5), .full)
        holes.failed(Self.replace, .locked)
        #expect(holes.refusal(of: Self.append(6)) == .locked)
        #expect(holes.refusal(of: Self.save(1)) == .locked)
    }
}
