// What an operator says about a tracker's cluster.

import Bus
import Primitives
import TrackerLogic

/// What an operator says about a tracker's cluster: where the others are, and in which ways it shall differ from a
/// profile.
///
/// What the logic is told follows from it (`policy`).
public struct ClusterSettings: Sendable, Equatable {
    /// How a vote on an entry is decided; with its patience it is `ClusterConfiguration.Vote`.
    public enum Vote: String, Sendable, Hashable, CaseIterable {
        case majority
        /// Everybody who is active; who does not vote is dropped after a while.
        case all
        /// Everybody who is active; who does not vote is asked again and again.
        case allAskedAgain = "all-asked-again"
    }

    /// Nil for a tracker that is alone.
    public var bus: BusOptions?
    /// The file with the secret that all trackers of the cluster share.
    public var keyFile: String?
    /// Tells clusters apart that share a bus and a key.
    public var name = "swarmkeeper"
    /// The ids that vote when the cluster is formed; none for survivor mode.
    public var members: [UInt32] = []
    /// Whether this tracker is meant not to be among the members.
    public var isSpare = false
    // What is nil follows from the profile.
    /// A bundle of policies with a name; nil for the one that goes with members, or without.
    public var profile: ClusterProfile?
    /// What makes a quorum; nil for the profile's.
    public var mode: ClusterConfiguration.Mode?
    /// Who is preferred as master; nil for the profile's.
    public var election: ClusterConfiguration.ElectionPolicy?
    /// How a vote on an entry is decided; nil for the profile's.
    public var vote: Vote?
    /// After what time a voter that does not vote is dropped, or asked again; nil for the profile's.
    public var votePatience: Duration?
    /// The time between two signs of life; nil for the profile's.
    public var keepalive: Duration?
    /// After so many keepalives a tracker is down; nil for the profile's.
    public var missed: Int?
    /// Nil for `group` where there is a group, else `any`.
    public var entry: ClusterConfiguration.Entry?
    /// The multicast groups in which clients look for the cluster: one of each family at most.
    public var groups: [SocketAddress] = []
    /// The network interface of the groups, by its name or an address of it; nil for the system's choice.
    public var interface: String?
    /// Programs that are run when the tracker's part changes.
    public var hooks = Hooks()

    /// A tracker that is alone.
    public init() {}

    /// The profile in force: as named, else the one that goes with members or without.
    public var effectiveProfile: ClusterProfile { profile ?? (members.isEmpty ? .classic : .paxos) }

    /// What the logic is told; nil for a tracker without a bus.
    var policy: ClusterConfiguration? {
        guard bus != nil else { return nil }
        var policy = effectiveProfile.configuration(members: members)
        if let mode { policy.mode = mode }
        policy.members = members.sorted()
        if let election { policy.election = election }
        if let keepalive { policy.keepalive = keepalive }
        if let missed { policy.missed = missed }
        policy.vote = effectiveVote(policy.vote)
        policy.entry = entry ?? (groups.isEmpty ? .any : .group)
        return policy
    }

    private func effectiveVote(_ standard: ClusterConfiguration.VotePolicy) -> ClusterConfiguration.VotePolicy {
        switch vote {
        case nil:
            switch standard {
            case .majority: .majority
            case .allDropped(let after): .allDropped(after: votePatience ?? after)
            case .allAskedAgain(let every): .allAskedAgain(every: votePatience ?? every)
            }
        case .majority: .majority
        case .all: .allDropped(after: votePatience ?? .seconds(5))
        case .allAskedAgain: .allAskedAgain(every: votePatience ?? .seconds(10))
        }
    }
}

extension ServerConfiguration {
    /// Reads the key that the trackers of the cluster share.
    ///
    /// - Returns: nil for a tracker that is alone.
    /// - Throws: why the file cannot be used.
    public func clusterKey() throws(BusConfigurationError) -> ClusterKey? {
        guard cluster.bus != nil, let file = cluster.keyFile else { return nil }
        return try ClusterKey(file: file)
    }
}
