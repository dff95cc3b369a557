// The record of a node.

import Foundation
import GRDB
import Primitives
import TrackerLogic
import Wire

/// The record of a node: what it must find again after a crash, in `DIR/tracker.sqlite`, and the same for people to
/// query.
///
/// ```
/// node's thread ──submit──► StoreInbox ──► StorageThread ──onCompletion──► node's thread
///                              ▲                │  ▲
///                              └── StoreWorker ◄┘  └ RecordWriter, TableUpdater, CheckpointPolicy
/// ```
///
/// One thread writes, one copies the write-ahead log and prepares the tables; readers have connections of their own
/// and hold up neither. A life is `open`, `recover`, `start`, any number of `submit`, `close`.
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
    private let worker: StoreWorker
    private let box = StatisticsBox()
    private let life: Life
    private let examiner: StoreExaminer

    /// What changes in a store's life.
    private final class Life: @unchecked Sendable {
        enum Phase { case opened, started, closed }

        let monitor = Monitor()
        // Guarded by the monitor.
        var phase = Phase.opened
        var lock: StoreLock?
        var pool: DatabasePool?
        /// Whether the files are to stay as they are, for whoever wants to know what has become of them.
        var isDamaged = false

        init(lock: StoreLock) { self.lock = lock }
    }

    /// The version of the database that this program writes.
    public static var version: Int { StoreSchema.version }

    /// Opens a node's record, or begins one.
    ///
    /// What is older than its mark is refused before anything is written: the write-ahead log still holds then what
    /// comes behind a damaged page.
    ///
    /// - Parameters:
    ///   - directory: made where it is missing and its parent is there.
    ///   - options: how safe, how patient, how large.
    /// - Returns: a store that is locked for this process, and was not started.
    /// - Throws: `StoreError`, whose description tells the operator what to do.
    public static func open(directory: String, options: StoreOptions = StoreOptions()) throws(StoreError) -> Store {
        try StoreFile.makeDirectory(directory)
        let lock = try StoreLock.take(directory: directory)
        let path = directory + "/tracker.sqlite"
        let mark = try MarkFile.find(in: directory)
        let examiner = StoreExaminer(path: path, mark: mark, acceptsLoss: options.acceptsLoss)
        do {
            // Where it is the last to close, this connection leaves the write-ahead log alone.
            var worker: DatabaseQueue?
            if StoreFile.size(path) == 0 {
                try examiner.examineMissing()
            } else if StoreFile.size(path + "-wal") > 0 {
                worker = try StoreFile.connectReadOnly(path, options)
                _ = try worker?.read { try examiner.examine($0) }
            }
            try StoreFile.makeFile(path, in: directory)
            let writer = try StoreFile.connect(path, options, label: "store")
            let found = try writer.writeWithoutTransaction { db in
                let found = try examiner.examine(db)
                try StoreSchema.prepare(db, path: path, found: found, promise: examiner.firstPromise(options)) { mark in
                    try MarkFile.begin(in: directory, mark, options.durability)
                }
                return found
            }
            // A write shows now, and not at the first announce, what stands in the way of writing.
            if !options.acceptsLoss {
                try writer.write { db in
                    try db.execute(
                        sql: "REPLACE INTO meta (key, value) VALUES (?, CAST(strftime('%s', 'now') AS INTEGER))",
                        arguments: [MetaKey.openedAt])
                }
            }
            let second = try StoreFile.connect(path, options, label: "store-keeper")
            try worker?.close()
            let descriptor = try StoreFile.descriptor(path)
            return Store(path, found, options, writer, second, descriptor, lock, examiner)
        } catch {
            throw StoreError(error, path: path)
        }
    }

    /// Moves the database away, so that the next `open` begins a record of one that has lost its memory; nobody has it
    /// open meanwhile.
    ///
    /// - Returns: where it is now: beside its old place, with a number.
    /// - Throws: `StoreError`; nothing has moved then, or only the database itself.
    package static func setAside(directory: String, durability: Durability) throws(StoreError) -> String {
        let lock = try StoreLock.take(directory: directory)
        defer { withExtendedLifetime(lock) {} }
        let path = directory + "/tracker.sqlite"
        var floor = Promise.something
        if case .mark(let slot, _) = try MarkFile.find(in: directory), slot.mark.head.excess == nil {
            floor = max(floor, slot.mark.head.epoch)
        }
        if let promise = StoreExaminer.promise(path) { floor = max(floor, promise.epoch) }
        let place = try StoreFile.placeAside(path)
        try? FileManager.default.copyItem(atPath: MarkFile.path(directory), toPath: place + "-mark")
        var head = RecordHead()
        head.epoch = floor
        // First: whoever is killed before the rest finds a database that is not its mark's.
        try MarkFile.begin(in: directory, RecordMark(salt: 0, head: head), durability)
        try StoreFile.setAside(path, as: place, in: directory)
        return place
    }

    private init(
        _ path: String, _ found: Int, _ options: StoreOptions, _ writer: DatabaseQueue, _ second: DatabaseQueue,
        _ descriptor: Int32, _ lock: StoreLock, _ examiner: StoreExaminer
    ) {
        self.path = path
        self.examiner = examiner
        foundVersion = found == 0 ? nil : found
        self.options = options
        self.writer = writer
        self.second = second
        self.descriptor = descriptor
        worker = StoreWorker(database: second, descriptor: descriptor, decoder: options.decoder, inbox: inbox)
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
            try writer.read { db in
                let mark = options.acceptsLoss || foundVersion ?? 0 < StoreSchema.version ? nil : examiner.bindingMark
                let recovery = StoreRecovery(db: db, path: path, mark: mark)
                try options.acceptsLoss ? recovery.salvage(visit) : recovery.run(visit)
            }
        } catch let error as DatabaseError {
            let error = StoreError(error, path: path)
            noteDamage(error)
            throw error
        } catch let error as StoreError {
            noteDamage(error)
            throw error
        }
    }

    private func noteDamage(_ error: StoreError) {
        if error.isUnreadable { life.monitor.withLock { life.isDamaged = true } }
    }

    /// Makes writes at once, before `start`: all of them, or none.
    ///
    /// What begins a record with what is left of another says first that it is whole: a part would be taken for all.
    package func write(_ changes: [Persist.Change]) throws(StoreError) {
        precondition(life.monitor.withLock { life.phase == .opened }, "a record is begun before its store starts")
        do {
            let mark = try MarkFile.resume(in: (path as NSString).deletingLastPathComponent, options.durability)
            try writer.writeWithoutTransaction { db in
                let persists = changes.map { Persist(token: PersistToken(0), change: $0) }
                var results: [(PersistToken, StorageFailure?)] = []
                let outcome = try RecordWriter(db, mark: mark)
                    .carryOut(persists[...], results: &results, isIndivisible: true)
                if let failure = outcome.failure { throw StoreError.failed(path: path, reason: failure.reason) }
            }
        } catch {
            throw StoreError(error, path: path)
        }
    }

    /// Whether what is left of a damaged record is wanted.
    package var acceptsLoss: Bool { options.acceptsLoss }

    /// What an operator should know of how the record was found.
    package var notes: [String] { examiner.notes }

    /// Starts the threads; from now on writes are carried out.
    ///
    /// - Parameters:
    ///   - onCompletion: called on the storage thread with writes in the order in which they were submitted, and why
    ///     each was
    ///     not made, if it was not. Must return soon, and must not close the store.
    ///   - onObservation: called on the storage thread with what an operator should know.
    /// - Throws: `StoreError` where a thread has no connection to the database.
    public func start(
        onCompletion: @escaping @Sendable ([(PersistToken, StorageFailure?)]) -> Void,
        onObservation: @escaping @Sendable (StoreObservation) -> Void = { _ in }
    ) throws(StoreError) {
        life.monitor.withLock {
            precondition(life.phase == .opened, "a store is started once")
            life.phase = .started
        }
        do {
            let mark = try MarkFile.resume(in: (path as NSString).deletingLastPathComponent, options.durability)
            worker.start()
            do {
                try StorageThread(
                    database: writer, mark: mark, inbox: inbox, worker: worker, statistics: box,
                    durability: options.durability, onCompletion: onCompletion, onObservation: onObservation
                ).start()
            } catch {
                worker.stop()
                throw error
            }
        } catch {
            // To close it is to wait for no thread then.
            life.monitor.withLock { life.phase = .opened }
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
        let (phase, pool, isDamaged) = life.monitor.withLock {
            defer {
                life.phase = .closed
                life.pool = nil
            }
            return (life.phase, life.pool, life.isDamaged || options.acceptsLoss)
        }
        guard phase != .closed else { return }
        // The last to close, and it cannot write.
        let witness = isDamaged ? try? StoreFile.connectReadOnly(path, options) : nil
        try? witness?.read { _ = try Int.fetchOne($0, sql: "PRAGMA user_version") }
        if phase == .started {
            inbox.close()
            worker.stop()
        }
        // None of these can lose anything: what was reported is in the write-ahead log, and stays there if need be.
        try? pool?.close()
        try? second.close()
        if !isDamaged {
            try? writer.writeWithoutTransaction { db in
                try? StoreFile.shrink(db)
                _ = try db.checkpoint(.truncate)
            }
        }
        try? writer.close()
        try? witness?.close()
        StoreFile.close(descriptor)
        life.monitor.withLock { life.lock = nil }
    }
}
