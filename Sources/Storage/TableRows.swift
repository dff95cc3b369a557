// The rows of the tables for people, and the SQL that keeps each table as a sorted list of them.

import Primitives
import TrackerLogic
import Wire

/// A row of a table that mirrors a sorted list.
///
/// All statements take ranges as (exclusive lower, inclusive upper).
protocol TableRow: Sendable {
    associatedtype Key: Comparable & Sendable

    var key: Key { get }
    /// In the order of `upsert`.
    var values: [SQLValue] { get }

    /// Inserts a row, or updates the one with its key, where it differs: what is the same costs no write.
    static var upsert: String { get }
    /// The keys of a range, in order, up to a number (the last value) of them.
    static var keys: String { get }
    static var delete: String { get }
    static func values(of key: Key) -> [SQLValue]
    static func key(_ columns: Columns) -> Key
    /// Below and above all keys.
    static var ends: (lower: [SQLValue], upper: [SQLValue]) { get }
}

/// `swarms`.
///
/// Ids are told out chunk by chunk, so that the rows of a chunk, and their peers, are neighbours.
struct SwarmRow: TableRow {
    var id: Int64
    var infoHash: InfoHash
    var completed: UInt32

    /// The ids that the swarms of a chunk can have, and its end is one that none has.
    static func range(ofChunk number: UInt32) -> ClosedRange<Int64> {
        Int64(number) << 32...(Int64(number) + 1) << 32
    }

    var key: Int64 { id }
    var values: [SQLValue] { [.integer(id), .bytes20(infoHash.bytes), .integer(Int64(completed))] }

    // An info hash that is in another chunk's rows still (the shards were cut anew) moves.
    static let upsert = """
        INSERT INTO swarms (id, info_hash, completed) VALUES (?, ?, ?)
        ON CONFLICT (info_hash) DO UPDATE SET id = excluded.id, completed = excluded.completed
            WHERE id <> excluded.id OR completed <> excluded.completed
        ON CONFLICT (id) DO UPDATE SET info_hash = excluded.info_hash, completed = excluded.completed
        """
    static let keys = "SELECT id FROM swarms WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
    static let delete = "DELETE FROM swarms WHERE id = ?"
    static func values(of key: Int64) -> [SQLValue] { [.integer(key)] }
    static func key(_ columns: Columns) -> Int64 { columns.integer(0) }
    static var ends: (lower: [SQLValue], upper: [SQLValue]) { ([.integer(0)], [.integer(.max)]) }
}

/// `peers`.
struct PeerRow: TableRow {
    struct Key: Comparable, Sendable {
        var swarm: Int64
        /// ASCII, so that Swift and SQLite agree on its order.
        var address: String
        var port: UInt16

        static func < (left: Key, right: Key) -> Bool {
            if left.swarm != right.swarm { return left.swarm < right.swarm }
            return left.address == right.address ? left.port < right.port : left.address < right.address
        }
    }

    var key: Key
    var peerID: PeerID
    var downloaded: UInt64
    var left: UInt64
    var lastSeen: UInt32
    var isCounted: Bool

    init(swarm: Int64, _ peer: PeerImage) {
        key = Key(swarm: swarm, address: peer.address.host, port: peer.address.port)
        peerID = peer.peerID
        downloaded = peer.downloaded
        left = peer.left
        lastSeen = peer.lastSeen
        isCounted = peer.isCounted
    }

    var values: [SQLValue] {
        // Clients that do not know what is left say 2⁶⁴ − 1; SQLite's numbers end at 2⁶³ − 1.
        PeerRow.values(of: key) + [
            .bytes20(peerID.bytes), .integer(Int64(clamping: downloaded)), .integer(Int64(clamping: left)),
            .integer(Int64(lastSeen)), .integer(isCounted ? 1 : 0),
        ]
    }

    static let upsert = """
        INSERT INTO peers (swarm, address, port, peer_id, downloaded, left, last_seen, is_counted)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (swarm, address, port) DO UPDATE SET peer_id = excluded.peer_id,
            downloaded = excluded.downloaded, left = excluded.left, last_seen = excluded.last_seen,
            is_counted = excluded.is_counted
        WHERE last_seen <> excluded.last_seen OR left <> excluded.left OR downloaded <> excluded.downloaded
            OR peer_id <> excluded.peer_id OR is_counted <> excluded.is_counted
        """
    static let keys = """
        SELECT swarm, address, port FROM peers
        WHERE (swarm, address, port) > (?, ?, ?) AND (swarm, address, port) <= (?, ?, ?)
        ORDER BY swarm, address, port LIMIT ?
        """
    static let delete = "DELETE FROM peers WHERE swarm = ? AND address = ? AND port = ?"
    static func values(of key: Key) -> [SQLValue] {
        [.integer(key.swarm), .text(key.address), .integer(Int64(key.port))]
    }
    static func key(_ columns: Columns) -> Key {
        Key(
            swarm: columns.integer(0), address: columns.text(1),
            port: UInt16(truncatingIfNeeded: columns.integer(2)))
    }
    static var ends: (lower: [SQLValue], upper: [SQLValue]) {
        let none: [SQLValue] = [.text(""), .integer(0)]
        return ([.integer(0)] + none, [.integer(.max)] + none)
    }
}

