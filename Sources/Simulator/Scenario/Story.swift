// The classic stories of a cluster, each a scenario with its faults placed by hand.

import Primitives
import TrackerLogic

/// The classic stories of a cluster, each a scenario with its faults placed by hand: what the simulator tells of them
/// is kept as text and read by people.
public enum Story: String, Sendable, CaseIterable {
    /// Three trackers that know nothing form a cluster.
    case cleanStart = "clean-start"
    /// The master dies under load, another takes over, the old one comes back and is handed the role.
    case masterDies = "master-dies"
    /// One after another dies; the last one serves (survivor mode).
    case loneSurvivor = "lone-survivor"
    /// The lowest id is preferred, and all must be ready.
    case lowest
    /// The turn goes to the next id when a master dies, and nobody is handed it back.
    case rotating
    /// With a majority gone, all progress halts, and goes on when it is back.
    case majorityGone = "majority-gone"
    /// A partition in quorum mode: the minority falls silent.
    case partitionQuorum = "partition-quorum"
    /// A partition in survivor mode: both sides serve, and are merged.
    case partitionSurvivor = "partition-survivor"
    /// A tracker without memory joins under load, with a state transfer.
    case newcomer
    /// The operator has the role handed over.
    case handover
    /// Two of three disks are full: an update is refused by vote, and the refusal is decided.
    case refusedUpdate = "refused-update"
    /// The broker is lost: all fall silent, and go on when it is back.
    case brokerLoss = "broker-loss"
    /// All trackers are stopped in good order, and begin anew without swarms.
    case wholeStop = "whole-stop"
    /// The master begins anew, with other settings than the others.
    case otherSettings = "other-settings"
    /// People at consoles, while the master dies.
    case consoles
    /// One tracker alone dies, has a full disk, and is stopped.
    case alone
    /// A multicast group, whose master dies.
    case group
    /// Peers find each other by the trackers, and download, while the master dies.
    case downloads

    /// The story of this name; nil where there is none (see `Stress.named`).
    public static func named(_ name: String) -> Story? {
        allCases.first { $0.rawValue.utf8.elementsEqual(name.utf8) }
    }

    /// How its cluster elects and votes.
    public var profile: Profile {
        switch self {
        case .loneSurvivor, .partitionSurvivor: .classic
        case .lowest: .lowest
        case .rotating: .rotating
        case .alone: .alone
        case .cleanStart, .masterDies, .majorityGone, .partitionQuorum, .newcomer, .handover, .refusedUpdate,
            .brokerLoss, .wholeStop, .otherSettings, .consoles, .group, .downloads:
            .paxos
        }
    }

    /// What it is called.
    public var title: String {
        switch self {
        case .cleanStart: "A clean start"
        case .masterDies: "The master dies"
        case .loneSurvivor: "A lone survivor"
        case .lowest: "The lowest id is preferred"
        case .rotating: "The next one takes its turn"
        case .majorityGone: "A majority is gone"
        case .partitionQuorum: "A partition, in quorum mode"
        case .partitionSurvivor: "A partition, in survivor mode"
        case .newcomer: "A newcomer"
        case .handover: "A hand-over"
        case .refusedUpdate: "An update is refused"
        case .brokerLoss: "The broker is lost"
        case .wholeStop: "The whole cluster stops"
        case .otherSettings: "Other settings"
        case .consoles: "At the consoles"
        case .alone: "A tracker alone"
        case .group: "A multicast group"
        case .downloads: "Downloads"
        }
    }

    /// What it tells of, in one sentence or two.
    public var sentence: String {
        switch self {
        case .cleanStart: "Three trackers that know nothing find each other, elect a master, and serve."
        case .masterDies:
            "The master dies under load, and another takes over; the old one comes back, and is handed the role."
        case .loneSurvivor: "One tracker after another dies; the last one serves on, as survivor mode promises."
        case .lowest: "The tracker of the lowest id is preferred as master, but not before it is ready."
        case .rotating: "When a master dies, the turn goes to the next id, and nobody is handed the role back."
        case .majorityGone: "With two of three trackers gone nothing is decided, and all goes on when they are back."
        case .partitionQuorum: "A tracker is cut off from the two others: it falls silent, and they serve on."
        case .partitionSurvivor:
            "A tracker is cut off from the two others: both sides serve, and are merged when the partition ends."
        case .newcomer: "A tracker without memory joins under load, and fetches the whole state first."
        case .handover: "The operator has the role handed over, and no request is lost."
        case .refusedUpdate:
            "Two of three disks are full: an update is refused by vote, and the refusal is decided by all."
        case .brokerLoss: "Nobody has a bus for five seconds: all fall silent, and go on when it is back."
        case .wholeStop: "All trackers are stopped in good order: the swarms go with them, and they begin anew."
        case .otherSettings:
            "The master begins anew with other settings: the others say so, and do without it until it is right."
        case .consoles: "Accounts and torrent files change at three consoles, and the master dies meanwhile."
        case .alone: "A tracker without others dies, has a full disk, and is stopped; its clients go on."
        case .group: "All trackers hear every request, and the master answers; another does when it dies."
        case .downloads: "Peers find each other by the trackers and download, while the master dies."
        }
    }

