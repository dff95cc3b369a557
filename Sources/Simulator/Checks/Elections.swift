// Who may stand for master, and how voters change.

import Primitives
import TrackerLogic
import Wire

/// Who may stand for master, and how voters change: not before a quorum misses the master, and at the operator's word.
struct Elections: Sendable {
    /// For each tracker, when it was last told by each other that the master is missed.
    private var suspicionHeardAt: [[Instant?]]
    /// Trackers that the operator has named in a change of the voters.
    private var namedByOperator: [UInt32] = []

    init(nodeCount: Int) {
        suspicionHeardAt = Array(repeating: Array(repeating: nil, count: nodeCount), count: nodeCount)
    }

    /// What a step has to do with elections; `isHeard` is whether the tracker listens to whoever speaks.
    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, isHeard: Bool,
        _ scene: inout Scene
    ) {
        noteSuspicion(event, step, scene)
        if isHeard { checkYields(step, before, event, &scene) }
        for observation in effects.observations {
            if case .stands(let epoch) = observation { checkStands(epoch, step, before, event, &scene) }
        }
    }

    private mutating func noteSuspicion(_ event: Event, _ step: borrowing Step, _ scene: Scene) {
        guard step.kind == .suspect || step.kind == .started || step.kind == .command else { return }
        switch event {
        case .messageReceived(let message):
            guard case .suspect = message.body, let sender = scene.node(withID: message.sender.id) else { return }
            suspicionHeardAt[step.node][sender] = step.time
        case .started:
            for node in scene.nodes.indices { suspicionHeardAt[step.node][node] = nil }
        case .commandReceived(.addMember(let id)), .commandReceived(.removeMember(let id)):
            namedByOperator.append(id)
        case .commandReceived(.replaceMember(let id, let other)): namedByOperator += [id, other]
        default: break
        }
    }

    /// A master that is asked for its state by a higher one is heard by that one, and makes way at once (survivor
    /// mode).
    ///
    /// Who was told other settings, or shares its number, is not heeded, nor while a late word of an earlier life has
    /// the number.
    private func checkYields(_ step: borrowing Step, _ before: NodeView, _ event: Event, _ scene: inout Scene) {
        guard step.kind == .fetchChunk, !scene.promises.hasOneHistory, let own = before.leads, step.view.leads == own,
            case .messageReceived(let message) = event, case .fetchChunk = message.body,
            message.destination == .one(before.life), !before.isFenced,
            message.epoch > own, message.epoch.id == message.sender.id,
            let sender = scene.node(of: message.sender), scene.nodes[sender].view?.leads == message.epoch,
            scene.nodes.count(where: { $0.id == message.sender.id || $0.id == before.life.id }) == 2,
            scene.nodes[sender].configuration.cluster == scene.nodes[step.node].configuration.cluster,
            message.epoch.round < own.round + NumberBounds.roundStep
        else { return }
        scene.violate(
            .lowerMasterYields, at: step.time,
            "\(scene.name(step.node)) is asked for its state by \(scene.name(sender)), the master of \(message.epoch), "
                + "and goes on as master of \(own)")
    }

    /// Nobody stands before a quorum misses the master, unless he is master, or is handed the role.
    private mutating func checkStands(
        _ epoch: Epoch, _ step: borrowing Step, _ before: NodeView, _ event: Event, _ scene: inout Scene
    ) {
        if step.isReal, let leads = before.leads, case .messageReceived(let message) = event,
            case .error = message.body,
            message.epoch <= leads
        {
            scene.violate(
                .electionsAreNeeded, at: step.time,
                "\(scene.name(step.node)) leads epoch \(leads), and stands anew for a refusal of epoch "
                    + "\(message.epoch)")
        }
        guard scene.promises.membersDecide, before.leads == nil else { return }
        let cluster = scene.nodes[step.node].configuration.cluster
        if case .messageReceived(let message) = event, case .handover = message.body {
            guard step.isReal, !before.hasFullState || !before.voters.contains(before.life.id) else { return }
            return scene.violate(
                .electionsAreNeeded, at: step.time,
                "\(scene.name(step.node)) stands for epoch \(epoch), as it is handed the role, and has no vote")
        }
        // Clocks run at their own pace, and what was heard while it was held counts from then on.
        let limit = cluster.detectionTime * 2
        let suspecters = scene.nodes.indices.filter { node in
            node == step.node || suspicionHeardAt[step.node][node].map { step.time - $0 <= limit } == true
        }
        let ids = suspecters.map { scene.nodes[$0].id }
        let isQuorum = [scene.members, before.voters, step.view.voters].contains { voters in
            ids.count(where: voters.contains) > voters.count / 2
        }
        guard !isQuorum else { return }
        scene.violate(
            .electionsAreNeeded, at: step.time,
            "\(scene.name(step.node)) stands for epoch \(epoch), and of the members \(scene.members.inBrackets) only "
                + "\(ids.inBrackets) miss the master")
    }

    /// Voters change one at a time, so that majorities overlap, and only at the operator's word.
    mutating func checkMembers(_ ids: [UInt32], _ step: borrowing Step, _ scene: inout Scene) {
        let changed = ids.filter { !scene.members.contains($0) } + scene.members.filter { !ids.contains($0) }
        if changed.count > 1 {
            scene.violate(
                .votersAreChosen, at: step.time,
                "the voters change from \(scene.members.inBrackets) to \(ids.inBrackets) at once")
        }
        if let other = changed.first(where: { !namedByOperator.contains($0) }) {
            scene.violate(
                .votersAreChosen, at: step.time,
                "the voters change from \(scene.members.inBrackets) to \(ids.inBrackets), and no operator has named "
                    + "\(other)"
            )
        }
    }
}
