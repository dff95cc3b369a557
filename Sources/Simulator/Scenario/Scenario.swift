// One run of a simulated cluster.

import Primitives
import TrackerLogic

/// One run of a simulated cluster, fixed by its seed and its profile.
public struct Scenario: Sendable {
    /// Fixes everything but what `options` change.
    public let seed: UInt64
    /// How the cluster elects and votes.
    public let profile: Profile
    /// Drawn from the seed; may be changed before the run, which makes another scenario of it.
    public var options: ScenarioOptions
    /// What a person does to it, in the order of the steps (`WhatIf.check`).
    public var whatIfs: [WhatIf] = []
    /// What is planted around its trackers, to test the checkers.
    package var sabotage: Sabotage?

    /// The scenario that a seed means for a profile.
    ///
    /// - Parameters:
    ///   - seed: fixes everything.
    ///   - profile: how the cluster elects and votes.
    ///   - nodes: trackers; drawn where nil, three to seven.
    ///   - seconds: how long there are faults; drawn where nil, half a minute to a minute.
    public init(seed: UInt64, profile: Profile, nodes: Int? = nil, seconds: Int64? = nil) {
        self.seed = seed
        self.profile = profile
        options = ScenarioOptions.drawn(seed: seed, profile: profile, nodes: nodes)
        if let seconds { options.coreLength = .seconds(seconds) }
    }

    /// Runs the scenario to its end, or to its first violation.
    ///
    /// - Parameters:
    ///   - recordsTrace: whether every transition becomes a line of text as well.
    ///   - recordsHistory: whether transitions and messages are kept for a picture, and datagrams for a capture.
    ///   - moment: where it ends, to tell how trackers stand there; nil for the whole run.
    ///   - places: of the trackers of which that is told; empty for all.
    ///   - takesCensus: whether it is counted what happens.
    /// - Returns: the same for the same seed, profile and options, in any process and any build.
    public func run(
        recordsTrace: Bool = false, recordsHistory: Bool = false, stopsAt moment: Instant? = nil,
        telling places: [Int] = [], takesCensus: Bool = false
    ) -> ScenarioResult {
        var world = world(isRecording: recordsTrace, keepsHistory: recordsHistory)
        if takesCensus { world.taker = CensusTaker(nodeCount: world.nodes.count) }
        world.run(until: moment)
        var result = result(of: world)
        result.census = world.taker?.census
        guard moment != nil else { return result }
        for place in places.isEmpty ? Array(world.nodes.indices) : places {
            result.state += world.tell(of: place)
        }
        return result
    }

    /// Runs the scenario, and has each life of each tracker leave behind what a real one does.
    ///
    /// - Parameter byteCount: of each recording: some pages, a multiple of 8.
    /// - Returns: tracker by tracker, in the order of its lives: what `Recording` reads.
    package func recordings(byteCount: Int) -> [[[UInt8]]] {
        var world = world(isRecording: false, keepsHistory: false)
        for node in world.nodes.indices { world.nodes[node].recordingByteCount = byteCount }
        world.run()
        return world.nodes.indices.map { node in
            world.nodes[node].endRecording()
            return world.nodes[node].recordings.map { Array($0.bytes) }
        }
    }

    /// How its trackers are called.
    public var names: TrackerNames { TrackerNames(options.configurations(profile).map { $0.id }) }

    /// The world at its beginning; `isRecording` says whether every transition becomes a line of text, `keepsHistory`
    /// whether transitions, messages and datagrams are kept, and `isWatching` whether somebody looks after each step at
    /// what was sent, and what arrived.
    func world(isRecording: Bool, keepsHistory: Bool, isWatching: Bool = false) -> World {
        World(
            seed: seed, profile: profile, options: options, sabotage: sabotage, isRecording: isRecording,
            keepsHistory: keepsHistory, player: Player(whatIfs, isWatching: isWatching))
    }

