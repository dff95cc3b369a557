// What the database looks like.

import GRDB
import TrackerLogic
import Wire

/// What the database looks like, version by version.
///
/// Version 3 is the first that is read: it has the record, which is what a node must find again, and the tables and
/// views for people, which are copies of what the snapshot says, kept up to date in the background (`TableUpdater`).
/// Versions 1 and 2 were never released; their entries, chunks and promises lack what a cluster needs. Version 4 seals
/// what version 3 had (`StoreUpgrade`). The comments inside the SQL are kept by SQLite: `.schema` shows them.
enum StoreSchema {
    /// Marks the file as ours ("Swmk"): `file` and other programs show it.
    static let applicationID = 0x5377_6D6B

    /// The earliest version that this program reads.
    static let firstVersion = 3

    /// The version that this program writes.
    static let version = 4

    /// Looks at a database that was just opened, and changes nothing.
    ///
    /// - Returns: its version; 0 where it is empty.
    static func look(_ db: Database, path: String) throws -> Int {
        let application = try Int.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        let found = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        let objects = try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") ?? 0
        let isEmpty = application == 0 && found == 0 && objects == 0
        guard isEmpty || application == applicationID else { throw StoreError.foreign(path: path) }
        guard found <= version else {
            throw StoreError.laterVersion(path: path, found: found, supported: version)
        }
        guard isEmpty || found > 0 else { throw StoreError.damaged(path: path, detail: "it names no version") }
        guard isEmpty || found >= firstVersion else {
            throw StoreError.earlierVersion(path: path, found: found, supported: firstVersion)
        }
        return found
    }

