// Carries out writes.

import GRDB
import TrackerLogic
import Wire

/// Carries out writes: all that are there in one transaction, and one by one where that transaction fails.
///
/// Each transaction writes the head, which says what all parts come to; after a group, and before anybody hears of it,
/// the head goes to the mark outside of the database (`RecordAudit`).
///
/// Deviation from the letter of `Persist.Change`: a trim only moves the head's `trimmedThrough`; the rows go a few at a
/// time, with the entries that follow and in idle moments. Deleting a row makes SQLite read its whole chain of pages,
/// and a long trim in one transaction held up the log for tenths of a second.
///
/// Lives on the storage thread.
final class RecordWriter {
    /// What has become of the writes of one `carryOut`, for those who act on it.
    struct Outcome {
        var savedChunks: [UInt32] = []
        /// All chunks were replaced; those that there are now are in `savedChunks`.
        var isReplaced = false
        /// The first failure that was met, not counting the refusals that followed from it.
        var failure: (kind: StorageFailure, reason: String)?
        var failures = 0
    }

    private let db: Database
    private let mark: MarkFile
    private let salt: UInt64
    private let statements: Statements
    private var state: State
    /// After a failure of which nobody knows what it left behind, a later success would prove nothing about the earlier
    /// writes (a failed `fsync` may drop pages and succeed the next time).
    ///
    /// Only reopening clears it.
    private(set) var isBroken = false
    /// Whether rows of trimmed entries may still be in the log.
    private(set) var hasTrimmedRows = true

    private struct State {
        var holes: RecordGuard
        var head: RecordHead
    }

    /// What the mark says, or will once it is written.
    private var markedTurn: UInt64

    private struct Statements {
        let setMeta: PreparedStatement
        let append: PreparedStatement
        let truncate: PreparedStatement
        let oldest: PreparedStatement
        let entryChecksum: PreparedStatement
        let deleteRange: PreparedStatement
        let oldChecksum: PreparedStatement
        let saveChunk: PreparedStatement
        let markStale: PreparedStatement
    }

    /// - Throws: `RecordDamage` where the head is not what was written; nobody has looked at the rest.
    init(_ db: Database, mark: MarkFile) throws {
        self.db = db
        self.mark = mark
        let (salt, head) = try StoreRecovery.head(db)
        self.salt = salt
        let holes = RecordGuard(
            hasFullState: try StoreRecovery.promise(db)?.hasFullState == true,
            last: try StoreRecovery.lastPosition(db, head))
        state = State(holes: holes, head: head)
        markedTurn = head.turn
        statements = try Statements(
            setMeta: PreparedStatement(db, "REPLACE INTO meta (key, value) VALUES (?, ?)"),
            append: PreparedStatement(db, "INSERT INTO log (idx, checksum, entry) VALUES (?, ?, ?)"),
            truncate: PreparedStatement(db, "DELETE FROM log WHERE idx >= ?"),
            oldest: PreparedStatement(db, "SELECT min(idx) FROM log"),
            entryChecksum: PreparedStatement(db, "SELECT checksum FROM log WHERE idx = ?"),
            deleteRange: PreparedStatement(db, "DELETE FROM log WHERE idx <= ?"),
            oldChecksum: PreparedStatement(db, "SELECT checksum FROM snapshot WHERE number = ?"),
            saveChunk: PreparedStatement(
                db, "REPLACE INTO snapshot (number, idx, checksum, body) VALUES (?, ?, ?, ?)"),
            markStale: PreparedStatement(db, "DELETE FROM tabled WHERE chunk = ?"))
    }

    /// Carries out writes in order.
    ///
    /// - Parameters:
    ///   - group: the writes.
    ///   - results: what became of each, appended in the same order.
    ///   - isIndivisible: whether none is to be made where one of them cannot be.
    /// - Returns: what became of them together.
    func carryOut(
        _ group: ArraySlice<Persist>, results: inout [(PersistToken, StorageFailure?)], isIndivisible: Bool = false
    ) -> Outcome {
        var outcome = Outcome()
        if isBroken {
            for persist in group { results.append((persist.token, .broken)) }
            outcome.failures = group.count
            return outcome
        }
        let start = results.count
        do {
            try transaction { state in
                state.head.turn += 1
                var appended = 0
                for persist in group {
                    let refusal = state.holes.refusal(of: persist.change)
                    results.append((persist.token, refusal))
                    guard refusal == nil else { continue }
                    try apply(persist.change, &state)
                    if case .append = persist.change { appended += 1 }
                }
                // The debt of trimmed rows shrinks twice as fast as the log grows.
                if hasTrimmedRows, appended > 0 { try deleteTrimmed(rows: 2 * appended + 2, state) }
            }
        } catch {
            results.removeSubrange(start...)
            let failure = StorageFailure.of(error)
            outcome.failure = (failure, StoreError.text(of: error, in: db))
            switch failure {
            case .broken: fail(group, .broken, &results)
            // Who holds the database now holds it for the single writes too; each would wait as long again.
            case .locked: fail(group, .locked, &results)
            case .full where isIndivisible, .readOnly where isIndivisible: fail(group, failure, &results)
            case .full, .readOnly: carryOutSingly(group, results: &results)
            }
        }
        do {
            try writeMark()
        } catch {
            // It is durable, and nobody may hear of it: a part of it that is lost later would not be missed.
            results.removeSubrange(start...)
            outcome.failure = (.broken, "\(error)")
            fail(group, .broken, &results)
        }
        note(group, results[start...], &outcome)
        return outcome
    }

