// Births and deaths of nodes, their buses, and what they say of themselves.

import Primitives
import TrackerLogic
import Wire

extension World {
    // MARK: - Life and death

    mutating func bringUp(_ node: Int) {
        goesWrong()
        nodes[node].lastTold = now
        readDisk(node)
        forgetNoticed(node)
        forgetReports(node)
        configure(node)
        // The first number that a life draws is its incarnation.
        nodes[node].random = RandomStream(seed, .life, node, nodes[node].life)
        var peek = nodes[node].random
        lives.append((peek.next(), node))
        (commanded[node], commandedTorrents[node], commandedAccounts[node]) = (nil, nil, nil)
        var record = nodes[node].disk.record
        if !tamperings.isEmpty { tamperings[node].spoil(&record) }
        do throws(RecordDamaged) {
            let machine = try TrackerNode.recovered(
                from: record, configuration: nodes[node].told, secret: secret, random: &nodes[node].random)
            tally.starts += 1
            nodes[node].live(machine, now: now, &checks)
        } catch {
            return violate(.recordIsReadable, "node \(node): \(error)")
        }
        endTroubles([.down], of: node)
        mark(node, .started, "starts")
        let life = nodes[node].life
        // What came first is heard first: the operator's files always, and the bus where reading the record took long.
        if options.commandsAtStart { commandFiles(node) }
        guard nodes[node].life == life else { return }
        var random = RandomStream(seed, .connecting, node, life)
        let isBusFirst = hasBus && nodes[node].disk.record.promise != nil && random.oneIn(4)
        if isBusFirst { connectBus(node, connectivity[node].cut) }
        guard nodes[node].life == life else { return }
        step(node, .started)
        guard nodes[node].life == life else { return }
        if hasBus, !isBusFirst {
            connectivity[node].cut += 1
            let delay = random.between(.microseconds(100), isHealed ? .milliseconds(50) : bus.options.maxConnectDelay)
            queue.put(.busReturns(node, life: life, cut: connectivity[node].cut), at: now + delay)
        }
        if nodes[node].life == life { injectIfDue(node, at: .restarted) }
    }

    /// What the operator's files say is commanded at every start.
    private mutating func commandFiles(_ node: Int) {
        let life = nodes[node].life
        guard tamperings.first?.sabotage != .forgetsCommands else { return }
        step(node, .commandReceived(.setAccess(rules)))
        guard nodes[node].life == life else { return }
        step(node, .commandReceived(.setFileTorrents(fileTorrents)))
    }

    /// A tracker dies, and is down for a while, as long as there are faults; `text` says what happens to it, and
    /// `cause` whose doing it is.
    ///
    /// With `isCertain` it is down for as long also where all is well.
    mutating func die(
        _ node: Int, _ text: String, by cause: String, for given: Duration, isCertain: Bool = false
    ) {
        guard nodes[node].isUp else { return }
        tally.deaths += 1
        budget.fault(at: now, until: now)
        watchElection(after: node)
        let downtime = isHealed && !isCertain ? .milliseconds(10) : given
        trace.absorb(now, 3, node)
        leave(node, .died, text, by: cause, for: downtime)
        comeBack(node, after: downtime)
    }

    /// A life ends, and with it all that was planned for it.
    mutating func leave(
        _ node: Int, _ kind: History.Kind, _ text: String, by cause: String, for downtime: Duration
    ) {
        for write in nodes[node].disk.crash() { becomeDurable(node, write.change) }
        // Its last word may be on the disk, and nobody has heard so.
        if nodes[node].isStopping, nodes[node].disk.record.promise?.leftInOrder == true {
            checks.leftInOrder(node: node)
        }
        trace.show(node, "-")
        trace.line(
            now, [.faults, .lives], of: node,
            "\(text): \(cause); is down "
                + (downtime == World.forGood ? "for good" : "for \(Figure.seconds(downtime)) s"))
        mark(node, kind, text)
        endTroubles([.held, .noBus, .brokenDisk], of: node, "gives way to its end")
        begin(
            .down, cause, "\(trace.names[node]) down", trackers: 1 << UInt32(node), for: downtime, isQuiet: true)
        nodes[node].die()
        countEnd(of: node)
        connectivity[node].isOnBus = false
        connectivity[node].isToldOnBus = false
        connectivity[node].isMaster = false
        connectivity[node].cut += 1
        checks.died(node: node, at: now)
        forgetNoticed(node)
    }

