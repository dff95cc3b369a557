/// Time as data: two clocks read by the caller, never by the logic.
///
/// *Monotonic* time drives deadlines and never runs backwards within a life of a node. *Wall* time is what
/// trackers can compare with each other and with their former lives; it may be wrong, drift and step, and no
/// safety rests on it.

/// A span of time, in nanoseconds; negative spans are allowed.
@frozen
public struct Duration: Sendable, Hashable, Comparable {
    public var nanoseconds: Int64

    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    @inlinable
    public static func seconds(_ count: Int64) -> Duration { Duration(nanoseconds: count &* 1_000_000_000) }

    @inlinable
    public static func milliseconds(_ count: Int64) -> Duration { Duration(nanoseconds: count &* 1_000_000) }

    @inlinable
    public static func microseconds(_ count: Int64) -> Duration { Duration(nanoseconds: count &* 1_000) }

    public static let zero = Duration(nanoseconds: 0)

    /// Whole seconds, rounded towards zero.
    @inlinable
    public var wholeSeconds: Int64 { nanoseconds / 1_000_000_000 }

    /// Whole milliseconds, rounded towards zero.
    @inlinable
    public var wholeMilliseconds: Int64 { nanoseconds / 1_000_000 }

    @inlinable
    public static func < (left: Duration, right: Duration) -> Bool { left.nanoseconds < right.nanoseconds }

    @inlinable
    public static func + (left: Duration, right: Duration) -> Duration {
        Duration(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }

    @inlinable
    public static func - (left: Duration, right: Duration) -> Duration {
        Duration(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }

    @inlinable
    public static func * (left: Duration, right: Int64) -> Duration {
        Duration(nanoseconds: left.nanoseconds &* right)
    }

    @inlinable
    public static func * (duration: Duration, times: Int) -> Duration {
        Duration(nanoseconds: duration.nanoseconds &* Int64(times))
    }

    @inlinable
    public static func / (duration: Duration, parts: Int) -> Duration {
        Duration(nanoseconds: duration.nanoseconds / Int64(parts))
    }
}

/// A reading of a node's monotonic clock, in nanoseconds since an arbitrary origin.
@frozen
public struct Instant: Sendable, Hashable, Comparable {
    public var nanoseconds: Int64

    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    @inlinable
    public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    @inlinable
    public static func + (left: Instant, right: Duration) -> Instant {
        Instant(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }

    @inlinable
    public static func - (left: Instant, right: Duration) -> Instant {
        Instant(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }

    @inlinable
    public static func - (left: Instant, right: Instant) -> Duration {
        Duration(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }
}

/// A reading of a node's wall clock, in milliseconds since 1970-01-01 UTC.
@frozen
public struct WallTime: Sendable, Hashable, Comparable {
    public var milliseconds: Int64

    @inlinable
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Whole seconds since 1970, as the swarm table stores them; saturates instead of wrapping (2106).
    @inlinable
    public var seconds: UInt32 { UInt32(clamping: milliseconds / 1000) }

    @inlinable
    public static func < (left: WallTime, right: WallTime) -> Bool { left.milliseconds < right.milliseconds }
}

/// What a node's owner reads off its clocks just before each step.
@frozen
public struct ClockReading: Sendable, Hashable {
    public var monotonic: Instant
    public var wall: WallTime

    @inlinable
    public init(monotonic: Instant, wall: WallTime) {
        self.monotonic = monotonic
        self.wall = wall
    }
}

/// The earlier of two deadlines, where nil means "never".
@inlinable
public func earliest(_ left: Instant?, _ right: Instant?) -> Instant? {
    guard let left else { return right }
    guard let right else { return left }
    return min(left, right)
}
