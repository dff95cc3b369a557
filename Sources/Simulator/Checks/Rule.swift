// The rules by which the cluster is right, by number.

import PeerLogic
import TrackerLogic

/// The rules by which the cluster is right, by number: docs/rules.md says why each is there and in which files it is
/// kept.
///
/// Code and documents name a rule by its number, so that it can be searched for.
///
/// Each rule has invariants, which the checkers hold every run to, and planted mistakes that break it, so that it is
/// known that they would see it. `RuleTests` holds this list, the document and the sources to each other.
public enum Rule: Int, Sendable, Hashable, CaseIterable {
    /// The failure detector helps liveness only. Safety comes from epochs and quorums alone.
    case detectorDecidesNothing = 1
    /// A time-out is no abort: what has been proposed stays until it is decided, or everybody has refused it.
    case timeoutIsNoAbort = 2
    /// A client is answered once its entry is decided and applied, by a tracker that may still speak.
    case deposedIsSilent = 3
    /// Time is data: the master stamps entries, time in the log never runs backwards, and all apply it alike.
    case timeIsData = 4
    /// A read is answered only after a quorum has confirmed its master, after the read came.
    case readsAreConfirmed = 5
    /// Whom the policy prefers is elected, or is handed the role when it is in step; nobody is torn down for it.
    case roleIsHandedOver = 6
    /// A master without a quorum steps down, and a tracker that is merely deaf brings nobody down.
    case quorumKeepsMaster = 7
    /// A tracker without its bus answers nobody, whatever else still reaches it.
    case fencedWithoutBus = 8
    /// Promises and votes are on the disk before anything depends on them; whoever has lost them has no vote.
    case durableBeforeSaid = 9
    /// Two lives never act under one id at a time.
    case oneLifePerID = 10
    /// Each request is in the log once, and each download counts once.
    case requestsCountOnce = 11
    /// After a partition the newer word on a peer, an account or a torrent file wins, its end outlives it, and counts
    /// are kept by their source.
    case mergeIsByAge = 12
    /// An entry is decided when a quorum has it on disk under one ballot, with all before it; what is decided is for
    /// ever.
    case quorumDecides = 13
    /// A new master first decides what an earlier one may have decided.
    case electedRecovers = 14
    /// What was refused never comes back.
    case abortIsFinal = 15
    /// Voters change one at a time, at the operator's word.
    case votersChangeByOne = 16
    /// A state that is fetched is one state: all chunks, and the log behind the oldest of them.
    case transferIsComplete = 17
    /// A request is kept by whoever heard it until it is answered, whoever is master then, and is answered by one.
    case requestsAreKept = 18
    /// Everything that others can make a tracker hold has a bound (docs/bounds.md.
    case queuesAreBounded = 19
    /// Damage of a record is noticed, said, and has no vote.
    case damageIsSaid = 20
    /// A peer is not taken out before the interval that it was told, and a fifth of it.
    case expiryIsPatient = 21
    /// Swarms are emptied by the orderly stop of the whole cluster, and by nothing else.
    case stopEmptiesSwarms = 22
    /// When all is well again there is one master, one state, and an answer for everybody, soon.
    case healsByItself = 23
    /// A reply says what BEP 15 and the swarm demand, to whoever asked, from where it was asked.
    case repliesAreRight = 24
    /// What people keep at the console is decided as they were told, follows what they knew, and is whole or not there.
    case consoleIsKept = 25

    // Of peers.

    /// Only bytes that are verified go to the disk, and only what is on the disk is told of and given.
    case onlyVerifiedCounts = 26
    /// A block is asked of one peer, and of a second one in the endgame only; what is here is not asked for; of pieces
    /// that nobody was asked for the rarest comes first.
    case blocksAreAskedOnce = 27
    /// Every leecher finishes while every piece, and the metadata where it began with a magnet link, stays at some peer
    /// that it can reach.
    case leechersFinish = 28
    /// No more peers are given blocks at once than there are slots, and each has its turn.
    case slotsAreShared = 29
    /// Memory, queues, rates and the ratio of a peer have bounds.
    case transfersAreBounded = 30
    /// Peers and trackers that fail are left alone for longer each time.
    case silentAreSpared = 31
    /// Whoever has sent corrupt bytes is found and banned, and nobody else.
    case onlyTheGuiltyAreBanned = 32
    /// What is said keeps the order and the extensions that both sides have; each request has one answer; what is
    /// closed is over.
    case messagesAreInOrder = 33
    /// Peers of a private torrent come from its trackers alone (BEP 27).
    case privateStaysPrivate = 34

    // Of trackers again.

    /// Who was told other settings does not act as one with the others, and what a tracker tells of itself and of
    /// others is so.
    case othersAreKnown = 35
}

