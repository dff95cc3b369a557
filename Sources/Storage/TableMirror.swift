// Makes a part of a table equal to a sorted list of rows.

import GRDB
import Primitives

/// A piece of work on the tables that can be done in slices.
protocol TableWork: Sendable {
    /// Works until it is done or the budget is spent, inside a transaction.
    ///
    /// - Returns: whether it is done.
    mutating func advance(_ db: Database, _ statements: TableStatements, _ budget: SliceBudget) throws -> Bool
}

/// How long a slice may work.
struct SliceBudget {
    let end: Instant
    /// Whether somebody waits for whom the slice should end early.
    let isWanted: () -> Bool

    var isSpent: Bool { StoreClock.now >= end || isWanted() }
}

/// The statements of all tables, prepared when first used.
final class TableStatements {
    struct Prepared {
        let upsert: PreparedStatement
        let keys: PreparedStatement
        let delete: PreparedStatement
    }

    private let db: Database
    private var prepared: [ObjectIdentifier: Prepared] = [:]

    init(_ db: Database) { self.db = db }

    func `for`<Row: TableRow>(_ row: Row.Type) throws -> Prepared {
        if let found = prepared[ObjectIdentifier(row)] { return found }
        let made = try Prepared(
            upsert: PreparedStatement(db, Row.upsert), keys: PreparedStatement(db, Row.keys),
            delete: PreparedStatement(db, Row.delete))
        prepared[ObjectIdentifier(row)] = made
        return made
    }
}

/// Makes a part of a table equal to a sorted list of rows, some rows at a time.
///
/// It walks through the list in portions. The rows of a portion are upserted; then the keys that the table has in the
/// portion's range are counted: where there are others, they go. A row that is the same already is not written, so
/// that one changed torrent in a registry of a million costs a few pages. Every portion may be done twice: whoever is
/// stopped in the middle begins again.
struct TableMirror<Row: TableRow>: TableWork {
    /// Rows between two looks at the clock: a fraction of a millisecond.
    private static var portion: Int { 64 }
    /// Keys that a look at a range reads, so that even a million that have to go fit small steps.
    private static var keysAtOnce: Int { 512 }

    private let rows: [Row]
    /// The part of the table that is mirrored: (exclusive lower, inclusive upper).
    private let ends: (lower: [SQLValue], upper: [SQLValue])
    private let deletes: Bool
    private var position = 0
    private var isDone = false

    /// - Parameters:
    ///   - rows: sorted by key, without repeats, all within the ends.
    ///   - ends: the part of the table that they are all of.
    ///   - deletes: false for a first pass that only adds.
    init(_ rows: [Row], ends: (lower: [SQLValue], upper: [SQLValue])? = nil, deletes: Bool = true) {
        self.rows = rows
        self.ends = ends ?? Row.ends
        self.deletes = deletes
    }

    mutating func advance(_ db: Database, _ statements: TableStatements, _ budget: SliceBudget) throws -> Bool {
        let prepared = try statements.for(Row.self)
        while !isDone {
            let end = min(position + Self.portion, rows.count)
            for row in rows[position..<end] { try prepared.upsert.run(row.values) }
            if deletes {
                while try !deleteStrangers(rows[position..<end], isLast: end == rows.count, prepared) {
                    if budget.isSpent { return false }
                }
            }
            position = end
            isDone = end == rows.count
            if !isDone, budget.isSpent { return false }
        }
        return true
    }

    /// Deletes the rows in a portion's range that are not of the portion.
    ///
    /// - Returns: false where there may be more of them.
    private func deleteStrangers(
        _ portion: ArraySlice<Row>, isLast: Bool, _ prepared: TableStatements.Prepared
    ) throws -> Bool {
        let lower = portion.startIndex == 0 ? ends.lower : Row.values(of: rows[portion.startIndex - 1].key)
        let upper = isLast ? ends.upper : Row.values(of: rows[portion.endIndex - 1].key)
        var known = portion.makeIterator()
        var next = known.next()
        var strangers: [Row.Key] = []
        var count = 0
        try prepared.keys.forEach(lower + upper + [.integer(Int64(Self.keysAtOnce))]) { columns in
            count += 1
            let key = Row.key(columns)
            while let row = next, row.key < key { next = known.next() }
            if let row = next, row.key == key { return }
            strangers.append(key)
        }
        for key in strangers { try prepared.delete.run(Row.values(of: key)) }
        return count < Self.keysAtOnce
    }
}
