// The one table of settings.

import Logging
import Storage
import TrackerLogic
import Wire

/// The one table of settings.
///
/// A line here is a key of the file, an environment variable, a flag of `tracker serve`, and a paragraph of the
/// documentation.
extension Setting {
    /// All settings, in the order of `SettingKey`.
    public static let all: [Setting] = {
        let all = identity + clustering + listening + storing + announcing + admitting + limiting + logging
        precondition(all.map(\.key) == SettingKey.allCases, "the table of settings lacks a key, or has one twice")
        return all
    }()

    /// The setting of a key.
    public static func of(_ key: SettingKey) -> Setting {
        guard let setting = all.first(where: { $0.key == key }) else {
            preconditionFailure("the table of settings has no line for \(key.path)")
        }
        return setting
    }

    private static let identity = [
        Setting(
            .id, flag: "id", .count(\.node.id, 0...Int(UInt32.max)),
            "This tracker's number, unlike that of any other active one.",
            note: "0 leaves it to the cluster's master, as does none where there is a bus and no members.")
    ]

    private static let listening = [
        Setting(
            .udp, flag: "udp", .addresses(\.udp), "Where to hear UDP announces.",
            note: "Port 0 lets the system choose; \"none\" switches UDP off."),
        Setting(
            .http, flag: "http", .addresses(\.http), "Where to hear HTTP announces, at /announce and /scrape."),
        Setting(
            .console, flag: "console", .optionalAddress(\.console),
            "Where to serve the console, its JSON API and the metrics.",
            note: "\"none\" switches it off. Anything but loopback needs accounts or a token file."),
        Setting(
            .consoleURL, flag: "console-url", .pageURL(\.consoleURL),
            "Where a browser reaches this console, for the pages of the other trackers' consoles.",
            note: "Needed where that is not the address at which it listens: behind a proxy, or on another host.",
            example: "\"https://tracker-1.example/\"", defaultNote: "the address at which it listens"),
        Setting(
            .consoleCertificateFile, flag: "console-certificate-file", .optionalPath(\.consoleCertificateFile, "FILE"),
            "File with the console's certificate chain, in PEM: then it is served over TLS.",
            example: "\"console.crt\"", defaultNote: "no TLS"),
        Setting(
            .consoleKeyFile, flag: "console-key-file", .optionalPath(\.consoleKeyFile, "FILE"),
            "File with the private key of that certificate, in PEM.",
            example: "\"console.key\"", defaultNote: "no TLS"),
        Setting(
            .consoleTokenFile, flag: "console-token-file", .optionalPath(\.consoleTokenFile, "FILE"),
            "File with the bearer token that the console asks for.",
            note: "One line of at least 16 printable characters; for example from: openssl rand -hex 32.",
            example: "\"console.token\"", defaultNote: "no token"),
        Setting(
            .accountsFile, flag: "console-accounts-file", .optionalPath(\.accountsFile, "FILE"),
            "File with accounts of the console, beside those that are made there.",
            note: "A line each, as \"tracker user hash\" prints it; # starts a comment. Read again on SIGHUP; in a "
                + "cluster the master's file counts.",
            example: "\"accounts.txt\"", defaultNote: "no accounts"),
        Setting(
            .simulatorFile, flag: "simulator", .optionalPath(\.simulatorFile, "FILE"),
            "The module of WebAssembly that the page of the simulator runs.",
            note: "What make wasm makes, and its .gz beside it. Looked for beside the program, in ../share/swarmkeeper "
                + "from there, and in .build-wasm of the package in which the program was built.",
            example: "\"simulator.wasm\"", defaultNote: "the one that is found"),
    ]

