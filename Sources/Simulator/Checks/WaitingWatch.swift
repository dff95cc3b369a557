// Requests that wait although nothing keeps anybody from answering them.

import Primitives
import TrackerLogic
import Wire

/// Requests that wait although nothing keeps anybody from answering them: also while others are in trouble.
///
///     nobody waits ── somebody waits, and all that his answer needs works ──► watched ── too long ──► wrong
///          ▲                                                                     │
///          └── an answer leaves, nobody waits, or what it needs has ceased to work ┘
///
/// What an answer needs is a situation: one master that serves, for as long as it is the same one. The world says what
/// the situation of a tracker is. To look only when all is well again, in the end, would miss a request that is
/// forgotten while others are not.
struct WaitingWatch: Sendable {
    /// What the requests of a tracker wait for.
    struct Situation: Sendable, Hashable {
        /// Of the master that serves.
        var epoch: Epoch
        /// Whether every voter's disk is full, so that nothing can be stored: then clients are told so.
        var isFull = false
    }

    private struct Seat: Sendable {
        var situation: Situation?
        /// Since when that has been the situation.
        var since = Instant(nanoseconds: 0)
        /// When the last answer left, as far as has been seen, and how many there were by then.
        var answeredAt = Instant(nanoseconds: 0)
        var answered = 0
    }

    private var seats: [Seat]

    init(nodeCount: Int) { seats = Array(repeating: Seat(), count: nodeCount) }

    /// Nobody waits at a tracker.
    mutating func nobodyWaits(_ node: Int) { seats[node].situation = nil }

    /// Somebody waits at a tracker; `answered` is how many have been answered there so far.
    ///
    /// - Returns: since when something could have been said, and nothing was; and since when the situation has been so.
    mutating func waits(
        _ node: Int, in situation: Situation?, answered: Int, at time: Instant
    ) -> (silentSince: Instant, wellSince: Instant)? {
        guard let situation else {
            seats[node].situation = nil
            return nil
        }
        if seats[node].situation != situation {
            seats[node] = Seat(situation: situation, since: time, answeredAt: time, answered: answered)
        }
        if seats[node].answered != answered { (seats[node].answered, seats[node].answeredAt) = (answered, time) }
        return (seats[node].answeredAt, seats[node].since)
    }
}

extension World {
    /// Keepalives within which whoever waits is answered where nothing stands in the way.
    private static let patience = 6
    /// The same in a group, which keeps a datagram for nine seconds: after one a slave sends it on, and another passes
    /// where that is lost.
    private static let patienceOfGroup = 4
    /// The same where all disks are full: a write is tried again a second after it failed, and what waits behind an
    /// entry goes into the next.
    private static let patienceWhenFull = Duration.seconds(8)

    /// Whether waiting is judged at all: where messages get lost all the time, each may be said several times, and
    /// where disks stall, all wait for them.
    static func judgesWaiting(_ options: ScenarioOptions) -> Bool {
        options.bus.lossPerMille == 0 && options.bus.stragglerPerMille == 0
            && options.bus.maxDelay <= .milliseconds(50) && options.disk.failPerMille == 0
            && options.disk.stallPerMille == 0 && options.disk.maxDelay <= .milliseconds(60)
            && options.maxDrift <= 2000
    }

    /// A tracker has woken: nobody waits at it without a reason.
    mutating func watchWaiting(_ node: Int) {
        guard judgesWaiting else { return }
        let isWaited = checks.isWaited(at: node)
        let isInGroup = options.entry == .group && options.waitingRequests >= 1000 && checks.hasBooked(node)
        guard isWaited || isInGroup else { return waiting.nobodyWaits(node) }
        let answered = checks.answerCount(of: node)
        let situation = situation(of: node)
        guard let watched = waiting.waits(node, in: situation, answered: answered, at: now) else { return }
        let cluster = nodes[node].configuration.cluster
        if isInGroup, situation?.isFull == false { watchGroup(node, since: watched.wellSince) }
        guard isWaited else { return }
        let limit =
            situation?.isFull == true
            ? World.patienceWhenFull : cluster.keepalive * World.patience + cluster.vote.patience
        // In a group the master answers, and the others keep what they have heard until they know that.
        let isItsTurn = options.entry == .any || connectivity[node].isMaster && situation?.isFull == false
        if isItsTurn, now - watched.silentSince > limit {
            return violate(
                .waitingAreAnswered,
                "requests wait at \(trace.names[node]), which has answered nothing for "
                    + "\((now - watched.silentSince).wholeMilliseconds) ms, and nothing keeps it from that")
        }
        let since = checks.oldestVisit(at: node, inLife: nodes[node].life)
        guard let since, now - max(since, watched.wellSince) > limit else { return }
        violate(
            .waitingAreAnswered,
            "an HTTP request has waited at \(trace.names[node]) for \((now - since).wholeMilliseconds) ms, and nothing "
                + "keeps it from answering")
    }

