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

    /// Whether a death is one after which it is plain who is to be master next: all others are well, of one mind and in
    /// step, and nothing is lost between them.
    private mutating func watchElection(after node: Int) {
        guard options.hasGoodWays, connectivity[node].isMaster, let own = nodes[node].inspection, own.isServing else {
            return elections.trouble(until: now)
        }
        var candidates: [ElectionWatch.Candidate] = []
        for other in nodes.indices where other != node && connectivity[other].isThere {
            guard nodes[other].heldUntil <= now, !nodes[other].isStopping, connectivity[other].isToldOnBus,
                let view = nodes[other].inspection, view.isServing, view.hasFullState, view.role == .slave,
                view.promised == own.promised
            else { return elections.trouble(until: now) }
            if own.voters.contains(view.life.id) {
                candidates.append(ElectionWatch.Candidate(id: view.life.id, index: view.position.index))
            }
        }
        guard candidates.count * 2 > own.voters.count else { return elections.trouble(until: now) }
        elections.masterDied(own.life.id, candidates: candidates, at: now)
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
                if let excess = budget.serves(id, at: now) { violate(.electionsAreFew, excess) }
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
            guard let torrents = commandedTorrents[node], let state = nodes[node].machine?.state else { return }
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

    // MARK: - Messages

    mutating func send(_ node: Int, _ message: ClusterMessage) {
        guard connectivity[node].isOnBus else { return }
        tally.messagesSent += 1
        if case .handover = message.body { elections.trouble(until: now) }
        let letter = MessageInTransit(message, from: node, sentAt: now, number: keep(message, of: node))
        if case .one(let life) = message.destination, !bus.options.isShared {
            if let receiver = self.node(of: life), receiver != node { post(letter, to: receiver) }
        } else {
            for receiver in nodes.indices where receiver != node && connectivity[receiver].isThere {
                post(letter, to: receiver)
            }
        }
    }

    /// Who lives this life, or has lived it.
    private func node(of life: Life) -> Int? {
        lives.last { $0.incarnation == life.incarnation }?.node
    }

    private mutating func post(_ letter: MessageInTransit, to receiver: Int) {
        var fate = bus.carry(from: letter.from, to: receiver, now: now)
        if slips != nil { slip(letter, to: receiver, &fate) }
        if let time = fate.first {
            post(letter, to: receiver, at: time)
        } else {
            note(.message(letter), from: letter.from, to: receiver, as: 0)
            if keepsHistory { keep(letter, to: receiver, at: nil) }
        }
        if let time = fate.second { post(letter, to: receiver, at: time, isAgain: true) }
        guard let time = fate.third else { return }
        post(letter, to: receiver, at: time, isAgain: true)
        // An old message of one's own, from an earlier life, is somebody else's.
        if case .all = letter.message.destination { post(letter, to: letter.from, at: time, isAgain: true) }
    }

    /// Now and then one message is lost, or comes once more much later.
    private mutating func slip(_ letter: MessageInTransit, to receiver: Int, _ fate: inout SimulatedBus.Fate) {
        guard !isHealed, fate.first != nil, let blow = slips?.strike(letter.message, at: now) else { return }
        goesWrong(for: .seconds(1))
        let parties = "\(letter.message.body.name) of \(trace.names[letter.from]) to \(trace.names[receiver])"
        switch blow {
        case .lost:
            fate = SimulatedBus.Fate()
            trace.line(now, .faults, of: receiver, "is to miss one message: \(parties)")
        case .late(let delay):
            (fate.first, fate.second) = (now + delay, nil)
            trace.line(now, .faults, of: receiver, "is to hear one message late: \(parties)")
        case .again(let delay):
            fate.third = now + delay
            trace.line(now, .faults, of: receiver, "is to hear one message again: \(parties)")
        }
    }

    private mutating func post(_ letter: MessageInTransit, to receiver: Int, at time: Instant, isAgain: Bool = false) {
        let id = queue.put(.messageAtNode(receiver, letter), at: time)
        note(.message(letter), from: letter.from, to: receiver, as: id, isAgain: isAgain)
    }

    mutating func deliver(_ letter: MessageInTransit, to node: Int) {
        let isOwn =
            letter.from == node && lives.last { $0.node == node }?.incarnation == letter.message.sender.incarnation
        guard nodes[node].isUp, connectivity[node].isToldOnBus, !isOwn else {
            noteArrival(.nobody)
            if keepsHistory { keep(letter, to: node, at: nil) }
            return
        }
        guard nodes[node].heldUntil <= now else {
            return putOff(.messageAtNode(node, letter), until: nodes[node].heldUntil)
        }
        noteArrival(.arrived)
        tally.messagesDelivered += 1
        trace.isLate(since: letter.sentAt, now: now)
        if keepsHistory { keep(letter, to: node, at: now) }
        noteReport(letter.message, from: letter.from, to: node)
        step(node, .messageReceived(letter.message))
        checkHeard(letter.message, node)
    }

    /// - Returns: the place of the message in the history; -1 where none is kept.
    private mutating func keep(_ message: ClusterMessage, of node: Int) -> Int {
        guard keepsHistory else { return -1 }
        var bytes: [UInt8] = []
        message.encode(into: &bytes)
        var destination: UInt64 = 0
        var receivers: UInt32 = ~(1 << UInt32(node)) & (1 << UInt32(nodes.count) - 1)
        if case .one(let life) = message.destination {
            destination = life.incarnation
            if !bus.options.isShared { receivers = self.node(of: life).map { 1 << UInt32($0) } ?? 0 }
        }
        history.sentMessages.append(
            History.SentMessage(
                time: now, from: node, incarnation: message.sender.incarnation, destination: destination,
                receivers: receivers, bytes: bytes))
        return history.sentMessages.count - 1
    }

    private mutating func keep(_ letter: MessageInTransit, to node: Int, at time: Instant?) {
        history.transmissions.append(
            History.Transmission(
                sentAt: letter.sentAt, receivedAt: time, from: letter.from, to: node,
                name: letter.message.body.name, letter: letter.number))
    }
}
