// The two clocks of one node, as the world's true time drives them.

import Primitives

/// The two clocks of one node, as the world's true time drives them: neither runs at the true rate, and the wall clock
/// may be set forwards and back.
package struct SimulatedClock: Sendable {
    /// What wall clocks without error show when the world begins: 15 January 2027.
    static let epoch = WallTime(milliseconds: 1_800_000_000_000)

    /// The true rate.
    private static let whole: Int64 = 1 << 32

    /// What the monotonic clock shows when the world begins.
    private let origin: Int64
    /// Nanoseconds of these clocks in 2³² nanoseconds of the world.
    private let rate: UInt64
    /// By how much the wall clock is ahead, in milliseconds.
    private(set) var wallError: Int64

    /// Clocks that run fast by `drift` millionths, −500,000…500,000, of which the wall clock is `wallError`
    /// milliseconds ahead.
    ///
    /// `origin` is what the monotonic clock shows when the world begins, in nanoseconds.
    package init(origin: Int64, drift: Int64, wallError: Int64) {
        precondition(abs(drift) <= 500_000, "a clock runs at half to one and a half times the true rate")
        self.origin = origin
        self.wallError = wallError
        rate = UInt64(SimulatedClock.whole + drift * SimulatedClock.whole / 1_000_000)
    }

    /// What both clocks show at a time of the world.
    package func reading(at time: Instant) -> ClockReading {
        let elapsed = scaled(time.nanoseconds)
        return ClockReading(
            monotonic: Instant(nanoseconds: origin + elapsed),
            wall: WallTime(milliseconds: SimulatedClock.epoch.milliseconds + wallError + elapsed / 1_000_000))
    }

    /// The first time of the world at which the monotonic clock shows this or more.
    package func worldTime(of monotonic: Instant) -> Instant {
        let elapsed = monotonic.nanoseconds - origin
        guard elapsed > 0 else { return Instant(nanoseconds: 0) }
        // The least t with ⌊t · rate / 2³²⌋ ≥ elapsed is ⌈elapsed · 2³² / rate⌉.
        let product = UInt64(elapsed).multipliedFullWidth(by: UInt64(SimulatedClock.whole))
        let division = rate.dividingFullWidth(product)
        return Instant(nanoseconds: Int64(division.quotient) + (division.remainder > 0 ? 1 : 0))
    }

    /// Somebody sets the wall clock.
    package mutating func step(wall milliseconds: Int64) { wallError += milliseconds }

    private func scaled(_ nanoseconds: Int64) -> Int64 {
        let product = UInt64(nanoseconds).multipliedFullWidth(by: rate)
        return Int64(product.high << 32 | product.low >> 32)
    }
}
