// Where each planted mistake is looked for.

import Primitives
import Simulator
import TrackerLogic

/// A mistake, who is to find it, and in which scenarios it is looked for.
///
/// A mistake of quorum mode is looked for in clusters of quorum mode, one of the multicast group in groups, and so on;
/// apart from that, scenarios are as their seeds draw them.
struct Plant: Sendable {
    var bug: PlantedBug
    /// What it may break; other alarms count for nothing.
    var checkers: [Invariant]
    /// In turn, by seed.
    var profiles: [Profile]
    /// Seeds from each starting point, at most.
    var budget: Int
    /// What is changed in the scenarios.
    var adjust: @Sendable (inout ScenarioOptions) -> Void

    init(
        _ bug: PlantedBug, _ checkers: Invariant..., within budget: Int = 500, in profiles: [Profile] = [.paxos],
        on adjust: @escaping @Sendable (inout ScenarioOptions) -> Void = { _ in }
    ) {
        self.bug = bug
        self.checkers = checkers
        self.profiles = profiles
        self.budget = budget
        self.adjust = adjust
    }

    func scenario(_ seed: UInt64, isPlanted: Bool) -> Scenario {
        var scenario = Scenario(seed: seed, profile: profiles[Int(seed % UInt64(profiles.count))])
        adjust(&scenario.options)
        if isPlanted { scenario.options.plantedBug = bug }
        return scenario
    }

    static let survivors: [Profile] = [.classic, .rotating, .lowest]

    static func find(_ name: String) -> Plant? { all.first { $0.bug.rawValue == name } }

    // MARK: - Scenarios

    @Sendable
    private static func group(_ options: inout ScenarioOptions) { options.entry = .group }

    @Sendable
    private static func any(_ options: inout ScenarioOptions) { options.entry = .any }

    /// Each cluster is once in two, and more than once.
    @Sendable
    private static func partitions(_ options: inout ScenarioOptions) {
        options.faults.kinds = [.partition, .partition, .oneWayPartition]
        options.faults.meanGap = .seconds(10)
        options.stay = .seconds(8)
        (options.maxWallError, options.maxDrift) = (1000, 0)
    }

    /// Masters die with entries half way, one after another, and are soon back.
    @Sendable
    private static func crashes(_ options: inout ScenarioOptions) {
        (options.nodeCount, options.spareCount) = (3, 0)
        options.coreLength = .seconds(60)
        options.faults.maxOutages = 60
        options.faults.maxDown = 2
        options.faults.kinds = []
        options.faults.injectOneIn[Moment.halfWay.rawValue] = 30
        options.faults.injectOneIn[Moment.prepareSent.rawValue] = 8
        options.faults.injectOneIn[Moment.entryDurable.rawValue] = 30
        options.faults.injectOneIn[Moment.commitSent.rawValue] = 8
        options.bus.lossPerMille = 100
        options.updatesPerEntry = 8
        options.stay = .seconds(8)
    }

    /// All disks are full for a while, and nothing else goes wrong.
    @Sendable
    private static func fullDisks(_ options: inout ScenarioOptions) {
        options.entry = .any
        options.faults = FaultOptions()
        (options.bus, options.disk) = (SimulatedBusOptions(), DiskOptions())
        (options.maxDrift, options.latecomerDelay, options.updatesPerEntry) = (0, .zero, 64)
        let all = Array(0..<options.nodeCount)
        options.script = [ScriptedEvent(at: .seconds(12), .fullDisks(all, .seconds(12)))]
    }

    /// Messages of a group come late.
    @Sendable
    private static func lateGroup(_ options: inout ScenarioOptions) {
        group(&options)
        options.bus.stragglerPerMille = 200
        options.bus.maxStragglerDelay = .seconds(20)
        options.stay = .seconds(8)
    }

    /// One of two trackers is left alone, and dies as it decides.
    @Sendable
    private static func loneDeaths(_ options: inout ScenarioOptions) {
        (options.nodeCount, options.spareCount) = (2, 0)
        options.faults.kinds = [.crash]
        options.faults.meanGap = .seconds(5)
        options.faults.maxOutages = 40
        options.faults.maxDown = 2
        options.faults.injectOneIn[Moment.commitSent.rawValue] = 6
        options.interval = 60
        (options.maxWallError, options.maxDrift) = (1000, 0)
    }

