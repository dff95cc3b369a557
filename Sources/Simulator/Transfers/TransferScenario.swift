// One run of a simulated swarm.

import PeerLogic
import Primitives

/// One run of a simulated swarm of peers with trackers of its own, fixed by its seed.
public struct TransferScenario: Sendable {
    /// Fixes everything but what `options` change.
    public let seed: UInt64
    /// Drawn from the seed; may be changed before the run, which makes another scenario of it.
    public var options: TransferOptions

    /// The swarm that a seed means.
    public init(seed: UInt64) {
        self.seed = seed
        options = TransferOptions.drawn(seed: seed)
    }

    /// A swarm that is described, and of which the seed draws the rest.
    public init(seed: UInt64, options: TransferOptions) {
        self.seed = seed
        self.options = options
    }

    /// Runs the swarm to its end, or to its first violation.
    ///
    /// - Parameter recordsTrace: whether every transition becomes a line of text as well.
    /// - Returns: the same for the same seed and options, in any process and any build.
    public func run(recordsTrace: Bool = false) -> TransferResult {
        var world = TransferWorld(seed: seed, options: options, isRecording: recordsTrace)
        world.run()
        return TransferResult(seed: seed, world)
    }
}

/// What came of a swarm.
public struct TransferResult: Sendable, Hashable {
    /// Of the scenario.
    public var seed: UInt64
    /// Empty for a run without fault.
    public var violations: [Violation]
    /// Of all transitions: equal for equal runs.
    public var traceHash: UInt64
    /// Transitions.
    public var events: Int
    /// Time that went by in the world.
    public var simulatedSeconds: Int64
    /// One line a transition, where they were wanted.
    public var lines: [TraceLine]
    /// How often things happened.
    public var tally: TransferTally
    /// Pieces on the disk of each peer.
    public var pieceCounts: [Int]
    /// When each peer was complete; nil for those that never were, or were from the start.
    public var doneAt: [Instant?]

    init(seed: UInt64, _ world: TransferWorld) {
        self.seed = seed
        violations = world.checks.violations
        traceHash = world.hash.value
        events = world.eventCount
        simulatedSeconds = (world.now - Instant(nanoseconds: 0)).wholeSeconds
        lines = world.lines
        tally = world.tally
        tally.again = world.checks.scene.again
        pieceCounts = world.peers.map { $0.disk.setCount }
        doneAt = world.peers.map { $0.doneAt }
    }
}

/// How often things happened in a swarm, to see that a sweep reaches what it is for.
public struct TransferTally: Sendable, Hashable {
    /// Steps of sessions.
    public var steps = 0
    /// Messages that sessions have sent; blocks are not among them.
    public var messages = 0
    /// Blocks that came and were kept.
    public var blocks = 0
    /// Blocks that came for nothing.
    public var skippedBlocks = 0
    /// Times that the metadata came from peers.
    public var metadata = 0
    /// Pieces that came onto disks.
    public var pieces = 0
    /// Pieces that were wrong.
    public var wrongPieces = 0
    /// Pieces that went from disks.
    public var lostPieces = 0
    /// Pieces that web seeds gave.
    public var webPieces = 0
    /// Calls.
    public var dials = 0
    /// Connections that were through their handshakes; both sides count.
    public var links = 0
    /// Connections that were ended for what the other side said.
    public var breaches = 0
    /// Peers that were banned.
    public var bans = 0
    /// Times that a peer had all it wanted.
    public var completions = 0
    /// Seeders that ended at their ratio.
    public var ratiosReached = 0
    /// Peers that died.
    public var deaths = 0
    /// Times that a disk began to take nothing.
    public var diskTroubles = 0
    /// Writes that were not made.
    public var failedWrites = 0
    /// Announces to simple trackers.
    public var announces = 0
    /// Announces that came to nothing.
    public var trackerFailures = 0
    /// What liars have said.
    public var lies = 0
    /// Faults by the clock, by their kinds.
    public var faults = Array(repeating: 0, count: TransferFault.allCases.count)
    /// Blocks that were asked for a second time, by reason.
    public var again = SecondRequests()

    /// Nothing has happened.
    public init() {}

    /// Adds what happened in another swarm.
    public static func += (left: inout TransferTally, right: TransferTally) {
        left.steps += right.steps
        left.messages += right.messages
        left.blocks += right.blocks
        left.skippedBlocks += right.skippedBlocks
        left.metadata += right.metadata
        left.pieces += right.pieces
        left.wrongPieces += right.wrongPieces
        left.lostPieces += right.lostPieces
        left.webPieces += right.webPieces
        left.dials += right.dials
        left.links += right.links
        left.breaches += right.breaches
        left.bans += right.bans
        left.completions += right.completions
        left.ratiosReached += right.ratiosReached
        left.deaths += right.deaths
        left.diskTroubles += right.diskTroubles
        left.failedWrites += right.failedWrites
        left.announces += right.announces
        left.trackerFailures += right.trackerFailures
        left.lies += right.lies
        for place in left.faults.indices { left.faults[place] += right.faults[place] }
        left.again += right.again
    }
}
