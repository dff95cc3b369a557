/// Makes a failing run of a cluster smaller, as long as it breaks the same promise first.
///
/// Noise goes first, since most failures need none of it; then faults and strikes, then time, clients and trackers; and
/// all of it again, until nothing more can go: what could not go while something else was there may go now.

import Primitives
import TrackerLogic

public struct ClusterShrinker: Sendable {
    /// Runs that are tried at most: some seconds.
    public static let maxTries = 600

    /// The smallest run so far.
    public private(set) var run: ClusterRun
    public let invariant: Invariant
    private var shrinker: Shrinker
    private let isStillFailing: @Sendable (ClusterRun, Invariant) -> Bool

    /// - Parameters:
    ///   - run: breaks the invariant.
    ///   - isStillFailing: whether a run breaks the invariant before any other; by running it, where not given.
    public init(
        _ run: ClusterRun, breaking invariant: Invariant, maxTries: Int = ClusterShrinker.maxTries,
        isStillFailing: @escaping @Sendable (ClusterRun, Invariant) -> Bool = ClusterShrinker.breaks
    ) {
        self.run = run
        self.invariant = invariant
        self.isStillFailing = isStillFailing
        shrinker = Shrinker(maxTries: maxTries)
    }

    public var tries: Int { shrinker.tries }

    public static func breaks(_ run: ClusterRun, _ invariant: Invariant) -> Bool {
        run.scenario.run().violations.first?.invariant == invariant
    }

    /// Shrinks the run.
    ///
    /// - Parameters:
    ///   - result: what came of the run as it is.
    ///   - progress: told after each step how many runs were tried, and what is left.
    public mutating func shrink(_ result: ClusterResult, progress: (Int, ClusterRun) -> Void = { _, _ in }) {
        let options = run.scenario.options
        // Numbers that no run has come to are nothing to leave out.
        run.faults = run.faults ?? (0..<result.tally.faultsDrawn).map { $0 + 1 }
        run.strikes = run.strikes ?? (0..<result.tally.strikesDrawn).map { $0 + 1 }
        var last: ClusterRun?
        while last != run, shrinker.triesLeft > 0 {
            last = run
            shrinkNoise()
            progress(tries, run)
            shrinkFaults()
            progress(tries, run)
            shrinkSize(options, result)
            progress(tries, run)
        }
    }

    /// Of faults that the failure has seen, rounded up.
    private static func seconds(_ options: ClusterOptions, _ result: ClusterResult) -> Int {
        let core = options.coreLength.nanoseconds
        let end = min(result.violations.first?.time.nanoseconds ?? core, core)
        return max(ClusterRun.secondsRange.lowerBound, Int((end + 999_999_999) / 1_000_000_000))
    }

    private mutating func shrinkNoise() {
        let base = run
        let noises = ClusterRun.Noise.allCases.filter { !base.without.contains($0) }
        let kept = shrinker.fewest(noises) { [isStillFailing, invariant] noises in
            isStillFailing(base.keeping(noises), invariant)
        }
        run = run.keeping(kept)
    }

    private mutating func shrinkFaults() {
        var base = run
        let faults = shrinker.fewest(base.faults ?? []) { [isStillFailing, invariant] faults in
            var run = base
            run.faults = faults
            return isStillFailing(run, invariant)
        }
        base.faults = faults
        base.strikes = shrinker.fewest(base.strikes ?? []) { [isStillFailing, invariant] strikes in
            var run = base
            run.strikes = strikes
            return isStillFailing(run, invariant)
        }
        run = base
    }

    private mutating func shrinkSize(_ options: ClusterOptions, _ result: ClusterResult) {
        let seconds = ClusterShrinker.seconds(options, result)
        if run.seconds.map({ $0 > seconds }) ?? true { tryNumber(\.seconds, seconds) }
        let now = run.scenario.options
        shrink(\.seconds, from: Int(now.coreLength.wholeSeconds), downTo: ClusterRun.secondsRange.lowerBound)
        shrink(\.clients, from: now.clientCount, downTo: ClusterRun.clientRange.lowerBound)
        shrink(\.nodes, from: now.nodeCount, downTo: ClusterRun.nodeRange.lowerBound)
    }

    /// Keeps a number if the run still fails with it.
    private mutating func tryNumber(_ number: WritableKeyPath<ClusterRun, Int?>, _ value: Int) {
        var candidate = run
        candidate[keyPath: number] = value
        if shrinker.holds(candidate, { [isStillFailing, invariant] in isStillFailing($0, invariant) }) {
            run = candidate
        }
    }

    /// Finds the least number with which the run still fails.
    private mutating func shrink(_ number: WritableKeyPath<ClusterRun, Int?>, from value: Int, downTo floor: Int) {
        let base = run
        let least = shrinker.least(value, downTo: floor) { [isStillFailing, invariant] value in
            var run = base
            run[keyPath: number] = value
            return isStillFailing(run, invariant)
        }
        if least < value { run[keyPath: number] = least }
    }
}

extension ClusterRun {
    /// The same, with no noise but this.
    fileprivate func keeping(_ noises: [Noise]) -> ClusterRun {
        var run = self
        run.without = Noise.allCases.filter { !noises.contains($0) }
        return run
    }
}
