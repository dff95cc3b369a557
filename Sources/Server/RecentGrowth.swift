// By how much a count that only grows has grown in the last minutes.

import Primitives

/// By how much a count that only grows has grown in the last minutes, so that what is over is not told for ever.
///
///     samples   t₀ ──── t₁ ──── t₂ ─ … ─ tₙ     one each `step`; those before the window are let go, but for the last
///                   └────── span ──────────┘     growth: the count now, less that of t₀
///
/// Growth is told for `span` at least and for `span` and a `step` at most. The clock is an argument.
package struct RecentGrowth: Sendable, Equatable {
    package static let span = Duration.seconds(300)
    package static let step = Duration.seconds(15)

    private struct Sample: Sendable, Equatable {
        var at: Instant
        var total: UInt64
    }

    /// The oldest first; at most those of a window and one before it.
    private var samples: [Sample] = []
    private var total: UInt64 = 0

    package init() {}

    package var sampleCount: Int { samples.count }

    /// What the window has seen.
    package var growth: UInt64 { total - (samples.first?.total ?? 0) }

    /// Takes the count as it is now.
    ///
    /// - Parameters:
    ///   - total: 0 when the process began. One that is less than the last begins anew.
    ///   - now: the monotonic clock.
    package mutating func note(_ total: UInt64, at now: Instant) {
        // Before the first look there was nothing, so all of it is new.
        if samples.isEmpty || total < self.total { samples = [Sample(at: now, total: 0)] }
        self.total = total
        if let last = samples.last, now - last.at >= RecentGrowth.step { samples.append(Sample(at: now, total: total)) }
        while samples.count > 1, now - samples[1].at >= RecentGrowth.span { samples.removeFirst() }
    }
}
