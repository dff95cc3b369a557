// Whether it is plain who is master next.

import Primitives
import TrackerLogic
import Wire

extension World {
    /// A master dies: whether that is a death after which it is plain who is to be master next.
    mutating func watchElection(after node: Int) {
        guard let own = nodes[node].inspection, let heirs = heirs(of: node) else {
            return elections.trouble(until: now)
        }
        elections.masterDied(
            own.life.id, candidates: heirs.candidates, isPlain: heirs.isPlain && heirs.hasMissedNone,
            heardWithin: heirs.heardWithin, at: now)
    }

    /// Who may be master next.
    private struct Heirs {
        var candidates: [ElectionWatch.Candidate] = []
        /// Whether each can be sent what it lacks by any other, and is in step or not whatever becomes of what is under
        /// way.
        var isPlain = true
        /// How much later than the first the last of them has heard the master: so much later it misses it.
        var heardWithin: Duration {
            guard let firstHeardAt, let lastHeardAt else { return .zero }
            return lastHeardAt - firstHeardAt
        }
        var firstHeardAt: Instant?
        var lastHeardAt: Instant?
        /// Whether none has missed a keepalive of another: it may take that one for down before the next one comes.
        var hasMissedNone = true
    }

    /// The voters beside a master that serves, where they are a majority, all are well, of one mind and in step, and
    /// nothing is lost between them; nil where it is otherwise.
    private mutating func heirs(of node: Int) -> Heirs? {
        guard options.hasGoodWays, connectivity[node].isMaster, let own = nodes[node].inspection, own.isServing else {
            return nil
        }
        var heirs = Heirs()
        var (cutThrough, newest, newestYet): (UInt64, UInt64, UInt64) = (0, 0, 0)
        for other in nodes.indices where other != node && connectivity[other].isThere {
            guard nodes[other].heldUntil <= now, !nodes[other].isStopping, connectivity[other].isToldOnBus,
                let view = nodes[other].inspection, view.isServing, view.hasFullState, view.role == .slave,
                view.promised == own.promised
            else { return nil }
            let keepalive = nodes[other].configuration.cluster.keepalive
            for known in nodes.indices where known != other && connectivity[known].isThere {
                let knownAt = checks.lastHeard(known, by: other)
                let silence = now - knownAt
                // Whoever was not heard for longer may be missed before the master is.
                if silence > keepalive / 2 * 3 { return nil }
                // The last keepalive may have come late: then the next one is lost before a whole one has passed.
                if known != node, silence > keepalive - bus.options.maxDelay,
                    !bus.isClear(between: known, and: other, now: knownAt)
                {
                    heirs.hasMissedNone = false
                }
            }
            guard own.voters.contains(view.life.id) else { continue }
            heirs.candidates.append(ElectionWatch.Candidate(id: view.life.id, index: view.position.index))
            let heardAt = checks.lastHeard(node, by: other)
            heirs.firstHeardAt = min(heirs.firstHeardAt ?? heardAt, heardAt)
            heirs.lastHeardAt = max(heirs.lastHeardAt ?? heardAt, heardAt)
            // What is under way may be decided yet, and then the log is cut behind one entry more.
            let next: UInt64 = if case .some = view.pending { 1 } else { 0 }
            (newest, newestYet) = (max(newest, view.position.index), max(newestYet, view.position.index + next))
            cutThrough = max(cutThrough, view.position.index - min(view.position.index, UInt64(view.tailCount)) + next)
        }
        guard heirs.candidates.count * 2 > own.voters.count else { return nil }
        heirs.isPlain = heirs.candidates.allSatisfy { candidate in
            let keepsUpWith = candidate.index + ElectionWatch.inStep
            return candidate.index >= cutThrough && (keepsUpWith >= newest) == (keepsUpWith >= newestYet)
        }
        return heirs
    }

    /// Looks at a tracker while somebody is to be elected.
    mutating func watchCandidate(_ node: Int) {
        guard elections.isWatching, let view = nodes[node].inspection, view.role == .candidate else { return }
        if let fault = elections.sees(candidateFor: view.promised, at: now) {
            violate(.candidatesEndSoon, fault)
        }
    }

    /// The place of whoever is preferred to be the next master; nil where there is no master, or nobody else.
    mutating func heirPlace() -> Int? {
        guard let master = connectivity.firstIndex(where: { $0.isMaster }), let own = nodes[master].inspection
        else { return nil }
        var ids: [UInt32] = []
        for node in nodes.indices where node != master && nodes[node].isUp {
            guard let id = nodes[node].inspection?.life.id, own.voters.contains(id) else { continue }
            ids.append(id)
        }
        let policy = nodes[master].configuration.cluster.election
        guard let heir = ElectionWatch.preferred(of: ids.sorted(), after: own.life.id, by: policy) else { return nil }
        return nodes.indices.first { nodes[$0].isUp && nodes[$0].inspection?.life.id == heir }
    }

    // MARK: - A master that is stopped

    /// Whether a master that is stopped now has to hand its role over: where all has been well for a while, and there
    /// is somebody who can take it.
    mutating func hasToHandOver(_ node: Int) -> Bool {
        guard wholeStop == nil, !isClosing, elections.isCalm(at: now), let heirs = heirs(of: node), heirs.isPlain,
            nodes.indices.allSatisfy({ other in
                nodes[other].disk.failure == nil && (other == node || bus.isClear(between: other, and: node, now: now))
            })
        else { return false }
        return true
    }

    /// A tracker says that it leaves.
    mutating func watchLeave(of node: Int) {
        guard stopsOfMaster == node else { return }
        stopsOfMaster = nil
        for other in nodes.indices where other != node {
            guard let view = nodes[other].inspection else { continue }
            if view.leads != nil || view.role == .candidate { return }
        }
        violate(
            .stopsHandOver,
            "\(trace.names[node]) leaves, which was master, and has handed its role to nobody")
    }
}
