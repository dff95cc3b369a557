// Random worlds under random faults, in all profiles: none may break a promise, and each comes back from its
// seed.

import Foundation
import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Sweeps of clusters", .computes)
struct SweepTests {
    /// Scenarios of each profile: more than a thousand, or as many as `SWARMKEEPER_SCENARIOS` says.
    static var count: Int { Sweep.count * 3 / 8 }

    @Test(arguments: Profile.allCases, 0..<Sweep.parts)
    func `no seed breaks a promise`(_ profile: Profile, _ part: Int) {
        let each = (SweepTests.count + Sweep.parts - 1) / Sweep.parts
        for seed in UInt64(part * each)..<UInt64((part + 1) * each) {
            let scenario = Scenario(seed: seed, profile: profile)
            let result = scenario.run()
            #expect(
                result.violations.isEmpty,
                "tracker replay \(seed) --profile \(profile.rawValue): \(result.violations.map(\.description))")
            // Some run again: in the middle of a sweep as alone.
            if seed % 50 == 0 { #expect(scenario.run().traceHash == result.traceHash) }
        }
    }

    /// Where seeds do not come: what broke here once were mistakes that a sweep of 200,000 had not met.
    @Test(arguments: Profile.allCases, Stress.allCases)
    func `no promise is broken under more stress`(_ profile: Profile, _ stress: Stress) {
        // A scenario of hours costs as much as many others.
        for seed in 0..<UInt64(SweepTests.count / (stress == .hours ? 125 : 25)) {
            let run = Run(seed: seed, profile: profile, stress: stress)
            let result = run.scenario.run()
            #expect(result.violations.isEmpty, "\(run.command): \(result.violations.map(\.description))")
        }
    }

    /// Each with the rule: mistakes of the logic (the first fourteen), and of checkers, which knew too little of what
    /// was under way.
    ///
    /// A later change of the logic may make another run of a seed: then it proves no more than any other.
    @Test(
        arguments: [
            (210_228, .classic, .groups, .healedIsAnswered), (3_000_062, .rotating, .silence, .answeredSurvives),
            (5_001_339, .classic, .refusals, .healedIsAnswered), (5_001_368, .paxos, .groups, .healedIsAnswered),
            (5_001_281, .rotating, .silence, .answeredSurvives),
            (5_000_154, .rotating, .conjunctions, .talkIsBounded),
            (5_001_148, .rotating, .duplicates, .answeredSurvives), (6_001_382, .lowest, .stops, .answeredSurvives),
            (6_001_426, .paxos, .members, .electionsAreFew), (7_000_781, .classic, .refusals, .waitingAreAnswered),
            (8_000_366, .rotating, .stops, .mergeTakesTheLatest), (8_000_545, .lowest, .partitions, .healedIsOne),
            (8_100_698, .paxos, .disks, .abortedStaysAborted), (8_200_445, .paxos, .misconfigured, .votersAreChosen),
            (6_000_695, .classic, .refusals, .quorumDecides),
            (6_001_701, .classic, .conjunctions, .numbersHaveReasons),
            (1348, .classic, .slips, .replyIsRight),
            (7_000_967, .paxos, .slips, .waitingAreAnswered),
            (7_000_916, .rotating, .conjunctions, .mergeTakesTheLatest),
            (7_000_812, .lowest, .stops, .answeredSurvives), (7_000_978, .lowest, .stops, .answeredSurvives),
            (5_000_012, .classic, .laggards, .preferredIsElected),
            (5_000_016, .lowest, .damaged, .stopEmptiesSwarms), (5_001_641, .lowest, .groups, .numbersHaveReasons),
            (5_001_869, .classic, .conjunctions, .talkIsBounded),
            (8_100_271, .lowest, .damaged, .numbersHaveReasons),
            (5_000_863, .classic, .scrapes, .mergeTakesTheLatest),
            (5_001_147, .lowest, .refusals, .mergeTakesTheLatest),
            (5_000_513, .rotating, .scrapes, .readsAreConfirmed),
            (5_000_087, .paxos, .damaged, .waitingAreAnswered), (5_000_505, .paxos, .groups, .peopleAreTold),
            (5_001_575, .rotating, .amnesia, .survivorsHaveAll), (5_000_445, .rotating, .crowds, .survivorsHaveAll),
            (3_000_019, .classic, .laggards, .preferredIsElected), (3_000_024, .classic, .laggards, .candidatesEndSoon),
            (3_000_058, .classic, .laggards, .candidatesEndSoon), (3_000_037, .lowest, .laggards, .candidatesEndSoon),
            (3_000_000, .paxos, .laggards, .preferredIsElected), (3_000_114, .paxos, .laggards, .preferredIsElected),
            (5_000_021, .rotating, .refusals, .requestsAreKept), (5_000_053, .rotating, .refusals, .healedIsAnswered),
            (8_100_315, .rotating, .stops, .peopleAreTold), (8_100_335, .classic, .conjunctions, .mergeTakesTheLatest),
            (8_000_648, .paxos, .damaged, .electionsAreFew), (8_001_291, .paxos, .partitions, .electionsAreNeeded),
            (8_200_023, .classic, .laggards, .preferredIsElected), (8_300_154, .lowest, .laggards, .preferredIsElected),
        ] as [(UInt64, Profile, Stress, Invariant)])
    func `seeds that broke a promise once keep it`(
        _ seed: UInt64, _ profile: Profile, _ stress: Stress, _ rule: Invariant
    ) {
        let run = Run(seed: seed, profile: profile, stress: stress)
        let violations = run.scenario.run().violations
        #expect(violations.isEmpty, "\(run.command), \(rule): \(violations.map(\.description))")
    }

    /// In other processes, in debug and in optimised builds, a seed means the same.
    ///
    /// A change of the logic or of the simulator changes these hashes: look at why, then run with REWRITE=1.
    @Test
    func `seeds mean what they meant when their hashes were written down`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "golden-hashes.txt")
        var lines: [String] = []
        for profile in Profile.allCases {
            for seed: UInt64 in [1, 2, 3, 1_000_000] {
                let hash = Scenario(seed: seed, profile: profile).run().traceHash
                lines.append("\(profile.rawValue) \(seed) \(String(hash, radix: 16))")
            }
        }
        if Sweep.isRewriting {
            try (lines.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
        }
        let kept = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        #expect(lines == kept)
    }

    /// A sweep that does not reach the bad moments proves nothing.
    @Test(arguments: Profile.clusters)
    func `scenarios reach what they are for`(_ profile: Profile) {
        var tally = Tally()
        for seed: UInt64 in 0..<80 { tally += Scenario(seed: seed, profile: profile).run().tally }
        #expect(tally.deaths > 100)
        #expect(tally.masters > 100)
        #expect(tally.stepDowns > 20)
        #expect(tally.aborts > 0)
        #expect(tally.transfers > 5)
        #expect(tally.writesFailed > 50)
        #expect(tally.answers > 2000)
        #expect(tally.chunksSaved > 200)
        if profile == .paxos {
            #expect(tally.memberChanges > 20)
        } else {
            #expect(tally.merges > 5)
        }
    }
}
