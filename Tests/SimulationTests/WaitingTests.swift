// Whoever waits is answered, or told why not, also while something goes wrong.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Who waits", .computes)
struct WaitingTests {
    /// All disks are full for a while, and nothing else goes wrong.
    private func full(_ seed: UInt64, _ profile: Profile) -> Scenario {
        var scenario = calm(seed, profile)
        let all = Array(0..<scenario.options.nodeCount)
        scenario.options.script = [ScriptedEvent(at: .seconds(12), .fullDisks(all, .seconds(12)))]
        return scenario
    }

    /// Nothing goes wrong.
    private func calm(_ seed: UInt64, _ profile: Profile) -> Scenario {
        var scenario = Scenario(seed: seed, profile: profile)
        scenario.options.entry = .any
        scenario.options.faults = FaultOptions()
        (scenario.options.bus, scenario.options.disk) = (SimulatedBusOptions(), DiskOptions())
        (scenario.options.maxDrift, scenario.options.latecomerDelay) = (0, .zero)
        scenario.options.updatesPerEntry = 64
        return scenario
    }

    /// Before the empty entry was given up, nobody was: it can be stored by nobody, either.
    @Test(arguments: Profile.clusters)
    func `with all disks full, clients are told`(_ profile: Profile) {
        var told = 0
        for seed: UInt64 in 0..<12 {
            let result = full(seed, profile).run(takesCensus: true)
            #expect(result.violations.isEmpty, "seed \(seed): \(result.violations)")
            told += result.census?.count(.clientsRefused, "\(Refusal.notStored)") ?? 0
        }
        #expect(told > 12)
    }

    /// With the vote of all, a vote that is lost may hold all up for longer than clients wait.
    @Test(arguments: [.classic, .paxos] as [Profile])
    func `a master whose proposals get lost is seen before its clients give up`(_ profile: Profile) throws {
        var invariants: [Invariant] = []
        for seed: UInt64 in 0..<4 {
            var scenario = calm(seed, profile)
            scenario.sabotage = .losesProposals
            invariants.append(try #require(scenario.run().violations.first, "seed \(seed)").invariant)
        }
        // One may come to so few entries that it is met in the end only.
        #expect(invariants.count { $0 == .waitingAreAnswered } >= 3, "\(invariants)")
    }

    /// Of an entry that was refused, and decided empty, all who waited were told at once: more errors than an address
    /// may have in a second (rule 19).
    @Test
    func `who waited for an entry that was refused is told within the limit of errors`() {
        let run = Run(seed: 83, profile: .classic, stress: .refusals)
        #expect(run.scenario.options.errorsPerSecond == 1)
        let violations = run.scenario.run().violations
        #expect(violations.isEmpty, "\(violations)")
    }

    /// A second after which a longer interval was no longer told, a peer that had been told it was taken out in the
    /// last second of its time.
    @Test
    func `who was told the longer interval lives out its last second`() {
        let run = Run(seed: 23, profile: .paxos, stress: .disks)
        let violations = run.scenario.run().violations
        #expect(violations.isEmpty, "\(violations)")
    }
}