    /// Of three trackers one has lost its memory and one lags behind what logs go back to, again and again.
    @Sendable
    private static func cutLogs(_ options: inout ScenarioOptions) {
        (options.nodeCount, options.spareCount) = (3, 0)
        options.tailCount = 1
        options.faults.kinds = [.crash, .clog, .busLoss, .partition]
        options.faults.meanGap = .seconds(3)
        options.faults.maxOutages = 40
        options.faults.maxDown = 2
        options.faults.damageGap = .seconds(3)
    }

    /// Masters die and are handed their role back, and what trackers say overtakes itself.
    @Sendable
    private static func overtakings(_ options: inout ScenarioOptions) {
        options.harden(.deaths)
        options.bus.isReordering = true
        options.bus.maxDelay = .milliseconds(50)
    }

    /// Trackers are stopped in good order or die, as many as like at one time.
    @Sendable
    private static func orderlyStops(_ options: inout ScenarioOptions) {
        (options.nodeCount, options.spareCount) = (3, 0)
        options.faults.kinds = [.cleanStop, .crash]
        options.faults.meanGap = .seconds(2)
        options.faults.maxOutages = 40
        options.faults.maxDown = 3
        options.keepsSwarms = false
    }

    /// Orderly stops where little is decided, and a disk takes its time over what a tracker writes when it comes back.
    @Sendable
    private static func slowReturns(_ options: inout ScenarioOptions) {
        orderlyStops(&options)
        options.faults.maxOutages = 80
        options.coreLength = .seconds(60)
        options.disk.maxDelay = .milliseconds(300)
        options.disk.stallPerMille = 300
        options.disk.maxStall = .seconds(2)
        // Whoever votes for an entry forgets its stop: few are asked for.
        (options.clientCount, options.interval, options.stay) = (3, 30, .seconds(60))
    }

    /// Trackers lose sight of each other for moments.
    @Sendable
    private static func lostSight(_ options: inout ScenarioOptions) {
        options.faults.kinds = [.partition, .oneWayPartition, .clog, .pause]
        options.faults.meanGap = .seconds(3)
        options.faults.maxOutages = 20
        options.bus.maxDelay = .milliseconds(300)
        options.interval = 60
        (options.maxWallError, options.maxDrift) = (1000, 0)
    }

    /// Disks refuse what they are to write.
    @Sendable
    private static func refusals(_ options: inout ScenarioOptions) { options.disk.failPerMille = 200 }

    /// The same, and votes come late, or twice.
    @Sendable
    private static func lateVotes(_ options: inout ScenarioOptions) {
        options.disk.failPerMille = 400
        options.bus.stragglerPerMille = 200
        options.bus.maxStragglerDelay = .seconds(1)
        options.bus.repeatPerMille = 200
        options.bus.isReordering = true
        options.stay = .seconds(8)
    }

    @Sendable
    private static func crashesAndRefusals(_ options: inout ScenarioOptions) {
        crashes(&options)
        refusals(&options)
    }

    /// Members come and go, by command.
    @Sendable
    private static func memberChanges(_ options: inout ScenarioOptions) {
        (options.nodeCount, options.spareCount) = (5, 2)
        options.faults.kinds = [.memberChange]
        options.faults.meanGap = .seconds(3)
    }

    /// Disks are damaged.
    @Sendable
    private static func damages(_ options: inout ScenarioOptions) { options.harden(.damaged) }

    /// Trackers lose their disks, and logs in memory are short.
    @Sendable
    private static func amnesia(_ options: inout ScenarioOptions) {
        options.faults.kinds += [.memoryLoss, .memoryLoss, .memoryLoss]
        options.faults.meanGap = .seconds(4)
        options.faults.maxOutages = 14
        options.tailCount = 4
    }

    /// The same, and transfers take their time.
    @Sendable
    private static func slowAmnesia(_ options: inout ScenarioOptions) {
        amnesia(&options)
        options.tailCount = 20
        options.shardCount = 4
        options.bus.maxDelay = .milliseconds(300)
        options.bus.lossPerMille = 100
        options.stay = .seconds(5)
        options.updatesPerEntry = 4
    }

    /// Snapshots all the time, on disks that fail.
    @Sendable
    private static func snapshots(_ options: inout ScenarioOptions) {
        options.snapshotAge = .seconds(1)
        options.snapshotLogByteCount = 300
        options.disk.failPerMille = 100
        options.faults.maxOutages = 20
        options.faults.injectOneIn[Moment.snapshotUnderWay.rawValue] = 6
        options.faults.injectOneIn[Moment.trimSubmitted.rawValue] = 6
    }

