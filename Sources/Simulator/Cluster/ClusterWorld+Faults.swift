/// What goes wrong by the clock, how it is put right in the end, and what must be so then.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

extension ClusterWorld {
    mutating func nextFault() {
        guard !isHealed, let gap = plan.gap() else { return }
        queue.put(.fault, at: now + gap)
        guard let fault = plan.fault() else { return }
        tally.faults[fault.kind.rawValue] += 1
        trace.line(now, "fault \(plan.lastFault): \(fault.kind) for \(fault.duration.wholeMilliseconds) ms")
        switch fault.kind {
        case .crash, .pause, .busLoss, .cleanStop, .brokenDisk, .diskFailure, .slowDisk, .clockStep, .darkness,
            .memoryLoss:
            hit(victim(), fault)
        case .partition, .oneWayPartition:
            bus.split(plan.side(of: nodes.count), isOneWay: fault.kind == .oneWayPartition, until: now + fault.duration)
        case .deafLinks:
            for from in nodes.indices {
                for to in nodes.indices where from != to && plan.random.oneIn(3) {
                    bus.block(from: from, to: to, until: now + fault.duration)
                }
            }
        case .clog, .slowPair:
            guard nodes.count > 1 else { return }
            let from = victim()
            let to = (from + 1 + plan.random.below(nodes.count - 1)) % nodes.count
            if fault.kind == .clog {
                bus.clog(from: from, to: to, until: now + fault.duration)
            } else {
                let delay = plan.random.between(.milliseconds(10), .seconds(2))
                bus.slow(from: from, to: to, by: delay, until: now + fault.duration)
            }
        case .brokerOutage: for node in nodes.indices { cutOff(node, fault.duration, "broker outage") }
        case .ruleChange: command(.setAccess(workload.rules()))
        case .registration: register()
        case .memberChange: changeMembers()
        case .handover: command(.handOver(to: someID()))
        }
    }

    /// A fault of one node.
    private mutating func hit(_ node: Int, _ fault: ClusterFault) {
        switch fault.kind {
        case .crash: if mayTrouble(node) { die(node, "dies") }
        case .pause: if mayTrouble(node), nodes[node].isUp { hold(node, fault.duration, "by the clock") }
        case .busLoss: if mayTrouble(node) { cutOff(node, fault.duration, "by the clock") }
        case .cleanStop: if mayTrouble(node) { stop(node) }
        case .brokenDisk: if mayTrouble(node), nodes[node].isUp { nodes[node].disk.failure = .broken }
        case .memoryLoss: tryMemoryLoss(node, before: now + .seconds(5))
        case .diskFailure:
            nodes[node].disk.failure = plan.diskFailure()
            queue.put(.diskRecovers(node), at: now + fault.duration)
        case .slowDisk:
            nodes[node].disk.options.maxDelay = plan.random.between(.milliseconds(10), .seconds(3))
            queue.put(.diskRecovers(node), at: now + fault.duration)
        case .clockStep: nodes[node].clock.step(wall: plan.clockStep())
        case .darkness: seats[node].darkUntil = now + fault.duration
        case .partition, .oneWayPartition, .deafLinks, .clog, .slowPair, .brokerOutage, .ruleChange, .registration,
            .memberChange,
            .handover:
            break
        }
    }

    /// Rather often the master.
    private mutating func victim() -> Int {
        let node = plan.random.below(nodes.count)
        guard plan.random.oneIn(3) else { return node }
        return seats.firstIndex(where: \.isMaster) ?? node
    }

    /// A disk may be lost while no other is lost, down or behind: what only it held would be gone for good, and that
    /// would be nobody's fault.
    private mutating func mayLoseMemory(_ victim: Int) -> Bool {
        guard nodes.count > 1, mayTrouble(victim), let own = nodes[victim].inspection, own.isServing, own.isWhole else {
            return false
        }
        // Who is left must be a majority without it, or nobody could take it in again; also when another one goes that
        // the operator wants to go.
        let remaining = own.voters.count - (isRemovalAsked ? 1 : 0)
        if profile == .paxos, own.voters.contains(own.life.id), remaining < 3 { return false }
        // That the members have changed is certain, also for who begins anew, once an entry is decided behind it.
        if profile == .paxos, own.position.index <= membersChangedAt { return false }
        for node in nodes.indices {
            guard let other = nodes[node].inspection, other.isServing, other.isWhole, !other.isFenced,
                other.role == .master || other.role == .slave, other.promised == own.promised,
                other.position == own.position
            else { return false }
        }
        return true
    }

