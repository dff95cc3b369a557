/// Remembers which writes failed, and refuses those that would leave a record with holes because of it.
///
/// A node hands in writes before it hears of the earlier ones. So when one fails, later ones that build on it may
/// already be on their way, even in later transactions:
///
/// - entries behind one that was not appended, until that one is appended or the log is cut before it;
/// - entries behind the place where the log was to be cut and was not, until it is, if only by an entry at that place,
///   which takes the place of all that was there;
/// - a trim of the log after a chunk that was not saved, until it is: the snapshot might not hold what is trimmed.
///
/// Invariant: entries in the log follow each other without a gap.

import TrackerLogic

struct RecordGuard: Sendable, Equatable {
    private struct Gap: Equatable {
        var index: UInt64
        var failure: StorageFailure
    }

    /// The first entry that is missing: those after it may not be appended.
    private var missing: Gap?
    /// The first entry that should be gone and is not: those after it may not be appended.
    private var uncut: Gap?
    /// Chunks whose last save failed, and why the first of them did.
    private var unsaved: Set<UInt32> = []
    private var unsavedFailure = StorageFailure.full

    init() {}

    /// - Returns: why the change must not be made; nil where it may.
    func refusal(of change: Persist.Change) -> StorageFailure? {
        switch change {
        case .append(let index, _):
            if let missing, index > missing.index { return missing.failure }
            if let uncut, index > uncut.index { return uncut.failure }
            return nil
        case .trim:
            return unsaved.isEmpty ? nil : unsavedFailure
        case .promise, .truncate, .saveChunk, .replaceAll:
            return nil
        }
    }

    mutating func succeeded(_ change: Persist.Change) {
        switch change {
        case .append(let index, _):
            if let gap = missing, index == gap.index { missing = nil }
            if let gap = uncut, index <= gap.index { uncut = nil }
        case .truncate(let index):
            if let gap = missing, index <= gap.index { missing = nil }
            if let gap = uncut, index <= gap.index { uncut = nil }
        case .trim(let index):
            if let gap = missing, gap.index <= index { missing = nil }
        case .saveChunk(let chunk):
            unsaved.remove(chunk.number)
        case .replaceAll:
            self = RecordGuard()
        case .promise:
            break
        }
    }

    mutating func failed(_ change: Persist.Change, _ failure: StorageFailure) {
        switch change {
        case .append(let index, _):
            if missing.map({ index < $0.index }) ?? true { missing = Gap(index: index, failure: failure) }
        case .truncate(let index):
            if uncut.map({ index < $0.index }) ?? true { uncut = Gap(index: index, failure: failure) }
        case .saveChunk(let chunk):
            if unsaved.isEmpty { unsavedFailure = failure }
            unsaved.insert(chunk.number)
        case .promise, .trim, .replaceAll:
            break
        }
    }
}
