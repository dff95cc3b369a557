// What must never happen, and what has.

import Primitives

/// The promises that checkers hold a run to.
public enum Invariant: String, Sendable, Hashable, CaseIterable {
    /// What is applied, and what is answered, is on the disk.
    case appliedIsDurable
    /// An announce is answered once for each time it is in the log, and only if it is in the log.
    case answeredOnce
    /// A reply says what the swarm is like, in the form that the protocol demands.
    case replyIsRight
    /// A reply leaves from where it was asked, to who asked.
    case replyIsAddressed
    /// Nothing but a short error goes to an address that is not proven.
    case onlyProvenAreAnswered
    /// A connection id that may still be used is not refused.
    case connectionIDsLast
    /// A request is refused only for the reason that it is told.
    case refusalIsJustified
    /// What is answered, or in the log, was asked for by somebody whom the rules of access let in.
    case admissionIsJustified
    /// Entries follow each other without gaps, and nothing is written over.
    case logHasNoGap
    /// An entry that was decided does not change.
    case decidedIsForEver
    /// An update that was refused never comes back.
    case abortedStaysAborted
    /// Cluster time never runs backwards…
    case timeNeverRunsBack
    /// …nor ahead of every clock.
    case timeIsReal
    /// What was answered is there after a crash, unless it is too old.
    case answeredSurvives
    /// Node, record and model hold the same.
    case statesAgree
    /// A record can be read back.
    case recordIsReadable
    /// What a record holds is not written again, or in the place of what it holds.
    case recordIsNotRewritten
    /// A record that is not what was written is noticed.
    case damageIsSaid
    /// No peer is taken out within the interval that it was told, and a fifth.
    case expiryIsPatient
    /// Queues stay within their bounds.
    case queuesAreBounded
    /// So many errors go to one address in a second, and none is withheld before.
    case errorsAreLimited
    /// What is said again, for it may be lost, is said again after a pause.
    case repeatsArePaced
    /// The interval that clients are told is the one that suits the peers that there are.
    case intervalSuitsPeers
    /// Counts, orders and indexes that save a search are what the search would find.
    case bookkeepingAgrees
    /// An orderly stop leaves no swarm, unless it is to keep them.
    case stopEmptiesSwarms
    /// Swarms are emptied only where a quorum has stopped in good order and nobody can have served since.
    case onlyStopsEmptySwarms
    /// A node that was asked to stop does.
    case stopEnds
    /// When all is well again, whoever asks is answered soon.
    case healedIsAnswered
    /// When all has been well for long enough, those who are there are in the table, and nobody else.
    case healedIsExact
    /// What the operator commanded last is in force.
    case rulesAreInForce
    /// Nobody wakes again and again at one time, and something always comes.
    case timeGoesOn

    // Of clusters

    /// An epoch belongs to one life of one tracker, and so has one master.
    case oneMasterPerEpoch
    /// A promise never goes back, and nothing that depends on it is said before it is durable.
    case promiseIsKept
    /// A vote is for what is on the voter's disk, all of it.
    case voteIsKept
    /// Who does not hold the whole state has no vote.
    case votersHoldFullState
    /// One ballot proposes one value.
    case ballotHasOneValue
    /// Who leads, and who proposes, has been promised its epoch by a majority, each on its own disk.
    case leadersArePromised
    /// Nothing is decided without a quorum of the voters that have it on their disks.
    case quorumDecides
    /// What a tracker says is decided is.
    case decidedIsDecided
    /// Every update in the log was asked for, by a client and no more often than it came, or is the tracker's own.
    case updateIsAsked
    /// A tracker that is cut off, deposed, blank or catching up says nothing to clients.
    case silentUnlessServing
    /// A reply shows all that was decided before its request was sent, and nothing that is not decided.
    case readsAreFresh
    /// A read is answered once a majority has said, after it came, that its master is one still.
    case readsAreConfirmed
    /// A download counts once as completed.
    case completedCountsOnce
    /// Who was told other settings than the others is found out, and he alone.
    case unlikeAreToldApart
    /// What a tracker tells of the others is what they were like when it heard them last.
    case statusIsTrue
    /// What people are told of a tracker, of its disk and of what they want changed, is what has happened.
    case peopleAreTold
    /// A tracker has a number that it was given, or took where nobody could give it one; it gives it up, or says that
    /// it may not join, only where another one has said why.
    case numbersHaveReasons
    /// Who asks a master to be let in is told something.
    case hellosAreAnswered
    /// In survivor mode, whoever is left serves, and takes what it has for the whole state not before its time.
    case survivorsHaveAll
    /// When all is well again there is one master, and all trackers hold the same.
    case healedIsOne
    /// Nobody stands for master before a quorum misses the one that there is, nor who has no vote.
    case electionsAreNeeded
    /// Where nothing happened but the death of the master, the policy's choice takes its place, in one election.
    case preferredIsElected
    /// No more trackers become master than what goes wrong gives reason to.
    case electionsAreFew
    /// A master that is stopped hands its role over before it leaves, where nothing keeps another from taking it.
    case stopsHandOver
    /// Who was elected leads soon, or gives up.
    case candidatesEndSoon
    /// Of two masters that hear each other the lower one makes way.
    case lowerMasterYields
    /// A state that is fetched fits together, is fetched once, and is told to be there.
    case statesAreFetchedOnce
    /// Nobody says the same again faster than it can be answered.
    case talkIsBounded
    /// Voters change one at a time, and at the operator's word.
    case votersAreChosen
    /// A tracker keeps what it was asked until it is answered, whoever is master.
    case requestsAreKept
    /// Who waits is answered soon, or told why not, where nothing keeps his tracker from it, whatever else goes wrong.
    case waitingAreAnswered
    /// What somebody was told to be done at a console is decided as he wanted it.
    case changesAreDecided
    /// Who is told why nothing becomes of a change is told what is so.
    case changesAreJudged
    /// What is changed at a console is what its changer believed that it was.
    case changesFollow
    /// Where there has been an admin, there is one.
    case adminStays
    /// A session has an account, and is not older than its password.
    case sessionsHaveAccounts
    /// A torrent file is seen with all of its bytes, or not at all.
    case torrentFilesAreWhole
    /// What somebody has uploaded goes when somebody wants it to, and by nothing that an operator's files say.
    case uploadsStay
    /// What came from files is what the operator's files said last.
    case filesAreRegistered
    /// An upload that nobody goes on with leaves nothing.
    case uploadsAreForgotten
    /// After a partition the latest word on each peer counts, and no download more often than it was told.
    case mergeTakesTheLatest
    /// Whichever side of a partition takes in the other, they come to the same.
    case mergesCommute

