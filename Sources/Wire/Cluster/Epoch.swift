// The term of one master, and its proposals.

/// The term of one master: (round, id), totally ordered, never used twice (rule 1).
@frozen
public struct Epoch: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Counts up with each election; 0 before the first, at most `NumberBounds.round`.
    public var round: UInt64
    /// The id of the tracker that stood for it.
    public var id: UInt32

    /// Takes the fields as they are.
    @inlinable
    public init(round: UInt64, id: UInt32) {
        self.round = round
        self.id = id
    }

    /// Before any election.
    public static let zero = Epoch(round: 0, id: 0)

    /// By round, then by id.
    @inlinable
    public static func < (left: Epoch, right: Epoch) -> Bool {
        (left.round, left.id) < (right.round, right.id)
    }

    /// `round.id`, as in `7.2`.
    public var description: String { "\(round).\(id)" }
}

/// Which proposal of an entry a vote is about: a master makes a further attempt at an index after an abort only.
@frozen
public struct Ballot: Sendable, Hashable, Comparable {
    /// In which the entry was proposed.
    public var epoch: Epoch
    /// Counts the proposals of an epoch at one index, from 0.
    public var attempt: UInt32
    /// Of the entry that is voted on; no part of the order.
    public var index: UInt64

    /// Takes the fields as they are.
    @inlinable
    public init(epoch: Epoch, attempt: UInt32, index: UInt64) {
        self.epoch = epoch
        self.attempt = attempt
        self.index = index
    }

    /// By epoch, then attempt.
    @inlinable
    public static func < (left: Ballot, right: Ballot) -> Bool {
        (left.epoch, left.attempt) < (right.epoch, right.attempt)
    }
}

/// What all trackers of a cluster know and no stranger does: 256 bits drawn by its first tracker.
@frozen
public struct ClusterSecret: Sendable, Hashable {
    /// The first of four words, each as random as the others; users mix what they need from two of them.
    public var w0: UInt64
    /// The second word.
    public var w1: UInt64
    /// The third word.
    public var w2: UInt64
    /// The fourth word.
    public var w3: UInt64

    /// Takes 256 random bits as four words.
    @inlinable
    public init(_ w0: UInt64, _ w1: UInt64, _ w2: UInt64, _ w3: UInt64) {
        (self.w0, self.w1, self.w2, self.w3) = (w0, w1, w2, w3)
    }
}
