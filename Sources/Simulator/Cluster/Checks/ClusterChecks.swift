/// The checkers of a simulated cluster: they watch every transition of every tracker from outside and compare it with
/// what was promised.

import Primitives
import TrackerLogic
import Wire

package struct ClusterChecks: Sendable {
    package private(set) var violations: [Violation] = []

    package init(profile: ClusterProfile, configurations: [NodeConfiguration], clientAddresses: [SocketAddress]) {}

    /// A life of a node begins: its record has been read back, and it has not taken a step yet.
    package mutating func started(
        node: Int, machine: borrowing TrackerNode, record: borrowing DiskRecord, at time: Instant
    ) {}

    /// A node is about to take a step.
    package mutating func willStep(node: Int, event: Event, machine: borrowing TrackerNode, at time: Instant) {}

    /// A node has taken a step, and its effects are about to be carried out.
    package mutating func stepped(
        node: Int, event: Event, machine: borrowing TrackerNode, effects: borrowing Effects, at time: Instant
    ) {}

    /// A write of a node has become durable.
    package mutating func wrote(node: Int, change: Persist.Change, at time: Instant) {}

    /// A life of a node has ended.
    package mutating func died(node: Int, at time: Instant) {}

    /// A node has lost its disk with all that was on it; the next life begins blank.
    package mutating func memoryLost(node: Int, at time: Instant) {}

    /// A client has sent a datagram.
    ///
    /// - Parameter node: whom; nil for the multicast group.
    package mutating func clientSent(client: Int, bytes: [UInt8], node: Int?, at time: Instant) {}

    /// A datagram has reached a client.
    package mutating func clientReceived(client: Int, bytes: [UInt8], at time: Instant) {}

    /// The faults are over: from here on all works.
    package mutating func healed(at time: Instant) {}

    /// The run is over.
    ///
    /// - Parameters:
    ///   - machines: of all nodes; nil for one that is down.
    ///   - unanswered: clients that wait for a reply, and since when.
    package mutating func finish(
        machines: [TrackerNode?], unanswered: [(client: Int, since: Instant)], at time: Instant
    ) {}
}
