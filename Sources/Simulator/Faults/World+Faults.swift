// What goes wrong by the clock, how it is put right in the end, and what must be so then.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

extension World {
    mutating func nextFault() {
        guard !isHealed else { return }
        let drawn = plan.fault()
        if let gap = plan.gap() { queue.put(.fault, at: now + gap) }
        guard let fault = drawn else { return }
        tally.faults[fault.kind.rawValue] += 1
        let cause = "fault \(plan.lastFault)"
        if options.faults.killsMastersOnly { return killMaster(cause) }
        goesWrong(for: fault.duration)
        if !fault.kind.hasVictim { countFault(fault.kind, at: Array(nodes.indices)) }
        switch fault.kind {
        case .crash, .pause, .busLoss, .cleanStop, .brokenDisk, .diskFailure, .slowDisk, .clockStep, .darkness,
            .memoryLoss:
            let node = victim()
            hit(node, fault, cause)
            if let companion = plan.companion() { hit(node, companion, cause) }
        case .partition, .oneWayPartition:
            let side = plan.side(of: nodes.count)
            cutApart(side, isOneWay: fault.kind == .oneWayPartition, for: fault.duration, cause)
        case .deafLinks: deafen(for: fault.duration, cause)
        case .clog, .slowPair:
            guard nodes.count > 1 else { return }
            let from = victim()
            let to = (from + 1 + plan.random.below(nodes.count - 1)) % nodes.count
            if fault.kind == .clog {
                bus.clog(from: from, to: to, until: now + fault.duration)
                begin(.clogged, cause, "messages held", from: from, to: to, for: fault.duration)
            } else {
                let delay = plan.shortened(plan.random.between(.milliseconds(10), .seconds(2)))
                bus.slow(from: from, to: to, by: delay, until: now + fault.duration)
                begin(
                    .slow, cause, "messages \(Figure.seconds(delay)) s later", from: from, to: to, for: fault.duration)
            }
        case .brokerOutage:
            for node in nodes.indices { cutOff(node, fault.duration, "\(cause) (broker outage)", notice(node)) }
        case .ruleChange:
            wish(fault, cause)
            let rules = drawingFault { $0.rules() }
            if options.commandsAtStart, nodes.allSatisfy({ $0.heldUntil <= now }) { self.rules = rules }
            command(.setAccess(rules))
        case .registration:
            wish(fault, cause)
            register()
        case .memberChange:
            wish(fault, cause)
            changeMembers()
        case .handover:
            wish(fault, cause)
            let successor = someID()
            // Now and then the operator does not say who is to be master.
            var whim = RandomStream(seed, .electionAsked, plan.lastFault)
            command(whim.oneIn(4) ? .elect : .handOver(to: successor))
        }
    }

    /// Only the master dies, and only where nobody else is troubled; it comes back when another one has settled.
    private mutating func killMaster(_ cause: String) {
        guard let master = connectivity.firstIndex(where: { $0.isMaster }), mayTrouble(master) else { return }
        die(master, "dies", by: cause, for: .seconds(6))
    }

    /// Says when a tracker notices the fault under way.
    private func notice(_ node: Int) -> RandomStream { RandomStream(seed, .faultAtTracker, plan.lastFault, node) }

    private mutating func wish(_ fault: Fault, _ cause: String) {
        trace.line(now, [.faults, .commands], "\(cause): the operator wants a \(fault.kind.words)")
    }

    // MARK: - Links

    /// Cuts the trackers of `side`, one bit each, off from the others.
    mutating func cutApart(_ side: UInt32, isOneWay: Bool, for duration: Duration, _ cause: String) {
        bus.split(side, isOneWay: isOneWay, until: now + duration)
        guard isTold else { return }
        let inside = nodes.indices.filter { side >> UInt32($0) & 1 == 1 }
        let outside = nodes.indices.filter { side >> UInt32($0) & 1 == 0 }
        var links = inside.flatMap { from in outside.map { LinkFault.Link(from: from, to: $0) } }
        if !isOneWay { links += links.map { LinkFault.Link(from: $0.to, to: $0.from) } }
        let names = trace.names
        let text =
            isOneWay
            ? "one-way partition, \(names.list(inside)) not heard by \(names.list(outside))"
            : "partition \(names.list(inside)) | \(names.list(outside))"
        begin(
            .deaf, cause, text, trackers: 1 << UInt32(nodes.count) - 1, links: links, for: duration, endsByTime: true)
    }