    private static let storing = [
        Setting(
            .dataDirectory, flag: "data", .directory(\.dataDirectory), "Where the tracker keeps its record.",
            note: "Made where it is missing.",
            example: "\"/var/lib/swarmkeeper\"",
            defaultNote: "$STATE_DIRECTORY, else $XDG_STATE_HOME/swarmkeeper, else ~/.local/state/swarmkeeper"),
        Setting(
            .durability, flag: "durability", .choice(\.durability, "WHAT", of: names(Durability.self)),
            "What an answered update survives: \"disk\" a power cut, \"process\" a crash of the tracker."),
        Setting(
            .keepSwarms, flag: "keep-swarms", .boolean(\.node.keepsSwarms),
            "Keep the swarms over an orderly stop; a crash never loses them.",
            note: "In a cluster they go when all who elect its next master had stopped in good order, and none of "
                + "those was told to keep them."),
        Setting(
            .recording, flag: "recording", .choice(\.recording, "WHAT", of: names(RecordingChoice.self)),
            "What is kept of the last minutes, for \"tracker replay\": \"ring\" all that goes into this tracker's "
                + "steps, in 64 MiB beside its record; \"none\" nothing."),
    ]

    private static let announcing = [
        Setting(
            .interval, flag: "interval", .seconds(\.node.interval, 1...86_400),
            "How often clients are asked to announce; it stretches under load."),
        Setting(
            .minInterval, flag: "min-interval", .seconds(\.node.minInterval, 1...86_400),
            "How often they may at most.", example: "\"15m\"", defaultNote: "half the interval"),
        Setting(
            .intervalJitter, flag: "interval-jitter", .seconds(\.node.intervalJitter, 0...43_200),
            "By how much each client's interval is moved either way, so that they spread out.",
            example: "\"1m\"", defaultNote: "a thirtieth of the interval"),
        Setting(
            .targetRate, flag: "target-rate", .count(\.node.targetRate, 1...1_000_000_000),
            "Announces a second beyond which the interval stretches, up to four times."),
        Setting(
            .peerLifetime, flag: "peer-lifetime", .count(\.node.peerLifetime, 105...1000),
            "How long a silent peer is believed to be there, in per cent of the interval that it may have been told.",
            note: "The interval with its jitter, stretched as far as it may have been."),
        Setting(
            .numWant, flag: "num-want", .count(\.node.numWant, 1...200),
            "Peers in a reply to a client that names no number."),
        Setting(
            .maxNumWant, flag: "max-num-want", .count(\.node.maxNumWant, 1...200),
            "Peers in a reply at most."),
        Setting(
            .trusted, flag: "trusted", .prefixes(\.node.trusted),
            "Senders whose word on a peer's address is taken.",
            note: "Reverse proxies: BEP 15's ip field, HTTP's ip and X-Forwarded-For."),
    ]

    private static let admitting = [
        Setting(
            .accessMode, flag: "access",
            .choice(
                \.accessMode, "MODE",
                of: [("open", .open), ("allow", .allow), ("deny", .deny), ("private", .private)]),
            "Who may announce what.",
            note: "\"open\": any info hash; \"allow\": only those on the list; \"deny\": all but those on the list; "
                + "\"private\": any, but only with the passkey of a user or of an account, which a scrape over UDP has "
                + "no place for: it is refused."),
        Setting(
            .accessList, flag: "access-list", .optionalPath(\.accessListFile, "FILE"),
            "The list of \"allow\" and \"deny\".",
            note: "One info hash of 40 hexadecimal digits a line; # starts a comment. Read again on SIGHUP.",
            example: "\"infohashes.txt\"", defaultNote: "no list"),
        Setting(
            .users, flag: "users", .optionalPath(\.usersFile, "FILE"),
            "The users of \"private\", beside the accounts that have a passkey.",
            note: "NAME PASSKEY a line; # starts a comment. Read again on SIGHUP.",
            example: "\"users.txt\"", defaultNote: "no users"),
        Setting(
            .torrentsDirectory, flag: "torrents", .optionalPath(\.torrentsDirectory, "DIR"),
            "Directory whose .torrent files are registered, and kept whole by all trackers where they fit the limits.",
            note: "Read again on SIGHUP; what counts is the master's directory, and what is in it no more goes.",
            example: "\"torrents\"", defaultNote: "no directory"),
    ]

