// A voter's promises and votes: the acceptor of Paxos (Lamport, "Paxos Made Simple", 2001, 2.2).

import Primitives
import Wire

/// A voter's promises and votes, and whether its record holds the whole state.
///
///     promise:  none ── ELECTION of a higher epoch, own candidacy, WELCOME ──► made ── on the disk ──► counts
///     state:    lacking ── fetched, applied and on the disk ──► confirming ── the mark is on the disk ──► full
///                  ▲                                                                                       │
///                  └──────────── another history, or another cluster's secret ────────────────────────────┘
///
/// A promise is on the disk before anybody is told of it (rule 9), and takes no lower epoch back (rule 1). A voter
/// without the full state does not know what it has promised: it has no vote.
///
/// Invariants: the epoch promised never falls in one life; what is durable is never above it.
package struct Acceptor: Sendable, Equatable {
    package private(set) var promise: Promise
    /// The highest epoch whose promise is on the disk.
    package private(set) var durableEpoch: Epoch
    /// The candidate whose ELECTION waits for the promise to be durable.
    package private(set) var awaitedBy: Life?
    /// The greatest index at which this voter has an entry on its disk that it has accepted.
    package private(set) var votedThrough: UInt64 = 0
    /// The state is full when the entries up to this index are applied, and on the disk.
    package private(set) var fullStateFrom: UInt64?
    /// Whether the mark that the record holds the full state is being written.
    package private(set) var isConfirming = false
    /// Whether the disk may still have the note that the last life left in good order: until it is taken back, this one
    /// has no vote.
    package private(set) var hasNote: Bool

    package init(_ promise: Promise) {
        self.promise = promise
        durableEpoch = promise.epoch
        hasNote = promise.leftInOrder
    }

    // MARK: - Phase 1

    /// How a voter takes an ELECTION.
    package enum Verdict: Sendable, Equatable {
        /// A higher epoch is promised: the candidate is to hear of it.
        case isStale
        /// This epoch is promised already; the answer may be said again where the promise is on the disk.
        case isPromised(isDurable: Bool)
        /// It is higher than all that was promised.
        case isNew
    }

    package func verdict(on epoch: Epoch) -> Verdict {
        if epoch < promise.epoch { return .isStale }
        guard epoch == promise.epoch else { return .isNew }
        return .isPromised(isDurable: durableEpoch >= epoch && awaitedBy == nil)
    }

    /// Promises a candidate to follow it; the answer waits for the disk.
    package mutating func promise(_ epoch: Epoch, to candidate: Life) {
        promise.epoch = epoch
        awaitedBy = candidate
    }

    /// Stands itself.
    package mutating func stand(for epoch: Epoch) {
        promise.epoch = epoch
        awaitedBy = nil
    }

    /// Follows a master of an epoch.
    ///
    /// - Returns: whether that is a new promise, to be written.
    package mutating func follow(_ epoch: Epoch) -> Bool {
        guard promise.epoch < epoch else { return false }
        promise.epoch = epoch
        return true
    }

    /// A promise is on the disk.
    package mutating func promiseWritten(_ epoch: Epoch) {
        durableEpoch = max(durableEpoch, epoch)
        // It was written over.
        if !promise.leftInOrder { hasNote = false }
    }

    /// A promise could not be written: nobody is told of it.
    package mutating func promiseNotWritten() { awaitedBy = nil }

    /// Whether all that was promised is on the disk.
    package var isDurable: Bool { durableEpoch >= promise.epoch }

    /// Takes the candidate that waits for an answer.
    package mutating func takeCandidate() -> Life? {
        defer { awaitedBy = nil }
        return awaitedBy
    }

    // MARK: - Phase 2

    /// An entry that was accepted is on the disk.
    package mutating func entryWritten(_ index: UInt64) { votedThrough = max(votedThrough, index) }

    /// The votes were for entries of a history that this tracker gives up.
    package mutating func forgetVotes() { votedThrough = 0 }

    /// The last vote, as it was read back from the disk.
    package mutating func restoreVote(_ index: UInt64) { votedThrough = index }

    // MARK: - The whole state

    /// The promise to write now.
    package var record: Promise {
        var record = promise
        record.hasFullState = promise.hasFullState || isConfirming
        return record
    }

    /// This tracker does not hold the full state, or holds that of another cluster.
    ///
    /// The index from which its state would have been full is void, too: a master has to name it anew.
    package mutating func loseState() {
        promise.hasFullState = false
        isConfirming = false
        fullStateFrom = nil
    }

    /// Takes the cluster's secret: the keys of connection ids and of the swarm table derive from it.
    package mutating func adopt(_ secret: ClusterSecret, shardCount: UInt32) {
        promise.secret = secret
        promise.shardCount = shardCount
    }

    /// A master has named the last decided entry: the state is full when that is applied.
    package mutating func expectState(through index: UInt64) { fullStateFrom = index }

    /// What was to come from a master does not come.
    package mutating func expectNothing() { fullStateFrom = nil }

    /// Whether the record may be marked as full.
    ///
    /// - Parameters:
    ///   - applied: the last entry that is applied.
    ///   - durable: the last entry that is on the disk.
    /// - Returns: false where nobody has said yet up to which entry the state has to go.
    package func holdsState(applied: UInt64, durable: UInt64) -> Bool {
        guard let fullStateFrom else { return false }
        return applied >= fullStateFrom && durable >= fullStateFrom
    }

    /// The mark that the record holds the full state is being written.
    package mutating func beginConfirming() { isConfirming = true }

    /// The mark is on the disk.
    ///
    /// - Returns: false where the state was lost or changed meanwhile, so that the mark is void.
    package mutating func stateConfirmed() -> Bool {
        guard isConfirming else { return false }
        isConfirming = false
        promise.hasFullState = true
        fullStateFrom = nil
        return true
    }

    package mutating func stateNotConfirmed() { isConfirming = false }

    // MARK: - The orderly stop

    /// The note that the last life had left in good order is being taken back.
    package mutating func recallStop() { promise.leftInOrder = false }

    /// The note is taken back, on the disk too.
    package mutating func stopRecalled() { hasNote = false }

    /// The promise with the note of an orderly stop: a life's last write.
    package var stopRecord: Promise {
        var record = record
        record.leftInOrder = true
        return record
    }
}

extension Acceptor {
    mutating func walk(_ archive: inout Archive) {
        promise.walk(&archive)
        durableEpoch.walk(&archive)
        awaitedBy.walk(&archive)
        votedThrough.walk(&archive)
        fullStateFrom.walk(&archive)
        isConfirming.walk(&archive)
        hasNote.walk(&archive)
    }
}
