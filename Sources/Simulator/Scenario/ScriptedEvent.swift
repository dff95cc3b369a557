// What a script lets happen to a cluster at a given time.

import Primitives
import TrackerLogic
import Wire

/// What a script lets happen to a cluster at a given time, for stories that are to be told and read.
public struct ScriptedEvent: Sendable, Hashable {
    /// What a script can let happen.
    public enum Event: Sendable, Hashable {
        /// A tracker dies, by its place from 0, and comes back after so long.
        case crash(Int, Duration)
        /// The operator stops a tracker in good order.
        case stop(Int)
        /// These trackers and the others do not hear each other for so long.
        case partition([Int], Duration)
        /// Nobody has a bus for so long.
        case brokerOutage(Duration)
        /// The disks of these trackers are full for so long.
        case fullDisks([Int], Duration)
        /// The disk of a tracker breaks.
        case breakDisk(Int)
        /// A tracker begins anew, and is told another keepalive than the others, until all is well.
        case misconfigure(Int)
        /// Whoever is preferred to be the next master does not hear the others, nor they it, for so many tenths of a
        /// keepalive.
        case partHeir(Int)
        /// Whoever is master dies, and comes back after so long.
        case masterDies(Duration)
        /// The operator stops whoever is master, in good order.
        case stopMaster
        /// The operator of a tracker wants the role handed over, by id.
        case handOver(at: Int, to: UInt32)
        /// Somebody on the bus, whom nobody knows, tells all trackers of an epoch far ahead of all that there
        /// have been.
        case tellFarRound
    }

    /// Since the world began.
    public var at: Duration
    /// What happens then.
    public var event: Event

    /// Takes the fields as they are.
    public init(at: Duration, _ event: Event) {
        self.at = at
        self.event = event
    }
}

extension World {
    mutating func take(_ number: Int) {
        switch options.script[number].event {
        case .crash(let node, let downtime): die(node, "dies", by: "the script", for: downtime)
        case .stop(let node):
            var random = RandomStream(seed, .turn, number, node)
            stop(node, for: FaultPlan.downtime(&random))
        case .partition(let side, let duration):
            cutApart(side.reduce(0) { $0 | 1 << UInt32($1) }, isOneWay: false, for: duration, "the script")
        case .brokerOutage(let duration):
            for node in nodes.indices {
                cutOff(node, duration, "the script (broker outage)", RandomStream(seed, .turn, number, node))
            }
        case .fullDisks(let places, let duration):
            for node in places {
                begin(
                    .disk, "the script", "\(trace.names[node]) with a full disk", trackers: 1 << UInt32(node),
                    for: duration)
                nodes[node].disk.failure = .full
                queue.put(.diskRecovers(node), at: now + duration)
            }
        case .breakDisk(let node):
            begin(.brokenDisk, "the script", "\(trace.names[node]) with a broken disk", trackers: 1 << UInt32(node))
            nodes[node].disk.failure = .broken
        case .misconfigure(let node):
            nodes[node].mistake = .keepalive
            die(node, "stops", by: "the script", for: .milliseconds(500))
        case .partHeir(let tenths):
            guard let heir = heirPlace() else { return }
            let duration = nodes[heir].configuration.cluster.keepalive / 10 * tenths
            cutApart(1 << UInt32(heir), isOneWay: false, for: duration, "the script")
        case .masterDies(let downtime):
            guard let master = connectivity.firstIndex(where: { $0.isMaster }) else { return }
            die(master, "dies", by: "the script", for: downtime)
        case .stopMaster:
            guard let master = connectivity.firstIndex(where: { $0.isMaster }) else { return }
            var random = RandomStream(seed, .turn, number, master)
            stop(master, for: FaultPlan.downtime(&random))
        case .handOver(let node, let id): step(node, .commandReceived(.handOver(to: id)))
        case .tellFarRound: tellFarRound(number)
        }
    }

    private mutating func tellFarRound(_ number: Int) {
        trace.line(now, .faults, "somebody on the bus tells of an epoch far ahead")
        let rounds = nodes.indices.map { nodes[$0].inspection?.promised.round ?? 0 }
        let epoch = Epoch(round: (rounds.max() ?? 0) + 2 * NumberBounds.roundJump, id: World.stranger)
        for node in nodes.indices where isListening(node) {
            var random = RandomStream(seed, .turn, number, node)
            let keepalive = Keepalive(
                role: .slave, position: .start, digest: 0, hasFullState: true,
                settings: SettingsPrint(nodes[node].told))
            let message = ClusterMessage(
                sender: Life(id: World.stranger, incarnation: random.next()), destination: .all, epoch: epoch,
                body: .keepalive(keepalive))
            step(node, .messageReceived(message))
        }
    }

    private func isListening(_ node: Int) -> Bool {
        nodes[node].isUp && connectivity[node].isToldOnBus && nodes[node].heldUntil <= now
    }

    /// An id that no tracker has.
    private static let stranger: UInt32 = 60
}
