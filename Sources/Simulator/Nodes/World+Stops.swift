// Orderly stops: of one tracker, and of the whole cluster when all is well, which is to empty the swarms.

import Primitives
import TrackerLogic
import Wire

/// How the operator stops a whole cluster.
public enum ClusterStop: Sendable, Hashable, CaseIterable {
    /// By an order to the master.
    case byOrder
    /// All trackers at one time.
    case together
    /// One tracker after another.
    case inTurn
}

extension World {
    /// Between two trackers that are stopped one after another.
    private static let turn = Duration.seconds(1)
    /// Within which all trackers are down.
    private static let patience = Duration.seconds(60)
    /// Within which the first master of a new beginning may die.
    private static let early = Duration.seconds(6)

    /// A stop of the whole cluster, as it goes on.
    struct WholeStop: Sendable {
        var beganAt: Instant
        /// How often swarms had been emptied before.
        var emptiedBefore: Int
        /// Whether all were down, and start again.
        var isOver: Bool { if case .some = overAt { true } else { false } }
        /// When all were down.
        var overAt: Instant?
        /// PREPAREs until the first master of the new beginning dies; 0 where it does not, or has.
        var prepares = 0
        /// Who has found its disk damaged as it came back, and its note lost, and was not let in by a master since.
        var trackersWithoutNote: UInt32 = 0
        /// Whether one of them has come into office, or voted: then the cluster goes on, as after any crash.
        var isNoteMissing = false
    }

    // MARK: - One tracker

    /// The operator wants a node to stop in good order, and to be down for some time.
    mutating func stop(_ node: Int, for downtime: Duration) {
        guard nodes[node].isUp, !nodes[node].isStopping, nodes[node].heldUntil <= now else { return }
        connectivity[node].downtime = downtime
        let hasToHandOver = hasToHandOver(node)
        nodes[node].isStopping = true
        goesWrong()
        if hasToHandOver { stopsOfMaster = node }
        let life = nodes[node].life
        queue.put(.stopOverdue(node, life: life), at: now + .seconds(10))
        if tamperings.first?.sabotage != .neverStops { step(node, .commandReceived(.drain)) }
        if nodes[node].life == life { injectIfDue(node, at: .stopping) }
    }

    /// A node has answered all it had to.
    mutating func close(_ node: Int) {
        tally.stops += 1
        if let since = checks.oldestVisit(at: node, inLife: nodes[node].life) {
            violate(
                .waitingAreAnswered,
                "\(trace.names[node]) has stopped, and an HTTP request has waited there for "
                    + "\((now - since).wholeMilliseconds) ms")
        }
        let downtime = isHealed ? .milliseconds(10) : connectivity[node].downtime
        trace.absorb(now, 4, node)
        leave(node, .stopped, "stops in good order", by: "the operator", for: downtime)
        comeBack(node, after: downtime)
    }

    /// Whether a tracker that was asked to stop ten seconds ago has nothing to wait for: nothing has held it up, and
    /// every write was made soon.
    func hasToStop(_ node: Int) -> Bool {
        hasBus && wholeStop == nil && options.disk.stallPerMille == 0 && options.disk.maxDelay <= .milliseconds(60)
            && !options.faults.kinds.contains(.slowDisk) && !options.faults.strikesTwice && tally.writesFailed == 0
            && !nodes[node].disk.isBroken && nodes[node].heldUntil <= now - .seconds(10)
    }

    // MARK: - All trackers

    /// The operator stops the whole cluster.
    mutating func stopAll(_ way: ClusterStop) {
        wholeStop = WholeStop(beganAt: now, emptiedBefore: timesEmptied)
        trace.line(now, [.commands], "the operator stops the whole cluster, \(way)")
        switch way {
        case .byOrder:
            guard let master = connectivity.firstIndex(where: { $0.isMaster }), nodes[master].isUp else {
                return stopAll(.together)
            }
            // The others are told by it.
            for node in nodes.indices { nodes[node].isStopping = true }
            step(master, .commandReceived(.stopCluster))
        case .together:
            for node in nodes.indices { stop(node, for: .zero) }
        case .inTurn:
            for node in nodes.indices { queue.put(.operatorStops(node), at: now + World.turn * Int64(node)) }
        }
        queue.put(.stopOfAllOverdue, at: now + World.patience)
    }

