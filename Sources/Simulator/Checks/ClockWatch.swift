// What no honest clock can have passed.

import Primitives
import Wire

/// What no honest clock can have passed: entries that are later than that bear a time that nobody has read.
struct ClockWatch: Sendable {
    /// How late a clock has shown it to be, and when.
    private var latest: (wall: WallTime, at: Instant)?

    /// Trackers' clocks, at most so fast: by a quarter.
    private func highest(_ latest: (wall: WallTime, at: Instant), _ now: Instant) -> WallTime {
        let elapsed = (now - latest.at).wholeMilliseconds
        return WallTime(milliseconds: latest.wall.milliseconds + elapsed + elapsed / 4 + 1000)
    }

    /// A tracker has read its clock.
    mutating func note(_ wall: WallTime, at now: Instant) {
        guard let latest, wall <= highest(latest, now) else {
            self.latest = (wall, now)
            return
        }
    }

    /// Whether it is later than every clock says; false where nobody has read one.
    func isAhead(_ time: WallTime, at now: Instant) -> Bool { latest.map { time > highest($0, now) } ?? false }
}