    /// Somebody asks for counts all the time, and masters do not notice that they are deposed.
    @Sendable
    private static func scrapes(_ options: inout ScenarioOptions) {
        (options.nodeCount, options.spareCount, options.scraperCount) = (5, 0, 8)
        options.stay = .seconds(5)
        options.faults.kinds = [.pause, .oneWayPartition, .deafLinks, .partition, .slowPair]
        options.faults.meanGap = .seconds(3)
        options.faults.hasPausesAtMoments = true
    }

    /// Few requests may wait, and there is often no master.
    @Sendable
    private static func crowds(_ options: inout ScenarioOptions) {
        options.waitingRequests = options.clientCount + options.scraperCount + options.strangerCount
        (options.clientWait, options.clientRetransmissions) = (.seconds(2), 2)
        options.faults.kinds = [.partition, .deafLinks, .crash]
        options.faults.meanGap = .seconds(4)
    }

    /// People ask over HTTP, and too many voters are deaf to their master, but too few to elect another.
    @Sendable
    private static func deafLinks(_ options: inout ScenarioOptions) {
        (options.nodeCount, options.spareCount, options.visitorCount) = (4, 0, 8)
        options.coreLength = .seconds(60)
        options.faults.kinds = [.deafLinks]
        options.faults.meanGap = .seconds(2)
        options.faults.maxOutages = 60
    }

    // MARK: - The table

