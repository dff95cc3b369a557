// Whose turn it is to stand when the master is missed.

import Primitives
import Wire

/// The order in which those stand that are left.
///
/// The policy's order; and last whoever is far behind, for it might not get what it lacks. All voters that live count,
/// not only those that have said already that they miss the master: the preferred one may be a few milliseconds later
/// with it. An entry or two that one has applied and another has not yet are no reason to pass it over, for it fetches
/// them.
public struct Succession: Sendable, Hashable {
    /// Entries that one may be behind the furthest and still be in step: the others keep far more, to send it.
    public static let inStepCount: UInt64 = 8

    /// One that is left.
    package struct Candidate: Sendable, Hashable {
        package var id: UInt32
        /// The last entry that it has applied; nil where it has not just said so: a keepalive may be old.
        package var index: UInt64?

        package init(id: UInt32, index: UInt64?) {
            self.id = id
            self.index = index
        }
    }

    /// This tracker.
    private let own: Candidate
    /// Whether it was elected and could not fetch the decided entries that it lacks, since it last heard a master: the
    /// others stand first.
    private let couldNotRecover: Bool
    /// The last entry that was cut from its log; nil in survivor mode.
    ///
    /// Whoever lacks that entry, this tracker cannot help.
    private let cutThrough: UInt64?

    package init(own: Candidate, couldNotRecover: Bool, cutThrough: UInt64?) {
        self.own = own
        self.couldNotRecover = couldNotRecover
        self.cutThrough = cutThrough
    }

    /// How many are to stand before this tracker.
    ///
    /// Whoever has found out that nobody can send what it lacks comes last, and at those who have cut it whoever lacks
    /// it: else the dice would decide between them, again and again.
    ///
    /// - Parameters:
    ///   - others: the other voters that live.
    ///   - policy: which of several is preferred.
    ///   - last: the id of the last master; 0 where there was none.
    /// - Returns: 0 where it is this tracker's turn at once.
    package func rank(
        among others: [Candidate], by policy: ClusterConfiguration.ElectionPolicy, after last: UInt32
    ) -> Int {
        let newest = others.reduce(own.index ?? 0) { max($0, $1.index ?? 0) }
        func isBehind(_ other: Candidate) -> Bool {
            guard let index = other.index else { return false }
            return index + Succession.inStepCount < newest || cutThrough.map { index < $0 } ?? false
        }
        let behind = others.filter(isBehind).map { $0.id }
        let isOwnBehind = (own.index ?? 0) + (couldNotRecover ? 0 : Succession.inStepCount) < newest
        var rank = 0
        var isBefore = true
        for id in policy.order(others.map { $0.id } + [own.id], after: last) {
            if id == own.id {
                isBefore = false
            } else if behind.contains(id) == isOwnBehind ? isBefore : isOwnBehind {
                rank += 1
            }
        }
        return rank
    }
}
