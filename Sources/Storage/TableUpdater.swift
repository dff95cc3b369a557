// Keeps the tables for people up to date.

import GRDB
import Primitives

/// Keeps the tables for people up to date, in slices between the transactions of the log.
///
/// A saved chunk is stale in the tables until its rows are done. The storage worker prepares one chunk at a time, and
/// the storage thread carries the changes out in slices of at most 2 ms. While writes come in, slices take no more
/// than a twentieth of its time; without any, one follows another, and a write that arrives ends it early. What is
/// stale survives a restart: `tabled` names the chunks that are done.
///
/// Lives on the storage thread.
final class TableUpdater {
    /// The longest time that a slice works.
    ///
    /// Its commit comes on top: it syncs nothing.
    private static let slice = Duration.milliseconds(2)
    /// After a failure such as a full disk.
    private static let retry = Duration.seconds(1)
    /// Rows of trimmed entries that one step deletes: some hundred microseconds.
    private static let trimmedRows = 16

    private let db: Database
    private let writer: RecordWriter
    private let worker: StoreWorker
    private let statements: TableStatements
    private let done: PreparedStatement

    /// Chunks in the order in which they became stale, and the same as a set.
    private var queue: [UInt32] = []
    private var stale: Set<UInt32> = []
    private var plan: TablePlan?
    private var awaited: UInt64?
    private var orders: UInt64 = 0
    private var pace = SlicePace()
    private var isDisabled = false

    init(_ db: Database, writer: RecordWriter, worker: StoreWorker) throws {
        self.db = db
        self.writer = writer
        self.worker = worker
        statements = TableStatements(db)
        done = try PreparedStatement(db, "INSERT OR IGNORE INTO tabled (chunk) VALUES (?)")
        try PreparedStatement(db, "SELECT number FROM snapshot WHERE number NOT IN (SELECT chunk FROM tabled)")
            .forEach { columns in
                if let number = UInt32(exactly: columns.integer(0)) { queue.append(number) }
            }
        stale = Set(queue)
    }

    /// Chunks whose rows are not up to date.
    var staleCount: Int { stale.count + (plan == nil && awaited == nil ? 0 : 1) }

    /// When there is something to do; nil while there is not.
    var deadline: Instant? {
        guard !writer.isBroken else { return nil }
        return writer.hasTrimmedRows || (plan != nil && !isDisabled) ? pace.nextSlice : nil
    }

    /// Whether nothing is left to do, nor to wait for.
    var isIdle: Bool { deadline == nil && (isDisabled || staleCount == 0) }

    func saved(_ number: UInt32) {
        if stale.insert(number).inserted { queue.append(number) }
    }

    /// All chunks were replaced: what was prepared is void.
    func replaced() {
        queue = []
        stale = []
        plan = nil
        awaited = nil
    }

    /// Asks for the next chunk where none is in work.
    func order() {
        guard plan == nil, awaited == nil, !isDisabled, let number = queue.first else { return }
        queue.removeFirst()
        stale.remove(number)
        orders += 1
        awaited = orders
        worker.plan(number, order: orders)
    }

    func planned(order: UInt64, _ plan: TablePlan?) {
        guard awaited == order else { return }
        awaited = nil
        self.plan = plan
    }

    /// Works for a while.
    ///
    /// - Parameters:
    ///   - isBusy: whether writes came in since the last slice.
    ///   - isWanted: whether writes wait now.
    /// - Throws: where the tables cannot be written.
    func advance(isBusy: Bool, isWanted: @escaping () -> Bool) throws {
        let start = StoreClock.now
        // A busy thread would never come to an end if each write ended its slice.
        let budget = SliceBudget(end: start + Self.slice, isWanted: isBusy ? { false } : isWanted)
        do {
            try work(budget)
        } catch {
            pace.postpone(until: StoreClock.now + Self.retry)
            throw error
        }
        pace.worked(from: start, to: StoreClock.now, isBusy: isBusy)
    }

    /// Gives the tables up until the record is opened again: they are damaged, or the disk is.
    func disable() { isDisabled = true }

    private func work(_ budget: SliceBudget) throws {
        while writer.hasTrimmedRows {
            guard try writer.deleteTrimmed(rows: Self.trimmedRows) else { break }
            if budget.isSpent { return }
        }
        guard var current = plan, !isDisabled else { return }
        var isDone = false
        try db.inTransaction(.immediate) {
            isDone = try current.advance(db, statements, budget)
            if isDone, !stale.contains(current.number) { try done.run([.integer(Int64(current.number))]) }
            return .commit
        }
        // Only now: had the transaction failed, the plan would begin again where it was.
        plan = isDone ? nil : current
    }
}

/// When the next slice may begin.
public struct SlicePace: Sendable, Equatable {
    /// Time between slices while writes come in, in slices: 1 in 20 is 5 %.
    public static let pause: Int64 = 19
    /// The longest pause.
    ///
    /// A slice may seem to have taken minutes: the disk stalled, or the whole process or machine was stopped.
    public static let longestPause = Duration.milliseconds(500)

    /// When the next slice may begin.
    public private(set) var nextSlice = Instant(nanoseconds: .min)

    /// The first slice may begin at once.
    public init() {}

    /// A slice has ended.
    ///
    /// - Parameters:
    ///   - start: when it began.
    ///   - end: when it ended.
    ///   - isBusy: whether writes came in since the last one.
    public mutating func worked(from start: Instant, to end: Instant, isBusy: Bool) {
        nextSlice = isBusy ? end + min((end - start) * Self.pause, Self.longestPause) : end
    }

    /// No slice is to begin before a time.
    public mutating func postpone(until instant: Instant) { nextSlice = instant }
}
