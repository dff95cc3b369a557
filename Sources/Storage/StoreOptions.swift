// What an operator may choose about a node's record.

import Primitives
import TrackerLogic

/// What a write survives that was reported as persisted, and so an announce that was answered.
public enum Durability: String, Sendable, Hashable, CaseIterable {
    /// The death of the process and loss of power: each transaction waits for the disk.
    case disk
    /// The end of the process, however sudden (`kill -9`); a loss of power may take the last seconds back. Faster.
    case process
}

/// What an operator may choose about a node's record.
public struct StoreOptions: Sendable {
    /// What a write survives that was reported as persisted.
    public var durability = Durability.disk
    /// How long a write waits while another program holds the database.
    ///
    /// The log stands still meanwhile, so it is short.
    public var busyTimeout = Duration.milliseconds(500)
    /// Bytes that the database file may have at most; nil leaves that to the disk.
    ///
    /// What does not fit fails as `.full`.
    public var maxByteCount: Int?
    /// Whether to read what is left of a damaged record, and to leave its files as they are.
    public var acceptsLoss = false
    /// Of a record that begins in the place of one that was lost.
    public var shardCount: UInt32 = 1024
    /// Reads snapshot chunks for the tables.
    public var decoder = ChunkDecoder.standard

    /// The defaults.
    public init() {}
}

/// Turns a snapshot chunk into what it says.
public struct ChunkDecoder: Sendable {
    /// Reads a chunk other than 0.
    public var swarms: @Sendable (SnapshotChunk) throws(ChunkDamaged) -> [SwarmImage]
    /// Reads chunk 0.
    public var registry: @Sendable (SnapshotChunk) throws(ChunkDamaged) -> RegistryImage

    /// Takes both readers.
    public init(
        swarms: @escaping @Sendable (SnapshotChunk) throws(ChunkDamaged) -> [SwarmImage],
        registry: @escaping @Sendable (SnapshotChunk) throws(ChunkDamaged) -> RegistryImage
    ) {
        self.swarms = swarms
        self.registry = registry
    }

    /// The one that `TrackerLogic` brings.
    public static let standard = ChunkDecoder(
        swarms: { chunk throws(ChunkDamaged) in try chunk.swarms() },
        registry: { chunk throws(ChunkDamaged) in try chunk.registry() })
}