/// Bytes in the order in which SQLite sorts blobs, and texts by their UTF-8.
struct SortedBytes: Comparable, Sendable {
    var bytes: [UInt8]

    static func < (left: SortedBytes, right: SortedBytes) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    /// More bytes than any key has, all of them the highest.
    static let last = [UInt8](repeating: 0xFF, count: 21)
}

/// `torrents`.
struct TorrentRow: TableRow {
    var key: SortedBytes
    var name: String
    var byteCount: UInt64

    init(_ torrent: RegisteredTorrent) {
        key = SortedBytes(bytes: torrent.infoHash.bytes.bytes)
        name = torrent.name
        byteCount = torrent.byteCount
    }

    var values: [SQLValue] { [.blob(key.bytes), .text(name), .integer(Int64(clamping: byteCount))] }

    static let upsert = """
        INSERT INTO torrents (info_hash, name, size) VALUES (?, ?, ?)
        ON CONFLICT (info_hash) DO UPDATE SET name = excluded.name, size = excluded.size
        WHERE name <> excluded.name OR size <> excluded.size
        """
    static let keys = "SELECT info_hash FROM torrents WHERE info_hash > ? AND info_hash <= ? ORDER BY info_hash LIMIT ?"
    static let delete = "DELETE FROM torrents WHERE info_hash = ?"
    static func values(of key: SortedBytes) -> [SQLValue] { [.blob(key.bytes)] }
    static func key(_ columns: Columns) -> SortedBytes { SortedBytes(bytes: columns.blob(0)) }
    static var ends: (lower: [SQLValue], upper: [SQLValue]) { ([.blob([])], [.blob(SortedBytes.last)]) }
}

/// `access_list`.
struct ListedRow: TableRow {
    var key: SortedBytes

    init(_ infoHash: InfoHash) { key = SortedBytes(bytes: infoHash.bytes.bytes) }

    var values: [SQLValue] { [.blob(key.bytes)] }

    static let upsert = "INSERT INTO access_list (info_hash) VALUES (?) ON CONFLICT DO NOTHING"
    static let keys =
        "SELECT info_hash FROM access_list WHERE info_hash > ? AND info_hash <= ? ORDER BY info_hash LIMIT ?"
    static let delete = "DELETE FROM access_list WHERE info_hash = ?"
    static func values(of key: SortedBytes) -> [SQLValue] { [.blob(key.bytes)] }
    static func key(_ columns: Columns) -> SortedBytes { SortedBytes(bytes: columns.blob(0)) }
    static var ends: (lower: [SQLValue], upper: [SQLValue]) { ([.blob([])], [.blob(SortedBytes.last)]) }
}

/// `users`.
struct UserRow: TableRow {
    var key: SortedBytes
    var passkey: String

    init(_ user: User) {
        key = SortedBytes(bytes: Array(user.name.utf8))
        passkey = String(decoding: user.passkey, as: UTF8.self)
    }

    var values: [SQLValue] { UserRow.values(of: key) + [.text(passkey)] }

    static let upsert = """
        INSERT INTO users (name, passkey) VALUES (?, ?)
        ON CONFLICT (name) DO UPDATE SET passkey = excluded.passkey WHERE passkey <> excluded.passkey
        """
    static let keys = "SELECT name FROM users WHERE name > ? AND name <= ? ORDER BY name LIMIT ?"
    static let delete = "DELETE FROM users WHERE name = ?"
    static func values(of key: SortedBytes) -> [SQLValue] { [.text(String(decoding: key.bytes, as: UTF8.self))] }
    static func key(_ columns: Columns) -> SortedBytes { SortedBytes(bytes: Array(columns.text(0).utf8)) }
    // A blob is greater than any text.
    static var ends: (lower: [SQLValue], upper: [SQLValue]) { ([.text("")], [.blob([])]) }
}
