import Foundation
import Primitives
import Settings
import Testing
import TrackerLogic

/// What the console adds to the settings: which word goes before which, and files that are damaged.
@Suite("Settings kept by the console")
struct KeptSettingsTests {
    private static let path = "/data/console.toml"

    private func load(
        _ text: String = "", environment: [String: String] = [:], flags: [SettingKey: [String]] = [:],
        kept: String? = nil, given: [SettingKey: SettingInput] = [:]
    ) throws(ConfigurationError) -> ServerConfiguration {
        try ServerConfiguration.load(
            text: text, name: "tracker.toml", environment: ConfigurationTests.home.merging(environment) { $1 },
            flags: flags,
            console: ConsoleSettings(given: given, kept: kept.map { KeptSettings(path: Self.path, text: $0) }))
    }

    private func problems(kept: String, given: [SettingKey: SettingInput] = [:]) -> [ConfigurationProblem] {
        do throws(ConfigurationError) {
            _ = try load(kept: kept, given: given)
            return []
        } catch {
            return error.problems
        }
    }

    @Test
    func `default, file, kept, environment, flag, told now: each goes before those before it`() throws {
        let variable = SettingKey.id.environmentName
        #expect(try load().node.id == 1)
        var configuration = try load("id = 2")
        #expect(configuration.node.id == 2 && configuration.origins[.id] == .file)
        configuration = try load("id = 2", kept: "id = 3")
        #expect(configuration.node.id == 3 && configuration.origins[.id] == .console)
        #expect(configuration.kept.values[.id]?.overriddenBy == nil)
        #expect(configuration.overriddenNotes == [])
        configuration = try load("id = 2", environment: [variable: "4"], kept: "id = 3")
        #expect(configuration.node.id == 4 && configuration.origins[.id] == .environment)
        #expect(configuration.kept.values[.id]?.overriddenBy == .environment)
        #expect(configuration.overriddenNotes.first?.contains("id = 3, but \(variable) goes before it") == true)
        configuration = try load("id = 2", environment: [variable: "4"], flags: [.id: ["5"]], kept: "id = 3")
        #expect(configuration.node.id == 5 && configuration.origins[.id] == .flag)
        #expect(configuration.kept.values[.id]?.overriddenBy == .flag)
        configuration = try load(
            "id = 2", environment: [variable: "4"], flags: [.id: ["5"]], kept: "id = 3", given: [.id: .integer(6)])
        #expect(configuration.node.id == 6 && configuration.origins[.id] == .console)
        // At the next start the flag is there, and this word is not.
        #expect(configuration.kept.values[.id]?.overriddenBy == .flag)
    }

    @Test
    func `what is kept says the same when it is read again`() throws {
        let given: [SettingKey: SettingInput] = [
            .id: .text("7"), .udp: .text("127.0.0.1:1,[::1]:2"), .http: .list([.text("127.0.0.1:3")]),
            .advertise: .text("udp://tracker.example:1/announce"),
        ]
        let told = try load(given: given)
        let kept = KeptSettings(given.keys, of: told, path: Self.path)
        let read = try load(kept: kept.text)
        #expect(read == told)
        #expect(Set(read.kept.values.keys) == Set(given.keys))
        #expect(KeptSettings([], of: told, path: Self.path).text == "")
    }

    @Test
    func `all that can be changed is taken over, and nothing else`() throws {
        let bus = "id = 1\n[cluster]\nbus = \"multicast://239.1.1.1:1\"\nkey-file = \"k\"\n"
        let before = try load(bus)
        let after = try load(
            bus.replacing("\"k\"", with: "\"other\""),
            given: [
                .id: .integer(2), .entry: .text("group"), .group: .text("239.192.7.7:6969"), .interface: .text("lo"),
                .advertise: .text("udp://tracker.example:1/announce"), .udp: .text("127.0.0.1:1"),
                .http: .text("127.0.0.1:2"),
            ])
        var expected = after
        expected.cluster.keyFile = before.cluster.keyFile
        #expect(before.changed(as: after) == expected)
        for key in SettingKey.changeable {
            #expect(Setting.of(key).typedValue(in: before) != Setting.of(key).typedValue(in: after), "\(key)")
        }
    }

    @Test(arguments: [
        ("id = 1\n[listen]\nudp = [\n", 3, "this is not TOML"), ("\nid = \"moon\"", 2, "is not a number"),
        ("[storage]\ndirectory = \"/x\"", 2, "nothing that the console keeps"), ("idd = 1", 1, "did you mean \"id\"?"),
        ("[listen]\nudp = [\"127.0.0.1:1\", \"127.0.0.1:1\"]", 2, "twice"),
    ])
    func `a damaged file is named with its line, and the way out`(text: String, line: Int, words: String) throws {
        let problems = problems(kept: text)
        let first = try #require(problems.first)
        #expect(first.description.hasPrefix("\(Self.path):\(line):"), "\(first)")
        #expect(first.description.contains(words), "\(first)")
        #expect(problems.last == KeptSettings.advice(Self.path))
    }

    @Test
    func `each problem tells its setting`() {
        let problems = problems(kept: "", given: [.id: .text("x"), .udp: .list([.text("y"), .integer(1)])])
        #expect(problems.map(\.key) == [.id, .udp])
        #expect(problems.map(\.place) == [.console, .console])
    }

    @Test
    func `the file is its owner's alone, takes the old one's place, and goes when nothing is kept`() throws {
        let directory = try TemporaryDirectory()
        let path = KeptSettings.path(in: directory.path(""))
        for text in ["id = 2\n", "id = 3\n"] {
            try KeptSettings(path: path, text: text).store()
            #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
        let flags: [SettingKey: [String]] = [.dataDirectory: [directory.path("")]]
        #expect(try ServerConfiguration.load(file: nil, environment: [:], flags: flags).node.id == 3)
        for _ in 0..<2 { try KeptSettings(path: path, text: "").store() }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path("")) == [])
        #expect(throws: TextFileError.self) { try KeptSettings(path: path + "/x/y", text: "id = 1").store() }
    }
}
