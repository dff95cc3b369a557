// Whether a master waits for silent voters, and slaves say again what may have been lost.

import Primitives
import TrackerLogic
import Wire

/// What trackers do when nothing comes: a master of the policy `all` drops a voter that is there and does not vote, not
/// before its five seconds are over (docs/protocol.md); and a slave whose clients wait tells its master of them again.
struct Drops: Sendable {
    /// For so long a voter that is there may hold all up.
    private static let voteTime = Duration.seconds(5)

    private struct Seat: Sendable {
        /// When it has last proposed something, as master, by its own clock.
        var proposedAt: Instant?
        /// When it last told its master of requests, or something came of them, or it was not in service.
        var forwardedAt = Instant(nanoseconds: 0)
    }

    private var seats: [Seat]

    init(nodeCount: Int) { seats = Array(repeating: Seat(), count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { seats[node].proposedAt = nil }

    /// Since when a slave may have told its master again of those who wait.
    func forwardedAt(_ node: Int) -> Instant { seats[node].forwardedAt }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: inout Scene
    ) {
        let node = step.node
        let isInService = step.view.isServing && step.view.leads == nil && before.waitingRequests > 0
        if !isInService || !effects.replies.isEmpty || !effects.answers.isEmpty || !step.applied.isEmpty
            || effects.messages.contains(where: { if case .forward = $0.body { true } else { false } })
            || Numbers.follows(effects)
        {
            seats[node].forwardedAt = step.time
        }
        // Who was told something else drops them in its own time.
        guard scene.promises.allDecide, case .allDropped = scene.configurations[node].cluster.vote,
            scene.nodes[node].configuration.cluster.vote == scene.configurations[node].cluster.vote
        else { return }
        if let epoch = before.leads, step.view.leads == epoch, before.voters != step.view.voters {
            checkDropped(step, before, effects, &scene)
        }
        guard step.view.leads != nil else { return }
        let isProposed = effects.messages.contains {
            if case .prepare = $0.body { $0.destination == .all } else { false }
        }
        if isProposed { seats[node].proposedAt = scene.nodes[node].monotonic }
    }

    /// Of a master's voters one is missing, and it is not that it has fallen silent, or has said something just now.
    private func checkDropped(
        _ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: inout Scene
    ) {
        // Who has been merged has no vote before it holds all.
        guard step.kind == .deadline, !Merges.isMerged(effects),
            let clock = scene.nodes[step.node].monotonic
        else { return }
        for id in before.voters where !step.view.voters.contains(id) {
            let waited = seats[step.node].proposedAt.map { clock - $0 } ?? .zero
            guard !effects.observations.contains(.trackerDown(id)), waited < Drops.voteTime else { continue }
            scene.violate(
                .quorumDecides, at: step.time,
                "\(scene.name(step.node)) does without tracker \(id), which is there and has not voted for "
                    + "\(waited.wholeMilliseconds) ms")
        }
    }
}
