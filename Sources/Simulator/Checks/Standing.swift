// Who a tracker is, and what it says of itself.

import Primitives
import TrackerLogic
import Wire

/// Who a tracker is, and what it says of itself: its number, its part, whether it may take what it has for all that
/// there is, and whether it says again what may have been lost.
struct Standing: Sendable {
    private var numbers: Numbers
    private var hellos: Hellos
    private var offices: Offices
    private var survivors: Survivors
    private(set) var drops: Drops

    init(nodeCount: Int) {
        numbers = Numbers(nodeCount: nodeCount)
        hellos = Hellos(nodeCount: nodeCount)
        offices = Offices(nodeCount: nodeCount)
        survivors = Survivors(nodeCount: nodeCount)
        drops = Drops(nodeCount: nodeCount)
    }

    /// A life begins.
    mutating func began(_ node: Int) {
        numbers.began(node)
        offices.began(node)
        survivors.began(node)
        drops.began(node)
    }

    /// A tracker is about to take a step; most steps are words of others.
    mutating func hear(_ event: Event, _ node: Int, at time: Instant, _ promises: Promises) {
        guard !promises.membersDecide, case .messageReceived(let message) = event else { return }
        survivors.hear(message, node, at: time)
    }

    /// Whether a tracker listens to whoever speaks, as far as it has told whom it takes for up.
    func hears(_ event: Event, _ node: Int) -> Bool {
        guard case .messageReceived(let message) = event else { return true }
        return survivors.hears(message.sender, node)
    }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        guard step.isReal else { return }
        // Whom it hears in this step it may have taken for up in it.
        survivors.check(step, event, effects, &scene)
        let isHeard = step.kind != .refused || hears(event, step.node)
        numbers.check(step, before, event, effects, isHeard: isHeard, &scene)
        hellos.check(step, before, event, effects, &scene)
        offices.check(step, before, event, effects, &scene)
        drops.check(step, before, effects, &scene)
    }
}
