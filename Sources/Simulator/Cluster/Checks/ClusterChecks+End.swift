/// The end of a run: the faults are over, and all must be well again.

import Primitives
import TrackerLogic
import Wire

extension ClusterChecks {
    /// The run is over.
    ///
    /// - Parameters:
    ///   - machines: of all nodes; nil for one that is down.
    ///   - unanswered: clients that have waited for too long, and since when.
    package mutating func finish(
        machines: [TrackerNode?], unanswered: [(client: Int, since: Instant)], at time: Instant
    ) {
        checkUnanswered(unanswered, at: time)
        let inCluster = !promises.diskDecides
        finish(machines.map { $0.map { NodeSight($0, inCluster: inCluster) } }, at: time)
        for (node, machine) in machines.enumerated() {
            guard let machine else { continue }
            checkState(machine.state, node, at: time)
        }
    }

    /// What a tracker holds in the end: what the model holds, and whoever was told that he is in it.
    package mutating func checkState(_ state: ReplicatedState, _ node: Int, at time: Instant) {
        // Who lags behind is another checker's affair.
        let isUpToDate = promises.hasOneHistory && state.index == model.index
        if isUpToDate, let difference = model.difference(from: state) {
            violate(.statesAgree, at: time, "\(name(node)): \(difference)")
        }
        if isUpToDate, !state.members.isEmpty, state.members != members {
            violate(
                .statesAgree, at: time,
                "\(name(node)) has the voters \(state.members.inBrackets), decided are \(members.inBrackets)")
        }
        // Where histories with clocks of their own have merged, those are sure to live who are on time by any clock.
        let told = promises.hasOneHistory || rules.hasGoodClocks ? nil : time
        if let account = ledger.missing(in: state, onTimeAt: told, knowsStops: promises.repliesAreLinear) {
            violate(
                .answeredSurvives, at: time,
                "peer \(account.address) of \(account.infoHash) was told \(account.told) s and is not at \(name(node))")
        }
    }

    /// A tracker that serves, and one that was made from a copy of its disk.
    mutating func compare(_ copy: TrackerNode, with own: Inspection, node: Int, at time: Instant) {
        let position = copy.state.position
        if promises.diskDecides, position != own.position {
            violate(
                .statesAgree, at: time,
                "\(name(node)) is at entry \(own.position.index), and a copy of its disk at \(position.index)")
        }
        let known = position == own.position ? own.digest : log.digest(at: position)
        if let known, known != copy.state.digest {
            violate(
                .statesAgree, at: time,
                "a copy of the disk of \(name(node)) holds another state after entry \(position.index)")
        }
        guard promises.hasOneHistory, position.index == model.index else { return }
        if let difference = model.difference(from: copy.state) {
            violate(.statesAgree, at: time, "in a copy of the disk of \(name(node)): \(difference)")
        }
        guard promises.diskDecides,
            let account = ledger.missing(in: copy.state, onTimeAt: nil, knowsStops: promises.repliesAreLinear)
        else { return }
        violate(
            .answeredSurvives, at: time,
            "peer \(account.address) of \(account.infoHash) is not in a copy of the disk of \(name(node))")
    }

    /// A tracker that becomes master holds all that was decided, and nothing else.
    mutating func checkMaster(_ state: ReplicatedState, _ node: Int, at time: Instant) {
        if promises.hasOneHistory { checkState(state, node, at: time) }
        if stops.isEmptyDue[node] {
            stops.isEmptyDue[node] = false
            let count = state.table.counts.torrents
            if count > 0 {
                violate(
                    .stopEmptiesSwarms, at: time,
                    "\(name(node)) was stopped in good order, and comes back with \(count) swarms")
            }
        }
    }

    /// Whoever is there is in the table when all has been well for long enough, and nobody else.
    package mutating func checkExact(
        _ machines: [TrackerNode?], present: [(infoHash: InfoHash, address: SocketAddress)], at time: Instant
    ) {
        for (node, machine) in machines.enumerated() {
            guard let table = machine?.state.table else { continue }
            for (infoHash, address) in present where !table.contains(infoHash, address) {
                violate(.healedIsExact, at: time, "peer \(address) of \(infoHash) is not at \(name(node))")
            }
            let count = table.counts.peers
            if count != present.count {
                violate(
                    .healedIsExact, at: time, "\(count) peers are at \(name(node)), \(present.count) are there")
            }
        }
    }

    /// One master, all of one mind, and everybody serves.
    package mutating func finish(_ sights: [NodeSight?], at time: Instant) {
        let alive = sights.enumerated().compactMap { node, sight in sight.map { (node, $0) } }
        let masters = alive.filter { $0.1.leads != nil }
        if masters.count != 1 {
            let names = masters.map { "\"\(name($0.0))\"" }
            violate(.healedIsOne, at: time, "there are \(masters.count) masters: \(names.inBrackets)")
        }
        for (node, sight) in alive {
            if sight.isFenced { violate(.healedIsOne, at: time, "\(name(node)) is cut off") }
            if !sight.isWhole { violate(.healedIsOne, at: time, "\(name(node)) does not hold the whole state") }
            if !sight.isServing { violate(.healedIsOne, at: time, "\(name(node)) does not serve") }
            if promises.hasOneHistory, sight.position.index < log.lastIndex, !mayLag(sight, node, at: time) {
                violate(
                    .decidedIsForEver, at: time,
                    "\(name(node)) ends at entry \(sight.position.index), decided is \(log.lastIndex)")
            }
        }
        guard let (first, one) = masters.first ?? alive.first else { return }
        for (node, sight) in alive where sight.position != one.position || sight.digest != one.digest {
            // The last entry may be on its way to the others just now.
            if sight.position.index < one.position.index, mayLag(sight, node, at: time) { continue }
            violate(
                .healedIsOne, at: time,
                "\(name(node)) ends at entry \(sight.position.index), \(name(first)) at \(one.position.index)"
                    + (sight.position == one.position ? " with another state" : ""))
        }
    }

    /// Whether what a tracker lacks was decided too short a time ago for it to know.
    private func mayLag(_ sight: NodeSight, _ node: Int, at time: Instant) -> Bool {
        guard let decidedAt = log.decidedAt(sight.position.index + 1) else { return false }
        let keepalive = nodes[node].configuration.cluster?.keepalive ?? .zero
        return time - decidedAt <= keepalive * 2
    }

    /// Clients that nobody has answered though all was well.
    package mutating func checkUnanswered(_ unanswered: [(client: Int, since: Instant)], at time: Instant) {
        for (client, since) in unanswered {
            violate(
                .healedIsAnswered, at: time,
                "client \(client) has waited for \((time - since).wholeMilliseconds) ms")
        }
    }
}
