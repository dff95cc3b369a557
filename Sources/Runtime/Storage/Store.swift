/// The record of a node: what it must find again after a crash, in `DIR/tracker.sqlite`, and the same for people to
/// query.
///
/// ```
/// node's thread ──submit──► StoreInbox ──► StorageThread ──onCompletion──► node's thread
///                              ▲                │  ▲
///                              └── StoreKeeper ◄┘  └ RecordWriter, TableKeeper, CheckpointPolicy
/// ```
///
/// One thread writes, one copies the write-ahead log and prepares the tables; readers have connections of their own
/// and hold up neither. A life is `open`, `recover`, `start`, any number of `submit`, `close`.

import Foundation
import GRDB
import Primitives
import TrackerLogic

public final class Store: Sendable {
    /// The database file.
    public let path: String
    /// The version that the database had when it was opened; nil where it was made anew.
    public let foundVersion: Int?

    private let options: StoreOptions
    private let writer: DatabaseQueue
    private let second: DatabaseQueue
    private let descriptor: Int32
    private let inbox = StoreInbox()
    private let keeper: StoreKeeper
    private let box = StatisticsBox()
    private let life: Life

    /// What changes in a store's life.
    private final class Life: @unchecked Sendable {
        enum Phase { case opened, started, closed }

        let monitor = Monitor()
        // Guarded by the monitor.
        var phase = Phase.opened
        var lock: StoreLock?
        var pool: DatabasePool?

        init(lock: StoreLock) { self.lock = lock }
    }

    /// The version of the database that this program writes.
    public static var version: Int { StoreSchema.version }

    /// Opens a node's record, or begins one.
    ///
    /// - Parameters:
    ///   - directory: made where it is missing and its parent is there.
    ///   - options: how safe, how patient, how large.
    /// - Throws: `StoreError`, whose description tells the operator what to do.
    public static func open(directory: String, options: StoreOptions = StoreOptions()) throws(StoreError) -> Store {
        try StoreFile.makeDirectory(directory)
        let lock = try StoreLock.take(directory: directory)
        let path = directory + "/tracker.sqlite"
        try StoreFile.makeFile(path, in: directory)
        do {
            let writer = try StoreFile.connect(path, options, label: "store")
            let found = try writer.writeWithoutTransaction { try StoreSchema.prepare($0, path: path) }
            // A write shows now, and not at the first announce, what stands in the way of writing.
            try writer.write { db in
                try db.execute(
                    sql: "REPLACE INTO meta (key, value) VALUES (?, CAST(strftime('%s', 'now') AS INTEGER))",
                    arguments: [MetaKey.openedAt])
            }
            let second = try StoreFile.connect(path, options, label: "store-keeper")
            let descriptor = try StoreFile.descriptor(path)
            return Store(path, found, options, writer, second, descriptor, lock)
        } catch {
            throw StoreError(error, path: path)
        }
    }

    /// Moves the database away, so that the next `open` begins an empty record; nobody has it open meanwhile.
    ///
    /// - Returns: where it is now: beside its old place, with a number.
    /// - Throws: `StoreError`; nothing has moved then, or only the database itself.
    static func setAside(directory: String) throws(StoreError) -> String {
        let lock = try StoreLock.take(directory: directory)
        defer { withExtendedLifetime(lock) {} }
        return try StoreFile.setAside(directory + "/tracker.sqlite", in: directory)
    }

    private init(
        _ path: String, _ found: Int, _ options: StoreOptions, _ writer: DatabaseQueue, _ second: DatabaseQueue,
        _ descriptor: Int32, _ lock: StoreLock
    ) {
        self.path = path
        foundVersion = found == 0 ? nil : found
        self.options = options
        self.writer = writer
        self.second = second
        self.descriptor = descriptor
        keeper = StoreKeeper(database: second, descriptor: descriptor, decoder: options.decoder, inbox: inbox)
        life = Life(lock: lock)
    }

    deinit { close() }

    /// Reads the record back: the promise, where there is one, the chunks by number, the entries by index.
    ///
    /// Only before `start`. One piece is in memory at a time.
    ///
    /// - Throws: `StoreError.damaged` where a piece is missing or is not what was written; what `visit` throws.
    public func recover(_ visit: (RecoveredRecord) throws -> Void) throws {
        precondition(life.monitor.withLock { life.phase == .opened }, "a record is recovered before its store starts")
        do {
            try writer.read { try StoreRecovery(db: $0, path: path).run(visit) }
        } catch let error as DatabaseError {
            throw StoreError(error, path: path)
        }
    }

    /// Starts the threads; from now on writes are carried out.
    ///
    /// - Parameters:
    ///   - onCompletion: called on the storage thread with writes in the order in which they were submitted, and why
    ///     each was not made, if it was not. Must return soon, and must not close the store.
    ///   - onObservation: called on the storage thread with what an operator should know.
    public func start(
        onCompletion: @escaping @Sendable ([(PersistToken, StorageFailure?)]) -> Void,
        onObservation: @escaping @Sendable (StoreObservation) -> Void = { _ in }
    ) throws(StoreError) {
        life.monitor.withLock {
            precondition(life.phase == .opened, "a store is started once")
            life.phase = .started
        }
        keeper.start()
        do {
            try StorageThread(
                database: writer, inbox: inbox, keeper: keeper, statistics: box, durability: options.durability,
                onCompletion: onCompletion, onObservation: onObservation
            ).start()
        } catch {
            throw StoreError(error, path: path)
        }
    }

    /// Hands in writes, to be carried out in this order; each is answered through `onCompletion`.
    ///
    /// - Complexity: a lock and a copy of the array's elements; waits for no disk.
    public func submit(_ persists: [Persist]) { inbox.submit(persists) }

    /// What the store has done since it was opened.
    public var statistics: StoreStatistics { box.value }

    /// Connections that read the database and cannot write, for the console.
    ///
    /// Belongs to the store, and closes with it.
    ///
    /// A read should be short: while it lasts, the write-ahead log cannot begin anew.
    public func reader() throws(StoreError) -> any DatabaseReader {
        do {
            return try life.monitor.withLock {
                precondition(life.phase != .closed, "a store that is closed has no reader")
                if let pool = life.pool { return pool }
                var configuration = Configuration()
                configuration.readonly = true
                configuration.label = "store-reader"
                configuration.maximumReaderCount = 3
                configuration.busyMode = .timeout(5)
                let pool = try DatabasePool(path: path, configuration: configuration)
                life.pool = pool
                return pool
            }
        } catch {
            throw StoreError(error, path: path)
        }
    }

    /// Carries out what waits, brings the tables up to date as far as some seconds allow, copies the write-ahead log
    /// into the database and gives the directory free.
    ///
    /// A second call does nothing.
    public func close() {
        let (phase, pool) = life.monitor.withLock {
            defer {
                life.phase = .closed
                life.pool = nil
            }
            return (life.phase, life.pool)
        }
        guard phase != .closed else { return }
        if phase == .started {
            inbox.close()
            keeper.stop()
        }
        // None of these can lose anything: what was reported is in the write-ahead log, and stays there if need be.
        try? pool?.close()
        try? second.close()
        try? writer.writeWithoutTransaction { db in
            try? StoreFile.shrink(db)
            _ = try db.checkpoint(.truncate)
        }
        try? writer.close()
        StoreFile.close(descriptor)
        life.monitor.withLock { life.lock = nil }
    }
}
