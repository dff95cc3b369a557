// How great the numbers of messages and records may be.

/// The greatest numbers that another tracker, or a disk, can present.
///
/// Readers refuse greater ones. So a sum of such a number and a small one never overflows, and no tracker can drive a
/// number to where no greater one is left. No cluster comes near: a thousand entries a millisecond reach the bound of
/// an index in a hundred thousand years.
public enum NumberBounds {
    /// The round of an epoch.
    ///
    /// In survivor mode some of it may be drawn at random, a million at most with each election.
    public static let round: UInt64 = 1 << 62
    /// How far any message may take a round ahead of all that was heard before: two elections of trackers that draw.
    public static let roundStep: UInt64 = 1 << 21
    /// How far one message in each detection time may take a round ahead, beyond `roundStep`.
    ///
    /// A member with corrupt memory, or one that lies, could otherwise use up all rounds at once; the others would
    /// promise the last epoch that there is, and never elect anybody again. With this bound that takes seventy years.
    public static let roundJump: UInt64 = 1 << 32
    /// The index of an entry, and the number of a request.
    public static let index: UInt64 = 1 << 62
    /// The attempt of a proposal; its highest bit has another meaning in an entry's header.
    public static let attempt: UInt32 = 1 << 30
    /// Cluster time, in milliseconds since 1970.
    public static let time: Int64 = 1 << 62
    /// Shards of the swarm table; a power of two.
    public static let shardCount: UInt32 = 65_536
    /// Chunks of a snapshot that hold torrent files, behind those of the shards.
    public static let fileChunkCount = 256

    /// Whether a swarm table may have so many shards: a power of two, at most `shardCount`.
    @inlinable
    public static func isShardCount(_ count: UInt32) -> Bool { count.nonzeroBitCount == 1 && count <= shardCount }
}