    private func writeMark() throws(MarkFailure) {
        guard state.head.turn > markedTurn else { return }
        try mark.write(state.head)
        markedTurn = state.head.turn
    }

    /// Fails all further writes as `.broken`.
    func giveUp() { isBroken = true }

    /// Takes some rows of trimmed entries out of the log, in a transaction of its own.
    ///
    /// - Returns: false once there are none.
    func deleteTrimmed(rows: Int) throws -> Bool {
        try transaction { state in try deleteTrimmed(rows: rows, state) }
        return hasTrimmedRows
    }

    private func carryOutSingly(_ group: ArraySlice<Persist>, results: inout [(PersistToken, StorageFailure?)]) {
        for (offset, persist) in zip(group.indices, group) {
            if let refusal = state.holes.refusal(of: persist.change) {
                results.append((persist.token, refusal))
                continue
            }
            do {
                try transaction { state in
                    state.head.turn += 1
                    try apply(persist.change, &state)
                }
                results.append((persist.token, nil))
            } catch {
                let failure = StorageFailure.of(error)
                guard failure != .broken, failure != .locked else {
                    fail(group[offset...], failure, &results)
                    return
                }
                state.holes.failed(persist.change, failure)
                results.append((persist.token, failure))
            }
        }
    }

    private func fail(
        _ group: ArraySlice<Persist>, _ failure: StorageFailure, _ results: inout [(PersistToken, StorageFailure?)]
    ) {
        isBroken = isBroken || failure == .broken
        for persist in group {
            state.holes.failed(persist.change, failure)
            results.append((persist.token, failure))
        }
    }

    /// Makes changes in one transaction; where it fails, neither the database nor `state` has changed.
    private func transaction(_ body: (inout State) throws -> Void) throws {
        var newState = state
        try db.beginTransaction(.immediate)
        do {
            try body(&newState)
            if newState.head != state.head {
                try statements.setMeta.run([.text(MetaKey.head), .blob(newState.head.sealed(salt: salt))])
            }
            try db.commit()
        } catch {
            // Where SQLite has rolled back by itself, this has nothing to do.
            try? db.rollback()
            throw error
        }
        state = newState
    }

    private func note(
        _ group: ArraySlice<Persist>, _ results: ArraySlice<(PersistToken, StorageFailure?)>, _ outcome: inout Outcome
    ) {
        for (persist, result) in zip(group, results) {
            guard result.1 == nil else {
                outcome.failures += 1
                continue
            }
            switch persist.change {
            case .saveChunk(let chunk):
                outcome.savedChunks.append(chunk.number)
            case .replaceAll(let chunks):
                outcome.isReplaced = true
                outcome.savedChunks = chunks.map(\.number)
                hasTrimmedRows = false
            case .trim:
                hasTrimmedRows = true
            case .promise(let promise) where promise.leftInOrder:
                outcome.isReplaced = true
            case .promise, .append:
                break
            }
        }
    }
}

// Single changes, inside a transaction.
extension RecordWriter {
    private func apply(_ change: Persist.Change, _ state: inout State) throws {
        switch change {
        case .promise(let promise):
            for row in promise.rows { try statements.setMeta.run([.text(row.key), row.value]) }
            state.head.epoch = promise.epoch
            state.head.promise = RecordSeal.of(promise, salt: salt)
            if promise.leftInOrder {
                // People find no swarms. The record keeps them, for the others may go on: then the tables are made
                // anew.
                try deleteRows(except: [0])
                try db.execute(sql: "DELETE FROM tabled WHERE chunk <> 0")
            }
        case .append(let entry):
            try append(entry, &state)
        case .saveChunk(let chunk):
            try save(chunk, &state)
        case .trim(let index):
            trim(through: index, &state)
        case .replaceAll(let chunks):
            try db.execute(sql: "DELETE FROM log")
            state.head.lastIndex = 0
            state.head.lastEntry = 0
            state.head.trimmedThrough = 0
            try deleteRows(except: Set(chunks.map(\.number)))
            try db.execute(sql: "DELETE FROM tabled; DELETE FROM snapshot")
            state.head.snapshot = 0
            for chunk in chunks { try save(chunk, &state) }
        }
        state.holes.succeeded(change)
    }

