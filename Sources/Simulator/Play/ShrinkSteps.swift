// Shrinking, a few tries at a time.

/// Shrinking, a few tries at a time, so that whoever waits can watch and stop.
///
/// The search is the one of `RunShrinker`, begun anew each time with a few tries more: what was tried before is known,
/// and so the search goes the same way up to where it stopped.
public struct ShrinkSteps: Sendable {
    /// A smaller run that was tried.
    public struct Try: Sendable, Hashable {
        /// What was run.
        public var run: Run
        /// Whether it broke the same promise first.
        public var isFailing: Bool
    }

    /// What was tried; one thread, and one search after another.
    private final class Known: @unchecked Sendable {
        var tries: [Try] = []
        var next = 0
    }

    /// What is to be made smaller.
    public let run: Run
    /// The promise that it breaks first.
    public let invariant: Invariant
    private let result: ScenarioResult
    private let scenario: @Sendable (Run) -> Scenario
    private let known = Known()
    /// The smallest run so far.
    public private(set) var smallest: Run
    /// Whether nothing more can go, or there were tries enough.
    public private(set) var isDone = false
    private var maxTries = 0

    /// A search that has tried nothing yet; nil for a run that breaks no promise.
    ///
    /// - Parameters:
    ///   - run: what is to be made smaller.
    ///   - result: what came of it.
    ///   - scenario: of a run; what the run says where not given.
    public init?(
        _ run: Run, _ result: ScenarioResult, of scenario: @escaping @Sendable (Run) -> Scenario = { $0.scenario }
    ) {
        guard let violation = result.violations.first else { return nil }
        self.run = run
        self.result = result
        self.scenario = scenario
        invariant = violation.invariant
        smallest = run
    }

    /// Runs that were tried so far.
    public var tries: [Try] { known.tries }

    /// Tries so many runs more at most.
    ///
    /// - Returns: what was tried.
    @discardableResult
    public mutating func next(_ count: Int) -> ArraySlice<Try> {
        let before = known.tries.count
        guard !isDone else { return known.tries[before...] }
        maxTries = min(maxTries + count, RunShrinker.maxTries)
        let (known, scenario) = (known, scenario)
        known.next = 0
        var shrinker = RunShrinker(
            run, breaking: invariant, maxTries: maxTries,
            isStillFailing: { run, invariant in
                defer { known.next += 1 }
                if known.next < known.tries.count { return known.tries[known.next].isFailing }
                let isFailing = scenario(run).run().violations.first?.invariant == invariant
                known.tries.append(Try(run: run, isFailing: isFailing))
                return isFailing
            }, of: scenario)
        shrinker.shrink(result)
        smallest = shrinker.run
        isDone = shrinker.tries < maxTries || maxTries >= RunShrinker.maxTries
        return known.tries[before...]
    }
}
