// Faults planted around the logic: each is found, by a checker that is there for it, within its budget of seeds, in
// all profiles that promise what it breaks.

import Simulator
import Testing

@Suite("Planted faults", .computes)
struct SabotageTests {
    struct Plant: Sendable, CustomTestStringConvertible {
        var sabotage: Sabotage
        /// The checkers that may find it first.
        var invariants: [Invariant]
        var profiles: [Profile]
        /// Seeds within which it must be found.
        var budget: UInt64

        init(
            _ sabotage: Sabotage, _ invariants: [Invariant], in profiles: [Profile] = Profile.allCases,
            within budget: UInt64
        ) {
            self.sabotage = sabotage
            self.invariants = invariants
            self.profiles = profiles
            self.budget = budget
        }

        var testDescription: String { sabotage.rawValue }
    }

    /// Where there is one history, so that it is known what the swarms are.
    private static let exact: [Profile] = [.paxos, .alone]

    static let plants = [
        Plant(
            .reportsBeforeDurable, [.promiseIsKept, .quorumDecides, .appliedIsDurable, .oneMasterPerEpoch], within: 4),
        Plant(.losesEntries, [.recordIsReadable, .logHasNoGap, .appliedIsDurable], within: 4),
        Plant(.losesChunks, [.statesAgree, .recordIsReadable], within: 20),
        Plant(.stalesChunks, [.recordIsReadable, .statesAgree], within: 20),
        Plant(
            .saysFailedButWrites,
            [.voteIsKept, .abortedStaysAborted, .logHasNoGap, .decidedIsForEver, .recordIsNotRewritten], in: exact,
            within: 400),
        Plant(
            .saysWrittenButFails,
            [.quorumDecides, .promiseIsKept, .logHasNoGap, .voteIsKept, .appliedIsDurable], within: 60),
        Plant(
            .keepsSwarmsOnStop, [.recordIsReadable, .logHasNoGap, .statesAgree, .stopEmptiesSwarms], within: 60),
        Plant(
            .forgetsLastEntry, [.voteIsKept, .statesAgree, .recordIsNotRewritten, .logHasNoGap], in: exact, within: 20),
        Plant(.forgetsChunk, [.statesAgree, .recordIsReadable, .decidedIsForEver], within: 40),
        Plant(.forgetsPromise, [.promiseIsKept], within: 20),
        Plant(.repliesTwice, [.answeredOnce], within: 2),
        Plant(.swallowsReplies, [.requestsAreKept, .healedIsAnswered, .answeredOnce], within: 6),
        Plant(.namesAnnouncer, [.replyIsRight], within: 4),
        Plant(.repeatsPeer, [.replyIsRight], within: 4),
        Plant(.dropsPeer, [.replyIsRight], in: exact, within: 4),
        Plant(.miscountsSeeders, [.replyIsRight], in: exact, within: 2),
        Plant(.miscountsScrapes, [.replyIsRight], within: 20),
        Plant(.promisesLongInterval, [.replyIsRight, .answeredSurvives, .expiryIsPatient], within: 40),
        Plant(.repliesToWrongClient, [.replyIsAddressed], within: 2),
        Plant(.repliesFromWrongAddress, [.replyIsAddressed], within: 2),
        Plant(.refusesWithoutReason, [.refusalIsJustified], in: exact, within: 4),
        Plant(.refusesGoodIDs, [.connectionIDsLast, .healedIsAnswered, .peopleAreTold], within: 4),
        Plant(.answersTwice, [.answeredOnce], within: 4),
        Plant(
            .swallowsAnswers, [.requestsAreKept, .answeredOnce, .waitingAreAnswered, .healedIsAnswered], within: 10),
        Plant(.miscountsAnswers, [.replyIsRight], within: 10),
        Plant(.namesStrangers, [.replyIsRight], within: 10),
        Plant(.sendsVisitorsAway, [.refusalIsJustified], in: exact, within: 4),
        Plant(.stampsBackwards, [.timeNeverRunsBack], within: 2),
        // The same proposal with another time is another value.
        Plant(.stampsAhead, [.timeIsReal, .ballotHasOneValue], within: 4),
        Plant(
            .losesProposals,
            [
                .waitingAreAnswered, .requestsAreKept, .healedIsAnswered, .healedIsOne, .survivorsHaveAll,
                .quorumDecides,
            ],
            in: Profile.clusters, within: 4),
        Plant(.forgetsCommands, [.rulesAreInForce], in: [.alone], within: 40),
        Plant(.fallsSilentAfterFaults, [.healedIsAnswered], within: 2),
        Plant(.neverStops, [.stopEnds], in: [.alone], within: 2),
    ]

    @Test(arguments: plants)
    func `each is found within its budget`(_ plant: Plant) throws {
        // From several starts, so that one lucky seed does not make a checker look good.
        for profile in plant.profiles {
            for start: UInt64 in [0, 10_000, 20_000] {
                let found = try #require(
                    first(plant, profile, from: start),
                    "\(plant.sabotage), \(profile), from seed \(start) on: not found in \(plant.budget) seeds")
                #expect(plant.invariants.contains(found.invariant), "\(profile): \(found)")
            }
        }
    }

    @Test
    func `all that can be planted is`() {
        #expect(SabotageTests.plants.map(\.sabotage.rawValue).sorted() == Sabotage.allCases.map(\.rawValue).sorted())
    }

    private func first(_ plant: Plant, _ profile: Profile, from start: UInt64) -> Violation? {
        for seed in start..<start + plant.budget {
            var scenario = Scenario(seed: seed, profile: profile)
            // What is about them has to be met.
            scenario.options.visitorCount = max(2, scenario.options.visitorCount)
            scenario.sabotage = plant.sabotage
            if let violation = scenario.run().violations.first { return violation }
        }
        return nil
    }
}
