// The thread that writes.

import Foundation
import GRDB
import Primitives
import TrackerLogic
import Wire

/// The thread that writes: takes what waits, carries it out, tells what became of it; between transactions it sees to
/// checkpoints and to the tables.
///
/// Order within a turn: writes first and their completions at once, then a checkpoint's last step where one is due,
/// then a slice of the tables.
final class StorageThread: Sendable {
    typealias Completion = @Sendable ([(PersistToken, StorageFailure?)]) -> Void

    private let database: DatabaseQueue
    private let mark: MarkFile
    private let inbox: StoreInbox
    private let worker: StoreWorker
    private let statistics: StatisticsBox
    private let durability: Durability
    private let onCompletion: Completion
    private let onObservation: @Sendable (StoreObservation) -> Void

    init(
        database: DatabaseQueue, mark: MarkFile, inbox: StoreInbox, worker: StoreWorker, statistics: StatisticsBox,
        durability: Durability, onCompletion: @escaping Completion,
        onObservation: @escaping @Sendable (StoreObservation) -> Void
    ) {
        self.database = database
        self.mark = mark
        self.inbox = inbox
        self.worker = worker
        self.statistics = statistics
        self.durability = durability
        self.onCompletion = onCompletion
        self.onObservation = onObservation
    }

    /// - Throws: where the statements cannot be prepared; the thread has ended then.
    func start() throws {
        let thread = Thread { [self] in
            // The connection is this thread's own until it ends.
            database.writeWithoutTransaction { db in
                do {
                    let loop = try StorageLoop(self, db)
                    inbox.opened(nil)
                    loop.run()
                } catch {
                    inbox.opened(error)
                }
            }
            inbox.closed()
        }
        thread.name = "store"
        thread.stackSize = 2 << 20
        thread.start()
        try inbox.waitUntilOpened()
    }

    /// What lives only on the thread.
    private final class StorageLoop {
        /// Bytes of writes in one transaction: more would gain nothing and let the first ones wait long.
        private static let maxGroupByteCount = 4 << 20
        /// What a transaction waits while the write-ahead log is too long.
        private static let moment = Duration.milliseconds(20)
        /// How long a close works on the tables before it leaves the rest to the next start.
        private static let closing = Duration.seconds(3)

        private let shell: StorageThread
        private let db: Database
        private let gauge: WALGauge
        private let writer: RecordWriter
        private let tables: TableUpdater
        private var checkpoints = CheckpointPolicy()
        private var isBusy = false
        private var reportedFailure: StorageFailure?
        private var reportedHeldUp = false
        private var reportedTables = false
        // Buffers that are used again and again.
        private var writes: [Persist] = []
        private var workerMessages: [StoreInbox.WorkerMessage] = []

        init(_ shell: StorageThread, _ db: Database) throws {
            self.shell = shell
            self.db = db
            writer = try RecordWriter(db, mark: shell.mark)
            tables = try TableUpdater(db, writer: writer, worker: shell.worker)
            gauge = WALGauge(db)
            shell.statistics.update { [tables] in $0.staleChunks = tables.staleCount }
        }

        func run() {
            tables.order()
            while shell.inbox.take(writes: &writes, workerMessages: &workerMessages, until: deadline) {
                turn()
            }
            close()
            gauge.remove(from: db)
        }

        private var deadline: Instant? { mayGrow ? tables.deadline : nil }

        /// Whether the write-ahead log has room for what is only for people.
        private var mayGrow: Bool { checkpoints.pages < CheckpointPolicy.hardLimit && !writer.isBroken }

        private func turn() {
            receiveWorkerMessages()
            if !writes.isEmpty {
                isBusy = true
                var rest = writes[...]
                while !rest.isEmpty {
                    let group = rest.prefix(StorageLoop.groupLength(rest))
                    rest = rest.dropFirst(group.count)
                    giveWay()
                    carryOut(group)
                    checkpoint()
                }
                writes.removeAll(keepingCapacity: true)
            }
            if mayGrow { slice() }
            // Behind the slice, which may have come to the end of a chunk.
            tables.order()
            checkpoint()
            shell.statistics.update { [checkpoints, tables] in
                $0.walByteCount = checkpoints.pages * 4_096
                $0.staleChunks = tables.staleCount
            }
        }

        /// Waits where the worker does not keep up with the writes, so that the write-ahead log stays bounded.
        private func giveWay() {
            repeat {
                let isLate = checkpoints.pressure != .none
                shell.inbox.take(
                    workerMessages: &workerMessages, until: isLate ? StoreClock.now + StorageLoop.moment : nil)
                receiveWorkerMessages()
                checkpoint()
            } while checkpoints.pressure == .full
        }

