/// Seeded random numbers whose sequence will never change: old seeds must stay valid, so nothing of the
/// standard library's `random(in:using:)` or `shuffle(using:)` is used, whose algorithms may change.
///
/// The generator is xoshiro256** (Blackman and Vigna, 2018), seeded through SplitMix64. It is not secret: a
/// secret is drawn by the runtime from the system and handed in.
@frozen
public struct RandomStream: Sendable, Hashable {
    @usableFromInline var s0: UInt64
    @usableFromInline var s1: UInt64
    @usableFromInline var s2: UInt64
    @usableFromInline var s3: UInt64

    /// - Parameters:
    ///   - seed: the one number that fixes everything.
    ///   - stream: independent sequences of one seed, so that a new use of randomness shifts no other.
    public init(seed: UInt64, stream: UInt64 = 0) {
        var state = mixed(seed &+ 0x9E37_79B9_7F4A_7C15) ^ mixed(stream &* 0xD1B5_4A32_D192_ED03 &+ 1)
        func splitMix() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            return mixed(state)
        }
        s0 = splitMix()
        s1 = splitMix()
        s2 = splitMix()
        s3 = splitMix() | 1  // never all zero
    }

    /// Goes on where a stream was that had this state; one that is all zero is none.
    public init(state: (UInt64, UInt64, UInt64, UInt64)) { (s0, s1, s2, s3) = state }

    /// Where the stream is.
    public var state: (UInt64, UInt64, UInt64, UInt64) { (s0, s1, s2, s3) }

    /// The next 64 random bits.
    @inlinable
    public mutating func next() -> UInt64 {
        let result = rotated(s1 &* 5, by: 7) &* 9
        let t = s1 &<< 17
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = rotated(s3, by: 45)
        return result
    }

    /// A number in 0..<bound; the bias is below bound / 2⁶⁴.
    @inlinable
    public mutating func below(_ bound: UInt64) -> UInt64 {
        precondition(bound > 0, "a random number below 0 does not exist")
        return next().multipliedFullWidth(by: bound).high
    }

    /// A number in 0..<bound; a bound below 1 traps.
    @inlinable
    public mutating func below(_ bound: Int) -> Int { Int(below(UInt64(bound))) }

    /// A span between two others, both included; `low` where `high` is not longer.
    @inlinable
    public mutating func between(_ low: Duration, _ high: Duration) -> Duration {
        let width = high.nanoseconds - low.nanoseconds
        guard width > 0 else { return low }
        return Duration(nanoseconds: low.nanoseconds + Int64(below(UInt64(width) + 1)))
    }

    /// True once in `odds` calls, on average.
    @inlinable
    public mutating func oneIn(_ odds: Int) -> Bool { below(odds) == 0 }

    /// Fisher–Yates, the last element first.
    @inlinable
    public mutating func shuffle<Element>(_ elements: inout [Element]) {
        var last = elements.count - 1
        while last > 0 {
            elements.swapAt(last, below(last + 1))
            last -= 1
        }
    }
}

@inlinable
func rotated(_ value: UInt64, by bits: UInt64) -> UInt64 { (value &<< bits) | (value &>> (64 &- bits)) }

/// SplitMix64's finaliser: a bijection that spreads every input bit over every output bit.
@inlinable
public func mixed(_ value: UInt64) -> UInt64 {
    var z = value
    z = (z ^ (z &>> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z &>> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z &>> 31)
}
