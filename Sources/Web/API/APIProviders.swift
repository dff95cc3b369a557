// What the API asks of the rest of the process, and what it says of it.

import Bus
import Primitives
import TrackerLogic
import Wire

/// Tells how the node fares.
public protocol StatusProvider: Sendable {
    /// - Returns: nil where the node does not answer.
    func status() async -> NodeStatus?
}

/// Tells of the cluster, and takes orders to it.
public protocol ClusterProvider: Sendable {
    /// - Returns: the cluster as this tracker sees it; nil where the node does not answer.
    func cluster() async -> ClusterReport?

    /// Has this tracker do something that only a master can, and waits for what comes of it.
    func carryOut(_ order: ClusterOrder) async -> OrderOutcome
}

/// All that one tracker can say of its cluster.
public struct ClusterReport: Sendable, Equatable {
    /// As the node sees its cluster.
    public var status: ClusterStatus
    /// Nil for a tracker that is alone.
    public var bus: BusStatus?
    /// Messages that this tracker has counted.
    public var tally: BusTally
    /// Elections that this tracker has seen.
    public var elections: ElectionTally
    /// What the node's loop has measured.
    public var figures = NodeFigures()
    /// What this tracker tells the others of itself; nil for one that does not.
    public var own: TrackerReport?
    /// What is wrong, the cause of silence first.
    public var findings: [Finding] = []
    /// The cluster's name, which its operators have given it.
    public var name = ""

    /// Takes the fields as they are; what is seldom there is set afterwards.
    public init(status: ClusterStatus, bus: BusStatus?, tally: BusTally, elections: ElectionTally) {
        self.status = status
        self.bus = bus
        self.tally = tally
        self.elections = elections
    }
}

/// What does not change while a process lives.
public struct ProcessFacts: Sendable, Equatable {
    /// An address at which this process listens.
    public struct Listener: Sendable, Equatable {
        /// What is served there.
        public enum Service: String, Sendable {
            case udp
            case http
            case api
        }

        /// What is served there.
        public var service: Service
        /// With the port that the system chose where 0 was asked for.
        public var address: SocketAddress

        /// Takes the fields as they are.
        public init(_ service: Service, _ address: SocketAddress) {
            self.service = service
            self.address = address
        }
    }

    /// Of the program.
    public var version: String
    /// On this host.
    public var processID: Int32
    /// By the wall clock.
    public var startedAt: WallTime
    /// All addresses at which it listens.
    public var listeners: [Listener]
    /// The announce URL under which clients reach this tracker, where the operator has told it.
    public var advertised: String?
    /// Where a browser reaches the console, where the operator has told it.
    public var consoleURL: String?

    /// Takes the fields as they are.
    public init(
        version: String, processID: Int32, startedAt: WallTime, listeners: [Listener], advertised: String? = nil
    ) {
        self.advertised = advertised
        self.version = version
        self.processID = processID
        self.startedAt = startedAt
        self.listeners = listeners
    }
}
