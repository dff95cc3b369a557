// What a node wants done.

import Primitives
import Wire

/// What a node wants done: imperatives, in the order in which they were given, into a buffer that its owner keeps.
///
/// The ordering contract: `persists` may be carried out in any number of transactions, in order; each is answered by
/// `persisted` or `persistFailed` with its token, in order. Replies and answers depend on nothing that is not already
/// durable, and may go out at once.
public struct Effects: Sendable, Equatable {
    /// Datagrams to peers.
    public var replies = DatagramBatch()
    /// Answers to requests that came over HTTP.
    public var answers: [Answer] = []
    /// Messages to other trackers, to be sent in this order.
    public var messages: [ClusterMessage] = []
    /// Writes, to be made durable in this order.
    public var persists: [Persist] = []
    /// For the log and the metrics; nothing depends on them.
    public var observations: [Observation] = []

    /// An empty buffer.
    public init() {}

    /// Whether there is nothing to carry out.
    public var isNothing: Bool {
        @inline(__always) get {
            messages.isEmpty && persists.isEmpty && replies.isEmpty && observations.isEmpty && answers.isEmpty
        }
    }

    /// Forgets what was carried out and keeps the room.
    public mutating func removeAll() {
        replies.removeAll()
        answers.clear()
        messages.clear()
        persists.clear()
        observations.clear()
    }
}

/// Names one write, so that its completion can be told.
///
/// Counts up from 1 in each life of a node.
public struct PersistToken: Sendable, Hashable, Comparable {
    /// From 1; what else it may be is its owner's business.
    public var rawValue: UInt64

    /// A token of this number; only a node makes new ones.
    public init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// Whether the left write was asked for earlier.
    public static func < (left: PersistToken, right: PersistToken) -> Bool { left.rawValue < right.rawValue }
}

/// One write to the node's record.
public struct Persist: Sendable, Equatable {
    /// Comes back with `persisted` or `persistFailed`.
    public var token: PersistToken
    /// What is to be durable.
    public var change: Change

    /// Takes the fields as they are.
    public init(token: PersistToken, change: Change) {
        self.token = token
        self.change = change
    }

    /// A change of the record, made wholly or not at all.
    public enum Change: Sendable, Equatable {
        /// Replaces the promise (rule 9): on disk before anything that depends on it.
        case promise(Promise)
        /// Puts an entry into the log, at the index in its header.
        ///
        /// In one piece with it, what was there from this index on goes. An empty log may begin at any index.
        case append(Entry)
        /// Replaces one chunk of the snapshot.
        case saveChunk(SnapshotChunk)
        /// Takes entries up to and including this index out of the log: the snapshot holds all that they did.
        case trim(through: UInt64)
        /// An orderly stop: the log goes, and all chunks but these, which together are the whole record.
        case replaceAll(chunks: [SnapshotChunk])
    }
}

/// What a node has sworn and must remember across restarts.
public struct Promise: Sendable, Hashable {
    /// The highest epoch that it has promised to follow.
    public var epoch: Epoch
    /// Drawn anew at each start of the process.
    public var incarnation: UInt64
    /// The cluster's secret: keys of the swarm table and of connection ids derive from it.
    public var secret: ClusterSecret
    /// Into how many shards this record's snapshot is cut.
    public var shardCount: UInt32
    /// Whether the record holds the whole state: not before a newcomer has it all, and not while a state transfer
    /// writes over it.
    ///
    /// Without, there is no vote.
    public var hasFullState: Bool
    /// Whether the life that wrote it has stopped in good order, and wants the swarms to go with it (in a cluster).
    ///
    /// It is the last thing that a life writes; the next one takes it back before anything else.
    public var leftInOrder: Bool

    /// Takes the fields as they are.
    public init(
        epoch: Epoch, incarnation: UInt64, secret: ClusterSecret, shardCount: UInt32, hasFullState: Bool = true,
        leftInOrder: Bool = false
    ) {
        self.hasFullState = hasFullState
        self.leftInOrder = leftInOrder
        self.epoch = epoch
        self.incarnation = incarnation
        self.secret = secret
        self.shardCount = shardCount
    }
}

