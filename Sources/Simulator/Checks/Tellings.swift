// What people are told of a tracker.

import Primitives
import TrackerLogic
import Wire

/// What people are told of a tracker is what has happened to it: that its disk fails and works again, what became of
/// each change that it was asked for, and its counters.
///
///     writes succeed ── one fails: told ──► writes fail ── one succeeds: told ──► writes succeed
///            └──────────────┴── one fails in an unknown way: told ──► silence, to the end of the life
struct Tellings: Sendable {
    /// What a life has told, and has to tell.
    private struct Teller: Sendable {
        var isFailing = false
        var isBroken = false
        /// Numbers of changes that were asked for, and of which nothing has been told yet.
        var changes: [UInt64] = []
        /// Replies to connects, and errors over UDP.
        var (connects, errors) = (0 as UInt64, 0 as UInt64)
        /// Announces and scrapes that it has answered itself, over UDP and HTTP.
        var (announces, scrapes) = (0 as UInt64, 0 as UInt64)
        /// Requests over HTTP that it has given up because they had waited for too long.
        var givenUp = 0 as UInt64
        /// Whether anybody has asked over HTTP, whose refusals count as errors in part.
        var hasVisitors = false
        /// Downloads that the entries completed which it has applied; nil where not all of them were seen, or some came
        /// with a state that it was sent, and were applied by others.
        var completed: UInt64? = 0
        /// Whether this life was told to stop, or has told that its cluster is stopped.
        var hasReason = false
    }

    private var tellers: [Teller]

    init(nodeCount: Int) { tellers = Array(repeating: Teller(), count: nodeCount) }

