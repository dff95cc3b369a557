// One transition after another.

import Primitives
import TrackerLogic

extension World {
    /// Whether there may be another transition: it is not over, and nothing is wrong.
    var isGoingOn: Bool { !isOver && ownViolations.isEmpty && checks.violations.isEmpty && transfersAreRight }

    /// Runs until the end, until something is wrong, or until the player is to say what comes next.
    ///
    /// - Parameter moment: where it stops, to be looked at; nil for the end.
    mutating func run(until moment: Instant? = nil) {
        carryOutWhatIfs()
        while isGoingOn, let time = queue.nextTime {
            if let moment, time > moment, !player.isNetwork {
                now = moment
                return endTroubles()
            }
            guard advance() else { return }
        }
        finish()
    }

    /// Makes the next transition.
    ///
    /// - Returns: whether there was one.
    mutating func advance() -> Bool {
        if player.isNetwork { return advanceByHand() }
        guard let next = queue.take() else { return false }
        turn(next.time, next.event)
        return true
    }

    /// Makes a transition.
    ///
    /// What the player has held back comes later than it was to.
    mutating func turn(_ time: Instant, _ happening: Happening) {
        let time = max(now, time)
        eventsNow = time == now ? eventsNow + 1 : 0
        now = time
        eventCount += 1
        player.steps += 1
        player.event = queue.takenID
        if isTold { endTroubles() }
        if eventsNow > World.maxEventsAtOnce {
            violate(.timeGoesOn, "more than \(eventsNow - 1) events at one time")
        }
        if eventCount > maxEvents { violate(.timeGoesOn, "more than \(maxEvents) events") }
        handle(happening)
        auditNow()
        if player.steps == player.nextStep { carryOutWhatIfs() }
    }

    /// Draws the line under a run.
    mutating func finish() {
        if !isOver, allViolations.isEmpty { violate(.timeGoesOn, "the world stands still") }
        if let transfers { trace.absorb(transfers.hash.value) }
        trace.absorb(UInt64(allViolations.count))
        for violation in allViolations { trace.line(now, [], "VIOLATION \(violation)") }
        if isTold, !allViolations.isEmpty { explain() }
    }

    mutating func judge(_ election: String?) {
        if let election { violate(.preferredIsElected, election) }
    }

    mutating func violate(_ invariant: Invariant, _ detail: String) {
        ownViolations.append(Violation(invariant, at: now, detail))
    }

    private mutating func handle(_ happening: Happening) {
        switch happening {
        case .datagramAtNode(let node, let remote, let bytes): arrive(node, from: remote, bytes)
        case .datagramAtClient(let place, let node, let bytes): hear(place, from: node, bytes)
        case .messageAtNode(let node, let letter): deliver(letter, to: node)
        case .nodePolls(let node, let life):
            if isTurn(of: node, life, happening) { poll(node) }
        case .nodeWakes(let node, let life):
            if isTurn(of: node, life, happening) { wake(node) }
            judge(elections.pass(now))
            watchCandidate(node)
            watchWaiting(node)
            watchStanding(node)
            watchMisconfigured(node)
            reportIfDue(node, life)
        case .groupEnds(let node, let life):
            if nodes[node].life == life { endGroup(node) }
        case .writeCompleted(let node, let life, let token, let failure):
            if isTurn(of: node, life, happening) { tell(node, token, failure) }
        case .nodeReturns(let node, let life):
            if nodes[node].life == life, !nodes[node].isUp { bringUp(node) }
        case .stopOverdue(let node, let life):
            if nodes[node].life == life, nodes[node].isStopping {
                if isClosing || hasToStop(node) { violate(.stopEnds, "\(trace.names[node]) does not stop") }
                die(node, "is stopped the hard way", by: "the operator", for: connectivity[node].downtime)
            }
        case .busLossTold(let node, let life, let cut):
            if isTurn(of: node, life, happening) { tellBusLoss(node, cut) }
        case .busReturns(let node, let life, let cut):
            if isTurn(of: node, life, happening) { connectBus(node, cut) }
        case .clientWakes(let place): wakeClient(place)
        case .clientActs(let place, let resolve, let act):
            if clients[place].resolve == resolve { self.act(place, act) }
        case .strangerActs(let number): strangerActs(number)
        case .visitorActs(let number): visitorActs(number)
        case .stewardActs(let number): stewardActs(number)
        case .stewardWaits(let number, let question): stewardWaits(number, question)
        case .fault: nextFault()
        case .turn(let number): take(number)
        case .diskRecovers(let node): recoverDisk(node)
        case .damage: nextDamage()
        case .probe(let node): probe(node)
        case .memoryIsLost(let node, let time, let downtime): tryMemoryLoss(node, before: time, downtime)
        case .heals: heal()
        case .transfers: runTransfers()
        case .operatorStops(let node): stop(node, for: .zero)
        case .stopOfAllOverdue: stopOfAllOverdue()
        case .strike(let node, let life):
            if nodes[node].life == life {
                die(node, "dies", by: "a fault after the new beginning", for: .seconds(6), isCertain: true)
            }
        case .wakeClients: wakeClients()
        case .convergenceCheck: assertConverged()
        case .end: end()
        }
    }

    /// Whether an event for a node may be handled: it lives the life that was meant, and is not held.
    ///
    /// What comes for one that is held is put off.
    private mutating func isTurn(of node: Int, _ life: Int, _ happening: Happening) -> Bool {
        guard nodes[node].life == life, nodes[node].isUp else { return false }
        guard nodes[node].heldUntil > now else { return true }
        putOff(happening, until: nodes[node].heldUntil)
        return false
    }
}
