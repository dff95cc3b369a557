// What a tracker tells of the part that it plays.

import Primitives
import TrackerLogic
import Wire

/// What a tracker tells of the part that it plays: the role in its keepalives, that it is master no more and why, and
/// that it is gone.
///
///     takes part ── says LEAVE ──► gone: says nothing more in this life, but LEAVE where its disk breaks then
struct Offices: Sendable {
    private struct Seat: Sendable {
        var hasLeft = false
        /// When it was asked to stop, by its own clock; nil where all are to stop, for then it waits for the others.
        var stopAskedAt: Instant?
        /// Lives that it has found to be told what keeps them apart, and when they last said what they were told.
        var unlike: [(life: Life, heardAt: Instant)] = []
    }

    private var seats: [Seat]

    init(nodeCount: Int) { seats = Array(repeating: Seat(), count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { seats[node] = Seat() }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        if !effects.messages.isEmpty { checkMessages(step, before, effects, &scene) }
        guard !scene.promises.diskDecides else { return }
        if let epoch = before.leads, step.view.leads != epoch { checkResigned(epoch, step, effects, &scene) }
        for observation in effects.observations {
            switch observation {
            case .steppedDown(let epoch, let reason):
                guard !isJustified(reason, epoch, step, before, event, effects) else { break }
                scene.violate(
                    .peopleAreTold, at: step.time,
                    "\(scene.name(step.node)) says that it is master of \(epoch) no more: \(reason.words), which is "
                        + "not so")
            case .settingsDiffer(_, let settings): noteUnlike(settings, event, step)
            case .trackerUp(let id): checkHeard(id, event, step, &scene)
            case .stopsWithCluster: seats[step.node].stopAskedAt = nil
            default: break
            }
        }
        if step.kind == .command, event == .commandReceived(.drain), seats[step.node].stopAskedAt == nil {
            seats[step.node].stopAskedAt = scene.nodes[step.node].monotonic
        }
        if !seats[step.node].unlike.isEmpty, case .messageReceived(let message) = event, message.isFor(before.life) {
            noteWord(message, step)
        }
    }

    // MARK: - Messages

    private mutating func checkMessages(
        _ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: inout Scene
    ) {
        if scene.promises.diskDecides {
            return scene.violate(
                .silentUnlessServing, at: step.time,
                "\(scene.name(step.node)) has no bus, and wants \(effects.messages.count) messages sent")
        }
        if seats[step.node].hasLeft, let other = effects.messages.first(where: { $0.body != .leave }) {
            scene.violate(
                .stopEnds, at: step.time,
                "\(scene.name(step.node)) has said that it is gone, and says \(other.body.name)")
        }
        for message in effects.messages {
            switch message.body {
            case .keepalive(let keepalive):
                // Who is elected while it stops is master for a moment.
                guard !Offices.resigns(effects), let fault = fault(in: keepalive, of: message.epoch, step, before)
                else { break }
                scene.violate(.statusIsTrue, at: step.time, "\(scene.name(step.node)) says that it is \(fault)")
            case .leave:
                seats[step.node].hasLeft = true
                checkLeft(step, before, effects, &scene)
            default: break
            }
        }
    }

    /// What is wrong with the role that a tracker tells; nil where it is right.
    private func fault(in keepalive: Keepalive, of epoch: Epoch, _ step: borrowing Step, _ before: NodeView) -> String?
    {
        switch keepalive.role {
        case .slave where !keepalive.hasFullState: "a slave, and that it does not hold the whole state"
        case .master where before.leads != epoch && step.view.leads != epoch: "master of \(epoch), and is not"
        case .newcomer, .slave, .candidate:
            before.leads != nil && before.leads == step.view.leads ? "none, and is master" : nil
        case .master: nil
        }
    }

    // MARK: - Leaving

    /// Who is asked to stop, and is no master, does not go before its time while somebody waits.
    private func checkLeft(_ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: inout Scene) {
        guard let since = seats[step.node].stopAskedAt, let clock = scene.nodes[step.node].monotonic,
            before.leads == nil, !Offices.resigns(effects), step.timedOut == 0, step.withheld == 0,
            step.applied.isEmpty, effects.replies.isEmpty, !scene.isGroup, !Scene.failsNow(effects),
            !Checks.isTransfer(effects)
        else { return }
        let answered = effects.answers.count { $0.content != .failure(.notServing) }
        let undone = before.waitingRequests - answered
        let patience = scene.nodes[step.node].configuration.cluster.detectionTime * 2
        guard undone > 0, clock - since < patience else { return }
        scene.violate(
            .requestsAreKept, at: step.time,
            "\(scene.name(step.node)) stops \((clock - since).wholeMilliseconds) ms after it was asked to, and "
                + "\(undone) requests wait")
    }

    /// Whether a tracker that is master, if only since this step, is none any more.
    private static func resigns(_ effects: Effects) -> Bool {
        effects.observations.contains { if case .steppedDown = $0 { true } else { false } }
    }

    // MARK: - Stepping down

    private func checkResigned(_ epoch: Epoch, _ step: borrowing Step, _ effects: Effects, _ scene: inout Scene) {
        let isTold = effects.observations.contains {
            if case .steppedDown(epoch, _) = $0 { true } else { false }
        }
        guard !isTold else { return }
        scene.violate(
            .peopleAreTold, at: step.time,
            "\(scene.name(step.node)) is master of \(epoch) no more, and nobody is told")
    }

    /// Whether a reason to be master no more is one.
    private func isJustified(
        _ reason: StepDownReason, _ epoch: Epoch, _ step: borrowing Step, _ before: NodeView, _ event: Event,
        _ effects: Effects
    ) -> Bool {
        switch reason {
        case .superseded(let other): other > epoch || isTwin(epoch, before, event)
        case .quorumLost: !step.view.voters.isEmpty
        case .busLost: event == .busLost
        case .removed: !step.view.voters.contains(step.view.life.id)
        case .diskBroken: Scene.failsNow(effects)
        case .stopping: effects.messages.contains { $0.body == .leave }
        case .asked: event == .commandReceived(.elect)
        case .otherSettings(let id):
            if case .messageReceived(let message) = event { message.sender.id == id } else { false }
        }
    }

    /// Whether another life has the number of a master, and the better right to it.
    private func isTwin(_ epoch: Epoch, _ before: NodeView, _ event: Event) -> Bool {
        guard case .messageReceived(let message) = event, case .keepalive(let keepalive) = message.body,
            message.sender.id == before.life.id
        else { return false }
        return keepalive.role == .slave
            || keepalive.role == .master && Numbers.isLower(epoch, before.life, than: message)
    }

    // MARK: - Unlike ones

    private mutating func noteUnlike(_ settings: [SharedSetting], _ event: Event, _ step: borrowing Step) {
        guard case .messageReceived(let message) = event else { return }
        seats[step.node].unlike.removeAll { $0.life.id == message.sender.id }
        guard settings.contains(where: { $0.isBinding && $0 != .members }) else { return }
        seats[step.node].unlike.append((message.sender, step.time))
    }

    /// A tracker that was found unlike says again what it was told; another life of its id takes its place.
    private mutating func noteWord(_ message: ClusterMessage, _ step: borrowing Step) {
        switch message.body {
        case .keepalive, .hello: break
        default: return
        }
        for place in seats[step.node].unlike.indices where seats[step.node].unlike[place].life.id == message.sender.id {
            if seats[step.node].unlike[place].life != message.sender {
                seats[step.node].unlike.remove(at: place)
            } else {
                seats[step.node].unlike[place].heardAt = step.time
            }
            return
        }
    }

    /// Who was told what keeps it apart is not heard, but for what it was told.
    private func checkHeard(_ id: UInt32, _ event: Event, _ step: borrowing Step, _ scene: inout Scene) {
        guard !seats[step.node].unlike.isEmpty, case .messageReceived(let message) = event else { return }
        switch message.body {
        case .keepalive, .hello, .refused: return
        default: break
        }
        let patience = scene.nodes[step.node].configuration.cluster.detectionTime * 3
        let isUnlike = seats[step.node].unlike.contains {
            $0.life == message.sender && $0.life.id == id && step.time - $0.heardAt < patience
        }
        guard isUnlike else { return }
        scene.violate(
            .unlikeAreToldApart, at: step.time,
            "\(scene.name(step.node)) heeds tracker \(id), and has said that it was told other settings")
    }
}
