// From file, environment and flags to one checked configuration, or to all that is wrong with them.

import Primitives
import TrackerLogic

extension ServerConfiguration {
    /// Bytes of a configuration file: a hundred times the longest sensible one.
    public static let maxFileByteCount = 1 << 20

    /// Builds the configuration of `tracker serve`: defaults, then the file, then the environment, then the flags.
    ///
    /// What comes later replaces what came before, lists as a whole.
    ///
    /// - Parameters:
    ///   - file: the path of a TOML file; nil for what `SWARMKEEPER_CONFIG` names, or for none.
    ///   - environment: all variables; those that begin with `SWARMKEEPER_` are ours.
    ///   - flags: what was given on the command line, in the order given; for a switch `true` or `false`.
    /// - Returns: a configuration that has been checked as a whole.
    /// - Throws: `ConfigurationError` with everything that is wrong, each with its place and what would be right.
    public static func load(
        file: String?, environment: [String: String], flags: [SettingKey: [String]] = [:]
    ) throws(ConfigurationError) -> ServerConfiguration {
        let named = environment[SettingKey.configurationFileVariable].flatMap { $0.isEmpty ? nil : $0 }
        guard let path = file ?? named else { return try load(environment: environment, flags: flags) }
        let bytes: [UInt8]
        do {
            bytes = try BoundedFile.read(path, atMost: maxFileByteCount)
        } catch {
            let way = file != nil ? "the file given by --config" : "the file named by SWARMKEEPER_CONFIG"
            throw ConfigurationError(problems: [
                ConfigurationProblem(.nowhere, "\(way) cannot be used: \(error.description)")
            ])
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError(problems: [
                ConfigurationProblem(.file(path, nil), "the file is not UTF-8 text; save it as UTF-8")
            ])
        }
        return try load(text: text, name: path, environment: environment, flags: flags)
    }

    /// Builds the configuration where the text of the file is at hand.
    ///
    /// - Parameters:
    ///   - text: TOML; empty for none.
    ///   - name: the file's path: for messages, and because relative paths in it start at its directory.
    ///   - environment: all variables; those that begin with `SWARMKEEPER_` are ours.
    ///   - flags: what was given on the command line, in the order given; for a switch `true` or `false`.
    /// - Returns: a configuration that has been checked as a whole.
    /// - Throws: `ConfigurationError` with everything that is wrong, each with its place and what would be right.
    public static func load(
        text: String = "", name: String = "", environment: [String: String] = [:], flags: [SettingKey: [String]] = [:]
    ) throws(ConfigurationError) -> ServerConfiguration {
        var loader = ConfigurationLoader(home: environment["HOME"])
        try loader.read(text: text, name: name)
        loader.read(environment: environment)
        loader.read(flags: flags)
        return try loader.finish(environment: environment)
    }
}

/// Gathers values and problems, source by source.
struct ConfigurationLoader {
    var configuration = ServerConfiguration()
    var problems: [ConfigurationProblem] = []
    /// Where each setting that is not a default was given last.
    var places: [SettingKey: ConfigurationProblem.Place] = [:]
    /// Settings that were given a value that they cannot have.
    private(set) var rejected: Set<SettingKey> = []
    private let home: String?

    init(home: String?) { self.home = home }

    /// The setting as messages name it, after the place where it was given.
    func subject(_ key: SettingKey) -> String {
        switch places[key] {
        case .environment(let name): name
        case .flag(let name): name
        case .file, .nowhere, nil: key.path
        }
    }

    mutating func report(_ key: SettingKey, _ message: String) {
        problems.append(ConfigurationProblem(places[key] ?? .nowhere, message))
    }

    /// Gives a value to a setting, or notes why it cannot have it.
    private mutating func set(
        _ setting: Setting, _ input: SettingInput, _ context: SettingContext,
        place: (_ element: Int?) -> ConfigurationProblem.Place
    ) {
        places[setting.key] = place(nil)
        do {
            try setting.field.read(input, context, &configuration)
        } catch {
            rejected.insert(setting.key)
            let name = subject(setting.key)
            guard !setting.field.isSecret else {
                problems.append(ConfigurationProblem(place(nil), "\(name): \(error.reason)"))
                return
            }
            let equals = if case .flag = places[setting.key] { "" } else { "= " }
            let subject =
                error.element.map { "\($0.shown) in \(name)" } ?? "\(name) \(equals)\(input.shown)"
            problems.append(ConfigurationProblem(place(error.element?.index), "\(subject) \(error.reason)"))
        }
    }

    // MARK: The file

    mutating func read(text: String, name: String) throws(ConfigurationError) {
        let root: TOMLTable
        do {
            root = try TOMLReader.read(text)
        } catch {
            let place = ConfigurationProblem.Place.file(name, error.position)
            throw ConfigurationError(problems: [ConfigurationProblem(place, "this is not TOML: \(error.message)")])
        }
        let before = problems.count
        readTable(root, at: [], name: name)
        func position(_ problem: ConfigurationProblem) -> TextPosition {
            if case .file(_, let position?) = problem.place { return position }
            return TextPosition(line: .max, column: 0)
        }
        problems[before...].sort { position($0) < position($1) }
    }

