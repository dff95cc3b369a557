// The smallest run in which a mistake is met.

import Simulator
import TrackerLogic

/// The smallest run in which a mistake is met.
enum Smallest {
    /// Looks for a run that the mistake breaks, makes it smaller, and tells what is left.
    ///
    /// - Returns: whether what is left breaks the same promise.
    static func find(_ plant: Plant) -> Bool {
        for seed in 1...UInt64(plant.budget) {
            let result = plant.scenario(seed, isPlanted: true).run()
            guard let first = result.violations.first, plant.checkers.contains(first.invariant) else { continue }
            let scenario: @Sendable (Run) -> Scenario = { run in
                var scenario = plant.scenario(run.seed, isPlanted: true)
                run.apply(to: &scenario.options)
                return scenario
            }
            var shrinker = RunShrinker(
                Run(seed: seed, profile: result.profile), breaking: first.invariant, of: scenario)
            shrinker.shrink(result)
            let left = scenario(shrinker.run).run()
            let (faults, injections) = (result.tally.faultsDrawn, result.injections.count)
            print(
                "\(plant.bug.rawValue) \(first.invariant.rawValue): of \(faults) faults and \(injections) injections "
                    + "\(shrinker.run.faults?.count ?? 0) and \(shrinker.run.injections?.count ?? 0) are left, in "
                    + "\(shrinker.tries) runs: \(shrinker.run.command)")
            return left.violations.first?.invariant == first.invariant
        }
        print("\(plant.bug.rawValue): not found")
        return false
    }
}
