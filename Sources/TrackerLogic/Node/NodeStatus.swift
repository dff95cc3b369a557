// What a node tells about itself.

import Primitives
import Wire

/// What a node tells about itself, for `tracker status`, the console and the metrics.
public struct NodeStatus: Sendable, Equatable {
    /// This tracker's number; 0 where it has none yet.
    public var id: UInt32
    /// What it does now.
    public var role: Role
    /// The highest that it has promised or stood for.
    public var epoch: Epoch
    /// The last entry that was decided and applied.
    public var commitIndex: UInt64
    /// The last entry of the log.
    public var lastIndex: UInt64
    /// The state's fingerprint: equal on trackers that hold the same at the same index.
    public var digest: UInt64
    /// Which access rules are in force.
    public var accessMode: AccessMode
    /// Sizes of the swarm table.
    public var table: TableCounts
    /// Torrents in the registry.
    public var registeredTorrents: Int
    /// The interval that clients are told now, in seconds.
    public var interval: UInt32
    /// Requests that wait for their entry.
    public var waitingRequests: Int
    /// Totals since the process started.
    public var counters: Counters
    /// Why writes fail now; nil while they succeed.
    public var storageFailure: StorageFailure?

    /// Takes the fields as they are.
    public init(
        id: UInt32, role: Role, epoch: Epoch, commitIndex: UInt64, lastIndex: UInt64, digest: UInt64,
        accessMode: AccessMode, table: TableCounts, registeredTorrents: Int, interval: UInt32, waitingRequests: Int,
        counters: Counters, storageFailure: StorageFailure? = nil
    ) {
        self.id = id
        self.role = role
        self.epoch = epoch
        self.commitIndex = commitIndex
        self.lastIndex = lastIndex
        self.digest = digest
        self.accessMode = accessMode
        self.table = table
        self.registeredTorrents = registeredTorrents
        self.interval = interval
        self.waitingRequests = waitingRequests
        self.counters = counters
        self.storageFailure = storageFailure
    }
}

/// What a node does, in more detail than its part in the cluster (`ClusterRole`).
public enum Role: String, Sendable, Hashable {
    /// Not yet started.
    case restoring
    /// Looks for the cluster, or is fetching its state: it answers nobody.
    case newcomer
    /// Follows a master, and answers its own clients.
    case slave
    /// Standing for master.
    case candidate
    case master
    /// Answering what waits, taking nothing new.
    case draining
    /// Has lost its disk.
    case failed
    case stopped
}

/// Sizes of the swarm table.
public struct TableCounts: Sendable, Hashable {
    /// With peers, or with a count of completed downloads.
    public var torrents = 0
    /// Peers of all swarms with an IPv4 address; a client in two swarms counts twice.
    public var peersIPv4 = 0
    /// Peers of all swarms with an IPv6 address.
    public var peersIPv6 = 0
    /// Peers of both families that have everything.
    public var seeders = 0

    /// An empty table.
    public init() {}

    /// Peers of both families.
    public var peers: Int { peersIPv4 + peersIPv6 }
}

/// Totals since the process started; they only grow.
///
/// In a cluster a reply counts at the tracker that sends it to its client, whoever has decided it, and nowhere else. So
/// the figures of one tracker are what its clients get, and their sums what the cluster answers.
public struct Counters: Sendable, Hashable {
    /// BEP 15's connect requests that were answered.
    public var connects: UInt64 = 0
    /// Announces that were granted and answered here, over UDP and HTTP; those refused are errors.
    public var announces: UInt64 = 0
    /// Scrapes that were granted and answered here, over UDP and HTTP; those refused are errors.
    public var scrapes: UInt64 = 0
    /// Error replies that were sent: to requests that were refused, or could not be read.
    public var errors: UInt64 = 0
    /// Error replies that were withheld by the limit per address.
    public var errorsWithheld: UInt64 = 0
    /// Datagrams that got silence: junk, wrong magic, source port 0, forged connection ids.
    public var ignored: UInt64 = 0
    /// Requests dropped because too many were waiting.
    public var dropped: UInt64 = 0
    /// Requests given up because nobody could answer them before their clients would ask again.
    public var timedOut: UInt64 = 0
    /// Messages of other trackers with an epoch that no election can have come to.
    public var implausible: UInt64 = 0
    /// Entries applied.
    public var entries: UInt64 = 0
    /// Updates applied.
    public var updates: UInt64 = 0
    /// Peers that fell silent and were taken out.
    public var expired: UInt64 = 0
    /// Downloads completed.
    public var completed: UInt64 = 0

    /// Nothing has happened yet.
    public init() {}
}
