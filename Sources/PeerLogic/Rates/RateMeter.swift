// How fast bytes have come or gone of late.

import Primitives

/// Bytes a second over the last seconds: a ring of eight slices of a second each.
///
/// Whole numbers only, so that it says the same everywhere.
struct RateMeter: Sendable, Hashable {
    static let sliceCount = 8
    static let slice = Duration.seconds(1)

    /// Bytes of each slice; which one is the newest follows from its number modulo `sliceCount`.
    private var s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0
    /// The number of the newest slice since the clock's origin.
    private var newest: Int64 = 0
    /// The slice in which it began, so that the first seconds are not diluted.
    private var first: Int64 = .max
    /// All bytes ever.
    private(set) var total = 0

    mutating func add(_ byteCount: Int, at now: Instant) {
        turn(to: now)
        if first == .max { first = newest }
        self[Int(newest & 7)] += byteCount
        total += byteCount
    }

    /// Bytes a second, over up to eight seconds; the slice under way counts as a whole one.
    mutating func rate(at now: Instant) -> Int {
        guard first != .max else { return 0 }
        turn(to: now)
        let sum = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
        return sum / Int(min(Int64(Self.sliceCount), newest - first + 1))
    }

    private mutating func turn(to now: Instant) {
        let number = now.nanoseconds / Self.slice.nanoseconds
        guard number > newest else { return }
        let passed = min(number - newest, Int64(Self.sliceCount))
        for step in 1...passed { self[Int((newest + step) & 7)] = 0 }
        newest = number
    }

    private subscript(index: Int) -> Int {
        get {
            switch index {
            case 0: s0
            case 1: s1
            case 2: s2
            case 3: s3
            case 4: s4
            case 5: s5
            case 6: s6
            default: s7
            }
        }
        set {
            switch index {
            case 0: s0 = newValue
            case 1: s1 = newValue
            case 2: s2 = newValue
            case 3: s3 = newValue
            case 4: s4 = newValue
            case 5: s5 = newValue
            case 6: s6 = newValue
            default: s7 = newValue
            }
        }
    }
}