    /// What a tracker of a group has heard is answered, though the master may have missed it, or was none yet.
    private mutating func watchGroup(_ node: Int, since wellSince: Instant) {
        let cluster = nodes[node].configuration.cluster
        let leadsSince = connectivity[node].isMaster ? wellSince : nil
        let heardAt = checks.oldestInGroup(
            at: node, leadsSince: leadsSince, limit: cluster.keepalive * cluster.missed, now: now)
        guard let heardAt else { return }
        let limit = cluster.keepalive * World.patienceOfGroup + cluster.vote.patience
        guard now - max(heardAt, wellSince) > limit else { return }
        violate(
            .waitingAreAnswered,
            "a datagram has waited at \(trace.names[node]) for \((now - heardAt).wholeMilliseconds) ms, and nothing "
                + "keeps the group from answering it")
    }

    /// Whose word the requests of a tracker wait for, where all works that they need; nil where something does not.
    ///
    /// In survivor mode everybody's vote may be needed.
    private mutating func situation(of node: Int) -> WaitingWatch.Situation? {
        guard isWell(node), nodes[node].inspection?.isServing == true else { return nil }
        var master: (node: Int, epoch: Epoch, voters: [UInt32])?
        for other in nodes.indices {
            guard let seen = nodes[other].inspection, seen.role == .master else { continue }
            guard master == nil, seen.isServing, !seen.isHandingOver, isWell(other), let epoch = seen.leads else {
                return nil
            }
            master = (other, epoch, seen.voters)
        }
        guard let master, nodes[node].inspection?.promised == master.epoch else { return nil }
        var voters = 0
        var full = 0
        for other in nodes.indices where connectivity[other].isThere {
            guard let seen = nodes[other].inspection, master.voters.contains(seen.life.id) else { continue }
            // Who has lost its memory has no vote before it holds the whole state, and is let in only where a quorum
            // without it follows. In survivor mode its master does without it.
            guard seen.hasFullState || !checks.promises.membersDecide else { continue }
            // Its master does not hear a new life before it takes the one before for down.
            if seen.isFenced, other != master.node, isNew(other) { continue }
            let reaches =
                isWell(other) && seen.promised == master.epoch
                && bus.isClear(between: other, and: master.node, now: now)
            guard reaches else { continue }
            voters += 1
            if nodes[other].disk.failure != nil { full += 1 }
        }
        guard bus.isClear(between: node, and: master.node, now: now) else { return nil }
        let needed = checks.promises.membersDecide ? master.voters.count / 2 + 1 : master.voters.count
        if full == master.voters.count {
            // What somebody has stored may be decided when there is room, and is not given up. Who lacks on its disk
            // what is decided tries that first, and has no word on what comes next. And where few go into an entry,
            // many wait for their turn.
            guard options.entry == .any, options.updatesPerEntry >= 16, areAllDisksAlike(as: master.node) else {
                return nil
            }
            return WaitingWatch.Situation(epoch: master.epoch, isFull: true)
        }
        guard voters - full >= needed, nodes[master.node].disk.failure == nil else { return nil }
        return WaitingWatch.Situation(epoch: master.epoch)
    }

    /// Whether each disk holds what a master has applied, and nothing behind that.
    private mutating func areAllDisksAlike(as master: Int) -> Bool {
        let index = nodes[master].appliedIndex ?? 0
        return nodes.indices.allSatisfy { !connectivity[$0].isThere || nodes[$0].disk.record.lastIndex == index }
    }

    /// Whether a tracker has been on the bus for so short a time that others may still take its last life for the one
    /// that has its number; they are asked again each quarter of a keepalive.
    private func isNew(_ node: Int) -> Bool {
        let cluster = nodes[node].configuration.cluster
        return now - connectivity[node].busSince < cluster.detectionTime + cluster.keepalive
    }

    /// Whether nothing is wrong with a tracker but that its disk may be full.
    func isWell(_ node: Int) -> Bool {
        connectivity[node].isThere && !mayBeLeftOut(node) && nodes[node].isUp && nodes[node].heldUntil <= now
            && !nodes[node].isStopping
            && (!hasBus || connectivity[node].isOnBus && connectivity[node].isToldOnBus)
            && nodes[node].disk.failure != .broken && !nodes[node].disk.isBroken
            && nodes[node].disk.options.maxDelay <= .milliseconds(60)
    }
}

extension ClusterConfiguration.VotePolicy {
    /// For how long a vote that was lost before may hold all up.
    fileprivate var patience: Duration {
        switch self {
        case .majority: .zero
        case .allDropped(let after): after
        case .allAskedAgain(let every): every
        }
    }
}