    private mutating func deafen(for duration: Duration, _ cause: String) {
        var links: [LinkFault.Link] = []
        for from in nodes.indices {
            for to in nodes.indices where from != to && plan.random.oneIn(3) {
                bus.block(from: from, to: to, until: now + duration)
                links.append(LinkFault.Link(from: from, to: to))
            }
        }
        guard isTold, !links.isEmpty else { return }
        let names = trace.names
        let words = nodes.indices.compactMap { to -> String? in
            let unheard = links.filter { $0.to == to }.map { names.short[$0.from] }
            return unheard.isEmpty ? nil : "\(names.short[to]) does not hear \(unheard.joined(separator: ", "))"
        }
        let trackers = links.reduce(0) { $0 | 1 << UInt32($1.from) | 1 << UInt32($1.to) } as UInt32
        begin(
            .deaf, cause, "deaf links, \(words.joined(separator: "; "))", trackers: trackers, links: links,
            for: duration, endsByTime: true)
    }

    /// A fault of one link.
    private mutating func begin(
        _ kind: LinkFault.Kind, _ cause: String, _ text: String, from: Int, to: Int, for duration: Duration
    ) {
        begin(
            kind, cause, "\(text) from \(trace.names.short[from]) to \(trace.names.short[to])",
            trackers: 1 << UInt32(from) | 1 << UInt32(to), links: [LinkFault.Link(from: from, to: to)],
            for: duration, endsByTime: true)
    }

    // MARK: - Trackers

    /// A fault of one node.
    private mutating func hit(_ node: Int, _ fault: Fault, _ cause: String) {
        guard connectivity[node].isThere else { return }
        countFault(fault.kind, at: [node])
        let bit: UInt32 = 1 << UInt32(node)
        let name = trace.names[node]
        switch fault.kind {
        case .crash, .pause, .busLoss, .cleanStop, .brokenDisk:
            guard mayTrouble(node) else {
                return trace.line(
                    now, .faults, about: bit,
                    "\(cause) is left out: no \(fault.kind.words) of \(name) while another is in trouble")
            }
            guard nodes[node].isUp else {
                return trace.line(
                    now, .faults, about: bit, "\(cause) is left out: no \(fault.kind.words) of \(name), it is down")
            }
        case .memoryLoss, .diskFailure, .slowDisk, .clockStep, .darkness, .partition, .oneWayPartition, .deafLinks,
            .clog, .slowPair, .brokerOutage, .ruleChange, .registration, .memberChange, .handover:
            break
        }
        switch fault.kind {
        case .crash: die(node, "dies", by: cause, for: plan.downtime())
        case .pause: hold(node, fault.duration, cause)
        case .busLoss: cutOff(node, fault.duration, cause, notice(node))
        case .cleanStop:
            trace.line(now, [.faults, .commands], about: bit, "\(cause): the operator stops \(name)")
            stop(node, for: plan.downtime())
        case .brokenDisk:
            nodes[node].disk.failure = .broken
            begin(.brokenDisk, cause, "\(name) with a broken disk", trackers: bit)
        case .memoryLoss:
            trace.line(
                now, .faults, about: bit, "\(cause): \(name) is to lose its disk as soon as all others are in step")
            tryMemoryLoss(node, before: now + .seconds(5), plan.downtime())
        case .diskFailure: refuse(node, plan.diskFailure(), fault.duration, cause)
        case .slowDisk:
            let delay = plan.shortened(plan.random.between(.milliseconds(10), .seconds(3)))
            nodes[node].disk.options.maxDelay = delay
            begin(
                .disk, cause, "writes of \(name) take up to \(Figure.seconds(delay)) s", trackers: bit,
                for: fault.duration)
            queue.put(.diskRecovers(node), at: now + fault.duration)
        case .clockStep:
            let step = plan.clockStep()
            nodes[node].clock.step(wall: step)
            checks.hasGoodClocks = false
            let text = "\(step < 0 ? "back" : "ahead") by \(Figure.seconds(.milliseconds(abs(step)))) s"
            trace.line(now, .faults, about: bit, "\(cause): the wall clock of \(name) is set \(text)")
            mark(node, .clockStep, "clock \(text)")
        case .darkness:
            connectivity[node].darkUntil = now + fault.duration
            begin(
                .dark, cause, "no client reaches \(name)", trackers: bit, for: fault.duration, endsByTime: true)
        case .partition, .oneWayPartition, .deafLinks, .clog, .slowPair, .brokerOutage, .ruleChange, .registration,
            .memberChange,
            .handover:
            break
        }
    }

