// Swarms of peers for `tracker simulate` and `tracker replay`.

import Primitives
import Simulator

/// One swarm of peers, as people name it.
struct SwarmRun: Sendable {
    let seed: UInt64

    var scenario: TransferScenario { TransferScenario(seed: seed) }
    /// Repeats it.
    var command: String { "tracker replay \(seed) --swarm" }

    /// What was broken, and how to see it again.
    func failure(_ result: TransferResult) -> String {
        var lines = result.violations.map {
            "seed \(seed), a swarm: \($0.invariant.rawValue) violated at "
                + "\(Figures.decimal(Double($0.time.nanoseconds) / 1e9, 3)) s: \($0.detail)"
        }
        lines.append("  options:         \(scenario.options.summary)")
        lines.append("  replay:          \(command)")
        return lines.joined(separator: "\n") + "\n"
    }
}

extension SimulationOptions {
    /// Runs the scenario of a seed.
    func outcome(seed: UInt64, takesCensus: Bool) -> SweepOutcome {
        swarm
            ? SweepOutcome(SwarmRun(seed: seed).scenario.run())
            : SweepOutcome(run(seed: seed).scenario.run(takesCensus: takesCensus))
    }

    /// Repeats the scenario of a seed.
    func command(seed: UInt64) -> String { swarm ? SwarmRun(seed: seed).command : run(seed: seed).command }

    /// What the scenario of a seed is like.
    func summary(seed: UInt64) -> String {
        swarm ? SwarmRun(seed: seed).scenario.options.summary : run(seed: seed).scenario.options.summary
    }
}
