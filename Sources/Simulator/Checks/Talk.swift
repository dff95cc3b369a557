// How often trackers say the same to each other.

import Primitives
import TrackerLogic
import Wire

/// How often trackers say the same to each other: not as fast as messages go.
///
/// Whoever asks for what another cannot give, or tells a master what that one tells it, would be answered at once, and
/// ask again: two trackers that do so have nothing else to do any more. So there is a pause between two questions that
/// are alike, a quarter of a keepalive; what comes for another reason (an answer of each voter, an entry that does not
/// fit) comes between them, and so the bound is a few times as much.
///
/// Counted is, for each two trackers and in the time of a keepalive: HELLO, and what a master says to another by
/// KEEPALIVE; at one moment once, for whoever was held hears much at one. A slave answers so to each word of a master
/// that has been deposed; and a candidate asks for entries with each answer that comes, also where it is one that it
/// has had.
///
/// Not counted is what a master answers to ELECTION and to SUSPECT, once to each that it hears: those are said by the
/// clock of who says them, with pauses of their own, however many of them come at one time.
struct Talk: Sendable {
    /// In the time of a keepalive, of each kind.
    private static let most = 24

    /// From one tracker to another.
    private struct Line: Sendable {
        var since = Instant(nanoseconds: 0)
        /// When something was counted last.
        var at = Instant(nanoseconds: 0)
        var hellos = 0
        var keepalives = 0
    }

    private let nodeCount: Int
    /// By sender, then receiver.
    private var lines: [Line]

    init(nodeCount: Int) {
        self.nodeCount = nodeCount
        lines = Array(repeating: Line(), count: nodeCount * nodeCount)
    }

    /// A tracker has said something.
    mutating func check(_ step: borrowing Step, _ event: Event, _ effects: Effects, _ scene: inout Scene) {
        for message in effects.messages {
            guard case .one(let life) = message.destination else { continue }
            switch message.body {
            case .hello: break
            case .keepalive where step.view.leads != nil && !Talk.isCall(event, of: life): break
            default: continue
            }
            guard let receiver = scene.node(withID: life.id), receiver != step.node else { continue }
            note(message.body, to: receiver, step, &scene)
        }
    }

    /// Whether a life is heard to stand, or to miss its master.
    private static func isCall(_ event: Event, of life: Life) -> Bool {
        guard case .messageReceived(let message) = event, message.sender == life else { return false }
        switch message.body {
        case .election, .suspect: return true
        default: return false
        }
    }

    private mutating func note(
        _ body: ClusterMessage.Body, to receiver: Int, _ step: borrowing Step, _ scene: inout Scene
    ) {
        let place = step.node * nodeCount + receiver
        if step.time - lines[place].since >= scene.nodes[step.node].configuration.cluster.keepalive {
            lines[place] = Line(since: step.time)
        }
        guard lines[place].at < step.time else { return }
        lines[place].at = step.time
        var count = 0
        switch body {
        case .hello:
            lines[place].hellos += 1
            count = lines[place].hellos
        default:
            lines[place].keepalives += 1
            count = lines[place].keepalives
        }
        guard count > Talk.most else { return }
        scene.violate(
            .talkIsBounded, at: step.time,
            "\(scene.name(step.node)) says \(body.name) to \(scene.name(receiver)) for time \(count) within "
                + "\((step.time - lines[place].since).wholeMilliseconds) ms")
    }
}
