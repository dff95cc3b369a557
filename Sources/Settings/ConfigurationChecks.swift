// What must hold between settings, and the defaults that follow from others.

import Primitives
import TrackerLogic

extension ConfigurationLoader {
    /// Fills in the defaults that depend on other values, checks everything against everything, and hands it over.
    mutating func finish(environment: [String: String]) throws(ConfigurationError) -> ServerConfiguration {
        deriveDefaults(environment: environment)
        checkAnnouncing()
        checkAddresses()
        checkCertificate()
        checkAccess()
        checkTorrentFiles()
        finishCluster()
        guard problems.isEmpty else {
            adviseOnKept()
            let rest = problems.count - Self.maxProblems
            if rest > 0 {
                problems.removeLast(rest)
                problems.append(ConfigurationProblem(.nowhere, "and \(rest) more problems"))
            }
            throw ConfigurationError(problems: problems)
        }
        for (key, place) in places {
            switch place {
            case .file: configuration.origins[key] = .file
            case .kept, .console: configuration.origins[key] = .console
            case .environment: configuration.origins[key] = .environment
            case .flag: configuration.origins[key] = .flag
            case .nowhere: break
            }
        }
        configuration.kept = keptValues
        return configuration
    }

    /// Problems that are told at once; a file with more is some other program's.
    static let maxProblems = 100

    private mutating func deriveDefaults(environment: [String: String]) {
        let defaults = NodeConfiguration()
        if places[.minInterval] == nil {
            configuration.node.minInterval = max(1, configuration.node.interval / 2)
        }
        if places[.intervalJitter] == nil {
            configuration.node.intervalJitter = configuration.node.interval / 30
        }
        if places[.numWant] == nil {
            configuration.node.numWant = min(defaults.numWant, configuration.node.maxNumWant)
        }
        if places[.limitTorrentFileBytes] == nil {
            configuration.node.limits.torrentFileByteCount = min(
                defaults.limits.torrentFileByteCount, configuration.node.limits.torrentFilesByteCount)
        }
        guard configuration.dataDirectory.isEmpty, places[.dataDirectory] == nil else { return }
        if let directory = dataDirectory(environment: environment) {
            configuration.dataDirectory = directory
        } else {
            problems.append(
                ConfigurationProblem(
                    .nowhere,
                    "there is no place for the tracker's record: neither STATE_DIRECTORY nor XDG_STATE_HOME nor HOME "
                        + "is set; give one with --data DIR"))
        }
    }

    /// Whether all of these were read without a problem, so that comparing them makes sense.
    func areSound(_ keys: SettingKey...) -> Bool { keys.allSatisfy { !rejected.contains($0) } }

    /// The one of two settings that was given last: the one to complain about.
    func later(_ first: SettingKey, _ second: SettingKey) -> SettingKey {
        func rank(_ key: SettingKey) -> (Int, TextPosition) {
            let nothing = TextPosition(line: 0, column: 0)
            return switch places[key] {
            case nil, .nowhere: (0, nothing)
            case .file(_, let position): (1, position ?? nothing)
            case .kept(_, let position): (2, position ?? nothing)
            case .environment: (3, nothing)
            case .flag: (4, nothing)
            case .console: (5, nothing)
            }
        }
        return rank(second) > rank(first) ? second : first
    }

    /// The data directory as far as it is known; nil where nothing tells it.
    func dataDirectory(environment: [String: String]) -> String? {
        guard places[.dataDirectory] == nil else {
            return areSound(.dataDirectory) ? configuration.dataDirectory : nil
        }
        return ServerConfiguration.defaultDataDirectory(environment: environment)
    }

    private mutating func checkAnnouncing() {
        let node = configuration.node
        func span(_ seconds: UInt32) -> String { durationText(Int(seconds)) }
        if areSound(.interval, .minInterval), node.minInterval > node.interval {
            report(
                later(.minInterval, .interval),
                "\(subject(.minInterval)) (\(span(node.minInterval))) is longer than \(subject(.interval)) "
                    + "(\(span(node.interval))); write at most \(span(node.interval)), or leave it out for half of that"
            )
        }
        if areSound(.interval, .intervalJitter), node.intervalJitter >= node.interval {
            report(
                later(.intervalJitter, .interval),
                "\(subject(.intervalJitter)) (\(span(node.intervalJitter))) is not shorter than \(subject(.interval)) "
                    + "(\(span(node.interval))); leave it out for a thirtieth of that")
        }
        if areSound(.numWant, .maxNumWant), node.numWant > node.maxNumWant {
            report(
                later(.numWant, .maxNumWant),
                "\(subject(.numWant)) (\(node.numWant)) is more than \(subject(.maxNumWant)) (\(node.maxNumWant)); "
                    + "write at most \(node.maxNumWant)")
        }
    }

