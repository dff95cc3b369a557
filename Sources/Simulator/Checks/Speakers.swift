// Who may talk to clients.

import Primitives
import TrackerLogic
import Wire

/// Who may talk to clients: whoever serves, holds the whole state and hears a quorum (rules 3, 7 and 8).
struct Speakers: Sendable {
    /// Detection times after which a master that hears no quorum must have noticed, by however slow a clock.
    private static let deafFor = 3

    /// Whoever talks to clients must be in good standing.
    ///
    /// Who catches up after a welcome answers the announces that it finds decided.
    func check(_ step: borrowing Step, _ before: NodeView, isAnnounce: Bool, _ scene: inout Scene) {
        let view = step.view
        func mayServe(_ view: NodeView) -> Bool {
            (view.isServing || isAnnounce) && view.hasFullState && !view.isFenced
                && (!scene.isGroup || view.leads != nil)
        }
        // With its last entry a tracker may lose its place, and answers those in it.
        let isLast = before.position.index < view.position.index && mayServe(before)
        if !mayServe(view), !isLast {
            let why =
                view.isFenced
                ? "is cut off"
                : !view.hasFullState ? "lacks the state" : !view.isServing ? "does not serve" : "is a slave"
            scene.violate(.silentUnlessServing, at: step.time, "\(scene.name(step.node)) \(why), and replies")
        }
        guard scene.promises.minorityIsSilent, view.leads != nil, scene.members.count > 1 else { return }
        let cluster = scene.nodes[step.node].configuration.cluster
        let limit = cluster.detectionTime * Speakers.deafFor
        // Until lately it was another quorum that it had to hear: an entry that was left by an earlier master changes
        // its voters when it is applied.
        for since in [scene.membersSince, scene.nodes[step.node].votersSince] {
            if let since, step.time - since <= limit { return }
        }
        let heard = heardLately(scene.members, by: step.node, at: step.time, within: limit, scene)
        if heard.count > scene.members.count / 2 { return }
        // The entry that changes the members was decided by those before it, and so are the answers to what is in it.
        let deciders = before.voters
        if deciders != view.voters,
            heardLately(deciders, by: step.node, at: step.time, within: limit, scene).count > deciders.count / 2
        {
            return
        }
        scene.violate(
            .silentUnlessServing, at: step.time,
            "\(scene.name(step.node)) replies as master, and of the members \(scene.members.inBrackets) has heard only "
                + "\(heard.inBrackets) lately")
    }

    private func heardLately(
        _ ids: [UInt32], by node: Int, at time: Instant, within limit: Duration, _ scene: Scene
    ) -> [UInt32] {
        var heard: [UInt32] = []
        for id in ids {
            guard let other = scene.node(withID: id) else { continue }
            if other == node || time - scene.nodes[node].heardAt[other] <= limit { heard.append(id) }
        }
        return heard
    }
}
