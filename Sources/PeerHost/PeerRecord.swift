// Which torrents there are, over restarts.

import Foundation
import GRDB
import Glibc
import Primitives
import Web
import Wire

/// What is kept of one transfer, but the torrent itself.
struct TransferRow: Sendable, Equatable {
    var infoHash: InfoHash
    /// Whether only a magnet link is known of it.
    var isMagnet = false
    /// Further trackers, each a tier of its own.
    var extraTrackers: [String] = []
    /// Below the peer's directory.
    var directory = ""
    /// Nil for all.
    var files: [Int]?
    var maxDown: Int?
    var maxUp: Int?
    /// Nil for as many as usual.
    var maxPeers: Int?
    var ratio: Double?
    var isPaused = false
    /// Nothing is fetched and nothing written: the data is whoever's made the torrent of it.
    var isSeedOnly = false
    var addedAt: Int64 = 0
    var completedAt: Int64?
    /// In all lives of the program but this one.
    var received = 0
    var sent = 0

    init(infoHash: InfoHash) { self.infoHash = infoHash }
}

/// Which torrents there are, over restarts: an SQLite file in the peer's directory, held by one process at a time.
///
/// What is answered is in the record: each change is one transaction, and waits for the disk.
final class PeerRecord: Sendable {
    /// As `PRAGMA user_version` has it.
    private static let version = 1

    private let database: DatabaseQueue
    private let lock: CInt

    /// Opens the record of a directory, or makes it.
    ///
    /// - Throws: `PeerHostError`: where another process has it, where it is damaged or of a later version.
    init(directory: String) throws(PeerHostError) {
        let path = "\(directory)/.swarmkeeper-peer.sqlite"
        let lockPath = "\(directory)/.swarmkeeper-peer.lock"
        let descriptor = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o640)
        guard descriptor >= 0 else {
            throw PeerHostError("\(lockPath) cannot be opened: \(String(cString: strerror(errno)))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(descriptor)
            throw PeerHostError("another peer runs in \(directory); stop it, or name another directory by --path")
        }
        do {
            database = try Self.opened(path)
        } catch {
            Glibc.close(descriptor)
            throw Self.problem(error, path)
        }
        lock = descriptor
    }

    deinit { Glibc.close(lock) }

    /// Lets another have the directory; nothing can be written any more.
    func close() {
        try? database.close()
        flock(lock, LOCK_UN)
    }

    private struct LaterVersion: Error {}

