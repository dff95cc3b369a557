import Foundation
import Primitives
import Settings
import Testing
import TrackerLogic

/// What operators are told when a configuration is wrong: the place, the fault and the way out, word for word.
@Suite("Configuration problems")
struct ConfigurationProblemTests {
    static func problems(
        _ text: String = "", environment: [String: String] = ConfigurationTests.home,
        flags: [SettingKey: [String]] = [:]
    ) -> String {
        ConfigurationTests.problems(text, environment: environment, flags: flags)
    }

    /// A file and what is said of it.
    static let files: [(text: String, message: String)] = [
        // Unknown keys.
        (
            "[announce]\nintervall = \"30m\"",
            "tracker.toml:2:1: unknown key \"intervall\" in [announce]; did you mean \"interval\"?"
        ),
        (
            "interval = 5",
            "tracker.toml:1:1: unknown key \"interval\" at the top of the file; "
                + "\"interval\" belongs in [announce]"
        ),
        ("[announce]\nid = 1", "tracker.toml:2:1: unknown key \"id\" in [announce]; \"id\" belongs at the top"),
        ("[anounce]\ninterval = 5", "tracker.toml:1:2: unknown section [anounce]; did you mean [announce]?"),
        (
            "[storage]\ndata = \"/x\"",
            "tracker.toml:2:1: unknown key \"data\" in [storage]; "
                + "the key of --data is storage.directory"
        ),
        ("[log]\nrotation = 1", "tracker.toml:2:1: unknown key \"rotation\" in [log]; known are level, format"),
        (
            "[announce.extra]\na = 1",
            "tracker.toml:1:11: unknown key \"extra\" in [announce]; known are interval, "
                + "min-interval, interval-jitter, target-rate, peer-lifetime, num-want, max-num-want, trusted"
        ),
        (
            "[[users]]\nname = \"a\"",
            "tracker.toml:1:3: unknown key \"users\" at the top of the file; "
                + "\"users\" belongs in [access]"
        ),
        ("announce = 5", "tracker.toml:1:1: \"announce\" is a section; write [announce] and its keys below it"),
        (
            "\"announce.interval\" = 5",
            "tracker.toml:1:1: unknown key \"announce.interval\" at the top of the file; "
                + "known are id"
        ),
        ("\"a\\u0000b\" = 5", "tracker.toml:1:1: unknown key \"a\\u0000b\" at the top of the file; known are id"),
        // Values of the wrong kind.
        ("id = \"one\"", "tracker.toml:1:6: id = \"one\" is not a number; write for example 1_000_000 or \"1M\""),
        ("id = 0", "tracker.toml:1:6: id is 0, which leaves the number to a cluster's master; write at least 1"),
        ("id = -1", "tracker.toml:1:6: id = -1 is out of range; write 0 to 4_294_967_295"),
        ("id = 1.5", "tracker.toml:1:6: id = 1.5 is not a number; write for example 1_000_000 or \"1M\""),
        ("id = { a = 1 }", "tracker.toml:1:6: id = a table is not a number; write for example 1_000_000 or \"1M\""),
        (
            "[announce]\nnum-want = 201",
            "tracker.toml:2:12: announce.num-want = 201 is out of range; write 1 to 200"
        ),
        (
            "[announce]\ninterval = 0",
            "tracker.toml:2:12: announce.interval = 0 is out of range; write 1s to 1d"
        ),
        (
            "[announce]\ninterval = 1979-05-27",
            "tracker.toml:2:12: announce.interval = 1979-05-27 is not a duration; write for example \"30m\" or 1800"
        ),
        (
            "[limits]\npeers = 0",
            "tracker.toml:2:9: limits.peers = 0 is out of range; write 1 to 1_000_000_000"
        ),
        (
            "[limits]\ntorrent-file-bytes = \"30M\"\ntorrent-total-bytes = \"20M\"",
            "tracker.toml:3:23: limits.torrent-file-bytes (30_000_000) is more than limits.torrent-total-bytes "
                + "(20_000_000), so no such file would fit; write at most 20_000_000, or more for all"
        ),
        (
            "[limits]\ntorrent-file-bytes = 33_554_433",
            "tracker.toml:2:22: limits.torrent-file-bytes = 33554433 is out of range; write 1 to 33_554_432"
        ),
        (
            "[limits]\nuploads = 65", "tracker.toml:2:11: limits.uploads = 65 is out of range; write 1 to 64"
        ),
        (
            "[storage]\nkeep-swarms = \"perhaps\"",
            "tracker.toml:2:15: storage.keep-swarms = \"perhaps\" is neither true nor false"
        ),
        (
            "[storage]\ndurability = \"disc\"",
            "tracker.toml:2:14: storage.durability = \"disc\" is not known; write \"disk\" or \"process\"; "
                + "did you mean \"disk\"?"
        ),
        (
            "[access]\nmode = \"Private\"",
            "tracker.toml:2:8: access.mode = \"Private\" is not known; "
                + "write \"open\", \"allow\", \"deny\" or \"private\"; did you mean \"private\"?"
        ),
        ("[storage]\ndirectory = 5", "tracker.toml:2:13: storage.directory = 5 is not a path; write it in quotes"),
        ("[storage]\ndirectory = \"\"", "tracker.toml:2:13: storage.directory = \"\" is empty; write a path"),
        // Addresses, each with its own place in a list.
        (
            "[listen]\nudp = [\n  \"0.0.0.0:6969\", # fine\n  \"localhost:6969\",\n]",
            "tracker.toml:4:3: \"localhost:6969\" in listen.udp is not an IP address with a port; "
                + "write for example \"0.0.0.0:6969\" or \"[::]:6969\""
        ),
        (
            "listen.http = [\"192.0.2.1\"]",
            "tracker.toml:1:16: \"192.0.2.1\" in listen.http has no port; write for example \"192.0.2.1:6969\""
        ),
        (
            "listen.http = \"::1\"",
            "tracker.toml:1:15: \"::1\" in listen.http has no port; write for example \"[::1]:6969\""
        ),
        (
            "announce.trusted = [\"10.0.0.0/33\"]",
            "tracker.toml:1:21: \"10.0.0.0/33\" in announce.trusted is not a block of addresses; "
                + "write for example \"192.0.2.0/24\" or \"2001:db8::1\""
        ),
        // What must hold between settings.
        (
            "[announce]\ninterval = \"10m\"\nmin-interval = \"15m\"",
            "tracker.toml:3:16: announce.min-interval (15m) is longer than announce.interval (10m); "
                + "write at most 10m, or leave it out for half of that"
        ),
        (
            "[announce]\ninterval = \"10m\"\ninterval-jitter = \"10m\"",
            "tracker.toml:3:19: announce.interval-jitter (10m) is not shorter than announce.interval (10m); "
                + "leave it out for a thirtieth of that"
        ),
        (
            "[announce]\nnum-want = 100\nmax-num-want = 80",
            "tracker.toml:3:16: announce.num-want (100) is more than announce.max-num-want (80); write at most 80"
        ),
        (
            "listen.udp = [\"[::]:6969\", \"127.0.0.1:6969\", \"[0::0]:6969\"]",
            "tracker.toml:1:14: listen.udp names [::]:6969 twice; write it once"
        ),
        (
            "listen.http = [\"127.0.0.1:6970\"]",
            "tracker.toml:1:15: console.listen and listen.http are both 127.0.0.1:6970; give the console another port"
        ),
        (
            "listen.udp = []",
            "tracker.toml:1:14: there is nothing to listen on: listen.udp and listen.http are both empty; "
                + "give at least one address"
        ),
        (
            "console.certificate-file = \"console.crt\"",
            "tracker.toml:1:28: console.certificate-file needs the private key, too: give console.key-file"
        ),
        (
            "access.mode = \"allow\"",
            "tracker.toml:1:15: access.mode is \"allow\", but there is no list of what is allowed; "
                + "name it by access.list (--access-list)"
        ),
        (
            "access.mode = \"deny\"",
            "tracker.toml:1:15: access.mode is \"deny\", but there is no list of what is denied; "
                + "name it by access.list (--access-list)"
        ),
        (
            "access.list = \"l\"",
            "tracker.toml:1:15: access.list is given, but nothing says what the list is for; "
                + "set access.mode to \"allow\" or \"deny\" (or to \"open\", to leave it unused)"
        ),
        // What is not TOML.
        (
            "[announce\ninterval = 5",
            "tracker.toml:1:10: this is not TOML: the table's name should end with ], "
                + "not with the end of the line"
        ),
        ("[[[a]]]", "tracker.toml:1:3: this is not TOML: a key should stand here, not \"[\""),
        ("[announce] interval = 5", "tracker.toml:1:12: this is not TOML: \"i\" is left over at the end of the line"),
        ("id", "tracker.toml:1:3: this is not TOML: after a key comes \"=\", not the end of the file"),
        ("id =\n", "tracker.toml:1:5: this is not TOML: a value should stand here, not the end of the line"),
        ("id = 1 2", "tracker.toml:1:6: this is not TOML: \"1 2\" is no value; text goes in quotes"),
        ("access.mode = open", "tracker.toml:1:15: this is not TOML: \"open\" is no value; text goes in quotes"),
        ("id = 1\nid = 2", "tracker.toml:2:1: this is not TOML: the key \"id\" is there already"),
        ("id.x = 1\nid = 2", "tracker.toml:2:1: this is not TOML: the key \"id\" is there already"),
        ("[log]\n[log]", "tracker.toml:2:2: this is not TOML: the table \"log\" is there already"),
        ("log = {}\n[log.x]", "tracker.toml:2:2: this is not TOML: the key \"log\" is there already"),
        ("log = []\n[[log]]", "tracker.toml:2:3: this is not TOML: the key \"log\" is there already"),
        (
            "[log]\nlevel = 'info'\n[a]\n[log.level]",
            "tracker.toml:4:6: this is not TOML: the key \"level\" is there already"
        ),
        (
            "a = \"\\d\"",
            "tracker.toml:1:6: this is not TOML: no escape begins like this; "
                + "write \\\\ for a backslash, or put the text in '…'"
        ),
        ("a = \"\\ud800\"", "tracker.toml:1:6: this is not TOML: there is no such character"),
        ("# a\rid = 5", "tracker.toml:1:4: this is not TOML: a comment holds the control character \"\\u000d\""),
        (
            "log.level = \"info",
            "tracker.toml:1:13: this is not TOML: the string that begins here is not closed "
                + "on its line"
        ),
        (
            "log.level = \"\"\"\ninfo\n\"\"",
            "tracker.toml:1:13: this is not TOML: the string that begins here is not closed"
        ),
        (
            "listen = {\nudp = []}",
            "tracker.toml:1:10: this is not TOML: the table that begins here is not closed "
                + "with } on its line"
        ),
        (
            "listen.udp = [\n\"a\" \"b\"]",
            "tracker.toml:2:5: this is not TOML: between the elements of a list "
                + "stands a comma, not \"\\\"\""
        ),
        ("listen.udp = [\n# ]", "tracker.toml:1:14: this is not TOML: the list that begins here is not closed with ]"),
        ("a.\"\"\"b\"\"\" = 1", "tracker.toml:1:3: this is not TOML: a key is a string on one line"),
        ("id = 1\n\0", "tracker.toml:2:1: this is not TOML: a key should stand here, not \"\\u0000\""),
    ]

