// Why a record cannot be opened or read, in words for the operator.

import Foundation
import GRDB
import GRDBSQLite
import TrackerLogic

/// Why a record cannot be opened or read, in words for the operator: the thing, the cause and the way out.
public enum StoreError: Error, Sendable, Equatable {
    /// The directory is not there, nor the one that it would be made in.
    case parentMissing(directory: String)
    case notADirectory(path: String)
    case noPermission(path: String)
    case readOnly(path: String)
    /// Another tracker holds the directory; its process id where it could be read.
    case inUse(directory: String, processID: Int32?)
    /// A program other than a tracker keeps a lock on the database.
    case locked(path: String)
    case full(path: String)
    /// Bytes are not what they were when they were written.
    case damaged(path: String, detail: String)
    case notADatabase(path: String)
    /// An SQLite database that some other application made.
    case foreign(path: String)
    /// Written by a tracker whose records are no longer read.
    case earlierVersion(path: String, found: Int, supported: Int)
    case laterVersion(path: String, found: Int, supported: Int)
    /// A tracker stopped while it fetched the state from others: what it has is neither the old nor the new.
    case incomplete(path: String)
    /// Anything else that the system or SQLite had to say.
    case failed(path: String, reason: String)
}

extension StoreError: CustomStringConvertible {
    /// A sentence or two that name the file, the cause and the way out.
    public var description: String {
        switch self {
        case .parentMissing(let directory):
            "The data directory \(directory) cannot be made because its parent does not exist. "
                + "Make the parent, or name another directory."
        case .notADirectory(let path):
            "\(path) is not a directory, so no record can be kept in it. "
                + "Name another directory, or move that file away."
        case .noPermission(let path):
            "This user may not read and write \(path). "
                + "Give it to the user that runs the tracker (chown), or name another directory."
        case .readOnly(let path):
            "\(path) is on a file system that is mounted read-only. Mount it writable, or name another directory."
        case .inUse(let directory, let processID):
            "The record in \(directory) is in use by another tracker\(processID.map { " (process \($0))" } ?? ""). "
                + "Stop that one, or give each tracker a directory of its own."
        case .locked(let path):
            "Another program keeps the database \(path) locked. Close it there and start the tracker again."
        case .full(let path):
            "There is no room left for the database \(path). Free some space on its disk and start the tracker again."
        case .damaged(let path, let detail):
            "The database \(path) is damaged (\(detail)). "
                + "Bring back a good copy of it and its mark, or start the tracker once with --accept-loss: it goes on "
                + "with what is left, and keeps the damaged files under another name."
        case .notADatabase(let path):
            "\(path) is not an SQLite database. Move that file away, or name another directory."
        case .foreign(let path):
            "\(path) is the database of another application. Move that file away, or name another directory."
        case .earlierVersion(let path, let found, let supported):
            "The database \(path) has version \(found), and this tracker reads none before \(supported), because "
                + "entries and promises are written down in another way since. "
                + "Use the tracker that wrote it, or move the database away and begin with an empty record."
        case .laterVersion(let path, let found, let supported):
            "The database \(path) has version \(found), and this tracker knows versions up to \(supported). "
                + "Use the tracker that wrote it or a later one, or name another directory."
        case .incomplete(let path):
            "The database \(path) holds a part of the state only, because its tracker stopped while it was fetching "
                + "the rest from others, and without a bus there is nobody to fetch it from. "
                + "Start the tracker with its bus, or once with --accept-loss to go on with what there is."
        case .failed(let path, let reason):
            "The database \(path) cannot be used: \(reason). Put that right and start the tracker again."
        }
    }
}

extension StoreError {
    /// Whether the database is there and can be opened, and yet not be read: it is damaged, or another program's
    /// version.
    package var isUnreadable: Bool {
        switch self {
        case .damaged, .notADatabase, .earlierVersion, .laterVersion: true
        case .parentMissing, .notADirectory, .noPermission, .readOnly, .inUse, .locked, .full, .foreign, .incomplete,
            .failed:
            false
        }
    }

