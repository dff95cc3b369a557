// What a tracker may send.

import TrackerLogic

/// What a tracker may send, and what it may hold, at most (docs/bounds.md).
struct Bounds: Sendable {
    /// Messages of one step: one for each tracker of each of a few kinds, and what goes to all.
    private static func maxMessages(nodeCount: Int) -> Int { 4 * nodeCount + 16 }

    func check(_ step: Step, _ effects: Effects, _ scene: inout Scene) {
        let (view, configuration) = (step.view, scene.nodes[step.node].configuration)
        if view.tailCount > max(1, configuration.tailCount) {
            scene.violate(
                .queuesAreBounded, at: step.time,
                "\(scene.name(step.node)) keeps \(view.tailCount) entries, and may keep \(configuration.tailCount)")
        }
        if effects.messages.count > Bounds.maxMessages(nodeCount: scene.nodes.count) {
            scene.violate(
                .queuesAreBounded, at: step.time,
                "\(scene.name(step.node)) sends \(effects.messages.count) messages")
        }
        if view.waitingRequests > configuration.limits.waitingRequests {
            scene.violate(
                .queuesAreBounded, at: step.time, "\(view.waitingRequests) requests wait at \(scene.name(step.node))")
        }
    }
}
