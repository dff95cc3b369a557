// How fast bytes have come or gone of late.

import Primitives

/// Bytes a second over the last seconds: a ring of eight slices of a second each.
///
/// Whole numbers only, so that it says the same everywhere.
struct RateMeter: Sendable, Hashable {
    static let sliceCount = 8
    static let slice = Duration.seconds(1)

    /// Bytes of each slice; which one is the newest follows from its number modulo `sliceCount`.
    private var slices = Array(repeating: 0, count: sliceCount)
    /// The number of the newest slice since the clock's origin.
    private var newest: Int64 = 0
    /// The slice in which it began, so that the first seconds are not diluted.
    private var first: Int64?
    /// All bytes ever.
    private(set) var total = 0

    mutating func add(_ byteCount: Int, at now: Instant) {
        turn(to: now)
        if first == nil { first = newest }
        slices[Int(newest & 7)] += byteCount
        total += byteCount
    }

    /// Bytes a second, over up to eight seconds; the slice under way counts as a whole one.
    mutating func rate(at now: Instant) -> Int {
        guard let first else { return 0 }
        turn(to: now)
        return slices.reduce(0, +) / Int(min(Int64(Self.sliceCount), newest - first + 1))
    }

    private mutating func turn(to now: Instant) {
        let number = now.nanoseconds / Self.slice.nanoseconds
        guard number > newest else { return }
        let passed = min(number - newest, Int64(Self.sliceCount))
        for step in 1...passed { slices[Int((newest + step) & 7)] = 0 }
        newest = number
    }
}
