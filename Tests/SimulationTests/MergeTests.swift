// The two sides of a partition, and what a merge has made of them.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Merges", .computes)
struct MergeTests {
    private static let profiles: [Profile] = [.classic, .rotating, .lowest]

    @Test(arguments: profiles)
    func `on partitioned ground both sides know something of everything, and nothing of it is lost`(
        _ profile: Profile
    ) {
        var tally = Tally()
        let count = max(40, Sweep.count / 100)
        for seed in 0..<UInt64(count) {
            let run = Run(seed: seed, profile: profile, stress: .partitions)
            let result = run.scenario.run()
            #expect(result.violations.isEmpty, "\(run.command): \(result.violations.map(\.description))")
            tally += result.tally
        }
        // A sweep in which sides differ in nothing proves nothing.
        #expect(tally.merges > count)
        #expect(tally.mergesJudged > tally.merges * 9 / 10)
        #expect(tally.mergesOfAccounts > count / 2)
        #expect(tally.mergesOfFiles > count / 2)
        #expect(tally.mergesOfPeers > count)
        #expect(tally.mergesOfRemovals > count / 4)
    }

    private static let once: [(Profile, UInt64, Stress)] = [
        (.rotating, 88, .partitions), (.classic, 225, .partitions), (.lowest, 45, .partitions),
        (.classic, 73, .rules), (.rotating, 184, .lossy),
    ]

    /// Each broke `mergeTakesTheLatest` (rule 12) once: a late chunk took the place of the one before it (88); a file
    /// was lost with an upload under way that a merge went on with, and that was taken for idle (225, 45); a file
    /// from files took the place of an upload that the merge had brought (73, 184).
    @Test(arguments: once)
    func `what was lost in a merge once is kept`(_ profile: Profile, _ seed: UInt64, _ stress: Stress) {
        let result = Run(seed: seed, profile: profile, stress: stress).scenario.run()
        #expect(result.violations.isEmpty, "\(result.violations.map(\.description))")
        #expect(result.tally.mergesJudged > 0)
    }
}
