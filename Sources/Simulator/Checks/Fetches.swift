// States that trackers fetch from each other.

import Primitives
import TrackerLogic
import Wire

/// States that trackers fetch from each other: what has come fits together, it is fetched once, and people are told
/// that it is there (rule 17).
///
///     WELCOME, with a transfer ──► told to have begun ── chunks, the log behind ──► written ──► told to have ended
///
/// - Who asks for entries is sent such as follow what it has.
/// - In one history whatever a master sends fits together, so nobody gives up what it has fetched.
/// - A master that hears that its newcomer is done has nothing to find fault with, where the two are not at one place:
///   then their digests are of different entries. So it does not send the newcomer for the state once more.
/// - Who has begun to fetch has ended when all is well. Left out is who lost its master meanwhile, or could not write:
///   that one begins anew, or goes on by the log.
struct Fetches: Sendable {
    /// When each tracker has told that it fetches; nil where it has told the end, or need not.
    private var begunAt: [Instant?]

    /// As long as all takes that is fetched when all is well.
    private static let patience = Duration.seconds(10)

    init(nodeCount: Int) { begunAt = Array(repeating: nil, count: nodeCount) }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        if step.kind == .fetch || step.kind == .entries || step.kind == .welcomeDone,
            case .messageReceived(let message) = event
        {
            switch message.body {
            case .fetch(let position): checkFollows(position, message.sender, step, effects, &scene)
            case .entries: checkFits(message, step, before, effects, &scene)
            case .welcomeDone(let position, _): checkDone(position, message.sender, step, before, effects, &scene)
            default: break
            }
        }
        note(step, effects)
    }

    /// Who asks for what comes behind a place in its history is sent what follows that.
    private func checkFollows(
        _ position: Position, _ sender: Life, _ step: borrowing Step, _ effects: Effects, _ scene: inout Scene
    ) {
        guard position.chain != Position.anyChain else { return }
        for message in effects.messages {
            guard case .entries(let entries, _) = message.body, case .one(sender) = message.destination,
                let first = entries.first?.header, position.index > 0
            else { continue }
            if first.index == position.index + 1, first.previous == position.chain { continue }
            scene.violate(
                .statesAreFetchedOnce, at: step.time,
                "\(scene.name(step.node)) sends tracker \(sender.id) entry \(first.index), which does not follow "
                    + "what that one has")
        }
    }

    private func checkFits(
        _ message: ClusterMessage, _ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: inout Scene
    ) {
        guard scene.promises.hasOneHistory, begunAt[step.node] != nil, !before.isFenced, step.view.isFenced,
            step.view.position == before.position,
            effects.observations.allSatisfy({ if case .trackerDown = $0 { true } else { false } })
        else { return }
        scene.violate(
            .statesAreFetchedOnce, at: step.time,
            "\(scene.name(step.node)) gives up the state that it has fetched from tracker \(message.sender.id)")
    }

    private func checkDone(
        _ position: Position, _ newcomer: Life, _ step: borrowing Step, _ before: NodeView, _ effects: Effects,
        _ scene: inout Scene
    ) {
        guard before.leads != nil, position != before.position, position != step.view.position else { return }
        for message in effects.messages {
            guard case .welcome(let welcome) = message.body, welcome.needsTransfer,
                case .one(newcomer) = message.destination
            else { continue }
            scene.violate(
                .statesAreFetchedOnce, at: step.time,
                "\(scene.name(step.node)) has tracker \(newcomer.id) fetch the state once more, which has fetched it")
        }
    }

    private mutating func note(_ step: borrowing Step, _ effects: Effects) {
        if step.kind == .started || step.kind == .persistFailed { begunAt[step.node] = nil }
        if begunAt[step.node] != nil, step.view.isFenced { begunAt[step.node] = nil }
        for observation in effects.observations {
            switch observation {
            case .transferBegan: begunAt[step.node] = step.time
            case .transferEnded, .suspects, .stands, .drained: begunAt[step.node] = nil
            default: break
            }
        }
    }

    /// All has been well for a while.
    func finish(at time: Instant, _ scene: inout Scene) {
        for node in begunAt.indices {
            guard let begun = begunAt[node], time - begun > Fetches.patience, let view = scene.nodes[node].view,
                view.isServing, view.hasFullState, view.leads == nil
            else { continue }
            scene.violate(
                .statesAreFetchedOnce, at: time,
                "\(scene.name(node)) has told \((time - begun).wholeMilliseconds) ms ago that it fetches a state, and "
                    + "does not tell that it has")
        }
    }
}
