// What a store tells about itself.

import Primitives
import TrackerLogic

/// Totals since the store was opened, and how things stand.
public struct StoreStatistics: Sendable, Equatable {
    /// Transactions that carried writes out, or tried to.
    public var transactions: UInt64 = 0
    /// Writes that were made.
    public var writes: UInt64 = 0
    /// Writes that were refused or failed.
    public var failedWrites: UInt64 = 0
    /// Time that the transactions took, together.
    public var totalTime = Duration.zero
    /// Time that the longest of them took.
    public var longestTime = Duration.zero
    /// Bytes of the write-ahead log.
    public var walByteCount = 0
    /// Chunks whose rows in the tables are not up to date.
    public var staleChunks = 0

    /// Nothing has been written.
    public init() {}
}

/// What happened to a store, for people who watch.
public enum StoreObservation: Sendable, Equatable {
    /// Writes failed; told once for each kind of failure until writes succeed again.
    case writesFailed(StorageFailure, writes: Int, reason: String)
    /// A program reads the database for so long that the write-ahead log grows and grows.
    case checkpointHeldUp(walByteCount: Int)
    /// The write-ahead log could not be copied into the database.
    case checkpointFailed(reason: String)
    /// A chunk could not be brought into the tables; the record itself is not concerned.
    case chunkUnreadable(number: UInt32, reason: String)
    /// The tables for people could not be brought up to date; told once.
    case tablesFailed(reason: String)
}

extension StoreObservation: CustomStringConvertible {
    /// A sentence or two for the log, with what to do.
    public var description: String {
        switch self {
        case .writesFailed(let failure, let writes, let reason):
            switch failure {
            case .full: "The database or its disk is full, \(writes) writes failed (\(reason)). Free some space."
            case .locked:
                "Another program keeps the database locked, \(writes) writes failed (\(reason)). Close it there."
            case .readOnly:
                "The database has become read-only, \(writes) writes failed (\(reason)). Mount its disk writable."
            case .broken:
                "The database cannot be written to any more (\(reason)). Look after its disk and restart the tracker."
            }
        case .checkpointHeldUp(let count):
            "A program has been reading the database for long, so that its write-ahead log has grown to "
                + "\(count >> 20) MiB. End that program, or its transaction."
        case .checkpointFailed(let reason):
            "The write-ahead log could not be copied into the database (\(reason)); the tracker tries again."
        case .chunkUnreadable(let number, let reason):
            "Chunk \(number) of the snapshot could not be brought into the tables (\(reason)); "
                + "they show its swarms as they were before."
        case .tablesFailed(let reason):
            "The tables of the database could not be brought up to date (\(reason)). The record itself is complete."
        }
    }
}

/// Statistics that one thread writes and others read.
final class StatisticsBox: @unchecked Sendable {
    private let monitor = Monitor()
    // Guarded by the monitor.
    private var statistics = StoreStatistics()

    var value: StoreStatistics { monitor.withLock { statistics } }

    func update(_ body: (inout StoreStatistics) -> Void) { monitor.withLock { body(&statistics) } }
}
