// Requests that a slave has heard and does not send on.

import Primitives
import TrackerLogic
import Wire

/// What a slave that serves has heard it sends on to its master: within the pause between two messages in which it
/// forwards; and in a group, where the master has heard the datagrams, too, what came over HTTP within a quarter of a
/// keepalive.
///
///     nothing new ── a request is booked, and no FORWARD goes out ──► due ── a step, no FORWARD, too late ──► wrong
///          ▲                                                           │
///          └── FORWARD, a connect answered, nobody waits, no service ──┘
struct ForwardWatch: Sendable {
    private struct Seat: Sendable {
        /// Since when something waits to be sent on; nil while nothing does.
        var since: Instant?
        /// Until when the tracker was held last.
        var heldUntil = Instant(nanoseconds: 0)
    }

    /// For the tracker to wake in.
    private static let slack = Duration.milliseconds(25)

    private var seats: [Seat]

    init(nodeCount: Int) { seats = Array(repeating: Seat(), count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { seats[node].since = nil }

    /// A tracker is held until a time, and sees nothing before.
    mutating func held(_ node: Int, until time: Instant) { seats[node].heldUntil = time }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        let since = seats[step.node].since
        guard step.view.isServing, step.view.leads == nil, step.view.waitingRequests > 0 else {
            seats[step.node].since = nil
            return
        }
        let isSent = effects.messages.contains { if case .forward = $0.body { true } else { false } }
        if let since { judge(since, isSent, step, &scene) }
        // Connects it answers itself, at the time at which it would send on the others.
        let isAttended = isSent || effects.replies.datagrams.contains { effects.replies.action(of: $0) == 0 }
        if isAttended {
            seats[step.node].since = nil
        } else if since == nil, before.isServing, before.leads == nil, isBooked(step, before, event, scene) {
            seats[step.node].since = step.time
        }
    }

    /// Whether the event of a step has brought a request that is to be sent on.
    private func isBooked(_ step: borrowing Step, _ before: NodeView, _ event: Event, _ scene: Scene) -> Bool {
        switch event {
        case .requestReceived:
            // Behind a datagram that the master has heard, too, it waits for that one's turn.
            step.view.waitingRequests > (scene.isGroup ? 0 : before.waitingRequests)
                && (!scene.isGroup || before.waitingRequests == 0)
        case .datagramsReceived: !scene.isGroup && step.view.waitingRequests > before.waitingRequests
        case .started, .persisted, .persistFailed, .messageReceived, .deadlineReached, .busConnected, .busLost,
            .commandReceived, .reportMade:
            false
        }
    }

    private func judge(_ since: Instant, _ isSent: Bool, _ step: borrowing Step, _ scene: inout Scene) {
        let cluster = scene.nodes[step.node].configuration.cluster
        let pause = scene.isGroup ? cluster.keepalive / 4 : cluster.forwardPause
        let waited = step.time - max(since, seats[step.node].heldUntil)
        // By a clock that may be slow.
        guard waited > pause * 6 / 5 + ForwardWatch.slack else { return }
        scene.violate(
            .waitingAreAnswered, at: step.time,
            "\(scene.name(step.node)) has kept a request for \(waited.wholeMilliseconds) ms before it "
                + (isSent ? "sent it on" : "sends it on"))
    }
}
