// What the owner of a node does for it: hands it what happens, and carries out what it wants.

import Primitives
import TrackerLogic
import Wire

extension World {
    // MARK: - Datagrams in

    mutating func arrive(_ node: Int, from remote: SocketAddress, _ bytes: [UInt8]) {
        guard connectivity[node].darkUntil <= now else { return noteArrival(.nobody) }
        noteArrival(nodes[node].hear(bytes, from: remote) ? .arrived : .nobody)
        schedulePoll(node)
    }

    private mutating func schedulePoll(_ node: Int) {
        guard let time = nodes[node].planPoll(now: now, maxDelay: options.maxPollDelay) else { return }
        queue.put(.nodePolls(node, life: nodes[node].life), at: time)
    }

    /// The node looks at its sockets.
    mutating func poll(_ node: Int) {
        guard let batch = nodes[node].takeBatch(), !batch.isEmpty else { return }
        step(node, .datagramsReceived(batch))
    }

    // MARK: - The step

    mutating func step(_ node: Int, _ event: Event) {
        let life = nodes[node].life
        let applied = keepsMarks ? nodes[node].appliedIndex : nil
        if case .commandReceived(let command) = event { note(command, node) }
        var tampering = tamperings.isEmpty ? nil : tamperings[node]
        nodes[node].step(event, now: now, into: &effects, &checks, &trace, &tampering)
        if let tampering { tamperings[node] = tampering }
        if keepsMarks, let index = nodes[node].appliedIndex, index != applied {
            mark(node, .committed, "entry \(index)")
        }
        if case .some = taker { count(node, event) }
        carryOut(node)
        guard nodes[node].life == life else { return }
        if let time = nodes[node].planWake(now: now) { queue.put(.nodeWakes(node, life: life), at: time) }
        schedulePoll(node)
    }

    private mutating func note(_ command: OperatorCommand, _ node: Int) {
        switch command {
        case .setAccess(let rules): commanded[node] = rules
        case .setFileTorrents(let torrents): commandedTorrents[node] = torrents
        case .setFileAccounts(let accounts): commandedAccounts[node] = accounts
        default: break
        }
    }

    /// Carries out what a node wants: replies, then messages, then writes.
    ///
    /// It may die in between.
    private mutating func carryOut(_ node: Int) {
        let moments = isHealed ? 0 : effects.moments
        if !effects.replies.isEmpty { reply(node) }
        tally.visitsAnswered += effects.answers.count
        if !isHealed, !effects.messages.isEmpty || !effects.persists.isEmpty,
            plan.injection(at: Moment.halfWay.bit, of: node) != nil, mayTrouble(node)
        {
            tally.injected[Moment.halfWay.rawValue] += 1
            countInjection(.halfWay, .death, at: node)
            let half = plan.halfWay(of: effects.messages.count)
            for place in 0..<half.sent { send(node, effects.messages[place]) }
            effects.removeAll()
            return die(node, "dies half-way through a step", by: injectionName(.halfWay), for: half.downtime)
        }
        for place in effects.messages.indices { send(node, effects.messages[place]) }
        if !effects.persists.isEmpty {
            nodes[node].disk.submit(effects.persists)
            if tamperings.first?.sabotage == .reportsBeforeDurable {
                for write in effects.persists { scheduleCompletion(node, write, nil) }
            }
            beginGroup(node)
        }
        if effects.observations.isEmpty {
            effects.removeAll()
        } else {
            let observations = effects.observations
            effects.removeAll()
            for observation in observations { observe(node, observation) }
        }
        if moments != 0, nodes[node].isUp, let moment = plan.injection(at: moments, of: node) { inject(node, moment) }
    }

    private mutating func reply(_ node: Int) {
        for number in effects.replies.datagrams.indices {
            tally.repliesToClients += 1
            let datagram = effects.replies.datagrams[number]
            sendToClient(datagram.remote, from: node, effects.replies.payload(number))
        }
    }

    private func injectionName(_ moment: Moment) -> String {
        guard let injection = plan.injections.last else { return "an injection" }
        return "injection \(injection) (\(moment.words))"
    }

