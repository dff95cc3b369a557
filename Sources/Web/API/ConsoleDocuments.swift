// The JSON of what the console's pages show: the state once a second, transitions, faults, settings.

import Foundation
import Primitives
import TrackerLogic
import Wire

/// An instant as all of the API writes it: ISO 8601 with milliseconds, in UTC.
func instantText(_ time: WallTime) -> String {
    // By whole numbers: a fraction of a second has no exact binary form, and may lose a millisecond.
    let (seconds, rest) = time.milliseconds.quotientAndRemainder(dividingBy: 1000)
    let whole = rest < 0 ? seconds - 1 : seconds
    let text = Date(timeIntervalSince1970: Double(whole)).formatted(Date.ISO8601FormatStyle())
    return "\(text.dropLast()).\(String(1000 + (time.milliseconds - whole * 1000)).dropFirst())Z"
}

/// The wall clock.
func wallTimeNow() -> WallTime { WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }

/// All that a page needs to show how things are; sent once a second.
struct StateDocument: Encodable {
    var now: String
    /// The cluster's.
    var name: String
    var status: StatusDocument
    /// Left out before the first.
    var sample: SampleDocument?
    var faults: FaultsDocument
}

struct SampleDocument: Encodable {
    struct Tracker: Encodable {
        var id: UInt32
        var isUp: Bool
        var isMaster: Bool
        var announcesPerSecond: UInt32
        var commitSeconds: ReportDocument.LatencyDocument
        var silentSeconds: Double
    }

    var at: String
    var swarms: Int
    var seeders: Int
    var leechers: Int
    var trackers: [Tracker]

    init(_ sample: HistorySample) {
        at = instantText(sample.at)
        swarms = sample.swarms
        seeders = sample.seeders
        leechers = sample.leechers
        trackers = sample.trackers.map { tracker in
            Tracker(
                id: tracker.id, isUp: tracker.isUp, isMaster: tracker.isMaster,
                announcesPerSecond: tracker.announcesPerSecond,
                commitSeconds: ReportDocument.LatencyDocument(tracker.commits),
                silentSeconds: Double(tracker.silence.wholeMilliseconds) / 1000)
        }
    }
}

struct HistoryDocument: Encodable {
    var samples: [SampleDocument]
}

struct TransitionDocument: Encodable {
    var number: UInt64
    var at: String
    var tracker: UInt32
    var kind: String
    var text: String
    /// Left out where it has none.
    var epoch: EpochDocument?
    var causes: [UInt64]
    /// Left out but for commits.
    var count: UInt64?

    init(_ transition: Transition) {
        number = transition.number
        at = instantText(transition.at)
        tracker = transition.tracker
        kind = transition.kind.rawValue
        text = transition.text
        epoch = transition.epoch.map(EpochDocument.init)
        causes = transition.causes
        count = transition.count
    }
}

struct FaultDocument: Encodable {
    var id: String
    var from: String
    /// Left out but for a cut from one tracker.
    var tracker: UInt32?
    var since: String
    var until: String
    var remainingSeconds: Double
    var text: String
}

struct FaultsDocument: Encodable {
    var faults: [FaultDocument]

    init(_ faults: [InjectedFault]) {
        self.faults = faults.map { fault in
            let from: String
            var tracker: UInt32?
            switch fault.target {
            case .peers: from = "peers"
            case .bus: from = "bus"
            case .tracker(let id): (from, tracker) = ("tracker", id)
            }
            return FaultDocument(
                id: fault.target.id, from: from, tracker: tracker, since: instantText(fault.since),
                until: instantText(fault.until),
                remainingSeconds: Double(max(fault.remaining.wholeMilliseconds, 0)) / 1000,
                text: fault.target.expectation)
        }
    }
}

struct SettingsDocument: Encodable {
    struct SettingDocument: Encodable {
        var key: String
        /// As in the file; left out where it is secret.
        var value: String?
        var source: String
        var flag: String
        var about: String
        var isSecret: Bool
        /// Whether it can be changed while the tracker is stopped.
        var isChangeable: Bool
        /// As one types it; left out but for what can be changed.
        var typed: String?
        /// Left out where nothing is kept.
        var kept: String?
        /// Left out where it is not overridden.
        var keptOverriddenBy: String?
    }

    struct ProfileDocument: Encodable {
        var name: String
        var promises: String
        var givesUp: String
    }

    var settings: [SettingDocument]
    var profile: ProfileDocument

    init(_ settings: SettingsInForce) {
        self.settings = settings.settings.map { setting in
            SettingDocument(
                key: setting.key, value: setting.value, source: setting.source.rawValue, flag: "--\(setting.flag)",
                about: setting.about, isSecret: setting.value == nil, isChangeable: setting.typed != nil,
                typed: setting.typed, kept: setting.kept, keptOverriddenBy: setting.keptOverriddenBy?.rawValue)
        }
        let profile = settings.profile
        self.profile = ProfileDocument(name: profile.name, promises: profile.promises, givesUp: profile.givesUp)
    }
}

struct TrackersDocument: Encodable {
    var trackers: [ClusterDocument.Tracker]
}

struct ResourcesDocument: Encodable {
    var version = "1"
    var resources: [String]
    /// Left out where no torrent files are taken.
    var torrentFileByteCount: Int?
    /// Left out by a tracker.
    var product: String?
}

struct ElectionDocument: Encodable {
    /// The tracker that was master, and is none for now.
    var formerMaster: UInt32
}

struct NodeSwitchDocument: Encodable {
    var isRunning: Bool
}
