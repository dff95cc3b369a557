/// Reads a record back: the promise, the chunks of the snapshot, and the entries after them.

import GRDB
import TrackerLogic

/// A piece of a record, as `Store.recover` hands them out.
public enum RecoveredRecord: Sendable, Equatable {
    case promise(Promise)
    case chunk(SnapshotChunk)
    case entry(index: UInt64, bytes: [UInt8])
}

struct StoreRecovery {
    let db: Database
    let path: String

    /// Hands out the record piece by piece; only one is in memory at a time.
    ///
    /// - Throws: `StoreError.damaged` at the first piece that is not what was written; what `visit` throws.
    func run(_ visit: (RecoveredRecord) throws -> Void) throws {
        if let promise = try promise() { try visit(.promise(promise)) }
        var sum: Int64 = 0
        try PreparedStatement(db, "SELECT number, idx, checksum, body FROM snapshot ORDER BY number")
            .forEach { columns in
                sum &+= columns.integer(2)
                guard let chunk = SnapshotChunk(columns) else {
                    throw damaged("chunk \(columns.integer(0)) of the snapshot is not what was written")
                }
                try visit(.chunk(chunk))
            }
        // A chunk that is gone leaves no trace but this: a shard that nobody has announced to has none either.
        guard try sum == StoreRecovery.snapshotSum(db) ?? 0 else {
            throw damaged("chunks of the snapshot are missing, or are older than the log")
        }
        try entries(visit)
    }

    /// The sum of the checksums of all chunks that should be there; nil before the first is saved.
    static func snapshotSum(_ db: Database) throws -> Int64? {
        try PreparedStatement(db, "SELECT value FROM meta WHERE key = ?").integer([.text(MetaKey.snapshotSum)])
    }

    private func entries(_ visit: (RecoveredRecord) throws -> Void) throws {
        let trimmed = try StoreRecovery.trimmedThrough(db)
        var last: Int64?
        try PreparedStatement(db, "SELECT idx, checksum, entry FROM log WHERE idx > ? ORDER BY idx")
            .forEach([.integer(trimmed)]) { columns in
                let index = columns.integer(0)
                let entry = columns.blob(2)
                // A log with a hole would vote for what it has not seen.
                if let last, index != last + 1 { throw damaged("entry \(last + 1) is missing from the log") }
                guard checksum(entry, seed: UInt64(bitPattern: index)) == columns.integer(1) else {
                    throw damaged("entry \(index) of the log is not what was written")
                }
                last = index
                try visit(.entry(index: UInt64(bitPattern: index), bytes: entry))
            }
    }

    private func promise() throws -> Promise? {
        var numbers: [String: Int64] = [:]
        var secret: [UInt8] = []
        try PreparedStatement(db, "SELECT key, value FROM meta").forEach { columns in
            let key = columns.text(0)
            if key == MetaKey.secret {
                secret = columns.blob(1)
            } else {
                numbers[key] = columns.integer(1)
            }
        }
        guard numbers[MetaKey.promiseChecksum] != nil || !secret.isEmpty else { return nil }
        guard let promise = Promise(numbers: numbers, secret: secret) else {
            throw damaged("the promise is not what was written")
        }
        return promise
    }

    private func damaged(_ detail: String) -> StoreError { .damaged(path: path, detail: detail) }

    /// The last entry that was trimmed; its row, and those before, may still be there.
    static func trimmedThrough(_ db: Database) throws -> Int64 {
        try PreparedStatement(db, "SELECT value FROM meta WHERE key = ?")
            .integer([.text(MetaKey.trimmedThrough)]) ?? 0
    }
}

extension SnapshotChunk {
    /// Reads (number, idx, checksum, body).
    ///
    /// - Returns: nil where that is not what was written.
    init?(_ columns: Columns) {
        guard let number = UInt32(exactly: columns.integer(0)) else { return nil }
        self.init(number: number, index: UInt64(bitPattern: columns.integer(1)), bytes: columns.blob(3))
        guard checksum == columns.integer(2) else { return nil }
    }
}
