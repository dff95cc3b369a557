// The time that a master stamps entries with.

import Primitives

/// The time that a master stamps entries with: its wall clock's, but never running backwards (rule 4).
///
/// Where the wall clock is behind what was stamped already (it was set back, or an earlier master's was ahead), cluster
/// time goes on by the monotonic clock, an eighth slower than time, until the wall clock has caught up. If it stood
/// still
/// instead, no silent peer would be dropped for as long as the clock had once been wrong; if it went on at full speed,
/// it would stay wrong for ever.
struct ClusterClock: Sendable, Hashable {
    /// A time that was shown, and when.
    private var shown = WallTime(milliseconds: 0)
    private var shownAt = Instant(nanoseconds: 0)

    /// Goes on from the time of the last entry.
    mutating func start(from time: WallTime, now: ClockReading) {
        shown = time
        shownAt = now.monotonic
    }

    /// Cluster time now; never less than at an earlier call.
    mutating func read(_ now: ClockReading) -> WallTime {
        let elapsed = max(0, (now.monotonic - shownAt).wholeMilliseconds)
        let least = WallTime(milliseconds: shown.milliseconds + elapsed - (elapsed + 7) / 8)
        guard now.wall > least else { return least }
        shown = now.wall
        shownAt = now.monotonic
        return now.wall
    }
}

extension ClusterClock {
    mutating func walk(_ archive: inout Archive) {
        shown.walk(&archive)
        shownAt.walk(&archive)
    }
}
