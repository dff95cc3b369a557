// Making way for another tracker, with no request lost (rule 6).

import Primitives
import Wire

/// A master's handing over of its role.
///
///     none ── begin ──► under way: nothing is proposed ── what is under way is decided ──► announced, again and again
///      ▲                                                                                        │
///      └──────────── deposed by the heir, or its time is over: this master keeps the role ──────┘
///
/// Invariant: the heir is told to stand only when it can know all that is decided.
package struct Handover: Sendable, Hashable {
    /// To whom; nil where none is under way.
    package private(set) var heir: Life?
    private var until = Instant(nanoseconds: 0)
    /// When it was last told so.
    private var announcedAt: Instant?

    package init() {}

    @inline(__always)
    package var isUnderWay: Bool { if case nil = heir { false } else { true } }

    /// When it is over, whether the heir has taken the role or not.
    @inline(__always)
    package var deadline: Instant? { isUnderWay ? until : nil }

    package mutating func begin(to heir: Life, until: Instant) {
        self.heir = heir
        self.until = until
        announcedAt = nil
    }

    package mutating func cancel() {
        heir = nil
        announcedAt = nil
    }

    /// Ends it when its time is over.
    ///
    /// - Returns: who has not taken the role; nil where there is time yet.
    package mutating func takeRefusal(now: Instant) -> Life? {
        guard let heir, now >= until else { return nil }
        cancel()
        return heir
    }

    /// Whether the heir is to be told now, or again.
    package func isDue(now: Instant, pause: Duration) -> Bool { announcedAt.map { now - $0 >= pause } ?? true }

    /// The heir is told.
    ///
    /// - Returns: whether it was before: then it may have missed what was decided last.
    package mutating func announce(now: Instant) -> Bool {
        defer { announcedAt = now }
        return announcedAt != nil
    }
}

extension Handover {
    func absorb(into print: inout Fingerprint) {
        print.absorb(heir) { $0.absorb($1) }
        print.absorb(announcedAt != nil)
    }
}
