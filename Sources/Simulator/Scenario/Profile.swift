// How a simulated tracker or cluster elects and votes.

import TrackerLogic

/// How a simulated tracker or cluster elects and votes, and so what is promised of it (`Promises`).
public enum Profile: String, Sendable, Hashable, CaseIterable {
    // Their order is a part of what a seed means: a new one comes last.
    case classic
    case rotating
    case lowest
    case paxos
    /// One tracker, without a bus.
    case alone

    /// Those of several trackers, in the order in which seeds have always taken them in turn.
    package static let clusters: [Profile] = [.classic, .rotating, .lowest, .paxos]

    /// The profile that a seed means where none is named: each fifth seed is a tracker alone, and among the others the
    /// clusters take turns.
    ///
    /// `nodes` are the trackers, where they are counted; of several, none is alone.
    static func drawn(seed: UInt64, nodes: Int?) -> Profile {
        seed % 5 == 4 && nodes ?? 1 == 1 ? .alone : clusters[Int(seed % 4)]
    }

    /// What its trackers are configured with.
    ///
    /// `members` are the ids that vote in quorum mode.
    package func configuration(members: [UInt32]) -> ClusterConfiguration {
        switch self {
        case .classic: ClusterProfile.classic.configuration(members: members)
        case .rotating: ClusterProfile.rotating.configuration(members: members)
        case .lowest: ClusterProfile.lowest.configuration(members: members)
        case .paxos: ClusterProfile.paxos.configuration(members: members)
        case .alone: .alone
        }
    }
}
