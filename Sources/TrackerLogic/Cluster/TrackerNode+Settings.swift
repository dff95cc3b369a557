// Trackers that were told something else.

import Primitives
import Wire

extension SettingsPrint {
    /// The fingerprints of one tracker's configuration.
    public init(_ configuration: NodeConfiguration) {
        self.init { setting in
            switch setting {
            case .interval: return UInt64(configuration.interval)
            case .minInterval: return UInt64(configuration.minInterval)
            case .intervalJitter: return UInt64(configuration.intervalJitter)
            case .targetRate: return UInt64(configuration.targetRate)
            case .peerLifetime: return UInt64(configuration.peerLifetime)
            case .members, .mode, .election, .vote, .keepalive, .missed, .entry:
                return configuration.cluster.fingerprint(of: setting)
            }
        }
    }

    static func fingerprint(ofMembers members: [UInt32]) -> UInt64 {
        members.reduce(UInt64(members.count)) { mixed($0 ^ UInt64($1)) }
    }
}

extension ClusterConfiguration {
    fileprivate func fingerprint(of setting: SharedSetting) -> UInt64 {
        switch setting {
        case .members: SettingsPrint.fingerprint(ofMembers: members)
        case .mode:
            switch mode {
            case .quorum: 1
            case .survivor: 2
            }
        case .election:
            switch election {
            case .highest: 1
            case .lowest: 2
            case .next: 3
            }
        case .vote:
            switch vote {
            case .majority: 1
            case .allDropped(let after): mixed(2 ^ UInt64(bitPattern: after.nanoseconds))
            case .allAskedAgain(let every): mixed(3 ^ UInt64(bitPattern: every.nanoseconds))
            }
        case .keepalive: mixed(UInt64(bitPattern: keepalive.nanoseconds))
        case .missed: UInt64(bitPattern: Int64(missed))
        case .entry:
            switch entry {
            case .any: 1
            case .group: 2
            }
        case .interval, .minInterval, .intervalJitter, .targetRate, .peerLifetime: 0
        }
    }
}

/// Trackers that were told something else: who they are, in what they differ, and that they are not let in.
///
/// KEEPALIVE and HELLO say what their sender was told (`SettingsPrint`). Whoever differs in how the cluster acts as one
/// is not heard, on either side: neither its votes nor its suspicions count. Which of two unlike trackers is out, the
/// master says: whoever is not of its kind is refused, and then neither votes nor stands. Of two unlike masters, which
/// only survivor mode can have, the one of the lower epoch makes way.
///
/// Members are for the first formation only; after it the log has them. So they are compared where a tracker without
/// memory comes: it has to have been told what the others were told, or what the log says by now.
extension TrackerNode {
    /// Whether a message is to be left alone, because its sender was told something else.
    mutating func isExcluded(_ message: ClusterMessage, _ now: ClockReading, _ effects: inout Effects) -> Bool {
        switch message.body {
        case .keepalive(let keepalive):
            let isLeading = keepalive.role == .master
            return compare(keepalive.settings, message, isLeading: isLeading, now, &effects)
        case .hello(let hello): return compare(hello.settings, message, isLeading: false, now, &effects)
        // Who refuses this one is of another kind, and says so.
        case .refused(.otherSettings): return false
        default: return !reports.mismatched.isEmpty && reports.isExcluded(message.sender)
        }
    }

    private mutating func compare(
        _ settings: SettingsPrint, _ message: ClusterMessage, isLeading: Bool, _ now: ClockReading,
        _ effects: inout Effects
    ) -> Bool {
        if settings == self.settings, reports.mismatched.isEmpty { return false }
        var differing = settings.differences(from: self.settings)
        // Only a tracker without memory goes by them (`helloReceived`).
        differing.removeAll { $0 == .members }
        // Where only they differ, a HELLO decides whether that matters.
        if differing.isEmpty, settings.members != self.settings.members { return false }
        if has(.settingsIgnored) { return false }
        let isNews = note(message.sender, differsIn: differing, now, &effects)
        guard differing.contains(where: { $0.isBinding }) else { return false }
        if isNews, let place = neighbours.place(of: message.sender.id),
            neighbours[place].life == message.sender, neighbours[place].isUp
        {
            neighbours.markDown(place)
        }
        switch phase {
        case .master:
            if isLeading, message.epoch > candidate.epoch {
                stepDown(.otherSettings(message.sender.id), now, &effects)
                noteJoinRefusal(.otherSettings, now, &effects)
            } else {
                send(.refused(.otherSettings), to: message.sender, &effects)
            }
        case .following where isLeading && office.following?.isWelcomed != true:
            noteJoinRefusal(.otherSettings, now, &effects)
        case .following, .candidate, .restoring, .draining, .failed, .stopped: break
        }
        return true
    }

    /// Notes in what another tracker differs, and tells it once.
    @discardableResult
    mutating func note(
        _ life: Life, differsIn settings: [SharedSetting], _ now: ClockReading, _ effects: inout Effects
    ) -> Bool {
        guard reports.note(life, differsIn: settings, now: now.monotonic) else { return false }
        effects.observations.append(.settingsDiffer(tracker: life.id, settings))
        return true
    }

    /// Whether a tracker without memory was told of other members than this one, or the log, has.
    func hasOtherMembers(_ hello: Hello) -> Bool {
        guard isQuorumMode, hello.isBlank, hello.settings.members != self.settings.members else { return false }
        return hello.settings.members != SettingsPrint.fingerprint(ofMembers: members)
    }

    /// It may not join, for now.
    mutating func noteJoinRefusal(_ refusal: JoinRefusal, _ now: ClockReading, _ effects: inout Effects) {
        if admission.refused(refusal, now: now.monotonic) { effects.observations.append(.joinRefused(refusal)) }
    }
}
