// What-ifs, carried out.

import Primitives
import TrackerLogic

/// What-ifs, carried out: as faults, with what the checkers suppose of faults.
///
/// What the player does to trackers ends when the world is healed, as all faults do. In a world that is healed already,
/// what he does makes it go wrong once more: it is healed anew after that, and looked at later.
extension World {
    /// Worlds are healed anew so often at most.
    static let maxRelapses = 50
    /// For so long a message that is lost or late may make trouble.
    private static let aftermath = Duration.seconds(10)
    /// What the player has delayed comes within this time when the world is healed.
    private static let healedDelay = Duration.seconds(5)
    /// Who dies for good is down for eleven days, or until the world is healed.
    static let forGood = Duration.seconds(1_000_000)

    /// Carries out what is to be done after the present step, but for what makes a step of its own.
    mutating func carryOutWhatIfs() {
        while player.nextStep == player.steps, isGoingOn {
            if player.isNetwork, player.hasStep { return }
            let whatIf = player.take()
            absorb(whatIf)
            if let reason = obstacle(to: whatIf.action) ?? attempt(whatIf.action) { refuse(whatIf, reason) }
        }
    }

    mutating func absorb(_ whatIf: WhatIf) {
        trace.absorb(now, 9, whatIf.step)
        for word in whatIf.words { trace.absorb(word) }
    }

    /// A what-if has come to nothing; `reason` is a sentence without its subject.
    mutating func refuse(_ whatIf: WhatIf, _ reason: String) {
        player.unmet.append(UnmetWhatIf(place: player.next - 1, whatIf: whatIf, reason: reason))
        trace.line(now, .faults, "what-if \(whatIf) comes to nothing: \(reason)")
    }

    /// Why nothing may be done now.
    private func obstacle(to action: WhatIf.Action) -> String? {
        if action == .auto { return nil }
        if isClosing { return "all trackers are being stopped for the last time" }
        if let wholeStop, !wholeStop.isOver { return "the operator is stopping the whole cluster" }
        if isHealed, player.relapses >= World.maxRelapses {
            return "the world has been healed \(World.maxRelapses) times since it was first, and is left alone now"
        }
        return nil
    }

    /// Does something.
    ///
    /// - Returns: why it could not be done.
    private mutating func attempt(_ action: WhatIf.Action) -> String? {
        switch action {
        case .drop(let id): return drop(id)
        case .delay(let id, let milliseconds): return delay(id, span(milliseconds))
        case .kill(let node, let milliseconds):
            return whyNot(node) ?? kill(node, milliseconds == 0 ? World.forGood : span(milliseconds))
        case .pause(let node, let milliseconds): return whyNot(node) ?? pause(node, span(milliseconds))
        case .cut(let places, let milliseconds): return cut(places, span(milliseconds))
        case .fence(let node, let milliseconds): return whyNot(node) ?? fence(node, span(milliseconds))
        case .disk(let node, let milliseconds): return fill(node, span(milliseconds))
        case .wake(let node): return wakeByHand(node)
        case .hand(let node, let id): return hand(node, id)
        case .net: return beNetwork()
        case .auto: return leaveNetwork()
        case .take, .time: return "the player is not the network; put net before it"
        }
    }

    private func span(_ milliseconds: Int) -> Duration { .milliseconds(Int64(milliseconds)) }

    // MARK: - Messages

    /// Something that is on its way over the bus or the network, by any id that it has had.
    func underWay(_ id: UInt64) -> EventQueue<Happening>.Waiting? {
        queue.find(player.present(id)).flatMap { $0.event.isUnderWay ? $0 : nil }
    }

    func whyNotUnderWay(_ id: UInt64) -> String {
        if queue.find(player.present(id)) != nil { return "event \(id) is no message and no datagram" }
        return id > queue.lastID
            ? "no event \(id) is there yet" : "event \(id) is not under way any more"
    }

    private mutating func drop(_ id: UInt64) -> String? {
        guard let waiting = underWay(id) else { return whyNotUnderWay(id) }
        _ = queue.take(id: waiting.id)
        if player.isWatching { player.traffic.ended.append((waiting.id, .lost)) }
        spoilWays(until: now)
        say(of: waiting.event) { "the player loses \($0)" }
        return nil
    }

    private mutating func delay(_ id: UInt64, _ duration: Duration) -> String? {
        guard let waiting = underWay(id) else { return whyNotUnderWay(id) }
        let time = max(waiting.time, now) + duration
        queue.move(waiting.id, to: time)
        player.delayed.append(waiting.id)
        spoilWays(until: time)
        say(of: waiting.event) { "the player holds \($0) back for \(Figure.seconds(duration)) s more" }
        return nil
    }

    private mutating func say(of event: Happening, _ sentence: (String) -> String) {
        guard trace.isRecording else { return }
        let words = sentence(words(of: event))
        trace.line(now, .faults, about: event.trackers, words)
    }

    /// A message is lost, or comes late: nobody can say who is elected for a while.
    mutating func spoilWays(until time: Instant) {
        goesWrong(for: time - now + World.aftermath)
        faultsGoOn(until: time)
    }

    // MARK: - Trackers

    /// Why nothing can be done to a tracker.
    private func whyNot(_ node: Int) -> String? {
        guard nodes.indices.contains(node), connectivity[node].isThere else { return noTracker(node) }
        return nodes[node].isUp ? nil : "\(trace.names[node]) is down"
    }

