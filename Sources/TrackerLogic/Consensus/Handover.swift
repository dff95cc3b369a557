// Making way for another tracker, with no request lost (rule 6).

import Primitives
import Wire

/// A master's handing over of its role.
///
///     none ── begin ──► under way: nothing is proposed ── what is under way is decided ──► announced, again and again
///      ▲                                                                                        │
///      └──────────── deposed by the successor, or its time is over: this master keeps the role ──────┘
///
/// Invariant: the successor is told to stand only when it can know all that is decided.
package struct Handover: Sendable, Hashable {
    /// The tracker that is to take the role; nil where no handover is under way.
    package private(set) var successor: Life?
    private var until = Instant(nanoseconds: 0)
    /// When it was last told so.
    private var announcedAt: Instant?

    package init() {}

    @inline(__always)
    package var isUnderWay: Bool { if case nil = successor { false } else { true } }

    /// When it is over, whether the successor has taken the role or not.
    @inline(__always)
    package var deadline: Instant? { isUnderWay ? until : nil }

    package mutating func begin(to successor: Life, until: Instant) {
        self.successor = successor
        self.until = until
        announcedAt = nil
    }

    package mutating func cancel() {
        successor = nil
        announcedAt = nil
    }

    /// Ends it when its time is over.
    ///
    /// - Returns: who has not taken the role; nil where there is time yet.
    package mutating func takeRefusal(now: Instant) -> Life? {
        guard let successor, now >= until else { return nil }
        cancel()
        return successor
    }

    /// Whether the successor is to be told now, or again.
    package func isDue(now: Instant, pause: Duration) -> Bool { announcedAt.map { now - $0 >= pause } ?? true }

    /// The successor is told.
    ///
    /// - Returns: whether it was before: then it may have missed what was decided last.
    package mutating func announce(now: Instant) -> Bool {
        defer { announcedAt = now }
        return announcedAt != nil
    }
}

extension Handover {
    func absorb(into print: inout Fingerprint) {
        print.absorb(successor) { $0.absorb($1) }
        print.absorb(announcedAt != nil)
    }
}

extension Handover {
    mutating func walk(_ archive: inout Archive) {
        successor.walk(&archive)
        until.walk(&archive)
        announcedAt.walk(&archive)
    }
}
