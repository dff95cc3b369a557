// Who becomes master when the master dies and nothing else happens, and how many elections that takes.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Elections", .computes)
struct ElectionTests {
    @Test(arguments: Profile.clusters)
    func `the policy's choice is elected, in one election`(_ profile: Profile) {
        var judged = 0
        for seed: UInt64 in 0..<150 {
            let run = Run(seed: seed, profile: profile, stress: .deaths)
            let result = run.scenario.run()
            judged += result.tally.electionsJudged
            #expect(result.violations.isEmpty, "\(run.command): \(result.violations.map(\.description))")
        }
        // Deaths in a cluster that was not calm are not judged.
        #expect(judged > 300)
    }

    // MARK: - The watch itself

    private func watch(_ election: ClusterConfiguration.ElectionPolicy) -> ElectionWatch {
        ElectionWatch(ClusterConfiguration(mode: .survivor, election: election))
    }

    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: 0) + .seconds(seconds) }

    private func candidates(_ ids: UInt32..., behind: UInt32? = nil) -> [ElectionWatch.Candidate] {
        ids.map { ElectionWatch.Candidate(id: $0, index: $0 == behind ? 1 : 100) }
    }

    @Test(arguments: [
        (ClusterConfiguration.ElectionPolicy.highest, UInt32(5)), (.lowest, 1), (.next, 4),
    ])
    func `each policy has its choice`(_ election: ClusterConfiguration.ElectionPolicy, _ choice: UInt32) {
        for id: UInt32 in [1, 2, 4, 5] {
            var watch = watch(election)
            watch.masterDied(3, candidates: candidates(1, 2, 4, 5), at: at(100))
            #expect(watch.stands(id, at: at(102)) == nil)
            #expect((watch.serves(id, at: at(102)) == nil) == (id == choice))
        }
    }

    @Test
    func `the turn wraps round, and passes over whoever is far behind`() {
        var watch = watch(.next)
        watch.masterDied(5, candidates: candidates(1, 2, 4), at: at(100))
        #expect(watch.serves(2, at: at(102)) != nil)
        watch = self.watch(.next)
        watch.masterDied(5, candidates: candidates(1, 2, 4, behind: 1), at: at(100))
        #expect(watch.serves(2, at: at(102)) == nil)
    }

    @Test
    func `a second candidate is one too many, and so is a long wait`() {
        var watch = watch(.highest)
        watch.masterDied(3, candidates: candidates(1, 2), at: at(100))
        #expect(watch.stands(2, at: at(102)) == nil)
        #expect(watch.stands(1, at: at(102)) != nil)
        watch = self.watch(.highest)
        watch.masterDied(3, candidates: candidates(1, 2), at: at(100))
        #expect(watch.pass(at(102)) == nil)
        #expect(watch.pass(at(104)) != nil)
    }

    @Test
    func `where there is other trouble, anybody may be elected`() {
        var watch = watch(.highest)
        watch.trouble(until: at(99))
        watch.masterDied(3, candidates: candidates(1, 2), at: at(100))
        #expect(watch.serves(1, at: at(102)) == nil)
        watch = self.watch(.highest)
        watch.masterDied(3, candidates: candidates(1, 2), at: at(100))
        watch.trouble(until: at(101))
        #expect(watch.serves(1, at: at(102)) == nil)
    }

    // MARK: - The budget

    /// At which master the budget is spent, of those at these places, one each 100 ms; nil where it is not.
    private func spent(by places: [Int], on bus: SimulatedBus) -> Int? {
        var budget = ElectionBudget(nil, trackers: 7, hasOneHistory: true, isNoisy: false)
        budget.fault(at: at(100), until: at(110))
        return places.indices.first {
            let time = at(101) + .milliseconds(Int64($0) * 100)
            return budget.serves(UInt32(places[$0] + 1), in: places[$0], on: bus, at: time) != nil
        }
    }

    @Test
    func `only rivals that do not hear each other may each have the role once more`() {
        var bus = SimulatedBus(count: 7, options: SimulatedBusOptions(), seed: 1)
        #expect(spent(by: [4, 5, 4, 5], on: bus) == 3)
        bus.block(from: 4, to: 5, until: at(110))
        #expect(spent(by: [4, 5, 4, 5], on: bus) == 3)
        bus.block(from: 5, to: 4, until: at(110))
        #expect(spent(by: [4, 5, 4, 5], on: bus) == nil)
        #expect(spent(by: [4, 5, 4, 5, 4], on: bus) == 4)
        #expect(spent(by: [4, 5, 4, 5, 6, 6], on: bus) == 5)
        #expect(spent(by: [0, 1, 0, 1], on: bus) == 3)
        #expect(spent(by: [4, 4, 4, 4], on: bus) == 3)
    }

    // MARK: - Small clusters

    @Test
    func `a cluster of one member forms and serves`() {
        for seed: UInt64 in 0..<40 {
            let run = Run(seed: seed, profile: .paxos, nodes: 1)
            let result = run.scenario.run()
            #expect(result.violations.isEmpty, "\(run.command): \(result.violations.map(\.description))")
            #expect(result.tally.masters > 0)
        }
    }
}
