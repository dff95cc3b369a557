// What can be counted, by name.

import Primitives
import TrackerLogic
import Wire

extension Census {
    /// The part that a tracker plays, as far as faults are told apart by it.
    enum Part: Int, CaseIterable {
        case down
        case fenced
        case newcomer
        case candidate
        case elected
        case master
        case makingWay
        case slave
        case behind
        case blank

        var words: String {
            switch self {
            case .down: "down"
            case .fenced: "without its bus"
            case .newcomer: "a newcomer"
            case .candidate: "a candidate"
            case .elected: "a master that does not serve yet"
            case .master: "a master"
            case .makingWay: "a master that makes way"
            case .slave: "a slave"
            case .behind: "a slave that does not serve"
            case .blank: "not whole"
            }
        }

        /// The part of a tracker that is up; `hasBus` is whether it believes that it has one, or needs none.
        init(_ inspection: Inspection, hasBus: Bool) {
            switch inspection.role {
            case _ where !hasBus: self = .fenced
            case .master:
                self = inspection.isHandingOver ? .makingWay : inspection.isServing ? .master : .elected
            case .candidate: self = .candidate
            case _ where !inspection.hasFullState: self = .blank
            case .newcomer: self = .newcomer
            case .slave: self = inspection.isServing ? .slave : .behind
            }
        }
    }

    /// A write, by its kind.
    enum Write: Int, CaseIterable {
        case promise
        case entry
        case chunk
        case trim
        case everything

        var words: String {
            switch self {
            case .promise: "a promise"
            case .entry: "an entry"
            case .chunk: "a chunk"
            case .trim: "a cut of the log"
            case .everything: "a whole record"
            }
        }

        init(_ change: Persist.Change) {
            switch change {
            case .promise: self = .promise
            case .append: self = .entry
            case .saveChunk: self = .chunk
            case .trim: self = .trim
            case .replaceAll: self = .everything
            }
        }
    }

    /// What is done to a tracker at a bad moment.
    enum Blow: Int, CaseIterable {
        case death
        case pause
        case cut
        case refusal

        var words: String {
            switch self {
            case .death: "death"
            case .pause: "pause"
            case .cut: "loss of the bus"
            case .refusal: "full disk"
            }
        }
    }

    static let failures: [StorageFailure] = [.full, .locked, .readOnly, .broken]
    static let refusals = (UInt8.min...UInt8.max).compactMap { Refusal(rawValue: $0) }

    /// The place of a pair in a table with so many columns.
    static func place(_ row: Int, _ column: Int, of columns: Int) -> Int { row * columns + column }
}

extension Census.Group {
    /// What is counted in the group, in words.
    public var names: [String] {
        let parts = Census.Part.allCases.map { $0.words }
        let faults = Fault.Kind.allCases.map { $0.words }
        switch self {
        case .said, .heard: return Census.messageNames
        case .events: return Census.eventNames
        case .votesRefused: return ["it cannot store", "it has promised a higher epoch"]
        case .joinsRefused: return JoinRefusal.allCases.map { $0.words }
        case .clientsRefused, .visitorsRefused: return Census.refusals.map { "\($0)" }
        case .changes: return ["done", "outdated", "a part is wanted", "refused", "dropped"]
        case .observed: return Census.observationNames
        case .stepDowns: return Census.stepDownNames
        case .turns:
            return parts.flatMap { from in parts.filter { $0 != from }.map { "from \(from) to \($0)" } }
        case .writesFailed:
            return Census.Write.allCases.flatMap { write in
                Census.failures.map { "\(write.words): \($0.words)" }
            }
        case .faultsInRoles: return faults.flatMap { fault in parts.map { "\(fault), \($0)" } }
        case .faultsAtWrites:
            let writes = ["nothing"] + Census.Write.allCases.map { $0.words }
            return faults.flatMap { fault in writes.map { "\(fault), with \($0) on the way" } }
        case .injections:
            return Moment.allCases.flatMap { moment in
                Census.Blow.allCases.map { "\($0.words) when \(moment.words)" }
            }
        case .blows:
            return Census.Blow.allCases.flatMap { blow in parts.map { "\(blow.words) at a bad moment, \($0)" } }
        }
    }
}