/// A part of the state as it was right after one entry was applied.
///
/// Chunk 0 is registry, access rules, users and accounts; chunk s+1 is shard s of the swarm table; those behind are
/// torrent files that were uploaded. Each carries its own index: chunks of different indices together with the log
/// after the least of them are one state, since every update touches one chunk only.
public struct SnapshotChunk: Sendable, Equatable {
    /// 0, the number of a shard and one, or one of those behind.
    public var number: UInt32
    /// The last entry whose updates it holds.
    public var index: UInt64
    /// As `SnapshotCodec` describes them, with number and index under a checksum; empty for "there is no such chunk".
    public var bytes: [UInt8]

    /// Takes the fields as they are.
    public init(number: UInt32, index: UInt64, bytes: [UInt8]) {
        self.number = number
        self.index = index
        self.bytes = bytes
    }
}

/// The answer to a `ClientRequest`.
public struct Answer: Sendable, Equatable {
    /// Of the `ClientRequest` that is answered.
    public var id: UInt64
    /// What is answered.
    public var content: Content

    /// What a request over HTTP leads to.
    public enum Content: Sendable, Equatable {
        /// The announce is durable, and applied.
        case announce(AnnounceAnswer)
        /// In the order asked.
        case scrape([SwarmCounts])
        /// A text for the client (BEP 3 "failure reason").
        case failure(Refusal)
    }

    /// Takes the fields as they are.
    public init(id: UInt64, content: Content) {
        self.id = id
        self.content = content
    }
}

/// What an announce over HTTP is answered with.
public struct AnnounceAnswer: Sendable, Equatable {
    /// Seconds until the client's next announce, with its share of jitter.
    public var interval: UInt32
    /// Seconds before which it is not to announce again.
    public var minInterval: UInt32
    /// Of the swarm, right after the announce was applied.
    public var counts: SwarmCounts
    /// Peers with IPv4 addresses as compact endpoints, with their ids for clients that ask for dictionaries.
    public var ipv4: [(endpoint: CompactIPv4, peerID: PeerID)]
    /// Peers with IPv6 addresses, likewise.
    public var ipv6: [(endpoint: CompactIPv6, peerID: PeerID)]

    /// Takes the fields as they are.
    public init(
        interval: UInt32, minInterval: UInt32, counts: SwarmCounts,
        ipv4: [(endpoint: CompactIPv4, peerID: PeerID)], ipv6: [(endpoint: CompactIPv6, peerID: PeerID)]
    ) {
        self.interval = interval
        self.minInterval = minInterval
        self.counts = counts
        self.ipv4 = ipv4
        self.ipv6 = ipv6
    }

    /// Equal in all fields; tuples, which have no conformances, are compared one by one.
    public static func == (left: Self, right: Self) -> Bool {
        left.interval == right.interval && left.minInterval == right.minInterval && left.counts == right.counts
            && left.ipv4.elementsEqual(right.ipv4, by: ==) && left.ipv6.elementsEqual(right.ipv6, by: ==)
    }
}

/// What a scrape tells of a swarm (BEP 15, BEP 48).
@frozen
public struct SwarmCounts: Sendable, Hashable {
    /// Peers that have everything.
    public var seeders: UInt32
    /// All other peers.
    public var leechers: UInt32
    /// Downloads that were completed.
    public var completed: UInt32

    var peers: Int { Int(seeders) + Int(leechers) }

    /// Takes the fields as they are; zeros are an unknown swarm's.
    @inlinable
    public init(seeders: UInt32 = 0, leechers: UInt32 = 0, completed: UInt32 = 0) {
        self.seeders = seeders
        self.leechers = leechers
        self.completed = completed
    }
}

