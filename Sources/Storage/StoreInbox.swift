// What waits for the storage thread.

import Primitives
import TrackerLogic

/// What waits for the storage thread: writes from the node's thread, and word from the storage worker.
final class StoreInbox: @unchecked Sendable {
    /// Word from the storage worker.
    enum WorkerMessage: Sendable {
        /// Pages of the write-ahead log that are in the database now.
        case copied(pages: Int)
        case copyFailed(reason: String)
        /// What to do for a chunk; nil where there is no such chunk any more.
        case planned(order: UInt64, plan: TablePlan?)
        case planFailed(number: UInt32, order: UInt64, reason: String)
    }

    private let monitor = Monitor()
    // Guarded by the monitor.
    private var writes: [Persist] = []
    private var workerMessages: [WorkerMessage] = []
    private var isOpened = false
    private var openingError: (any Error)?
    private var isClosing = false
    private var isClosed = false

    /// Adds writes to the queue.
    ///
    /// The node bounds how many it leaves unanswered.
    func submit(_ persists: [Persist]) {
        guard !persists.isEmpty else { return }
        monitor.withLock {
            precondition(!isClosing, "a write was handed to a store that is being closed")
            writes.append(contentsOf: persists)
            monitor.signal()
        }
    }

    func post(_ message: WorkerMessage) {
        monitor.withLock {
            workerMessages.append(message)
            monitor.signal()
        }
    }

    /// Waits until there is something to do, or a deadline has come.
    ///
    /// - Parameters:
    ///   - writes: empty; becomes all writes that wait. Its room is used for the next ones.
    ///   - workerMessages: empty; becomes all messages of the worker that wait.
    ///   - deadline: nil to wait for as long as it takes.
    ///   - evenWhenClosing: whether to wait though the store is to close.
    /// - Returns: false once the store is to close and nothing waits.
    func take(
        writes: inout [Persist], workerMessages: inout [WorkerMessage], until deadline: Instant?,
        evenWhenClosing: Bool = false
    ) -> Bool {
        precondition(
            writes.isEmpty && workerMessages.isEmpty, "what was taken from the inbox is dealt with before more is")
        return monitor.withLock {
            while self.writes.isEmpty, self.workerMessages.isEmpty, !isClosing || evenWhenClosing {
                if !monitor.wait(until: deadline) { break }
            }
            swap(&self.writes, &writes)
            swap(&self.workerMessages, &workerMessages)
            return !isClosing || !writes.isEmpty
        }
    }

    /// Takes the messages of the worker.
    ///
    /// - Parameters:
    ///   - workerMessages: empty; becomes all that wait.
    ///   - deadline: until when to wait for one; nil not to wait.
    func take(workerMessages: inout [WorkerMessage], until deadline: Instant?) {
        monitor.withLock {
            if let deadline {
                while self.workerMessages.isEmpty, monitor.wait(until: deadline) {}
            }
            swap(&self.workerMessages, &workerMessages)
        }
    }

    /// Whether a write waits.
    var hasWrites: Bool { monitor.withLock { !writes.isEmpty } }

    /// The storage thread is ready, or could not be.
    func opened(_ error: (any Error)?) {
        monitor.withLock {
            isOpened = true
            openingError = error
            monitor.signal()
        }
    }

    func waitUntilOpened() throws {
        try monitor.withLock {
            while !isOpened { monitor.wait() }
            if let openingError { throw openingError }
        }
    }

    /// Asks the storage thread to finish, and waits until it has.
    func close() {
        monitor.withLock {
            isClosing = true
            monitor.signal()
            while !isClosed { monitor.wait() }
        }
    }

    /// The storage thread has ended.
    func closed() {
        monitor.withLock {
            isClosed = true
            monitor.signal()
        }
    }
}
