// What a snapshot chunk says, as values: for code that shows or stores the state in another form.

import Primitives
import Wire

/// One swarm as a snapshot chunk tells it, whole.
public struct SwarmImage: Sendable, Equatable {
    /// Of the swarm.
    public var infoHash: InfoHash
    /// Downloads completed.
    public var completed: UInt32
    /// Both families, in an order that means nothing.
    public var peers: [PeerImage]

    /// Takes the fields as they are.
    public init(infoHash: InfoHash, completed: UInt32, peers: [PeerImage]) {
        self.infoHash = infoHash
        self.completed = completed
        self.peers = peers
    }
}

/// One peer as a snapshot chunk tells it.
public struct PeerImage: Sendable, Equatable {
    /// Where the peer is reached; a zone means nothing.
    public var address: SocketAddress
    /// As its client sent it.
    public var peerID: PeerID
    /// Bytes.
    public var downloaded: UInt64
    /// Bytes; a seeder has 0.
    public var left: UInt64
    /// Cluster time of the last announce, in seconds since 1970.
    public var lastSeen: UInt32
    /// Whether this download has been counted as completed.
    public var isCounted: Bool

    /// Takes the fields as they are.
    public init(
        address: SocketAddress, peerID: PeerID, downloaded: UInt64, left: UInt64, lastSeen: UInt32, isCounted: Bool
    ) {
        self.address = address
        self.peerID = peerID
        self.downloaded = downloaded
        self.left = left
        self.lastSeen = lastSeen
        self.isCounted = isCounted
    }
}

/// One swarm with what only the table itself cares for.
struct TimedSwarm: Sendable, Equatable {
    var image: SwarmImage
    /// Cluster time at which the last peer left, in seconds since 1970; 0 while there are peers.
    var emptySince: UInt32
    /// The counts whose master is known.
    var counts: [CompletedCount] = []

    /// The counts that add up to the total; what nobody is known to have counted is nobody's.
    var countsByOrigin: [CompletedCount] {
        let known = counts.reduce(0) { $0 &+ $1.count }
        guard known < image.completed else { return counts }
        return counts + [
            CompletedCount(
                infoHash: image.infoHash, origin: CompletedCounters.nobody, count: image.completed - known)
        ]
    }
}

/// A chunk of swarms, whole.
struct ShardImage: Sendable, Equatable {
    var swarms: [TimedSwarm] = []
    var tombstones: [Tombstone] = []
}

/// All that is replicated but swarms and torrent files: chunk 0.
public struct RegistryImage: Sendable, Equatable {
    /// The rules in force, in an order that means nothing.
    public var access: AccessRules
    /// The torrents that are known by name, in an order that means nothing.
    public var torrents: [RegisteredTorrent]
    /// The ids that vote.
    public var members: [UInt32]
    /// Requests of a group that were settled lately.
    public var settled: [SettledKey]
    /// The interval that clients are told.
    public var told: ToldInterval
    /// Accounts and sessions of the console.
    public var accounts = AccountsImage()

    /// Takes the fields as they are.
    public init(
        access: AccessRules, torrents: [RegisteredTorrent], members: [UInt32] = [], settled: [SettledKey] = [],
        told: ToldInterval = ToldInterval()
    ) {
        self.access = access
        self.torrents = torrents
        self.members = members
        self.settled = settled
        self.told = told
    }
}

/// A chunk whose bytes are not what a chunk may be.
public struct ChunkDamaged: Error, Equatable {
    /// Which chunk of the snapshot.
    public var number: UInt32

    /// Takes the chunk's number.
    public init(number: UInt32) { self.number = number }
}
