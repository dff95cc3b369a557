// Remembers which writes failed.

import Wire

/// Remembers which writes failed, and refuses those that would leave a record with holes because of it.
///
/// A node hands in writes before it hears of the earlier ones. So when one fails, later ones that build on it may
/// already be on their way, even in later transactions:
///
/// - entries behind one that was not appended, until that one is appended: it takes the place of all that was there
///   from its index on. But where the record holds another attempt at it, what follows that one by its running hash is
///   taken: the tracker has heard of the failure, and goes on with what it has. It never writes the missing one again;
/// - a trim of the log after a chunk that was not saved, until it is: the snapshot might not hold what is trimmed;
/// - after a replacement of everything that was not made: entries, chunks and trims, all of which mean the new
///   state, where the record still holds the old one; and a promise that makes the record whole, for it is the new
///   state that is whole. Only a replacement that is made ends that.
///
/// Any other promise is safe at any time: it stands for itself, and a tracker that cannot write down its epoch would
/// lose its vote for nothing.
///
/// Invariant: entries in the log follow each other without a gap, and are of the history that the snapshot is of.
package struct RecordGuard: Sendable, Equatable {
    private struct Gap: Equatable {
        var index: UInt64
        var failure: StorageFailure
    }

    /// The last entry of the record; nil where the log is empty or nobody has looked.
    private var last: Position?
    /// The first entry that is missing: those after it may not be appended, but for one that follows `last`.
    private var missing: Gap?
    /// Chunks whose last save failed, and why the first of them did.
    private var unsaved: [UInt32] = []
    private var unsavedFailure = StorageFailure.full
    /// Why the last replacement of everything was not made; nil where it was.
    private var unreplaced: StorageFailure?
    /// Whether the record says of itself that it is whole.
    private var hasFullState: Bool

    /// - Parameters:
    ///   - hasFullState: what the promise in the record says; false where there is none.
    ///   - last: where the record's last entry brings a state to; nil where it holds none.
    package init(hasFullState: Bool, last: Position? = nil) {
        self.hasFullState = hasFullState
        self.last = last
    }

    /// - Returns: why the change must not be made; nil where it may.
    package func refusal(of change: Persist.Change) -> StorageFailure? {
        switch change {
        case .append(let entry):
            if let unreplaced { return unreplaced }
            if let missing, entry.header.index > missing.index, !followsLast(entry.header) { return missing.failure }
            return nil
        case .trim:
            return unreplaced ?? (unsaved.isEmpty ? nil : unsavedFailure)
        case .saveChunk:
            return unreplaced
        case .promise(let promise):
            return promise.hasFullState && !hasFullState ? unreplaced : nil
        case .replaceAll:
            return nil
        }
    }

    /// Whether an entry comes right behind the record's last one, and was made to.
    private func followsLast(_ header: EntryHeader) -> Bool {
        guard let last else { return false }
        return header.index == last.index &+ 1 && header.previous == last.chain
    }

    /// A change was made.
    package mutating func succeeded(_ change: Persist.Change) {
        switch change {
        case .append(let entry):
            last = entry.position
            if let gap = missing, gap.index <= entry.header.index { missing = nil }
        case .trim(let index):
            if let gap = missing, gap.index <= index { missing = nil }
        case .saveChunk(let chunk):
            unsaved.removeAll { $0 == chunk.number }
        case .replaceAll:
            self = RecordGuard(hasFullState: hasFullState)
        case .promise(let promise):
            hasFullState = promise.hasFullState
        }
    }

    /// A change was not made, for certain.
    package mutating func failed(_ change: Persist.Change, _ failure: StorageFailure) {
        switch change {
        case .append(let entry):
            let index = entry.header.index
            if missing.map({ index < $0.index }) ?? true { missing = Gap(index: index, failure: failure) }
        case .saveChunk(let chunk):
            if unsaved.isEmpty { unsavedFailure = failure }
            if !unsaved.contains(chunk.number) { unsaved.append(chunk.number) }
        case .replaceAll:
            unreplaced = failure
        case .promise, .trim:
            break
        }
    }
}
