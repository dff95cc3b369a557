/// One run of a simulated world, fixed by its seed.

import Primitives
import TrackerLogic

public struct Scenario: Sendable {
    public let seed: UInt64
    /// Drawn from the seed; may be changed before the run, which makes another scenario of it.
    public var options: ScenarioOptions
    /// What is planted into the house, to test the checkers.
    package var sabotage: Sabotage?

    public init(seed: UInt64) {
        self.seed = seed
        options = ScenarioOptions.drawn(seed: seed)
    }

    /// Runs the scenario to its end, or to its first violation.
    ///
    /// - Parameter recordsTrace: whether every transition becomes a line of text as well.
    /// - Returns: the same for the same seed and options, in any process and any build.
    public func run(recordsTrace: Bool = false) -> ScenarioResult {
        var world = World(seed: seed, options: options, sabotage: sabotage, isRecording: recordsTrace)
        world.run()
        world.tally.announcesAnswered = world.checks.answeredCount
        world.tally.expired = world.checks.expiredCount
        return ScenarioResult(
            seed: seed, violations: world.checks.violations, traceHash: world.trace.hash, events: world.eventCount,
            simulatedSeconds: (world.now - Instant(nanoseconds: 0)).wholeSeconds, trace: world.trace.lines,
            tally: world.tally)
    }
}

/// What came of a scenario.
public struct ScenarioResult: Sendable, Hashable {
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
    public var trace: [String]
    public var tally: Tally
}
