// Time as data: two clocks read by the caller, never by the logic.

/// A span of time, in nanoseconds; negative spans are allowed.
///
/// Arithmetic wraps at ±292 years instead of trapping.
@frozen
public struct Duration: Sendable, Hashable, Comparable {
    /// Less than zero where the span runs backwards.
    public var nanoseconds: Int64

    /// A span of so many nanoseconds.
    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// A span of so many seconds, up to 292 years.
    @inlinable
    public static func seconds(_ count: Int64) -> Duration { Duration(nanoseconds: count &* 1_000_000_000) }

    /// A span of so many milliseconds.
    @inlinable
    public static func milliseconds(_ count: Int64) -> Duration { Duration(nanoseconds: count &* 1_000_000) }

    /// A span of so many microseconds.
    @inlinable
    public static func microseconds(_ count: Int64) -> Duration { Duration(nanoseconds: count &* 1_000) }

    /// No time at all.
    public static let zero = Duration(nanoseconds: 0)

    /// Whole seconds, rounded towards zero.
    @inlinable
    public var wholeSeconds: Int64 { nanoseconds / 1_000_000_000 }

    /// Whole milliseconds, rounded towards zero.
    @inlinable
    public var wholeMilliseconds: Int64 { nanoseconds / 1_000_000 }

    /// Whether the left span ends earlier when both begin at once; a negative one is less than zero.
    @inlinable
    public static func < (left: Duration, right: Duration) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The two spans, one after the other.
    @inlinable
    public static func + (left: Duration, right: Duration) -> Duration {
        Duration(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }

    /// What is left of the first span without the second; negative where the second is longer.
    @inlinable
    public static func - (left: Duration, right: Duration) -> Duration {
        Duration(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }

    /// The span, so many times.
    @inlinable
    public static func * (left: Duration, right: Int64) -> Duration {
        Duration(nanoseconds: left.nanoseconds &* right)
    }

    /// The span, so many times.
    @inlinable
    public static func * (duration: Duration, times: Int) -> Duration {
        Duration(nanoseconds: duration.nanoseconds &* Int64(times))
    }

    /// One of so many equal parts, rounded towards zero; no parts trap.
    @inlinable
    public static func / (duration: Duration, parts: Int) -> Duration {
        Duration(nanoseconds: duration.nanoseconds / Int64(parts))
    }
}

/// A reading of a node's monotonic clock, in nanoseconds since an arbitrary origin.
///
/// It drives deadlines, and never runs backwards within one life of a node; in another life, and on another host, it
/// has another origin.
@frozen
public struct Instant: Sendable, Hashable, Comparable {
    /// Since the clock's origin.
    public var nanoseconds: Int64

    /// The reading so many nanoseconds after the clock's origin.
    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Whether the left reading is earlier; both must come from one life of one node.
    @inlinable
    public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant that lies so far after this one.
    @inlinable
    public static func + (left: Instant, right: Duration) -> Instant {
        Instant(nanoseconds: left.nanoseconds &+ right.nanoseconds)
    }

    /// The instant that lies so far before this one.
    @inlinable
    public static func - (left: Instant, right: Duration) -> Instant {
        Instant(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }

    /// How long after the right instant the left one comes; negative where it comes before.
    @inlinable
    public static func - (left: Instant, right: Instant) -> Duration {
        Duration(nanoseconds: left.nanoseconds &- right.nanoseconds)
    }
}

/// A reading of a node's wall clock, in milliseconds since 1970-01-01 UTC.
///
/// It is what trackers can compare with each other and with their former lives; it may be wrong, drift and step, and no
/// safety rests on it.
@frozen
public struct WallTime: Sendable, Hashable, Comparable {
    /// Since 1970-01-01 UTC; negative before.
    public var milliseconds: Int64

    /// The time so many milliseconds after 1970-01-01 UTC.
    @inlinable
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Whole seconds since 1970, as the swarm table stores them; saturates instead of wrapping (2106).
    @inlinable
    public var seconds: UInt32 { UInt32(clamping: milliseconds / 1000) }

    /// Whether the left time is earlier.
    @inlinable
    public static func < (left: WallTime, right: WallTime) -> Bool { left.milliseconds < right.milliseconds }
}

/// Both clocks of a node as its owner reads them just before each step; the logic reads none.
@frozen
public struct ClockReading: Sendable, Hashable {
    /// For deadlines.
    public var monotonic: Instant
    /// For what is stored or compared with other trackers.
    public var wall: WallTime

    /// Takes two readings made at once.
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
