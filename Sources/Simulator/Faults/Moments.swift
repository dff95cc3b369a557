// Moments that are worse than others.

import Primitives
import TrackerLogic
import Wire

/// Moments that are worse than others, and faults that may be injected at them.
public enum Moment: Int, Sendable, CaseIterable {
    /// Replies are out; of the messages of the same step, only some or none; nothing is written.
    case halfWay
    /// A promise has been handed to the disk.
    case promiseSubmitted
    /// A promise is durable, and nobody knows.
    case promiseDurable
    /// An entry has been handed to the disk.
    case entrySubmitted
    /// An entry is durable, and nobody knows.
    case entryDurable
    /// A master has sent a PREPARE.
    case prepareSent
    /// A voter has sent an OK.
    case okSent
    /// A master has sent a COMMIT.
    case commitSent
    /// A candidate has sent an ELECTION.
    case electionSent
    /// A voter has sent its ANSWER.
    case answerSent
    /// A node says that it is master.
    case becameMaster
    /// Clients have been answered.
    case replied
    /// Requests have been sent on to the master.
    case forwarded
    /// A newcomer asks for a chunk of the state.
    case chunkFetched
    /// Somebody sends a chunk of his state.
    case chunkSent
    /// A node says that it holds the whole state.
    case transferEnded
    /// A chunk of a snapshot is on its way to the disk.
    case snapshotUnderWay
    /// The log has been cut.
    case trimSubmitted
    /// The node has been told that a write failed.
    case writeFailed
    /// The node has just come back.
    case restarted
    /// The node has been asked to stop.
    case stopping
    /// A master makes way for another.
    case handover

    /// At which moment, in words.
    var words: String {
        switch self {
        case .halfWay: "half-way through a step"
        case .promiseSubmitted: "its promise is on the way to its disk"
        case .promiseDurable: "its promise is durable, and nobody knows"
        case .entrySubmitted: "an entry is on the way to its disk"
        case .entryDurable: "an entry is durable, and nobody knows"
        case .prepareSent: "it has sent a PREPARE"
        case .okSent: "it has sent an OK"
        case .commitSent: "it has sent a COMMIT"
        case .electionSent: "it has sent an ELECTION"
        case .answerSent: "it has sent an ANSWER"
        case .becameMaster: "it has become master"
        case .replied: "it has answered clients"
        case .forwarded: "it has handed requests on"
        case .chunkFetched: "it asks for a chunk of the state"
        case .chunkSent: "it sends a chunk of its state"
        case .transferEnded: "it says that it holds the whole state"
        case .snapshotUnderWay: "a snapshot is on the way to its disk"
        case .trimSubmitted: "its log is being cut"
        case .writeFailed: "it was told that a write failed"
        case .restarted: "it has just come back"
        case .stopping: "it was asked to stop"
        case .handover: "it makes way for another master"
        }
    }

    /// Transfers are rare.
    var isOfTransfer: Bool { self == .chunkFetched || self == .chunkSent || self == .transferEnded }

    /// One bit each.
    var bit: UInt32 { 1 << UInt32(rawValue) }
}

extension Effects {
    /// The moments that a step makes, one bit each.
    var moments: UInt32 {
        var bits: UInt32 = replies.isEmpty ? 0 : Moment.replied.bit
        for persist in persists { bits |= persist.change.moment }
        for message in messages { bits |= message.body.moment }
        for observation in observations {
            if case .becameMaster = observation { bits |= Moment.becameMaster.bit }
        }
        return bits
    }
}

extension Persist.Change {
    fileprivate var moment: UInt32 {
        switch self {
        case .promise: Moment.promiseSubmitted.bit
        case .append: Moment.entrySubmitted.bit
        case .saveChunk: Moment.snapshotUnderWay.bit
        case .trim: Moment.trimSubmitted.bit
        case .replaceAll: 0
        }
    }
}

extension ClusterMessage.Body {
    fileprivate var moment: UInt32 {
        switch self {
        case .prepare: Moment.prepareSent.bit
        case .ok: Moment.okSent.bit
        case .commit: Moment.commitSent.bit
        case .election: Moment.electionSent.bit
        case .answer: Moment.answerSent.bit
        case .forward: Moment.forwarded.bit
        case .fetchChunk: Moment.chunkFetched.bit
        case .chunk: Moment.chunkSent.bit
        case .welcomeDone: Moment.transferEnded.bit
        case .handover: Moment.handover.bit
        case .keepalive, .suspect, .coordinator, .error, .confirm, .confirmed, .fetch, .entries, .hello, .welcome,
            .refused, .answered, .leave, .report, .order, .ordered, .stop:
            0
        }
    }
}
