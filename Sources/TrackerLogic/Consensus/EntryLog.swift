// The log in memory.

import Primitives
import Wire

/// The log in memory: the entries that were decided lately, for those who lag behind, the one that is accepted and not
/// decided, and how far the disk is.
///
///     … trimmed │ tail: decided, applied │ pending: accepted, its fate unknown
///
/// One entry at a time is under way, so at most one is pending. Writes of entries are made one after another, in order:
/// a failed one leaves no gap, for nothing was written behind it.
///
/// Invariants: the tail ends at what is applied; the pending entry comes right behind; both within their bounds.
package struct EntryLog: Sendable, Hashable {
    /// Bytes of entries that are kept for trackers that lag behind; one that lags further fetches the state.
    package static let maxTailByteCount = 16 << 20
    /// Between a write that failed and the next, in a cluster.
    package static let writePause = Duration.seconds(1)

    private let maxTailCount: Int
    private var tail: [Entry] = []
    /// The index of the first entry of the tail.
    package private(set) var tailStart: UInt64 = 1
    package private(set) var tailByteCount = 0
    /// Accepted, and not known to be decided.
    package private(set) var pending: Entry?
    /// The accepted entry that is on the disk: `pending`, or the one that `pending` replaces.
    package private(set) var durablePending: Entry?
    /// The last entry that is on the disk; 0 while all of another state is to be written, for what the record holds
    /// until then is of another history.
    package private(set) var durableThrough: UInt64 = 0
    /// The entry whose write is under way.
    private var writing: Entry?
    /// Whether the write was begun before the log was reset: its outcome says nothing about the log of now.
    private var isWriteVoid = false
    /// Writes of the full state under way: a second one begins where a transfer ends before the first is done.
    private var fullStateWrites = 0
    /// Whether the full state has to be written, since the record on the disk is of no use.
    private var needsEverything = false
    /// When to go on after a failed write.
    package private(set) var writesResumeAt: Instant?

    /// - Parameter maxTailCount: entries that are kept for trackers that lag behind.
    package init(maxTailCount: Int) { self.maxTailCount = maxTailCount }

    package var tailCount: Int { tail.count }
    /// Whether a write is under way, of an entry or of everything.
    @inline(__always)
    package var isWriting: Bool { if case nil = writing { fullStateWrites > 0 } else { true } }
    /// The last entry of the tail, or the one before its first.
    @inline(__always)
    package var tailEnd: UInt64 { tailStart + UInt64(tail.count) - 1 }

    @inline(__always)
    package func entry(_ index: UInt64) -> Entry? {
        guard index >= tailStart, index <= tailEnd else { return nil }
        return tail[Int(index - tailStart)]
    }

    /// The running hash of the log up to and including an index; nil where the log no longer reaches back to it.
    package func chain(at index: UInt64, applied: Position) -> UInt64? {
        if index == applied.index { return applied.chain }
        guard let next = entry(index + 1) else { return nil }
        return next.header.previous
    }

    /// Whether a log that ends at a position is a prefix of this one; nil where this one no longer reaches back to it.
    package func contains(_ position: Position, applied: Position) -> Bool? {
        if position.index == 0 { return true }
        return chain(at: position.index, applied: applied).map { $0 == position.chain }
    }

    // MARK: - Changing

    /// Begins anew behind a state of which the disk has nothing yet.
    package mutating func reset(to position: Position) {
        tail = []
        tailByteCount = 0
        tailStart = position.index + 1
        pending = nil
        durablePending = nil
        durableThrough = 0
        isWriteVoid = writing != nil
    }

    @inline(__always)
    package mutating func accept(_ entry: Entry) { pending = entry }

    /// As it was read back.
    package mutating func restorePending(_ entry: Entry) {
        pending = entry
        durablePending = entry
        durableThrough = entry.header.index
    }

    package mutating func restored(through index: UInt64) {
        if tail.isEmpty { tailStart = index + 1 }
        durableThrough = index
    }

    /// Whether what was accepted is on the disk, or on its way there, in whatever attempt.
    package func stores(_ entry: Entry) -> Bool {
        durablePending?.position == entry.position || writing?.position == entry.position
    }

    /// Whether the disk has what an earlier master has left at an entry's place: the next one may find it there.
    package func storesOlder(than entry: Entry) -> Bool {
        guard let old = durablePending?.header else { return false }
        return old.index == entry.header.index && old.epoch < entry.header.epoch
    }

    /// The entry that was accepted could certainly not be written.
    package mutating func dropPending() { pending = durablePending }

    /// An entry was decided and applied.
    ///
    /// - Parameters:
    ///   - entry: which has brought the state to its position.
    ///   - isCut: whether old entries may go.
    package mutating func append(decided entry: Entry, isCut: Bool = true) {
        let position = entry.position
        if tail.isEmpty { tailStart = position.index }
        if maxTailCount == 0, isCut, tail.count == 1 {
            // Nobody lags behind: the last one takes the place of the one before.
            tail[0] = entry
            tailStart += 1
            tailByteCount = entry.bytes.count
        } else {
            tail.append(entry)
            tailByteCount += entry.bytes.count
        }
        if let pending, pending.header.index <= position.index { self.pending = nil }
        if let durable = durablePending, durable.header.index <= position.index {
            // The entry that was accepted here is another than the decided one, and has to be overwritten.
            if durable.position != position { durableThrough = min(durableThrough, durable.header.index - 1) }
            durablePending = nil
        }
        if isCut { trimTail() }
    }

    private mutating func trimTail() {
        guard tail.count > maxTailCount || tailByteCount > EntryLog.maxTailByteCount else { return }
        // A quarter at once, so that the rest is not moved for every entry; the last one stays.
        var surplus = min(max(tail.count - maxTailCount, maxTailCount / 4), tail.count - 1)
        var freed = 0
        for place in 0..<surplus { freed += tail[place].bytes.count }
        while tailByteCount - freed > EntryLog.maxTailByteCount, surplus < tail.count - 1 {
            freed += tail[surplus].bytes.count
            surplus += 1
        }
        tail.removeFirst(surplus)
        tailStart += UInt64(surplus)
        tailByteCount -= freed
    }

    // MARK: - The disk

    /// What to write next.
    package enum NextWrite: Sendable, Hashable {
        case entry(Entry)
        /// The disk is so far behind that the entries are no longer here: all of the state has to be written.
        case everything
    }

    /// Whether the pause after a failed write is over.
    package mutating func resume(now: Instant) {
        if let due = writesResumeAt, due <= now { writesResumeAt = nil }
    }

    /// Whether there may be something for the disk, and none is under way; most steps find that there is not.
    @inline(__always)
    package var mayWrite: Bool {
        guard !isWriting, writesResumeAt == nil else { return false }
        if case nil = pending { return needsEverything || durableThrough < tailEnd }
        return true
    }

    /// The next entry for the disk, where none is under way.
    @inline(__always)
    package var nextWrite: NextWrite? {
        guard mayWrite else { return nil }
        if needsEverything { return .everything }
        if let pending, pending.header.index <= durableThrough + 1, durablePending?.header != pending.header {
            return .entry(pending)
        }
        guard durableThrough < tailEnd else { return nil }
        return entry(durableThrough + 1).map { .entry($0) } ?? .everything
    }

    @inline(__always)
    package mutating func beginWrite(_ entry: Entry) {
        writing = entry
        isWriteVoid = false
        writesResumeAt = nil
    }

    package mutating func beginWritingEverything() {
        fullStateWrites += 1
        needsEverything = false
        writesResumeAt = nil
    }

    /// The write under way is durable.
    ///
    /// - Returns: the entry; nil where it is of no interest any more.
    @inline(__always)
    package mutating func writeSucceeded() -> Entry? {
        guard let entry = writing else {
            preconditionFailure("an entry is told durable while one is being written")
        }
        writing = nil
        guard !isWriteVoid else { return nil }
        durableThrough = entry.header.index
        // Once its place is decided nothing is pending there any more, on the disk neither.
        if let decided = self.entry(entry.header.index) {
            // Meanwhile another may have been decided in its place.
            if decided.chain != entry.chain { durableThrough = entry.header.index - 1 }
        } else if entry.header.index < tailStart {
            // The decided entry is no longer in memory, so whether it is the written one cannot be told.
            durableThrough = entry.header.index - 1
        } else {
            durablePending = entry
        }
        return entry
    }

    /// The write under way was not made, for certain.
    ///
    /// - Parameter retryAt: when to try again.
    /// - Returns: the entry; nil where it is of no interest any more, or all of the state was written.
    package mutating func writeFailed(retryAt: Instant) -> Entry? {
        let entry = writing
        writing = nil
        guard !isWriteVoid else { return nil }
        writesResumeAt = retryAt
        if let entry, pending?.header == entry.header { pending = durablePending }
        return entry
    }

    /// - Returns: false where it is of no interest any more: all is being written anew.
    package mutating func everythingNotWritten(retryAt: Instant) -> Bool {
        fullStateWrites -= 1
        guard fullStateWrites == 0 else { return false }
        needsEverything = true
        writesResumeAt = retryAt
        return true
    }

    /// - Returns: false where it is of no interest any more: all is being written anew, perhaps of an earlier index.
    package mutating func wroteEverything(through index: UInt64) -> Bool {
        fullStateWrites -= 1
        guard fullStateWrites == 0 else { return false }
        durableThrough = max(index, durableThrough)
        durablePending = nil
        return true
    }
}

extension EntryLog {
    mutating func walk(_ archive: inout Archive) {
        tail.walk(&archive)
        tailStart.walk(&archive)
        tailByteCount.walk(&archive)
        pending.walk(&archive)
        durablePending.walk(&archive)
        durableThrough.walk(&archive)
        writing.walk(&archive)
        isWriteVoid.walk(&archive)
        fullStateWrites.walk(&archive)
        needsEverything.walk(&archive)
        writesResumeAt.walk(&archive)
    }
}
