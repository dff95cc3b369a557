/// How often clients are asked to announce, and for how long a silent one is believed to be there.
///
/// With n peers and an interval of t seconds, n / t announces come in a second. When that is more than the tracker
/// wants to see, it asks for a longer interval, up to four times the configured one. A peer lives 1.2 times the
/// interval that it may have been told, so the life shortens only once the longer interval has run out.

import Primitives

public struct IntervalPolicy: Sendable, Hashable {
    /// How far the interval stretches at most.
    public static let maxStretch: UInt32 = 4

    private let base: UInt32
    private let jitter: UInt32
    private let targetRate: UInt32
    /// Seconds, without jitter.
    public private(set) var interval: UInt32
    /// The longest interval that a living peer may have been told, in seconds, and until when it counts.
    private var longest: UInt32
    private var longestUntil: UInt32 = 0

    public init(base: UInt32, jitter: UInt32, targetRate: UInt32) {
        self.base = base
        self.jitter = min(jitter, base / 2)
        self.targetRate = max(targetRate, 1)
        interval = base
        longest = base
    }

    /// Adapts to the size of the table.
    ///
    /// - Parameter time: cluster time, in seconds since 1970.
    public mutating func adapt(peers: Int, time: UInt32) {
        let wanted = UInt32(clamping: (peers + Int(targetRate) - 1) / Int(targetRate))
        interval = min(max(base, wanted), base &* IntervalPolicy.maxStretch)
        if interval >= longest || time > longestUntil {
            longest = interval
            longestUntil = time &+ lifetime
        }
    }

    /// Seconds after which a silent peer is gone.
    public var lifetime: UInt32 { (longest + jitter) / 5 * 6 }

    /// The interval for one reply, in seconds.
    @inline(__always)
    func spread(_ random: inout RandomStream) -> UInt32 {
        guard jitter > 0 else { return interval }
        return interval &- jitter &+ UInt32(truncatingIfNeeded: random.below(UInt64(jitter) * 2 + 1))
    }
}