    private mutating func readTable(_ table: TOMLTable, at path: [String], name: String) {
        let directory = name.lastIndex(of: "/").map { String(name[...$0]) } ?? ""
        let context = SettingContext(directory: directory, home: home)
        for entry in table.entries {
            let (key, value) = (entry.key, entry.value)
            let here = path + [key]
            let place = ConfigurationProblem.Place.file(name, entry.position)
            let known = key.contains(".") || path.count > 1 ? nil : SettingKey(rawValue: here.joined(separator: "."))
            if path.isEmpty, !key.isEmpty, SettingKey.sections.contains(key) {
                if case .table(let section) = value.content {
                    readTable(section, at: here, name: name)
                } else {
                    problems.append(
                        ConfigurationProblem(place, "\(quoted(key)) is a section; write [\(key)] and its keys below it")
                    )
                }
            } else if let known {
                set(Setting.of(known), value.input, context) { element in
                    .file(name, element.map { value.position(ofElement: $0) } ?? value.position)
                }
            } else {
                // To guess what each was meant to be takes longest, and all beyond a hundred is told as a number.
                let isTold = problems.count < Self.maxProblems
                problems.append(
                    ConfigurationProblem(place, isTold ? Self.unknown(value, here) : "unknown key \(quoted(key))"))
            }
        }
    }

    /// What to say of a key that is none of ours.
    private static func unknown(_ value: TOMLValue, _ path: [String]) -> String {
        let key = path.last ?? ""
        let section = path.dropLast().joined(separator: ".")
        let isTable = if case .table = value.content { true } else { false }
        let what =
            isTable && section.isEmpty
            ? "section [\(key.contains { $0.isNewline } ? quoted(key) : key)]" : "key \(quoted(key))"
        let place = section.isEmpty ? (isTable ? "" : " at the top of the file") : " in [\(section)]"
        var hint = ""
        let siblings = SettingKey.allCases.filter { $0.section == section }.map(\.name)
        if section.isEmpty, let near = nearest(key, among: isTable ? SettingKey.sections : siblings) {
            hint = isTable ? "; did you mean [\(near)]?" : "; did you mean \(quoted(near))?"
        } else if !section.isEmpty, let near = nearest(key, among: siblings) {
            hint = "; did you mean \(quoted(near))?"
        } else if let elsewhere = SettingKey.allCases.first(where: { $0.name == key }) {
            hint =
                "; \(quoted(key)) belongs " + (elsewhere.section.isEmpty ? "at the top" : "in [\(elsewhere.section)]")
        } else if let flag = Setting.all.first(where: { $0.flag == key }) {
            hint = "; the key of --\(key) is \(flag.key.path)"
        } else if !siblings.isEmpty {
            hint = "; known are " + siblings.joined(separator: ", ")
        }
        return "unknown \(what)\(place)\(hint)"
    }

    // MARK: The environment

    mutating func read(environment: [String: String]) {
        let context = SettingContext(home: home)
        for setting in Setting.all {
            let name = setting.key.environmentName
            guard let value = environment[name] else { continue }
            set(setting, .text(value), context) { _ in .environment(name) }
        }
        let names = SettingKey.allCases.map(\.environmentName) + [SettingKey.configurationFileVariable]
        for name in environment.keys.sorted()
        where name.hasPrefix(SettingKey.environmentPrefix) && !names.contains(name) && !Self.isFromKubernetes(name) {
            let hint =
                nearest(name, among: names).map { "; did you mean \($0)?" }
                ?? "; `tracker serve --help` lists the variables"
            problems.append(
                ConfigurationProblem(.environment(name), "unknown environment variable \(name)\(hint)"))
        }
    }

    /// Kubernetes sets `SWARMKEEPER_SERVICE_HOST`, `SWARMKEEPER_PORT_6969_UDP_ADDR` and the like in every container
    /// near a service that is called swarmkeeper.
    private static func isFromKubernetes(_ name: String) -> Bool {
        let rest = name.dropFirst(SettingKey.environmentPrefix.count)
        return rest == "PORT" || rest.hasPrefix("PORT_") || rest == "SERVICE_HOST" || rest.hasPrefix("SERVICE_PORT")
    }

    // MARK: The flags

    mutating func read(flags: [SettingKey: [String]]) {
        let context = SettingContext(home: home)
        for setting in Setting.all {
            guard let values = flags[setting.key], let last = values.last else { continue }
            let flag = "--" + setting.flag
            let input: SettingInput =
                !setting.isList
                ? .text(last)
                : values.count == 1 ? .text(last) : .list(values.map { .text($0) })
            set(setting, input, context) { _ in .flag(flag) }
        }
    }
}
