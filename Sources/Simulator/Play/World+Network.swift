// The player is the network: he says what comes next.

import Primitives
import TrackerLogic

/// The player is the network: messages and datagrams wait until he lets them come, and time goes on at his word.
///
///     net ──► take a message | let time go on to the next thing that is none | lose a message … ──► auto
///
/// What waits keeps its order, and comes when the network works by itself again. Meanwhile the world is not healed, and
/// not looked at.
extension World {
    /// Between the end of the player's network and the healing of the world, at least.
    private static let recovery = Duration.seconds(1)

    mutating func beNetwork() -> String? {
        if player.isNetwork { return "the player is the network already" }
        player.isNetwork = true
        for waiting in queue.waiting where waiting.event.isOfPhases {
            if case .heals = waiting.event { player.healsAt = waiting.time }
            _ = queue.take(id: waiting.id)
        }
        faultsGoOn(until: now)
        spoilWays(until: now)
        trace.line(now, .faults, "the player is the network: messages and datagrams wait for him")
        return nil
    }

    mutating func leaveNetwork() -> String? {
        guard player.isNetwork else { return "the network works by itself" }
        player.isNetwork = false
        queue.put(.heals, at: max(player.healsAt ?? now, now + World.recovery))
        player.healsAt = nil
        spoilWays(until: now)
        trace.line(now, .faults, "the network works by itself again")
        return nil
    }

    /// Makes the step that the player wants, where he is the network.
    ///
    /// - Returns: whether there was one.
    mutating func advanceByHand() -> Bool {
        while player.hasStep {
            let whatIf = player.take()
            absorb(whatIf)
            guard let (time, happening) = choose(whatIf) else { continue }
            goesWrong(for: .seconds(10))
            turn(time, happening)
            return true
        }
        return false
    }

    /// What comes next at the player's word; nil where it cannot, and that was told.
    private mutating func choose(_ whatIf: WhatIf) -> (Instant, Happening)? {
        switch whatIf.action {
        case .take(let id):
            guard let waiting = underWay(id) else {
                refuse(whatIf, whyNotUnderWay(id))
                return nil
            }
            _ = queue.take(id: waiting.id)
            return (now, waiting.event)
        case .time:
            if let next = queue.takeFirst(where: { !$0.isUnderWay }) { return (next.time, next.event) }
            refuse(whatIf, "nothing else waits")
            return nil
        case .drop, .delay, .kill, .pause, .cut, .fence, .disk, .wake, .hand, .net, .auto:
            preconditionFailure("what makes no step is done after one")
        }
    }
}

extension World.Happening {
    /// Whether it is a message or a datagram on its way.
    var isUnderWay: Bool {
        switch self {
        case .messageAtNode, .datagramAtNode, .datagramAtClient: true
        case .nodePolls, .nodeWakes, .groupEnds, .writeCompleted, .nodeReturns, .stopOverdue, .busLossTold, .busReturns,
            .clientWakes, .clientActs, .strangerActs, .visitorActs, .stewardActs, .stewardWaits, .fault, .turn,
            .diskRecovers, .damage, .probe, .memoryIsLost, .transfers, .heals, .operatorStops, .stopOfAllOverdue,
            .strike,
            .wakeClients, .convergenceCheck, .end:
            false
        }
    }

    /// Whether with it the world is healed, and looked at.
    var isOfPhases: Bool {
        switch self {
        case .heals, .wakeClients, .convergenceCheck, .end: true
        case .messageAtNode, .datagramAtNode, .datagramAtClient, .nodePolls, .nodeWakes, .groupEnds, .writeCompleted,
            .nodeReturns, .stopOverdue, .busLossTold, .busReturns, .clientWakes, .clientActs, .strangerActs,
            .visitorActs, .stewardActs, .stewardWaits, .fault, .turn, .diskRecovers, .damage, .probe, .memoryIsLost,
            .transfers, .operatorStops, .stopOfAllOverdue, .strike:
            false
        }
    }
}