    private func append(_ entry: Entry, _ state: inout State) throws {
        let index = entry.header.index
        let isEmpty = state.head.lastIndex <= state.head.trimmedThrough
        precondition(
            isEmpty || index - 1 <= state.head.lastIndex, "entries are appended without a gap, or to an empty log")
        try cut(from: index, &state)
        // An empty log may begin anywhere, and says where.
        if isEmpty { state.head.trimmedThrough = index - 1 }
        let seal = RecordSeal.of(entry: entry.bytes, index: index, salt: salt)
        state.head.lastIndex = index
        state.head.lastEntry = seal
        try statements.append.run(
            [.integer(Int64(clamping: index)), .integer(Int64(bitPattern: seal))], body: entry.bytes)
    }

    /// Takes the entries from an index on out of the log.
    private func cut(from index: UInt64, _ state: inout State) throws {
        // Almost always an entry comes behind all others, and costs no look at what is there.
        if index <= state.head.lastIndex {
            try statements.truncate.run([.integer(Int64(clamping: index))])
            state.head.lastIndex = index - 1
            let newest = try statements.entryChecksum.integer([.integer(Int64(clamping: index) - 1)])
            state.head.lastEntry = newest.map { UInt64(bitPattern: $0) } ?? 0
        }
        // The log begins anew below the mark: what comes here now is not trimmed, and what is before it is.
        state.head.trimmedThrough = min(state.head.trimmedThrough, index - 1)
        if state.head.lastIndex <= state.head.trimmedThrough { state.head.lastEntry = 0 }
    }

    private func trim(through index: UInt64, _ state: inout State) {
        guard index > state.head.trimmedThrough else { return }
        state.head.trimmedThrough = index
        if state.head.lastIndex <= index { state.head.lastEntry = 0 }
    }

    private func save(_ chunk: SnapshotChunk, _ state: inout State) throws {
        let number = Int64(chunk.number)
        let seal = RecordSeal.of(chunk, salt: salt)
        let old = try statements.oldChecksum.integer([.integer(number)]) ?? 0
        state.head.snapshot = state.head.snapshot &- UInt64(bitPattern: old) &+ seal
        try statements.saveChunk.run(
            [.integer(number), .integer(Int64(bitPattern: chunk.index)), .integer(Int64(bitPattern: seal))],
            body: chunk.bytes)
        try statements.markStale.run([.integer(number)])
    }

    private func deleteTrimmed(rows: Int, _ state: State) throws {
        let trimmedThrough = Int64(clamping: state.head.trimmedThrough)
        guard let oldest = try statements.oldest.integer(), oldest <= trimmedThrough else {
            hasTrimmedRows = false
            return
        }
        let last = min(trimmedThrough, oldest + Int64(rows) - 1)
        try statements.deleteRange.run([.integer(last)])
    }

    /// Empties the tables for people, but for the rows of some chunks.
    private func deleteRows(except kept: Set<UInt32>) throws {
        if !kept.contains(0) {
            try db.execute(
                sql: """
                    DELETE FROM torrents; DELETE FROM users; DELETE FROM access_list;
                    DELETE FROM meta WHERE key = '\(MetaKey.accessMode)'
                    """)
        }
        guard kept.contains(where: { $0 > 0 }) else {
            try db.execute(sql: "DELETE FROM peers; DELETE FROM swarms")
            return
        }
        let peers = try PreparedStatement(db, "DELETE FROM peers WHERE swarm BETWEEN ? AND ?")
        let swarms = try PreparedStatement(db, "DELETE FROM swarms WHERE id BETWEEN ? AND ?")
        var gone: [UInt32] = []
        let numbers = try PreparedStatement(db, "SELECT number FROM snapshot WHERE number BETWEEN 1 AND 2147483647")
        try numbers.forEach { columns in
            let number = UInt32(clamping: columns.integer(0))
            if !kept.contains(number) { gone.append(number) }
        }
        for number in gone {
            let range = SwarmRow.range(ofChunk: number)
            try peers.run([.integer(range.lowerBound), .integer(range.upperBound)])
            try swarms.run([.integer(range.lowerBound), .integer(range.upperBound)])
        }
    }
}
