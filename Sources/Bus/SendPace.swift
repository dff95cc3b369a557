// How fast a sender of datagrams may send.

import Primitives

/// How fast a sender of datagrams may send: as fast as most of them arrive.
///
/// Receivers say what they lack; who lacks much was sent too much. So the rate is halved after an interval in which
/// more than a quarter of what was sent was repetitions, and grows by an eighth after one in which that was not so and
/// all of the rate was used. A network that loses some, whatever the rate, does not stop the growth. A bucket lets
/// short bursts through at once: a busy tracker's usual traffic never waits.
package struct SendPace: Sendable, Equatable {
    package enum Limits {
        /// Below 128 datagrams: a receiver with the kernel's usual buffer of 212,992 bytes can hold them.
        package static let burst = 64 << 10
        /// In bytes a second.
        ///
        /// Far below what loopback takes, and a quarter of a gigabit.
        package static let initial = 32 << 20
        package static let least = 8 << 20
        /// What was sent in a third of a second is still there to be repeated (`RepairRing`).
        package static let most = 64 << 20
        static let interval = Duration.milliseconds(20)
        /// One in so many may be a repetition.
        static let tolerance = 4
        /// Who has to wait waits for so many bytes: a dozen datagrams go out with one system call.
        static let batch = 16 << 10
    }

    /// Bytes a second.
    package private(set) var rate = Limits.initial
    /// Bytes that may be sent now; below zero where the last datagram took more than there was.
    private var tokens = Limits.burst
    private var filledAt: Instant?
    private var intervalBegan: Instant?
    private var wasShort = false
    private var sentByteCount = 0
    private var repeatedByteCount = 0

    package init() {}

    /// Whether a datagram may be sent now.
    package mutating func allows(now: Instant) -> Bool {
        fill(now)
        if tokens <= 0 { wasShort = true }
        return tokens > 0
    }

    package mutating func sent(_ byteCount: Int, isRepetition: Bool) {
        tokens -= byteCount
        sentByteCount += byteCount
        if isRepetition { repeatedByteCount += byteCount }
    }

    /// When it is worth while to send more; at once where nothing has to wait.
    package func nextChance(now: Instant) -> Instant {
        guard tokens <= 0 else { return now }
        return now + Duration(nanoseconds: Int64(Limits.batch - tokens) * 1_000_000_000 / Int64(rate))
    }

    private mutating func fill(_ now: Instant) {
        guard let before = filledAt, let began = intervalBegan else {
            (filledAt, intervalBegan) = (now, now)
            return
        }
        // A second at most, so that the product fits.
        let passed = min(max(0, (now - before).nanoseconds), 1_000_000_000)
        let earned = Int(passed * Int64(rate) / 1_000_000_000)
        if earned > 0 {
            tokens = min(Limits.burst, tokens + earned)
            filledAt = now
        }
        if now - began >= Limits.interval {
            if repeatedByteCount > sentByteCount / Limits.tolerance {
                rate = max(Limits.least, rate / 2)
            } else if wasShort {
                rate = min(Limits.most, rate + rate / 8)
            }
            (wasShort, sentByteCount, repeatedByteCount, intervalBegan) = (false, 0, 0, now)
        }
    }
}
