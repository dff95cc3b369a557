// What checkers may see of a node beyond its status.

import Primitives
import Wire

/// A node's place in the cluster at one moment: small, and cheap to take before and after every step.
public struct Inspection: Sendable, Hashable {
    /// The node's number, 0 where it has none, and its incarnation.
    public var life: Life
    /// Its part in the cluster.
    public var role: ClusterRole
    /// The epoch that it leads, where it is master.
    public var leads: Epoch?
    /// Whether it is master and has decided all that earlier masters left behind, or is a slave in good standing.
    public var isServing: Bool
    /// The highest epoch promised, durably or about to be.
    public var promised: Epoch
    /// What it has applied.
    public var position: Position
    /// The state's fingerprint at that position.
    public var digest: UInt64
    /// The entry that it has accepted and does not know decided.
    public var pending: Ballot?
    /// Whether it holds the whole state, on its disk and in memory, so that it has a vote.
    public var hasFullState: Bool
    /// Whether it is cut off from the bus, or has not been welcomed since.
    public var isFenced: Bool
    /// Whether it is making way for another master, and proposes nothing meanwhile.
    public var isHandingOver: Bool
    /// Requests of its own clients that wait.
    public var waitingRequests: Int
    /// Entries that are kept in memory for those who lag behind.
    public var tailCount: Int
    /// Their bytes.
    public var tailByteCount: Int
    /// The ids that vote, as far as it knows.
    public var voters: [UInt32]
}

extension TrackerNode {
    /// The epoch that it leads, where it is master; costs nothing to ask.
    public var leadingEpoch: Epoch? { phase == .master ? candidate.epoch : nil }

    /// What this node tells about itself, for `tracker status`, the console and the metrics.
    public var status: NodeStatus {
        let role: Role =
            switch phase {
            case .restoring: .restoring
            case .following where policy.hasBus: clusterRole == .slave ? .slave : .newcomer
            // Alone, it is about to stand.
            case .following, .candidate: departure.isLast ? .draining : .candidate
            case .master: departure.isLast ? .draining : .master
            case .draining: .draining
            case .failed: .failed
            case .stopped: .stopped
            }
        return NodeStatus(
            id: admission.id, role: role, epoch: max(candidate.epoch, promise.epoch), commitIndex: state.index,
            lastIndex: log.pending?.header.index ?? state.index, digest: state.digest,
            accessMode: state.access.mode, table: state.table.counts, registeredTorrents: state.registry.count,
            interval: intervals.interval(state.told),
            waitingRequests: router.count, counters: counters, storageFailure: writes.failure)
    }

    /// For checkers: where the node stands now.
    public var inspection: Inspection { inspection(knowing: []) }

    /// As `inspection`, for who looks after every step.
    ///
    /// It changes nothing, and is `mutating` because only then the caller hands over the node itself: of a node that is
    /// merely looked at, Swift makes a copy.
    ///
    /// - Parameter voters: what they were at the last look; given back where they are the same.
    /// - Returns: where the node stands now.
    public mutating func inspect(knowing voters: [UInt32]) -> Inspection { inspection(knowing: voters) }

    /// As `nextDeadline`, without a copy of the node.
    public mutating func findDeadline() -> Instant? { deadline }

    @inline(__always)
    private func inspection(knowing voters: [UInt32]) -> Inspection {
        var isFenced = !office.isBusUp
        if phase == .following, office.following?.isWelcomed != true { isFenced = true }
        return Inspection(
            life: life, role: clusterRole, leads: phase == .master ? candidate.epoch : nil, isServing: isInService,
            promised: promise.epoch, position: state.position, digest: state.digest,
            pending: log.pending?.header.ballot ?? restoredEntry?.header.ballot,
            hasFullState: promise.hasFullState && restoredEntry == nil, isFenced: isFenced,
            isHandingOver: handover.isUnderWay, waitingRequests: router.count, tailCount: log.tailCount,
            tailByteCount: log.tailByteCount, voters: self.voters(knowing: voters))
    }

    /// For checkers: a decided entry that is still in memory.
    public func committedEntry(at index: UInt64) -> Entry? { log.entry(index) }
}