    private func noTracker(_ node: Int) -> String { "there is no tracker at place \(node), counted from 0" }

    private mutating func kill(_ node: Int, _ duration: Duration) -> String? {
        faultsGoOn(until: now + (duration == World.forGood ? .zero : duration))
        die(node, "dies", by: "the player", for: duration, isCertain: true)
        return nil
    }

    private mutating func pause(_ node: Int, _ duration: Duration) -> String? {
        guard nodes[node].heldUntil <= now else { return "\(trace.names[node]) is held already" }
        faultsGoOn(until: now + duration)
        player.held |= 1 << UInt32(node)
        hold(node, duration, "the player")
        return nil
    }

    private mutating func fence(_ node: Int, _ duration: Duration) -> String? {
        guard hasBus else { return "there is no bus" }
        guard connectivity[node].isOnBus else { return "\(trace.names[node]) has no bus" }
        faultsGoOn(until: now + duration)
        cutOff(node, duration, "the player", RandomStream(seed, .whatIf, player.next, node))
        return nil
    }

    private mutating func cut(_ places: [Int], _ duration: Duration) -> String? {
        guard hasBus else { return "there is no bus" }
        if let node = places.first(where: { !nodes.indices.contains($0) }) { return noTracker(node) }
        guard places.count < nodes.count else { return "nobody is left from whom to cut all of them off" }
        faultsGoOn(until: now + duration)
        goesWrong(for: duration)
        trace.absorb(now, 10, places.count)
        let side = places.reduce(0) { $0 | 1 << UInt32($1) } as UInt32
        cutApart(side, isOneWay: false, for: duration, "the player")
        return nil
    }

    private mutating func fill(_ node: Int, _ duration: Duration) -> String? {
        guard nodes.indices.contains(node), connectivity[node].isThere else { return noTracker(node) }
        guard nodes[node].disk.failure != .broken, !nodes[node].disk.isBroken else {
            return "the disk of \(trace.names[node]) is broken"
        }
        faultsGoOn(until: now + duration)
        goesWrong(for: duration)
        begin(
            .disk, "the player", "\(trace.names[node]) with a full disk", trackers: 1 << UInt32(node), for: duration)
        nodes[node].disk.failure = .full
        queue.put(.diskRecovers(node), at: now + duration)
        return nil
    }

    private mutating func hand(_ node: Int, _ id: UInt32) -> String? {
        if let why = whyNot(node) { return why }
        if nodes[node].isStopping { return "\(trace.names[node]) is being stopped" }
        if nodes[node].heldUntil > now { return "\(trace.names[node]) is held" }
        faultsGoOn(until: now + World.aftermath)
        goesWrong(for: World.aftermath)
        step(node, .commandReceived(.handOver(to: id)))
        return nil
    }

    // MARK: - Waking

    private mutating func wakeByHand(_ node: Int) -> String? {
        guard nodes.indices.contains(node), connectivity[node].isThere else { return noTracker(node) }
        let isCut = bus.isBlocked(node, now: now)
        let isOffBus = hasBus && nodes[node].isUp && !connectivity[node].isOnBus
        guard !nodes[node].isUp || nodes[node].heldUntil > now || isCut || isOffBus else {
            return "\(trace.names[node]) is up, and is neither held nor cut off"
        }
        faultsGoOn(until: now)
        goesWrong()
        if !nodes[node].isUp {
            queue.put(.nodeReturns(node, life: nodes[node].life), at: now)
        } else if isOffBus {
            queue.put(.busReturns(node, life: nodes[node].life, cut: connectivity[node].cut), at: now)
        }
        if nodes[node].heldUntil > now { goOn(node) }
        if isCut {
            bus.unblock(node, at: now)
            endLinks(of: node)
        }
        trace.line(now, .faults, of: node, "is woken by the player")
        return nil
    }

    /// A tracker that is held goes on now, and with it all that was put off for it.
    mutating func goOn(_ node: Int) {
        let until = nodes[node].heldUntil
        nodes[node].heldUntil = now
        player.held &= ~(1 << UInt32(node))
        for waiting in queue.waiting where waiting.time == until && waiting.event.isFor(node) {
            queue.move(waiting.id, to: now)
        }
        endTroubles([.held], of: node)
    }

    // MARK: - Healing

    /// Faults go on until a time at least: a world that is healed is healed anew after that.
    mutating func faultsGoOn(until time: Instant) {
        guard isHealed else { return }
        clientsWokenAt = nil
        checks.allIsWell(since: nil)
        if player.isNetwork { return }
        let healsAt = time + .seconds(1)
        var isPlanned = false
        for waiting in queue.waiting where waiting.event.isOfPhases {
            guard case .heals = waiting.event else {
                _ = queue.take(id: waiting.id)
                continue
            }
            isPlanned = true
            if waiting.time < healsAt { queue.move(waiting.id, to: healsAt) }
        }
        if isPlanned { return }
        player.relapses += 1
        queue.put(.heals, at: healsAt)
    }

    /// Ends what the player has done to trackers and messages, when the world is healed.
    mutating func endWhatIfs() {
        for node in nodes.indices where player.held >> UInt32(node) & 1 == 1 && nodes[node].heldUntil > now {
            goOn(node)
        }
        player.held = 0
        for id in player.delayed {
            guard let waiting = underWay(id), waiting.time > now + World.healedDelay else { continue }
            queue.move(waiting.id, to: now + World.healedDelay)
        }
        player.delayed.removeAll()
    }
}
