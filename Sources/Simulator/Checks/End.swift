// The end of a run, when the faults are over and all must be well again.

import Primitives
import TrackerLogic
import Wire

/// The end of a run, when the faults are over and all must be well again; and other looks at a whole state.
struct End: Sendable {
    /// The run is over.
    ///
    /// `machines` are all nodes; nil for one that is down. `unanswered` are clients that have waited for too long, and
    /// since when.
    func finish(
        machines: [TrackerNode?], unanswered: [(client: Int, since: Instant)], at time: Instant, _ scene: inout Scene,
        _ requests: inout Requests
    ) {
        checkUnanswered(unanswered, at: time, &scene)
        let inCluster = !scene.promises.diskDecides
        finish(machines.map { $0.map { NodeView($0, inCluster: inCluster) } }, at: time, &scene)
        for (node, machine) in machines.enumerated() {
            guard let machine else { continue }
            checkState(machine.state, node, at: time, &scene, &requests)
            // Disks take writes again, and what it has applied has been tried again since.
            if let failure = machine.status.storageFailure, scene.nodes[node].disk.lastIndex < machine.state.index {
                scene.violate(.healedIsOne, at: time, "the disk of \(scene.name(node)) is still \(failure.words)")
            }
        }
        checkSettled(machines, at: time, &scene)
    }

    /// Trackers that hold the same know the same requests of a group that were settled lately: they are no part of the
    /// digest.
    private func checkSettled(_ machines: [TrackerNode?], at time: Instant, _ scene: inout Scene) {
        guard scene.isGroup, scene.promises.hasOneHistory, let first = machines.firstIndex(where: { $0 != nil }),
            let one = machines[first]
        else {
            return
        }
        for (node, machine) in machines.enumerated() {
            guard let machine, machine.state.position == one.state.position,
                machine.state.settled != one.state.settled
            else { continue }
            scene.violate(
                .statesAgree, at: time,
                "\(scene.name(node)) knows \(machine.state.settled.count) settled requests, and \(scene.name(first)) "
                    + "\(one.state.settled.count), or others, after entry \(one.state.position.index)")
        }
    }

    /// What a tracker holds in the end: what the model holds, and whoever was told that he is in it.
    func checkState(
        _ state: ReplicatedState, _ node: Int, at time: Instant, _ scene: inout Scene, _ requests: inout Requests
    ) {
        // Who lags behind is another checker's affair.
        let isUpToDate = scene.promises.hasOneHistory && state.index == scene.model.index
        if isUpToDate, let difference = scene.model.difference(from: state) {
            scene.violate(.statesAgree, at: time, "\(scene.name(node)): \(difference)")
        }
        if isUpToDate, let difference = scene.console.difference(from: state) {
            scene.violate(.statesAgree, at: time, "\(scene.name(node)): \(difference)")
        }
        if isUpToDate, !state.members.isEmpty, state.members != scene.members {
            scene.violate(
                .statesAgree, at: time,
                "\(scene.name(node)) has the voters \(state.members.inBrackets), decided are "
                    + "\(scene.members.inBrackets)"
            )
        }
        // Where histories with clocks of their own have merged, those are sure to live who are on time by any clock.
        let told = scene.promises.hasOneHistory || scene.hasGoodClocks ? nil : time
        // A master knows what it has answered.
        let isMaster = scene.nodes[node].lastView?.leads != nil
        let lag = isMaster ? nil : time - scene.nodes[node].configuration.cluster.keepalive * 2
        if let account = requests.ledger.missing(
            in: state, onTimeAt: told, knowsStops: scene.promises.repliesAreLinear, lag: lag)
        {
            scene.violate(
                .answeredSurvives, at: time,
                "peer \(account.address) of \(account.infoHash) was told \(account.told) s and is not at "
                    + "\(scene.name(node))"
            )
        }
    }

    /// A tracker that serves, and one that was made from a copy of its disk.
    func compare(
        _ copy: TrackerNode, with own: Inspection, node: Int, at time: Instant, _ scene: inout Scene,
        _ requests: inout Requests
    ) {
        let position = copy.state.position
        if scene.promises.diskDecides, position != own.position {
            scene.violate(
                .statesAgree, at: time,
                "\(scene.name(node)) is at entry \(own.position.index), and a copy of its disk at \(position.index)")
        }
        let known = position == own.position ? own.digest : scene.log.digest(at: position)
        if let known, known != copy.state.digest {
            scene.violate(
                .statesAgree, at: time,
                "a copy of the disk of \(scene.name(node)) holds another state after entry \(position.index)")
        }
        guard scene.promises.hasOneHistory, position.index == scene.model.index else { return }
        if let difference = scene.model.difference(from: copy.state) {
            scene.violate(.statesAgree, at: time, "in a copy of the disk of \(scene.name(node)): \(difference)")
        }
        if let difference = scene.console.difference(from: copy.state) {
            scene.violate(.statesAgree, at: time, "in a copy of the disk of \(scene.name(node)): \(difference)")
        }
        guard scene.promises.diskDecides,
            let account = requests.ledger.missing(
                in: copy.state, onTimeAt: nil, knowsStops: scene.promises.repliesAreLinear)
        else { return }
        scene.violate(
            .answeredSurvives, at: time,
            "peer \(account.address) of \(account.infoHash) is not in a copy of the disk of \(scene.name(node))")
    }