    /// The last thing: an orderly stop of all, which has to come to its end.
    mutating func end() {
        isClosing = true
        for node in nodes.indices { stop(node, for: .zero) }
        isOver = nodes.allSatisfy { !$0.isUp }
    }

    /// Brings all trackers back once the last one is down.
    mutating func beginAnewWhenAllAreDown() {
        guard let stop = wholeStop, !stop.isOver, nodes.allSatisfy({ !$0.isUp }) else { return }
        wholeStop?.overAt = now
        if !options.keepsSwarms { wholeStop?.prepares = options.preparesOfNewBeginning }
        for node in nodes.indices where options.hasTracker(node) {
            var random = RandomStream(seed, .newBeginning, node)
            let delay = random.between(.milliseconds(10), .seconds(2))
            queue.put(.nodeReturns(node, life: nodes[node].life), at: now + delay)
        }
        queue.put(.wakeClients, at: now + World.repairTime)
    }

    /// A master of the new beginning has proposed something: it may be time for it to die, before it has begun without
    /// swarms, or as it does.
    ///
    /// It comes back when another one has done that.
    mutating func strikeNewBeginning(_ node: Int, _ body: ClusterMessage.Body) {
        guard let stop = wholeStop, let overAt = stop.overAt, stop.prepares > 0, case .prepare = body else { return }
        wholeStop?.prepares -= 1
        // The others have to be a quorum, and there is little time before all are looked at.
        guard stop.prepares == 1, now - overAt < World.early, nodes.indices.allSatisfy({ isWhole($0) }),
            nodes[node].inspection.map({ $0.voters.count > 2 }) == true
        else { return }
        queue.put(.strike(node, life: nodes[node].life), at: now + .milliseconds(1))
    }

    /// A tracker of the new beginning speaks: it may lack its note, and count.
    ///
    /// In survivor mode it takes itself for the last survivor where it hears nobody that has a number and the whole
    /// state. In quorum mode it has no vote before it is let in, and a quorum of the others has notes.
    mutating func noteMissingNote(_ node: Int, _ body: ClusterMessage.Body) {
        guard let stop = wholeStop, stop.trackersWithoutNote & 1 << UInt32(node) != 0, profile != .paxos else { return }
        switch body {
        case .answer, .coordinator: wholeStop?.isNoteMissing = true
        // What it has from now on is its master's.
        case .welcomeDone: wholeStop?.trackersWithoutNote &= ~(1 << UInt32(node))
        default: break
        }
    }

    private mutating func isWhole(_ node: Int) -> Bool {
        !connectivity[node].isThere || nodes[node].isUp && nodes[node].inspection?.hasFullState == true
    }

    mutating func stopOfAllOverdue() {
        guard let stop = wholeStop, !stop.isOver else { return }
        violate(.stopEnds, "trackers run \((now - stop.beganAt).wholeMilliseconds) ms after the cluster was stopped")
    }

    /// By a master that said so, or by an entry that one before it had left.
    private var timesEmptied: Int { emptyings + checks.emptiedShards }

    /// Whether the swarms went with the cluster that was stopped.
    mutating func checkWholeStop() {
        guard let stop = wholeStop else { return }
        let isEmptied = timesEmptied > stop.emptiedBefore
        if !options.keepsSwarms, !isEmptied, !stop.isNoteMissing {
            violate(.stopEmptiesSwarms, "the cluster was stopped in good order, and goes on with its swarms")
        }
    }
}
