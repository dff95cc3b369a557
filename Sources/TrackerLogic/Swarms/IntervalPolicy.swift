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
    /// The longest interval that was told in the window that is open, in seconds.
    ///
    /// A window lasts as long as anybody lives who was told this, or the one below: whoever was told more is gone.
    private var longest: UInt32
    /// The same for the window before it.
    private var longestBefore: UInt32
    /// Cluster time at which the window was opened, in seconds since 1970; nil before the first.
    private var openedAt: UInt32?

    /// - Parameter maxPeers: peers that there can be at most, which bounds what an earlier life of the tracker, or
    ///   another master, may have told those who are there.
    public init(base: UInt32, jitter: UInt32, targetRate: UInt32, maxPeers: Int) {
        self.base = base
        self.jitter = min(jitter, base / 2)
        self.targetRate = max(targetRate, 1)
        interval = base
        longest = base
        longestBefore = base
        longestBefore = wanted(peers: maxPeers)
    }

    private func wanted(peers: Int) -> UInt32 {
        let wanted = UInt32(clamping: (max(peers, 0) &+ Int(targetRate) &- 1) / Int(targetRate))
        return min(max(base, wanted), base &* IntervalPolicy.maxStretch)
    }

    /// Adapts to the size of the table.
    ///
    /// - Parameter time: cluster time, in seconds since 1970.
    public mutating func adapt(peers: Int, time: UInt32) {
        interval = wanted(peers: peers)
        let start = openedAt ?? time
        openedAt = start
        if time > start, time - start > lifetime {
            longestBefore = longest
            longest = interval
            openedAt = time
        } else {
            longest = max(longest, interval)
        }
    }

    /// Seconds after which a silent peer is gone: a fifth more than it may have been told, rounded up.
    public var lifetime: UInt32 {
        let told = max(longest, longestBefore) + jitter
        return told + (told + 4) / 5
    }

    /// The interval for one reply, in seconds.
    @inline(__always)
    func spread(_ random: inout RandomStream) -> UInt32 {
        guard jitter > 0 else { return interval }
        return interval &- jitter &+ UInt32(truncatingIfNeeded: random.below(UInt64(jitter) * 2 + 1))
    }
}
