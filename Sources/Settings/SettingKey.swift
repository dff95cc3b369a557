// The names of the settings.

/// The names of the settings: their paths in the file, from which the environment's names follow.
///
/// An enum, so that a switch over all of them does not compile while it lacks one.
public enum SettingKey: String, Sendable, Hashable, CaseIterable {
    case id = "id"
    case bus = "cluster.bus"
    case clusterKeyFile = "cluster.key-file"
    case clusterName = "cluster.name"
    case profile = "cluster.profile"
    case members = "cluster.members"
    case spare = "cluster.spare"
    case mode = "cluster.mode"
    case election = "cluster.election"
    case vote = "cluster.vote"
    case votePatience = "cluster.vote-patience"
    case keepalive = "cluster.keepalive"
    case missed = "cluster.missed"
    case entry = "cluster.entry"
    case group = "cluster.group"
    case interface = "cluster.interface"
    case onMaster = "cluster.on-master"
    case onSlave = "cluster.on-slave"
    case advertise = "cluster.advertise"
    case udp = "listen.udp"
    case http = "listen.http"
    case console = "console.listen"
    case consoleURL = "console.url"
    case consoleCertificateFile = "console.certificate-file"
    case consoleKeyFile = "console.key-file"
    case consoleTokenFile = "console.token-file"
    case accountsFile = "console.accounts-file"
    case simulatorFile = "console.simulator-file"
    case dataDirectory = "storage.directory"
    case durability = "storage.durability"
    case keepSwarms = "storage.keep-swarms"
    case recording = "storage.recording"
    case interval = "announce.interval"
    case minInterval = "announce.min-interval"
    case intervalJitter = "announce.interval-jitter"
    case targetRate = "announce.target-rate"
    case peerLifetime = "announce.peer-lifetime"
    case numWant = "announce.num-want"
    case maxNumWant = "announce.max-num-want"
    case trusted = "announce.trusted"
    case accessMode = "access.mode"
    case accessList = "access.list"
    case users = "access.users"
    case torrentsDirectory = "torrents.directory"
    case limitTorrents = "limits.torrents"
    case limitPeers = "limits.peers"
    case limitPeersPerAddress = "limits.peers-per-address"
    case limitAddressShare = "limits.address-share"
    case limitErrors = "limits.errors-per-second"
    case limitUpdates = "limits.updates-per-entry"
    case limitRegistered = "limits.registered-torrents"
    case limitListed = "limits.listed-info-hashes"
    case limitUsers = "limits.users"
    case limitTorrentFiles = "limits.torrent-files"
    case limitTorrentFileBytes = "limits.torrent-file-bytes"
    case limitTorrentTotalBytes = "limits.torrent-total-bytes"
    case limitUploads = "limits.uploads"
    case uploadPatience = "limits.upload-patience"
    case logLevel = "log.level"
    case logFormat = "log.format"

    /// What the console changes while the tracker is stopped: under which number it acts, and where clients reach it.
    ///
    /// The way to the other trackers is not among them: another bus is another cluster, and wants its key. What the
    /// process itself needs, as its console and its data directory, stays as it is until the process ends.
    public static let changeable: [SettingKey] = [.id, .entry, .group, .interface, .advertise, .udp, .http]

    /// The prefix of all environment variables that are ours.
    public static let environmentPrefix = "SWARMKEEPER_"
    /// The environment variable that names the file.
    public static let configurationFileVariable = "SWARMKEEPER_CONFIG"

    /// The key with its section, as messages name it: `announce.min-interval`.
    public var path: String { rawValue }

    /// `SWARMKEEPER_ANNOUNCE_MIN_INTERVAL`.
    public var environmentName: String {
        Self.environmentPrefix + rawValue.uppercased().replacing(".", with: "_").replacing("-", with: "_")
    }

    /// The table of the file that it stands in: `announce`; empty for the top.
    public var section: String {
        rawValue.split(separator: ".").count == 2 ? String(rawValue.split(separator: ".")[0]) : ""
    }

    /// Its name within the section: `min-interval`.
    public var name: String { String(rawValue.split(separator: ".").last ?? "") }

    /// The sections in the order in which documentation shows them.
    public static let sections: [String] = allCases.reduce(into: []) { sections, key in
        if !sections.contains(key.section) { sections.append(key.section) }
    }
}
