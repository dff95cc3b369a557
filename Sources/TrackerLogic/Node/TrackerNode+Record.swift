// The node's record: reading it back, and what becomes of writes.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Restoring

    /// Takes a chunk of the record back.
    ///
    /// All chunks come before the first entry.
    public mutating func restore(_ chunk: SnapshotChunk) throws(ChunkDamaged) {
        precondition(phase == .restoring, "a record is read back before the node starts")
        try state.restore(chunk)
        restoredThrough[Int(chunk.number)] = chunk.index
    }

    /// Takes an entry of the log back.
    ///
    /// Entries come in the order of their indices, without gaps, and the first no later
    /// than right behind the snapshot.
    ///
    /// - Throws: `EntryDamaged` also where one is missing. The node is of no use then.
    public mutating func restore(entry bytes: [UInt8]) throws(EntryDamaged) {
        precondition(phase == .restoring, "a record is read back before the node starts")
        let entry = try Entry(bytes)
        let index = entry.header.index
        let isNext = if let lastRestored { index == lastRestored &+ 1 } else { index <= state.index &+ 1 }
        guard isNext else { throw EntryDamaged() }
        lastRestored = index
        // Where nobody else votes, what is on the disk is decided; and it is said now whether it can be read.
        guard policy.hasBus else { return try apply(restored: entry) }
        if let last = restoredEntry { try apply(restored: last) }
        restoredEntry = entry
    }

    /// What was read back, as the writes that begin a new record with it: the operator takes it for the whole state.
    public mutating func takeRestored() -> [Persist.Change] {
        precondition(phase == .restoring, "a record is read back before the node starts")
        var whole = promise
        whole.hasFullState = true
        let chunks = (0..<state.chunkCount).map { state.chunk($0) }
        var changes: [Persist.Change] = [.promise(whole), .replaceAll(chunks: chunks)]
        // The last entry may have been decided, or not.
        if let last = restoredEntry, last.header.index > state.index {
            changes.append(.append(last))
        }
        return changes
    }

    /// Applies an entry that was read back: to the chunks that do not hold it yet.
    private mutating func apply(restored entry: Entry) throws(EntryDamaged) {
        guard entry.header.index <= state.index || entry.header.previous == state.chain else { throw EntryDamaged() }
        state.begin(entry.header, chain: entry.chain)
        var cursor = UpdateCursor(entry.header)
        while let update = try cursor.next(entry.bytes) {
            let chunk = state.chunk(of: update)
            guard chunk < restoredThrough.count else { throw EntryDamaged() }
            if entry.header.index > restoredThrough[chunk] { state.apply(update) }
        }
        log.append(decided: entry)
        // The first chunk holds the requests that were settled by its own entry.
        if isGroup, entry.header.index > restoredThrough[0], let tickets = try? Tickets(entry.bytes, entry.header) {
            state.note(tickets)
        }
    }

    /// The last entry of the log may never have been decided: its fate is unknown, unless the snapshot holds it, or its
    /// master was the only voter.
    mutating func settleLastRestored() {
        guard let last = restoredEntry else { return log.restored(through: state.index) }
        restoredEntry = nil
        acceptor.restoreVote(last.header.index)
        let isDecided = last.header.isAlone && !has(.loneDecisionForgotten)
        if !isDecided, last.header.index > state.index {
            log.restored(through: state.index)
            return log.restorePending(last)
        }
        do throws(EntryDamaged) {
            try apply(restored: last)
            log.restored(through: state.index)
        } catch {
            // Its checksum is right, so it was made so: who has such a record is a newcomer.
            acceptor.loseState()
        }
    }

    // MARK: - Writes

    mutating func persist(_ change: Persist.Change, _ kind: WriteQueue.Kind, _ effects: inout Effects) {
        effects.persists.append(Persist(token: writes.append(kind), change: change))
    }

    mutating func persisted(_ token: PersistToken, _ now: ClockReading, _ effects: inout Effects) {
        let kind = writes.take(token)
        if writes.succeeded() {
            effects.observations.append(policy.hasBus ? .voteRecovered : .storageRecovered)
        }
        switch kind {
        case .promise(let epoch):
            acceptor.promiseWritten(epoch)
            promisePersisted(epoch, now, &effects)
        case .entry: entryWritten(now, &effects)
        case .everything(let index): everythingWritten(through: index, now, &effects)
        case .fullStateMark: fullStateMarkWritten(now, &effects)
        case .chunk: snapshotter.chunkCompleted(isSaved: true, now: now.monotonic)
        case .trim: break
        case .final: stop(&effects)
        case .stopRecalled: stopRecalled()
        }
    }

    mutating func persistFailed(
        _ token: PersistToken, _ failure: StorageFailure, _ now: ClockReading, _ effects: inout Effects
    ) {
        let kind = writes.take(token)
        if failure == .broken { return fail(now, &effects) }
        if writes.failed(failure) {
            let refused = if case .entry = kind { gathering.sealedTickets.count } else { 0 }
            // The others may store what this one cannot, where there are any; where too few can, that is told by
            // itself.
            effects.observations.append(
                policy.hasBus ? .voteFailed(failure) : .storageFailed(failure, refused: refused))
        }
        switch kind {
        case .promise:
            // Without its promise it may not vote: it tries again, in an epoch that it has not named yet.
            promiseNotPersisted(now, &effects)
        case .entry: entryNotWritten(now, &effects)
        case .everything: everythingNotWritten(now)
        case .fullStateMark: fullStateMarkNotWritten(now)
        case .chunk(let number):
            if number < state.chunkCount { state.markChanged(chunk: number) }
            snapshotter.chunkCompleted(isSaved: false, now: now.monotonic)
        case .trim: break
        case .final: stop(&effects)
        // It is tried again with the next tick.
        case .stopRecalled: break
        }
    }

    /// The disk is broken: nobody can say what is on it.
    ///
    /// The node falls silent rather than vote with holes.
    mutating func fail(_ now: ClockReading, _ effects: inout Effects) {
        guard phase != .failed else { return }
        let wasStopping = phase == .draining || departure.isLast
        office.fail()
        _ = writes.failed(.broken)
        effects.observations.append(.storageFailed(.broken, refused: router.count))
        dropCommands("the tracker stopped before it was carried out", &effects)
        vanish(now, &effects)
        if wasStopping { effects.observations.append(.drained) }
    }
}
