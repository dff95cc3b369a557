// Prepared statements for what is done often.

import GRDB
import GRDBSQLite
import Primitives

/// A value on its way into a statement.
///
/// Everything else goes through GRDB.
enum SQLValue: Sendable {
    case integer(Int64)
    case text(String)
    case blob([UInt8])
    case bytes20(Bytes20)
}

/// A statement that is prepared once.
///
/// Belongs to the thread of its connection, and must be gone before that closes.
struct PreparedStatement {
    private let statement: Statement

    init(_ db: Database, _ sql: String) throws {
        statement = try db.makeStatement(sql: sql)
    }

    /// Carries the statement out to its end.
    ///
    /// - Parameters:
    ///   - values: bound in order.
    ///   - body: bound behind the other values, without a copy.
    /// - Throws: what SQLite says.
    func run(_ values: [SQLValue] = [], body: [UInt8]? = nil) throws {
        let raw = statement.sqliteStatement
        try bind(values)
        defer {
            sqlite3_reset(raw)
            sqlite3_clear_bindings(raw)
        }
        guard let body else {
            try step(raw)
            return
        }
        try body.withUnsafeBytes { bytes in
            // An array may have no address where it is empty, and a blob without one would be NULL.
            let code =
                bytes.isEmpty
                ? sqlite3_bind_zeroblob(raw, Int32(values.count + 1), 0)
                : sqlite3_bind_blob64(raw, Int32(values.count + 1), bytes.baseAddress, UInt64(bytes.count), nil)
            guard code == SQLITE_OK else { throw error(code) }
            try step(raw)
        }
    }

    /// Hands each row to `visit`.
    func forEach(_ values: [SQLValue] = [], _ visit: (Columns) throws -> Void) throws {
        let raw = statement.sqliteStatement
        try bind(values)
        defer {
            sqlite3_reset(raw)
            sqlite3_clear_bindings(raw)
        }
        while true {
            switch sqlite3_step(raw) {
            case SQLITE_ROW: try visit(Columns(raw: raw))
            case SQLITE_DONE: return
            case let code: throw error(code)
            }
        }
    }

    /// The first column of the first row, where there is one and it is not NULL.
    func integer(_ values: [SQLValue] = []) throws -> Int64? {
        var result: Int64?
        try forEach(values) { columns in
            if result == nil, !columns.isNull(0) { result = columns.integer(0) }
        }
        return result
    }

    private func step(_ raw: OpaquePointer) throws {
        while true {
            switch sqlite3_step(raw) {
            case SQLITE_ROW: continue
            case SQLITE_DONE: return
            case let code: throw error(code)
            }
        }
    }

    private func bind(_ values: [SQLValue]) throws {
        let raw = statement.sqliteStatement
        for (offset, value) in values.enumerated() {
            let index = Int32(offset + 1)
            let code =
                switch value {
                case .integer(let number): sqlite3_bind_int64(raw, index, number)
                case .text(var text):
                    text.withUTF8 { bytes in
                        bytes.withMemoryRebound(to: CChar.self) { characters in
                            sqlite3_bind_text64(
                                raw, index, characters.baseAddress ?? PreparedStatement.nothing,
                                UInt64(characters.count), PreparedStatement.copied, UInt8(SQLITE_UTF8))
                        }
                    }
                case .blob(let bytes):
                    bytes.isEmpty
                        ? sqlite3_bind_zeroblob(raw, index, 0)
                        : sqlite3_bind_blob64(raw, index, bytes, UInt64(bytes.count), PreparedStatement.copied)
                case .bytes20(let value):
                    withUnsafeBytes(of: value) { bytes in
                        sqlite3_bind_blob(raw, index, bytes.baseAddress, 20, PreparedStatement.copied)
                    }
                }
            guard code == SQLITE_OK else { throw error(code) }
        }
    }

    private func error(_ code: Int32) -> DatabaseError {
        let message = sqlite3_db_handle(statement.sqliteStatement).map { String(cString: sqlite3_errmsg($0)) }
        return DatabaseError(resultCode: ResultCode(rawValue: code), message: message, sql: statement.sql)
    }

    /// SQLite's SQLITE_TRANSIENT: the value is copied at once.
    private static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    /// What an empty text points to.
    nonisolated(unsafe) private static let nothing: UnsafePointer<CChar> = {
        let byte = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
        byte.initialize(to: 0)
        return UnsafePointer(byte)
    }()
}

/// A row, while the statement stands on it.
struct Columns {
    fileprivate let raw: OpaquePointer

    func isNull(_ index: Int32) -> Bool { sqlite3_column_type(raw, index) == SQLITE_NULL }

    func integer(_ index: Int32) -> Int64 { sqlite3_column_int64(raw, index) }

    func text(_ index: Int32) -> String {
        guard let bytes = sqlite3_column_blob(raw, index) else { return "" }
        let count = Int(sqlite3_column_bytes(raw, index))
        return String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    func blob(_ index: Int32) -> [UInt8] {
        guard let bytes = sqlite3_column_blob(raw, index) else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(raw, index))))
    }
}

/// Counts the pages in the write-ahead log: SQLite tells them after each commit.
final class WALGauge {
    /// Pages in the log right after the last commit of this connection.
    private(set) var pages = 0

    /// Takes the place of SQLite's automatic checkpoints on this connection.
    init(_ db: Database) {
        sqlite3_wal_hook(
            db.sqliteConnection,
            { context, _, _, pages in
                guard let context else { return SQLITE_OK }
                Unmanaged<WALGauge>.fromOpaque(context).takeUnretainedValue().pages = Int(pages)
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Must be called before the gauge goes.
    func remove(from db: Database) { sqlite3_wal_hook(db.sqliteConnection, nil, nil) }
}
