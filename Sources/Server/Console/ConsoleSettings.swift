// The settings in force as the console shows them.

import Settings
import TrackerLogic
import Web

extension SettingsInForce {
    /// The settings of a configuration, each with where it was given.
    init(_ configuration: ServerConfiguration, revision: UInt64) {
        let settings = Settings.Setting.all.map { setting in
            var shown = SettingsInForce.Setting(
                key: setting.key.path, value: setting.shownValue(in: configuration),
                source: Source(configuration.origins[setting.key]), flag: setting.flag, about: setting.summary)
            if SettingKey.changeable.contains(setting.key) { shown.typed = setting.typedValue(in: configuration) }
            if let kept = configuration.kept.values[setting.key] {
                shown.kept = kept.shown
                shown.keptOverriddenBy = kept.overriddenBy.map { Source($0) }
            }
            return shown
        }
        self.init(
            name: configuration.cluster.name, settings: settings, profile: Profile(configuration.cluster),
            revision: revision)
    }
}

extension SettingsInForce.Source {
    init(_ origin: SettingOrigin?) {
        self =
            switch origin {
            case nil: .default
            case .file: .file
            case .console: .console
            case .environment: .environment
            case .flag: .flag
            }
    }
}

extension SettingsInForce.Profile {
    /// What the profile in force promises and gives up; docs/protocol.md has it in full.
    init(_ cluster: ClusterSettings) {
        guard cluster.bus != nil else {
            self.init(
                name: "alone",
                promises: "Nothing that was answered is lost by a crash of this tracker.",
                givesUp: "While this tracker is down, nobody answers.")
            return
        }
        let survivor =
            "Two sides of a partition both serve meanwhile; when it heals they become one again, and no live peer is "
            + "lost."
        switch cluster.effectiveProfile {
        case .classic:
            self.init(
                name: "classic",
                promises: "Service goes on down to the last tracker; the highest id is master, and a majority of the "
                    + "active trackers agrees to each update.", givesUp: survivor)
        case .rotating:
            self.init(
                name: "rotating",
                promises: "Service goes on down to the last tracker; the role passes to the next id in turn, and all "
                    + "active trackers agree to each update.",
                givesUp: "A tracker that does not vote holds all up for five seconds, until it is dropped. \(survivor)")
        case .lowest:
            self.init(
                name: "lowest",
                promises: "Service goes on down to the last tracker; the lowest id is master, and all active trackers "
                    + "agree to each update.",
                givesUp: "A tracker that does not vote is asked again and again, and holds all up until it is down. "
                    + survivor)
        case .paxos:
            self.init(
                name: "paxos",
                promises: "Agreement among the members: nothing that was answered is ever lost, and no answer is "
                    + "wrong, under any loss, partition and crash.",
                givesUp: "With a majority of the members gone, all progress halts: clients get no answer, and never a "
                    + "wrong one.")
        }
    }
}
