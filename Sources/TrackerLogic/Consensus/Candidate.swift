// Who is master: phase 1 of Multi-Paxos in the words of the bully election.

import Primitives
import Wire

/// A voter's answer to a candidate (phase 1b).
package struct VoterPromise: Sendable, Hashable {
    package var life: Life
    package var answer: VoterAnswer
    /// Whether what it knows cannot be fetched: its history is another one, and is to be merged (survivor mode), or its
    /// log does not go back so far.
    package var isOutOfReach = false
}

/// A tracker that stands for master, or leads.
///
///     idle ── stand ──► promising ── promise durable ──► asking ── a quorum of answers ──► recovering ──► leading
///       ▲                                                  │            what others decided is fetched       │
///       └────────── time-out, or a higher epoch ───────────┴─────────────────────────────────────────────────┘
///
/// The promise is on disk before it counts (rule 9): also one's own. A cluster of one is elected by its own
/// answer; nothing here is special about it.
///
/// Deviations from the classic bully algorithm, with reasons:
/// - Nobody stands before a quorum misses the master (`FailureDetector`): a tracker that is deaf, or alone behind a bad
///   link, would else elect without end.
/// - The preferred id does not shout others down; the others let it go first, and stand when it does not
///   (`Succession`). A message less, and no need to know who is alive.
/// - What decides is the quorum of promises, not the id: two who stand at once harm nothing, the higher epoch wins.
/// - A returning preferred id is handed the role when it is in step, not before: a bully that knows nothing serves
///   nobody.
///
/// Invariants: an epoch is stood for once; leading only in the epoch promised; answers count once a voter, and only
/// those of this epoch.
package struct Candidate: Sendable, Hashable {
    package enum Phase: UInt8, Sendable, Hashable {
        /// Can transition to: promising.
        case idle
        /// Waits until its own promise is durable. Can transition to: asking, idle.
        case promising
        /// Gathers answers. Can transition to: recovering, idle.
        case asking
        /// Fetches what others know to be decided. Can transition to: leading, idle.
        case recovering
        /// Can transition to: idle.
        case leading
    }

    package private(set) var phase = Phase.idle
    /// The epoch that this node stands for or leads, or the last one that it did.
    package private(set) var epoch = Epoch.zero
    /// In the order in which they came.
    package private(set) var answers: [VoterPromise] = []
    /// When it gives up.
    package private(set) var electionDeadline: Instant?
    /// When the voters were last asked.
    package private(set) var askedAt = Instant(nanoseconds: 0)
    /// The highest round that was heard of.
    package private(set) var highestRound: UInt64 = 0
    private var horizon = RoundHorizon()
    /// The last master that was known, for the policy `next`.
    package private(set) var lastMaster: UInt32 = 0
    /// When this master last stood again, above an epoch that a voter had promised.
    private var stoodAgainAt: Instant?
    /// Whether it was elected and could not fetch the decided entries that it lacks, since it last heard a master: the
    /// others stand first.
    package private(set) var couldNotRecover = false

    package init() {}

    package var isLeading: Bool { phase == .leading }
    package var answeredIDs: [UInt32] { answers.map { $0.life.id } }

    // MARK: - Rounds

    /// A round was heard of.
    ///
    /// - Parameters:
    ///   - round: as another tracker says it.
    ///   - promised: the highest round that this tracker has promised.
    ///   - now: the monotonic clock.
    ///   - pause: between two rounds that are far ahead.
    /// - Returns: whether it is believed.
    package mutating func admitRound(_ round: UInt64, promised: UInt64, now: Instant, pause: Duration) -> Bool {
        horizon.admits(round, known: max(promised, highestRound), now: now, pause: pause)
    }

    /// A round was heard of, and believed.
    package mutating func note(_ round: UInt64) { highestRound = max(highestRound, round) }

    /// The round to stand in: above all that were promised, heard of, and stood in.
    package func nextRound(above promised: UInt64) -> UInt64 { max(promised, highestRound, epoch.round) + 1 }

    /// A master is known.
    package mutating func note(master id: UInt32) { lastMaster = id }

    /// A master has welcomed this tracker, and so can send what it lacks.
    package mutating func noteWelcome() { couldNotRecover = false }

    /// Whether this master may stand again, above an epoch that a voter has promised.
    ///
    /// Two that do not hear each other would outbid each other without end: the second time it waits to be missed.
    package func mayStandAgain(now: Instant, pause: Duration) -> Bool {
        stoodAgainAt.map { now - $0 >= pause } ?? true
    }

    package mutating func noteStoodAgain(now: Instant) { stoodAgainAt = now }

    // MARK: - Standing

    /// Stands for an epoch that it has never named.
    package mutating func stand(_ epoch: Epoch, electionDeadline: Instant?) {
        precondition(phase == .idle && self.epoch < epoch, "a node stands once at a time, and once for an epoch")
        self.epoch = epoch
        self.electionDeadline = electionDeadline
        phase = .promising
        answers.removeAll(keepingCapacity: true)
    }

    /// The node's own promise is durable.
    package mutating func promisePersisted(_ kept: Epoch) -> Bool {
        guard phase == .promising, kept == epoch else { return false }
        phase = .asking
        return true
    }

    package mutating func noteAsked(now: Instant) { askedAt = now }

    /// A voter has promised to follow; a later answer of the same takes the place of the earlier.
    package mutating func answerReceived(_ life: Life, _ answer: VoterAnswer, epoch answered: Epoch) {
        guard answered == epoch, phase == .asking || phase == .recovering || phase == .leading else { return }
        answers.removeAll { $0.life.id == life.id }
        answers.append(VoterPromise(life: life, answer: answer))
    }

    /// Answers of an earlier life of this id count no more.
    package mutating func forgetAnswer(of id: UInt32) { answers.removeAll { $0.life.id == id } }

    package mutating func beginRecovery(electionDeadline: Instant?) {
        precondition(phase == .asking, "recovery follows a quorum of answers")
        phase = .recovering
        self.electionDeadline = electionDeadline
    }

    package mutating func lead() {
        precondition(phase == .recovering || phase == .asking, "who leads was elected")
        phase = .leading
        electionDeadline = nil
        couldNotRecover = false
    }

    package mutating func giveUp() {
        if phase == .recovering { couldNotRecover = true }
        phase = .idle
        electionDeadline = nil
        answers.removeAll(keepingCapacity: true)
    }

    /// The voter that knows of the most decided entries, of those whose history can be fetched.
    package var mostAdvanced: (life: Life, position: Position)? {
        answers.filter { !$0.isOutOfReach }.max { $0.answer.position.index < $1.answer.position.index }
            .map { ($0.life, $0.answer.position) }
    }

    /// The history of a voter cannot be fetched.
    package mutating func markOutOfReach(_ life: Life) {
        for place in answers.indices where answers[place].life == life { answers[place].isOutOfReach = true }
    }

    /// Entries have been fetched: the rest of every voter's history may be in reach again.
    package mutating func clearOutOfReach() { for place in answers.indices { answers[place].isOutOfReach = false } }

    /// Whether a voter whose history is out of reach knows of decided entries behind this index.
    package func isAnyOutOfReach(ahead index: UInt64) -> Bool {
        answers.contains { $0.isOutOfReach && $0.answer.position.index > index }
    }

    /// The entry to propose again behind a position: of those accepted there, the one of the greatest ballot.
    ///
    /// - Parameters:
    ///   - position: the last entry that is decided and applied.
    ///   - own: what this node itself has accepted.
    ///   - keepsOwn: whether that comes first where another may have been decided as well (survivor mode): then each
    ///     is kept by who has it, and they are merged.
    /// - Returns: nil where nobody has accepted anything there.
    package func inherited(behind position: Position, own: Entry?, keepsOwn: Bool) -> Entry? {
        // In survivor mode, an answer may come from another history.
        func follows(_ entry: Entry) -> Bool {
            entry.header.index == position.index + 1 && entry.header.previous == position.chain
        }
        var best = own.flatMap { follows($0) ? $0 : nil }
        for promise in answers {
            guard let entry = promise.answer.pending, follows(entry) else { continue }
            if let known = best, !(known.header.ballot < entry.header.ballot) { continue }
            if keepsOwn, let best, best.rivals(entry) { continue }
            best = entry
        }
        return best
    }
}

extension Candidate {
    mutating func walk(_ archive: inout Archive) {
        phase.walk(&archive)
        epoch.walk(&archive)
        answers.walk(&archive)
        electionDeadline.walk(&archive)
        askedAt.walk(&archive)
        highestRound.walk(&archive)
        horizon.walk(&archive)
        lastMaster.walk(&archive)
        stoodAgainAt.walk(&archive)
        couldNotRecover.walk(&archive)
    }
}

extension Candidate.Phase: Archived { static var blank: Candidate.Phase { .idle } }

extension VoterPromise: Archived {
    static var blank: VoterPromise {
        VoterPromise(life: .blank, answer: VoterAnswer(position: .start, pending: nil, leftInOrder: false))
    }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        answer.position.walk(&archive)
        answer.pending.walk(&archive)
        answer.leftInOrder.walk(&archive)
        isOutOfReach.walk(&archive)
    }
}
