/// What the API asks of the rest of the process, and what it says of it.

import Bus
import Primitives
import TrackerLogic
import Wire

public protocol StatusProvider: Sendable {
    /// - Returns: nil where the node does not answer.
    func status() async -> NodeStatus?
}

public protocol ClusterProvider: Sendable {
    /// - Returns: the cluster as this tracker sees it; nil where the node does not answer.
    func cluster() async -> ClusterReport?

    /// Has this tracker do something that only a master can, and waits for what comes of it.
    func carryOut(_ order: ClusterOrder) async -> OrderOutcome
}

/// All that one tracker can say of its cluster.
public struct ClusterReport: Sendable, Equatable {
    public var status: ClusterStatus
    /// Nil for a tracker that is alone.
    public var bus: BusStatus?
    public var tally: BusTally
    public var elections: ElectionTally
    public var figures = NodeFigures()
    /// What this tracker tells the others of itself; nil for one that does not.
    public var own: TrackerReport?
    /// What is wrong, the cause of silence first.
    public var findings: [Finding] = []

    public init(status: ClusterStatus, bus: BusStatus?, tally: BusTally, elections: ElectionTally) {
        self.status = status
        self.bus = bus
        self.tally = tally
        self.elections = elections
    }
}

public protocol TorrentProvider: Sendable {
    /// Reads a part of the registry.
    ///
    /// - Parameters:
    ///   - text: part of a name or of an info hash in hexadecimal, in either case; nil for all.
    ///   - offset: from 0; beyond the end there is nothing.
    ///   - count: 1…`TorrentsPage.maximumCount`.
    /// - Returns: torrents in an order that stays the same from page to page.
    func torrents(matching text: String?, offset: Int, count: Int) async throws -> TorrentsPage
}

/// A part of the registry.
public struct TorrentsPage: Sendable, Equatable {
    public static let defaultCount = 50
    public static let maximumCount = 500
    /// Bytes of a text that is searched for.
    public static let maximumTextBytes = 256

    public var torrents: [Torrent]
    /// Torrents that match, on all pages.
    public var total: Int

    public struct Torrent: Sendable, Equatable {
        public var registered: RegisteredTorrent
        public var counts: SwarmCounts

        public init(registered: RegisteredTorrent, counts: SwarmCounts) {
            self.registered = registered
            self.counts = counts
        }
    }

    public init(torrents: [Torrent], total: Int) {
        self.torrents = torrents
        self.total = total
    }
}

/// What does not change while a process lives.
public struct ProcessFacts: Sendable, Equatable {
    public struct Listener: Sendable, Equatable {
        public enum Service: String, Sendable {
            case udp
            case http
            case api
        }

        public var service: Service
        public var address: SocketAddress

        public init(_ service: Service, _ address: SocketAddress) {
            self.service = service
            self.address = address
        }
    }

    public var version: String
    public var processID: Int32
    public var startedAt: WallTime
    public var listeners: [Listener]
    /// The announce URL under which clients reach this tracker, where the operator has told it.
    public var advertised: String?

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
