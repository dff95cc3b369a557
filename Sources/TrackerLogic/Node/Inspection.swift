/// What checkers may see of a node beyond its status.

import Primitives
import Wire

/// A node's place in the cluster at one moment: small, and cheap to take before and after every step.
public struct Inspection: Sendable, Hashable {
    public var life: Life
    public var role: ClusterRole
    /// The epoch that it leads, where it is master.
    public var leads: Epoch?
    /// Whether it is master and has decided all that earlier masters left behind, or is a slave in good standing.
    public var isServing: Bool
    /// The highest epoch promised, durably or about to be.
    public var promised: Epoch
    /// What it has applied.
    public var position: Position
    public var digest: UInt64
    /// The entry that it has accepted and does not know decided.
    public var pending: Ballot?
    public var isWhole: Bool
    /// Whether it is cut off from the bus, or has not caught up since.
    public var isFenced: Bool
    /// Requests that wait here, its own clients' and others'.
    public var waitingRequests: Int
    /// Entries and bytes that are kept for those who lag behind.
    public var tailCount: Int
    public var tailByteCount: Int
    /// The ids that vote, as far as it knows.
    public var voters: [UInt32]
}
