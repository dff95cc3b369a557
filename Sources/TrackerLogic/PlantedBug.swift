// Mistakes that are planted into the logic to see whether the simulator finds them: test-only switches.

import Primitives
import Wire

/// One mistake.
///
/// `has` is false, and costs nothing, unless the logic is compiled with `PLANTED_BUGS`; only the package in
/// Tests/PlantedBugs does that, and prints how many seeds it takes to find each. Each breaks one rule of docs/rules.md,
/// which names it there.
public enum PlantedBug: String, CaseIterable, Sendable {
    // Election: who is master.

    /// Two trackers stand for one epoch, for it bears nobody's id.
    case epochShared
    /// An epoch is stood for again after a restart, for it is counted from memory alone.
    case epochFromMemory
    /// The voters are those that are heard just now.
    case quorumOfTheLive
    /// One voter less than a quorum is enough to be elected.
    case electedByMinority
    /// The new master goes on with the entry that it has itself, though others have accepted a later one.
    case ownEntryInherited
    /// The new master goes on with the longest entry, not with that of the greatest ballot.
    case longestEntryInherited
    /// The new master forgets an entry that may have been decided.
    case inheritedNotProposed
    /// The new master does not fetch what others know to be decided.
    case recoverySkipped
    /// A voter that is asked for a promise does not tell what it has accepted.
    case answerWithoutPending
    /// A message of a master of the past brings a voter back into its epoch.
    case staleMasterAccepted
    /// A voter goes on following its old master after it has promised another.
    case prepareAfterPromise
    /// A restart forgets the promise.
    case promiseForgotten
    /// A node that lost its disk votes at once.
    case amnesiacVotes
    /// Nobody looks whether a record has come as far as its mark says.
    case markIgnored
    /// A node whose disk is damaged votes at once.
    case damagedVotes
    /// A promise is told before it is durable.
    case answerBeforeDurable
    /// A candidate asks for votes before its own promise is durable.
    case electionBeforeDurable
    /// Who misses the master stands alone, without a quorum that misses it too.
    case noPreVote
    /// Only those who have said that they miss the master count when it is asked whose turn it is, and one entry more
    /// goes before the policy.
    case rankOfSuspecters
    /// A preferred id that comes back stands at once.
    case preferredStandsAtOnce
    /// A candidate waits for entries that everybody has cut from the log, and those who have cut them let it go first.
    case cutLogWaitedFor
    /// A master that hears of a candidate stands again, above it.
    case candidateOutbid
    /// A master without a quorum stays.
    case minorityStays

    // Entries: what is decided.

    /// The master counts votes for entries of other epochs and attempts.
    case oksOfAnotherEpoch
    /// The master decides by its own vote.
    case commitBeforeQuorum
    /// The master tells that an entry is decided when it proposes it.
    case commitSentEarly
    /// The master counts its own vote before its write is durable.
    case ownVoteBeforeDurable
    /// A slave applies an entry when it is proposed.
    case appliedOnPrepare
    /// A slave that knows an index to be decided applies what it has there, whatever that is.
    case learnedByIndex
    /// A voter says OK to an entry though it lacks the one before.
    case gapAccepted
    /// A voter says OK before its write is durable.
    case okBeforeDurable
    /// A voter says OK in an epoch whose promise is not durable yet.
    case okBeforePromise
    /// An entry that takes long is told to be refused.
    case abortOnTimeout
    /// Clients are told of a refusal before that is decided.
    case abortToldEarly
    /// An entry that only some have refused is taken for nowhere: a later master finds it.
    case abortedRevived
    /// A voter that has refused an entry takes it when it comes again.
    case attemptIgnored
    /// An entry that an earlier master may have decided is given up when it cannot be stored anew, also by a master
    /// who has it.
    case inheritedGivenUp
    /// An empty entry is never given up, though nobody has stored the one in whose place it is: with all disks full,
    /// nobody is told.
    case emptyEntryKept
    /// A vote is said once; if it is lost, nobody says it again.
    case voteSaidOnce
    /// A proposal is sent once; if it is lost, nobody sends it again.
    case proposalSentOnce
    /// A slave that lacks entries waits for them to come by themselves.
    case gapsNotFetched
    /// A slave tells time by its own clock when it applies.
    case unequalTime
    /// Entries bear the time of the master's wall clock as it is.
    case wallClockStamps
    /// A slave takes silent peers out by its own clock.
    case localExpiry
    /// Peers are taken out before their time.
    case impatientExpiry
    /// A slave tells its clients the configured interval, and not the one that is decided.
    case intervalOfOne

    // Voters.

    /// One voter takes another's place in one entry, so that majorities may not overlap.
    case membersSwapped
    /// A master takes the vote of who is silent.
    case membersBySight

    // State transfer and records.

    /// A newcomer takes itself for whole before it has all.
    case wholeTooEarly
    /// A snapshot is taken without the log behind it.
    case transferWithoutTail
    /// A part of the old state stays in the new one.
    case transferMixed
    /// The log behind a snapshot is applied to chunks that hold it already.
    case chunkAppliedTwice
    /// Chunks are saved that are ahead of the log on the disk.
    case snapshotAheadOfLog
    /// A node that hears of something before its start writes what it has read back.
    case writtenBeforeStart
    /// The log in memory is not cut while anybody lacks the state.
    case newcomerBlocksTrimming

    // Clients.

