// The thread beside the storage thread, for what takes long and changes no rows.

import Foundation
import GRDB

/// The thread beside the storage thread, for what takes long and changes no rows: copies the write-ahead log into the
/// database, and prepares the tables' next chunk.
///
/// It has a connection of its own.
final class StoreWorker: @unchecked Sendable {
    /// Of a copy that SQLite puts off, before it is told of: a fifth of a second.
    private static let attempts = 200

    private let database: DatabaseQueue
    private let decoder: ChunkDecoder
    private let inbox: StoreInbox
    /// Of the database file, to sync it.
    ///
    /// Closed after all of SQLite's: closing any of a file's descriptors gives up the process's locks on it.
    private let descriptor: Int32

    private let monitor = Monitor()
    // Guarded by the monitor.
    private var isCopyWanted = false
    private var wanted: (number: UInt32, order: UInt64)?
    private var isStopping = false
    private var isStopped = false

    init(database: DatabaseQueue, descriptor: Int32, decoder: ChunkDecoder, inbox: StoreInbox) {
        self.database = database
        self.descriptor = descriptor
        self.decoder = decoder
        self.inbox = inbox
    }

    func start() {
        let thread = Thread { [self] in run() }
        thread.name = "store-keeper"
        thread.stackSize = 2 << 20
        thread.start()
    }

    /// Copies what the write-ahead log holds; answers with `copied` or `copyFailed`.
    func copy() {
        monitor.withLock {
            isCopyWanted = true
            monitor.signal()
        }
    }

    /// Prepares a chunk's rows; answers with `planned` or `planFailed`, which repeat the order's number.
    func plan(_ number: UInt32, order: UInt64) {
        monitor.withLock {
            wanted = (number, order)
            monitor.signal()
        }
    }

    /// Ends the thread and waits for that.
    func stop() {
        monitor.withLock {
            isStopping = true
            monitor.signal()
            while !isStopped { monitor.wait() }
        }
    }

    private func run() {
        while true {
            let (isCopyWanted, wanted, isStopping) = monitor.withLock {
                while !self.isCopyWanted, self.wanted == nil, !self.isStopping { monitor.wait() }
                defer {
                    self.isCopyWanted = false
                    self.wanted = nil
                }
                return (self.isCopyWanted, self.wanted, self.isStopping)
            }
            if isStopping { break }
            if isCopyWanted { inbox.post(copied()) }
            if let wanted { inbox.post(planned(wanted.number, order: wanted.order)) }
        }
        monitor.withLock {
            isStopped = true
            monitor.signal()
        }
    }

    private func copied() -> StoreInbox.WorkerMessage {
        do {
            let (all, copied) = try checkpoint()
            // SQLite syncs the file only where all is copied. What it leaves would have to be synced by whoever
            // copies the rest: the storage thread.
            if copied < all, fdatasync(descriptor) != 0 {
                return .copyFailed(reason: String(cString: strerror(errno)))
            }
            return .copied(pages: copied)
        } catch {
            return .copyFailed(reason: StoreError.text(of: error))
        }
    }

    /// Copies as much as can be copied beside readers and the writer.
    ///
    /// SQLite does not wait in it: where the writer is just changing the head of the index, it says that the database
    /// is locked. A moment later it is not.
    private func checkpoint() throws -> (walFrameCount: Int, checkpointedFrameCount: Int) {
        var attempt = 1
        while true {
            do {
                return try database.writeWithoutTransaction { try $0.checkpoint(.passive) }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY && attempt < Self.attempts {
                attempt += 1
                usleep(1_000)
            }
        }
    }

    private func planned(_ number: UInt32, order: UInt64) -> StoreInbox.WorkerMessage {
        do {
            let plan = try database.read { try TablePlan.make(number, $0, decoder) }
            return .planned(order: order, plan: plan)
        } catch {
            return .planFailed(number: number, order: order, reason: StoreError.text(of: error))
        }
    }
}
