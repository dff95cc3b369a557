// The `Date` header (RFC 9110, 5.6.7), made once a second.

import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The `Date` header (RFC 9110, 5.6.7), made once a second.
enum HTTPDate {
    private static let latest = Mutex((seconds: -1, text: ""))

    static func now() -> String {
        let seconds = time(nil)
        return latest.withLock { latest in
            if latest.seconds != seconds { latest = (seconds, text(seconds)) }
            return latest.text
        }
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`.
    ///
    /// - Parameter seconds: since 1970.
    /// - Returns: a date as RFC 9110, 5.6.7, wants it.
    static func text(_ seconds: Int) -> String {
        var moment = time_t(seconds)
        var parts = tm()
        gmtime_r(&moment, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let clock = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        let day = "\(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(1900 + parts.tm_year)"
        return "\(days[Int(parts.tm_wday)]), \(day) \(clock) GMT"
    }
}
