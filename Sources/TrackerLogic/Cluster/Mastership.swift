/// Who is master: phase 1 of Multi-Paxos in the words of the bully election.
///
///     idle ── stand ──► promising ── promise durable ──► candidate ── a quorum of answers ──► master
///
/// The promise is on disk before it counts (design 3.4, rule 9): also one's own. A cluster of one is elected by its own
/// answer; nothing here is special about it.
///
/// Invariants: an epoch is stood for once; master only in the epoch promised.

import Primitives
import Wire

public struct Mastership: Sendable, Hashable {
    private enum Phase: Sendable, Hashable {
        /// Can transition to: promising.
        case idle
        /// Waits until its own promise is durable. Can transition to: candidate.
        case promising
        /// Gathers answers. Can transition to: master.
        case candidate
        /// Can transition to: nothing but the end of the process, in a cluster of one.
        case master
    }

    public let id: UInt32
    public let voters: [UInt32]
    /// The epoch that this node stands for or holds, once it has stood; before, the highest it has promised.
    public private(set) var epoch: Epoch
    private var phase = Phase.idle
    private var answers: [UInt32] = []

    /// - Parameter promised: the highest epoch that an earlier life of this node has promised.
    public init(id: UInt32, voters: [UInt32], promised: Epoch) {
        self.id = id
        self.voters = voters
        epoch = promised
    }

    public var isMaster: Bool { phase == .master }
    public var isStanding: Bool { phase == .promising || phase == .candidate }

    /// Stands for master in an epoch higher than any that was promised.
    ///
    /// - Returns: the epoch to promise, durably, before `promiseKept`.
    public mutating func stand() -> Epoch {
        precondition(phase == .idle, "a node stands once at a time")
        epoch = Epoch(round: epoch.round + 1, id: id)
        phase = .promising
        answers.removeAll(keepingCapacity: true)
        return epoch
    }

    /// The node's own promise is durable: it votes for itself.
    ///
    /// - Returns: whether it is master now.
    public mutating func promiseKept(_ kept: Epoch) -> Bool {
        guard phase == .promising, kept == epoch else { return false }
        phase = .candidate
        return answerReceived(from: id, epoch: kept)
    }

    /// A voter has promised to follow.
    ///
    /// - Returns: whether the node is master now, by this answer.
    public mutating func answerReceived(from voter: UInt32, epoch answered: Epoch) -> Bool {
        guard phase == .candidate, answered == epoch, voters.contains(voter), !answers.contains(voter) else {
            return false
        }
        answers.append(voter)
        guard answers.count > voters.count / 2 else { return false }
        phase = .master
        return true
    }
}
