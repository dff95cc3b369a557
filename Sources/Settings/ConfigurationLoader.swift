// From file, environment, flags and console to one checked configuration, or to all that is wrong with them.

import Primitives
import TrackerLogic

extension ServerConfiguration {
    /// Bytes of a configuration file: a hundred times the longest sensible one.
    public static let maxFileByteCount = 1 << 20

    /// Builds the configuration of `tracker serve`: defaults, then the file, then what the console has kept in the data
    /// directory, then the environment, then the flags, then what the console of this process has been told.
    ///
    /// What comes later replaces what came before, lists as a whole.
    ///
    /// - Parameters:
    ///   - file: the path of a TOML file; nil for what `SWARMKEEPER_CONFIG` names, or for none.
    ///   - environment: all variables; those that begin with `SWARMKEEPER_` are ours.
    ///   - flags: what was given on the command line, in the order given; for a switch `true` or `false`.
    ///   - console: what the console adds; what it has kept is read where it does not say.
    /// - Returns: a configuration that has been checked as a whole.
    /// - Throws: `ConfigurationError` with everything that is wrong, each with its place and what would be right.
    public static func load(
        file: String?, environment: [String: String], flags: [SettingKey: [String]] = [:],
        console: ConsoleSettings = ConsoleSettings()
    ) throws(ConfigurationError) -> ServerConfiguration {
        let (text, name) = try read(file: file, environment: environment)
        var console = console
        if console.kept == nil {
            // Where it lies follows from all the other sources.
            var others = ConfigurationLoader(home: environment["HOME"])
            try others.read(text: text, name: name)
            others.read(environment: environment)
            others.read(flags: flags)
            if let directory = others.dataDirectory(environment: environment) {
                console.kept = try KeptSettings.find(in: directory)
            }
        }
        return try load(text: text, name: name, environment: environment, flags: flags, console: console)
    }

    /// The text of the file that is named, and its path; both empty where none is.
    private static func read(
        file: String?, environment: [String: String]
    ) throws(ConfigurationError) -> (text: String, name: String) {
        let named = environment[SettingKey.configurationFileVariable].flatMap { $0.isEmpty ? nil : $0 }
        guard let path = file ?? named else { return ("", "") }
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
        return (text, path)
    }

    /// Builds the configuration where the text of the file is at hand.
    ///
    /// - Parameters:
    ///   - text: TOML; empty for none.
    ///   - name: the file's path: for messages, and because relative paths in it start at its directory.
    ///   - environment: all variables; those that begin with `SWARMKEEPER_` are ours.
    ///   - flags: what was given on the command line, in the order given; for a switch `true` or `false`.
    ///   - console: what the console adds; no file is read for it.
    /// - Returns: a configuration that has been checked as a whole.
    /// - Throws: `ConfigurationError` with everything that is wrong, each with its place and what would be right.
    public static func load(
        text: String = "", name: String = "", environment: [String: String] = [:], flags: [SettingKey: [String]] = [:],
        console: ConsoleSettings = ConsoleSettings()
    ) throws(ConfigurationError) -> ServerConfiguration {
        var loader = ConfigurationLoader(home: environment["HOME"])
        try loader.read(text: text, name: name)
        if let kept = console.kept { try loader.read(kept) }
        loader.read(environment: environment)
        loader.read(flags: flags)
        loader.read(console: console.given)
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
    /// What the console has kept, as TOML.
    var kept: [SettingKey: String] = [:]
    /// Settings that go before what is kept, with where they were given.
    private(set) var overriding: [SettingKey: SettingOrigin] = [:]
    private let home: String?

    init(home: String?) { self.home = home }

    /// The setting as messages name it, after the place where it was given.
    func subject(_ key: SettingKey) -> String {
        switch places[key] {
        case .environment(let name): name
        case .flag(let name): name
        case .file, .kept, .console, .nowhere, nil: key.path
        }
    }

    mutating func report(_ key: SettingKey, _ message: String) {
        problems.append(ConfigurationProblem(places[key] ?? .nowhere, message, key: key))
    }

    /// Gives a value to a setting, or notes why it cannot have it.
    mutating func set(
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
                problems.append(ConfigurationProblem(place(nil), "\(name): \(error.reason)", key: setting.key))
                return
            }
            let equals = if case .flag = places[setting.key] { "" } else { "= " }
            let subject =
                error.element.map { "\($0.shown) in \(name)" } ?? "\(name) \(equals)\(input.shown)"
            problems.append(
                ConfigurationProblem(
                    place(error.element?.index), "\(subject) \(error.reason)", key: setting.key))
        }
    }

    // MARK: The file

    /// A text with settings, and whose it is.
    struct Source {
        /// Its path.
        var name: String
        /// Whether the console wrote it.
        var isKept = false

        func place(_ position: TextPosition?) -> ConfigurationProblem.Place {
            isKept ? .kept(name, position) : .file(name, position)
        }
    }

    mutating func read(text: String, name: String) throws(ConfigurationError) {
        try read(text, Source(name: name))
    }

    mutating func read(_ text: String, _ source: Source) throws(ConfigurationError) {
        let root: TOMLTable
        do {
            root = try TOMLReader.read(text)
        } catch {
            let place = source.place(error.position)
            throw ConfigurationError(problems: [ConfigurationProblem(place, "this is not TOML: \(error.message)")])
        }
        let before = problems.count
        readTable(root, at: [], source)
        func position(_ problem: ConfigurationProblem) -> TextPosition {
            switch problem.place {
            case .file(_, let position?), .kept(_, let position?): position
            case .file, .kept, .environment, .flag, .console, .nowhere: TextPosition(line: .max, column: 0)
            }
        }
        problems[before...].sort { position($0) < position($1) }
    }

    private mutating func readTable(_ table: TOMLTable, at path: [String], _ source: Source) {
        let directory = source.name.lastIndex(of: "/").map { String(source.name[...$0]) } ?? ""
        let context = SettingContext(directory: directory, home: home)
        for entry in table.entries {
            let (key, value) = (entry.key, entry.value)
            let here = path + [key]
            let place = source.place(entry.position)
            let known = key.contains(".") || path.count > 1 ? nil : SettingKey(rawValue: here.joined(separator: "."))
            if path.isEmpty, !key.isEmpty, SettingKey.sections.contains(key) {
                if case .table(let section) = value.content {
                    readTable(section, at: here, source)
                } else {
                    problems.append(
                        ConfigurationProblem(place, "\(quoted(key)) is a section; write [\(key)] and its keys below it")
                    )
                }
            } else if let known {
                set(Setting.of(known), value.input, context) { element in
                    source.place(element.map { value.position(ofElement: $0) } ?? value.position)
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
            overriding[setting.key] = .environment
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
            overriding[setting.key] = .flag
        }
    }
}