    private static func opened(_ path: String) throws -> DatabaseQueue {
        let database = try DatabaseQueue(path: path)
        try database.write { db in
            let found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            guard found <= version else { throw LaterVersion() }
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS TRANSFER (
                        info_hash BLOB PRIMARY KEY, is_magnet INTEGER NOT NULL, source BLOB NOT NULL,
                        extra_trackers TEXT NOT NULL, directory TEXT NOT NULL, files TEXT, max_down INTEGER,
                        max_up INTEGER, max_peers INTEGER, ratio REAL, is_paused INTEGER NOT NULL,
                        is_seed_only INTEGER NOT NULL, added_at INTEGER NOT NULL, completed_at INTEGER,
                        received INTEGER NOT NULL, sent INTEGER NOT NULL);
                    CREATE TABLE IF NOT EXISTS SETTING (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
                    PRAGMA user_version = \(version);
                    """)
        }
        return database
    }

    private static func problem(_ error: any Error, _ path: String) -> PeerHostError {
        switch error {
        case is LaterVersion:
            return PeerHostError("\(path) is of a later version of this program; use that one, or another directory")
        case let error as DatabaseError
        where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode.primaryResultCode):
            return PeerHostError(
                "\(path) is damaged (\(error.message ?? "no reason")); put a copy in its place, or move it away to "
                    + "begin without transfers: their data stays where it is")
        case let error as DatabaseError: return PeerHostError("\(path): \(error.message ?? "\(error.resultCode)")")
        default: return PeerHostError("\(path): \(error)")
        }
    }

    /// Does something with the database, with its failures as refusals.
    private func on<Value>(_ body: (Database) throws -> Value) throws(PeerRefusal) -> Value {
        do {
            return try database.write(body)
        } catch let error as DatabaseError {
            throw PeerRefusal(.disk, "the peer's record cannot be used: \(error.message ?? "\(error.resultCode)")")
        } catch {
            throw PeerRefusal(.disk, "the peer's record cannot be used: \(error)")
        }
    }

    // MARK: - Transfers

    /// All that there are, the oldest first.
    func transfers() throws(PeerRefusal) -> [TransferRow] {
        try on { db in
            try Row.fetchAll(db, sql: "SELECT \(Self.columns) FROM TRANSFER ORDER BY added_at, rowid")
                .compactMap(Self.read)
        }
    }

    private static let columns = """
        info_hash, is_magnet, extra_trackers, directory, files, max_down, max_up, max_peers, ratio, is_paused, \
        is_seed_only, added_at, completed_at, received, sent
        """

    private static func read(_ row: Row) -> TransferRow? {
        guard let bytes = Data.fromDatabaseValue(row["info_hash"]), let hash = Bytes20(bytes) else { return nil }
        var result = TransferRow(infoHash: InfoHash(hash))
        result.isMagnet = row["is_magnet"]
        let extra: String = row["extra_trackers"]
        result.extraTrackers = extra.split(separator: "\n").map(String.init)
        result.directory = row["directory"]
        let files: String? = row["files"]
        result.files = files.map { $0.split(separator: ",").compactMap { Int($0) } }
        (result.maxDown, result.maxUp) = (row["max_down"], row["max_up"])
        (result.maxPeers, result.ratio) = (row["max_peers"], row["ratio"])
        (result.isPaused, result.isSeedOnly) = (row["is_paused"], row["is_seed_only"])
        (result.addedAt, result.completedAt) = (row["added_at"], row["completed_at"])
        (result.received, result.sent) = (row["received"], row["sent"])
        return result
    }

    /// The bytes of a .torrent file, or of a magnet link.
    func source(_ hash: InfoHash) throws(PeerRefusal) -> [UInt8]? {
        try on { db in
            try Data.fetchOne(
                db, sql: "SELECT source FROM TRANSFER WHERE info_hash = ?", arguments: [Data(hash.bytes.bytes)])
        }.map { [UInt8]($0) }
    }

    /// Keeps a transfer that was not there.
    func insert(_ row: TransferRow, source: [UInt8]) throws(PeerRefusal) {
        try on { db in
            try db.execute(
                sql: """
                    INSERT INTO TRANSFER (\(Self.columns), source)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """, arguments: Self.arguments(row) + [Data(source)])
        }
    }

    private static func arguments(_ row: TransferRow) -> StatementArguments {
        [
            Data(row.infoHash.bytes.bytes), row.isMagnet, row.extraTrackers.joined(separator: "\n"), row.directory,
            row.files.map { $0.map(String.init).joined(separator: ",") }, row.maxDown, row.maxUp, row.maxPeers,
            row.ratio, row.isPaused, row.isSeedOnly, row.addedAt, row.completedAt, row.received, row.sent,
        ]
    }

    /// Keeps a transfer that is there as it is now.
    func update(_ row: TransferRow) throws(PeerRefusal) {
        let names = Self.columns.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\n" } }
        let marks = names.map { "\($0) = ?" }.joined(separator: ", ")
        try on { db in
            try db.execute(
                sql: "UPDATE TRANSFER SET \(marks) WHERE info_hash = ?",
                arguments: Self.arguments(row) + [Data(row.infoHash.bytes.bytes)])
        }
    }

    /// Notes the .torrent file of what was a magnet link.
    func setFile(_ hash: InfoHash, _ bytes: [UInt8]) throws(PeerRefusal) {
        try on { db in
            try db.execute(
                sql: "UPDATE TRANSFER SET is_magnet = 0, source = ? WHERE info_hash = ?",
                arguments: [Data(bytes), Data(hash.bytes.bytes)])
        }
    }

    /// Notes what has come and gone, of many.
    func setTotals(_ totals: [(hash: InfoHash, received: Int, sent: Int)]) throws(PeerRefusal) {
        try on { db in
            for (hash, received, sent) in totals {
                try db.execute(
                    sql: "UPDATE TRANSFER SET received = ?, sent = ? WHERE info_hash = ?",
                    arguments: [received, sent, Data(hash.bytes.bytes)])
            }
        }
    }

    /// Forgets a transfer.
    func delete(_ hash: InfoHash) throws(PeerRefusal) {
        try on { db in
            try db.execute(sql: "DELETE FROM TRANSFER WHERE info_hash = ?", arguments: [Data(hash.bytes.bytes)])
        }
    }

    // MARK: - Settings

    /// The limits for all transfers together.
    func limits() throws(PeerRefusal) -> (maxDown: Int?, maxUp: Int?) {
        try on { db in
            func value(_ name: String) throws -> Int? {
                try Int.fetchOne(db, sql: "SELECT value FROM SETTING WHERE name = ?", arguments: [name])
            }
            return (try value("max_down"), try value("max_up"))
        }
    }

    /// Keeps the limits for all transfers together.
    func setLimits(maxDown: Int?, maxUp: Int?) throws(PeerRefusal) {
        try on { db in
            for (name, value) in [("max_down", maxDown), ("max_up", maxUp)] {
                try db.execute(sql: "INSERT OR REPLACE INTO SETTING VALUES (?, ?)", arguments: [name, value])
            }
        }
    }
}