extension Rule {
    /// What the checkers look at; an invariant may serve several rules.
    public var invariants: [Invariant] {
        switch self {
        case .detectorDecidesNothing: [.oneMasterPerEpoch, .leadersArePromised]
        case .timeoutIsNoAbort: [.abortedStaysAborted]
        case .deposedIsSilent: [.silentUnlessServing]
        case .timeIsData: [.timeNeverRunsBack, .timeIsReal, .statesAgree]
        case .readsAreConfirmed: [.readsAreConfirmed, .readsAreFresh]
        case .roleIsHandedOver: [.preferredIsElected, .electionsAreFew, .stopsHandOver]
        case .quorumKeepsMaster: [.electionsAreNeeded]
        case .fencedWithoutBus: [.silentUnlessServing]
        case .durableBeforeSaid:
            [.promiseIsKept, .voteIsKept, .votersHoldFullState, .appliedIsDurable, .recordIsNotRewritten]
        case .oneLifePerID: [.oneMasterPerEpoch, .numbersHaveReasons, .hellosAreAnswered, .healedIsOne]
        case .requestsCountOnce: [.updateIsAsked, .completedCountsOnce]
        case .mergeIsByAge: [.mergeTakesTheLatest, .mergesCommute, .answeredSurvives, .lowerMasterYields]
        case .quorumDecides:
            [
                .quorumDecides, .ballotHasOneValue, .decidedIsDecided, .decidedIsForEver, .logHasNoGap,
                .answeredSurvives,
            ]
        case .electedRecovers: [.leadersArePromised, .decidedIsForEver]
        case .abortIsFinal: [.abortedStaysAborted]
        case .votersChangeByOne: [.votersAreChosen, .changesAreJudged, .votersHoldFullState]
        case .transferIsComplete: [.statesAgree, .statesAreFetchedOnce]
        case .requestsAreKept: [.requestsAreKept, .waitingAreAnswered, .answeredOnce]
        case .queuesAreBounded: [.queuesAreBounded, .errorsAreLimited, .repeatsArePaced, .talkIsBounded]
        case .damageIsSaid: [.damageIsSaid, .recordIsReadable]
        case .expiryIsPatient: [.expiryIsPatient, .intervalSuitsPeers]
        case .stopEmptiesSwarms: [.stopEmptiesSwarms, .onlyStopsEmptySwarms, .stopEnds]
        case .healsByItself:
            [
                .healedIsAnswered, .healedIsExact, .survivorsHaveAll, .healedIsOne, .rulesAreInForce, .timeGoesOn,
                .candidatesEndSoon,
            ]
        case .repliesAreRight:
            [
                .replyIsRight, .replyIsAddressed, .onlyProvenAreAnswered, .connectionIDsLast, .refusalIsJustified,
                .admissionIsJustified, .bookkeepingAgrees,
            ]
        case .consoleIsKept:
            [
                .changesAreDecided, .changesAreJudged, .changesFollow, .adminStays, .sessionsHaveAccounts,
                .torrentFilesAreWhole,
                .uploadsStay, .filesAreRegistered, .uploadsAreForgotten, .queuesAreBounded, .statesAgree,
            ]
        case .othersAreKnown: [.unlikeAreToldApart, .statusIsTrue, .peopleAreTold]
        case .onlyVerifiedCounts: [.onlyVerifiedIsStored, .claimsAreTrue]
        case .blocksAreAskedOnce: [.blocksAreAskedOnce, .keptIsNotAskedAgain, .rarestFirst, .bookkeepingAgrees]
        case .leechersFinish: [.leechersFinish, .nothingWaits, .trackersAreTold, .linksEndInTime]
        case .slotsAreShared: [.uploadSlotsAreKept, .chokingIsFair]
        case .transfersAreBounded: [.buffersAreBounded, .ratesAreKept, .ratioEndsSeeding]
        case .silentAreSpared: [.backedOffAreLeftAlone, .trackersAreSpared]
        case .onlyTheGuiltyAreBanned: [.onlyTheGuiltyAreBanned, .bannedAreLeftAlone, .poisonersAreBanned]
        case .messagesAreInOrder:
            [
                .messagesAreInOrder, .answersWereAsked, .contractIsKept, .linksEndInTime, .extensionsAreKept,
                .shownIsTrue,
            ]
        case .privateStaysPrivate: [.privateStaysPrivate]
        }
    }

