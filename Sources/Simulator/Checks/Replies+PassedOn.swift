// What a slave passes on to its clients.

import Primitives
import TrackerLogic
import Wire

extension Replies {
    /// What a slave tells its clients of a master's answer is that of the master which it follows.
    func checkPassedOn(_ effects: Effects, _ step: Step, _ event: Event, _ scene: inout Scene) {
        guard case .messageReceived(let message) = event, case .answered = message.body,
            message.epoch < scene.nodes[step.node].disk.promised
        else { return }
        // Connects it answers itself, and whoever has waited for too long.
        let isToldOverUDP = effects.replies.datagrams.contains { effects.replies.action(of: $0) != 0 }
        let isToldOverHTTP = effects.answers.contains { $0.content != .failure(.notServing) }
        guard isToldOverUDP || isToldOverHTTP else { return }
        scene.violate(
            .silentUnlessServing, at: step.time,
            "\(scene.name(step.node)) tells its clients what the master of epoch \(message.epoch) has said, and has "
                + "promised a later one")
    }
}
