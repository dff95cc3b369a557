// The clocks of this host.

import Glibc
import Primitives

/// The clocks of this host, read in one place so that no logic reads them (docs/architecture.md).
public enum Clock {
    /// Both clocks, read one just after the other.
    public static func read() -> ClockReading {
        ClockReading(
            monotonic: monotonic(), wall: WallTime(milliseconds: nanoseconds(of: CLOCK_REALTIME) / 1_000_000))
    }

    /// `CLOCK_MONOTONIC`: it stands still while the host is suspended, and nothing sets it.
    ///
    /// - Complexity: some 25 ns; glibc answers without a system call.
    public static func monotonic() -> Instant { Instant(nanoseconds: nanoseconds(of: CLOCK_MONOTONIC)) }

    /// How long a processor has worked for the calling thread.
    public static func threadTime() -> Duration { Duration(nanoseconds: nanoseconds(of: CLOCK_THREAD_CPUTIME_ID)) }

    private static func nanoseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        let result = clock_gettime(clock, &time)
        precondition(result == 0, "every Linux has this clock")
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}
