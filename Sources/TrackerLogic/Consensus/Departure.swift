// The orderly stop of a tracker, and of a cluster; and what is remembered of it (rule 22).

import Primitives
import Wire

/// Leaving in good order, and what this tracker knows of the end of its last life.
///
///     staying ── drain ──► leaving: hands its role over, answers who waits ──► its last write: "left in order"
///     staying ── stop of the cluster, at the master ──► leaving, when all others have
///
///     the last life:  forgotten ◄── it votes for something new, is welcomed by a master that goes on, or serves
///                         ▲                                                    │
///     started ── a note ──► recalling: the note is taken back ── durable ──► in order
///
/// Swarms are soft state, and an orderly stop of the cluster empties them, unless trackers are told to keep them. But
/// who leaves cannot know whether the others stay: that is seen when they come back. The cluster has stopped in good
/// order when a quorum of its voters has, each after its last vote: from then on nobody can have served. So each notes
/// on its disk that it has left in good order, and takes the note back when it starts, before it says anything. A
/// master that is elected by voters who all had that note empties the swarms by the log, before it serves. A tracker
/// that has crashed, or runs still, has no such note: then the swarms stay, as after any crash.
///
/// Invariants: a life that has written its note votes no more; no note is on the disk when the next life votes.
package struct Departure: Sendable, Hashable {
    /// How the last life ended.
    package enum LastStop: Sendable, Hashable {
        /// It was no orderly stop, or it is of no account any more. Stays so.
        case forgotten
        /// In good order; the note is being taken back. Can transition to: inOrder, forgotten.
        case recalling
        /// In good order; entries up to there were left by lives before the stop. Can transition to: forgotten.
        case inOrder(lastIndex: UInt64)
    }

    /// When an orderly stop is to be over; nil where there is none.
    package private(set) var leavesAt: Instant?
    /// Whether it leaves, and nobody stays: it takes no more requests, so that it comes to an end.
    package private(set) var isLast = false
    /// Whether all the others are to stop as well.
    package private(set) var stopsAll = false
    /// Whether the stop has dropped access rules that were not in force yet: this life opens its doors no more.
    package private(set) var keepsDoorsShut = false
    package private(set) var lastStop = LastStop.forgotten
    /// Whether this master has emptied the swarms as it came into office.
    package private(set) var hasBegunEmpty = false

    package init() {}

    // MARK: - Leaving

    @inline(__always)
    package var isLeaving: Bool { if case nil = leavesAt { false } else { true } }

    /// Begins to leave, to be gone by a time at the latest; `isLast` says that nobody stays to whom the clients could
    /// go.
    package mutating func leave(by time: Instant, isLast: Bool = false) {
        leavesAt = time
        self.isLast = isLast
    }

    /// The whole cluster is to stop.
    ///
    /// - Returns: whether that is news.
    package mutating func stopAll() -> Bool {
        defer { stopsAll = true }
        return !stopsAll
    }

    package mutating func left() { leavesAt = nil }

    /// Access rules that its operator has given are dropped before they are in force.
    package mutating func keepDoorsShut() { keepsDoorsShut = true }

    // MARK: - Coming back

    /// Whether the last life left in good order, and nothing has happened since.
    package var wasInOrder: Bool { if case .inOrder = lastStop { true } else { false } }

    /// Whether the note of the last life is still being taken back, and it is of account yet.
    package var isRecalling: Bool { lastStop == .recalling }

    package mutating func recall() { lastStop = .recalling }

    /// The note is taken back.
    ///
    /// - Parameter index: the last entry that lives before the stop have left.
    package mutating func recalled(through index: UInt64) { lastStop = .inOrder(lastIndex: index) }

    /// This tracker votes for an entry: the cluster goes on, unless the entry was left by the last life.
    package mutating func votes(for index: UInt64) {
        if case .inOrder(let lastIndex) = lastStop, index > lastIndex { lastStop = .forgotten }
    }

    /// A master that is still about to empty the swarms lets this tracker in; it may decide first what was left by the
    /// last lives.
    package mutating func welcomed(servesFrom index: UInt64) {
        if case .inOrder(let lastIndex) = lastStop { lastStop = .inOrder(lastIndex: max(lastIndex, index)) }
    }

    /// The cluster goes on: how the last life ended is of no account any more.
    package mutating func forget() { lastStop = .forgotten }

    // MARK: - Beginning empty

    /// Comes into office.
    package mutating func begin(empty: Bool) { hasBegunEmpty = empty }

    /// A shard was emptied by an entry that an earlier master had left.
    ///
    /// - Returns: whether that is news.
    package mutating func noteEmptied() -> Bool {
        defer { hasBegunEmpty = true }
        return !hasBegunEmpty
    }
}

extension Departure {
    func absorb(into print: inout Fingerprint) {
        print.absorb(lastStop != .forgotten)
        print.absorb(wasInOrder)
        print.absorb(isLeaving)
        print.absorb(stopsAll)
        print.absorb(keepsDoorsShut)
        print.absorb(hasBegunEmpty)
    }
}

extension Departure {
    mutating func walk(_ archive: inout Archive) {
        leavesAt.walk(&archive)
        isLast.walk(&archive)
        stopsAll.walk(&archive)
        keepsDoorsShut.walk(&archive)
        lastStop.walk(&archive)
        hasBegunEmpty.walk(&archive)
    }
}

extension Departure.LastStop: Archived {
    static var blank: Departure.LastStop { .forgotten }

    mutating func walk(_ archive: inout Archive) {
        var index: UInt64 = if case .inOrder(let index) = self { index } else { 0 }
        let tag: UInt8 =
            switch self {
            case .forgotten: 0
            case .recalling: 1
            case .inOrder: 2
            }
        switch archive.tag(tag) {
        case 0: self = .forgotten
        case 1: self = .recalling
        case 2:
            index.walk(&archive)
            self = .inOrder(lastIndex: index)
        default: archive.refuse()
        }
    }
}
