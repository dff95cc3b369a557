/// What the owner of a node does for it: hands it what happens, and carries out what it wants.

import Primitives
import TrackerLogic
import Wire

extension World {
    // MARK: - Datagrams in

    mutating func arrive(_ node: Int, from remote: SocketAddress, _ bytes: [UInt8]) {
        nodes[node].hear(bytes, from: remote)
        schedulePoll(node)
    }

    private mutating func schedulePoll(_ node: Int) {
        guard let time = nodes[node].planPoll(now: now, maxDelay: options.maxPollDelay) else { return }
        queue.put(.nodePolls(node, life: nodes[node].life), at: time)
    }

    /// The node looks at its sockets.
    mutating func poll(_ node: Int) {
        guard let batch = nodes[node].takeBatch(), !batch.isEmpty else { return }
        for number in batch.datagrams.indices {
            checks.heard(
                batch.payload(number), from: batch.datagrams[number].remote, at: batch.datagrams[number].local)
        }
        step(node, .datagramsReceived(batch), .heard)
    }

    // MARK: - The step

    mutating func step(_ node: Int, _ event: Event, _ cause: Checks.Step.Cause) {
        let life = nodes[node].life
        let step = nodes[node].step(event, cause, now: now, into: &effects)
        if let sabotage { tamper(sabotage) }
        nodes[node].show(step, event, effects, to: &checks, &trace)
        carryOut(node, cause)
        guard nodes[node].life == life else { return }
        scheduleWake(node)
        schedulePoll(node)
    }

    private mutating func carryOut(_ node: Int, _ cause: Checks.Step.Cause) {
        let isAnswering = effects.replies.datagrams.count > 0
        let isSaving = effects.persists.contains { if case .saveChunk = $0.change { true } else { false } }
        let isWriting = !effects.persists.isEmpty
        for number in effects.replies.datagrams.indices {
            sendToClient(effects.replies.datagrams[number].remote, effects.replies.payload(number))
        }
        if isWriting {
            nodes[node].disk.submit(effects.persists)
            if sabotage == .reportsBeforeDurable {
                for persist in effects.persists { scheduleTale(node, persist, nil) }
            }
            beginGroup(node)
            if nodes[node].disk.pendingCount > Checks.maxPendingWrites {
                checks.violate(
                    .queuesAreBounded, at: now, "\(nodes[node].disk.pendingCount) writes are under way")
            }
        }
        let observations = effects.observations
        effects.removeAll()
        let isWritten = if case .failed = cause { false } else { true }
        for observation in observations { observe(node, observation, isWritten: isWritten) }
        guard isUp(node) else { return }
        if isWriting, strikes(at: .writeSubmitted) { return crash(node, .writeSubmitted) }
        if isSaving, strikes(at: .snapshotUnderWay) { return crash(node, .snapshotUnderWay) }
        if isAnswering, strikes(at: .replied) { return crash(node, .replied) }
    }

    private mutating func observe(_ node: Int, _ observation: Observation, isWritten: Bool) {
        switch observation {
        case .drained: close(node, isWritten: isWritten)
        case .storageFailed(.broken, _):
            // The operator looks after it and starts it again.
            let life = nodes[node].life
            queue.put(.stopOverdue(node, life: life), at: now + plan.downtime())
            nodes[node].isStopping = true
        case .becameMaster:
            nodes[node].isServing = true
            if let machine = nodes[node].machine { checks.checkAccess(machine, rules, at: now) }
        case .storageFailed, .storageRecovered, .voteFailed, .voteRecovered, .settingsDiffer, .accessChanged,
            .registryChanged, .commandRefused, .commandDropped, .steppedDown,
            .follows, .suspects, .stands, .fenced, .joinRefused, .idAssigned, .trackerUp, .trackerDown,
            .transferBegan, .transferEnded, .merged, .aborted, .membersChanged, .diverged,
            .stopsWithCluster, .swarmsEmptied:
            break
        }
    }

    // MARK: - Deadlines

    private mutating func scheduleWake(_ node: Int) {
        guard let time = nodes[node].planWake(now: now) else { return }
        queue.put(.nodeWakes(node, life: nodes[node].life), at: time)
    }

    mutating func wake(_ node: Int) {
        // A wake that was overtaken by an earlier one.
        guard let planned = nodes[node].wakeAt, planned <= now else { return }
        nodes[node].wakeAt = nil
        step(node, .deadlineReached, .other)
    }

    // MARK: - Writes

    private mutating func beginGroup(_ node: Int) {
        guard let delay = nodes[node].disk.beginGroup() else { return }
        queue.put(.groupEnds(node, life: nodes[node].life), at: now + delay)
    }

    mutating func endGroup(_ node: Int) {
        let end = nodes[node].disk.endGroup()
        trace.absorb(UInt64(end.writes.count) << 8 | (end.failure?.tag ?? 0))
        trace.line(
            now, "disk \(node)", "\(end.writes.count) writes \(end.failure.map { "failed: \($0)" } ?? "durable")")
        if let misfit = end.misfit { checks.violate(.logHasNoGap, at: now, "the disk cannot carry out \(misfit.name)") }
        for write in end.writes[..<end.durableCount] { becomeDurable(write.change) }
        if end.failure != nil { tally.writesFailed += end.writes.count }
        if end.failure == .broken { nodes[node].disk.failure = nil }
        if sabotage != .reportsBeforeDurable {
            for write in end.writes { scheduleTale(node, write, end.failure) }
        }
        beginGroup(node)
        if strikes(at: .durableUntold) { crash(node, .durableUntold) }
    }