    /// Whether it holds a part of the state only, and says so itself.
    package var isPartial: Bool { if case .incomplete = self { true } else { false } }

    /// The first sentence of the description.
    package var cause: String {
        let text = description
        return text.range(of: ". ").map { String(text[..<$0.lowerBound]) + "." } ?? text
    }

    /// What a failed system call on a path means.
    init(errorNumber: Int32, path: String) {
        switch errorNumber {
        case EACCES, EPERM: self = .noPermission(path: path)
        case EROFS: self = .readOnly(path: path)
        case ENOSPC, EDQUOT: self = .full(path: path)
        case ENOTDIR: self = .notADirectory(path: path)
        case ELOOP:
            self = .failed(path: path, reason: "it is a symbolic link, and a record is not written through one")
        default: self = .failed(path: path, reason: String(cString: strerror(errorNumber)))
        }
    }

    /// What an error of SQLite means while a database is opened or read.
    init(_ error: any Error, path: String) {
        if let error = error as? StoreError {
            self = error
            return
        }
        if let damage = error as? RecordDamage {
            self = .damaged(path: path, detail: "\(damage)")
            return
        }
        guard let error = error as? DatabaseError else {
            self = .failed(path: path, reason: "\(error)")
            return
        }
        switch error.resultCode {
        case .SQLITE_NOTADB: self = .notADatabase(path: path)
        case .SQLITE_CORRUPT: self = .damaged(path: path, detail: error.message ?? "its pages do not fit together")
        case .SQLITE_BUSY, .SQLITE_LOCKED: self = .locked(path: path)
        case .SQLITE_READONLY: self = .readOnly(path: path)
        case .SQLITE_FULL: self = .full(path: path)
        // A full disk shows in many ways, such as that the shared memory file cannot grow.
        case .SQLITE_IOERR where StoreError.isDiskFull(path): self = .full(path: path)
        case .SQLITE_CANTOPEN where StoreError.isDiskFull(path): self = .full(path: path)
        default: self = .failed(path: path, reason: error.message ?? "\(error.extendedResultCode)")
        }
    }

    /// What an error says, on one line.
    ///
    /// - Parameters:
    ///   - error: of SQLite, or any other.
    ///   - db: where a write has just met it; the system's own word for it is known there.
    /// - Returns: words for an operator.
    static func text(of error: any Error, in db: Database? = nil) -> String {
        if error is ChunkDamaged { return "its bytes are not those of a chunk" }
        guard let error = error as? DatabaseError else { return "\(error)" }
        let text = "\(error.message ?? "unknown error") (SQLite \(error.extendedResultCode.rawValue))"
        guard error.resultCode == .SQLITE_IOERR, let number = db?.lastErrorOfLog, number != 0 else { return text }
        return "\(text): \(String(cString: strerror(number)))"
    }

    /// Whether there is less room than SQLite needs to open anything.
    private static func isDiskFull(_ path: String) -> Bool {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return false }
        return UInt64(status.f_bavail) * UInt64(status.f_frsize) < 65_536
    }
}

extension Database {
    /// What the system last said of the write-ahead log; `sqlite3_system_errno` knows nothing of a commit that failed.
    fileprivate var lastErrorOfLog: Int32? {
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard sqlite3_file_control(sqliteConnection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK,
            let file, let control = file.pointee.pMethods?.pointee.xFileControl
        else { return nil }
        var number: Int32 = 0
        return control(file, SQLITE_FCNTL_LAST_ERRNO, &number) == SQLITE_OK ? number : nil
    }
}

extension StorageFailure {
    /// What an error of SQLite means for the write that met it.
    ///
    /// Full, locked and read-only are certain: SQLite has rolled back, and in WAL mode a transaction whose commit
    /// frame was not written whole does not exist. After anything else it may or may not be there.
    static func of(_ error: any Error) -> StorageFailure {
        guard let error = error as? DatabaseError else { return .broken }
        return switch error.resultCode {
        case .SQLITE_FULL: .full
        case .SQLITE_BUSY, .SQLITE_LOCKED: .locked
        case .SQLITE_READONLY: .readOnly
        default: .broken
        }
    }
}