    /// A life begins.
    mutating func began(_ node: Int) { tellers[node] = Teller() }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ scene: inout Scene
    ) {
        guard step.isReal else { return }
        if let fault = storageFault(step, event, effects, isAlone: scene.promises.diskDecides) {
            scene.violate(.peopleAreTold, at: step.time, "\(scene.name(step.node)) \(fault)")
        }
        if let fault = changeFault(step, event, effects) {
            scene.violate(.peopleAreTold, at: step.time, "\(scene.name(step.node)) \(fault)")
        }
        if let fault = stopFault(step, event, effects) {
            scene.violate(.peopleAreTold, at: step.time, "\(scene.name(step.node)) \(fault)")
        }
        count(step, before, effects, scene)
    }

    // MARK: - Stops

    /// What is wrong with what a tracker tells of its stop: its operator has stopped it, or is told who has.
    private mutating func stopFault(_ step: borrowing Step, _ event: Event, _ effects: Effects) -> String? {
        let node = step.node
        if step.kind == .command, event == .commandReceived(.drain) || event == .commandReceived(.stopCluster) {
            tellers[node].hasReason = true
        }
        for observation in effects.observations {
            if case .stopsWithCluster = observation { tellers[node].hasReason = true }
            if case .drained = observation, !tellers[node].hasReason { return "stops, and does not tell why" }
        }
        return nil
    }

    // MARK: - The disk

    /// What is wrong with what a tracker tells of its disk; nil where all is right.
    private mutating func storageFault(_ step: borrowing Step, _ event: Event, _ effects: Effects, isAlone: Bool)
        -> String?
    {
        let node = step.node
        if tellers[node].isBroken {
            let isSilent = effects.messages.isEmpty && effects.persists.isEmpty && effects.replies.isEmpty
            return isSilent ? nil : "has told that its disk is broken, and goes on"
        }
        guard step.kind == .persisted || step.kind == .persistFailed || !effects.observations.isEmpty else {
            return nil
        }
        var due: [Observation] = []
        switch event {
        case .persistFailed(_, .broken):
            tellers[node].isBroken = true
            return Scene.failsNow(effects) ? nil : "does not tell that its disk is broken"
        case .persistFailed(_, let failure):
            // How many requests it refuses for that is its own business.
            if !tellers[node].isFailing { due = [isAlone ? .storageFailed(failure, refused: 0) : .voteFailed(failure)] }
            tellers[node].isFailing = true
        case .persisted:
            if tellers[node].isFailing { due = [isAlone ? .storageRecovered : .voteRecovered] }
            tellers[node].isFailing = false
        default: break
        }
        let told = effects.observations.compactMap { observation -> Observation? in
            switch observation {
            case .storageFailed(let failure, _): .storageFailed(failure, refused: 0)
            case .storageRecovered, .voteFailed, .voteRecovered: observation
            default: nil
            }
        }
        if told == due { return nil }
        return due.isEmpty
            ? "tells of its disk what has not happened" : "does not tell, or tells otherwise, that its disk has changed"
    }

    // MARK: - Changes

    /// What is wrong with what a tracker tells of changes; nil where all is right.
    private mutating func changeFault(_ step: borrowing Step, _ event: Event, _ effects: Effects) -> String? {
        let node = step.node
        var asked: UInt64?
        if step.kind == .command, case .commandReceived(.change(let number, _)) = event {
            tellers[node].changes.append(number)
            asked = number
        }
        guard !tellers[node].changes.isEmpty || !effects.observations.isEmpty else { return nil }
        var isOver = false
        for observation in effects.observations {
            switch observation {
            case .changeEnded(let number, _):
                guard let place = tellers[node].changes.firstIndex(of: number) else {
                    return "tells what became of change \(number), which nobody waits for"
                }
                tellers[node].changes.remove(at: place)
            case .steppedDown, .follows, .drained, .storageFailed(.broken, _): isOver = true
            default: break
            }
        }
        // What is asked for in that step may wait for the next master.
        guard isOver, let number = tellers[node].changes.first, number != asked else { return nil }
        return "takes up no change any more, and does not tell what became of change \(number)"
    }

    // MARK: - Counters

    private mutating func count(
        _ step: borrowing Step, _ before: NodeView, _ effects: Effects, _ scene: Scene
    ) {
        if step.kind == .request { tellers[step.node].hasVisitors = true }
        // Nothing else comes with time but that it leaves.
        if step.kind == .deadline, !scene.isGroup, !effects.answers.isEmpty,
            !Checks.leaves(effects, isAlone: scene.promises.diskDecides)
        {
            tellers[step.node].givenUp += UInt64(effects.answers.count { $0.content == .failure(.notServing) })
        }
        for reply in effects.replies.datagrams {
            switch effects.replies.action(of: reply) {
            case 0: tellers[step.node].connects += 1
            case 1: tellers[step.node].announces += 1
            case 2: tellers[step.node].scrapes += 1
            case 3: tellers[step.node].errors += 1
            default: break
            }
        }
        for answer in effects.answers {
            switch answer.content {
            case .announce: tellers[step.node].announces += 1
            case .scrape: tellers[step.node].scrapes += 1
            case .failure: break
            }
        }
        guard let completed = tellers[step.node].completed, step.view.position != before.position else { return }
        let isWhole = UInt64(step.applied.count) == step.view.position.index &- before.position.index
        // Who keeps its vote while it is sent the state may be where that is: then the log behind it looks like entries
        // that it has applied.
        guard isWhole, scene.promises.repliesAreLinear, !Checks.isTransfer(effects) else {
            tellers[step.node].completed = nil
            return
        }
        tellers[step.node].completed = step.applied.reduce(completed) { $0 + scene.completions(in: $1.header.index) }
    }

    /// What is wrong with a tracker's counters; nil where they are what was seen.
    func fault(in counters: Counters, _ node: Int) -> String? {
        let teller = tellers[node]
        if counters.connects != teller.connects {
            return "counts \(counters.connects) connects, and has answered \(teller.connects)"
        }
        // Where replies are swallowed, those who wait for them say so.
        if counters.announces < teller.announces {
            return "counts \(counters.announces) announces, and has answered \(teller.announces)"
        }
        if counters.scrapes < teller.scrapes {
            return "counts \(counters.scrapes) scrapes, and has answered \(teller.scrapes)"
        }
        if teller.hasVisitors ? counters.errors < teller.errors : counters.errors != teller.errors {
            return "counts \(counters.errors) errors, and has sent \(teller.errors)"
        }
        if counters.timedOut < teller.givenUp {
            return "counts \(counters.timedOut) requests that it gave up, and has told \(teller.givenUp) visitors so"
        }
        if let completed = teller.completed, counters.completed != completed {
            return "counts \(counters.completed) downloads, and has applied \(completed)"
        }
        return nil
    }
}