        private func carryOut(_ group: ArraySlice<Persist>) {
            var results: [(PersistToken, StorageFailure?)] = []
            results.reserveCapacity(group.count)
            let start = StoreClock.now
            let outcome = writer.carryOut(group, results: &results)
            let time = StoreClock.now - start
            if outcome.isReplaced { tables.replaced() }
            for number in outcome.savedChunks { tables.saved(number) }
            // Before the completions: whoever hears of a write finds it in the statistics.
            shell.statistics.update { [tables] in
                $0.transactions += 1
                $0.writes += UInt64(group.count - outcome.failures)
                $0.failedWrites += UInt64(outcome.failures)
                $0.totalTime = $0.totalTime + time
                $0.longestTime = max($0.longestTime, time)
                $0.staleChunks = tables.staleCount
            }
            shell.onCompletion(results)
            checkpoints.committed(pages: gauge.pages)
            report(outcome)
        }

        private func report(_ outcome: RecordWriter.Outcome) {
            guard let failure = outcome.failure else {
                if outcome.failures == 0 { reportedFailure = nil }
                return
            }
            guard reportedFailure != failure.kind else { return }
            reportedFailure = failure.kind
            // Once: where there is no room for this either, the next attempts would only write in vain.
            if failure.kind == .full { checkpoints.roomIsNeeded() }
            shell.onObservation(.writesFailed(failure.kind, writes: outcome.failures, reason: failure.reason))
        }

        private func receiveWorkerMessages() {
            for letter in workerMessages {
                switch letter {
                case .copied(let pages):
                    checkpoints.copied(pages)
                case .copyFailed(let reason):
                    checkpoints.copyFailed()
                    shell.onObservation(.checkpointFailed(reason: reason))
                case .planned(let order, let plan):
                    tables.planned(order: order, plan)
                case .planFailed(let number, let order, let reason):
                    tables.planned(order: order, nil)
                    shell.onObservation(.chunkUnreadable(number: number, reason: reason))
                }
            }
            workerMessages.removeAll(keepingCapacity: true)
        }

        private func checkpoint() {
            switch checkpoints.next() {
            case nil: return
            case .copy: shell.worker.copy()
            case .finish:
                // Where it fails, the worker's next attempt says why.
                checkpoints.finished(copied: try? db.checkpoint(.passive).checkpointedFrameCount)
            }
            if checkpoints.isHeldUp, !reportedHeldUp {
                shell.onObservation(.checkpointHeldUp(walByteCount: checkpoints.pages * 4_096))
            }
            reportedHeldUp = checkpoints.isHeldUp
        }

        private func slice() {
            guard let deadline = tables.deadline, deadline <= StoreClock.now else { return }
            do {
                // Commits return before they are on the disk: the next transaction of the log brings them there.
                try setSync("NORMAL")
                try tables.advance(isBusy: isBusy) { [inbox = shell.inbox] in inbox.hasWrites }
            } catch {
                if StorageFailure.of(error) == .broken { tables.disable() }
                if !reportedTables { shell.onObservation(.tablesFailed(reason: StoreError.text(of: error))) }
                reportedTables = true
            }
            isBusy = false
            do {
                try setSync("FULL")
            } catch {
                // From here on nothing would be sure to reach the disk.
                writer.giveUp()
                shell.onObservation(.writesFailed(.broken, writes: 0, reason: StoreError.text(of: error)))
            }
            checkpoints.committed(pages: gauge.pages)
        }

        private func setSync(_ level: String) throws {
            if shell.durability == .disk { try db.execute(sql: "PRAGMA synchronous = \(level)") }
        }

        /// There are no more writes; brings the tables up to date, if that takes no longer than people wait.
        private func close() {
            let end = StoreClock.now + StorageLoop.closing
            while true {
                turn()
                if writer.isBroken || tables.isIdle || StoreClock.now >= end { return }
                _ = shell.inbox.take(
                    writes: &writes, workerMessages: &workerMessages, until: earliest(deadline, end),
                    evenWhenClosing: true)
            }
        }

        /// How many of the first writes make a transaction.
        private static func groupLength(_ writes: ArraySlice<Persist>) -> Int {
            var bytes = 0
            var count = 0
            for persist in writes {
                bytes += persist.byteCount
                if count > 0, bytes > maxGroupByteCount { break }
                count += 1
            }
            return count
        }
    }
}

extension Persist {
    /// About what a write weighs.
    fileprivate var byteCount: Int {
        switch change {
        case .append(let entry): entry.bytes.count + 64
        case .saveChunk(let chunk): chunk.bytes.count + 64
        case .replaceAll(let chunks): chunks.reduce(64) { $0 + $1.bytes.count }
        case .promise, .trim: 64
        }
    }
}