    // Of swarms of peers

    /// Only bytes that are verified are on a peer's disk.
    case onlyVerifiedIsStored
    /// A peer says that it has what is on its disk, and gives nothing else.
    case claimsAreTrue
    /// No block is asked of two peers at once outside the endgame.
    case blocksAreAskedOnce
    /// No block is asked for that is here.
    case keptIsNotAskedAgain
    /// Every leecher finishes while every piece, and the metadata where it began with a magnet link, stays at some peer
    /// that it can reach.
    case leechersFinish
    /// No more peers are given blocks at once than there are slots.
    case uploadSlotsAreKept
    /// Whoever wants blocks is given some in its turn.
    case chokingIsFair
    /// What a peer holds for others, and asks of them, has a bound.
    case buffersAreBounded
    /// No more bytes come and go than the limits allow.
    case ratesAreKept
    /// Seeding ends at the ratio that is wanted.
    case ratioEndsSeeding
    /// Peers that could not be reached are left alone for longer each time.
    case backedOffAreLeftAlone
    /// Trackers are not asked more often than they want, and silent ones are left alone.
    case trackersAreSpared
    /// Who is banned has sent corrupt bytes.
    case onlyTheGuiltyAreBanned
    /// Who is banned is not spoken to.
    case bannedAreLeftAlone
    /// Who alone has sent a wrong piece is banned.
    case poisonersAreBanned
    /// Nothing is said before its time, or without the extension that it needs.
    case messagesAreInOrder
    /// Each request is answered once, and nothing else is.
    case answersWereAsked
    /// A session wants nothing done to what is over.
    case contractIsKept
    /// Of a private torrent nobody is called of whom no tracker has told.
    case privateStaysPrivate
    /// What can be asked for, given or fetched is, and whoever can be called is called: nothing waits without a reason.
    case nothingWaits
    /// Begun pieces are asked for before others, of the others the rarest, and none that is not wanted.
    case rarestFirst
    /// A connection is kept alive while it may be of use, and closed when its time has come, and for no other reason.
    case linksEndInTime
    /// Metadata and peers are asked for, given and told of as BEP 9 and BEP 11 want it.
    case extensionsAreKept
    /// Trackers are asked when it is time.
    case trackersAreTold
    /// What people are shown of a transfer is so.
    case shownIsTrue
}

/// A promise that was not kept.
public struct Violation: Sendable, Hashable, CustomStringConvertible {
    /// The promise that was broken.
    public var invariant: Invariant
    /// Time of the world, since it began.
    public var time: Instant
    /// What was seen, in words.
    public var detail: String

    /// Takes the fields as they are.
    public init(_ invariant: Invariant, at time: Instant, _ detail: String) {
        self.invariant = invariant
        self.time = time
        self.detail = detail
    }

    /// Time, promise and detail on one line.
    public var description: String { "\(Figure.microseconds(time)) \(invariant.rawValue): \(detail)" }
}
