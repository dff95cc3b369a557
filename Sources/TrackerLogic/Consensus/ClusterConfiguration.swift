// How trackers act as one (docs/protocol.md).

import Primitives

/// How trackers act as one (docs/protocol.md): mode, policies and timings, the configuration of one set of machines.
public struct ClusterConfiguration: Sendable, Hashable {
    /// What makes a quorum, and so what is promised.
    public enum Mode: String, Sendable, Hashable, CaseIterable {
        /// A majority of the members. Agreement under any fault; with a majority gone, silence.
        case quorum
        /// A majority of the trackers now active, down to a lone survivor. Service under any fault; after a partition,
        /// a merge.
        case survivor
    }

    /// Who is preferred as master.
    public enum ElectionPolicy: String, Sendable, Hashable, CaseIterable {
        /// The classic bully.
        case highest
        case lowest
        /// The next higher id after the last master's, wrapping round. Nobody is handed the role back.
        case next
    }

    /// Whose OK an entry needs.
    public enum VotePolicy: Sendable, Hashable {
        case majority
        /// Everybody's who is active. One that lives but does not vote for so long is dropped from the active list.
        case allDropped(after: Duration)
        /// Everybody's who is active. One that does not vote is asked again so often, until it votes or is down.
        case allAskedAgain(every: Duration)
    }

    /// Where peers knock (docs/operations.md).
    public enum Entry: String, Sendable, Hashable, CaseIterable {
        /// Each tracker answers its own clients, and sends their requests on to the master.
        case any
        /// All hear every request; the master answers.
        case group
    }

    /// What makes a quorum; the same on all trackers of a cluster.
    public var mode: Mode
    /// The ids that vote, in quorum mode: as they are when the cluster is formed; the log changes them.
    public var members: [UInt32]
    /// Who is preferred as master; the same on all trackers of a cluster.
    public var election: ElectionPolicy
    /// Whose OK an entry needs; the same on all trackers of a cluster.
    public var vote: VotePolicy
    /// Between two signs of life.
    public var keepalive: Duration
    /// A tracker that was not heard for so many keepalives is down.
    public var missed: Int
    /// Where requests come in; the same on all trackers of a cluster.
    public var entry: Entry
    /// Between two messages in which a slave forwards requests: those that it hears meanwhile share the next one.
    ///
    /// A broker carries some ten thousand messages a second, and clients ask more often than that.
    public var forwardPause: Duration
    /// Whether there is a bus to other trackers.
    ///
    /// A tracker without one is all that there is of its cluster, and does all that a master does. It is spared what is
    /// done for others: it waits for nobody, tells nobody, and keeps nothing for them; what is on its disk is decided.
    public private(set) var hasBus = true

    /// Takes the fields as they are, and sorts the members.
    public init(
        mode: Mode, members: [UInt32] = [], election: ElectionPolicy = .highest, vote: VotePolicy = .majority,
        keepalive: Duration = .seconds(1), missed: Int = 2, entry: Entry = .any,
        forwardPause: Duration = .milliseconds(1)
    ) {
        self.mode = mode
        self.members = members.sorted()
        self.election = election
        self.vote = vote
        self.keepalive = keepalive
        self.missed = missed
        self.entry = entry
        self.forwardPause = forwardPause
    }

    /// A tracker without a bus.
    public static var alone: ClusterConfiguration {
        var configuration = ClusterConfiguration(mode: .survivor)
        configuration.hasBus = false
        return configuration
    }

    /// After so long a silence a tracker is taken for down.
    public var detectionTime: Duration { keepalive * missed }

    /// After so long no candidate counts an answer any more that a voter gave before.
    ///
    /// A candidate gives up after a detection time in which it asks, and one in which it fetches what it lacks; the
    /// third is for clocks that do not run alike.
    public var answerLifetime: Duration { detectionTime * 3 }
}

/// A bundle of policies with a name.
public enum ClusterProfile: String, Sendable, Hashable, CaseIterable {
    /// Highest id, majority of the active, survivor mode. The default where no members are named.
    case classic
    /// Next id in turn, all active must be ready, silent ones are dropped after 5 s; twice as fast.
    case rotating
    /// Lowest id, all active must be ready, asked again every 10 s.
    case lowest
    /// Highest id, majority of the members, quorum mode. The default where members are named.
    case paxos

    /// The policies of this profile, with its own timings.
    ///
    /// - Parameter members: the ids that vote, where the profile is of quorum mode; ignored elsewhere.
    /// - Returns: a configuration whose single fields may be changed afterwards.
    public func configuration(members: [UInt32]) -> ClusterConfiguration {
        switch self {
        case .classic: ClusterConfiguration(mode: .survivor)
        case .rotating:
            ClusterConfiguration(
                mode: .survivor, election: .next, vote: .allDropped(after: .seconds(5)), keepalive: .milliseconds(500))
        case .lowest:
            ClusterConfiguration(mode: .survivor, election: .lowest, vote: .allAskedAgain(every: .seconds(10)))
        case .paxos: ClusterConfiguration(mode: .quorum, members: members)
        }
    }
}