    /// Rather often the master.
    private mutating func victim() -> Int {
        let (node, isAnyone) = (plan.random.below(nodes.count), !plan.random.oneIn(3))
        if isAnyone { return node }
        return connectivity.firstIndex(where: { $0.isMaster }) ?? node
    }

    /// A disk may be lost while no other is lost, down or behind: what only it held would be gone for good, and that
    /// would be nobody's fault.
    mutating func mayLoseMemory(_ victim: Int) -> Bool {
        guard nodes.count > 1, mayTrouble(victim), let own = nodes[victim].inspection, own.isServing, own.hasFullState
        else {
            return false
        }
        // Who is left must be a majority without it, or nobody could take it in again; also when another one goes that
        // the operator wants to go.
        let remaining = own.voters.count - (isRemovalAsked ? 1 : 0)
        let isVoter = own.voters.contains(own.life.id) || own.life.id == heir
        if profile == .paxos, isVoter, remaining < 3 { return false }
        // That the members have changed is certain, also for who begins anew, once an entry is decided behind it.
        if profile == .paxos, own.position.index <= membersChangedAt { return false }
        for node in nodes.indices where connectivity[node].isThere {
            if nodes[node].disk.memory?.isDamaged == true { return false }
            guard let other = nodes[node].inspection, other.isServing, other.hasFullState, !other.isFenced,
                other.role == .master || other.role == .slave, other.promised == own.promised,
                other.position == own.position
            else { return false }
        }
        return true
    }

    /// Waits for a moment at which all are in step.
    mutating func tryMemoryLoss(_ node: Int, before time: Instant, _ downtime: Duration) {
        guard !isHealed, now < time else { return }
        if mayLoseMemory(node) { return loseMemory(node, downtime) }
        queue.put(.memoryIsLost(node, before: time, downtime: downtime), at: now + .milliseconds(100))
    }

    // MARK: - The operator

    /// Commands the master; now and then somebody else, who has to say no.
    private mutating func command(_ command: OperatorCommand) {
        let other = plan.random.below(nodes.count)
        var node = connectivity.firstIndex(where: { $0.isMaster }) ?? other
        if plan.random.oneIn(6) { node = other }
        guard nodes[node].isUp, !nodes[node].isStopping, nodes[node].heldUntil <= now else { return }
        step(node, .commandReceived(command))
    }

    private mutating func someID() -> UInt32 { max(1, nodes[plan.random.below(nodes.count)].configuration.id) }

    /// What the operator's files say: torrents of the workload by name and size, and those of the directory.
    var fileTorrents: [FileTorrent] {
        let named = workload.infoHashes.enumerated().map { number, infoHash in
            FileTorrent(
                RegisteredTorrent(infoHash: infoHash, name: "torrent \(number)", byteCount: UInt64(number) << 20))
        }
        return named + directory.map { FileTorrent($0.torrent, isKept: true) }
    }

    private mutating func register() {
        let gone = drawingFault { $0.infoHash() }
        let isLess = plan.random.oneIn(3)
        command(.setFileTorrents(fileTorrents.filter { !isLess || $0.torrent.infoHash != gone }))
    }

    private mutating func changeMembers() {
        let outsiders = (1...UInt32(nodes.count)).filter { connectivity[Int($0) - 1].isThere && !members.contains($0) }
        let member = members.isEmpty ? someID() : members[plan.random.below(members.count)]
        guard !outsiders.isEmpty else {
            if members.count > 2, !isAnyDiskLost { remove(member) }
            return
        }
        let outsider = outsiders[plan.random.below(outsiders.count)]
        guard !isAnyDiskLost else { return }
        switch plan.random.below(3) {
        case 0 where members.count > 2: remove(member)
        case 1:
            guard !hasLostDisk(outsider) else { return }
            isRemovalAsked = true
            heir = outsider
            command(.replaceMember(member, by: outsider))
        default: command(.addMember(outsider))
        }
    }

    private mutating func remove(_ member: UInt32) {
        isRemovalAsked = true
        command(.removeMember(member))
    }

    /// Whether a member is without what it has voted for: who takes a vote away from the others meanwhile may leave no
    /// majority that can ever be.
    private var isAnyDiskLost: Bool { members.contains { hasLostDisk($0) } }

    private func hasLostDisk(_ id: UInt32) -> Bool {
        nodes.contains {
            $0.configuration.id == id
                && ($0.disk.record.promise?.hasFullState != true || $0.disk.memory?.isDamaged == true)
        }
    }

