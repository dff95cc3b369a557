// Numbers and text as people and pictures show them.

import Primitives

/// Numbers in pictures.
enum Figure {
    /// Seconds with three digits behind the point.
    static func seconds(_ time: Instant) -> String {
        let milliseconds = time.nanoseconds / 1_000_000
        let fraction = String(milliseconds % 1000)
        return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
    }

    /// The same of a span.
    static func seconds(_ span: Duration) -> String { seconds(Instant(nanoseconds: max(0, span.nanoseconds))) }

    /// Seconds with six digits behind the point, right-aligned.
    static func microseconds(_ time: Instant) -> String {
        let microseconds = time.nanoseconds / 1000
        let fraction = String(microseconds % 1_000_000)
        let seconds = String(microseconds / 1_000_000)
        return String(repeating: " ", count: max(0, 6 - seconds.count)) + seconds + "."
            + String(repeating: "0", count: 6 - fraction.count) + fraction
    }

    /// A coordinate with at most one digit behind the point.
    static func coordinate(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        if tenths.isMultiple(of: 10) { return "\(tenths / 10)" }
        return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
    }

    /// Text as it may stand in XML; characters that may not stand there at all become U+FFFD.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