    /// A tracker that becomes master holds all that was decided, and nothing else.
    ///
    /// But for one that is elected late, by answers of before, and has been succeeded already: it decides nothing.
    func checkMaster(
        _ state: ReplicatedState, _ node: Int, at time: Instant, _ scene: inout Scene, _ requests: inout Requests,
        _ stops: inout Stops
    ) {
        let isLast = scene.nodes.allSatisfy { ($0.led ?? .zero) <= (scene.nodes[node].led ?? .zero) }
        if scene.promises.hasOneHistory, isLast { checkState(state, node, at: time, &scene, &requests) }
        if stops.isEmptyDue[node] {
            stops.isEmptyDue[node] = false
            let count = state.table.counts.torrents
            if count > 0 {
                scene.violate(
                    .stopEmptiesSwarms, at: time,
                    "\(scene.name(node)) was stopped in good order, and comes back with \(count) swarms")
            }
        }
    }

    /// Whoever is there is in the table when all has been well for long enough, and nobody else.
    ///
    /// Where histories by different clocks have merged, a peer may be from a time that is still to come.
    func checkExact(
        _ machines: [TrackerNode?], present: [(infoHash: InfoHash, address: SocketAddress)], at time: Instant,
        _ scene: inout Scene
    ) {
        guard scene.promises.hasOneHistory || scene.hasGoodClocks else { return }
        for (node, machine) in machines.enumerated() {
            guard let table = machine?.state.table else { continue }
            for (infoHash, address) in present where !table.contains(infoHash, address) {
                scene.violate(.healedIsExact, at: time, "peer \(address) of \(infoHash) is not at \(scene.name(node))")
            }
            let count = table.counts.peers
            if count != present.count {
                scene.violate(
                    .healedIsExact, at: time, "\(count) peers are at \(scene.name(node)), \(present.count) are there")
            }
        }
    }

    /// One master, all of one mind, and everybody serves.
    func finish(_ views: [NodeView?], at time: Instant, _ scene: inout Scene) {
        let alive = views.enumerated().compactMap { node, view in view.map { (node, $0) } }
        let masters = alive.filter { $0.1.leads != nil }
        if masters.count != 1 {
            let names = masters.map { "\"\(scene.name($0.0))\"" }
            scene.violate(.healedIsOne, at: time, "there are \(masters.count) masters: \(names.inBrackets)")
        }
        for (node, view) in alive {
            if view.isFenced { scene.violate(.healedIsOne, at: time, "\(scene.name(node)) is cut off") }
            if !view.hasFullState {
                scene.violate(.healedIsOne, at: time, "\(scene.name(node)) does not hold the whole state")
            }
            if !view.isServing { scene.violate(.healedIsOne, at: time, "\(scene.name(node)) does not serve") }
            if scene.promises.hasOneHistory, view.position.index < scene.log.lastIndex,
                !mayLag(view, node, at: time, scene)
            {
                scene.violate(
                    .decidedIsForEver, at: time,
                    "\(scene.name(node)) ends at entry \(view.position.index), decided is \(scene.log.lastIndex)")
            }
        }
        guard let (first, one) = masters.first ?? alive.first else { return }
        for (node, view) in alive where view.position != one.position || view.digest != one.digest {
            // The last entry may be on its way to the others just now.
            if view.position.index < one.position.index, mayLag(view, node, at: time, scene) { continue }
            scene.violate(
                .healedIsOne, at: time,
                "\(scene.name(node)) ends at entry \(view.position.index), \(scene.name(first)) at "
                    + "\(one.position.index)"
                    + (view.position == one.position ? " with another state" : ""))
        }
    }

    /// Whether what a tracker lacks was decided too short a time ago for it to know.
    private func mayLag(_ view: NodeView, _ node: Int, at time: Instant, _ scene: Scene) -> Bool {
        guard let decidedAt = scene.log.decidedAt(view.position.index + 1) else { return false }
        let keepalive = scene.nodes[node].configuration.cluster.keepalive
        return time - decidedAt <= keepalive * 2
    }

    /// Clients that nobody has answered though all was well.
    func checkUnanswered(_ unanswered: [(client: Int, since: Instant)], at time: Instant, _ scene: inout Scene) {
        for (client, since) in unanswered {
            scene.violate(
                .healedIsAnswered, at: time,
                "client \(client) has waited for \((time - since).wholeMilliseconds) ms")
        }
    }
}
