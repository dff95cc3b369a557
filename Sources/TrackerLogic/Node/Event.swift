// What can happen to a tracker node.

import Primitives
import Wire

/// What can happen to a tracker node: past facts, each with all that the logic needs to know of it.
public enum Event: Sendable, Equatable {
    /// The node's record has been read back (`restore`) and its owner is ready to carry out effects.
    case started
    /// Datagrams from peers, as one batch.
    case datagramsReceived(DatagramBatch)
    /// A request that came over HTTP, already decoded.
    case requestReceived(ClientRequest)
    /// A write asked for by `Effects.persists` is durable.
    case persisted(PersistToken)
    /// A write asked for by `Effects.persists` was not made, for certain or perhaps.
    case persistFailed(PersistToken, StorageFailure)
    /// A message from another tracker, found authentic.
    case messageReceived(ClusterMessage)
    /// The bus to the other trackers works from now on.
    case busConnected
    /// The bus is lost: nothing comes, and what was sent last may be lost.
    case busLost
    /// How this tracker fares, for the others to know; about once a keepalive.
    indirect case reportMade(TrackerReport)
    /// `nextDeadline` has come. A spurious one does nothing.
    case deadlineReached
    /// The operator wants something.
    case commandReceived(OperatorCommand)
}

/// A request over HTTP.
///
/// UDP ones arrive as bytes.
public struct ClientRequest: Sendable, Equatable {
    /// Chosen by the owner; comes back in the `Answer`.
    public var id: UInt64
    /// The client's address as the tracker believes it.
    public var source: SocketAddress
    /// The passkey of the URL; empty where there was none.
    public var passkey: [UInt8]
    /// What it asks for.
    public var content: Content

    /// An announce or a scrape, decoded.
    public enum Content: Sendable, Equatable {
        /// One announce; its `numWant` is within no bounds yet.
        case announce(Announce)
        /// At most `Limits.scrapeHashes` info hashes.
        case scrape([InfoHash])
    }

    /// Takes the fields as they are.
    public init(id: UInt64, source: SocketAddress, passkey: [UInt8] = [], content: Content) {
        self.id = id
        self.source = source
        self.passkey = passkey
        self.content = content
    }
}

/// What an operator, or the owner on his behalf, asks of a running node.
public enum OperatorCommand: Sendable, Equatable {
    /// Replaces the access rules; the difference to those in force is replicated like any update.
    case setAccess(AccessRules)
    /// Replaces the torrents that came from files: the registry, and which files of it may stay. Swarms stay, and what
    /// people have uploaded.
    case setFileTorrents([FileTorrent])
    /// Makes a tracker a voter that follows and is in sync (quorum mode).
    case addMember(UInt32)
    /// Takes a voter's vote.
    case removeMember(UInt32)
    /// Gives one voter's vote to another tracker, in two steps, so that majorities always overlap.
    case replaceMember(UInt32, by: UInt32)
    /// Hands the master's role to another tracker, if this one has it.
    case handOver(to: UInt32)
    /// Ends this master's term, so that a new master is elected.
    case elect
    /// Take no more requests, answer those that wait, and stop.
    case drain
    /// The same, and all other trackers of the cluster, if this one is master.
    case stopCluster
    /// Takes all swarms out; what a cluster that has stopped in good order begins with.
    case emptySwarms
    /// Changes what people keep at the console; `number` is the asker's, and comes back in `Observation.changeEnded`.
    indirect case change(number: UInt64, ConsoleChange)
    /// Replaces the accounts that came from files; those of the console stay.
    case setFileAccounts([Account])
}

/// Why a write was not made.
public enum StorageFailure: UInt8, Sendable, Hashable {
    /// Certainly not written: the disk or the database is full.
    case full
    /// Certainly not written: somebody else holds the database.
    case locked
    /// Certainly not written: the file may not be written to.
    case readOnly
    /// Perhaps written, perhaps not: the disk failed, or the database is damaged.
    case broken
}
