/// How large a world the explorer walks through, and what it leaves out.

import Primitives
import TrackerLogic

public struct ExplorerOptions: Sendable, Hashable {
    /// Where the walk begins: what comes before goes one way only.
    public enum Start: String, Sendable, Hashable, CaseIterable {
        /// All are members and hold the (empty) state; nobody has ever stood for master.
        case formed
        /// A master serves, and all follow.
        case led
    }

    /// Whether what happens at a node while a write is under way is walked through.
    public enum Disks: String, Sendable, Hashable, CaseIterable {
        /// Anything may happen between a write and the news that it is durable.
        case slow
        /// Writes are durable at once, but for those of the node that may die.
        case slowWhereNodesDie
        /// Writes are durable at once.
        case quick
    }

    /// Trackers that one explored cluster may have.
    public static let maxNodes = 5
    /// The most of anything that may happen.
    public static let maxBudget = 15

    public var nodes = 3
    public var start = Start.led
    public var disks = Disks.quick
    /// How often somebody stands for master, at most.
    public var elections = 2
    /// Announces of clients.
    public var requests = 1
    /// Scrapes of clients.
    public var scrapes = 0
    /// How often a node dies, to come back at once with what is on its disk.
    public var restarts = 0
    /// Only this node dies; nil for any.
    public var mortal: Int?
    /// Messages that are lost.
    public var losses = 0
    /// Messages that come twice.
    public var repeats = 0
    /// Whether every message may be lost, and come as often as it likes.
    public var keepsLetters = false
    /// Whether messages of a master that do nothing when his epoch is over, or known, are lost, and COORDINATOR where
    /// WELCOME says it, too.
    public var losesTheLate = true
    /// How often a node waits for long enough to ask again.
    public var waits = 0
    /// Writes that fail.
    public var failures = 0
    /// Steps of a schedule; nil for all.
    public var depth: Int?
    /// States after which the walk ends.
    public var maxStates = 50_000_000

    #if PLANTED_BUGS
        /// A mistake in the logic of all nodes.
        public var plantedBug: PlantedBug?
    #endif

    public init() {}

    /// Whether a node's writes take time.
    func isDiskSlow(_ node: Int) -> Bool {
        switch disks {
        case .slow: true
        case .slowWhereNodesDie: restarts > 0 && (mortal ?? node) == node
        case .quick: false
        }
    }

    /// The node's configuration: quorum mode, and time in which nothing ever falls due but what is about elections.
    func configuration(_ node: Int) -> NodeConfiguration {
        var configuration = NodeConfiguration()
        configuration.id = UInt32(node + 1)
        configuration.shardCount = 1
        configuration.cluster = ClusterConfiguration(
            mode: .quorum, members: (1...UInt32(nodes)).map { $0 }, keepalive: ExplorerOptions.keepalive, missed: 4)
        #if PLANTED_BUGS
            configuration.plantedBug = plantedBug
        #endif
        return configuration
    }

    /// So short that all that is explored is over within a millisecond: cluster time stands still, and with it what
    /// entries come to.
    static let keepalive = Duration.microseconds(1)
    static let wall = WallTime(milliseconds: 1_700_000_000_000)
}