    // MARK: - All is well again

    /// Ends the faults.
    mutating func heal() {
        isHealed = true
        goesWrong()
        trace.line(now, [], "the world is healed")
        if isTold {
            for over in troubles.takeAll(where: { $0.isOfLinks || $0 == .dark || $0 == .disk || $0 == .brokenDisk }) {
                end(over, at: now)
            }
        }
        bus.heal(at: now)
        endWhatIfs()
        network = .healed
        for node in nodes.indices where connectivity[node].isThere {
            nodes[node].disk.options = .healed
            let isBroken = nodes[node].disk.isBroken || nodes[node].disk.failure == .broken
            nodes[node].disk.failure = nil
            connectivity[node].darkUntil = now
            if isBroken { die(node, "stops", by: "the operator, for its broken disk", for: .zero) }
            if !nodes[node].differing.isEmpty { die(node, "stops", by: "the operator, for its settings", for: .zero) }
            let (life, cut) = (nodes[node].life, connectivity[node].cut)
            if !nodes[node].isUp {
                queue.put(.nodeReturns(node, life: life), at: now + .milliseconds(10))
            } else if hasBus, !connectivity[node].isOnBus {
                queue.put(.busReturns(node, life: life, cut: cut), at: now + .milliseconds(10))
            }
        }
        queue.put(.wakeClients, at: now + World.repairTime)
    }

    /// Everybody asks anew, whatever he was waiting for.
    mutating func wakeClients() {
        lookBeforeWaking()
        if let way = options.wholeStop, wholeStop == nil { return stopAll(way) }
        clientsWokenAt = now
        checks.allIsWell(since: now)
        if tamperings.first?.sabotage == .fallsSilentAfterFaults {
            for node in nodes.indices { nodes[node].heldUntil = now + .seconds(1_000_000) }
        }
        trace.line(now, [], "everybody asks anew")
        for place in clients.indices where options.hasClient(place) {
            switch (clients[place].kind, clients[place].stage) {
            case (.scraper, _): stepClient(place, .scrapeWanted(drawing(place) { $0.scrape() }))
            case (.peer, .absent): if people[place].announcers.oneIn(2) { arrive(place) }
            case (.peer, .present), (.peer, .leaving): stepClient(place, .updateWanted)
            }
        }
        visitAll()
        wakeStewards()
        queue.put(.convergenceCheck, at: now + (options.outlastsTheSilent ? longestLife : World.convergenceTime))
    }

    /// After which whoever has fallen silent is gone: the longest interval and a fifth, on the slowest clock, and two
    /// rounds of the sweep.
    private var longestLife: Duration {
        let interval = options.interval * IntervalPolicy.maxStretch + options.intervalJitter
        return .seconds(Int64(interval) * 6 / 5 * 3 / 2 + 180)
    }

    /// Looks at what has become of all.
    mutating func assertConverged() {
        trace.line(now, [], "the world is looked at")
        checkVisits()
        checkWholeStop()
        checkStewards()
        judgeTransfers()
        var unanswered: [(client: Int, since: Instant)] = []
        for place in clients.indices {
            guard let askedAt = clients[place].askedAt, now - askedAt > World.answerBound,
                !mayBeUnheard(since: askedAt)
            else { continue }
            unanswered.append((place, askedAt))
        }
        for node in nodes.indices { audit(node) }
        let machines = nodes.map { $0.machine }
        checks.finish(machines: machines, unanswered: unanswered, at: now)
        if options.outlastsTheSilent {
            let present = clients.filter { $0.kind == .peer && $0.stage == .present && $0.isGranted }
            checks.checkExact(machines, present: present.map { ($0.infoHash, $0.endpoint) }, at: now)
        }
        if options.commandsAtStart {
            for node in nodes.indices { checkRules(node) }
        }
        guard options.stopsAtEnd else {
            isOver = true
            return
        }
        queue.put(.end, at: now)
    }

    /// The rules of a tracker that serves are what its operator's files say.
    mutating func checkRules(_ node: Int) {
        guard let access = nodes[node].state?.access else { return }
        let isRight =
            access.mode == rules.mode && access.infoHashCount == rules.infoHashes.count
            && access.userCount == rules.users.count
        if isRight { return }
        violate(
            .rulesAreInForce,
            "\(trace.names[node]) has access \(access.mode) with \(access.infoHashCount) info hashes and "
                + "\(access.userCount) users, commanded was \(rules.mode) with \(rules.infoHashes.count) and "
                + "\(rules.users.count)")
    }
}