extension Census {
    static let messageNames = [
        "KEEPALIVE", "SUSPECT", "ELECTION", "ANSWER", "COORDINATOR", "PREPARE", "OK", "ERROR", "COMMIT", "CONFIRM",
        "CONFIRMED", "FETCH", "ENTRIES", "HELLO", "WELCOME", "REFUSED", "FETCH-CHUNK", "CHUNK", "WELCOME-DONE",
        "FORWARD", "ANSWERED", "HANDOVER", "LEAVE", "REPORT", "ORDER", "ORDERED", "STOP",
    ]

    static let eventNames = [
        "starts", "hears clients", "hears a visitor", "is told of a write", "is told of a write that failed",
        "has its bus", "loses its bus", "reports", "wakes", "is commanded access rules",
        "is commanded torrents", "is commanded one voter more", "is commanded one voter less",
        "is commanded another voter", "is commanded to hand over", "is commanded to elect", "is commanded to stop",
        "is commanded to stop the cluster", "is commanded to empty the swarms", "is commanded a change",
        "is commanded accounts",
    ]

    /// nil for a message, which has counts of its own.
    static func place(of event: Event) -> Int? {
        switch event {
        case .messageReceived: nil
        case .started: 0
        case .datagramsReceived: 1
        case .requestReceived: 2
        case .persisted: 3
        case .persistFailed: 4
        case .busConnected: 5
        case .busLost: 6
        case .reportMade: 7
        case .deadlineReached: 8
        case .commandReceived(let command):
            switch command {
            case .setAccess: 9
            case .setFileTorrents: 10
            case .addMember: 11
            case .removeMember: 12
            case .replaceMember: 13
            case .handOver: 14
            case .elect: 15
            case .drain: 16
            case .stopCluster: 17
            case .emptySwarms: 18
            case .change: 19
            case .setFileAccounts: 20
            }
        }
    }

    static let observationNames = [
        "becomes master", "steps down", "follows", "suspects", "stands", "is fenced", "may not join",
        "differs in settings", "is given a number", "finds a tracker up", "finds a tracker down", "begins a transfer",
        "ends a transfer", "merges", "aborts", "has other voters", "has diverged", "cannot write", "can write again",
        "cannot vote", "can vote again", "stops with the cluster", "begins without swarms", "is drained",
        "has other access rules", "has other torrents", "refuses a command", "drops a command", "ends a change",
        "has accounts of files",
    ]

    static func place(of observation: Observation) -> Int {
        switch observation {
        case .becameMaster: 0
        case .steppedDown: 1
        case .follows: 2
        case .suspects: 3
        case .stands: 4
        case .fenced: 5
        case .joinRefused: 6
        case .settingsDiffer: 7
        case .idAssigned: 8
        case .trackerUp: 9
        case .trackerDown: 10
        case .transferBegan: 11
        case .transferEnded: 12
        case .merged: 13
        case .aborted: 14
        case .membersChanged: 15
        case .diverged: 16
        case .storageFailed: 17
        case .storageRecovered: 18
        case .voteFailed: 19
        case .voteRecovered: 20
        case .stopsWithCluster: 21
        case .swarmsEmptied: 22
        case .drained: 23
        case .accessChanged: 24
        case .registryChanged: 25
        case .commandRefused: 26
        case .commandDropped: 27
        case .changeEnded: 28
        case .fileAccountsSet: 29
        }
    }

    static let stepDownNames = [
        "another has a higher epoch", "no quorum is heard", "its bus is lost", "it is no voter any more",
        "its disk is broken", "it stops", "the operator wants an election", "a higher master has other settings",
    ]

    static func place(of reason: StepDownReason) -> Int {
        switch reason {
        case .superseded: 0
        case .quorumLost: 1
        case .busLost: 2
        case .removed: 3
        case .diskBroken: 4
        case .stopping: 5
        case .asked: 6
        case .otherSettings: 7
        }
    }

    static func place(of outcome: ChangeOutcome) -> Int {
        switch outcome {
        case .done: 0
        case .outdated: 1
        case .partWanted: 2
        case .refused: 3
        case .dropped: 4
        }
    }
}
