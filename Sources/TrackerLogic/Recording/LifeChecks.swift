// What a tracker in service looks at after each step: promises that are cheap to check.

import Primitives
import Wire

/// What a tracker in service looks at after each step: promises that are cheap to check.
///
/// No fault of others may break them: where one is broken, this program has a mistake, and its recording tells of it.
///
/// - No two lives lead in one epoch (rule 1), as far as this tracker hears them.
/// - In quorum mode there is one history: whoever says that it has applied an entry has applied the one that this
///   tracker has applied.
/// - In quorum mode what is applied stays: the index never goes back, but where a whole state is fetched.
///
/// The simulator checks far more, with all trackers before its eyes; this is what one can see, and pay for.
public struct LifeChecks: Sendable {
    /// A promise that is broken.
    public enum Broken: Sendable, Hashable {
        case twoMasters(Epoch, UInt32, UInt32)
        case historiesDiffer(index: UInt64, UInt32)
        case wentBack(from: UInt64, to: UInt64)

        /// A sentence without its end.
        public var text: String {
            switch self {
            case .twoMasters(let epoch, let one, let other):
                "two trackers lead in epoch \(epoch): \(one) and \(other == one ? "another life of it" : "\(other)")"
            case .historiesDiffer(let index, let other):
                "tracker \(other) has applied another entry \(index) than this one"
            case .wentBack(let from, let to): "this tracker had applied \(from) entries, and now has \(to)"
            }
        }
    }

    /// Epochs whose masters are remembered.
    static let maxEpochs = 16

    private var masters: [(epoch: Epoch, life: Life)] = []
    private var index: UInt64?

    /// Nothing was seen yet.
    public init() {}

    /// Looks at a tracker after a step.
    ///
    /// - Parameters:
    ///   - node: after it.
    ///   - event: what it was about.
    ///   - effects: what came of it.
    /// - Returns: what is broken; nil where all is as it should be.
    /// - Complexity: some comparisons; of messages, a look into the log.
    public mutating func check(_ node: TrackerNode, after event: Event, _ effects: Effects) -> Broken? {
        let before = index
        index = node.state.index
        // A side of a partition may take over a shorter history.
        if let before, before > node.state.index, node.isQuorumMode || !node.policy.hasBus, !effects.takesOver {
            return .wentBack(from: before, to: node.state.index)
        }
        if node.phase == .master, let broken = note(node.promise.incarnation, node.admission.id, node.candidate.epoch) {
            return broken
        }
        guard case .messageReceived(let message) = event else { return nil }
        if message.isOfMaster,
            let broken = note(message.sender.incarnation, message.sender.id, message.epoch)
        {
            return broken
        }
        guard node.isQuorumMode, let position = message.applied,
            let own = node.log.chain(at: position.index, applied: node.state.position), own != position.chain,
            position.index > 0
        else { return nil }
        return .historiesDiffer(index: position.index, message.sender.id)
    }

    /// Somebody leads.
    private mutating func note(_ incarnation: UInt64, _ id: UInt32, _ epoch: Epoch) -> Broken? {
        if let known = masters.last(where: { $0.epoch == epoch }) {
            guard known.life.incarnation != incarnation else { return nil }
            return .twoMasters(epoch, known.life.id, id)
        }
        if masters.count == LifeChecks.maxEpochs { masters.removeFirst() }
        masters.append((epoch, Life(id: id, incarnation: incarnation)))
        return nil
    }
}

extension TrackerNode {
    /// `LifeChecks.check` of this tracker, which is not copied for it.
    @inline(__always)
    public func check(by checks: inout LifeChecks, after event: Event, _ effects: Effects) -> LifeChecks.Broken? {
        checks.check(self, after: event, effects)
    }
}

extension Effects {
    /// Whether a whole state takes the place of what was there.
    fileprivate var takesOver: Bool {
        observations.contains {
            switch $0 {
            case .transferBegan, .transferEnded, .diverged: true
            case .becameMaster, .steppedDown, .follows, .suspects, .stands, .fenced, .joinRefused, .settingsDiffer,
                .idAssigned, .trackerUp, .trackerDown, .merged, .aborted, .membersChanged, .storageFailed,
                .storageRecovered, .voteFailed, .voteRecovered, .stopsWithCluster, .swarmsEmptied, .drained,
                .accessChanged, .registryChanged, .commandRefused, .commandDropped, .changeEnded, .fileAccountsSet:
                false
            }
        }
    }
}

extension ClusterMessage {
    /// Whether only a master says this, in the epoch that it leads.
    fileprivate var isOfMaster: Bool {
        switch body {
        case .prepare, .commit, .coordinator: true
        case .keepalive(let keepalive): keepalive.role == .master
        case .suspect, .election, .answer, .ok, .error, .confirm, .confirmed, .fetch, .entries, .hello, .welcome,
            .refused, .fetchChunk, .chunk, .welcomeDone, .forward, .answered, .handover, .leave, .stop, .report,
            .order, .ordered:
            false
        }
    }

    /// What its sender says it has applied; nil where it says nothing of it.
    fileprivate var applied: Position? {
        switch body {
        case .keepalive(let keepalive) where keepalive.hasFullState: keepalive.position
        case .commit(let position), .coordinator(let position): position
        case .keepalive, .prepare, .suspect, .election, .answer, .ok, .error, .confirm, .confirmed, .fetch, .entries,
            .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward, .answered, .handover, .leave,
            .stop, .report, .order, .ordered:
            nil
        }
    }
}