    static let all: [Plant] =
        [
            Plant(.epochShared, .oneMasterPerEpoch),
            Plant(.epochFromMemory, .oneMasterPerEpoch, .promiseIsKept, on: crashes),
            Plant(.quorumOfTheLive, .quorumDecides),
            Plant(
                .electedByMinority, .leadersArePromised, .decidedIsForEver, .voteIsKept, .quorumDecides, .readsAreFresh,
                on: crashes),
            Plant(.ownEntryInherited, .decidedIsForEver, within: 3000, on: crashes),
            Plant(.longestEntryInherited, .decidedIsForEver, within: 3000, on: crashes),
            Plant(.inheritedNotProposed, .healedIsAnswered, .decidedIsForEver),
            Plant(.recoverySkipped, .healedIsAnswered, .decidedIsForEver, .readsAreFresh, within: 5000),
            Plant(.answerWithoutPending, .voteIsKept),
            Plant(.staleMasterAccepted, .promiseIsKept),
            Plant(.prepareAfterPromise, .promiseIsKept),
            Plant(.promiseForgotten, .oneMasterPerEpoch, .promiseIsKept),
            Plant(.amnesiacVotes, .votersHoldFullState, on: amnesia),
            Plant(.markIgnored, .damageIsSaid, on: damages),
            Plant(.damagedVotes, .votersHoldFullState, on: damages),
            Plant(.answerBeforeDurable, .promiseIsKept),
            Plant(.electionBeforeDurable, .promiseIsKept),
            Plant(.noPreVote, .electionsAreNeeded),
            Plant(.preferredStandsAtOnce, .electionsAreNeeded),
            Plant(.rankOfSuspecters, .preferredIsElected, in: Profile.clusters) { $0.harden(.deaths) },
            Plant(.cutLogWaitedFor, .healedIsAnswered, .healedIsOne, .requestsAreKept, within: 3000, on: cutLogs),
            Plant(.candidateOutbid, .electionsAreFew, within: 2000, on: overtakings),
            Plant(.minorityStays, .silentUnlessServing),

            Plant(.oksOfAnotherEpoch, .quorumDecides, on: lateVotes),
            Plant(.commitBeforeQuorum, .quorumDecides),
            Plant(.commitSentEarly, .decidedIsDecided),
            Plant(.ownVoteBeforeDurable, .quorumDecides),
            Plant(.appliedOnPrepare, .quorumDecides),
            Plant(.learnedByIndex, .quorumDecides, .decidedIsForEver, on: crashes),
            Plant(.gapAccepted, .voteIsKept),
            Plant(.okBeforeDurable, .voteIsKept),
            Plant(.okBeforePromise, .promiseIsKept, on: crashesAndRefusals),
            Plant(.abortOnTimeout, .refusalIsJustified, on: any),
            Plant(.abortToldEarly, .refusalIsJustified, on: refusals),
            Plant(.abortedRevived, .abortedStaysAborted, on: refusals),
            Plant(.attemptIgnored, .quorumDecides, .voteIsKept, .abortedStaysAborted, within: 5000, on: refusals),
            Plant(.inheritedGivenUp, .voteIsKept, .decidedIsForEver, within: 3000, on: crashesAndRefusals),
            Plant(.emptyEntryKept, .waitingAreAnswered, within: 50, in: Profile.clusters, on: fullDisks),
            Plant(.voteSaidOnce, .waitingAreAnswered, .healedIsAnswered, .healedIsOne),
            Plant(.proposalSentOnce, .waitingAreAnswered, .healedIsAnswered),
            Plant(.gapsNotFetched, .healedIsAnswered, .healedIsOne),
            Plant(.unequalTime, .statesAgree),
            Plant(.wallClockStamps, .timeNeverRunsBack),
            Plant(.localExpiry, .statesAgree),
            Plant(.impatientExpiry, .expiryIsPatient),
            Plant(.intervalOfOne, .replyIsRight),

            Plant(.membersSwapped, .votersAreChosen, on: memberChanges),
            Plant(.membersBySight, .votersAreChosen),

            Plant(.writtenBeforeStart, .recordIsNotRewritten, on: any),
            Plant(.wholeTooEarly, .votersHoldFullState, on: amnesia),
            Plant(.transferWithoutTail, .statesAgree, on: amnesia),
            Plant(.transferMixed, .statesAgree, on: amnesia),
            Plant(.chunkAppliedTwice, .statesAgree, within: 2000, on: slowAmnesia),
            Plant(.snapshotAheadOfLog, .logHasNoGap, .statesAgree, on: snapshots),
            Plant(.newcomerBlocksTrimming, .queuesAreBounded, on: amnesia),

            Plant(.twoRepliers, .silentUnlessServing, on: group),
            Plant(.twoConnectors, .silentUnlessServing, on: group),
            Plant(.settledForgotten, .updateIsAsked, .answeredOnce, on: group),
            Plant(.settledByTimeOnly, .updateIsAsked, .answeredOnce, within: 3000, on: lateGroup),
            Plant(.scrapeUnconfirmed, .readsAreConfirmed, .readsAreFresh, within: 2000, on: scrapes),
            Plant(.confirmedByOne, .readsAreConfirmed, .readsAreFresh, within: 2000, on: scrapes),
            Plant(.leaseByHearing, .readsAreConfirmed, .readsAreFresh, within: 2000, on: scrapes),
            Plant(.slaveScrapes, .readsAreConfirmed, .readsAreFresh, on: any),
            Plant(.deposedAnswers, .silentUnlessServing),
            Plant(.fencedAnswers, .silentUnlessServing, on: any),
            Plant(.redeliveredTwice, .updateIsAsked, on: any),
            Plant(.forwardedTooEarly, .updateIsAsked, on: any),
            Plant(.completedCountedTwice, .statesAgree, .completedCountsOnce),
            Plant(.connectionIDOfOne, .connectionIDsLast, on: group),
            Plant(.requestsDropped, .requestsAreKept, on: any),
            Plant(.staleReadsKept, .requestsAreKept, on: deafLinks),
            Plant(.unboundedBook, .queuesAreBounded, on: crowds),

            Plant(.emptiedByOne, .onlyStopsEmptySwarms, within: 2000, on: orderlyStops),
            Plant(.stopNoteKept, .onlyStopsEmptySwarms, within: 5000, on: orderlyStops),
            Plant(.recallOutlivesWelcome, .onlyStopsEmptySwarms, within: 20_000, on: slowReturns),

            Plant(.voteForgotten, .answeredSurvives, within: 20_000, in: survivors, on: lostSight),
            Plant(.loneDecisionForgotten, .answeredSurvives, within: 30_000, in: survivors, on: loneDeaths),
            Plant(.idGivenTwice, .healedIsOne, in: survivors),
            Plant(.mergeForgetsPeers, .answeredSurvives, .mergeTakesTheLatest, in: survivors, on: partitions),
            Plant(.mergeKeepsOlder, .mergeTakesTheLatest, in: survivors, on: partitions),
            Plant(.tombstoneIgnored, .mergeTakesTheLatest, in: survivors, on: partitions),
            Plant(.mergeSumsCounters, .mergeTakesTheLatest, in: survivors, on: partitions),
            Plant(.lowerMasterStays, .healedIsOne, in: survivors, on: partitions),
        ] + Plant.ofConsole
}