    mutating func comeBack(_ node: Int, after delay: Duration) {
        if isClosing {
            isOver = nodes.allSatisfy { !$0.isUp }
            return
        }
        if let stop = wholeStop, !stop.isOver { return beginAnewWhenAllAreDown() }
        trouble(node, for: delay)
        queue.put(.nodeReturns(node, life: nodes[node].life), at: now + delay)
    }

    /// The node dies, and all that it knew is gone.
    mutating func loseMemory(_ node: Int, _ downtime: Duration) {
        die(node, "dies, and loses its disk", by: "a fault that waited for all to be in step", for: downtime)
        var options = options.disk
        options.maxDelay = nodes[node].disk.options.maxDelay
        var memory = nodes[node].disk.memory
        memory?.begin(DiskRecord())
        nodes[node].disk = SimulatedDisk(options: options, random: nodes[node].disk.random)
        nodes[node].disk.memory = memory
        tally.memoryLosses += 1
        checks.memoryLost(node: node, at: now)
    }

    // MARK: - What nodes say

    mutating func observe(_ node: Int, _ observation: Observation) {
        switch observation {
        case .drained: if nodes[node].isUp { close(node) }
        case .voteFailed(let failure): mark(node, .storageFailed, failure.words)
        case .storageFailed(let failure, _):
            mark(node, .storageFailed, failure.words)
            guard failure == .broken, nodes[node].isUp, !nodes[node].isStopping else { return }
            // The operator looks after it and starts it again.
            nodes[node].isStopping = true
            var random = RandomStream(seed, .mending, node, nodes[node].life)
            connectivity[node].downtime = FaultPlan.downtime(&random)
            queue.put(
                .stopOverdue(node, life: nodes[node].life), at: now + FaultPlan.downtime(&random))
        case .becameMaster(let epoch):
            tally.masters += 1
            if let id = nodes[node].inspection?.life.id {
                judge(elections.serves(id, at: now))
                if let excess = budget.serves(id, in: node, on: bus, at: now) { violate(.electionsAreFew, excess) }
            }
            lastMasterAt = now
            settles(node)
            connectivity[node].isMaster = true
            checkMaster(node)
            if options.commandsAtStart { checkRules(node) }
            mark(node, .becameMaster, "master of \(epoch)")
        case .steppedDown(let epoch, let reason):
            tally.stepDowns += 1
            if reason == .quorumLost { checkQuorumLost(epoch, by: node) }
            connectivity[node].isMaster = false
            mark(node, .steppedDown, "\(epoch): \(reason.words)")
        case .follows(let master, let epoch):
            settles(node)
            mark(node, .follows, "\(master) in \(epoch)")
        case .stands(let epoch):
            judge(elections.stands(epoch.id, at: now))
            mark(node, .stands, "\(epoch)")
        case .transferBegan, .transferEnded:
            if case .transferBegan = observation { leaveAlone(node) }
            tally.transfers += 1
            settles(node)
            elections.trouble(until: now)
            mark(node, .transfer, TraceText.describe(observation))
        case .merged: tally.merges += 1
        case .aborted:
            tally.aborts += 1
            mark(node, .aborted, TraceText.describe(observation))
        case .membersChanged(let ids):
            tally.memberChanges += 1
            goesWrong()
            if ids.count < members.count { (isRemovalAsked, heir) = (false, nil) }
            members = ids
            membersChangedAt = max(membersChangedAt, nodes[node].appliedIndex ?? 0)
        case .commandRefused(let reason):
            tally.refusedCommands += 1
            checkRefused(reason, by: node)
        case .commandDropped: tally.refusedCommands += 1
        case .changeEnded(let question, let outcome): stewardHears(node, question, outcome)
        case .fileAccountsSet(_, let leftOut): checkFileAccounts(node, leftOut: leftOut)
        case .settingsDiffer(let id, let settings): checkDifference(node, from: id, in: settings)
        case .suspects(let epoch): mark(node, .suspects, "\(epoch)")
        case .fenced: mark(node, .fenced, "fenced")
        case .swarmsEmptied: emptyings += 1
        case .stopsWithCluster: nodes[node].isStopping = true
        case .accessChanged(let mode, let infoHashes, let users):
            guard let rules = commanded[node] else { return }
            if mode == rules.mode, infoHashes == rules.infoHashes.count, users == rules.users.count { return }
            violate(
                .rulesAreInForce,
                "\(trace.names[node]) has put access \(mode) with \(infoHashes) info hashes and \(users) users in "
                    + "force, "
                    + "commanded was \(rules.mode) with \(rules.infoHashes.count) and \(rules.users.count)")
        case .registryChanged:
            guard let torrents = commandedTorrents[node], let state = nodes[node].state else { return }
            checks.checkFileTorrents(state, torrents, node: node, at: now)
        case .storageRecovered, .voteRecovered, .joinRefused, .idAssigned, .trackerUp, .trackerDown:
            break
        case .diverged(let position):
            // Disks that are damaged have no vote, so there is one history.
            guard profile == .paxos else { return }
            violate(.statesAgree, "node \(node) holds something else than its master at \(position.index)")
        }
    }

