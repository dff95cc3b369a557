// The kinds of settings that only a cluster has, and how they are read.

import Bus
import Client
import Primitives
import TrackerLogic

extension Setting.Field {
    /// Where the bus is: may hold a login, so no message shows it.
    static func bus(_ path: Path<BusOptions?>) -> Self {
        var field = Self(
            valueName: "URL",
            read: { (input, _, configuration) throws(SettingRejection) in
                guard case .text(let text) = input else { throw SettingRejection("it is no text; write it in quotes") }
                guard text != "none", !text.isEmpty else {
                    configuration[keyPath: path] = nil
                    return
                }
                do throws(BusConfigurationError) {
                    configuration[keyPath: path] = try BusOptions(url: text)
                } catch {
                    throw SettingRejection(error.description)
                }
            },
            write: { "\"\($0[keyPath: path]?.description ?? "none")\"" })
        field.isSecret = true
        return field
    }

    /// The cluster's name.
    static func clusterName(_ path: Path<String>) -> Self {
        Self(
            valueName: "NAME",
            read: { (input, _, configuration) throws(SettingRejection) in
                guard case .text(let text) = input, (try? ClusterName(text)) != nil else {
                    throw SettingRejection(
                        "will not do; write 1 to \(ClusterName.maxByteCount) letters, digits, - and _")
                }
                configuration[keyPath: path] = text
            },
            write: { quoted($0[keyPath: path]) })
    }

    /// Numbers of trackers.
    static func ids(_ path: Path<[UInt32]>) -> Self {
        Self(
            valueName: "ID", isList: true,
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = try SettingReader.list(input, atMost: ClusterLimits.members) {
                    (element) throws(SettingRejection) in
                    UInt32(clamping: try SettingReader.count(element, in: 1...Int(UInt32.max)))
                }
            },
            write: { "[" + $0[keyPath: path].map(String.init).joined(separator: ", ") + "]" })
    }

    /// One word of several, or nothing for what follows from others.
    static func optionalChoice<Value: RawRepresentable<String> & CaseIterable & Sendable>(
        _ path: Path<Value?>, _ name: String
    ) -> Self {
        Self(
            valueName: name,
            read: { (input, _, configuration) throws(SettingRejection) in
                let values = Value.allCases.map { (name: $0.rawValue, value: $0) }
                configuration[keyPath: path] = try SettingReader.choice(input, of: values)
            },
            write: { "\"\($0[keyPath: path]?.rawValue ?? "")\"" })
    }

    static func optionalCount(_ path: Path<Int?>, _ range: ClosedRange<Int>) -> Self {
        Self(
            valueName: "NUMBER",
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = try SettingReader.count(input, in: range)
            },
            write: { $0[keyPath: path].map(countText) ?? "" })
    }

    /// A span that may be shorter than a second.
    static func optionalSpan(_ path: Path<Duration?>, _ range: ClosedRange<Duration>) -> Self {
        Self(
            valueName: "DURATION",
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = try SettingReader.span(input, in: range)
            },
            write: { "\"\($0[keyPath: path].map(spanText) ?? "")\"" })
    }

    /// A text that means something to others.
    static func optionalText(_ path: Path<String?>, _ name: String) -> Self {
        Self(
            valueName: name,
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = input == .text("") ? nil : try SettingReader.text(input)
            },
            write: { quoted($0[keyPath: path] ?? "") })
    }

    /// A tracker's announce URL.
    static func announceURL(_ path: Path<String?>) -> Self {
        Self(
            valueName: "URL",
            read: { (input, _, configuration) throws(SettingRejection) in
                guard input != .text("") else {
                    configuration[keyPath: path] = nil
                    return
                }
                let text = try SettingReader.text(input)
                guard (try? TrackerURL(text)) != nil else {
                    throw SettingRejection(
                        "is no announce URL; write for example \"udp://tracker.example:6969/announce\"")
                }
                configuration[keyPath: path] = text
            },
            write: { quoted($0[keyPath: path] ?? "") })
    }
}

/// Bounds on what an operator may say of a cluster.
enum ClusterLimits {
    /// Members at most: the logic hears 63 others.
    static let members = 63
    /// Between two signs of life.
    ///
    /// Shorter, and the threads of a busy machine are taken for dead trackers; longer, and
    /// every dead one is missed for minutes.
    static let keepalive = Duration.milliseconds(100)...Duration.seconds(60)
    /// One late message is no death.
    static let missed = 2...60
    static let votePatience = Duration.milliseconds(100)...Duration.seconds(3600)
    /// Bytes of a command or of another text.
    static let textByteCount = 4096
}

extension SettingReader {
    static func text(_ input: SettingInput) throws(SettingRejection) -> String {
        guard case .text(let text) = input else { throw SettingRejection("is no text; write it in quotes") }
        guard text.utf8.count <= ClusterLimits.textByteCount, !text.unicodeScalars.contains(where: { $0.value < 32 })
        else {
            throw SettingRejection(
                "will not do; write at most \(ClusterLimits.textByteCount) bytes without control characters")
        }
        return text
    }

    /// `500ms`, or what `seconds` reads.
    static func span(_ input: SettingInput, in range: ClosedRange<Duration>) throws(SettingRejection) -> Duration {
        let value: Duration?
        switch input {
        case .integer(let number): value = number <= 1 << 30 ? .seconds(Int64(number)) : nil
        case .text(let text) where text.hasSuffix("ms"):
            value = count(text.dropLast(2)).flatMap { $0 <= 1 << 40 ? .milliseconds(Int64($0)) : nil }
        case .text(let text): value = Duration(text)
        case .boolean, .list, .other: value = nil
        }
        guard let value else { throw SettingRejection("is not a duration; write for example \"500ms\" or \"2s\"") }
        guard range.contains(value) else {
            throw SettingRejection(
                "is out of range; write \(spanText(range.lowerBound)) to \(spanText(range.upperBound))")
        }
        return value
    }
}

/// `1500ms`, or whole seconds as `durationText` shows them.
func spanText(_ span: Duration) -> String {
    let milliseconds = span.wholeMilliseconds
    return milliseconds % 1000 == 0 ? durationText(Int(milliseconds / 1000)) : "\(milliseconds)ms"
}
