// What trackers tell each other (docs/protocol.md).

import Primitives

/// One life of a tracker: its number, and a random number drawn at the start of the process.
@frozen
public struct Life: Sendable, Hashable {
    /// 0 while the tracker has no number yet.
    public var id: UInt32
    /// Drawn from the system's randomness at the start of the process; never 0 for a life on the bus.
    public var incarnation: UInt64

    /// Takes the fields as they are.
    @inlinable
    public init(id: UInt32, incarnation: UInt64) {
        self.id = id
        self.incarnation = incarnation
    }
}

/// A place in the history of decided entries: two trackers at one position have applied the same updates.
@frozen
public struct Position: Sendable, Hashable {
    /// The last entry that is decided and applied; 0 before the first.
    public var index: UInt64
    /// The running hash of the log up to and including that entry (`EntryHeader.chain`); 0 before the first.
    public var chain: UInt64

    /// Takes the fields as they are.
    @inlinable
    public init(index: UInt64, chain: UInt64) {
        self.index = index
        self.chain = chain
    }

    /// Before the first entry.
    public static let start = Position(index: 0, chain: 0)
    /// In a `fetch`: any chain will do, since the sender has fetched chunks of the state and wants the log behind them.
    public static let anyChain: UInt64 = 1
}

/// What trackers tell each other (docs/protocol.md): the words of the bully election and of two-phase commit, and
/// Multi-Paxos underneath.
///
/// Every message names its sender's life, whom it is for, and the epoch that it belongs to. Nothing is assumed of the
/// bus but that it may lose, repeat, delay and reorder. `ClusterMessage+Codec.swift` holds the bytes.
public struct ClusterMessage: Sendable, Hashable {
    /// Who says it; its incarnation is what answers are addressed to.
    public var sender: Life
    /// Whom it is for; others do not act on it.
    public var destination: Destination
    /// The epoch that the message belongs to: the one that its sender has promised, stands for, or leads.
    public var epoch: Epoch
    /// What it says.
    public var body: Body

    /// Takes the fields as they are; `encode` checks the lengths in the body.
    public init(sender: Life, destination: Destination, epoch: Epoch, body: Body) {
        self.sender = sender
        self.destination = destination
        self.epoch = epoch
        self.body = body
    }

    /// Whom a message is for.
    public enum Destination: Sendable, Hashable {
        /// Everybody on the bus.
        case all
        /// One life of one tracker. Others that hear it leave it alone.
        case one(Life)
    }

    /// What a message says; the comments have it in the sender's words.
    public enum Body: Sendable, Hashable {
        /// I am alive, and this is how far I am. Any message counts as a sign of life; this one comes when there is no
        /// other.
        case keepalive(Keepalive)
        /// I miss the master of the message's epoch, and would elect another (pre-vote).
        case suspect(at: Position)
        /// I stand for master in the message's epoch (phase 1a).
        case election
        /// I follow you in the message's epoch and none before it, and this is what I have (phase 1b).
        case answer(VoterAnswer)
        /// I am master in the message's epoch. A tracker that is not installed in it yet says `hello`.
        case coordinator(at: Position)
        /// Store this entry (phase 2a). Its header holds index, epoch and attempt.
        case prepare(entry: Entry, at: Position)
        /// It is on my disk (phase 2b).
        case ok(Ballot)
        /// It is not on my disk, and will not be.
        case error(Ballot, RefusalReason)
        /// Entries up to here are decided.
        case commit(at: Position)
        /// Am I still your master? (A read waits for the answer.)
        case confirm(round: UInt64)
        /// You were, when I heard it.
        case confirmed(round: UInt64)
        /// I want what follows this position.
        case fetch(after: Position)
        /// Decided entries, in order.
        case entries([Entry], at: Position)
        /// I want to be part of the cluster, or of its new epoch.
        case hello(Hello)
        /// You are, from here on.
        case welcome(Welcome)
        /// You are not.
        case refused(JoinRefusal)
        /// I want this chunk of your state.
        case fetchChunk(UInt32)
        /// A chunk of my state, with the index of the last entry in it.
        case chunk(number: UInt32, index: UInt64, bytes: [UInt8])
        /// I hold the whole state, which has this digest here.
        case welcomeDone(at: Position, digest: UInt64)
        /// Requests of my clients. What is numbered below `floor` I do not wait for any more. In a group: none of them
        /// was settled up to `index`; else that is 0.
        case forward([ForwardedRequest], floor: UInt64, index: UInt64)
        /// Replies to requests that are in no entry: scrapes, and errors.
        case answered([AnsweredRequest])
        /// Stand for master now: I make way.
        case handover
        /// I am gone.
        case leave
        /// The operator wants the whole cluster to stop: stop in good order, as I do.
        case stop
        /// How I fare, for people; nothing depends on it.
        indirect case report(TrackerReport)
        /// An operator wants this of the master.
        case order(number: UInt64, ClusterOrder)
        /// What came of that order.
        case ordered(number: UInt64, OrderOutcome)
    }
}

