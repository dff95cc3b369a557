// What a tracker may send.

import TrackerLogic

/// What a tracker may send, and what it may hold, at most (docs/bounds.md).
struct Bounds: Sendable {
    /// Messages of one step: one for each tracker of each of a few kinds, and what goes to all.
    private static func maxMessages(nodeCount: Int) -> Int { 4 * nodeCount + 16 }

    /// Chunks of a snapshot in one step.
    private static let maxChunks = 8

    private var talk: Talk

    init(nodeCount: Int) { talk = Talk(nodeCount: nodeCount) }

    mutating func check(_ step: borrowing Step, _ event: Event, _ effects: Effects, _ scene: inout Scene) {
        if !effects.messages.isEmpty { talk.check(step, event, effects, &scene) }
        let view = step.view
        if view.tailCount > max(1, scene.nodes[step.node].configuration.tailCount) {
            scene.violate(
                .queuesAreBounded, at: step.time,
                "\(scene.name(step.node)) keeps \(view.tailCount) entries, and may keep "
                    + "\(scene.nodes[step.node].configuration.tailCount)")
        }
        if effects.messages.count > Bounds.maxMessages(nodeCount: scene.nodes.count) {
            scene.violate(
                .queuesAreBounded, at: step.time,
                "\(scene.name(step.node)) sends \(effects.messages.count) messages")
        }
        // Of a state that was fetched all chunks are written at once.
        let isFetched = effects.observations.contains { if case .transferEnded = $0 { true } else { false } }
        let chunks = effects.persists.count { if case .saveChunk = $0.change { true } else { false } }
        if chunks > Bounds.maxChunks, !isFetched {
            scene.violate(
                .queuesAreBounded, at: step.time, "\(scene.name(step.node)) writes \(chunks) chunks at once")
        }
        if view.waitingRequests > scene.nodes[step.node].configuration.limits.waitingRequests {
            scene.violate(
                .queuesAreBounded, at: step.time, "\(view.waitingRequests) requests wait at \(scene.name(step.node))")
        }
    }
}
