// How large a world the explorer walks through.

import Primitives
import TrackerLogic

/// How large a world the explorer walks through, and what it leaves out.
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
        /// Writes are durable before anything else comes to their node; but it may die between any two of them, and
        /// before it hears that one is durable.
        case quick
    }

    /// What becomes of a message.
    public enum Network: String, Sendable, Hashable, CaseIterable {
        /// It comes once, at any time, or never.
        case once
        /// It comes at any time, and as often as it likes, or never.
        case again
        /// It comes once, after what the same sender sent before, unless its receiver dies: as over a broker.
        case inOrder
    }

    /// How states of the cluster are told apart: see `VisitedStates`.
    public enum Reduction: String, Sendable, Hashable, CaseIterable {
        /// Each is walked from. The first violation has a shortest schedule.
        case apart
        /// The same in little room: there is no way back from a violation (`PrintSet` has the odds to miss a state).
        case compact
        /// Not those that others cover. The first violation has a shortest schedule.
        case covered
        /// All that differ in messages under way only are one. What is found may be no schedule at all; where nothing
        /// is found, there is nothing.
        case joined
    }

    /// Trackers that one explored cluster may have.
    public static let maxNodes = 5
    /// The most of anything that may happen.
    public static let maxBudget = 15

    /// Trackers, 1…`maxNodes`.
    public var nodes = 3
    /// Where the walk begins.
    public var start = Start.led
    /// How writes and other events may interleave.
    public var disks = Disks.quick
    /// How often somebody stands for master, at most.
    public var elections = 2
    /// Announces of clients.
    public var requests = 1
    /// Scrapes of clients.
    public var scrapes = 0
    /// How often a node dies, to come back at once with what is on its disk.
    public var restarts = 0
    /// Only this node dies, counted from 0; nil for any.
    public var mortal: Int?
    /// What becomes of messages. (Each may be lost in any case: it never comes.)
    public var network = Network.again
    /// How states of the cluster are told apart.
    public var reduction = Reduction.covered
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
        public var plantedBug = Planted.bug
    #endif

    /// Three trackers, two elections and one request.
    public init() {}

    /// What may happen, in words.
    public var bounds: String {
        let parts = [
            (nodes, "tracker"), (elections, "election"), (requests, "request"), (scrapes, "scrape"),
            (waits, "wait"), (failures, "failed write"), (restarts, "restart"),
        ]
        let words = parts.filter { $0.0 > 0 }.map { count, name in "\(count) \(name)" + (count == 1 ? "" : "s") }
        let copies =
            switch network {
            case .again: "each message comes at any time, or never, and again and again"
            case .once: "each message comes at any time, or never, and once"
            case .inOrder: "each message comes once, in the order of its sender, unless its receiver dies"
            }
        return words.joined(separator: ", ") + (restarts > 0 ? mortal.map { " of tracker \($0 + 1)" } ?? "" : "")
            + "; \(disks.rawValue) disks; \(copies)" + (depth.map { "; \($0) steps at most" } ?? "")
    }

    /// Whether states may be told apart so: of messages in order, fewer under way is not less.
    var isSound: Bool {
        switch reduction {
        case .apart, .compact: true
        case .covered, .joined: network != .inOrder
        }
    }

    /// Whether messages that only make a node speak are delivered at once (`Explorer`).
    var deliversUtterancesAtOnce: Bool { reduction == .joined && network == .again }

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
            mode: .quorum, members: (1...UInt32(nodes)).map { $0 }, keepalive: ExplorerOptions.keepalive, missed: 4,
            forwardPause: .zero)
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