    private var script: [ScriptedEvent] {
        switch self {
        case .cleanStart: []
        case .masterDies: [ScriptedEvent(at: .seconds(8), .crash(2, .seconds(8)))]
        case .loneSurvivor:
            [
                ScriptedEvent(at: .seconds(8), .crash(2, .seconds(60))),
                ScriptedEvent(at: .seconds(14), .crash(1, .seconds(60))),
            ]
        case .lowest: [ScriptedEvent(at: .seconds(8), .crash(0, .seconds(8)))]
        case .rotating:
            [
                ScriptedEvent(at: .seconds(6), .crash(0, .seconds(60))),
                ScriptedEvent(at: .seconds(12), .crash(1, .seconds(60))),
            ]
        case .majorityGone:
            [
                ScriptedEvent(at: .seconds(8), .crash(2, .seconds(12))),
                ScriptedEvent(at: .seconds(9), .crash(1, .seconds(14))),
            ]
        case .partitionQuorum, .partitionSurvivor: [ScriptedEvent(at: .seconds(8), .partition([2], .seconds(10)))]
        case .newcomer: []
        case .handover: [ScriptedEvent(at: .seconds(8), .handOver(at: 2, to: 2))]
        case .refusedUpdate: [ScriptedEvent(at: .seconds(8), .fullDisks([0, 1], .seconds(3)))]
        case .brokerLoss: [ScriptedEvent(at: .seconds(8), .brokerOutage(.seconds(5)))]
        case .wholeStop:
            [
                ScriptedEvent(at: .seconds(8), .stop(0)), ScriptedEvent(at: .milliseconds(8200), .stop(1)),
                ScriptedEvent(at: .milliseconds(8400), .stop(2)),
            ]
        case .otherSettings: [ScriptedEvent(at: .seconds(8), .misconfigure(2))]
        case .consoles, .group, .downloads: [ScriptedEvent(at: .seconds(8), .crash(2, .seconds(8)))]
        case .alone:
            [
                ScriptedEvent(at: .seconds(6), .crash(0, .seconds(2))),
                ScriptedEvent(at: .seconds(12), .fullDisks([0], .seconds(3))),
                ScriptedEvent(at: .seconds(20), .stop(0)),
            ]
        }
    }

    /// The run that the story tells of.
    public var scenario: Scenario {
        var scenario = Scenario(seed: 1, profile: profile, nodes: self == .alone ? 1 : 3, seconds: 26)
        var options = ScenarioOptions()
        options.coreLength = .seconds(26)
        options.clientCount = 4
        options.scraperCount = 0
        options.swarmCount = 1
        options.interval = 6
        options.script = script
        if self == .newcomer {
            options.latecomerDelay = .seconds(10)
            options.tailCount = 4
        }
        if self == .alone { options.nodeCount = 1 }
        populate(&options)
        scenario.options = options
        // A newcomer with a vote is needed to form the cluster; this one comes as a spare.
        if self == .newcomer {
            scenario.options.nodeCount = 4
            scenario.options.spareCount = 1
        }
        return scenario
    }

    /// Who else is there.
    private func populate(_ options: inout ScenarioOptions) {
        switch self {
        case .otherSettings: options.hasReports = true
        case .consoles:
            options.setStewards(3)
            options.hasFileAccounts = true
        case .alone: (options.visitorCount, options.scraperCount, options.swarmCount) = (2, 1, 2)
        case .group:
            (options.entry, options.clientWait, options.visitorCount) = (.group, .seconds(15), 1)
        case .downloads:
            var transfers = TransferOptions()
            (transfers.coreLength, transfers.leecherCount, transfers.seederCount) = (options.coreLength, 6, 2)
            (transfers.magnetPercent, transfers.partialPercent, transfers.webSeedCount) = (30, 30, 1)
            options.transfers = transfers
        case .cleanStart, .masterDies, .loneSurvivor, .lowest, .rotating, .majorityGone, .partitionQuorum,
            .partitionSurvivor, .newcomer, .handover, .refusedUpdate, .brokerLoss, .wholeStop:
            break
        }
    }

    /// The trace of the story up to the end of its faults and a little beyond, without what happens all the time.
    public func tell() -> [String] {
        let result = scenario.run(recordsTrace: true)
        var lines = [result.names.heads()[1]]
        lines += Story.told(result.lines).map { Story.trimmed($0.words()) }
        lines.append(result.hashLine)
        lines.append(contentsOf: result.violations.map { "VIOLATION \($0)" })
        return lines
    }

    /// Of the lines of a trace those that tell the story, without what happens all the time.
    static func told(_ all: [TraceLine]) -> [TraceLine] {
        var lines: [TraceLine] = []
        var columns = ""
        for line in all {
            // Role and epoch; the index goes on all the time.
            let standing = line.columns.map { column in
                column.split(separator: " ").prefix(2).joined(separator: " ")
            }.joined(separator: "|")
            let isTold = !line.kinds.isDisjoint(with: .faults) || line.kinds.isEmpty
            guard standing != columns || isTold || Story.telling.contains(where: { line.text.hasPart($0) })
            else { continue }
            columns = standing
            lines.append(line)
        }
        return lines
    }

    private static func trimmed(_ line: String) -> String {
        var line = line[...]
        while line.last == " " { line.removeLast() }
        return String(line)
    }

    /// What is told although nobody's standing changes.
    private static let telling = [
        "is commanded", "; misses ", "; stands for ", "; becomes master", "; is no longer master", "HANDOVER",
        "; begins to fetch", "; holds the whole state", "; has merged", "; knows entry", "WELCOME", "COORDINATOR",
        "; takes tracker", "is refused", "was told other settings", "is told other settings", "gives up",
        "; has answered all",
    ]
}
