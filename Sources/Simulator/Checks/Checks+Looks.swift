// Looks at whole states, and at what people are told of them.

import Primitives
import TrackerLogic
import Wire

extension Checks {
    /// A tracker that serves, and one that was made from a copy of its disk.
    mutating func compare(_ copy: TrackerNode, with own: Inspection, node: Int, at time: Instant) {
        end.compare(copy, with: own, node: node, at: time, &scene, &requests)
    }

    /// What a tracker holds.
    package mutating func checkState(_ state: ReplicatedState, _ node: Int, at time: Instant) {
        end.checkState(state, node, at: time, &scene, &requests)
    }

    /// Somebody wants something at a console.
    mutating func changeAsked(_ change: ConsoleChange) { scene.console.asked(change) }

    /// A tracker says that what came from files is in force, as it was commanded.
    mutating func checkFileTorrents(
        _ state: ReplicatedState, _ commanded: [FileTorrent], node: Int, at time: Instant
    ) {
        console.check(state, commanded, node, at: time, &scene)
    }

    /// A tracker says that the accounts of files are in force, as they were commanded.
    mutating func checkAccounts(_ all: Accounts, _ wanted: [Account], leftOut: Int, _ node: Int, at time: Instant) {
        console.check(all, wanted, leftOut: leftOut, node, at: time, &scene)
    }

    /// Somebody was told what became of a change at a console.
    mutating func changeEnded(_ change: ConsoleChange, _ outcome: ChangeOutcome, node: Int, at time: Instant) {
        console.ended(change, outcome, node: node, at: time, &scene)
    }

    /// The run is over.
    ///
    /// `machines` are all nodes; nil for one that is down. `unanswered` are clients that have waited for too long, and
    /// since when.
    mutating func finish(
        machines: [TrackerNode?], unanswered: [(client: Int, since: Instant)], at time: Instant
    ) {
        end.finish(machines: machines, unanswered: unanswered, at: time, &scene, &requests)
        for (node, machine) in machines.enumerated() {
            if let machine { console.finish(machine.state, node, at: time, &scene) }
        }
        fetches.finish(at: time, &scene)
    }

    /// One master, all of one mind, and everybody serves.
    package mutating func finish(_ views: [NodeView?], at time: Instant) { end.finish(views, at: time, &scene) }

    /// Whoever is there is in the table when all has been well for long enough, and nobody else.
    mutating func checkExact(
        _ machines: [TrackerNode?], present: [(infoHash: InfoHash, address: SocketAddress)], at time: Instant
    ) {
        end.checkExact(machines, present: present, at: time, &scene)
    }

    /// Clients that nobody has answered though all was well.
    package mutating func checkUnanswered(_ unanswered: [(client: Int, since: Instant)], at time: Instant) {
        end.checkUnanswered(unanswered, at: time, &scene)
    }

    /// Whether somebody waits at a tracker now.
    mutating func isWaited(at node: Int) -> Bool { scene.nodes[node].waitingRequests > 0 }

    /// Answers but connection ids that a tracker has given so far.
    func answerCount(of node: Int) -> Int { scene.nodes[node].answerCount }
}
