// What has to be done so that the tables say what one chunk of the snapshot says.

import GRDB
import Primitives
import TrackerLogic
import Wire

/// What has to be done so that the tables say what one chunk of the snapshot says.
///
/// Made beside the storage thread, on a connection of its own: to read, decode and sort a large chunk takes longer
/// than the log may be held up.
struct TablePlan: Sendable {
    let number: UInt32
    private var works: [any TableWork]

    /// - Returns: nil where there is no such chunk any more.
    /// - Throws: `ChunkDamaged`, or what SQLite says.
    static func make(_ number: UInt32, _ db: Database, _ decoder: ChunkDecoder) throws -> TablePlan? {
        // No node cuts its swarms that often, and the ids of such a chunk's rows would not fit.
        guard number < 1 << 31 else { throw ChunkDamaged(number: number) }
        var chunk: SnapshotChunk?
        var seal: UInt64 = 0
        try PreparedStatement(db, "SELECT number, idx, checksum, body FROM snapshot WHERE number = ?")
            .forEach([.integer(Int64(number))]) { columns in
                chunk = SnapshotChunk(
                    number: number, index: UInt64(bitPattern: columns.integer(1)), bytes: columns.blob(3))
                seal = UInt64(bitPattern: columns.integer(2))
            }
        guard let chunk else { return nil }
        guard seal == RecordSeal.of(chunk, salt: try StoreRecovery.salt(db)) else { throw ChunkDamaged(number: number) }
        let works =
            number == 0
            ? registry(try decoder.registry(chunk)) : try shard(number, try decoder.swarms(chunk), db)
        return TablePlan(number: number, works: works)
    }

    /// Works on until the chunk is done or the budget is spent, inside a transaction.
    ///
    /// - Returns: whether it is done.
    mutating func advance(_ db: Database, _ statements: TableStatements, _ budget: SliceBudget) throws -> Bool {
        while !works.isEmpty {
            guard try works[0].advance(db, statements, budget) else { return false }
            works.removeFirst()
            if !works.isEmpty, budget.isSpent { return false }
        }
        return true
    }

    private static func registry(_ image: RegistryImage) -> [any TableWork] {
        [
            TableMirror(distinct(image.torrents.map { TorrentRow($0) })),
            // The range of a table of names begins behind the empty one.
            TableMirror(distinct(image.access.users.map { UserRow($0) }.filter { !$0.key.bytes.isEmpty })),
            TableMirror(distinct(image.access.infoHashes.map { ListedRow($0) })),
            AccessModeWork(mode: image.access.mode),
        ]
    }

    private static func shard(_ number: UInt32, _ swarms: [SwarmImage], _ db: Database) throws -> [any TableWork] {
        let range = SwarmRow.range(ofChunk: number)
        var ids: [Bytes20: Int64] = [:]
        var taken: [Int64] = []
        try PreparedStatement(db, "SELECT id, info_hash FROM swarms WHERE id > ? AND id < ? ORDER BY id")
            .forEach([.integer(range.lowerBound), .integer(range.upperBound)]) { columns in
                taken.append(columns.integer(0))
                if let infoHash = Bytes20(columns.blob(1)) { ids[infoHash] = columns.integer(0) }
            }
        var vacant = VacantIDs(after: range.lowerBound, taken: taken)
        var swarmRows: [SwarmRow] = []
        var peerRows: [PeerRow] = []
        for swarm in swarms {
            // A swarm keeps its id, and its row in the index of info hashes stays untouched. Ids of swarms that have
            // gone are not told out in the same pass: their peers are still there.
            let id = ids[swarm.infoHash.bytes] ?? vacant.next()
            ids[swarm.infoHash.bytes] = id
            swarmRows.append(SwarmRow(id: id, infoHash: swarm.infoHash, completed: swarm.completed))
            for peer in swarm.peers { peerRows.append(PeerRow(swarm: id, peer)) }
        }
        swarmRows = distinct(swarmRows)
        let none: [SQLValue] = [.text(""), .integer(0)]
        let ends: (lower: [SQLValue], upper: [SQLValue]) = (
            [.integer(range.lowerBound)], [.integer(range.upperBound)]
        )
        // New swarms come before their peers and old ones go after theirs: no peer is ever without its swarm.
        return [
            TableMirror(swarmRows, ends: ends, deletes: false),
            TableMirror(distinct(peerRows), ends: (ends.lower + none, ends.upper + none)),
            TableMirror(swarmRows, ends: ends),
        ]
    }

    /// Sorts rows by key; of those with the same key only one stays.
    private static func distinct<Row: TableRow>(_ rows: [Row]) -> [Row] {
        var result: [Row] = []
        result.reserveCapacity(rows.count)
        for row in rows.sorted(by: { $0.key < $1.key }) where result.last?.key != row.key { result.append(row) }
        return result
    }
}

/// Tells out the lowest numbers that are not taken.
private struct VacantIDs {
    private var last: Int64
    private var taken: ArraySlice<Int64>

    /// Finds row numbers that are free.
    ///
    /// - Parameters:
    ///   - last: the last that was given out.
    ///   - taken: those in use behind it, in rising order.
    init(after last: Int64, taken: [Int64]) {
        self.last = last
        self.taken = taken[...]
    }

    mutating func next() -> Int64 {
        last += 1
        while let first = taken.first, first <= last {
            if first == last { last += 1 }
            taken.removeFirst()
        }
        return last
    }
}

private struct AccessModeWork: TableWork {
    let mode: AccessMode

    mutating func advance(_ db: Database, _ statements: TableStatements, _ budget: SliceBudget) throws -> Bool {
        try PreparedStatement(db, "REPLACE INTO meta (key, value) VALUES (?, ?)")
            .run([.text(MetaKey.accessMode), .text("\(mode)")])
        return true
    }
}