    /// What has come of a world so far.
    func result(of world: World) -> ScenarioResult {
        var tally = world.tally
        tally.faultsDrawn = world.plan.lastFault
        tally.injectionsDrawn = world.plan.injections.count
        tally.electionsJudged = world.elections.settledCount
        tally.note(world.checks.mergeCounts)
        return ScenarioResult(
            seed: seed, profile: profile, violations: world.allViolations, traceHash: world.trace.hash,
            events: world.eventCount, simulatedSeconds: (world.now - Instant(nanoseconds: 0)).wholeSeconds,
            names: world.trace.names, lines: world.trace.lines, reasons: world.reasons, tally: tally,
            injections: world.plan.injections, history: world.history,
            transfers: world.transfers.map { TransferResult(seed: seed, $0) }, steps: world.player.steps,
            unmetWhatIfs: world.player.unmet + world.player.missed, waitsForPlayer: world.waitsForPlayer)
    }
}

/// What came of a scenario.
public struct ScenarioResult: Sendable, Hashable {
    /// Of the scenario.
    public var seed: UInt64
    /// Of the scenario.
    public var profile: Profile
    /// Empty for a run without fault.
    public var violations: [Violation]
    /// Of all transitions: equal for equal runs.
    public var traceHash: UInt64
    /// Transitions.
    public var events: Int
    /// Time that went by in the world.
    public var simulatedSeconds: Int64
    /// How its trackers are called.
    public var names: TrackerNames
    /// One line a transition, where they were wanted.
    public var lines: [TraceLine]
    /// Where a promise of the end is broken: why, tracker by tracker; only with lines or a history.
    public var reasons: [String]
    /// How trackers stand at the moment that was asked for.
    public var state: [String] = []
    /// How often things happened.
    public var tally: Tally
    /// What was injected at bad moments, in order of time.
    public var injections: [Injection]
    /// Where it was wanted.
    public var history: History
    /// What happened how often, where it was wanted.
    public var census: Census?
    /// Of the peers that download, where there are any.
    public var transfers: TransferResult?
    /// Transitions by which what-ifs count.
    public var steps = 0
    /// What-ifs that came to nothing.
    public var unmetWhatIfs: [UnmetWhatIf] = []
    /// Whether it has not ended, for the player is the network, and says no more.
    public var waitsForPlayer = false

    /// The lines as text, the last of which tells the hash; empty where none were wanted.
    public var trace: [String] {
        lines.isEmpty ? [] : lines.map { $0.words() } + [hashLine]
    }

    /// The last line of a trace: the hash in hexadecimal.
    public var hashLine: String { "trace hash \(String(traceHash, radix: 16))" }

    /// What happened to single trackers; empty where no history was wanted.
    public var transitions: [History.Transition] { history.transitions }
    /// What trackers said to each other; empty where no history was wanted.
    public var messages: [History.Transmission] { history.transmissions }
    /// Between clients and trackers; empty where no history was wanted.
    public var datagrams: [History.Capture] { history.captures }
}

