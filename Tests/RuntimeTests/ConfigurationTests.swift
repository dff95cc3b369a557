import Bus
import Foundation
import Primitives
import Settings
import Storage
import Testing
import TrackerLogic

/// The configuration as operators meet it: what each source may say, and what they are told when it is wrong.
@Suite("Configuration")
struct ConfigurationTests {
    /// The least that a configuration needs from its environment.
    static let home = ["HOME": "/home/op"]

    /// The defaults as `load` makes them.
    static var defaults: ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.dataDirectory = "/home/op/.local/state/swarmkeeper"
        return configuration
    }

    static func load(
        _ text: String = "", environment: [String: String] = home, flags: [SettingKey: [String]] = [:]
    ) throws -> ServerConfiguration {
        try ServerConfiguration.load(text: text, name: "tracker.toml", environment: environment, flags: flags)
    }

    /// What is wrong, a line each; empty where nothing is.
    static func problems(
        _ text: String = "", environment: [String: String] = home, flags: [SettingKey: [String]] = [:]
    ) -> String {
        do throws(ConfigurationError) {
            _ = try ServerConfiguration.load(
                text: text, name: "tracker.toml", environment: environment, flags: flags)
            return ""
        } catch {
            return error.description
        }
    }

    // MARK: Defaults and documentation

    @Test
    func `nothing given: UDP on port 6969 of both families, the console on loopback, any info hash`() throws {
        let configuration = try Self.load()
        #expect(configuration == Self.defaults)
        #expect(configuration.udp.map(\.description) == ["0.0.0.0:6969", "[::]:6969"])
        #expect(configuration.http.isEmpty)
        #expect(configuration.console?.description == "127.0.0.1:6970")
        #expect(configuration.accessMode == .open)
        #expect(configuration.durability == .disk)
        #expect(configuration.node == NodeConfiguration())
        #expect(try configuration.accessRules() == AccessRules())
        #expect(try configuration.consoleToken() == nil)
    }

    @Test
    func `the example file gives the defaults`() throws {
        #expect(try Self.load(Setting.exampleFile()) == Self.defaults)
    }

    @Test
    func `the lines that the example file has commented out are settings too`() throws {
        let setting = /# ([a-z-]+ = .*)/
        let text = Setting.exampleFile().split(separator: "\n", omittingEmptySubsequences: false).map { line in
            line.wholeMatch(of: setting).map { String($0.output.1) } ?? String(line)
        }.joined(separator: "\n")
        // The list and the users want a mode; all else is fine as it stands.
        let problems = Self.problems(text).split(separator: "\n")
        #expect(problems.isEmpty)
        #expect(try Self.load(text).torrentsDirectory == "torrents")
        #expect(try Self.load(text).dataDirectory == "/var/lib/swarmkeeper")
    }

    @Test(
        arguments: ["examples/tracker.toml", "docs/configuration.md"])
    func `documents derived from the table are up to date (REWRITE=1 writes them anew)`(path: String) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = path.hasSuffix(".md") ? Setting.markdown() : Setting.exampleFile()
        let file = root.appending(path: path)
        if ProcessInfo.processInfo.environment["REWRITE"] == "1" {
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == text)
    }

    @Test
    func `every setting has a key, a flag and a variable of its own`() {
        #expect(Setting.all.map(\.key) == SettingKey.allCases)
        #expect(Set(Setting.all.map(\.flag)).count == Setting.all.count)
        #expect(Set(SettingKey.allCases.map(\.environmentName)).count == SettingKey.allCases.count)
        #expect(SettingKey.minInterval.environmentName == "SWARMKEEPER_ANNOUNCE_MIN_INTERVAL")
        #expect(!SettingKey.allCases.map(\.environmentName).contains(SettingKey.configurationFileVariable))
        for setting in Setting.all {
            #expect(setting.summary.hasSuffix("."))
        }
    }

    // MARK: Values

    /// Each setting once with a value that is not the default, as TOML and as text, and what shows that it arrived.
    static let changes: [(SettingKey, toml: String, text: String, arrived: @Sendable (ServerConfiguration) -> Bool)] = [
        (.id, "7", "7", { $0.node.id == 7 }),
        (
            .bus, "\"stomp://u:p@b:1\"", "stomp://u:p@b:1",
            { $0.cluster.bus?.description == "stomp://b:1" && $0.node.id == 0 && $0.node.cluster.hasBus }
        ),
        (.clusterKeyFile, "\"/k\"", "/k", { $0.cluster.keyFile == "/k" }),
        (.clusterName, "\"c-1\"", "c-1", { $0.cluster.name == "c-1" }),
        (
            .profile, "\"rotating\"", "rotating",
            { $0.node.cluster == ClusterProfile.rotating.configuration(members: []) }
        ),
        (.members, "[3, 1]", "3,1", { $0.node.cluster.members == [1, 3] && $0.node.cluster.mode == .quorum }),
        (.spare, "true", "true", { $0.cluster.isSpare }),
        (.mode, "\"quorum\"", "quorum", { $0.node.cluster.mode == .quorum }),
        (.election, "\"next\"", "next", { $0.node.cluster.election == .next }),
        (.vote, "\"all\"", "all", { $0.node.cluster.vote == .allDropped(after: .seconds(5)) }),
        (
            .votePatience, "\"700ms\"", "700ms",
            { $0.node.cluster.vote == .allAskedAgain(every: .milliseconds(700)) }
        ),
        (.keepalive, "2", "2", { $0.node.cluster.keepalive == .seconds(2) }),
        (.missed, "3", "3", { $0.node.cluster.missed == 3 }),
        (.entry, "\"group\"", "group", { $0.node.cluster.entry == .group }),
        (
            .group, "[\"239.1.2.3:80\", \"[ff15::1]:80\"]", "239.1.2.3:80,[ff15::1]:80",
            { $0.cluster.groups.count == 2 && $0.node.cluster.entry == .group }
        ),
        (.interface, "\"eth0\"", "eth0", { $0.cluster.interface == "eth0" }),
        (.onMaster, "\"up\"", "up", { $0.cluster.hooks.onMaster == "up" }),
        (.onSlave, "\"down\"", "down", { $0.cluster.hooks.onSlave == "down" }),
        (.advertise, "\"udp://t:1/announce\"", "udp://t:1/announce", { $0.cluster.hooks.advertised != nil }),
        (.udp, "[\"192.0.2.1:80\"]", "192.0.2.1:80", { $0.udp == [SocketAddress(ipv4: 0xC000_0201, port: 80)] }),
        (.http, "[\"[::1]:8080\"]", "[::1]:8080", { $0.http.map(\.description) == ["[::1]:8080"] }),
        (.console, "\"none\"", "none", { $0.console == nil }),
        (.consoleURL, "\"https://t/\"", "https://t/", { $0.consoleURL == "https://t/" }),
        (.consoleCertificateFile, "\"/c\"", "/c", { $0.consoleCertificateFile == "/c" }),
        (.consoleKeyFile, "\"/k\"", "/k", { $0.consoleKeyFile == "/k" }),
        (.consoleTokenFile, "\"/t\"", "/t", { $0.consoleTokenFile == "/t" }),
        (.accountsFile, "\"/a\"", "/a", { $0.accountsFile == "/a" }),
        (.simulatorFile, "\"/w\"", "/w", { $0.simulatorFile == "/w" }),
        (.dataDirectory, "\"/d\"", "/d", { $0.dataDirectory == "/d" }),
        (.durability, "\"process\"", "process", { $0.durability == .process }),
        (.keepSwarms, "true", "true", { $0.node.keepsSwarms }),
        (.recording, "\"none\"", "none", { $0.recording == .none }),
        (.interval, "\"1h30m\"", "1h30m", { $0.node.interval == 5400 && $0.node.minInterval == 2700 }),
        (.minInterval, "90", "90", { $0.node.minInterval == 90 }),
        (.intervalJitter, "\"0s\"", "0s", { $0.node.intervalJitter == 0 }),
        (.targetRate, "\"2M\"", "2M", { $0.node.targetRate == 2_000_000 }),
        (.peerLifetime, "150", "150", { $0.node.peerLifetime == 150 }),
        (.numWant, "30", "30", { $0.node.numWant == 30 }),
        (.maxNumWant, "40", "40", { $0.node.maxNumWant == 40 && $0.node.numWant == 40 }),
        (
            .trusted, "[\"10.0.0.0/8\", \"::1\"]", "10.0.0.0/8,::1",
            { $0.node.trusted == [AddressPrefix("10.0.0.0/8"), AddressPrefix("::1")] }
        ),
        (.accessMode, "\"open\"", "open", { $0.accessMode == .open }),
        (.accessList, "\"/l\"", "/l", { $0.accessListFile == "/l" }),
        (.users, "\"/u\"", "/u", { $0.usersFile == "/u" }),
        (.torrentsDirectory, "\"/s\"", "/s", { $0.torrentsDirectory == "/s" }),
        (.limitTorrents, "1_000", "1_000", { $0.node.limits.torrents == 1000 }),
        (.limitPeers, "\"5k\"", "5k", { $0.node.limits.peers == 5000 }),
        (.limitPeersPerAddress, "40", "40", { $0.node.limits.peersPerAddress == 40 }),
        (.limitAddressShare, "3", "3", { $0.node.limits.addressSharePercent == 3 }),
        (.limitErrors, "3", "3", { $0.node.limits.errorsPerSecond == 3 }),
        (.limitUpdates, "5", "5", { $0.node.limits.updatesPerEntry == 5 }),
        (.limitRegistered, "6", "6", { $0.node.limits.registeredTorrents == 6 }),
        (.limitListed, "7", "7", { $0.node.limits.listedInfoHashes == 7 }),
        (.limitUsers, "8", "8", { $0.node.limits.users == 8 }),
        (.limitTorrentFiles, "\"9k\"", "9k", { $0.node.limits.torrentFiles == 9000 }),
        (.limitTorrentFileBytes, "70_000", "70_000", { $0.node.limits.torrentFileByteCount == 70_000 }),
        (.limitTorrentTotalBytes, "\"1G\"", "1G", { $0.node.limits.torrentFilesByteCount == 1_000_000_000 }),
        (.limitUploads, "64", "64", { $0.node.limits.uploads == 64 }),
        (.uploadPatience, "\"2m\"", "2m", { $0.node.uploadPatience == 120 }),
        (.logLevel, "\"debug\"", "debug", { "\($0.logLevel)" == "debug" }),
        (.logFormat, "\"json\"", "json", { $0.logFormat == .json }),
    ]

    /// What a setting of a cluster cannot be without.
    private static let bus: [SettingKey: [String]] = [.bus: ["embedded"], .clusterKeyFile: ["/k"]]
    private static func inCluster(_ more: [SettingKey: [String]] = [:]) -> [SettingKey: [String]] {
        bus.merging(more) { $1 }
    }
    private static let company: [SettingKey: [SettingKey: [String]]] = [
        .accessList: [.accessMode: ["open"]], .users: [.accessMode: ["open"]], .bus: [.clusterKeyFile: ["/k"]],
        .clusterKeyFile: [.bus: ["embedded"]], .profile: inCluster(), .members: inCluster([.id: ["3"]]),
        .spare: inCluster([.members: ["1,2"], .id: ["3"]]), .mode: inCluster([.members: ["1"], .id: ["1"]]),
        .election: inCluster(), .vote: inCluster(), .votePatience: inCluster([.profile: ["lowest"]]),
        .keepalive: inCluster(), .missed: inCluster(), .entry: inCluster([.group: ["239.1.2.3:80"]]),
        .consoleCertificateFile: [.consoleKeyFile: ["/k"]], .consoleKeyFile: [.consoleCertificateFile: ["/c"]],
        .group: inCluster(), .interface: inCluster([.group: ["239.1.2.3:80"]]),
    ]

    @Test
    func `every setting arrives from file, environment and flag alike`() throws {
        #expect(Self.changes.map(\.0) == SettingKey.allCases)
        for (key, toml, text, arrived) in Self.changes {
            // What means nothing alone would be a trap, and what it goes with comes along.
            let mode = Self.company[key] ?? [:]
            let file = try Self.load("\(key.path) = \(toml)", flags: mode)
            #expect(arrived(file), "\(key.path) in the file")
            let variable = Self.home.merging([key.environmentName: text]) { $1 }
            #expect(arrived(try Self.load(environment: variable, flags: mode)), "\(key.environmentName)")
            let flag = try Self.load(flags: mode.merging([key: [text]]) { $1 })
            #expect(arrived(flag), "--\(Setting.of(key).flag)")
            #expect(flag == file, "\(key.path)")
        }
    }

    @Test
    func `flags go before the environment, the environment before the file, lists as a whole`() throws {
        let text = "announce.interval = \"10m\"\nlisten.udp = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\nid = 2"
        let environment = Self.home.merging([
            "SWARMKEEPER_ANNOUNCE_INTERVAL": "20m", "SWARMKEEPER_LISTEN_UDP": "127.0.0.1:3, 127.0.0.1:4",
        ]) { $1 }
        let both = try Self.load(text, environment: environment)
        #expect(both.node.interval == 1200)
        #expect(both.udp.map(\.port) == [3, 4])
        #expect(both.node.id == 2)
        let all = try Self.load(
            text, environment: environment, flags: [.interval: ["30s"], .udp: ["127.0.0.1:5", "127.0.0.1:6"]])
        #expect(all.node.interval == 30)
        #expect(all.udp.map(\.port) == [5, 6])
        #expect(try Self.load(text, environment: environment, flags: [.udp: ["none"], .http: ["[::]:1"]]).udp.isEmpty)
    }

    @Test(
        arguments: [
            ("\"90s\"", 90), ("\"30m\"", 1800), ("\"1h30m\"", 5400), ("\"1d\"", 86_400), ("\"2h0m1s\"", 7201),
            ("1800", 1800), ("\"1800\"", 1800), ("1_800", 1800),
        ] as [(String, UInt32)])
    func `durations`(text: String, seconds: UInt32) throws {
        #expect(try Self.load("announce.interval = \(text)").node.interval == seconds)
    }

    @Test(
        arguments: ["soon", "", "1.5h", "m", "30m1h", "1m1m", "1h 30m", "-5s", "1w", "_1s", "99999999999999999999s"])
    func `what is no duration is shown with what would be`(text: String) {
        #expect(
            Self.problems("[announce]\n\n  interval = \"\(text)\"")
                == "tracker.toml:3:14: announce.interval = \"\(text)\" is not a duration; "
                + "write for example \"30m\" or 1800")
    }

    @Test(arguments: [("4_000_000", 4_000_000), ("\"4M\"", 4_000_000), ("\"1G\"", 1_000_000_000)])
    func `numbers of things`(text: String, number: Int) throws {
        #expect(try Self.load("limits.peers = \(text)").node.limits.peers == number)
    }

    @Test(
        arguments: [
            (["STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "XDG_STATE_HOME": "/x", "HOME": "/h"], "/var/lib/a"),
            (["XDG_STATE_HOME": "/x", "HOME": "/h"], "/x/swarmkeeper"),
            (["XDG_STATE_HOME": "relative", "HOME": "/h"], "/h/.local/state/swarmkeeper"),
            (["HOME": "/h/"], "/h/.local/state/swarmkeeper"),
            (["HOME": "/h", "SWARMKEEPER_STORAGE_DIRECTORY": "data"], "data"),
            (["HOME": "/h", "SWARMKEEPER_STORAGE_DIRECTORY": "~/data"], "/h/data"),
        ])
    func `where the record goes: flag, else systemd's directory, else XDG's, else the home directory`(
        environment: [String: String], directory: String
    ) throws {
        #expect(try Self.load(environment: environment).dataDirectory == directory)
    }

    @Test
    func `relative paths of the file start at its directory, those of flags do not`() throws {
        let text =
            "storage.directory = \"data\"\ntorrents.directory = \"/srv/t\"\naccess.mode = \"allow\"\n"
            + "access.list = \"ok.txt\""
        let configuration = try ServerConfiguration.load(
            text: text, name: "/etc/swarmkeeper/tracker.toml", environment: [:], flags: [.accessList: ["b.txt"]])
        #expect(configuration.dataDirectory == "/etc/swarmkeeper/data")
        #expect(configuration.torrentsDirectory == "/srv/t")
        #expect(configuration.accessListFile == "b.txt")
    }

    @Test
    func `defaults that follow from others: half the interval, a thirtieth of it, no more than the maximum`()
        throws
    {
        let node = try Self.load(flags: [.interval: ["60"], .maxNumWant: ["20"]]).node
        #expect(node.minInterval == 30)
        #expect(node.intervalJitter == 2)
        #expect(node.numWant == 20)
        #expect(try Self.load(flags: [.limitTorrentTotalBytes: ["5M"]]).node.limits.torrentFileByteCount == 5_000_000)
    }
}