    /// In a group, slaves answer as well.
    case twoRepliers
    /// In a group, slaves give connection ids as well.
    case twoConnectors
    /// In a group, a slave forwards what was answered, and it is taken for new.
    case settledForgotten
    /// In a group, what a slave forwards late is told from a new request by its age, not by what its sender knew.
    case settledByTimeOnly
    /// A scrape is answered without asking whether one is still master.
    case scrapeUnconfirmed
    /// A scrape is confirmed by whoever is the first to say so, not by a quorum.
    case confirmedByOne
    /// A scrape is answered as long as a quorum was heard lately: a lease that nobody grants.
    case leaseByHearing
    /// A slave answers scrapes from what it holds.
    case slaveScrapes
    /// A master that is deposed answers what it was asked before.
    case deposedAnswers
    /// A node without its bus goes on answering.
    case fencedAnswers
    /// A forwarded request that comes again is taken again.
    case redeliveredTwice
    /// Requests go to a new master before what the old one did with them is known.
    case forwardedTooEarly
    /// `completed` counts again when it is heard again.
    case completedCountedTwice
    /// A connection id is known to the tracker that gave it only.
    case connectionIDOfOne
    /// A slave forgets what it has heard when the master changes.
    case requestsDropped
    /// A master keeps a read that it has taken up for as long as no quorum confirms it, however old it is.
    case staleReadsKept
    /// There is no bound on the requests that wait.
    case unboundedBook

    // The orderly stop of a cluster.

    /// A master that has itself left in good order empties the swarms, whatever the others did.
    case emptiedByOne
    /// That a tracker has left in good order stays on its disk when it comes back.
    case stopNoteKept
    /// A tracker that is welcomed while it takes back its note of an orderly stop reckons with that stop for ever.
    case recallOutlivesWelcome

    // Survivor mode.

    /// What a tracker has voted for is written over by another master's entry, though it may have been decided.
    case voteForgotten
    /// A master that was alone forgets, as it dies, that it has decided its last entry.
    case loneDecisionForgotten
    /// The master gives a number to two trackers.
    case idGivenTwice
    /// After a partition, peers of the other side are not taken over.
    case mergeForgetsPeers
    /// After a partition, the older of two records of a peer wins.
    case mergeKeepsOlder
    /// After a partition, who has stopped on the other side comes back.
    case tombstoneIgnored
    /// After a partition, counts of downloads add up each time.
    case mergeSumsCounters
    /// After a partition, the lower master stays.
    case lowerMasterStays

    // The console: what people keep there.

    /// A change is told to be done when it is taken up, and not when it is decided.
    case changeToldEarly
    /// Nobody compares a thing with what its changer believes that it is.
    case expectationIgnored
    /// The last admin can be removed, or made less.
    case lastAdminLost
    /// The sessions of an account stay when it is removed.
    case sessionsOutliveAccount
    /// The sessions of an account stay when its password is changed.
    case sessionsOutlivePassword
    /// A torrent file is shown though parts of it are missing.
    case tornFileShown
    /// Parts are told apart by the torrent that they are of, and not by the upload.
    case uploadsMixed
    /// An upload that nobody goes on with is kept.
    case uploadsKept
    /// Any number of uploads may be under way.
    case uploadsUnbounded
    /// A chunk of torrent files has those that are whole, and no parts of others.
    case uploadsNotInChunks
    /// An orderly stop takes the torrent files with the swarms.
    case filesStopWithSwarms
    /// What the operator's files say takes out what people have uploaded.
    case uploadTakenByFiles
    /// A torrent file of the operator's takes the place of one that somebody has uploaded.
    case fileTakesUpload
    /// A torrent file that came from files stays when its torrent is in them no more.
    case fileKeptWithoutTorrent
    /// A torrent file from files is taken though its torrent has gone from them while it was on its way.
    case unregisteredFileKept
    /// The passkey of an account that was removed still lets in.
    case passkeyOutlivesAccount
    /// Whoever reads accounts from a disk, or is sent them, knows none of their passkeys.
    case passkeysNotRestored

    // Others: what a tracker takes them for.

    /// Who was told other settings is heard like everybody else.
    case settingsIgnored
    /// What one tracker has reported is told of all.
    case reportOfAnother
}

extension NodeConfiguration {
    /// Whether a mistake is planted; never, in what is delivered.
    @inline(__always)
    func has(_ bug: PlantedBug) -> Bool {
        #if PLANTED_BUGS
            plantedBug == bug
        #else
            false
        #endif
    }
}

extension TrackerNode {
    /// Whether a mistake is planted; never, in what is delivered.
    @inline(__always)
    func has(_ bug: PlantedBug) -> Bool { configuration.has(bug) }
}

#if !PLANTED_BUGS

    // What the planted mistakes do that are too long for one line: nothing.
    extension TrackerNode {
        @inline(__always)
        func planted(inherited entry: Entry?) -> Entry? { entry }

        @inline(__always)
        func planted(applied header: EntryHeader, _ now: ClockReading) -> EntryHeader { header }

        @inline(__always)
        func planted(merged updates: [Update], from chunk: SnapshotChunk) -> [Update] { updates }

        @inline(__always)
        func hasLease(_ now: ClockReading) -> Bool { false }

        @inline(__always)
        func tellRefused(_ entry: Entry, _ now: ClockReading, _ effects: inout Effects) {}

        @inline(__always)
        func expireAlone(_ now: ClockReading) {}

        @inline(__always)
        func dropSilentMember() {}
    }

#endif
