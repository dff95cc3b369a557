/// Agreement on one entry after another: phase 2 of Multi-Paxos in the words of two-phase commit.
///
///           propose                     a quorum of OKs
///     idle ─────────► proposed(index) ───────────────────► committed: applied, answered
///       ▲                   │
///       └───────────────────┘ so many ERRORs that no quorum of OKs can exist: aborted
///
/// One entry at a time is under way: entry N+1 gathers while N is being agreed on, so order costs no throughput, and
/// no entry can overtake another (requirements C6). A time-out is not an abort: a proposal stays until it is decided.
///
/// Invariants: OKs count only for the epoch and index proposed; a voter counts once; commit index ≤ last index.

import Primitives
import Wire

public struct Replication: Sendable, Hashable {
    /// The ids that vote, in rising order.
    ///
    /// A node alone is a cluster of one.
    public let voters: [UInt32]
    /// The epoch in which this node is master and proposes.
    public private(set) var epoch = Epoch.zero
    /// The last entry of the log.
    public private(set) var lastIndex: UInt64 = 0
    /// Every entry up to here is decided.
    public private(set) var commitIndex: UInt64 = 0
    private var proposed: UInt64?
    private var oks: [UInt32] = []
    private var errors: [UInt32] = []

    public init(voters: [UInt32]) {
        precondition(!voters.isEmpty, "a cluster has at least one voter")
        self.voters = voters.sorted()
    }

    /// A majority.
    public var quorum: Int { voters.count / 2 + 1 }

    public var isIdle: Bool { proposed == nil }

    /// Takes up the log as this life of the node found it, all of it decided.
    public mutating func adopt(decidedThrough index: UInt64) {
        precondition(proposed == nil, "a log is adopted before anything is proposed")
        lastIndex = index
        commitIndex = index
    }

    /// Begins to propose in an epoch of one's own.
    public mutating func lead(_ epoch: Epoch) {
        precondition(self.epoch < epoch, "an epoch is never used twice")
        self.epoch = epoch
    }

    /// Proposes the next entry.
    ///
    /// - Returns: its index.
    public mutating func propose() -> UInt64 {
        precondition(proposed == nil, "one entry at a time is under way")
        lastIndex += 1
        proposed = lastIndex
        return lastIndex
    }

    /// How a vote leaves the entry under way.
    public enum Decision: Sendable, Hashable {
        /// Not decided; or the vote was none for what is under way.
        case open
        case committed(index: UInt64)
        case aborted(index: UInt64)
    }

    /// A voter has the entry on its disk.
    public mutating func okReceived(from voter: UInt32, epoch: Epoch, index: UInt64) -> Decision {
        guard counts(voter, epoch, index) else { return .open }
        oks.append(voter)
        guard oks.count >= quorum else { return .open }
        clear()
        commitIndex = index
        return .committed(index: index)
    }

    /// A voter certainly does not have the entry, and will not.
    public mutating func errorReceived(from voter: UInt32, epoch: Epoch, index: UInt64) -> Decision {
        guard counts(voter, epoch, index) else { return .open }
        errors.append(voter)
        guard voters.count - errors.count < quorum else { return .open }
        clear()
        // Nobody has it, so its place is free again.
        lastIndex = index - 1
        return .aborted(index: index)
    }

    private func counts(_ voter: UInt32, _ epoch: Epoch, _ index: UInt64) -> Bool {
        epoch == self.epoch && index == proposed && voters.contains(voter) && !oks.contains(voter)
            && !errors.contains(voter)
    }

    private mutating func clear() {
        proposed = nil
        oks.removeAll(keepingCapacity: true)
        errors.removeAll(keepingCapacity: true)
    }
}
