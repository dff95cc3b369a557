// Who this tracker is in its cluster, and whether it may be part of it.

import Primitives
import Wire

/// A tracker's number, and what keeps it from taking part.
///
///     without a number ── WELCOME as a number, or nobody there to give one ──► numbered
///            ▲                                                                     │
///            └───────────────── another life has the same number ◄────────────────┘
///
///     free ── REFUSED ──► refused: neither votes nor stands ── two detection times, or WELCOME ──► free
///
/// Two lives never act under one number at a time (rule 10).
package struct Admission: Sendable, Hashable {
    /// This tracker's number; 0 until it has one.
    package private(set) var id: UInt32
    /// Whether the node had no memory when it started.
    package private(set) var wasBlank: Bool
    /// Why it may not join, where somebody has said so.
    package private(set) var refusal: JoinRefusal?
    package private(set) var refusedAt = Instant(nanoseconds: 0)

    package init(id: UInt32, wasBlank: Bool) {
        self.id = id
        self.wasBlank = wasBlank
    }

    package var hasNumber: Bool { id != 0 }

    package mutating func take(number id: UInt32) { self.id = id }

    /// Another life has this number.
    package mutating func giveUpNumber() { id = 0 }

    /// - Returns: whether that is news.
    package mutating func refused(_ refusal: JoinRefusal, now: Instant) -> Bool {
        defer {
            self.refusal = refusal
            refusedAt = now
        }
        return self.refusal != refusal
    }

    package mutating func welcomed() { refusal = nil }

    /// Whoever has refused it is gone, or it was an old message.
    package mutating func forgetRefusal(now: Instant, after span: Duration) {
        if refusal != nil, now - refusedAt >= span { refusal = nil }
    }
}

extension Admission {
    mutating func walk(_ archive: inout Archive) {
        id.walk(&archive)
        wasBlank.walk(&archive)
        refusal.walk(&archive)
        refusedAt.walk(&archive)
    }
}
