// What is known to be right on the disk, over restarts.

import Foundation
import GRDB
import PeerLogic
import Primitives
import Wire

/// What is known to be right on the disk, over restarts: an SQLite file beside the download.
///
/// A piece is noted after its files have been flushed. It counts as long as each file that it touches has the size and
/// the time that were noted with it; else it is hashed again. Used on one thread at a time.
final class ResumeStore: @unchecked Sendable {
    private let database: DatabaseQueue
    private let infoHash: Data

    /// Opens the file, or makes it; one that is damaged is made anew, as nothing in it cannot be found out again.
    init(path: String, infoHash: InfoHash) throws {
        self.infoHash = Data(infoHash.bytes.bytes)
        do {
            database = try Self.opened(path)
        } catch let error as DatabaseError
            where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode.primaryResultCode)
        {
            for suffix in ["", "-wal", "-shm", "-journal"] {
                try? FileManager.default.removeItem(atPath: path + suffix)
            }
            database = try Self.opened(path)
        }
    }

    private static func opened(_ path: String) throws -> DatabaseQueue {
        let database = try DatabaseQueue(path: path)
        try database.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS TORRENT (
                        info_hash BLOB PRIMARY KEY, name BLOB NOT NULL, piece_length INTEGER NOT NULL,
                        total_length INTEGER NOT NULL, metadata BLOB NOT NULL) WITHOUT ROWID;
                    CREATE TABLE IF NOT EXISTS CHUNK (
                        info_hash BLOB NOT NULL, offset INTEGER NOT NULL, sha1 BLOB NOT NULL,
                        PRIMARY KEY (info_hash, offset)) WITHOUT ROWID;
                    CREATE TABLE IF NOT EXISTS FILE (
                        info_hash BLOB NOT NULL, path BLOB NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
                        PRIMARY KEY (info_hash, path)) WITHOUT ROWID;
                    """)
        }
        return database
    }

    /// The pieces that count.
    func claims(_ info: TorrentInfo, _ store: FileStore) throws -> Bitfield {
        let layout = store.layout
        var result = Bitfield(count: layout.pieceCount)
        let (stamps, chunks) = try database.read { db in
            let stamps = try Row.fetchAll(
                db, sql: "SELECT path, size, mtime FROM FILE WHERE info_hash = ?", arguments: [infoHash])
            let chunks = try Row.fetchAll(
                db, sql: "SELECT offset, sha1 FROM CHUNK WHERE info_hash = ?", arguments: [infoHash])
            return (stamps, chunks)
        }
        guard !chunks.isEmpty else { return result }
        var noted: [Data: FileStore.Stamp] = [:]
        for row in stamps {
            guard let path = Data.fromDatabaseValue(row["path"]), let size = Int64.fromDatabaseValue(row["size"]),
                let time = Int64.fromDatabaseValue(row["mtime"])
            else { continue }
            noted[path] = FileStore.Stamp(size: size, modified: time)
        }
        let isUnchanged = layout.files.indices.map { file in
            guard !layout.files[file].isPadding, let noted = noted[Self.key(store.paths[file])] else { return false }
            return store.stamp(file) == noted
        }
        for row in chunks {
            guard let offset = Int.fromDatabaseValue(row["offset"]), let sha1 = Data.fromDatabaseValue(row["sha1"]),
                offset >= 0, offset.isMultiple(of: layout.pieceLength), offset < layout.totalLength
            else { continue }
            let piece = offset / layout.pieceLength
            guard Bytes20(sha1) == info.pieceHashes?[piece: piece],
                store.files(ofPiece: piece).allSatisfy({ isUnchanged[$0] })
            else { continue }
            result.insert(piece)
        }
        return result
    }

    /// Notes pieces that are on the disk, after their files have been flushed.
    ///
    /// - Returns: false where a file could not be flushed: then nothing is noted.
    func note(_ pieces: [Int], _ info: TorrentInfo, _ store: FileStore) throws -> Bool {
        let files = Set(pieces.flatMap { store.files(ofPiece: $0) })
        for file in files where !store.flush(file) { return false }
        // A file that somebody else has written to meanwhile keeps its former stamp, so that nothing of it counts.
        let stamps = files.compactMap { file in store.trustedStamp(file).map { (Self.key(store.paths[file]), $0) } }
        try database.write { db in
            for piece in pieces {
                guard let sha1 = info.pieceHashes?[piece: piece] else { continue }
                try db.execute(
                    sql: "INSERT OR REPLACE INTO CHUNK (info_hash, offset, sha1) VALUES (?, ?, ?)",
                    arguments: [infoHash, piece * store.layout.pieceLength, Data(sha1.bytes)])
            }
            for (path, stamp) in stamps {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO FILE (info_hash, path, size, mtime) VALUES (?, ?, ?, ?)",
                    arguments: [infoHash, path, stamp.size, stamp.modified])
            }
        }
        return true
    }

    /// Begins anew: what is known now is all that counts.
    func replace(_ have: Bitfield, _ info: TorrentInfo, _ metadata: [UInt8], _ store: FileStore) throws {
        try database.write { db in
            for table in ["CHUNK", "FILE"] {
                try db.execute(sql: "DELETE FROM \(table) WHERE info_hash = ?", arguments: [infoHash])
            }
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO TORRENT (info_hash, name, piece_length, total_length, metadata)
                    VALUES (?, ?, ?, ?, ?)
                    """,
                arguments: [
                    infoHash, Data(info.name.bytes), info.pieceLength, info.totalLength, Data(metadata),
                ])
        }
        var pieces: [Int] = []
        have.forEach { pieces.append($0) }
        if !pieces.isEmpty { _ = try note(pieces, info, store) }
    }

    /// Forgets a piece whose bytes are gone.
    func forget(_ piece: Int, _ store: FileStore) throws {
        try database.write { db in
            try db.execute(
                sql: "DELETE FROM CHUNK WHERE info_hash = ? AND offset = ?",
                arguments: [infoHash, piece * store.layout.pieceLength])
        }
    }

    /// A path as one key; no component holds a slash.
    private static func key(_ path: [[UInt8]]) -> Data { Data(path.joined(separator: [47])) }
}
