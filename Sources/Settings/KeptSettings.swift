// What the console adds to the settings: for the process that runs, and for its next start.

import Primitives
import TrackerLogic

/// What the console adds to the settings.
public struct ConsoleSettings: Sendable, Equatable {
    /// What it has been told in this process: goes before flags, for it is the later word.
    public var given: [SettingKey: SettingInput] = [:]
    /// What it keeps for each start; nil for what there is.
    public var kept: KeptSettings?

    /// Takes the fields as they are.
    public init(given: [SettingKey: SettingInput] = [:], kept: KeptSettings? = nil) {
        self.given = given
        self.kept = kept
    }
}

/// What the console keeps for each start: `DIR/console.toml`, written as a configuration file is.
///
/// It goes before the configuration file, which nobody at the console can write. The environment and the flags go
/// before it: whoever starts a tracker with them means this start.
public struct KeptSettings: Sendable, Equatable {
    /// Bytes of such a file: far more than the longest that the console writes.
    static let maxByteCount = 65_536

    /// Of the file.
    public var path: String
    /// TOML; empty for none.
    public var text: String

    /// Takes the fields as they are.
    public init(path: String, text: String) {
        self.path = path
        self.text = text
    }

    /// Some settings as they stand in a configuration.
    ///
    /// - Parameters:
    ///   - keys: of those to keep; none of them for an empty text.
    ///   - configuration: in which they are in force.
    ///   - path: of the file.
    public init(_ keys: some Collection<SettingKey>, of configuration: ServerConfiguration, path: String) {
        self.path = path
        text = ""
        guard !keys.isEmpty else { return }
        text = """
            # Kept by this tracker's console, for each start. Flags and the environment go before it, and it goes before
            # the configuration file. The console writes it anew, and removes it when it is told to forget.

            """
        for section in SettingKey.sections {
            let settings = Setting.all.filter { $0.key.section == section && keys.contains($0.key) }
            guard !settings.isEmpty else { continue }
            text += section.isEmpty ? "\n" : "\n[\(section)]\n"
            for setting in settings { text += "\(setting.key.name) = \(setting.field.write(configuration))\n" }
        }
    }

    /// Where they are kept.
    public static func path(in directory: String) -> String { joinedPath(directory, "console.toml") }

    /// What is kept in a data directory.
    ///
    /// - Returns: nil where nothing is.
    /// - Throws: where the file is there and cannot be read, with what to do.
    static func find(in directory: String) throws(ConfigurationError) -> KeptSettings? {
        let path = path(in: directory)
        // Whoever may not look into the directory is told so where the record is opened.
        guard BoundedFile.maySearch(directory), BoundedFile.exists(path) else { return nil }
        do {
            let bytes = try BoundedFile.read(path, atMost: maxByteCount)
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw ConfigurationError(problems: [
                    ConfigurationProblem(.kept(path, nil), "the file is not UTF-8 text"), advice(path),
                ])
            }
            return KeptSettings(path: path, text: text)
        } catch let error as ConfigurationError {
            throw error
        } catch {
            let reason = (error as? TextFileError)?.problems.first?.message ?? "\(error)"
            throw ConfigurationError(problems: [ConfigurationProblem(.kept(path, nil), reason), advice(path)])
        }
    }

    /// The way out, where the file is not what it should be.
    public static func advice(_ path: String) -> ConfigurationProblem {
        ConfigurationProblem(
            .kept(path, nil),
            "the console has kept this for each start; put it right there, or remove the file to start without it")
    }
}

/// The values that the console has kept; no part of what a configuration is, as `SettingOrigins`.
public struct KeptValues: Sendable, Equatable {
    /// One of them.
    public struct Value: Sendable {
        /// As TOML.
        public var shown: String
        /// What is given elsewhere and goes before it at each start: the environment, or a flag.
        public var overriddenBy: SettingOrigin?
    }

    /// By setting.
    public private(set) var values: [SettingKey: Value] = [:]

    /// None.
    public init() {}

    init(_ values: [SettingKey: Value]) { self.values = values }

    /// Always: the same values are the same configuration, wherever they were given.
    public static func == (left: Self, right: Self) -> Bool { true }
}

extension ServerConfiguration {
    /// The same, with what the console can change (`SettingKey.changeable`) as another configuration has it.
    ///
    /// - Parameter other: loaded from the same sources, which may have changed in other ways meanwhile.
    /// - Returns: a configuration that is as the process began, but for these.
    public func changed(as other: Self) -> Self {
        var changed = self
        changed.node.id = other.node.id
        changed.node.cluster.entry = other.node.cluster.entry
        changed.cluster.entry = other.cluster.entry
        changed.cluster.groups = other.cluster.groups
        changed.cluster.interface = other.cluster.interface
        changed.cluster.hooks.advertised = other.cluster.hooks.advertised
        (changed.udp, changed.http) = (other.udp, other.http)
        for key in SettingKey.changeable { changed.origins[key] = other.origins[key] }
        changed.kept = other.kept
        return changed
    }

    /// Which of the settings that the console has kept do not count, a sentence each, for flags or the environment go
    /// before them.
    public var overriddenNotes: [String] {
        Setting.all.compactMap { setting in
            guard let value = kept.values[setting.key], let origin = value.overriddenBy else { return nil }
            let name = origin == .flag ? "--\(setting.flag)" : setting.key.environmentName
            return
                "the console has kept \(setting.key.path) = \(value.shown), but \(name) goes before it; leave \(name) "
                + "out, or have the console forget what it has kept"
        }
    }
}

extension ConfigurationLoader {
    var keptValues: KeptValues {
        var values: [SettingKey: KeptValues.Value] = [:]
        for key in SettingKey.changeable {
            guard let shown = kept[key] else { continue }
            values[key] = .init(shown: shown, overriddenBy: overriding[key])
        }
        return KeptValues(values)
    }

    /// Reads what the console has kept.
    mutating func read(_ settings: KeptSettings) throws(ConfigurationError) {
        do {
            try read(settings.text, Source(name: settings.path, isKept: true))
        } catch {
            throw ConfigurationError(problems: error.problems + [KeptSettings.advice(settings.path)])
        }
        for setting in Setting.all {
            guard case .kept? = places[setting.key] else { continue }
            if SettingKey.changeable.contains(setting.key) {
                kept[setting.key] = setting.field.write(configuration)
            } else {
                report(
                    setting.key,
                    "\(setting.key.path) is nothing that the console keeps; write it into the configuration file")
            }
        }
    }

    /// Takes what the console has been told in this process.
    mutating func read(console: [SettingKey: SettingInput]) {
        for setting in Setting.all {
            guard let input = console[setting.key] else { continue }
            set(setting, input, SettingContext()) { _ in .console }
        }
    }

    /// Says what to do about the file of the console, where some problem is there.
    mutating func adviseOnKept() {
        for problem in problems {
            guard case .kept(let path, _) = problem.place else { continue }
            return problems.append(KeptSettings.advice(path))
        }
    }
}

extension Setting {
    /// The value as one types it into a field: without quotes, a list with commas; empty for none.
    public func typedValue(in configuration: ServerConfiguration) -> String {
        let text = field.write(configuration).filter { $0 != "\"" }
        return isList ? String(text.dropFirst().dropLast()) : text
    }
}
