// How often clients are asked to announce.

import Primitives

/// The interval that clients are told, and what they were told before: a part of the replicated state.
public struct ToldInterval: Sendable, Hashable {
    /// Seconds, without jitter; 0 before the first was decided.
    public private(set) var seconds: UInt32 = 0
    /// The longest of those told before that may still have to be honoured, in seconds.
    private(set) var longestBefore: UInt32 = 0
    /// Cluster time at which that was no longer told, in seconds since 1970.
    private(set) var toldUntil: UInt32 = 0

    /// Four times the longest that can be configured: a greater number comes from nobody who means it.
    private static let maxSeconds: UInt32 = 4 * 86_400

    /// No interval has been decided.
    public init() {}

    init(seconds: UInt32, longestBefore: UInt32, toldUntil: UInt32) {
        self.seconds = min(seconds, ToldInterval.maxSeconds)
        self.longestBefore = min(longestBefore, ToldInterval.maxSeconds)
        self.toldUntil = toldUntil
    }

    /// Another interval is decided.
    ///
    /// - Parameters:
    ///   - new: seconds, without jitter; cut at four days.
    ///   - time: cluster time of its entry, in seconds since 1970.
    mutating func change(to new: UInt32, at time: UInt32) {
        let new = min(new, ToldInterval.maxSeconds)
        if new < seconds {
            // One from long ago is over, whatever jitter and lifetime are; one from just before may not be.
            let isOver = UInt64(time) > UInt64(toldUntil) + 16 * UInt64(longestBefore)
            longestBefore = max(isOver ? 0 : longestBefore, seconds)
            toldUntil = time
        }
        seconds = new
    }

    /// The state's fingerprint has a part of it; that of no decision is 0.
    @inline(__always)
    var digest: UInt64 {
        if seconds == 0 { return 0 }
        return mixed(UInt64(seconds) << 32 ^ UInt64(longestBefore) ^ mixed(UInt64(toldUntil)))
    }
}

/// How often clients are asked to announce, and for how long a silent one is believed to be there.
///
/// With n peers and an interval of t seconds, n / t announces come in a second. When that is more than the tracker
/// wants to see, it asks for a longer interval, up to four times the configured one. A peer lives 1.2 times the
/// interval that it may have been told, or as many per cent of it as the operator says, so the life shortens only once
/// the longer interval has run out.
///
/// Which interval is told is a fact of the log (`Update.setInterval`): the master works out what it wants; what all
/// trackers tell, and how long a peer lives, follows from what is decided. So the next master knows what the peers were
/// told, whichever tracker told them.
public struct IntervalPolicy: Sendable, Hashable {
    /// How far the interval stretches at most.
    public static let maxStretch: UInt32 = 4

    private let base: UInt32
    private let jitter: UInt32
    private let targetRate: UInt32
    /// A silent peer's life, in per cent of the interval that it may have been told.
    private let lifetimePercent: UInt32

    /// The operator's wishes, brought within bounds.
    ///
    /// - Parameters:
    ///   - base: seconds between announces of a quiet tracker.
    ///   - jitter: seconds by which a reply's interval may differ either way; at most half of `base` counts.
    ///   - targetRate: announces a second beyond which the interval is stretched; 0 counts as 1.
    ///   - lifetimePercent: a silent peer's life, in per cent of the interval that it may have been told; 100…1,000.
    public init(base: UInt32, jitter: UInt32, targetRate: UInt32, lifetimePercent: UInt32 = 120) {
        self.base = base
        self.jitter = min(jitter, base / 2)
        self.targetRate = max(targetRate, 1)
        self.lifetimePercent = min(max(lifetimePercent, 100), 1000)
    }

    /// The interval that suits so many peers, in seconds: at least the configured one, at most `maxStretch` times that.
    public func wanted(peers: Int) -> UInt32 {
        let wanted = UInt32(clamping: (max(peers, 0) &+ Int(targetRate) &- 1) / Int(targetRate))
        return min(max(base, wanted), base &* IntervalPolicy.maxStretch)
    }

    /// The interval that is to be decided next; nil where the one that is told will do.
    ///
    /// Small changes are not worth an entry.
    func change(of told: ToldInterval, peers: Int) -> UInt32? {
        let wanted = wanted(peers: peers)
        guard wanted != told.seconds else { return nil }
        let isLimit = wanted == base || wanted == base &* IntervalPolicy.maxStretch
        let difference = max(wanted, told.seconds) - min(wanted, told.seconds)
        return isLimit || told.seconds < base || difference > told.seconds / 16 ? wanted : nil
    }

    /// What clients are told, in seconds, without jitter: what was decided, else the configured interval.
    @inline(__always)
    public func interval(_ told: ToldInterval) -> UInt32 { told.seconds == 0 ? base : told.seconds }

    /// Seconds after which a silent peer is gone: so many per cent of what it may have been told, rounded up.
    ///
    /// A fifth more than the interval, unless the operator wants it otherwise.
    ///
    /// - Parameters:
    ///   - told: what clients are told, and were told before.
    ///   - time: cluster time, in seconds since 1970.
    /// - Returns: seconds since a peer's last announce.
    public func lifetime(_ told: ToldInterval, at time: UInt32) -> UInt32 {
        let now = lifetime(ofInterval: interval(told))
        let before = lifetime(ofInterval: told.longestBefore)
        // After that second a silent peer that was told the longer interval has expired.
        guard before > now, UInt64(time) <= UInt64(told.toldUntil) + UInt64(before) else { return now }
        return before
    }

    /// The longest interval that clients of another history may have been told and that this one does not wait for, or
    /// not for so long.
    ///
    /// - Parameters:
    ///   - own: what clients are told in this history, and were told before.
    ///   - other: the same in the other one.
    ///   - time: cluster time, in seconds since 1970.
    /// - Returns: seconds, no more than this policy ever tells; nil where all are waited for.
    package func longer(than own: ToldInterval, in other: ToldInterval, at time: UInt32) -> UInt32? {
        let isOpen = UInt64(time) <= UInt64(other.toldUntil) + UInt64(lifetime(ofInterval: other.longestBefore))
        let longest = min(
            max(interval(other), isOpen ? other.longestBefore : 0), base &* IntervalPolicy.maxStretch)
        guard longest > interval(own) else { return nil }
        // What the other one tells still it may have told just now.
        let isTold = interval(other) > interval(own)
        return isTold || own.longestBefore < longest || own.toldUntil < other.toldUntil ? longest : nil
    }

    func lifetime(ofInterval seconds: UInt32) -> UInt32 {
        UInt32(clamping: (UInt64(seconds + jitter) * UInt64(lifetimePercent) + 99) / 100)
    }

    /// The interval for one reply, in seconds.
    @inline(__always)
    func spread(_ told: ToldInterval, _ random: inout RandomStream) -> UInt32 {
        let interval = interval(told)
        let jitter = min(jitter, interval / 2)
        guard jitter > 0 else { return interval }
        return interval &- jitter &+ UInt32(truncatingIfNeeded: random.below(UInt64(jitter) * 2 + 1))
    }
}

extension ToldInterval {
    mutating func walk(_ archive: inout Archive) {
        seconds.walk(&archive)
        longestBefore.walk(&archive)
        toldUntil.walk(&archive)
    }
}
