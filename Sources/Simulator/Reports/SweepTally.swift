// What came of many scenarios: counted as they end, in whatever order, and told in the order of their seeds.

import Primitives

/// What a sweep keeps of one scenario.
public struct SweepOutcome: Sendable, Hashable {
    /// Of the scenario.
    public var seed: UInt64
    /// Of all its transitions.
    public var traceHash: UInt64
    /// Transitions.
    public var events: Int
    /// Time that went by in its world.
    public var simulatedSeconds: Int64
    /// The promise that was not kept; nil for a run without fault.
    public var invariant: String?
    /// What happened how often, and to whom; nil where nobody counted.
    public var census: Census?
    /// Of the scenario; nil for a swarm of peers.
    public var profile: Profile?

    /// Takes the fields as they are.
    public init(seed: UInt64, traceHash: UInt64, events: Int, simulatedSeconds: Int64, invariant: String? = nil) {
        self.seed = seed
        self.traceHash = traceHash
        self.events = events
        self.simulatedSeconds = simulatedSeconds
        self.invariant = invariant
    }

    /// Stands for an invariant where two runs of one seed differ.
    public static let isNotReproducible = "oneSeedIsOneRun"
}

/// Adds up outcomes in the order of their places, whichever thread is first.
public struct SweepTally: Sendable {
    /// Scenarios that were added up, in the order of their places.
    public private(set) var scenarios: UInt64 = 0
    /// Transitions of all of them.
    public private(set) var events = 0
    /// Time that went by in their worlds.
    public private(set) var simulatedSeconds: Int64 = 0
    /// Scenarios that broke a promise, in the order of their places.
    public private(set) var failures: [SweepOutcome] = []
    /// Of all scenarios' hashes, in the order of their seeds.
    public private(set) var traceHash: UInt64 = 0x5377_6565_7048_6173
    /// What happened in all of them, where it was counted.
    public private(set) var census = CensusByProfile()
    /// Outcomes that have come before others with smaller places: a few for each thread.
    private var early: [(place: UInt64, outcome: SweepOutcome)] = []

    /// No scenario has come.
    public init() {}

    /// Takes in an outcome.
    ///
    /// - Parameters:
    ///   - outcome: of one scenario.
    ///   - place: its place in the sweep, from 0; each comes once.
    public mutating func add(_ outcome: SweepOutcome, at place: UInt64) {
        guard place == scenarios else {
            early.append((place, outcome))
            return
        }
        take(outcome)
        while let next = early.firstIndex(where: { $0.place == scenarios }) {
            take(early.remove(at: next).outcome)
        }
    }

    /// How often each promise was broken, the most frequent first.
    public var failuresByInvariant: [(invariant: String, count: Int)] {
        var counts: [(invariant: String, count: Int)] = []
        for failure in failures {
            let invariant = failure.invariant ?? ""
            if let place = counts.firstIndex(where: { $0.invariant == invariant }) {
                counts[place].count += 1
            } else {
                counts.append((invariant, 1))
            }
        }
        return counts.sorted { ($1.count, $0.invariant) < ($0.count, $1.invariant) }
    }

    private mutating func take(_ outcome: SweepOutcome) {
        scenarios += 1
        events += outcome.events
        simulatedSeconds += outcome.simulatedSeconds
        traceHash = mixed(traceHash ^ outcome.traceHash) &+ 0x9E37_79B9_7F4A_7C15
        if let counted = outcome.census, let profile = outcome.profile { census.add(counted, profile) }
        guard outcome.invariant != nil else { return }
        var failure = outcome
        failure.census = nil
        failures.append(failure)
    }
}

/// What a sweep tells programs.
public struct SweepReport: Sendable, Hashable {
    /// A scenario that broke a promise.
    public struct Failure: Sendable, Hashable {
        /// Seeds take all 64 bits; programs that keep numbers in floating point need them below 2^53.
        public var seed: UInt64
        /// The promise.
        public var invariant: String
    }

    /// Scenarios that were run.
    public var scenarios: UInt64
    /// In the order of their seeds.
    public var failures: [Failure]
    /// Time that went by in all worlds.
    public var simulatedSeconds: Int64
    /// Time that the sweep took.
    public var wallSeconds: Double
    /// Transitions of all scenarios.
    public var events: Int
    /// Sixteen hexadecimal digits.
    public var traceHash: String
    /// What happened how often; nil where nobody wants to know.
    public var census: CensusByProfile?

    /// The report of a sweep that has ended.
    public init(_ tally: SweepTally, wallSeconds: Double) {
        scenarios = tally.scenarios
        failures = tally.failures.map { Failure(seed: $0.seed, invariant: $0.invariant ?? "") }
        simulatedSeconds = tally.simulatedSeconds
        self.wallSeconds = wallSeconds
        events = tally.events
        traceHash = SweepReport.text(hash: tally.traceHash)
    }

    /// A hash as sixteen hexadecimal digits.
    public static func text(hash: UInt64) -> String {
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