    @Test(arguments: files)
    func `a file that is wrong is refused with place, fault and remedy`(text: String, message: String) {
        #expect(Self.problems(text) == message)
    }

    @Test
    func `depth and number of problems are bounded`() {
        #expect(
            Self.problems("id = \(String(repeating: "[", count: 100_000))")
                == "tracker.toml:1:70: this is not TOML: values are nested too deeply")
        #expect(
            Self.problems(String(repeating: "a.", count: 100) + "a = 1")
                == "tracker.toml:1:129: this is not TOML: the key has too many parts")
        let tables = (0..<20_000).map { "[[a]]\nc\($0) = 1" }.joined(separator: "\n")
        #expect(Self.problems(tables) == "tracker.toml:1:3: unknown key \"a\" at the top of the file; known are id")
        let other = Self.problems((0..<1000).map { "name\($0) = 1" }.joined(separator: "\n")).split(separator: "\n")
        #expect(other.count == 101)
        #expect(other.last == "and 900 more problems")
    }

    @Test
    func `all problems of a file are told at once, in the order of its lines, then those of other sources`() {
        let text = """
            # A file with several faults.
            id = -1
            [announce]
            interval = "soon"
            intervall = 5

            [listen]
            udp = ["a", "0.0.0.0:1"]
            """
        let environment = ConfigurationTests.home.merging([
            "SWARMKEEPER_LIMITS_PEERS": "many", "SWARMKEEPER_LOG_LEVL": "info",
        ]) { $1 }
        #expect(
            Self.problems(text, environment: environment, flags: [.logFormat: ["xml"]]) == """
                tracker.toml:2:6: id = -1 is out of range; write 0 to 4_294_967_295
                tracker.toml:4:12: announce.interval = "soon" is not a duration; write for example "30m" or 1800
                tracker.toml:5:1: unknown key "intervall" in [announce]; did you mean "interval"?
                tracker.toml:8:8: "a" in listen.udp is not an IP address with a port; \
                write for example "0.0.0.0:6969" or "[::]:6969"
                SWARMKEEPER_LIMITS_PEERS = "many" is not a number; write for example 1_000_000 or "1M"
                unknown environment variable SWARMKEEPER_LOG_LEVL; did you mean SWARMKEEPER_LOG_LEVEL?
                --log-format "xml" is not known; write "text" or "json"
                """)
    }

    @Test
    func `a fault between two sources is told of the one that was given last`() {
        let text = "[announce]\nmin-interval = \"10m\""
        #expect(
            Self.problems(text, flags: [.interval: ["5m"]])
                == "announce.min-interval (10m) is longer than --interval (5m); "
                + "write at most 5m, or leave it out for half of that")
    }

    @Test
    func `variables that Kubernetes sets beside a service called swarmkeeper are let be`() {
        let names = ["PORT", "PORT_6969_UDP", "PORT_6969_UDP_ADDR", "SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_UDP"]
        for name in names {
            let environment = ConfigurationTests.home.merging(["SWARMKEEPER_\(name)": "x"]) { $1 }
            #expect(Self.problems(environment: environment) == "")
        }
    }

    @Test
    func `without any place for the record, the way out is named`() {
        #expect(
            Self.problems(environment: [:])
                == "there is no place for the tracker's record: neither STATE_DIRECTORY nor XDG_STATE_HOME nor HOME "
                + "is set; give one with --data DIR")
        #expect(Self.problems(environment: [:], flags: [.dataDirectory: ["d"]]) == "")
    }
}