    /// A certificate is of no use without its key, nor the other way round.
    private mutating func checkCertificate() {
        guard areSound(.consoleCertificateFile, .consoleKeyFile) else { return }
        let (certificate, key) = (configuration.consoleCertificateFile, configuration.consoleKeyFile)
        if certificate != nil, key == nil {
            report(
                .consoleCertificateFile,
                "\(subject(.consoleCertificateFile)) needs the private key, too: give \(SettingKey.consoleKeyFile.path)"
            )
        }
        if key != nil, certificate == nil {
            report(
                .consoleKeyFile,
                "\(subject(.consoleKeyFile)) needs the certificate, too: give "
                    + SettingKey.consoleCertificateFile.path)
        }
    }

    /// A file that is as long as one may be has to fit among all.
    private mutating func checkTorrentFiles() {
        let limits = configuration.node.limits
        guard areSound(.limitTorrentFileBytes, .limitTorrentTotalBytes),
            limits.torrentFileByteCount > limits.torrentFilesByteCount
        else { return }
        let (one, all) = (countText(limits.torrentFileByteCount), countText(limits.torrentFilesByteCount))
        report(
            later(.limitTorrentFileBytes, .limitTorrentTotalBytes),
            "\(subject(.limitTorrentFileBytes)) (\(one)) is more than \(subject(.limitTorrentTotalBytes)) (\(all)), "
                + "so no such file would fit; write at most \(all), or more for all")
    }

    private mutating func checkAddresses() {
        guard areSound(.udp, .http, .console) else { return }
        for (key, addresses) in [(SettingKey.udp, configuration.udp), (.http, configuration.http)] {
            var seen: Set<SocketAddress> = []
            var reported: Set<SocketAddress> = []
            for address in addresses where address.port != 0 && !seen.insert(address).inserted {
                guard reported.insert(address).inserted else { continue }
                report(key, "\(subject(key)) names \(address) twice; write it once")
            }
        }
        if let console = configuration.console, console.port != 0, configuration.http.contains(console) {
            report(
                later(.console, .http),
                "\(subject(.console)) and \(subject(.http)) are both \(console); give the console another port")
        }
        if configuration.udp.isEmpty, configuration.http.isEmpty {
            report(
                later(.udp, .http),
                "there is nothing to listen on: \(subject(.udp)) and \(subject(.http)) are both empty; "
                    + "give at least one address")
        }
    }

    private mutating func checkAccess() {
        guard areSound(.accessMode, .accessList, .users) else { return }
        let list = "\(SettingKey.accessList.path) (--\(Setting.of(.accessList).flag))"
        switch configuration.accessMode {
        case .allow where configuration.accessListFile == nil:
            report(
                .accessMode,
                "\(subject(.accessMode)) is \"allow\", but there is no list of what is allowed; name it by \(list)")
        case .deny where configuration.accessListFile == nil:
            report(
                .accessMode,
                "\(subject(.accessMode)) is \"deny\", but there is no list of what is denied; name it by \(list)")
        // Without a file of users those are let in whose accounts have a passkey.
        case .open, .allow, .deny, .private: break
        }
        // A list that nobody enforces would be a trap. Said explicitly, "open" is believed.
        guard places[.accessMode] == nil else { return }
        if configuration.accessListFile != nil {
            report(
                .accessList,
                "\(subject(.accessList)) is given, but nothing says what the list is for; "
                    + "set \(SettingKey.accessMode.path) to \"allow\" or \"deny\" (or to \"open\", to leave it unused)")
        }
        if configuration.usersFile != nil {
            report(
                .users,
                "\(subject(.users)) is given, but the tracker is not private; "
                    + "set \(SettingKey.accessMode.path) to \"private\" (or to \"open\", to leave it unused)")
        }
    }
}
