/// Faults planted around the logic: each is found, by a checker that is there for it, within its budget of seeds.

import Simulator
import Testing

@Suite("Planted faults", .computes)
struct SabotageTests {
    struct Plant: Sendable, CustomTestStringConvertible {
        var sabotage: Sabotage
        /// The checkers that may find it first.
        var invariants: [Invariant]
        /// Seeds within which it must be found.
        var budget: UInt64

        init(_ sabotage: Sabotage, _ invariants: [Invariant], within budget: UInt64) {
            self.sabotage = sabotage
            self.invariants = invariants
            self.budget = budget
        }

        var testDescription: String { sabotage.rawValue }
    }

    static let plants = [
        Plant(.reportsBeforeDurable, [.appliedIsDurable, .silentUnlessMaster, .epochsRise], within: 2),
        Plant(.losesEntries, [.appliedIsDurable, .logHasNoGap], within: 4),
        Plant(.losesChunks, [.statesAgree, .recordIsReadable], within: 20),
        Plant(.stalesChunks, [.statesAgree, .recordIsReadable], within: 20),
        Plant(.saysFailedButWrites, [.logHasNoGap, .abortedStaysAborted, .epochsRise], within: 400),
        Plant(.saysWrittenButFails, [.appliedIsDurable, .logHasNoGap, .silentUnlessMaster, .epochsRise], within: 40),
        Plant(.keepsSwarmsOnStop, [.stopEmptiesSwarms], within: 10),
        Plant(.forgetsLastEntry, [.statesAgree, .timeNeverRunsBack], within: 10),
        Plant(.forgetsChunk, [.statesAgree, .recordIsReadable, .timeNeverRunsBack], within: 20),
        Plant(.forgetsPromise, [.epochsRise, .statesAgree, .answeredSurvives], within: 10),
        Plant(.repliesTwice, [.answeredOnce, .replyIsAddressed], within: 2),
        Plant(.swallowsReplies, [.answeredOnce, .replyIsAddressed], within: 2),
        Plant(.namesAnnouncer, [.replyIsRight], within: 4),
        Plant(.repeatsPeer, [.replyIsRight], within: 4),
        Plant(.dropsPeer, [.replyIsRight], within: 4),
        Plant(.miscountsSeeders, [.replyIsRight], within: 2),
        Plant(.miscountsScrapes, [.replyIsRight], within: 6),
        Plant(.promisesLongInterval, [.expiryIsPatient, .answeredSurvives], within: 40),
        Plant(.repliesToWrongClient, [.replyIsAddressed], within: 2),
        Plant(.repliesFromWrongAddress, [.replyIsAddressed], within: 2),
        Plant(.stampsBackwards, [.timeNeverRunsBack], within: 2),
        Plant(.forgetsCommands, [.rulesAreInForce], within: 2),
        Plant(.fallsSilentAfterFaults, [.healedIsAnswered], within: 2),
        Plant(.neverStops, [.stopEnds], within: 2),
    ]

    @Test(arguments: plants)
    func `each is found within its budget`(_ plant: Plant) throws {
        // From several starts, so that one lucky seed does not make a checker look good.
        for start: UInt64 in [0, 10_000, 20_000] {
            let found = try #require(
                first(plant.sabotage, from: start, budget: plant.budget),
                "\(plant.sabotage) from seed \(start) on is not found within \(plant.budget) seeds")
            #expect(plant.invariants.contains(found.invariant), "\(found)")
        }
    }

    @Test
    func `all that can be planted is`() {
        #expect(SabotageTests.plants.map(\.sabotage.rawValue).sorted() == Sabotage.allCases.map(\.rawValue).sorted())
    }

    private func first(_ sabotage: Sabotage, from start: UInt64, budget: UInt64) -> Violation? {
        for seed in start..<start + budget {
            var scenario = Scenario(seed: seed)
            scenario.sabotage = sabotage
            if let violation = scenario.run().violations.first { return violation }
        }
        return nil
    }
}
