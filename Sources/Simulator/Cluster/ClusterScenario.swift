/// One run of a simulated cluster, fixed by its seed and its profile.

import Primitives
import TrackerLogic

public struct ClusterScenario: Sendable {
    public let seed: UInt64
    public let profile: ClusterProfile
    /// Drawn from the seed; may be changed before the run, which makes another scenario of it.
    public var options: ClusterOptions

    /// - Parameters:
    ///   - nodes: trackers; drawn where nil, three to seven.
    ///   - seconds: how long there are faults; drawn where nil, half a minute to a minute.
    public init(seed: UInt64, profile: ClusterProfile, nodes: Int? = nil, seconds: Int64? = nil) {
        self.seed = seed
        self.profile = profile
        options = ClusterOptions.drawn(seed: seed, profile: profile, nodes: nodes)
        if let seconds { options.coreLength = .seconds(seconds) }
    }

    /// Runs the scenario to its end, or to its first violation.
    ///
    /// - Parameters:
    ///   - recordsTrace: whether every transition becomes a line of text as well.
    ///   - recordsHistory: whether transitions and messages are kept for a picture, and datagrams for a capture.
    /// - Returns: the same for the same seed, profile and options, in any process and any build.
    public func run(recordsTrace: Bool = false, recordsHistory: Bool = false) -> ClusterResult {
        var world = ClusterWorld(
            seed: seed, profile: profile, options: options, isRecording: recordsTrace, keepsHistory: recordsHistory)
        world.run()
        world.tally.faultsDrawn = world.plan.lastFault
        world.tally.strikesDrawn = world.plan.lastStrike
        return ClusterResult(
            seed: seed, profile: profile, violations: world.allViolations, traceHash: world.trace.hash,
            events: world.eventCount, simulatedSeconds: (world.now - Instant(nanoseconds: 0)).wholeSeconds,
            trace: world.trace.lines, tally: world.tally, history: world.history)
    }
}

/// What came of a scenario.
public struct ClusterResult: Sendable, Hashable {
    public var seed: UInt64
    public var profile: ClusterProfile
    /// Empty for a run without fault.
    public var violations: [Violation]
    /// Of all transitions: equal for equal runs.
    public var traceHash: UInt64
    /// Transitions.
    public var events: Int
    /// Time that went by in the world.
    public var simulatedSeconds: Int64
    /// One line a transition, where they were wanted; the last tells the hash.
    public var trace: [String]
    public var tally: ClusterTally
    /// Where it was wanted.
    public var history: ClusterHistory

    public var transitions: [ClusterHistory.Transition] { history.transitions }
    public var messages: [ClusterHistory.Transmission] { history.transmissions }
    public var datagrams: [ClusterHistory.Capture] { history.captures }
}

/// How often things happened, to see that a sweep reaches what it is for.
public struct ClusterTally: Sendable, Hashable {
    /// What struck at each bad moment.
    public var struck: [Int] = Array(repeating: 0, count: ClusterMoment.allCases.count)
    /// Faults by the clock, by their kinds.
    public var faults: [Int] = Array(repeating: 0, count: ClusterFault.Kind.allCases.count)
    /// Faults by the clock, and strikes at bad moments, that were drawn, whether carried out or not.
    public var faultsDrawn = 0
    public var strikesDrawn = 0
    public var starts = 0
    public var stops = 0
    public var deaths = 0
    public var memoryLosses = 0
    /// Times that a node became master.
    public var masters = 0
    public var stepDowns = 0
    public var transfers = 0
    public var merges = 0
    public var aborts = 0
    public var refusedCommands = 0
    public var memberChanges = 0
    public var messagesSent = 0
    public var messagesDelivered = 0
    public var entriesWritten = 0
    public var writesFailed = 0
    public var chunksSaved = 0
    public var trims = 0
    public var repliesToClients = 0
    /// Requests of clients that were answered, granted or not.
    public var answers = 0
    public var refusals = 0
    public var timeOuts = 0

    public init() {}

    public static func += (left: inout ClusterTally, right: ClusterTally) {
        for place in left.struck.indices { left.struck[place] += right.struck[place] }
        for place in left.faults.indices { left.faults[place] += right.faults[place] }
        left.faultsDrawn += right.faultsDrawn
        left.strikesDrawn += right.strikesDrawn
        left.starts += right.starts
        left.stops += right.stops
        left.deaths += right.deaths
        left.memoryLosses += right.memoryLosses
        left.masters += right.masters
        left.stepDowns += right.stepDowns
        left.transfers += right.transfers
        left.merges += right.merges
        left.aborts += right.aborts
        left.refusedCommands += right.refusedCommands
        left.memberChanges += right.memberChanges
        left.messagesSent += right.messagesSent
        left.messagesDelivered += right.messagesDelivered
        left.entriesWritten += right.entriesWritten
        left.writesFailed += right.writesFailed
        left.chunksSaved += right.chunksSaved
        left.trims += right.trims
        left.repliesToClients += right.repliesToClients
        left.answers += right.answers
        left.refusals += right.refusals
        left.timeOuts += right.timeOuts
    }
}
