// From what a node observes to what the timeline shows.

import Primitives
import TrackerLogic
import Web
import Wire

/// From what a node observes to what the timeline shows: in whose lane it belongs, and what has led to it.
///
/// The node tells what has happened, not why; the causes are what this tracker itself had seen before: whoever stands
/// does so because the master was missed, and that because it had fallen silent.
package struct TransitionRecorder: Sendable {
    /// How long something counts as a cause of what comes after it.
    static let memory = Duration.seconds(60)
    /// Between two commits in the timeline: they are told as a rate.
    static let commitPeriod = Duration.seconds(10)

    /// The last transition of a kind, which may be the cause of the next.
    private struct Last {
        var number: UInt64
        var at: WallTime
    }

    private let log: TransitionLog
    private var id: UInt32
    private var master: UInt32 = 0
    /// Whether the node has said anything yet: a tracker of a cluster begins without a bus.
    private var hasStarted = false
    private var members: [UInt32] = []
    private var suspicion: Last?
    private var candidacy: Last?
    private var mastery: Last?
    private var fault: Last?
    private var transfer: Last?
    private var down: [UInt32: Last] = [:]
    private var faults: [FaultTarget: Last] = [:]
    private var committed: (index: UInt64, at: WallTime)?

    package init(log: TransitionLog, id: UInt32) {
        self.log = log
        self.id = id
    }

    mutating func begins(as id: UInt32) { self.id = id }

    // MARK: - What the node observes

    package mutating func observed(_ observation: Observation, at now: WallTime) {
        defer { hasStarted = true }
        switch observation {
        case .idAssigned(let id):
            self.id = id
            note(.change, "tracker \(id) was given its number by the master", at: now)
        case .suspects(.zero): suspicion = note(.election, "tracker \(id) finds no master", at: now)
        case .suspects(let epoch):
            suspicion = note(
                .election, "tracker \(id) does not hear the master of epoch \(epoch) any more", epoch: epoch,
                causes: [down[master], fault], at: now)
        case .stands(let epoch):
            candidacy = note(
                .vote, "tracker \(id) stands for master in epoch \(epoch)", epoch: epoch, causes: [suspicion], at: now)
        case .becameMaster(let epoch):
            master = id
            mastery = note(
                .master, "tracker \(id) is master of epoch \(epoch)", epoch: epoch, causes: [candidacy], at: now)
        case .steppedDown(let epoch, let reason):
            master = 0
            fault = note(
                .stepDown, "tracker \(id) is master no longer: \(ObservationLine.words(of: reason))", epoch: epoch,
                causes: [fault], at: now)
        case .follows(let master, let epoch):
            if master != self.master {
                mastery = note(
                    .master, "tracker \(master) is master of epoch \(epoch)", in: master, epoch: epoch,
                    causes: [suspicion, candidacy, down[self.master]], at: now)
            }
            self.master = master
            note(
                .follow, "tracker \(id) follows tracker \(master)", epoch: epoch, causes: [mastery], at: now)
        case .fenced where !hasStarted:
            note(.change, "tracker \(id) has started, and waits for the bus", at: now)
        case .fenced:
            master = 0
            fault = note(
                .fault, "tracker \(id) has lost the bus, and answers nobody", causes: [faults[.bus]], at: now)
        case .joinRefused: fault = note(.fault, line(observation), at: now)
        case .settingsDiffer(let other, _): note(.fault, line(observation), in: other, at: now)
        case .trackerUp(let other):
            note(.mended, "tracker \(other) is there", in: other, causes: [down.removeValue(forKey: other)], at: now)
        case .trackerDown(let other):
            let cut = faults[.tracker(other)]
            let last = note(
                .fault, "tracker \(other) has left, or is not heard any more", in: other, causes: [cut], at: now)
            if down.count < 256 || down[other] != nil { down[other] = last }
        case .transferBegan(let source):
            transfer = note(
                .transfer, "tracker \(id) fetches the whole state from tracker \(source)", causes: [fault], at: now)
        case .transferEnded: note(.transfer, "tracker \(id) has the whole state", causes: [transfer], at: now)
        case .merged(let other, _, _): note(.change, "\(line(observation)) (of tracker \(other))", at: now)
        case .membersChanged(let members):
            guard members != self.members else { return }
            self.members = members
            let list = members.map(String.init).joined(separator: ", ")
            note(.change, "the members that vote: \(list)", at: now)
        case .aborted, .diverged: fault = note(.fault, line(observation), at: now)
        case .storageFailed, .voteFailed: fault = note(.fault, line(observation), at: now)
        case .storageRecovered, .voteRecovered: note(.mended, line(observation), causes: [fault], at: now)
        case .stopsWithCluster, .swarmsEmptied, .drained, .accessChanged, .registryChanged, .fileAccountsSet:
            note(.change, line(observation), at: now)
        // What every tracker commands at its start is the master's to carry out; it has told whoever asked.
        case .commandRefused, .commandDropped, .changeEnded: break
        }
    }

    private func line(_ observation: Observation) -> String { ObservationLine(observation, directory: "").message }

    // MARK: - What the console does

    /// This tracker is cut off on purpose, or is so no longer.
    package mutating func cutChanged(_ target: FaultTarget, begins: Bool, at now: WallTime) {
        if begins {
            let last = note(.fault, "tracker \(id) is cut off from \(target.words), on purpose", at: now)
            faults[target] = last
            if target != .peers { fault = last }
        } else {
            note(
                .mended, "tracker \(id) is no longer cut off from \(target.words)",
                causes: [faults.removeValue(forKey: target)], at: now)
        }
    }

    // MARK: - Commits

    /// Takes down how far the log has come; told as a rate, by the master's lane.
    package mutating func reached(_ index: UInt64, at now: WallTime) {
        guard let then = committed else {
            committed = (index, now)
            return
        }
        let span = now.milliseconds - then.at.milliseconds
        guard span < 0 || span >= TransitionRecorder.commitPeriod.wholeMilliseconds else { return }
        committed = (index, now)
        guard index > then.index, span > 0 else { return }
        let count = index - then.index
        log.append(
            Transition(
                at: now, tracker: master == 0 ? id : master, kind: .commit,
                text: "\(count) \(count == 1 ? "entry was" : "entries were") decided in \(span / 1000) s", count: count)
        )
    }

    // MARK: - Noting

    @discardableResult
    private func note(
        _ kind: Transition.Kind, _ text: String, in lane: UInt32? = nil, epoch: Epoch? = nil, causes: [Last?] = [],
        at now: WallTime
    ) -> Last {
        var numbers: [UInt64] = []
        for case let cause? in causes
        where now.milliseconds - cause.at.milliseconds < TransitionRecorder.memory.wholeMilliseconds {
            if !numbers.contains(cause.number) { numbers.append(cause.number) }
        }
        let number = log.append(
            Transition(
                at: now, tracker: lane ?? id, kind: kind, text: text, epoch: epoch == .zero ? nil : epoch,
                causes: numbers.sorted()))
        return Last(number: number, at: now)
    }
}

extension FaultTarget {
    /// For the log and the timeline.
    var words: String {
        switch self {
        case .peers: "the peers"
        case .bus: "the bus"
        case .tracker(let id): "tracker \(id)"
        }
    }
}
