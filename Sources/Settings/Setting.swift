// One setting: everything that file, environment, flags and documentation need to know about it.

import Primitives
import TrackerLogic

/// One setting: everything that file, environment, flags and documentation need to know about it.
public struct Setting: Sendable {
    /// Its path in the file.
    public let key: SettingKey
    /// The flag of `tracker serve`, without its dashes.
    public let flag: String
    /// What stands for the value in help, such as `DURATION`; empty for a switch, which takes none.
    public let valueName: String
    /// Whether it may be given several times.
    public let isList: Bool
    /// What it does, in one sentence.
    public let summary: String
    /// What else one should know; empty where nothing.
    public let note: String
    /// Shown, commented out, where the default is "not set" or depends on something: a TOML value.
    public let example: String?
    /// What the default is where `example` is shown.
    public let defaultNote: String?

    let field: Field

    /// A way into the configuration and out of it.
    struct Field: Sendable {
        let valueName: String
        var isList = false
        /// Whether messages must not show the value; its rejections are whole sentences.
        var isSecret = false
        let read: @Sendable (SettingInput, SettingContext, inout ServerConfiguration) throws(SettingRejection) -> Void
        /// The value as TOML.
        let write: @Sendable (ServerConfiguration) -> String
    }

    init(
        _ key: SettingKey, flag: String, _ field: Field, _ summary: String, note: String = "",
        example: String? = nil, defaultNote: String? = nil
    ) {
        self.key = key
        self.flag = flag
        self.valueName = field.valueName
        self.isList = field.isList
        self.summary = summary
        self.note = note
        self.example = example
        self.defaultNote = defaultNote
        self.field = field
    }

    /// The default as help shows it: without quotes.
    public var defaultText: String {
        if let defaultNote { return defaultNote }
        let text = field.write(ServerConfiguration())
        return isList
            ? (text == "[]" ? "none" : text.filter { $0 != "\"" }.dropFirst().dropLast().description)
            : text.filter { $0 != "\"" }
    }

    /// The value as people may see it: TOML, or in words where it follows from others; never a login.
    public func shownValue(in configuration: ServerConfiguration) -> String {
        if configuration.origins[key] == nil, let defaultNote { return defaultNote }
        return field.write(configuration)
    }

    /// The default as TOML.
    public var defaultTOML: String { field.write(ServerConfiguration()) }
}

extension Setting.Field {
    typealias Path<Value> = any WritableKeyPath<ServerConfiguration, Value> & Sendable

    static func boolean(_ path: Path<Bool>) -> Self {
        Self(
            valueName: "",
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = try SettingReader.boolean(input)
            },
            write: { String($0[keyPath: path]) })
    }

    static func count<Number: FixedWidthInteger & Sendable>(
        _ path: Path<Number>, _ range: ClosedRange<Int>
    ) -> Self {
        Self(
            valueName: "NUMBER",
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = Number(clamping: try SettingReader.count(input, in: range))
            },
            write: { countText(Int(clamping: $0[keyPath: path])) })
    }

    static func seconds(_ path: Path<UInt32>, _ range: ClosedRange<Int>) -> Self {
        Self(
            valueName: "DURATION",
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = UInt32(clamping: try SettingReader.seconds(input, in: range))
            },
            write: { "\"\(durationText(Int($0[keyPath: path])))\"" })
    }

    static func choice<Value: Equatable & Sendable>(
        _ path: Path<Value>, _ name: String, of values: [(name: String, value: Value)]
    ) -> Self {
        Self(
            valueName: name,
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = try SettingReader.choice(input, of: values)
            },
            write: { configuration in
                let value = configuration[keyPath: path]
                return "\"\(values.first { $0.value == value }?.name ?? "")\""
            })
    }

    static func addresses(_ path: Path<[SocketAddress]>) -> Self {
        Self(
            valueName: "HOST:PORT", isList: true,
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = try SettingReader.list(input, atMost: 64, SettingReader.address)
            },
            write: { tomlList($0[keyPath: path].map(\.description)) })
    }

    /// An address, or `none`.
    static func optionalAddress(_ path: Path<SocketAddress?>) -> Self {
        Self(
            valueName: "HOST:PORT",
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = input == .text("none") ? nil : try SettingReader.address(input)
            },
            write: { "\"\($0[keyPath: path]?.description ?? "none")\"" })
    }

    static func prefixes(_ path: Path<[AddressPrefix]>) -> Self {
        Self(
            valueName: "ADDRESS/BITS", isList: true,
            read: { (input, _, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = try SettingReader.list(input, atMost: 256, SettingReader.prefix)
            },
            write: {
                tomlList($0[keyPath: path].map { "\($0.address.host)/\($0.bits - ($0.address.isIPv4 ? 96 : 0))" })
            })
    }

    static func directory(_ path: Path<String>) -> Self {
        Self(
            valueName: "DIR",
            read: { (input, context, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = try SettingReader.path(input, context)
            },
            write: { quoted($0[keyPath: path]) })
    }

    /// A page for browsers, or the empty text for none.
    static func pageURL(_ path: Path<String?>) -> Self {
        Self(
            valueName: "URL",
            read: { (input, _, configuration) throws(SettingRejection) in
                guard case .text(let text) = input, text.isEmpty || isPageURL(text) else {
                    throw SettingRejection("is no address of a page; write for example https://tracker-1.example/")
                }
                configuration[keyPath: path] = text.isEmpty ? nil : text
            },
            write: { quoted($0[keyPath: path] ?? "") })
    }

    /// Whether a text is `http://` or `https://` with a host, in printable characters, as long as a report takes.
    private static func isPageURL(_ text: String) -> Bool {
        let rest = ["http://", "https://"].first { text.hasPrefix($0) }.map { text.dropFirst($0.count) }
        guard let rest, let first = rest.first, first != "/", first != ":" else { return false }
        return text.utf8.count <= 120 && text.utf8.allSatisfy { (33...126).contains($0) }
    }

    /// A path, or the empty text for none.
    static func optionalPath(_ path: Path<String?>, _ name: String) -> Self {
        Self(
            valueName: name,
            read: { (input, context, configuration) throws(SettingRejection) in
                configuration[keyPath: path] = input == .text("") ? nil : try SettingReader.path(input, context)
            },
            write: { quoted($0[keyPath: path] ?? "") })
    }
}

private func tomlList(_ elements: [String]) -> String {
    "[" + elements.map { "\"\($0)\"" }.joined(separator: ", ") + "]"
}