    /// Keeps a transition for the picture.
    mutating func mark(_ node: Int, _ kind: History.Kind, _ text: @autoclosure () -> String) {
        guard keepsMarks else { return }
        history.transitions.append(History.Transition(time: now, node: node, kind: kind, text: text()))
    }

    // MARK: - Trouble

    /// Whether one more node may be troubled.
    func mayTrouble(_ node: Int) -> Bool {
        var count = 0
        for (place, seat) in connectivity.enumerated() where place != node && seat.troubledUntil > now { count += 1 }
        return count < options.faults.maxDown
    }

    /// Something goes wrong, or the operator wishes something: somebody may be elected, and nobody can say who.
    mutating func goesWrong(for duration: Duration = .zero) {
        elections.trouble(until: now + duration)
        budget.fault(at: now, until: now + duration)
        stopsOfMaster = nil
    }

    mutating func trouble(_ node: Int, for duration: Duration) {
        connectivity[node].troubledUntil = max(connectivity[node].troubledUntil, now + duration)
    }

    mutating func hold(_ node: Int, _ duration: Duration, _ cause: String) {
        guard nodes[node].heldUntil <= now else { return }
        goesWrong(for: duration)
        nodes[node].heldUntil = now + duration
        checks.held(node, from: now, until: now + duration)
        trouble(node, for: duration)
        trace.absorb(now, 5, node)
        begin(
            .held, cause, "\(trace.names[node]) held", trackers: 1 << UInt32(node), for: duration, endsByTime: true)
        mark(node, .paused, "\(duration.wholeMilliseconds) ms")
    }

    // MARK: - The bus of one node

    /// Nothing that a tracker sends goes out any more, and it hears nothing; `random` draws when it notices.
    mutating func cutOff(_ node: Int, _ duration: Duration, _ cause: String, _ random: RandomStream) {
        guard connectivity[node].isOnBus else { return }
        goesWrong(for: duration)
        connectivity[node].isOnBus = false
        connectivity[node].cut += 1
        trouble(node, for: duration)
        trace.absorb(now, 6, node)
        begin(.noBus, cause, "no bus at \(trace.names[node])", trackers: 1 << UInt32(node), for: duration)
        var random = random
        let notice = random.between(.zero, min(duration, bus.options.maxNoticeDelay))
        let (life, cut) = (nodes[node].life, connectivity[node].cut)
        queue.put(.busLossTold(node, life: life, cut: cut), at: now + notice)
        queue.put(.busReturns(node, life: life, cut: cut), at: now + duration)
    }

    mutating func tellBusLoss(_ node: Int, _ cut: Int) {
        guard connectivity[node].cut == cut, connectivity[node].isToldOnBus else { return }
        connectivity[node].isToldOnBus = false
        mark(node, .busLost, "loses its bus")
        step(node, .busLost)
    }

    mutating func connectBus(_ node: Int, _ cut: Int) {
        guard connectivity[node].cut == cut, !connectivity[node].isOnBus else { return }
        goesWrong()
        // Nobody gets a new connection without having lost the old one.
        tellBusLoss(node, cut)
        guard nodes[node].isUp, connectivity[node].cut == cut else { return }
        // What was still to be told of the cut is of no interest any more.
        connectivity[node].cut += 1
        connectivity[node].isOnBus = true
        connectivity[node].isToldOnBus = true
        connectivity[node].busSince = now
        settles(node)
        endTroubles([.noBus], of: node)
        mark(node, .busConnected, "has its bus")
        step(node, .busConnected)
    }
}