    /// Brings a database that was looked at to this version.
    ///
    /// - Parameters:
    ///   - db: the writing connection.
    ///   - path: of the database, for errors.
    ///   - found: its version, 0 where it is empty.
    ///   - promise: what a new one begins with; nil for nothing.
    ///   - mark: makes the mark that belongs to the database, which is there before the database is changed.
    /// - Throws: where the database cannot be changed; it is as it was then.
    static func prepare(
        _ db: Database, path: String, found: Int, promise: Promise?, mark: (RecordMark) throws -> Void
    ) throws {
        if found == 0 {
            // Only now, and outside of a transaction: neither can be changed later.
            try db.execute(sql: "PRAGMA page_size = 4096; PRAGMA auto_vacuum = NONE")
        }
        guard try String.fetchOne(db, sql: "PRAGMA journal_mode = WAL") == "wal" else {
            throw StoreError.failed(path: path, reason: "its file system cannot do write-ahead logging")
        }
        guard found < version else { return }
        var system = SystemRandomNumberGenerator()
        let salt: UInt64 = system.next()
        // One transaction: whoever is killed here finds the old version again.
        try db.inTransaction(.immediate) {
            let head =
                found == 0 ? try begin(db, promise, salt: salt) : try upgrade(db, path: path, salt: salt)
            try mark(RecordMark(salt: salt, head: head))
            try db.execute(sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = \(version)")
            return .commit
        }
    }

    private static func begin(_ db: Database, _ promise: Promise?, salt: UInt64) throws -> RecordHead {
        try db.execute(sql: record + tables)
        var head = RecordHead()
        let setMeta = try PreparedStatement(db, "REPLACE INTO meta (key, value) VALUES (?, ?)")
        if let promise {
            head.epoch = promise.epoch
            head.promise = RecordSeal.of(promise, salt: salt)
            for row in promise.rows { try setMeta.run([.text(row.key), row.value]) }
        }
        try setMeta.run([.text(MetaKey.salt), .integer(Int64(bitPattern: salt))])
        try setMeta.run([.text(MetaKey.head), .blob(head.sealed(salt: salt))])
        return head
    }

    private static func upgrade(_ db: Database, path: String, salt: UInt64) throws -> RecordHead {
        do {
            return try StoreUpgrade(db: db, path: path, salt: salt).run()
        } catch let damage as RecordDamage {
            throw StoreError.damaged(path: path, detail: "\(damage)")
        }
    }

    private static let record = """
        CREATE TABLE meta (
            -- Single values: the node's promise, what all that follows comes to, and what the tables were last
            -- made from.
            key TEXT NOT NULL PRIMARY KEY,
            value ANY NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE log (
            -- Entries that the snapshot does not hold yet, and for a while some that it does
            -- (those up to the one that meta 'head' tells).
            idx INTEGER PRIMARY KEY,
            checksum INTEGER NOT NULL,
            entry BLOB NOT NULL
        ) STRICT;

        CREATE TABLE snapshot (
            -- The state as it was right after an entry, in chunks: 0 is the registry, s + 1 is shard s of the swarms.
            number INTEGER PRIMARY KEY,
            idx INTEGER NOT NULL,       -- the last entry whose updates the chunk holds
            checksum INTEGER NOT NULL,
            body BLOB NOT NULL
        ) STRICT;

        """

    private static let tables = """
        CREATE TABLE tabled (
            -- Chunks whose rows below are as the snapshot says; the others are still to be brought up to date.
            chunk INTEGER PRIMARY KEY
        ) STRICT;

        CREATE TABLE torrents (
            -- The registry: torrents that the tracker knows by name, whether or not they have a swarm.
            info_hash BLOB NOT NULL PRIMARY KEY,    -- 20 bytes
            name TEXT NOT NULL,
            size INTEGER NOT NULL                   -- bytes
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE swarms (
            -- Torrents that have, or had, peers, whether or not they are registered.
            id INTEGER PRIMARY KEY,                 -- (chunk << 32) + a number in the chunk: neighbours stay together
            info_hash BLOB NOT NULL UNIQUE,         -- 20 bytes
            completed INTEGER NOT NULL,             -- downloads that were completed
            chunk INTEGER NOT NULL GENERATED ALWAYS AS (id >> 32) VIRTUAL
        ) STRICT;

        CREATE TABLE peers (
            -- Who takes part in a swarm. A seeder has nothing left.
            swarm INTEGER NOT NULL REFERENCES swarms (id),
            address TEXT NOT NULL,                  -- 192.0.2.1 or 2001:db8::1
            port INTEGER NOT NULL,
            peer_id BLOB NOT NULL,                  -- 20 bytes
            downloaded INTEGER NOT NULL,            -- bytes
            left INTEGER NOT NULL,                  -- bytes
            last_seen INTEGER NOT NULL,             -- the last announce, seconds since 1970
            is_counted INTEGER NOT NULL,            -- 1 where this download is counted in swarms.completed
            PRIMARY KEY (swarm, address, port)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE users (
            name TEXT NOT NULL PRIMARY KEY,
            passkey TEXT NOT NULL                   -- the secret part of the announce URL (BEP 27)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE access_list (
            -- What meta 'access_mode' is about: the only info hashes that are allowed, or those that are denied.
            info_hash BLOB NOT NULL PRIMARY KEY     -- 20 bytes
        ) STRICT, WITHOUT ROWID;

        CREATE VIEW CONTENTS AS
            -- What can be downloaded: the registered torrents.
            SELECT lower(hex(info_hash)) AS info_hash, name, size FROM torrents;

        CREATE VIEW SWARM AS
            -- One row a swarm, with its seeders and leechers counted.
            SELECT lower(hex(s.info_hash)) AS info_hash, t.name, t.size,
                (SELECT count(*) FROM peers p WHERE p.swarm = s.id AND p.left = 0) AS seeders,
                (SELECT count(*) FROM peers p WHERE p.swarm = s.id AND p.left > 0) AS leechers,
                s.completed
            FROM swarms s LEFT JOIN torrents t ON t.info_hash = s.info_hash;

        CREATE VIEW PEER AS
            -- One row a peer, in however many swarms it takes part.
            SELECT lower(hex(peer_id)) AS peer_id, address, port, max(last_seen) AS last_seen, count(*) AS swarms
            FROM peers GROUP BY peer_id, address, port;

        CREATE VIEW SWARM_PEERS AS
            -- Which peer takes part in which swarm, and as what.
            SELECT lower(hex(s.info_hash)) AS info_hash, lower(hex(p.peer_id)) AS peer_id, p.address, p.port,
                CASE p.left WHEN 0 THEN 'seeder' ELSE 'leecher' END AS role
            FROM swarms s JOIN peers p ON p.swarm = s.id;

        CREATE VIEW PEER_INFO AS
            -- How far each peer of each swarm is.
            SELECT lower(hex(s.info_hash)) AS info_hash, t.name, lower(hex(p.peer_id)) AS peer_id, p.address, p.port,
                p.downloaded, p.left, datetime(p.last_seen, 'unixepoch') AS last_seen
            FROM swarms s JOIN peers p ON p.swarm = s.id LEFT JOIN torrents t ON t.info_hash = s.info_hash;
        """
}
