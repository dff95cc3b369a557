// Who takes what it has for the whole state, because nobody else is there.

import Primitives
import TrackerLogic
import Wire

/// The last one left (survivor mode), which does not hold the whole state, makes do with what it has: not before it has
/// missed its master for another detection time, and not beside somebody who says that he holds all of it.
///
///     fetches the state ── misses its master ── for a detection time, and nobody with more is heard ──► makes do
///           └── the state is there, or a master lets it in anew ──► of no account
///
/// Only its own clock counts, and only what it heard: while one life of a number is up there, no other is heard. (What
/// an earlier life had sent came late, and has taken the number of one who was silent.)
struct Survivors: Sendable {
    private struct Seat: Sendable {
        /// Whether no master has let it in since it began to fetch the state, or since it began to live.
        var isIncomplete = true
        /// Since when it misses its master, by its own clock.
        var suspectsSince: Instant?
        /// Who has last said that he holds the whole state, and when.
        var whole: Life?
        var heardAt = Instant(nanoseconds: 0)
        /// Whom it takes for up, one life a number.
        var up: [Life] = []

        func hears(_ life: Life) -> Bool { !up.contains { $0.id == life.id && $0 != life } }
    }

    private var seats: [Seat]

    init(nodeCount: Int) { seats = Array(repeating: Seat(), count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { seats[node] = Seat() }

    /// Whether a tracker takes no other life of that number for up, as far as it has told.
    func hears(_ life: Life, _ node: Int) -> Bool { seats[node].hears(life) }

    /// A tracker hears a word; costs little, for there are many.
    @inline(__always)
    mutating func hear(_ message: ClusterMessage, _ node: Int, at time: Instant) {
        guard message.destination == .all else { return }
        switch message.body {
        case .keepalive(let keepalive) where keepalive.hasFullState:
            // Who has this one's own number, or promises what is not to be believed, is not heard.
            guard seats[node].up.contains(message.sender) else { break }
            (seats[node].whole, seats[node].heardAt) = (message.sender, time)
        case .keepalive: if seats[node].whole == message.sender { seats[node].whole = nil }
        case .leave: if seats[node].whole == message.sender { seats[node].whole = nil }
        default: break
        }
    }

    mutating func check(_ step: borrowing Step, _ event: Event, _ effects: Effects, _ scene: inout Scene) {
        noteUp(step, event, effects)
        guard !scene.promises.membersDecide else { return }
        let node = step.node
        // To follow comes before what it leads to: it may be whole by what it is told of the log.
        for observation in effects.observations {
            switch observation {
            case .transferBegan: seats[node].isIncomplete = true
            case .follows:
                seats[node].isIncomplete = false
                seats[node].suspectsSince = nil
            case .suspects: seats[node].suspectsSince = scene.nodes[node].monotonic
            default: break
            }
        }
        for persist in effects.persists {
            switch persist.change {
            case .promise(let promise):
                guard promise.hasFullState else { break }
                // What is asked to be written already is in all promises that come after it.
                if !Numbers.follows(effects) { checkWhole(step, &scene) }
                seats[node].isIncomplete = false
            // What was fetched is all there.
            case .replaceAll: seats[node].isIncomplete = false
            case .append, .saveChunk, .trim: break
            }
        }
    }

    /// Notes whom a tracker takes for up, in either mode.
    private mutating func noteUp(_ step: borrowing Step, _ event: Event, _ effects: Effects) {
        let node = step.node
        if step.kind == .busLost { (seats[node].whole, seats[node].up) = (nil, []) }
        for observation in effects.observations {
            switch observation {
            case .trackerUp(let id): appeared(id, step, event)
            // What has come since may have been of another life.
            case .trackerDown(let id):
                if seats[node].whole?.id == id { seats[node].whole = nil }
                seats[node].up.removeAll { $0.id == id }
            default: break
            }
        }
    }

    /// A tracker takes the life for up that it hears in this step, and its word counts.
    private mutating func appeared(_ id: UInt32, _ step: borrowing Step, _ event: Event) {
        guard case .messageReceived(let message) = event, message.sender.id == id else { return }
        seats[step.node].up.removeAll { $0.id == id }
        seats[step.node].up.append(message.sender)
        hear(message, step.node, at: step.time)
    }

    /// A tracker writes down that it holds the whole state.
    private func checkWhole(_ step: borrowing Step, _ scene: inout Scene) {
        let (node, record) = (step.node, scene.nodes[step.node])
        guard seats[node].isIncomplete, record.disk.promise?.hasFullState == false, let clock = record.monotonic else {
            return
        }
        let detectionTime = record.configuration.cluster.detectionTime
        let missed = seats[node].suspectsSince.map { clock - $0 }
        if missed.map({ $0 < detectionTime }) ?? true {
            scene.violate(
                .survivorsHaveAll, at: step.time,
                "\(scene.name(node)) takes what it has for the whole state, and has missed its master for "
                    + "\(missed?.wholeMilliseconds ?? 0) ms")
        }
        guard let whole = seats[node].whole, step.time - seats[node].heardAt < detectionTime / 2,
            // What comes in this step is heard after that.
            seats[node].heardAt < step.time,
            let other = scene.node(of: whole), other != node,
            scene.nodes[other].configuration.cluster == record.configuration.cluster
        else { return }
        scene.violate(
            .survivorsHaveAll, at: step.time,
            "\(scene.name(node)) takes what it has for the whole state, and tracker \(whole.id) holds all of it")
    }
}