/// How often things happened, to see that a sweep reaches what it is for.
public struct Tally: Sendable, Hashable {
    /// What was injected at each bad moment.
    public var injected: [Int] = Array(repeating: 0, count: Moment.allCases.count)
    /// Faults by the clock, by their kinds.
    public var faults: [Int] = Array(repeating: 0, count: Fault.Kind.allCases.count)
    /// Faults by the clock that were drawn, whether carried out or not.
    public var faultsDrawn = 0
    /// Strikes at bad moments that were drawn, whether carried out or not.
    public var injectionsDrawn = 0
    /// Lives of trackers that began.
    public var starts = 0
    /// Orderly stops.
    public var stops = 0
    /// Lives that ended without warning.
    public var deaths = 0
    /// Disks that were lost.
    public var memoryLosses = 0
    /// Disks that were damaged.
    public var damages = 0
    /// Those of them whose trackers have said so.
    public var damagesFound = 0
    /// Times that a node became master.
    public var masters = 0
    /// Times that a master ceased to be one, and lived on.
    public var stepDowns = 0
    /// Deaths of a master after which it was plain who was to be elected, and was.
    public var electionsJudged = 0
    /// Transfers of the whole state that came to their end.
    public var transfers = 0
    /// Histories that were merged after a partition.
    public var merges = 0
    /// Those of them of which both sides are known, and were compared with what came of them.
    public var mergesJudged = 0
    /// Those in which each side had accounts that the other had not, or not so.
    public var mergesOfAccounts = 0
    /// The same of torrent files of consoles.
    public var mergesOfFiles = 0
    /// The same of peers.
    public var mergesOfPeers = 0
    /// Those in which one side had an account or a torrent file that was removed on the other.
    public var mergesOfRemovals = 0
    /// Entries that a vote refused.
    public var aborts = 0
    /// Commands of operators that were refused.
    public var refusedCommands = 0
    /// Changes of the voters that were decided.
    public var memberChanges = 0
    /// Given to the bus, each once for each receiver.
    public var messagesSent = 0
    /// That came to a tracker.
    public var messagesDelivered = 0
    /// Writes of single entries that were made.
    public var entriesWritten = 0
    /// Writes of any kind that were not made.
    public var writesFailed = 0
    /// Chunks of snapshots that were written.
    public var chunksSaved = 0
    /// Times that a log was cut.
    public var trims = 0
    /// Datagrams that came to a client.
    public var repliesToClients = 0
    /// Requests of clients that were answered, granted or not.
    public var answers = 0
    /// Requests that were answered with an error.
    public var refusals = 0
    /// Changes at consoles that were done.
    public var changes = 0
    /// Changes at consoles that were refused, or found something else than was believed.
    public var changesRefused = 0
    /// Torrent files that were uploaded whole.
    public var filesShown = 0
    /// Requests over HTTP that were answered, if only that there is no answer.
    public var visitsAnswered = 0
    /// Requests that a client gave up.
    public var timeOuts = 0
    /// Datagrams in which a bit has flipped.
    public var flips = 0
    /// Comparisons of a tracker with a copy of its disk.
    public var probes = 0

    /// Nothing has happened.
    public init() {}

    /// Takes in how often sides of each kind have met in merges.
    mutating func note(_ merges: MergeSides.Counts) {
        (mergesJudged, mergesOfAccounts, mergesOfFiles) = (merges.judged, merges.ofAccounts, merges.ofFiles)
        (mergesOfPeers, mergesOfRemovals) = (merges.ofPeers, merges.ofRemovals)
    }

    /// Adds what happened in another scenario.
    public static func += (left: inout Tally, right: Tally) {
        for place in left.injected.indices { left.injected[place] += right.injected[place] }
        for place in left.faults.indices { left.faults[place] += right.faults[place] }
        left.faultsDrawn += right.faultsDrawn
        left.injectionsDrawn += right.injectionsDrawn
        left.starts += right.starts
        left.stops += right.stops
        left.deaths += right.deaths
        left.memoryLosses += right.memoryLosses
        left.damages += right.damages
        left.damagesFound += right.damagesFound
        left.masters += right.masters
        left.stepDowns += right.stepDowns
        left.electionsJudged += right.electionsJudged
        left.transfers += right.transfers
        left.merges += right.merges
        left.mergesJudged += right.mergesJudged
        left.mergesOfAccounts += right.mergesOfAccounts
        left.mergesOfFiles += right.mergesOfFiles
        left.mergesOfPeers += right.mergesOfPeers
        left.mergesOfRemovals += right.mergesOfRemovals
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
        left.changes += right.changes
        left.changesRefused += right.changesRefused
        left.filesShown += right.filesShown
        left.visitsAnswered += right.visitsAnswered
        left.timeOuts += right.timeOuts
        left.flips += right.flips
        left.probes += right.probes
    }
}
