import Foundation
import Primitives
import Settings
import Testing
import TrackerLogic

/// Configuration files as a whole: where things stand in them, what cannot be read, what nobody meant to write.
@Suite("Configuration files")
struct ConfigurationFileTests {
    static func problems(_ text: String) -> String { ConfigurationTests.problems(text) }

    /// Documents in which `[announce] wrong` stands on line 5, however much TOML surrounds it.
    static let places: [(name: String, text: String, column: Int)] = [
        ("comments", "# [announce]\n# wrong = 1\n\n[announce] # = \"\n  wrong = 1", 3),
        ("a string with a key in it", "id = 1\n[torrents]\ndirectory = \"\\\"wrong = 1\"\n[announce]\nwrong = 1", 1),
        (
            "a string over lines",
            "torrents.directory = \"\"\"\nannounce.wrong = 1\n\\\"\"\" \"\"\"\n\nannounce.wrong = 1", 10
        ),
        ("a literal over lines", "torrents.directory = '''\nannounce.wrong = 1 \\\n''\n'''\nannounce.wrong = 1", 10),
        ("quotes before the end", "torrents.directory = \"\"\"a\"\"\"\"\"\n\n\n\nannounce.wrong = 1", 10),
        ("an array over lines", "listen.http = [ # ]\n \"[::1]:1\",\n\n]\nannounce.wrong = 1", 10),
        ("an inline table", "\n\n\n\nannounce = { interval = 5, wrong = 1 }", 28),
        ("a quoted key", "\n\n\n\n\"announce\" . 'wrong' = 1", 14),
        ("an escaped key", "\n\n\n\n\"\\u0061nnounce\".\"wr\\u006Fng\" = 1", 17),
        ("a header with blanks", "\n\n\n[ announce ]\nwrong = 1", 1),
        ("CR LF", "\r\n\r\n\r\n[announce]\r\nwrong = 1\r\n", 1),
        ("letters beyond ASCII", "\n\n\n\nannounce = { \"interval\" = 5, \"wrong\" = \"äöü\" }", 30),
        ("a table header of its own", "\n[log]\n\n\n[announce.wrong]\na = 1", 11),
        ("a date with a blank", "[announce.x]\na = 1979-05-27 07:32:00\n\n[announce]\nwrong = 1", 1),
        ("tables in arrays", "[announce.x]\na = [{ b = [1, 2] }, { b = 3 }]\n[announce]\n\nwrong = 1", 1),
        ("arrays of tables", "[[announce.x]]\na = 1\n[[announce.x]]\n[announce]\nwrong = 1", 1),
    ]

    @Test(arguments: places)
    func `the place of a key is right, however much TOML surrounds it`(name: String, text: String, column: Int) {
        let all = Self.problems(text).split(separator: "\n")
        let lines = all.filter { $0.contains("\"wrong\"") }
        #expect(lines.count == 1, "\(all)")
        #expect(
            lines.first?.hasPrefix("tracker.toml:5:\(column): unknown key \"wrong\" in [announce]") == true, "\(all)")
    }

    @Test
    func `every problem in a long file is told with the line of its key`() {
        // A valid file, each of whose values is of the wrong kind.
        var text = ""
        var expected: [String] = []
        var line = 0
        for section in SettingKey.sections {
            if !section.isEmpty {
                text += "[\(section)]\n"
                line += 1
            }
            for key in SettingKey.allCases where key.section == section {
                text += "\(key.name) = 1.5\n"
                line += 1
                let start =
                    switch key {
                    // It may hold a login, so no value of it is repeated.
                    case .bus: "cluster.bus: "
                    case .udp, .http, .trusted, .members, .group: "1.5 in \(key.path) "
                    default: "\(key.path) = 1.5 "
                    }
                expected.append("tracker.toml:\(line):\(key.name.count + 4): \(start)")
            }
        }
        let told = Self.problems(text).split(separator: "\n")
        #expect(told.count == expected.count)
        for (line, start) in zip(told, expected) { #expect(line.hasPrefix(start), "\(line)") }
    }

    @Test
    func `a file that cannot be read is named, with what named it`() throws {
        let directory = try TemporaryDirectory()
        func problems(file: String?, environment: [String: String] = ConfigurationTests.home) -> String {
            do throws(ConfigurationError) {
                _ = try ServerConfiguration.load(file: file, environment: environment)
                return ""
            } catch {
                return error.description
            }
        }
        let missing = directory.path("none.toml")
        #expect(
            problems(file: missing)
                == "the file given by --config cannot be used: \(missing): there is no such file; check the path")
        #expect(
            problems(file: nil, environment: ["SWARMKEEPER_CONFIG": missing])
                == "the file named by SWARMKEEPER_CONFIG cannot be used: \(missing): there is no such file; "
                + "check the path")
        #expect(
            problems(file: directory.path(""))
                == "the file given by --config cannot be used: \(directory.path("")): "
                + "this is a directory; name a file")
        let latin = try directory.write("latin.toml", [0x23, 0xE4, 0x0A])
        #expect(problems(file: latin) == "\(latin): the file is not UTF-8 text; save it as UTF-8")
        let huge = try directory.write(
            "huge.toml", Array(repeating: 0x23, count: ServerConfiguration.maxFileByteCount + 1))
        #expect(
            problems(file: huge)
                == "the file given by --config cannot be used: \(huge): the file is longer than 1_048_576 bytes; "
                + "is it the right one?")
        let good = try directory.write("good.toml", Array("id = 9\nstorage.directory = \"d\"".utf8))
        let loaded = try ServerConfiguration.load(file: nil, environment: ["SWARMKEEPER_CONFIG": good])
        #expect(loaded.node.id == 9)
        #expect(loaded.dataDirectory == directory.path("d"))
        // --config goes before the variable.
        #expect(problems(file: good, environment: ["SWARMKEEPER_CONFIG": missing]) == "")
    }

    @Test(arguments: 0..<20)
    func `whatever the bytes of a file are, they are read or refused, and nothing traps`(seed: UInt64) {
        var random = RandomStream(seed: seed)
        let original = Array(Setting.exampleFile().utf8)
        for _ in 0..<25 {
            var bytes = original
            for _ in 0...random.below(6) {
                let index = Int(random.below(UInt64(bytes.count)))
                switch random.below(4) {
                case 0: bytes[index] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes.remove(at: index)
                case 2: bytes.insert(Array("[]{}\"'#=.,\n\\".utf8)[Int(random.below(12))], at: index)
                default: bytes.removeSubrange(index..<min(bytes.count, index + Int(random.below(200))))
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            for line in Self.problems(text).split(separator: "\n") {
                #expect(line.hasPrefix("tracker.toml:") || line.hasPrefix("there is no place"), "\(line)")
            }
        }
    }
}