    /// Waits for a moment at which all are in step.
    mutating func tryMemoryLoss(_ node: Int, before time: Instant) {
        guard !isHealed, now < time else { return }
        if mayLoseMemory(node) { return loseMemory(node) }
        queue.put(.memoryIsLost(node, before: time), at: now + .milliseconds(100))
    }

    mutating func recoverDisk(_ node: Int) {
        if nodes[node].disk.failure != .broken { nodes[node].disk.failure = nil }
        nodes[node].disk.options.maxDelay = isHealed ? DiskOptions.healed.maxDelay : options.disk.maxDelay
    }

    // MARK: - The operator

    /// Commands the master; now and then somebody else, who has to say no.
    private mutating func command(_ command: OperatorCommand) {
        let other = plan.random.below(nodes.count)
        var node = seats.firstIndex(where: \.isMaster) ?? other
        if plan.random.oneIn(6) { node = other }
        guard nodes[node].isUp, !nodes[node].isStopping, nodes[node].heldUntil <= now else { return }
        step(node, .commandReceived(command))
    }

    private mutating func someID() -> UInt32 { max(1, nodes[plan.random.below(nodes.count)].configuration.id) }

    private mutating func register() {
        let torrents = workload.infoHashes.enumerated().map { number, infoHash in
            RegisteredTorrent(infoHash: infoHash, name: "torrent \(number)", byteCount: UInt64(number) << 20)
        }
        command(
            plan.random.oneIn(3) ? .unregisterTorrents([workload.infoHash()]) : .registerTorrents(torrents))
    }

    private mutating func changeMembers() {
        let outsiders = (1...UInt32(nodes.count)).filter { !members.contains($0) }
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
        nodes.contains { $0.configuration.id == id && $0.disk.record.promise?.isWhole != true }
    }

    // MARK: - All is well again

    /// Ends the faults.
    mutating func heal() {
        isHealed = true
        trace.line(now, "the world is healed")
        bus.heal()
        network.options = .healed
        network.isDarkUntil = now
        for node in nodes.indices {
            nodes[node].disk.options = .healed
            let isBroken = nodes[node].disk.isBroken || nodes[node].disk.failure == .broken
            nodes[node].disk.failure = nil
            seats[node].darkUntil = now
            if isBroken { die(node, "has a broken disk") }
            let (life, cut) = (nodes[node].life, seats[node].cut)
            if !nodes[node].isUp {
                queue.put(.nodeReturns(node, life: life), at: now + .milliseconds(10))
            } else if !seats[node].isOnBus {
                queue.put(.busReturns(node, life: life, cut: cut), at: now + .milliseconds(10))
            }
        }
        queue.put(.nudge, at: now + ClusterWorld.repairTime)
    }

    /// Everybody asks anew, whatever he was waiting for.
    mutating func nudge() {
        nudgedAt = now
        trace.line(now, "everybody asks anew")
        for place in clients.indices {
            switch (clients[place].kind, clients[place].stage) {
            case (.scraper, _): stepClient(place, .scrapeWanted(workload.scrape()))
            case (.peer, .absent): if workload.random.oneIn(2) { arrive(place) }
            case (.peer, .present), (.peer, .leaving): stepClient(place, .updateWanted)
            }
        }
        queue.put(.reckoning, at: now + ClusterWorld.reckoningTime)
    }

    /// Looks at what has become of all.
    mutating func reckon() {
        trace.line(now, "the world is looked at")
        var unanswered: [(client: Int, since: Instant)] = []
        for place in clients.indices {
            guard let askedAt = clients[place].askedAt, now - askedAt > ClusterWorld.answerBound,
                !mayBeUnheard(since: askedAt)
            else { continue }
            unanswered.append((place, askedAt))
        }
        checks.finish(machines: nodes.map(\.machine), unanswered: unanswered, at: now)
        isOver = true
    }
}
