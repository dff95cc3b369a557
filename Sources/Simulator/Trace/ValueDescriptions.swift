// Values as interpolation shows them, written out: embedded Swift has no reflection.

import Primitives
import TrackerLogic

extension Moment: CustomStringConvertible {
    /// The name of the case.
    public var description: String {
        switch self {
        case .halfWay: "halfWay"
        case .promiseSubmitted: "promiseSubmitted"
        case .promiseDurable: "promiseDurable"
        case .entrySubmitted: "entrySubmitted"
        case .entryDurable: "entryDurable"
        case .prepareSent: "prepareSent"
        case .okSent: "okSent"
        case .commitSent: "commitSent"
        case .electionSent: "electionSent"
        case .answerSent: "answerSent"
        case .becameMaster: "becameMaster"
        case .replied: "replied"
        case .forwarded: "forwarded"
        case .chunkFetched: "chunkFetched"
        case .chunkSent: "chunkSent"
        case .transferEnded: "transferEnded"
        case .snapshotUnderWay: "snapshotUnderWay"
        case .trimSubmitted: "trimSubmitted"
        case .writeFailed: "writeFailed"
        case .restarted: "restarted"
        case .stopping: "stopping"
        case .handover: "handover"
        }
    }
}

extension Fault.Kind: CustomStringConvertible {
    /// The name of the case.
    public var description: String {
        switch self {
        case .crash: "crash"
        case .pause: "pause"
        case .partition: "partition"
        case .oneWayPartition: "oneWayPartition"
        case .deafLinks: "deafLinks"
        case .slowPair: "slowPair"
        case .clog: "clog"
        case .busLoss: "busLoss"
        case .brokerOutage: "brokerOutage"
        case .darkness: "darkness"
        case .diskFailure: "diskFailure"
        case .brokenDisk: "brokenDisk"
        case .slowDisk: "slowDisk"
        case .clockStep: "clockStep"
        case .cleanStop: "cleanStop"
        case .memoryLoss: "memoryLoss"
        case .ruleChange: "ruleChange"
        case .registration: "registration"
        case .memberChange: "memberChange"
        case .handover: "handover"
        }
    }
}

extension ClusterStop: CustomStringConvertible {
    /// The name of the case.
    public var description: String {
        switch self {
        case .byOrder: "byOrder"
        case .together: "together"
        case .inTurn: "inTurn"
        }
    }
}

extension SimulatedClient.Act: CustomStringConvertible {
    var description: String {
        switch self {
        case .arrive: "arrive"
        case .progress: "progress"
        case .complete: "complete"
        case .stop: "stop"
        case .vanish: "vanish"
        case .scrape: "scrape"
        }
    }
}

extension DiskDamage: CustomStringConvertible {
    var description: String {
        switch self {
        case .lostSuffix: "lostSuffix"
        case .stalePart: "stalePart"
        case .flippedBit: "flippedBit"
        case .misdirected: "misdirected"
        case .lostPart: "lostPart"
        case .mark: "mark"
        }
    }
}

extension PacketCapture.Interface: CustomStringConvertible {
    /// The name of the case.
    public var description: String {
        switch self {
        case .clients: "clients"
        case .bus: "bus"
        case .steps: "steps"
        }
    }
}

extension ExplorerOptions.Start: CustomStringConvertible {
    /// The case with its values.
    public var description: String { rawValue }
}

extension SwarmModel.Peer: CustomStringConvertible {
    var description: String {
        "Peer(address: \(address), peerID: \(peerID), downloaded: \(downloaded), left: \(left), "
            + "lastSeen: \(lastSeen), isCounted: \(isCounted))"
    }
}
