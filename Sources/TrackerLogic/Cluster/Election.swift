/// Who is master: phase 1 of Multi-Paxos in the words of the bully election.
///
///     idle ── stand ──► promising ── promise durable ──► asking ── a quorum of answers ──► recovering ──► leading
///       ▲                                                  │            what others decided is fetched       │
///       └────────── time-out, or a higher epoch ───────────┴─────────────────────────────────────────────────┘
///
/// The promise is on disk before it counts (rule 9): also one's own. A cluster of one is elected by its own
/// answer; nothing here is special about it.
///
/// Deviations from the classic bully algorithm, with reasons:
/// - Nobody stands before a quorum misses the master (`Suspicion`): a tracker that is deaf, or alone behind a bad link,
///   would else elect without end.
/// - The preferred id does not shout others down; the others let it go first, and stand when it does not. A message
///   less, and no need to know who is alive.
/// - What decides is the quorum of promises, not the id: two who stand at once harm nothing, the higher epoch wins.
/// - A returning preferred id is handed the role when it is in step, not before: a bully that knows nothing serves
///   nobody.
///
/// Invariants: an epoch is stood for once; leading only in the epoch promised; answers count once a voter, and only
/// those of this epoch.

import Primitives
import Wire

struct Election: Sendable, Hashable {
    enum Phase: Sendable, Hashable {
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

    /// What a voter has said.
    struct Ballots: Sendable, Hashable {
        var life: Life
        var answer: VoterAnswer
        /// Whether what it knows cannot be fetched: its history is another one, and is to be merged (survivor mode), or
        /// its log does not go back so far.
        var isAside = false
    }

    private(set) var phase = Phase.idle
    /// The epoch that this node stands for or leads, or the last one that it did.
    private(set) var epoch = Epoch.zero
    /// In the order in which they came.
    private(set) var answers: [Ballots] = []
    /// When it gives up.
    private(set) var givesUpAt: Instant?
    /// When the voters were last asked.
    private(set) var askedAt = Instant(nanoseconds: 0)

    var isLeading: Bool { phase == .leading }
    var isStanding: Bool { phase == .promising || phase == .asking || phase == .recovering }
    var answeredIDs: [UInt32] { answers.map(\.life.id) }

    /// Stands for an epoch that it has never named.
    mutating func stand(_ epoch: Epoch, givesUpAt: Instant?) {
        precondition(phase == .idle && self.epoch < epoch, "a node stands once at a time, and once for an epoch")
        self.epoch = epoch
        self.givesUpAt = givesUpAt
        phase = .promising
        answers.removeAll(keepingCapacity: true)
    }

    /// The node's own promise is durable.
    mutating func promiseKept(_ kept: Epoch) -> Bool {
        guard phase == .promising, kept == epoch else { return false }
        phase = .asking
        return true
    }

    mutating func noteAsked(now: Instant) { askedAt = now }

    /// A voter has promised to follow; a later answer of the same takes the place of the earlier.
    mutating func answerReceived(_ life: Life, _ answer: VoterAnswer, epoch answered: Epoch) {
        guard answered == epoch, phase == .asking || phase == .recovering || phase == .leading else { return }
        answers.removeAll { $0.life.id == life.id }
        answers.append(Ballots(life: life, answer: answer))
    }

    /// Answers of an earlier life of this id count no more.
    mutating func forgetAnswer(of id: UInt32) { answers.removeAll { $0.life.id == id } }

    mutating func beginRecovery(givesUpAt: Instant?) {
        precondition(phase == .asking, "recovery follows a quorum of answers")
        phase = .recovering
        self.givesUpAt = givesUpAt
    }

    mutating func lead() {
        precondition(phase == .recovering || phase == .asking, "who leads was elected")
        phase = .leading
        givesUpAt = nil
    }

    mutating func giveUp() {
        phase = .idle
        givesUpAt = nil
        answers.removeAll(keepingCapacity: true)
    }

    /// Who knows most to be decided.
    var mostAdvanced: (life: Life, position: Position)? {
        answers.filter { !$0.isAside }.max { $0.answer.position.index < $1.answer.position.index }
            .map { ($0.life, $0.answer.position) }
    }

    /// What a voter knows is found to be out of reach.
    mutating func setAside(_ life: Life) {
        for place in answers.indices where answers[place].life == life { answers[place].isAside = true }
    }

    /// Something has been fetched, and what comes next may be in reach of all.
    mutating func askAllAgain() { for place in answers.indices { answers[place].isAside = false } }

    /// Whether a voter that was set aside knows more to be decided.
    func isAnyAside(ahead index: UInt64) -> Bool {
        answers.contains { $0.isAside && $0.answer.position.index > index }
    }

    /// The entry to propose again behind a position: of those accepted there, the one of the greatest ballot.
    ///
    /// - Parameters:
    ///   - own: what this node itself has accepted.
    ///   - keepsOwn: whether that comes first where another may have been decided as well (survivor mode): then each
    ///     is kept by who has it, and they are merged.
    func inherited(behind position: Position, own: LoggedEntry?, keepsOwn: Bool) -> LoggedEntry? {
        // In survivor mode, an answer may come from another history.
        func follows(_ entry: LoggedEntry) -> Bool {
            entry.header.index == position.index + 1 && entry.header.previous == position.chain
        }
        var best = own.flatMap { follows($0) ? $0 : nil }
        for ballots in answers where !ballots.answer.pending.isEmpty {
            guard let entry = try? LoggedEntry(ballots.answer.pending), follows(entry) else { continue }
            if let known = best, !(known.header.ballot < entry.header.ballot) { continue }
            if keepsOwn, let best, best.rivals(entry) { continue }
            best = entry
        }
        return best
    }
}
