/// The term of one master: (round, id), totally ordered, never used twice (rule 1).

@frozen
public struct Epoch: Sendable, Hashable, Comparable, CustomStringConvertible {
    public var round: UInt64
    /// The id of the tracker that stood for it.
    public var id: UInt32

    @inlinable
    public init(round: UInt64, id: UInt32) {
        self.round = round
        self.id = id
    }

    /// Before any election.
    public static let zero = Epoch(round: 0, id: 0)

    @inlinable
    public static func < (left: Epoch, right: Epoch) -> Bool {
        (left.round, left.id) < (right.round, right.id)
    }

    public var description: String { "\(round).\(id)" }
}

/// What all trackers of a cluster know and no stranger does: 256 bits drawn by its first tracker.
@frozen
public struct ClusterSecret: Sendable, Hashable {
    public var w0: UInt64
    public var w1: UInt64
    public var w2: UInt64
    public var w3: UInt64

    @inlinable
    public init(_ w0: UInt64, _ w1: UInt64, _ w2: UInt64, _ w3: UInt64) {
        (self.w0, self.w1, self.w2, self.w3) = (w0, w1, w2, w3)
    }
}