    /// Something happens to a node at a bad moment.
    mutating func injectIfDue(_ node: Int, at moment: Moment) {
        guard !isHealed, nodes[node].isUp, let moment = plan.injection(at: moment.bit, of: node) else { return }
        inject(node, moment)
    }

    private mutating func inject(_ node: Int, _ moment: Moment) {
        guard mayTrouble(node) else { return }
        tally.injected[moment.rawValue] += 1
        let outage = plan.outage()
        countInjection(moment, outage.blow, at: node)
        switch outage {
        case .crash(let downtime): die(node, "dies", by: injectionName(moment), for: downtime)
        case .pause(let duration): hold(node, duration, injectionName(moment))
        case .cut(let duration): cutOff(node, duration, injectionName(moment), plan.injectionRandom)
        case .refusal(let failure, let duration): refuse(node, failure, duration, injectionName(moment))
        }
    }

    // MARK: - Deadlines

    mutating func wake(_ node: Int) {
        // A wake that was overtaken by an earlier one.
        guard let planned = nodes[node].wakeAt, planned <= now else { return }
        nodes[node].wakeAt = nil
        step(node, .deadlineReached)
    }

    // MARK: - Writes

    private mutating func beginGroup(_ node: Int) {
        guard let delay = nodes[node].disk.beginGroup() else { return }
        queue.put(.groupEnds(node, life: nodes[node].life), at: now + delay)
    }

    mutating func endGroup(_ node: Int) {
        let end = nodes[node].disk.endGroup()
        trace.absorb(now, 2, node)
        trace.absorb(UInt64(end.writes.count) << 8 | (end.failure?.tag ?? 0))
        trace.line(
            now, .disk, of: node,
            "has \(Words.counted(end.writes.count, "write")) \(end.failure.map { "failed: \($0.words)" } ?? "on disk")"
                + ", and has not been told yet")
        for (place, refusal) in end.refusals.enumerated() {
            guard let refusal else { continue }
            trace.absorb(UInt64(place) << 8 | refusal.tag)
            trace.line(
                now, .disk, of: node, "refuses \(end.writes[place].change.name), for what failed before it would miss")
        }
        if let misfit = end.misfit { violate(.logHasNoGap, "disk \(node) cannot carry out \(misfit.name)") }
        var moments: UInt32 = 0
        for (place, write) in end.writes[..<end.durableCount].enumerated() where end.refusal(at: place) == nil {
            moments |= becomeDurable(node, write.change)
        }
        if let failure = end.failure {
            tally.writesFailed += end.writes.count
            countFailure(end.writes, failure)
        }
        if end.failure == .broken { nodes[node].disk.failure = nil }
        if tamperings.first?.sabotage != .reportsBeforeDurable {
            for (place, write) in end.writes.enumerated() {
                scheduleCompletion(node, write, end.failure ?? end.refusal(at: place))
            }
        }
        beginGroup(node)
        if !isHealed, moments != 0, let moment = plan.injection(at: moments, of: node) { inject(node, moment) }
    }

    /// - Returns: the bad moments that this makes.
    @discardableResult
    mutating func becomeDurable(_ node: Int, _ change: Persist.Change) -> UInt32 {
        checks.wrote(node: node, change: change, at: now)
        switch change {
        case .promise: return Moment.promiseDurable.bit
        case .append:
            tally.entriesWritten += 1
            return Moment.entryDurable.bit
        case .saveChunk: tally.chunksSaved += 1
        case .trim: tally.trims += 1
        case .replaceAll: break
        }
        return 0
    }

    /// The node will hear of a write, not before it has heard of those before it.
    private mutating func scheduleCompletion(_ node: Int, _ write: Persist, _ failure: StorageFailure?) {
        let time = max(now + nodes[node].disk.reportDelay(), nodes[node].lastTold)
        nodes[node].lastTold = time
        queue.put(.writeCompleted(node, life: nodes[node].life, write.token, failure), at: time)
    }

    mutating func tell(_ node: Int, _ token: PersistToken, _ failure: StorageFailure?) {
        guard let failure else { return step(node, .persisted(token)) }
        let life = nodes[node].life
        step(node, .persistFailed(token, failure))
        if nodes[node].life == life { injectIfDue(node, at: .writeFailed) }
    }
}
