// People at consoles: what they were told to be done is there, whatever happens to trackers meanwhile.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Consoles", .computes)
struct ConsoleTests {
    private func scenario(_ seed: UInt64, _ profile: Profile) -> Scenario {
        var scenario = Scenario(seed: seed, profile: profile)
        scenario.options.setStewards(1 + Int(seed % 3))
        return scenario
    }

    @Test(arguments: Profile.allCases, 0..<4)
    func `no seed breaks a promise while accounts and torrent files are changed`(_ profile: Profile, _ part: Int) {
        var tally = Tally()
        let each = max(8, Sweep.count / 100)
        for seed in UInt64(part * each)..<UInt64((part + 1) * each) {
            let result = scenario(seed, profile).run()
            tally += result.tally
            #expect(
                result.violations.isEmpty,
                "seed \(seed), \(profile), with people at consoles: \(result.violations.map(\.description))")
        }
        // A sweep in which nothing is done proves nothing.
        #expect(tally.changes > 15 * each)
        #expect(tally.filesShown > each / 2)
        #expect(tally.changesRefused > 0)
    }

    @Test func `one scenario of six has people at consoles, and the same seed the same`() {
        var count = 0
        for seed: UInt64 in 0..<600 {
            let options = Scenario(seed: seed, profile: .paxos).options
            if options.stewardCount > 0 {
                count += 1
                #expect(options.shardCount == 16)
            } else {
                #expect(options.shardCount <= 4)
            }
        }
        #expect((60...140).contains(count))
        let runs = (0..<2).map { _ in scenario(3, .paxos).run().traceHash }
        #expect(runs[0] == runs[1])
    }
}
