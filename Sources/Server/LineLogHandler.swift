// Log lines on standard error.

import Foundation
import Logging
import Primitives
import Settings
import Synchronization

/// Log lines on standard error: for people, or one JSON object each.
public struct LineLogHandler: LogHandler {
    private let format: LogFormat
    private let label: String
    /// Less urgent lines are left out.
    public var logLevel: Logger.Level
    /// Stands behind each message.
    public var metadata: Logger.Metadata = [:]
    /// Asked for each line; what it says comes after `metadata`.
    public var metadataProvider: Logger.MetadataProvider?

    /// A handler that writes to standard error.
    public init(label: String, format: LogFormat, level: Logger.Level) {
        self.label = label
        self.format = format
        logLevel = level
    }

    /// One value of `metadata`; nil takes it out.
    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes one line, in one piece.
    public func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { _, new in new } }
        if let own = event.metadata { all.merge(own) { _, new in new } }
        if let error = event.error { all["error"] = "\(error)" }
        let line = LineLogHandler.line(
            format, time: Date(), level: event.level, message: event.message.description, metadata: all)
        LineLogHandler.write(Array((line + "\n").utf8))
    }

    /// One write a line, so that lines of different threads do not mix.
    ///
    /// A log that nobody takes any more, since its reader has died or its disk is full, is no reason to end: the line
    /// is lost. (Foundation's `FileHandle` would trap.)
    private static func write(_ line: [UInt8]) {
        var rest = line[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// One line without its end.
    public static func line(
        _ format: LogFormat, time: Date, level: Logger.Level, message: String, metadata: Logger.Metadata
    ) -> String {
        let stamp = time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        let pairs = metadata.sorted { $0.key < $1.key }
        switch format {
        case .text:
            let rest = pairs.map { " \($0.key)=\(oneLine("\($0.value)"))" }.joined()
            let name = level.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)
            return "\(stamp) \(name) \(oneLine(message))\(rest)"
        case .json:
            var fields = ["time": stamp, "level": level.rawValue, "message": message]
            for (key, value) in pairs where fields[key] == nil { fields[key] = "\(value)" }
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            guard let json = try? encoder.encode(fields) else { return oneLine(message) }
            return String(decoding: json, as: UTF8.self).unicodeScalars.map { scalar in
                // The encoder escapes those of ASCII only; such characters stand within strings alone.
                guard scalar.isHarmful else { return String(scalar) }
                let digits = String(scalar.value, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }.joined()
        }
    }

    /// Text from files and strangers must not make lines of its own, nor talk to the terminal that shows it.
    private static func oneLine(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.isHarmful) else { return text }
        return text.unicodeScalars.map { scalar in
            scalar.isHarmful ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
        }.joined()
    }
}
