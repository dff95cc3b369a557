// What may be next in a world.

import Primitives
import TrackerLogic

extension World {
    /// What is going to happen.
    enum Happening: Sendable {
        case datagramAtNode(Int, from: SocketAddress, [UInt8])
        /// A reply from a node.
        case datagramAtClient(Int, from: Int, [UInt8])
        case messageAtNode(Int, MessageInTransit)
        case nodePolls(Int, life: Int)
        case nodeWakes(Int, life: Int)
        case groupEnds(Int, life: Int)
        case writeCompleted(Int, life: Int, PersistToken, StorageFailure?)
        case nodeReturns(Int, life: Int)
        case stopOverdue(Int, life: Int)
        /// A node notices that it has lost its bus.
        case busLossTold(Int, life: Int, cut: Int)
        /// A node gets onto its bus.
        case busReturns(Int, life: Int, cut: Int)
        case clientWakes(Int)
        case clientActs(Int, resolve: Int, SimulatedClient.Act)
        case strangerActs(Int)
        case visitorActs(Int)
        /// Somebody at a console.
        case stewardActs(Int)
        /// He has waited for long.
        case stewardWaits(Int, question: UInt64)
        case fault
        /// What a script says.
        case turn(Int)
        case diskRecovers(Int)
        case damage
        case probe(Int)
        /// A node is to lose its disk as soon as it may, if that is before a time.
        case memoryIsLost(Int, before: Instant, downtime: Duration)
        /// Something happens among the peers that download.
        case transfers
        case heals
        /// One tracker of a cluster that is stopped.
        case operatorStops(Int)
        case stopOfAllOverdue
        /// The first master after a stop of all dies.
        case strike(Int, life: Int)
        case wakeClients
        case convergenceCheck
        case end
    }
}