/// What a tracker says of itself when it has said nothing else for an interval.
public struct Keepalive: Sendable, Hashable {
    /// The sender's part in the cluster when it wrote this.
    public var role: ClusterRole
    /// The last entry that the sender has applied.
    public var position: Position
    /// The fingerprint of the state at that position.
    public var digest: UInt64
    /// Whether the sender holds the whole state, and so may vote.
    public var hasFullState: Bool
    /// The fingerprints of the sender's shared settings.
    public var settings: SettingsPrint

    /// Takes the fields as they are.
    public init(role: ClusterRole, position: Position, digest: UInt64, hasFullState: Bool, settings: SettingsPrint) {
        self.role = role
        self.position = position
        self.digest = digest
        self.hasFullState = hasFullState
        self.settings = settings
    }
}

/// The part that a tracker plays in its cluster; the numbers are the wire's.
public enum ClusterRole: UInt8, Sendable, Hashable, CaseIterable {
    /// Knows no master, or has not caught up with him.
    case newcomer = 0
    /// Follows a master.
    case slave = 1
    /// Stands in a bully election, and waits for the others' answers.
    case candidate = 2
    /// Leads the epoch: it alone proposes entries.
    case master = 3
}

/// Phase 1b: what a voter has.
public struct VoterAnswer: Sendable, Hashable {
    /// The last entry that the voter has applied.
    public var position: Position
    /// The entry after it that was accepted and is not known to be decided; nil for none.
    public var pending: Entry?
    /// Whether its last life ended in good order and it has followed nobody since: a cluster whose voters all say so
    /// begins without its swarms.
    public var leftInOrder: Bool

    /// Takes the fields as they are.
    public init(position: Position, pending: Entry?, leftInOrder: Bool = false) {
        self.position = position
        self.pending = pending
        self.leftInOrder = leftInOrder
    }
}

/// Why an entry was not stored.
public enum RefusalReason: UInt8, Sendable, Hashable, CaseIterable {
    /// The disk is full, locked or read-only.
    case cannotStore = 1
    /// The voter has promised a higher epoch: the message's.
    case staleEpoch = 2
}

/// A newcomer's wish to be part of the cluster, or of its new epoch.
public struct Hello: Sendable, Hashable {
    /// The last entry that the sender has applied; `Position.start` for one without memory.
    public var position: Position
    /// Whether the sender holds the whole state at that position.
    public var hasFullState: Bool
    /// Whether it has no memory at all: the first start of a cluster, or a lost disk.
    public var isBlank: Bool
    /// The blank lives that it has heard: a cluster is formed when all members have heard all.
    public var heard: [Life]
    /// Whether its last life ended in good order and it has followed nobody since: its swarms are not to be merged
    /// (survivor mode).
    public var leftInOrder: Bool
    /// The fingerprints of the sender's shared settings.
    public var settings: SettingsPrint

    /// Takes the fields as they are; `heard` may have at most `ClusterMessage.Limits.lives` lives.
    public init(
        position: Position, hasFullState: Bool, isBlank: Bool, heard: [Life], leftInOrder: Bool = false,
        settings: SettingsPrint
    ) {
        self.position = position
        self.hasFullState = hasFullState
        self.isBlank = isBlank
        self.heard = heard
        self.leftInOrder = leftInOrder
        self.settings = settings
    }
}

