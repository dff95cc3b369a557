// The JSON that the API answers with.

import Bus
import Primitives
import TrackerLogic
import Wire

/// The JSON that the API answers with.
///
/// Its keys are a promise: openapi.yaml describes each, and a test compares.
struct StatusDocument: Encodable {
    struct Listener: Encodable {
        var service: String
        var address: String
    }

    var version: String
    var processID: Int32
    var startedAt: String
    var uptimeSeconds: Double
    var listeners: [Listener]
    /// Left out where the operator has not told it.
    var advertised: String?
    /// Left out where the process cannot record.
    var recording: RecordingDocument?
    var node: NodeDocument
    var cluster: ClusterDocument

    init(
        _ status: NodeStatus, _ cluster: ClusterReport, _ facts: ProcessFacts, _ recording: RecordingFigures?,
        now: WallTime
    ) {
        version = facts.version
        processID = facts.processID
        startedAt = instantText(facts.startedAt)
        uptimeSeconds = Double(max(now.milliseconds - facts.startedAt.milliseconds, 0)) / 1000
        listeners = facts.listeners.map { Listener(service: $0.service.rawValue, address: "\($0.address)") }
        advertised = facts.advertised
        self.recording = recording.map(RecordingDocument.init)
        node = NodeDocument(status)
        self.cluster = ClusterDocument(cluster)
    }
}

struct EpochDocument: Encodable {
    var round: UInt64
    var id: UInt32

    init(_ epoch: Epoch) { (round, id) = (epoch.round, epoch.id) }
}

struct NodeDocument: Encodable {
    struct CountersDocument: Encodable {
        var connects: UInt64
        var announces: UInt64
        var scrapes: UInt64
        var errors: UInt64
        var errorsWithheld: UInt64
        var ignored: UInt64
        var dropped: UInt64
        var timedOut: UInt64
        var entries: UInt64
        var updates: UInt64
        var expired: UInt64
        var completed: UInt64
    }

    var id: UInt32
    var role: String
    var epoch: EpochDocument
    var commitIndex: UInt64
    var lastIndex: UInt64
    var digest: String
    var accessMode: String
    var torrents: Int
    var peers: Int
    var peersIPv4: Int
    var peersIPv6: Int
    var seeders: Int
    var registeredTorrents: Int
    var intervalSeconds: UInt32
    var waitingRequests: Int
    var counters: CountersDocument

    init(_ status: NodeStatus) {
        id = status.id
        role = status.role.rawValue
        epoch = EpochDocument(status.epoch)
        commitIndex = status.commitIndex
        lastIndex = status.lastIndex
        digest = hexadecimal(status.digest)
        accessMode = Self.name(status.accessMode)
        torrents = status.table.torrents
        peers = status.table.peers
        peersIPv4 = status.table.peersIPv4
        peersIPv6 = status.table.peersIPv6
        seeders = status.table.seeders
        registeredTorrents = status.registeredTorrents
        intervalSeconds = status.interval
        waitingRequests = status.waitingRequests
        let counters = status.counters
        self.counters = CountersDocument(
            connects: counters.connects, announces: counters.announces, scrapes: counters.scrapes,
            errors: counters.errors, errorsWithheld: counters.errorsWithheld, ignored: counters.ignored,
            dropped: counters.dropped, timedOut: counters.timedOut, entries: counters.entries,
            updates: counters.updates, expired: counters.expired, completed: counters.completed)
    }

    private static func name(_ mode: AccessMode) -> String {
        switch mode {
        case .open: "open"
        case .allow: "allow"
        case .deny: "deny"
        case .private: "private"
        }
    }
}

/// The cluster as one tracker sees it.
struct ClusterDocument: Encodable {
    /// Another tracker that was started with other settings.
    struct Unlike: Encodable {
        var id: UInt32
        var settings: [String]
    }

    struct Messages: Encodable {
        var received: UInt64
        var sent: UInt64
        var malformed: UInt64
        var otherVersion: UInt64
        var dropped: UInt64
    }

    struct Elections: Encodable {
        var suspicions: UInt64
        var candidacies: UInt64
        var victories: UInt64
        var stepDowns: UInt64
        var transfers: UInt64
        var merges: UInt64
        var divergences: UInt64
    }

    struct Tracker: Encodable {
        var id: UInt32
        var incarnation: String
        var isThis: Bool
        var role: String
        var epoch: EpochDocument
        var silentSeconds: Double
        var commitIndex: UInt64
        /// Entries that it was behind the one that is asked when it last said where it is; 0 where it was ahead.
        ///
        /// Of the one that is asked: entries that it is behind its master.
        var lag: Int64
        var agreement: String
        var isWhole: Bool
        var hasVote: Bool
        /// Left out where it has told nothing yet.
        var report: ReportDocument?

        init(_ view: TrackerView, of status: ClusterStatus, own: TrackerReport?) {
            id = view.life.id
            incarnation = hexadecimal(view.life.incarnation)
            isThis = view.life == status.life
            role = view.role.map { "\($0)" } ?? "down"
            epoch = EpochDocument(view.epoch)
            silentSeconds = Double(view.silence.wholeMilliseconds) / 1000
            commitIndex = view.position.index
            lag = Int64(clamping: view.lag)
            agreement = view.agreement.rawValue
            isWhole = view.hasFullState
            hasVote = view.hasVote
            if isThis {
                report = own.map { ReportDocument(own: $0, of: status) }
            } else {
                report = view.report.map {
                    ReportDocument($0.report, clockDifference: $0.clockDifference, age: view.reportAge)
                }
            }
        }
    }

    var name: String
    var id: UInt32
    var mode: String
    var epoch: EpochDocument
    /// 0 while there is none.
    var master: UInt32
    var isServing: Bool
    var isFenced: Bool
    var voters: [UInt32]
    var commitIndex: UInt64
    var digest: String
    /// Left out for a tracker that is alone.
    var bus: BusStatus?
    var messages: Messages
    var elections: Elections
    var trackers: [Tracker]
    var unlike: [Unlike]
    /// The cause of silence first.
    var findings: [FindingDocument]

    init(_ report: ClusterReport) {
        let status = report.status
        name = report.name
        id = status.life.id
        mode = status.mode?.rawValue ?? "alone"
        epoch = EpochDocument(status.epoch)
        master = status.master ?? 0
        isServing = status.isServing
        isFenced = status.isFenced
        voters = status.voters
        commitIndex = status.position.index
        digest = hexadecimal(status.digest)
        bus = report.bus
        let tally = report.tally
        messages = Messages(
            received: tally.messagesIn, sent: tally.messagesOut, malformed: tally.malformed,
            otherVersion: tally.otherVersion, dropped: tally.dropped)
        let counts = report.elections
        elections = Elections(
            suspicions: counts.suspicions, candidacies: counts.candidacies, victories: counts.victories,
            stepDowns: counts.stepDowns, transfers: counts.transfers, merges: counts.merges,
            divergences: counts.divergences)
        trackers = status.trackers.map { Tracker($0, of: status, own: report.own) }
        unlike = status.mismatched.map { Unlike(id: $0.life.id, settings: $0.settings.map(\.flag)) }
        findings = report.findings.map(FindingDocument.init)
    }
}

/// What came of an order.
struct MembersDocument: Encodable {
    var members: [UInt32]
}

struct StopDocument: Encodable {
    var isStopping = true
}

struct HandoverDocument: Encodable {
    var master: UInt32
    /// Whether it was master already.
    var wasMaster: Bool
}

struct ErrorDocument: Encodable {
    var error: String
}
