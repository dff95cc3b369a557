// Disks of simulated clusters that are damaged.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Damaged disks", .computes)
struct DamageTests {
    @Test
    func `what was answered outlives damage, and each is said`() {
        var tally = Tally()
        for seed: UInt64 in 0..<150 {
            let run = Run(seed: seed, profile: .paxos, stress: .damaged)
            let result = run.scenario.run()
            #expect(result.violations.isEmpty, "\(run.command): \(result.violations.map(\.description))")
            tally += result.tally
        }
        // Some scenarios never have all disks whole; some damages change nothing, or come too late to be found.
        #expect(tally.damages > 150 && tally.damagesFound > 110)
    }

    @Test
    func `nothing else is drawn anew where disks are not damaged`() {
        for profile in Profile.allCases {
            var scenario = Scenario(seed: 3, profile: profile)
            let hash = scenario.run().traceHash
            scenario.options.faults.damageGap = .seconds(100_000)
            #expect(scenario.run().traceHash == hash)
        }
    }
}
