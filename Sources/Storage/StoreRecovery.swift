// Reads a record back.

import GRDB
import TrackerLogic
import Wire

/// A piece of a record, as `Store.recover` hands them out.
public enum RecoveredRecord: Sendable, Equatable {
    case promise(Promise)
    case chunk(SnapshotChunk)
    case entry(index: UInt64, bytes: [UInt8])
}

/// Reads a record back: the promise, the chunks of the snapshot, and the entries after them; and judges them on the way
/// (`RecordAudit`).
struct StoreRecovery {
    let db: Database
    let path: String
    /// nil where it says nothing.
    let mark: RecordMark?

    /// Hands out the record piece by piece; only one is in memory at a time.
    ///
    /// - Throws: `StoreError.damaged` at the first piece that is not what was written; what `visit` throws.
    func run(_ visit: (RecoveredRecord) throws -> Void) throws {
        do {
            var audit = try StoreRecovery.audit(db, mark)
            let promise = try StoreRecovery.promise(db)
            try audit.check(promise)
            if let promise { try visit(.promise(promise)) }
            try StoreRecovery.forEachChunk(db) { chunk, seal in
                try audit.check(chunk, seal: seal)
                try visit(.chunk(chunk))
            }
            // A chunk that is gone leaves no trace but this: a shard that nobody has announced to has none either.
            try audit.checkSnapshot()
            try StoreRecovery.forEachEntry(db) { index, bytes, seal in
                try audit.check(entry: bytes, index: index, seal: seal)
                if index > audit.trimmedThrough { try visit(.entry(index: index, bytes: bytes)) }
            }
            try audit.checkLog()
        } catch let damage as RecordDamage {
            throw StoreError.damaged(path: path, detail: "\(damage)")
        }
    }

    /// Hands out what is left of a damaged record: what is sound by itself.
    ///
    /// Entries end at the first that is not: what follows it means something else without it.
    ///
    /// - Throws: what SQLite says where not even a part can be read; what `visit` throws.
    func salvage(_ visit: (RecoveredRecord) throws -> Void) throws {
        let salt = try? StoreRecovery.salt(db)
        let head = try? StoreRecovery.head(db).head
        let promise = (try? StoreRecovery.promise(db)) ?? nil
        if let promise, let salt, head == nil || head?.promise == RecordSeal.of(promise, salt: salt) {
            try visit(.promise(promise))
        }
        guard let salt else { return }
        try? StoreRecovery.forEachChunk(db) { chunk, seal in
            guard seal == RecordSeal.of(chunk, salt: salt), chunk.excess == nil else { return }
            try visit(.chunk(chunk))
        }
        var last: UInt64?
        try? StoreRecovery.forEachEntry(db) { index, bytes, seal in
            guard index > head?.trimmedThrough ?? 0 else { return }
            guard index == last.map({ $0 + 1 }) ?? index, index <= NumberBounds.index,
                seal == RecordSeal.of(entry: bytes, index: index, salt: salt)
            else { throw RecordDamage.entry(index) }
            last = index
            try visit(.entry(index: index, bytes: bytes))
        }
    }

    /// Compares the head with the mark.
    static func audit(_ db: Database, _ mark: RecordMark?) throws -> RecordAudit {
        let (salt, head) = try head(db)
        return try RecordAudit(head, salt: salt, mark: mark)
    }

    /// - Throws: `RecordDamage` where it is not what was written.
    static func head(_ db: Database) throws -> (salt: UInt64, head: RecordHead) {
        let salt = try salt(db)
        var row: [UInt8] = []
        try PreparedStatement(db, "SELECT value FROM meta WHERE key = ?").forEach([.text(MetaKey.head)]) { columns in
            row = columns.blob(0)
        }
        guard let head = RecordHead(sealed: row, salt: salt) else { throw RecordDamage.headUnreadable }
        if let excess = head.excess { throw RecordDamage.beyondBounds(excess) }
        return (salt, head)
    }

    static func salt(_ db: Database) throws -> UInt64 {
        let salt = try PreparedStatement(db, "SELECT value FROM meta WHERE key = ?")
            .integer([.text(MetaKey.salt)])
        guard let salt else { throw RecordDamage.headUnreadable }
        return UInt64(bitPattern: salt)
    }

    /// - Throws: `RecordDamage` where a number in it is beyond its bound.
    static func promise(_ db: Database) throws -> Promise? {
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
        let promise = Promise(numbers: numbers, secret: secret)
        if let excess = promise?.excess { throw RecordDamage.beyondBounds(excess) }
        return promise
    }

    /// Where the last entry of the log brings a state to; nil where the log is empty, or the entry is damaged.
    static func lastPosition(_ db: Database, _ head: RecordHead) throws -> Position? {
        guard head.lastIndex > head.trimmedThrough else { return nil }
        var position: Position?
        try PreparedStatement(db, "SELECT entry FROM log WHERE idx = ?")
            .forEach([.integer(Int64(clamping: head.lastIndex))]) { columns in
                position = (try? Entry(columns.blob(0)))?.position
            }
        return position
    }

    private static func forEachChunk(_ db: Database, _ body: (SnapshotChunk, UInt64) throws -> Void) throws {
        try PreparedStatement(db, "SELECT number, idx, checksum, body FROM snapshot ORDER BY number")
            .forEach { columns in
                guard let number = UInt32(exactly: columns.integer(0)) else { throw RecordDamage.snapshot }
                let index = UInt64(bitPattern: columns.integer(1))
                try body(
                    SnapshotChunk(number: number, index: index, bytes: columns.blob(3)),
                    UInt64(bitPattern: columns.integer(2)))
            }
    }

    private static func forEachEntry(_ db: Database, _ body: (UInt64, [UInt8], UInt64) throws -> Void) throws {
        try PreparedStatement(db, "SELECT idx, checksum, entry FROM log ORDER BY idx").forEach { columns in
            try body(
                UInt64(bitPattern: columns.integer(0)), columns.blob(2), UInt64(bitPattern: columns.integer(1)))
        }
    }
}