/// What happened, for people who watch.
public enum Observation: Sendable, Equatable {
    /// This node is master from now on, and serves.
    case becameMaster(Epoch)
    /// It is no longer.
    case steppedDown(Epoch, StepDownReason)
    /// It follows a master from now on.
    case follows(master: UInt32, Epoch)
    /// It misses the master of an epoch.
    case suspects(Epoch)
    /// It stands for master.
    case stands(Epoch)
    /// The bus is lost: it answers nobody until it is back and caught up.
    case fenced
    /// It may not join.
    case joinRefused(JoinRefusal)
    /// Another tracker was told something else than this one.
    ///
    /// Where one of the settings is binding, neither hears the other.
    case settingsDiffer(tracker: UInt32, [SharedSetting])
    /// The master has given it a number.
    case idAssigned(UInt32)
    /// Another tracker has appeared, or come back.
    case trackerUp(UInt32)
    /// Another tracker has not been heard for the detection time, or has said that it leaves.
    case trackerDown(UInt32)
    /// The whole state is being fetched, for what it has is of no use.
    case transferBegan(from: UInt32)
    case transferEnded(Position)
    /// The master has taken in what a tracker knew that was on the other side of a partition.
    ///
    /// `leftOut` of its peers, torrents and counts were more than all sides can have granted together.
    case merged(from: UInt32, updates: Int, leftOut: Int)
    /// A vote has refused an entry; those who waited are told.
    case aborted(index: UInt64, refused: Int)
    /// The ids that vote, from now on.
    case membersChanged([UInt32])
    /// What this tracker holds differs from what the master holds at the same index.
    case diverged(Position)
    /// A write failed; requests that waited for it were refused.
    case storageFailed(StorageFailure, refused: Int)
    /// Writes succeed again.
    case storageRecovered
    /// In a cluster: a write failed, and this tracker's vote is missing; the others may have enough without it.
    case voteFailed(StorageFailure)
    /// In a cluster: writes succeed again.
    case voteRecovered
    /// The operator has asked the master to stop the whole cluster, so this tracker stops, too.
    case stopsWithCluster(by: UInt32)
    /// All who have elected this master had left in good order, so it begins without swarms.
    case swarmsEmptied
    /// The node has answered all it had to and takes nothing more: its owner may close.
    case drained
    /// The access rules are in force as commanded.
    case accessChanged(AccessMode, infoHashes: Int, users: Int)
    /// Torrents have come into the registry or left it.
    case registryChanged(torrents: Int)
    /// A command could not be carried out.
    case commandRefused(String)
    /// A command was not carried out, since it is for another tracker, or this one stops.
    case commandDropped(String)
    /// What became of a change at the console, by the number that it was asked for with.
    case changeEnded(number: UInt64, ChangeOutcome)
    /// The accounts of the files are in force; so many were left out, as the console has others of their names.
    case fileAccountsSet(accounts: Int, leftOut: Int)
}

/// Why a master is none any more.
public enum StepDownReason: Sendable, Hashable {
    /// Another tracker has been promised a higher epoch.
    case superseded(Epoch)
    /// A quorum was not heard for the detection time.
    case quorumLost
    case busLost
    /// It is no longer a voter.
    case removed
    /// Its disk failed.
    case diskBroken
    /// It stops, in good order.
    case stopping
    /// The operator wants an election.
    case asked
    /// A tracker that was told something else leads, in a higher epoch.
    case otherSettings(UInt32)
}

extension Promise: Archived {
    static var blank: Promise { Promise(epoch: .zero, incarnation: 0, secret: .blank, shardCount: 1) }

    mutating func walk(_ archive: inout Archive) {
        epoch.walk(&archive)
        incarnation.walk(&archive)
        secret.walk(&archive)
        shardCount.walk(&archive)
        hasFullState.walk(&archive)
        leftInOrder.walk(&archive)
    }
}

extension SnapshotChunk: Archived {
    static var blank: SnapshotChunk { SnapshotChunk(number: 0, index: 0, bytes: []) }

    mutating func walk(_ archive: inout Archive) {
        number.walk(&archive)
        index.walk(&archive)
        archive.walk(bytes: &bytes)
    }
}
