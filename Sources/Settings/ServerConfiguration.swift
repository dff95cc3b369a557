// Everything that `tracker serve` needs to know before it opens its first socket.

import Logging
import Primitives
import Storage
import TrackerLogic

/// Everything that `tracker serve` needs to know before it opens its first socket.
///
/// Built by `ServerConfiguration.load` from, in rising order: these defaults, a TOML file, what the
/// console has kept, the environment, flags, what the console of this process has been told.
/// Every property but those of `node` that are no setting has one line in `Setting.all`, from which the file's keys,
/// the environment's names, the flags and the documentation are derived.
public struct ServerConfiguration: Sendable, Equatable {
    /// What the logic is told.
    public var node = NodeConfiguration()
    /// How it acts with others; `load` tells the logic what follows from it (`node.cluster`).
    public var cluster = ClusterSettings()
    /// Where UDP announces are heard (BEP 15).
    public var udp = [
        SocketAddress(ipv4: 0, port: 6969),
        SocketAddress(high: 0, low: 0, port: 6969),
    ]
    /// Where HTTP announces are heard (BEP 3).
    public var http: [SocketAddress] = []
    /// Where the console and its JSON API are served; nil for nowhere.
    public var console: SocketAddress? = SocketAddress(ipv4: 0x7F00_0001, port: 6970)
    /// Where a browser reaches the console; nil for the address at which it listens.
    public var consoleURL: String?
    /// The console's certificate chain; nil for no TLS.
    public var consoleCertificateFile: String?
    /// The private key of that certificate.
    public var consoleKeyFile: String?
    /// A file with the bearer token of the console; needed wherever the console is not on loopback.
    public var consoleTokenFile: String?
    /// Accounts of the console, read at the start and on SIGHUP.
    public var accountsFile: String?
    /// The simulator that its page runs; nil for the one that is found beside the program.
    public var simulatorFile: String?
    /// Where the record is kept; empty only in a value that `load` did not make.
    public var dataDirectory = ""
    /// What a write survives that was answered.
    public var durability = Durability.disk
    /// Whether what goes into the tracker's steps is recorded.
    public var recording = RecordingChoice.ring
    /// Whether to go on with what is left of a record that is damaged; for one start.
    public var acceptsLoss = false
    /// Who may announce what; the rules themselves are read by `accessRules()`.
    public var accessMode = AccessMode.open
    /// The list of info hashes of `allow` and `deny`.
    public var accessListFile: String?
    /// The users of `private`.
    public var usersFile: String?
    /// A directory whose .torrent files are registered at the start and on SIGHUP.
    public var torrentsDirectory: String?
    /// Less urgent lines are left out.
    public var logLevel = Logger.Level.info
    /// How a line of the log looks.
    public var logFormat = LogFormat.text

    /// Where each setting that is not a default was given last.
    public var origins = SettingOrigins()
    /// What the console has kept for each start.
    public var kept = KeptValues()

    /// The defaults.
    public init() {}
}

/// Where settings were given; no part of what a configuration is, so that all are alike.
public struct SettingOrigins: Sendable, Equatable {
    private var origins: [SettingKey: SettingOrigin] = [:]

    /// All are defaults.
    public init() {}

    /// Where a setting was given last; nil for a default.
    public subscript(key: SettingKey) -> SettingOrigin? {
        get { origins[key] }
        set { origins[key] = newValue }
    }

    /// Always: the same values are the same configuration, wherever they were given.
    public static func == (left: Self, right: Self) -> Bool { true }
}

/// Where a setting was given.
public enum SettingOrigin: Sendable, Hashable {
    case file
    /// The console, now or for this start.
    case console
    case environment
    case flag
}

/// How a line of the log looks.
public enum LogFormat: String, Sendable, Hashable, CaseIterable {
    /// For people.
    case text
    /// One JSON object a line.
    case json
}

extension ServerConfiguration {
    /// The data directory where nobody names one: `$STATE_DIRECTORY` (systemd's `StateDirectory=`; the first, where
    /// there are several), else `$XDG_STATE_HOME/swarmkeeper`, else `~/.local/state/swarmkeeper`.
    ///
    /// - Returns: nil where the environment has none of the three.
    public static func defaultDataDirectory(environment: [String: String]) -> String? {
        if let first = environment["STATE_DIRECTORY"]?.split(separator: ":").first { return String(first) }
        // The XDG specification: "All paths set in these environment variables must be absolute"; others are ignored.
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
            return joinedPath(state, "swarmkeeper")
        }
        if let home = environment["HOME"], home.hasPrefix("/") {
            return joinedPath(home, ".local/state/swarmkeeper")
        }
        return nil
    }
}

/// A path as seen from a directory: absolute ones stay.
func joinedPath(_ directory: String, _ path: String) -> String {
    if directory.isEmpty || path.hasPrefix("/") { return path }
    return directory.hasSuffix("/") ? directory + path : directory + "/" + path
}

/// What is kept of what has gone into the tracker's steps.
public enum RecordingChoice: String, Sendable, Hashable, CaseIterable {
    /// The last of it, in a ring of bytes.
    case ring
    case none
}
