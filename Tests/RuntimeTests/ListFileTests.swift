import Foundation
import Settings
import Testing
import TrackerLogic
import Wire

/// The files of info hashes, users and tokens, as people write them.
@Suite("Access files")
struct ListFileTests {
    static let first = "0123456789abcdef0123456789abcdef01234567"
    static let second = "FEDCBA9876543210fedcba9876543210FEDCBA98"

    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func infoHashes(_ text: String, atMost limit: Int = 100) throws -> [String] {
        try AccessRules.readInfoHashes(directory.write("list", text), atMost: limit).map(\.description)
    }

    private func problems<Value>(_ body: () throws -> Value) -> [String] {
        do {
            _ = try body()
            return []
        } catch let error as TextFileError {
            return error.description.replacing(directory.path("") + "/", with: "").split(separator: "\n").map(
                String.init)
        } catch {
            return ["\(error)"]
        }
    }

    @Test
    func `a list has an info hash a line, with comments and blank lines, however its lines end`() throws {
        let both = [Self.first, Self.second.lowercased()]
        #expect(try infoHashes("\(Self.first)\n\(Self.second)\n") == both)
        #expect(try infoHashes("\u{FEFF}\(Self.first)\r\n\r\n  \(Self.second)\t\r\n") == both)
        #expect(try infoHashes("# Linux\n\n\(Self.first) # one\n   # two\n\(Self.second)\t#") == both)
        #expect(try infoHashes("\(Self.first)\n\(Self.first)") == [Self.first, Self.first])
        #expect(try infoHashes("").isEmpty)
        #expect(try infoHashes("#\n\n").isEmpty)
    }

    @Test
    func `what is no info hash is told with file and line, all at once`() {
        let text = "\(Self.first)\n\(Self.first.dropLast())\n# fine\nlinux.iso\n\(Self.first)\(Self.first.prefix(24))\n"
        #expect(
            problems { try infoHashes(text) } == [
                "list:2: \"\(Self.first.dropLast())\" is not an info hash; "
                    + "write 40 hexadecimal digits, one info hash a line",
                "list:4: \"linux.iso\" is not an info hash; write 40 hexadecimal digits, one info hash a line",
                "list:5: \"\(Self.first)0123456789abcdef0123…\" is a v2 info hash in full; "
                    + "trackers know it by its first 40 digits",
            ])
    }

    @Test
    func `a file that is something else is given up after twenty problems`() {
        let told = problems { try infoHashes(String(repeating: "<p>\n", count: 1000)) }
        #expect(told.count == 21)
        #expect(told.last == "list: and perhaps more; only the first 20 problems are shown")
    }

    @Test
    func `lines and lists have bounds`() throws {
        #expect(
            problems { try infoHashes("\(Self.first)\n\(Self.second)\n", atMost: 1) } == [
                "list:2: the list has more than 1 info hashes; raise limits.listed-info-hashes"
            ])
        #expect(
            problems { try infoHashes(String(repeating: "a", count: 1_000_000)) } == [
                "list:1: the line is longer than 4096 bytes"
            ])
        // Longer than one read, so that a line straddles two.
        let many = (0..<20_000).map { String(repeating: "0", count: 40 - String($0).count) + String($0) }
        #expect(try infoHashes(many.joined(separator: "\n"), atMost: 20_000) == many)
    }

    @Test
    func `a list that cannot be read says why`() {
        #expect(
            problems { try AccessRules.readInfoHashes(directory.path("none"), atMost: 1) } == [
                "none: there is no such file; check the path"
            ])
        #expect(
            problems { try AccessRules.readInfoHashes("/", atMost: 1) } == ["/: this is a directory; name a file"])
    }

    @Test
    func `users have names, which may hold blanks, and passkeys`() throws {
        let path = try directory.write(
            "users",
            "# NAME PASSKEY\nalice 0123456789abcdef\nBob the Builder\tpass.key-2\r\nzoë   s3cret_s3cret # new\n")
        let users = try AccessRules.readUsers(path, atMost: 10)
        #expect(users.map(\.name) == ["alice", "Bob the Builder", "zoë"])
        #expect(
            users.map { String(decoding: $0.passkey, as: UTF8.self) }
                == ["0123456789abcdef", "pass.key-2", "s3cret_s3cret"])
    }

    @Test
    func `users that are wrong are told with file and line, and no passkey is shown`() throws {
        let path = try directory.write(
            "users",
            """
            alice 0123456789abcdef
            lonely
            bob short
            carol with/slash
            alice fedcba9876543210
            dave 0123456789abcdef
            \(String(repeating: "n", count: 513)) 0123456789abcdeF
            """)
        let told = problems { try AccessRules.readUsers(path, atMost: 10) }
        #expect(
            told == [
                "users:2: the line is not a name, a blank and a passkey",
                "users:3: the passkey of \"bob\" will not do; "
                    + "write 8 to 64 letters, digits or signs other than / ? & # %",
                "users:4: the passkey of \"carol\" will not do; "
                    + "write 8 to 64 letters, digits or signs other than / ? & # %",
                "users:5: \"alice\" already has a passkey in line 1",
                "users:6: \"dave\" has the passkey of line 1; each needs one of his own",
                "users:7: the name has 513 bytes; write at most 512",
            ])
    }

    @Test
    func `the rules are read from the files that the mode needs, and from no others`() throws {
        var configuration = ServerConfiguration()
        configuration.accessListFile = try directory.write("list", Self.first)
        configuration.usersFile = directory.path("none")
        let infoHash = try #require(InfoHash(hexadecimal: Self.first))
        #expect(try configuration.accessRules() == AccessRules())
        configuration.accessMode = .deny
        #expect(try configuration.accessRules() == AccessRules(mode: .deny, infoHashes: [infoHash]))
        configuration.accessMode = .private
        #expect(throws: TextFileError.self) { try configuration.accessRules() }
        configuration.usersFile = try directory.write("users", "a 12345678")
        #expect(
            try configuration.accessRules()
                == AccessRules(mode: .private, users: [User(name: "a", passkey: Array("12345678".utf8))]))
    }

    @Test
    func `a token is one line of printable characters`() throws {
        var configuration = ServerConfiguration()
        configuration.consoleTokenFile = try directory.write("token", "0123456789abcdef\n")
        #expect(try configuration.consoleToken() == "0123456789abcdef")
        for text in ["", "short", "two\nlines-0123456789", "with a blank 0123456789"] {
            configuration.consoleTokenFile = try directory.write("token", text)
            #expect(
                problems { try configuration.consoleToken() } == [
                    "token: a token file holds one line of 16 to 512 printable characters without blanks; "
                        + "make one with: openssl rand -hex 32"
                ])
        }
    }
}
