/// Carries out writes: all that are there in one transaction, and one by one where that transaction fails.
///
/// Deviation from the letter of `Persist.Change`: a trim only moves a mark (`trimmed_through`); the rows go a few at a
/// time, with the entries that follow and in idle moments. Deleting a row makes SQLite read its whole chain of pages,
/// and a long trim in one transaction held up the log for tenths of a second.
///
/// Lives on the storage thread.

import GRDB
import TrackerLogic

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
        var holes = RecordGuard()
        var trimmedThrough: Int64
        /// The last entry whose row is there; 0 where there is none.
        var lastIndex: Int64
        /// The sum of the checksums of all chunks.
        var snapshotSum: Int64
    }

    private struct Statements {
        let setMeta: PreparedStatement
        let append: PreparedStatement
        let truncate: PreparedStatement
        let oldest: PreparedStatement
        let newest: PreparedStatement
        let deleteRange: PreparedStatement
        let oldChecksum: PreparedStatement
        let saveChunk: PreparedStatement
        let markStale: PreparedStatement
    }

    private static let newestEntry = "SELECT max(idx) FROM log"

    init(_ db: Database) throws {
        self.db = db
        state = State(
            trimmedThrough: try StoreRecovery.trimmedThrough(db),
            lastIndex: try PreparedStatement(db, RecordWriter.newestEntry).integer() ?? 0,
            snapshotSum: try StoreRecovery.snapshotSum(db) ?? 0)
        statements = try Statements(
            setMeta: PreparedStatement(db, "REPLACE INTO meta (key, value) VALUES (?, ?)"),
            append: PreparedStatement(db, "INSERT INTO log (idx, checksum, entry) VALUES (?, ?, ?)"),
            truncate: PreparedStatement(db, "DELETE FROM log WHERE idx >= ?"),
            oldest: PreparedStatement(db, "SELECT min(idx) FROM log"),
            newest: PreparedStatement(db, RecordWriter.newestEntry),
            deleteRange: PreparedStatement(db, "DELETE FROM log WHERE idx <= ?"),
            oldChecksum: PreparedStatement(db, "SELECT checksum FROM snapshot WHERE number = ?"),
            saveChunk: PreparedStatement(
                db, "REPLACE INTO snapshot (number, idx, checksum, body) VALUES (?, ?, ?, ?)"),
            markStale: PreparedStatement(db, "DELETE FROM tabled WHERE chunk = ?"))
    }

    /// Carries out writes in order.
    ///
    /// - Parameter results: what became of each, appended in the same order.
    func carryOut(_ group: ArraySlice<Persist>, results: inout [(PersistToken, StorageFailure?)]) -> Outcome {
        var outcome = Outcome()
        if isBroken {
            for persist in group { results.append((persist.token, .broken)) }
            outcome.failures = group.count
            return outcome
        }
        let start = results.count
        do {
            try transaction { state in
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
            outcome.failure = (failure, StoreError.text(of: error))
            switch failure {
            case .broken: fail(group, .broken, &results)
            // Who holds the database now holds it for the single writes too; each would wait as long again.
            case .locked: fail(group, .locked, &results)
            case .full, .readOnly: carryOutSingly(group, results: &results)
            }
        }
        note(group, results[start...], &outcome)
        return outcome
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
                try transaction { state in try apply(persist.change, &state) }
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
            case .promise, .append, .truncate:
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
        case .append(let index, let entry):
            try append(Int64(clamping: index), entry, &state)
        case .truncate(let index):
            try cut(from: Int64(clamping: index), &state)
        case .saveChunk(let chunk):
            try save(chunk, &state)
        case .trim(let index):
            let index = Int64(clamping: index)
            if index > state.trimmedThrough { try setTrimmed(index, &state) }
        case .replaceAll(let chunks):
            try db.execute(sql: "DELETE FROM log")
            state.lastIndex = 0
            try setTrimmed(0, &state)
            try deleteRows(except: Set(chunks.map(\.number)))
            try db.execute(sql: "DELETE FROM tabled; DELETE FROM snapshot")
            try setSnapshotSum(0, &state)
            for chunk in chunks { try save(chunk, &state) }
        }
        state.holes.succeeded(change)
    }

    private func append(_ index: Int64, _ entry: [UInt8], _ state: inout State) throws {
        precondition(
            index - 1 <= state.lastIndex || state.lastIndex <= state.trimmedThrough,
            "entries are appended without a gap, or to an empty log")
        try cut(from: index, &state)
        state.lastIndex = index
        let sum = checksum(entry, seed: UInt64(bitPattern: index))
        try statements.append.run([.integer(index), .integer(sum)], body: entry)
    }

    /// Takes the entries from an index on out of the log.
    private func cut(from index: Int64, _ state: inout State) throws {
        // Almost always an entry comes behind all others, and costs no look at what is there.
        if index <= state.lastIndex {
            try statements.truncate.run([.integer(index)])
            state.lastIndex = try statements.newest.integer() ?? 0
        }
        // The log begins anew below the mark: what comes here now is not trimmed, and what is before it is.
        if index <= state.trimmedThrough { try setTrimmed(index - 1, &state) }
    }

    private func save(_ chunk: SnapshotChunk, _ state: inout State) throws {
        let number = Int64(chunk.number)
        let sum = chunk.checksum
        let old = try statements.oldChecksum.integer([.integer(number)]) ?? 0
        try setSnapshotSum(state.snapshotSum &- old &+ sum, &state)
        try statements.saveChunk.run(
            [.integer(number), .integer(Int64(bitPattern: chunk.index)), .integer(sum)], body: chunk.bytes)
        try statements.markStale.run([.integer(number)])
    }

    private func setSnapshotSum(_ sum: Int64, _ state: inout State) throws {
        state.snapshotSum = sum
        try statements.setMeta.run([.text(MetaKey.snapshotSum), .integer(sum)])
    }

    private func setTrimmed(_ index: Int64, _ state: inout State) throws {
        state.trimmedThrough = index
        try statements.setMeta.run([.text(MetaKey.trimmedThrough), .integer(index)])
    }

    private func deleteTrimmed(rows: Int, _ state: State) throws {
        guard let oldest = try statements.oldest.integer(), oldest <= state.trimmedThrough else {
            hasTrimmedRows = false
            return
        }
        let last = min(state.trimmedThrough, oldest + Int64(rows) - 1)
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