    private static let limiting = [
        Setting(
            .limitTorrents, flag: "limit-torrents", .count(\.node.limits.torrents, 1...1_000_000_000),
            "Torrents with peers or counts at once; about 110 bytes each."),
        Setting(
            .limitPeers, flag: "limit-peers", .count(\.node.limits.peers, 1...1_000_000_000),
            "Peers of all swarms at once; about 60 bytes each, and 15 for each address."),
        Setting(
            .limitPeersPerAddress, flag: "limit-peers-per-address",
            .count(\.node.limits.peersPerAddress, 1...1_000_000_000),
            "Peers of all swarms at one IPv4 address, or in one IPv6 network of 64 bits; further ones are refused.",
            note: "Trusted senders have no such limit: what counts is the address that they tell."),
        Setting(
            .limitAddressShare, flag: "limit-address-share", .count(\.node.limits.addressSharePercent, 1...100),
            "Of the room for peers that is left, the percent that one address may hold.",
            note: "So a table that fills up keeps room for newcomers; 16 of an address are let in while there is any."),
        Setting(
            .limitErrors, flag: "limit-errors", .count(\.node.limits.errorsPerSecond, 1...1_000_000),
            "Error replies to one address in a second; further errors are silence."),
        Setting(
            .limitUpdates, flag: "limit-updates", .count(\.node.limits.updatesPerEntry, 1...65_536),
            "Updates that are made durable in one go; about 64 bytes each. Further requests wait in the kernel."),
        Setting(
            .limitRegistered, flag: "limit-registered", .count(\.node.limits.registeredTorrents, 1...1_000_000_000),
            "Torrents in the registry."),
        Setting(
            .limitListed, flag: "limit-listed", .count(\.node.limits.listedInfoHashes, 1...1_000_000_000),
            "Info hashes on the access list."),
        Setting(
            .limitUsers, flag: "limit-users", .count(\.node.limits.users, 1...1_000_000_000),
            "Users of a private tracker."),
        Setting(
            .limitTorrentFiles, flag: "limit-torrent-files", .count(\.node.limits.torrentFiles, 1...1_000_000),
            "Torrent files that are kept whole; some 200 bytes each, beside their own.",
            note: mastersWord),
        Setting(
            .limitTorrentFileBytes, flag: "limit-torrent-file-bytes",
            .count(\.node.limits.torrentFileByteCount, 1...BencodeLimits.metainfo.byteCount),
            "Bytes of a torrent file that is kept whole, at most.",
            note: "Of a larger one in the directory of torrents, name and size are registered. " + mastersWord),
        Setting(
            .limitTorrentTotalBytes, flag: "limit-torrent-total-bytes",
            .count(\.node.limits.torrentFilesByteCount, 1...Int(64 << 30)),
            "Bytes of all torrent files that are kept whole: in the memory and on the disk of each tracker.",
            note: mastersWord),
        Setting(
            .limitUploads, flag: "limit-uploads", .count(\.node.limits.uploads, 1...TorrentFiles.Bounds.uploads),
            "Torrent files that may be on their way to the trackers at once.", note: mastersWord),
        Setting(
            .uploadPatience, flag: "limit-upload-patience", .seconds(\.node.uploadPatience, 10...3600),
            "How long a torrent file on its way may rest before its parts are forgotten.", note: mastersWord),
    ]

    /// Of the bounds that only the tracker that decides holds things against.
    private static let mastersWord = "What the master is told counts; the others take what it has decided."

    private static let logging = [
        Setting(
            .logLevel, flag: "log-level",
            .choice(\.logLevel, "LEVEL", of: Logger.Level.allCases.map { ($0.rawValue, $0) }),
            "The least of what is logged: trace, debug, info, notice, warning, error or critical."),
        Setting(
            .logFormat, flag: "log-format", .choice(\.logFormat, "FORMAT", of: names(LogFormat.self)),
            "How a line of the log looks: \"text\", or \"json\" for one object a line."),
    ]

    private static func names<Value: CaseIterable & RawRepresentable<String>>(
        _ type: Value.Type
    ) -> [(name: String, value: Value)] {
        type.allCases.map { ($0.rawValue, $0) }
    }
}