/// The master's answer to a `hello`: from here on the newcomer is part of its epoch.
public struct Welcome: Sendable, Hashable {
    /// The newcomer's number: its own, or one assigned.
    public var id: UInt32
    /// The last entry that is decided: a newcomer that has applied up to here has caught up.
    public var position: Position
    /// Where the newcomer was when it said hello, in survivor mode; it may have decided more since.
    ///
    /// In quorum mode `Position.start`.
    public var answered: Position
    /// The newcomer serves clients only once it has applied entries up to here: then it knows what earlier masters
    /// decided.
    public var servesFrom: UInt64
    /// The attempt that is under way; earlier ones are void.
    public var attempt: UInt32
    /// Whether the state has to be fetched chunk by chunk; else the log suffices.
    public var needsTransfer: Bool
    /// Whether the master is still about to empty the swarms, as the cluster had stopped in good order.
    public var beginsEmpty: Bool
    /// What all trackers of the cluster key their hashes and connection ids with.
    public var secret: ClusterSecret
    /// Shards of the swarm table, and so chunks of the state less one; a power of two.
    public var shardCount: UInt32

    /// Takes the fields as they are.
    public init(
        id: UInt32, position: Position, answered: Position, servesFrom: UInt64, attempt: UInt32, needsTransfer: Bool,
        beginsEmpty: Bool = false, secret: ClusterSecret, shardCount: UInt32
    ) {
        self.beginsEmpty = beginsEmpty
        self.id = id
        self.position = position
        self.answered = answered
        self.servesFrom = servesFrom
        self.attempt = attempt
        self.needsTransfer = needsTransfer
        self.secret = secret
        self.shardCount = shardCount
    }
}

/// Why a tracker may not join.
public enum JoinRefusal: UInt8, Sendable, Hashable, CaseIterable {
    /// Another life has this id.
    case idTaken = 1
    /// There are as many trackers as there may be.
    case clusterFull = 2
    /// It was configured with other members than the cluster.
    case otherMembers = 3
    /// It was told other timings or policies than the cluster.
    case otherSettings = 4
}

/// A client's request on its way from the tracker that heard it to the master.
public struct ForwardedRequest: Sendable, Hashable {
    /// Counts up in the life of the tracker that heard it.
    public var number: UInt64
    /// Where the client sent it from: what connection ids and the peer's address are taken from.
    public var source: SocketAddress
    /// What it asks for.
    public var content: Content

    /// A request in the form in which it came.
    public enum Content: Sendable, Hashable {
        /// As it came, announce or scrape, with its connection id found valid.
        case datagram([UInt8])
        /// Over HTTP: an announce, with the passkey; `numWant` is for the tracker that heard it.
        case announce(Announce, passkey: [UInt8])
        /// Over HTTP: a scrape, its info hashes in the order asked; the passkey is empty for none.
        case scrape([InfoHash], passkey: [UInt8])
    }

    /// Takes the fields as they are.
    public init(number: UInt64, source: SocketAddress, content: Content) {
        self.number = number
        self.source = source
        self.content = content
    }
}

/// What the master says to a request that is in no entry.
public struct AnsweredRequest: Sendable, Hashable {
    /// The number of the request in its `forward`.
    public var number: UInt64
    /// What is answered.
    public var content: Content

    /// An answer that no entry of the log carries.
    public enum Content: Sendable, Hashable {
        /// For each info hash of a scrape, in the order asked: seeders, leechers, completed.
        case counts([ScrapeCounts])
        /// The number of a `Refusal`.
        case refusal(UInt8)
    }

    /// Takes the fields as they are.
    public init(number: UInt64, content: Content) {
        self.number = number
        self.content = content
    }
}

/// The counts of one swarm in a scrape; zeros for a swarm that is unknown.
@frozen
public struct ScrapeCounts: Sendable, Hashable {
    /// Peers that have everything.
    public var seeders: UInt32
    /// All other peers.
    public var leechers: UInt32
    /// How often the torrent has been completed, as far as its tracker knows.
    public var completed: UInt32

    /// Takes the fields as they are.
    @inlinable
    public init(seeders: UInt32, leechers: UInt32, completed: UInt32) {
        self.seeders = seeders
        self.leechers = leechers
        self.completed = completed
    }
}
