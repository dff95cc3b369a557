// The directory and the file of a record.

import Foundation
import GRDB
import Primitives

/// The directory and the file of a record, and the connections to it.
enum StoreFile {
    /// Makes the directory where it is missing.
    static func makeDirectory(_ directory: String) throws(StoreError) {
        var status = stat()
        if stat(directory, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else { throw .notADirectory(path: directory) }
        } else {
            guard errno == ENOENT else { throw StoreError(errorNumber: errno, path: directory) }
            guard mkdir(directory, 0o750) == 0 || errno == EEXIST else {
                guard errno == ENOENT else { throw StoreError(errorNumber: errno, path: directory) }
                throw .parentMissing(directory: directory)
            }
            // Else a loss of power could take the whole directory back.
            sync(directory + "/..")
        }
    }

    /// Makes the file where it is missing: it holds the cluster's secret and passkeys, so strangers may not read it.
    ///
    /// SQLite gives its companions the same permissions.
    static func makeFile(_ path: String, in directory: String) throws(StoreError) {
        if access(path, F_OK) != 0 {
            // Companions of a database that is gone: SQLite would take them for those of the new one.
            for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
        }
        // Whoever can write into the directory is not to choose what is written over.
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o640)
        guard descriptor >= 0 else {
            guard errno != EISDIR else { throw .notADatabase(path: path) }
            throw openingError(errno, path: path, directory: directory)
        }
        // No connection of this process is open yet whose locks this could give up.
        close(descriptor)
        sync(directory)
    }

    /// Records that are set aside at most; with more, something is wrong that a person should see.
    private static let maxSetAside = 99

    /// A name for a database that is to be set aside: one that nothing has.
    static func placeAside(_ path: String) throws(StoreError) -> String {
        let names = (1...maxSetAside).map { number in "\(path).unreadable-\(number)" }
        func isFree(_ name: String) -> Bool { ["", "-wal", "-mark"].allSatisfy { access(name + $0, F_OK) != 0 } }
        guard let free = names.first(where: isFree) else {
            throw .failed(path: path, reason: "\(maxSetAside) unreadable ones have been set aside already")
        }
        return free
    }

    /// Gives a database and its companions another name.
    static func setAside(_ path: String, as place: String, in directory: String) throws(StoreError) {
        // The companions last: a database without them could be read, and would lack what was written last.
        for suffix in ["", "-wal", "-shm"] where access(path + suffix, F_OK) == 0 {
            guard rename(path + suffix, place + suffix) == 0 else { throw StoreError(errorNumber: errno, path: path) }
        }
        sync(directory)
    }

    /// Why a file could not be opened or made: where it is missing, its directory is what stands in the way.
    static func openingError(_ errorNumber: Int32, path: String, directory: String) -> StoreError {
        StoreError(errorNumber: errorNumber, path: errorNumber == ELOOP || access(path, F_OK) == 0 ? path : directory)
    }

    /// Brings the names in a directory to the disk, as far as its file system can.
    static func sync(_ directory: String) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    /// Opens the file to sync it beside SQLite.
    static func descriptor(_ path: String) throws(StoreError) -> Int32 {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreError(errorNumber: errno, path: path) }
        return descriptor
    }

    /// Closes a descriptor, after all connections.
    static func close(_ descriptor: Int32) { _ = Foundation.close(descriptor) }

    /// Gives the room of a database that has become small back to its disk: after an orderly stop, which empties the
    /// swarms.
    ///
    /// A large one keeps its room, which it will need again and which would take long to copy.
    static func shrink(_ db: Database) throws {
        let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
        let used = try pages - (Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0)
        if used <= 1_024, pages > 4 * used { try db.execute(sql: "VACUUM") }
    }

    /// Connects to a file that is there for reading only.
    ///
    /// While such a connection is open, and where it closes last, the write-ahead log stays as it is: SQLite would
    /// copy it into the database and remove it, and with it what it still holds behind a damaged page.
    static func connectReadOnly(_ path: String, _ options: StoreOptions) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.label = "store-reader"
        configuration.busyMode = .timeout(Double(options.busyTimeout.nanoseconds) / 1e9)
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    /// Bytes of a file; 0 where it is missing.
    static func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Connects to a file that is there, changing nothing in it.
    static func connect(_ path: String, _ options: StoreOptions, label: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.label = label
        configuration.busyMode = .timeout(Double(options.busyTimeout.nanoseconds) / 1e9)
        // Rows are replaced in an order that keeps every reference; to look each of them up would double the work.
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { db in
            let synchronous =
                switch options.durability {
                case .disk: "FULL"
                case .process: "NORMAL"
                }
            // secure_delete, which Debian turns on, would write all that is deleted once more. Checkpoints are ours
            // to time (`CheckpointPolicy`); what the write-ahead log has grown beyond the limit is cut off again.
            try db.execute(
                sql: """
                    PRAGMA synchronous = \(synchronous);
                    PRAGMA secure_delete = OFF;
                    PRAGMA wal_autocheckpoint = 0;
                    PRAGMA journal_size_limit = \(CheckpointPolicy.hardLimit * 4_096);
                    PRAGMA cache_size = -16384;
                    PRAGMA temp_store = MEMORY;
                    """)
            if let limit = options.maxByteCount {
                try db.execute(sql: "PRAGMA max_page_count = \(max(limit / 4_096, 1))")
            }
        }
        return try DatabaseQueue(path: path, configuration: configuration)
    }
}