    /// The planted mistakes that break it: each of them breaks one rule.
    public var plantedBugs: [PlantedBug] {
        switch self {
        case .detectorDecidesNothing:
            [
                .epochShared, .quorumOfTheLive, .electedByMinority, .staleMasterAccepted, .prepareAfterPromise,
            ]
        case .timeoutIsNoAbort: [.abortOnTimeout]
        case .deposedIsSilent: [.deposedAnswers]
        case .timeIsData: [.unequalTime, .wallClockStamps, .localExpiry]
        case .readsAreConfirmed: [.scrapeUnconfirmed, .confirmedByOne, .leaseByHearing, .slaveScrapes]
        case .roleIsHandedOver: [.rankOfSuspecters, .preferredStandsAtOnce, .candidateOutbid]
        case .quorumKeepsMaster: [.noPreVote, .minorityStays]
        case .fencedWithoutBus: [.fencedAnswers]
        case .durableBeforeSaid:
            [
                .epochFromMemory, .promiseForgotten, .amnesiacVotes, .answerBeforeDurable, .electionBeforeDurable,
                .ownVoteBeforeDurable, .okBeforeDurable, .okBeforePromise, .wholeTooEarly,
                .writtenBeforeStart,
            ]
        case .oneLifePerID: [.idGivenTwice]
        case .requestsCountOnce:
            [
                .settledForgotten, .settledByTimeOnly, .redeliveredTwice, .forwardedTooEarly, .completedCountedTwice,
            ]
        case .mergeIsByAge:
            [
                .voteForgotten, .loneDecisionForgotten, .mergeForgetsPeers, .mergeKeepsOlder, .tombstoneIgnored,
                .mergeSumsCounters, .lowerMasterStays,
            ]
        case .quorumDecides:
            [
                .oksOfAnotherEpoch, .commitBeforeQuorum, .commitSentEarly, .appliedOnPrepare, .learnedByIndex,
                .gapAccepted,
            ]
        case .electedRecovers:
            [
                .ownEntryInherited, .longestEntryInherited, .inheritedNotProposed, .recoverySkipped,
                .answerWithoutPending, .inheritedGivenUp,
            ]
        case .abortIsFinal: [.abortToldEarly, .abortedRevived, .attemptIgnored]
        case .votersChangeByOne: [.membersSwapped, .membersBySight]
        case .transferIsComplete: [.transferWithoutTail, .transferMixed, .chunkAppliedTwice, .snapshotAheadOfLog]
        case .requestsAreKept:
            [.twoRepliers, .twoConnectors, .requestsDropped, .staleReadsKept, .emptyEntryKept]
        case .queuesAreBounded: [.newcomerBlocksTrimming, .unboundedBook]
        case .damageIsSaid: [.markIgnored, .damagedVotes]
        case .expiryIsPatient: [.impatientExpiry, .intervalOfOne]
        case .stopEmptiesSwarms: [.emptiedByOne, .stopNoteKept, .recallOutlivesWelcome]
        case .healsByItself: [.cutLogWaitedFor, .voteSaidOnce, .proposalSentOnce, .gapsNotFetched]
        case .repliesAreRight: [.connectionIDOfOne, .passkeyOutlivesAccount, .passkeysNotRestored]
        case .consoleIsKept:
            [
                .changeToldEarly, .expectationIgnored, .lastAdminLost, .sessionsOutliveAccount,
                .sessionsOutlivePassword, .tornFileShown, .uploadsMixed, .uploadsKept, .uploadsUnbounded,
                .uploadsNotInChunks, .filesStopWithSwarms, .uploadTakenByFiles, .fileTakesUpload,
                .fileKeptWithoutTorrent, .unregisteredFileKept,
            ]
        case .othersAreKnown: [.settingsIgnored, .reportOfAnother]
        case .onlyVerifiedCounts, .blocksAreAskedOnce, .leechersFinish, .slotsAreShared, .transfersAreBounded,
            .silentAreSpared, .onlyTheGuiltyAreBanned, .messagesAreInOrder, .privateStaysPrivate:
            []
        }
    }

    /// The mistakes planted into peers that break it.
    public var plantedPeerBugs: [PlantedPeerBug] {
        switch self {
        case .onlyVerifiedCounts:
            [.storedUnverified, .wrongStored, .haveToldEarly, .lossIgnored, .lostStillSent]
        case .blocksAreAskedOnce: [.endgameAlways, .storedForgotten, .endgameUnbounded]
        case .leechersFinish:
            [
                .lossOfLinkForgotten, .rejectIgnored, .silenceIgnored, .onlyGiverAwaited, .diskTriedOnce,
                .interestForgotten, .trackerAwaited,
            ]
        case .slotsAreShared: [.everybodyUnchoked, .slotsKept, .chokedServed]
        case .transfersAreBounded:
            [
                .buffersUnbounded, .sendingUnbounded, .uploadUnlimited, .downloadUnlimited, .ratioIgnored,
            ]
        case .silentAreSpared: [.impatientCalls, .constantBackOff, .impatientAnnounces]
        case .onlyTheGuiltyAreBanned: [.companyBanned, .poisonForgiven, .bannedLetIn, .bannedCalled]
        case .messagesAreInOrder:
            [
                .bitfieldLate, .ownNumbers, .fastWithoutBit, .chokeWithoutReject, .saidAfterClose,
            ]
        case .privateStaysPrivate: [.privateIgnored]
        case .detectorDecidesNothing, .timeoutIsNoAbort, .deposedIsSilent, .timeIsData, .readsAreConfirmed,
            .roleIsHandedOver, .quorumKeepsMaster, .fencedWithoutBus, .durableBeforeSaid, .oneLifePerID,
            .requestsCountOnce, .mergeIsByAge, .quorumDecides, .electedRecovers, .abortIsFinal, .votersChangeByOne,
            .transferIsComplete, .requestsAreKept, .queuesAreBounded, .damageIsSaid, .expiryIsPatient,
            .stopEmptiesSwarms, .healsByItself, .repliesAreRight, .consoleIsKept, .othersAreKnown:
            []
        }
    }
}
