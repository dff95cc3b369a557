/// Where each planted mistake is looked for.
///
/// A mistake of quorum mode is looked for in clusters of quorum mode, one of the multicast group in groups, and so on;
/// apart from that, scenarios are as their seeds draw them.

import Primitives
import Simulator
import TrackerLogic

/// A mistake and its hunting ground.
struct Plant: Sendable {
    var bug: PlantedBug
    /// In turn, by seed.
    var profiles: [ClusterProfile]
    /// Seeds from each starting point, at most.
    var budget: Int
    /// What is changed in the scenarios.
    var adjust: @Sendable (inout ClusterOptions) -> Void

    init(
        _ bug: PlantedBug, _ profiles: [ClusterProfile] = [.paxos], within budget: Int = 500,
        on adjust: @escaping @Sendable (inout ClusterOptions) -> Void = { _ in }
    ) {
        self.bug = bug
        self.profiles = profiles
        self.budget = budget
        self.adjust = adjust
    }

    func scenario(_ seed: UInt64, isPlanted: Bool) -> ClusterScenario {
        var scenario = ClusterScenario(seed: seed, profile: profiles[Int(seed % UInt64(profiles.count))])
        adjust(&scenario.options)
        if isPlanted { scenario.options.plantedBug = bug }
        return scenario
    }

    static let survivors: [ClusterProfile] = [.classic, .rotating, .lowest]

    static func find(_ name: String) -> Plant? { all.first { $0.bug.rawValue == name } }

    // MARK: - Grounds

    @Sendable
    private static func group(_ options: inout ClusterOptions) { options.entry = .group }

    @Sendable
    private static func any(_ options: inout ClusterOptions) { options.entry = .any }

    /// Each cluster is once in two, and more than once.
    @Sendable
    private static func partitions(_ options: inout ClusterOptions) {
        options.faults.kinds = [.partition, .partition, .oneWayPartition]
        options.faults.meanGap = .seconds(10)
    }

    /// Disks refuse what they are to write.
    @Sendable
    private static func refusals(_ options: inout ClusterOptions) { options.disk.failPerMille = 200 }

    /// Members come and go, by command.
    @Sendable
    private static func memberChanges(_ options: inout ClusterOptions) {
        options.nodeCount = 5
        options.spareCount = 2
        options.faults.kinds.append(.memberChange)
        options.faults.kinds.append(.memberChange)
        options.faults.meanGap = .seconds(3)
    }

    /// Trackers lose their disks, and logs in memory are short.
    @Sendable
    private static func amnesia(_ options: inout ClusterOptions) {
        options.faults.kinds += [.memoryLoss, .memoryLoss, .memoryLoss]
        options.faults.meanGap = .seconds(4)
        options.faults.maxBlows = 14
        options.tailCount = 4
    }

    /// Somebody asks for counts all the time.
    @Sendable
    private static func scrapes(_ options: inout ClusterOptions) {
        options.scraperCount = 4
        options.stay = .seconds(5)
        options.faults.kinds += [.pause, .oneWayPartition, .deafLinks, .partition]
        options.faults.meanGap = .seconds(4)
    }

    // MARK: - The table

    static let all: [Plant] = [
        Plant(.epochShared),
        Plant(.epochFromMemory),
        Plant(.quorumOfTheLive),
        Plant(.electedByMinority),
        Plant(.ownEntryInherited),
        Plant(.longestEntryInherited),
        Plant(.inheritedNotProposed),
        Plant(.recoverySkipped),
        Plant(.answerWithoutPending),
        Plant(.staleMasterAccepted),
        Plant(.prepareAfterPromise),
        Plant(.promiseForgotten),
        Plant(.amnesiacVotes, on: amnesia),
        Plant(.answerBeforeDurable),
        Plant(.electionBeforeDurable),
        Plant(.noPreVote),
        Plant(.preferredStandsAtOnce),
        Plant(.minorityStays),

        Plant(.oksOfAnotherEpoch),
        Plant(.commitBeforeQuorum),
        Plant(.commitSentEarly),
        Plant(.ownVoteBeforeDurable),
        Plant(.appliedOnPrepare),
        Plant(.learnedByIndex),
        Plant(.gapAccepted),
        Plant(.okBeforeDurable),
        Plant(.okBeforePromise),
        Plant(.abortOnTimeout, on: any),
        Plant(.abortToldEarly, on: refusals),
        Plant(.abortedRevived, on: refusals),
        Plant(.attemptIgnored, on: refusals),
        Plant(.inheritedGivenUp, on: refusals),
        Plant(.voteSaidOnce),
        Plant(.proposalSentOnce),
        Plant(.gapsNotFetched),
        Plant(.unequalTime),
        Plant(.wallClockStamps),
        Plant(.localExpiry),
        Plant(.impatientExpiry),

        Plant(.membersSwapped, on: memberChanges),
        Plant(.membersBySight),

        Plant(.wholeTooEarly, on: amnesia),
        Plant(.transferWithoutTail, on: amnesia),
        Plant(.transferMixed, on: amnesia),
        Plant(.chunkAppliedTwice, on: amnesia),
        Plant(.snapshotAheadOfLog),
        Plant(.newcomerBlocksTrimming, on: amnesia),

        Plant(.twoRepliers, on: group),
        Plant(.twoConnectors, on: group),
        Plant(.settledForgotten, on: group),
        Plant(.scrapeUnconfirmed, on: scrapes),
        Plant(.staleConfirmation, on: scrapes),
        Plant(.leaseByHearing, on: scrapes),
        Plant(.slaveScrapes, on: any),
        Plant(.deposedAnswers),
        Plant(.fencedAnswers, on: any),
        Plant(.redeliveredTwice, on: any),
        Plant(.forwardedTooEarly, on: any),
        Plant(.completedCountedTwice),
        Plant(.connectionIDOfOne, on: group),
        Plant(.requestsDropped),
        Plant(.unboundedBook),

        Plant(.idGivenTwice, survivors),
        Plant(.mergeForgetsPeers, survivors, on: partitions),
        Plant(.mergeKeepsOlder, survivors, on: partitions),
        Plant(.tombstoneIgnored, survivors, on: partitions),
        Plant(.mergeSumsCounters, survivors, on: partitions),
        Plant(.lowerMasterStays, survivors, on: partitions),
    ]
}
