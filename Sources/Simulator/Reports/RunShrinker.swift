// Makes a failing run of a cluster smaller.

import Primitives
import TrackerLogic

/// Makes a failing run of a cluster smaller, as long as it breaks the same promise first.
///
/// What a person has done goes first, and then noise, since most failures need none of it; then trackers and clients,
/// then faults and injections, then time, then the length and the strength of each fault; and all of it again, until
/// nothing more can go: what could not go while something else was there may go now. Whatever stays is what it was,
/// since each part has a stream of its own (`StreamName.swift`). What-ifs name steps and events, which are others in a
/// smaller run; one that is kept still breaks the promise there, whatever it does.
public struct RunShrinker: Sendable {
    /// Runs that are tried at most: some seconds.
    public static let maxTries = 600

    /// The smallest run so far.
    public private(set) var run: Run
    /// The promise that each smaller run has to break first.
    private let invariant: Invariant
    private var shrinker: Shrinker
    private let scenario: @Sendable (Run) -> Scenario
    private let isStillFailing: @Sendable (Run, Invariant) -> Bool

    /// A search that has tried nothing yet.
    ///
    /// - Parameters:
    ///   - run: breaks the invariant.
    ///   - invariant: the promise that the run breaks first.
    ///   - maxTries: runs that are tried at most.
    ///   - isStillFailing: whether a run breaks the invariant before any other; by running it, where not given.
    ///   - scenario: of a run; what the run says where not given.
    public init(
        _ run: Run, breaking invariant: Invariant, maxTries: Int = RunShrinker.maxTries,
        isStillFailing: (@Sendable (Run, Invariant) -> Bool)? = nil,
        of scenario: @escaping @Sendable (Run) -> Scenario = { $0.scenario }
    ) {
        self.run = run
        self.invariant = invariant
        self.scenario = scenario
        self.isStillFailing = isStillFailing ?? { scenario($0).run().violations.first?.invariant == $1 }
        shrinker = Shrinker(maxTries: maxTries)
    }

    /// Runs that were tried so far.
    public var tries: Int { shrinker.tries }

    /// Shrinks the run.
    ///
    /// - Parameters:
    ///   - result: what came of the run as it is.
    ///   - progress: told after each step how many runs were tried, and what is left.
    public mutating func shrink(_ result: ScenarioResult, progress: (Int, Run) -> Void = { _, _ in }) {
        let options = scenario(run).options
        if run.story == nil {
            // What no run has come to is nothing to leave out.
            run.faults = run.faults ?? (0..<result.tally.faultsDrawn).map { ChosenFault($0 + 1) }
            run.injections = run.injections ?? result.injections
        }
        var last: Run?
        while last != run, shrinker.triesLeft > 0 {
            last = run
            shrink(run.whatIfs, atLeast: 0) { $0.whatIfs = $1 }
            progress(tries, run)
            // A story has nothing else that could be left out.
            if run.story != nil { continue }
            shrinkNoise()
            progress(tries, run)
            shrinkPeople()
            progress(tries, run)
            shrinkFaults()
            progress(tries, run)
            shrinkTime(options, result)
            progress(tries, run)
            weakenFaults()
            progress(tries, run)
        }
    }

    /// Of faults that the failure has seen, rounded up.
    private static func seconds(_ options: ScenarioOptions, _ result: ScenarioResult) -> Int {
        let core = options.coreLength.nanoseconds
        let end = min(result.violations.first?.time.nanoseconds ?? core, core)
        return max(Run.secondsRange.lowerBound, Int((end + 999_999_999) / 1_000_000_000))
    }

    /// Leaves out as much of a list as can be.
    private mutating func shrink<Item>(
        _ items: [Item], atLeast floor: Int, setting: (inout Run, [Item]) -> Void
    ) {
        let base = run
        let kept = shrinker.fewest(items) { [isStillFailing, invariant] items in
            guard items.count >= floor else { return false }
            var run = base
            setting(&run, items)
            return isStillFailing(run, invariant)
        }
        if kept.count < items.count { setting(&run, kept) }
    }

    private mutating func shrinkNoise() {
        let base = run
        let noises = Run.Noise.allCases.filter { !base.without.contains($0) }
        let kept = shrinker.fewest(noises) { [isStillFailing, invariant] noises in
            isStillFailing(base.keeping(noises), invariant)
        }
        run = run.keeping(kept)
    }

    /// Trackers and clients: those that stay keep their numbers, and all that they do.
    private mutating func shrinkPeople() {
        let options = scenario(run).options
        // A cluster without trackers has no master either; that is no failure.
        let trackers = run.onlyTrackers ?? (0..<options.nodeCount).map { $0 + 1 }
        shrink(trackers, atLeast: 1) { $0.onlyTrackers = $1 }
        let clients = (0..<options.clientCount + options.scraperCount).filter(options.hasClient)
        shrink(clients, atLeast: 0) { $0.onlyClients = $1 }
    }

    private mutating func shrinkFaults() {
        shrink(run.faults ?? [], atLeast: 0) { $0.faults = $1 }
        shrink(run.injections ?? [], atLeast: 0) { $0.injections = $1 }
    }

    /// Makes each fault that is left as short and as weak as it can be.
    private mutating func weakenFaults() {
        for place in (run.faults ?? []).indices {
            for factor in [64, 8, 4, 2] {
                var candidate = run
                guard let fault = run.faults?[place], ChosenFault.divisorRange.contains(fault.divisor * factor) else {
                    continue
                }
                candidate.faults?[place].divisor = fault.divisor * factor
                if keep(candidate) { break }
            }
        }
    }

    private mutating func shrinkTime(_ options: ScenarioOptions, _ result: ScenarioResult) {
        let seconds = RunShrinker.seconds(options, result)
        if run.seconds.map({ $0 > seconds }) ?? true {
            var candidate = run
            candidate.seconds = seconds
            _ = keep(candidate)
        }
        let base = run
        let now = Int(scenario(run).options.coreLength.wholeSeconds)
        let floor = Run.secondsRange.lowerBound
        let least = shrinker.least(now, downTo: floor) { [isStillFailing, invariant] value in
            var run = base
            run.seconds = value
            return isStillFailing(run, invariant)
        }
        if least < now { run.seconds = least }
    }

    /// Goes on with a run if it still fails.
    private mutating func keep(_ candidate: Run) -> Bool {
        let fails = shrinker.holds(candidate) { [isStillFailing, invariant] in isStillFailing($0, invariant) }
        if fails { run = candidate }
        return fails
    }
}

extension Run {
    /// The same, with no noise but this.
    fileprivate func keeping(_ noises: [Noise]) -> Run {
        var run = self
        run.without = Noise.allCases.filter { !noises.contains($0) }
        return run
    }
}
