// Questions that are asked again and again.

import Primitives
import TrackerLogic
import Wire

/// What is said again, for it may be lost, is said again after a pause: the same question leaves a tracker once in a
/// quarter of a keepalive at most, by its own clock.
///
/// Each answer is a step of whoever asked, and in each step he looks whether to ask again: without a pause they would
/// ask as fast as messages go.
struct Repeats: Sendable {
    private enum Question: Sendable, Hashable {
        /// For promises.
        case election(Epoch)
        /// Whether a master is one still.
        case confirm(Epoch, UInt64)
    }

    private struct Asked: Sendable {
        var question: Question
        var at: Instant
    }

    private static let count = 8

    /// By tracker: its last questions in this life.
    private var asked: [[Asked]]

    init(nodeCount: Int) { asked = Array(repeating: [], count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { asked[node] = [] }

    private func question(_ message: ClusterMessage) -> Question? {
        switch message.body {
        case .election: .election(message.epoch)
        case .confirm(let round): .confirm(message.epoch, round)
        case .keepalive, .suspect, .answer, .coordinator, .prepare, .ok, .error, .commit, .confirmed, .fetch, .entries,
            .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward, .answered, .handover, .leave,
            .stop,
            .report, .order, .ordered:
            nil
        }
    }

    /// A tracker sends a message.
    mutating func check(_ message: ClusterMessage, _ step: borrowing Step, _ scene: inout Scene) {
        guard let question = question(message), let now = scene.nodes[step.node].monotonic else { return }
        guard let place = asked[step.node].firstIndex(where: { $0.question == question }) else {
            if asked[step.node].count == Repeats.count { asked[step.node].removeFirst() }
            return asked[step.node].append(Asked(question: question, at: now))
        }
        let pause = now - asked[step.node][place].at
        asked[step.node][place].at = now
        guard pause < scene.nodes[step.node].configuration.cluster.keepalive / 4 else { return }
        scene.violate(
            .repeatsArePaced, at: step.time,
            "\(scene.name(step.node)) says \(message.body.name) again after \(pause.wholeMilliseconds) ms")
    }
}
