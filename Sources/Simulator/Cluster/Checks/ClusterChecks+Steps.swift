/// A step of a tracker, looked at from all sides: epochs, bounds, and who may speak.

import Primitives
import TrackerLogic
import Wire

extension ClusterChecks {
    /// Messages of one step: one for each tracker of each of a few kinds, and what goes to all.
    static func maxMessages(nodeCount: Int) -> Int { 4 * nodeCount + 16 }

    /// A life begins.
    ///
    /// - Parameter record: what is on its disk.
    package mutating func began(_ node: Int, _ sight: NodeSight, _ record: DiskRecord, at time: Instant) {
        let known = nodes[node].disk
        if known.promised > record.promise?.epoch ?? .zero {
            violate(
                .promiseIsKept, at: time, "\(name(node)) comes back without its promise of \(known.promised)")
        }
        if known.log.count > 0, known.lastIndex > record.lastIndex {
            violate(
                .voteIsKept, at: time,
                "\(name(node)) comes back with a log up to \(record.lastIndex), and had written \(known.lastIndex)")
        }
        nodes[node].disk.adopt(record)
        // Chunks may be ahead of the log that is read back after them: what it holds counts from its first step on.
        var unsettled = sight
        unsettled.isWhole = false
        nodes[node].begin(unsettled, at: time)
        nodes[node].witnesses = groupWitnesses.filter { $0.place.index > sight.position.index }
        lives.append((sight.life, node))
        guard nodes[node].disk.isWhole, sight.isWhole else { return }
        if promises.votersRemember, nodes[node].isLost {
            violate(.votersAreWhole, at: time, "\(name(node)) comes back whole, and has lost its disk")
        }
        // One entry at a time is under way, so all but the last are decided, and the last is pending.
        let last = sight.position.index + (sight.pending == nil ? 0 : 1)
        if promises.votersRemember, !record.entries.isEmpty, last < record.lastIndex {
            violate(
                .voteIsKept, at: time,
                "\(name(node)) has entry \(record.lastIndex) on its disk, and goes on from \(last)")
        }
    }

    /// A tracker has taken a step.
    package mutating func watch(_ step: ClusterStep, _ event: Event, _ effects: Effects) {
        watch(step, nodes[step.node].lastSight, event, effects)
    }

    /// - Parameter before: what it was like before the step; nil for one that is not alive.
    mutating func watch(_ step: ClusterStep, _ before: NodeSight?, _ event: Event, _ effects: Effects) {
        guard let before else {
            return violate(.timeGoesOn, at: step.time, "\(name(step.node)) takes a step and is not alive")
        }
        if promises.answersAtOnce {
            noteStop(event, effects, step)
            noteNotStored(event, effects, step)
        }
        note(event, node: step.node, at: step.time)
        if step.sight.life != before.life { lives.append((step.sight.life, step.node)) }
        checkEpoch(step)
        checkPosition(step, before)
        for observation in effects.observations {
            if case .aborted(let index, _) = observation { aborted(index, step) }
            if case .swarmsEmptied = observation { beganEmpty(step) }
            if case .becameMaster = observation { goesOn(step.node) }
        }
        for persist in effects.persists {
            nodes[step.node].disk.ask(persist)
            guard case .append(_, let entry) = persist.change else { continue }
            checkOwnAppend(entry, step)
            if promises.answersAtOnce { nodes[step.node].writing = (persist.token, entry) }
        }
        for message in effects.messages { check(message, step, before) }
        if !effects.replies.isEmpty { checkReplies(effects, step, before) }
        if !effects.answers.isEmpty { checkAnswers(effects, step, before) }
        if ClusterChecks.failsNow(effects) { nodes[step.node].hasFailed = true }
        if promises.answersAtOnce { checkAnswered(step) }
        checkRules(step, before, event, effects)
        forgetWitnesses(step)
        checkBounds(step, effects)
        if nodes[step.node].knownVoters != step.sight.voters { nodes[step.node].votersSince = step.time }
        nodes[step.node].sight = step.sight
    }

    mutating func note(_ event: Event, node: Int, at time: Instant) {
        switch event {
        case .persisted(let token): nodes[node].disk.tell(token, isWritten: true)
        case .persistFailed(let token, _): nodes[node].disk.tell(token, isWritten: false)
        case .messageReceived(let message):
            if let sender = self.node(withID: message.sender.id) { nodes[node].heardAt[sender] = time }
        case .started, .datagramsReceived, .requestReceived, .busConnected, .busLost, .deadlineReached,
            .commandReceived, .reportMade:
            break
        }
    }

    // MARK: - Epochs

    private mutating func checkEpoch(_ step: ClusterStep) {
        guard let led = step.sight.leads, led != nodes[step.node].led else { return }
        nodes[step.node].led = led
        claim(led, step, "leads")
        beginsToLead(led, step)
        if promises.votersRemember, nodes[step.node].disk.promised < led {
            violate(
                .promiseIsKept, at: step.time,
                "\(name(step.node)) leads epoch \(led), and has \(nodes[step.node].disk.promised) on its disk")
        }
    }

    /// A tracker says that it leads or stands for an epoch.
    mutating func claim(_ epoch: Epoch, _ step: ClusterStep, _ verb: String) {
        guard let other = epochs.claim(epoch, by: step.sight.life) else { return }
        violate(
            .oneMasterPerEpoch, at: step.time,
            "\(name(step.node)) \(verb) epoch \(epoch), which belongs to life \(other.incarnation) of \(other.id)")
    }

    // MARK: - Bounds

    private mutating func checkBounds(_ step: ClusterStep, _ effects: Effects) {
        let maxWaiting = nodes[step.node].configuration.limits.waitingRequests
        if effects.messages.count > ClusterChecks.maxMessages(nodeCount: nodes.count) {
            violate(.queuesAreBounded, at: step.time, "\(name(step.node)) sends \(effects.messages.count) messages")
        }
        let sight = step.sight
        if sight.waitingRequests > maxWaiting {
            violate(.queuesAreBounded, at: step.time, "\(sight.waitingRequests) requests wait at \(name(step.node))")
        }
    }

    // MARK: - Who is who

    func name(_ node: Int) -> String { "tracker \(nodes[node].id == 0 ? "without number" : "\(nodes[node].id)")" }

    func node(withID id: UInt32) -> Int? { id == 0 ? nil : nodes.firstIndex { $0.id == id } }

    func node(of life: Life) -> Int? { lives.last { $0.life == life }?.node }
}