    private mutating func becomeDurable(_ change: Persist.Change) {
        checks.wrote(change, at: now)
        switch change {
        case .saveChunk: tally.chunksSaved += 1
        case .trim: tally.trims += 1
        case .promise, .append, .truncate, .replaceAll: break
        }
    }

    /// The node will hear of a write, not before it has heard of those before it.
    private mutating func scheduleTale(_ node: Int, _ write: Persist, _ failure: StorageFailure?) {
        let time = max(now + nodes[node].disk.reportDelay(), nodes[node].lastTold)
        nodes[node].lastTold = time
        let isEntry = if case .append = write.change { true } else { false }
        let tale = Tale(token: write.token, failure: failure, isEntry: isEntry)
        queue.put(.writeTold(node, life: nodes[node].life, tale), at: time)
    }

    mutating func tell(_ node: Int, _ tale: Tale) {
        guard let failure = tale.failure else { return step(node, .persisted(tale.token), .told) }
        let life = nodes[node].life
        step(
            node, .persistFailed(tale.token, failure),
            .failed(isCertain: failure != .broken, isEntry: tale.isEntry))
        if nodes[node].life == life, strikes(at: .writeFailed) { crash(node, .writeFailed) }
    }

    // MARK: - Life and death

    private mutating func strikes(at moment: Moment) -> Bool { !isHealed && plan.strikes(at: moment) }

    /// Whether a node lives.
    func isUp(_ node: Int) -> Bool { nodes[node].isUp }

    mutating func crash(_ node: Int, _ moment: Moment?) {
        guard isUp(node) else { return }
        if let moment { tally.crashes[moment.rawValue] += 1 }
        for write in nodes[node].disk.crash() { becomeDurable(write.change) }
        trace.absorb(0xDEAD)
        trace.line(now, "node \(node)", "dies\(moment.map { ": \($0)" } ?? "")")
        nodes[node].die()
        checks.hangUp()
        comeBack(node, after: isHealed ? .milliseconds(10) : plan.downtime())
    }

    private mutating func comeBack(_ node: Int, after delay: Duration) {
        queue.put(.nodeReturns(node, life: nodes[node].life), at: now + delay)
    }

    mutating func bringUp(_ node: Int) {
        var record = nodes[node].disk.record
        damage(&record)
        nodes[node].lastTold = now
        do throws(RecordDamaged) {
            let machine = try TrackerNode.recovered(
                from: record, configuration: nodes[node].configuration, random: &nodes[node].random)
            tally.starts += 1
            checks.recovered(node, machine, nodes[node].disk.record, at: now)
            nodes[node].live(machine)
        } catch {
            return checks.violate(.recordIsReadable, at: now, "\(error)")
        }
        let life = nodes[node].life
        step(node, .started, .other)
        // What the operator's files say is commanded at every start.
        command(node, .setAccess(rules))
        command(node, .registerTorrents(torrents))
        if nodes[node].life == life, strikes(at: .restarted) { crash(node, .restarted) }
    }

    private mutating func command(_ node: Int, _ command: OperatorCommand) {
        guard isUp(node), sabotage != .forgetsCommands else { return }
        step(node, .commandReceived(command), .other)
    }

    /// The operator makes up his mind.
    mutating func changeRules() {
        guard nodes.allSatisfy({ $0.heldUntil <= now }) else { return }
        rules = isHealed ? AccessRules() : workload.rules()
        trace.line(now, "operator", "wants access to be \(rules.mode)")
        for node in nodes.indices { command(node, .setAccess(rules)) }
    }

    var torrents: [RegisteredTorrent] {
        workload.infoHashes.prefix(2).enumerated().map { number, infoHash in
            RegisteredTorrent(infoHash: infoHash, name: "torrent \(number)", byteCount: UInt64(number) << 20)
        }
    }

    /// The operator wants a node to stop in good order.
    mutating func stop(_ node: Int) {
        guard isUp(node), !nodes[node].isStopping, nodes[node].heldUntil <= now else { return }
        nodes[node].isStopping = true
        let life = nodes[node].life
        queue.put(.stopOverdue(node, life: life), at: now + .seconds(30))
        if sabotage != .neverStops { step(node, .commandReceived(.drain), .other) }
        if nodes[node].life == life, strikes(at: .stopping) { crash(node, .stopping) }
    }

    /// The operator's patience is at an end.
    mutating func stopIsOverdue(_ node: Int) {
        if isClosing { checks.violate(.stopEnds, at: now, "node \(node) does not stop") }
        crash(node, nil)
    }

    /// A node has answered all it had to.
    ///
    /// - Parameter isWritten: whether the last of its record is; with the disk full it stops without.
    private mutating func close(_ node: Int, isWritten: Bool) {
        guard let machine = nodes[node].machine else { return }
        tally.stops += 1
        if machine.status.role == .stopped {
            checks.stopped(
                nodes[node].disk.record, pendingWrites: nodes[node].disk.pendingCount,
                isWritten: isWritten, at: now)
        }
        for write in nodes[node].disk.crash() { becomeDurable(write.change) }
        trace.line(now, "node \(node)", "stops")
        nodes[node].die()
        if isClosing {
            isOver = true
        } else {
            comeBack(node, after: isHealed ? .milliseconds(10) : plan.downtime())
        }
    }
}
