// Agreement on one entry after another: phase 2 of Multi-Paxos in the words of two-phase commit.

import Primitives
import Wire

/// The entry that a master has under way, and the votes on it.
///
///           propose                     a quorum of OKs of this ballot
///     idle ─────────► proposed(ballot) ────────────────────────────────► decided: applied, answered
///       ▲                   │
///       └───────────────────┴ so many ERRORs that no quorum of OKs can exist: refused
///
///     refused:   fresh, by all, and nobody has stored an earlier attempt ──► dropped: it is nowhere, its clients are
///                                                                           told
///                fresh         ──► an empty entry in its place, by a further attempt
///                empty, and by now the one in whose place it is by all ──► dropped likewise
///                inherited, empty ──► the same again, by a further attempt, a keepalive later
///
/// One entry at a time is under way: entry N+1 gathers while N is being agreed on, so order costs no throughput, and
/// no entry can overtake another. A time-out is not an abort: a proposal stays until it is decided (rule 2).
///
/// Deviations from textbook two-phase commit, with reasons:
/// - A majority decides, not everybody (policy `majority`): else one dead tracker would stop all.
/// - A refusal by vote is not yet an abort (rule 15). A minority may have stored the entry, and a later master would
///   find it there and bring it back. So the master proposes an empty entry in its place, by a further *attempt*, and
///   tells the clients when that is decided. Only where every voter has refused is the entry nowhere, and aborted at
///   once. The last voters may say so when the empty one is under way already; where nobody can store that either,
///   for all disks are full, both are given up.
/// - There is no blocking wait for a dead coordinator: another one is elected, and finds what this one may have
///   decided. What it finds may have been decided, and is never given up.
///
/// Invariants: votes count only for the ballot proposed; a voter counts once, and only in the life that was welcomed.
package struct Proposer: Sendable, Hashable {
    /// What becomes of an entry that is refused.
    package enum Kind: UInt8, Sendable, Hashable {
        /// This master's own: it may be given up.
        case fresh
        /// Left by an earlier master, or by this one with other voters: it may be decided already, and is not given up.
        case inherited
        /// Empty, in the place of a refused one that some may have: not given up either.
        case void
    }

    package private(set) var proposed: Ballot?
    package private(set) var kind = Kind.fresh
    /// The attempt that the next proposal is.
    package private(set) var attempt: UInt32 = 0
    private var oks: [UInt32] = []
    private var errors: [UInt32] = []
    /// Whether somebody has stored the entry under way, be it in an earlier attempt: whoever cannot write a further one
    /// still has that.
    private var mayBeStored = false
    /// The entry in whose place an empty one is under way, as long as nobody is known to have stored it.
    private var replaced: Ballot?
    /// Who certainly has not stored that, and will not.
    private var refusers: [UInt32] = []
    /// Whether that is every voter, as of when the votes were last counted.
    private var isReplacedNowhere = false
    /// When the entry under way was first proposed in its attempt.
    private var proposedAt = Instant(nanoseconds: 0)
    /// When this master last asked for what it needs.
    private var sentAt = Instant(nanoseconds: 0)
    /// Whether the others have still to be told what was decided.
    private var owesCommit = false

    package init() {}

    package var isIdle: Bool { proposed == nil }

    // MARK: - Office

    /// Comes into office.
    ///
    /// - Parameter sentAt: when the voters were last asked for something, in the candidate.
    package mutating func begin(sentAt: Instant) {
        reset()
        self.sentAt = sentAt
    }

    /// Leaves it: what is under way is no longer this tracker's to decide.
    package mutating func reset() {
        attempt = 0
        owesCommit = false
        mayBeStored = false
        forgetReplaced()
        clear()
    }

    // MARK: - Proposing

    /// The next proposal's ballot.
    package mutating func propose(_ kind: Kind, _ epoch: Epoch, index: UInt64, now: Instant) -> Ballot {
        precondition(proposed == nil, "one entry at a time is under way")
        let ballot = Ballot(epoch: epoch, attempt: attempt, index: index)
        proposed = ballot
        self.kind = kind
        proposedAt = now
        sentAt = now
        // The PREPARE says up to where all is decided.
        owesCommit = false
        return ballot
    }

    /// Whether to ask again for what is missing, and then notes that it is asked.
    package mutating func takeResend(now: Instant, pause: Duration) -> Bool {
        guard now - sentAt >= pause else { return false }
        sentAt = now
        return true
    }

    /// Whether those who could not store the entry under way are to try once more, for nothing else decides it.
    package func mayRetryErrors(now: Instant, pause: Duration) -> Bool {
        !errors.isEmpty && now - proposedAt >= patience(pause)
    }

    /// Between two attempts: where the entry may still be given up, or nothing is left but to hear that nobody can
    /// store the empty one either, all have time to try, and to say so.
    ///
    /// Whoever could not write lets a pause go by before the next write. Attempts that followed each other as fast
    /// would each come before what is said of the one before, and nothing would ever be refused.
    private func patience(_ pause: Duration) -> Duration {
        isReplacedNowhere || kind == .fresh && !mayBeStored ? pause + EntryLog.writePause : pause
    }

    // MARK: - Votes

    /// A voter has the entry on its disk.
    package mutating func okReceived(from voter: UInt32, _ ballot: Ballot) {
        if ballot == replaced { forgetReplaced() }
        guard ballot == proposed, !oks.contains(voter) else { return }
        oks.append(voter)
        mayBeStored = true
        forgetErrors(of: voter)
    }

    /// A voter certainly does not have the entry on its disk.
    package mutating func errorReceived(from voter: UInt32, _ ballot: Ballot) {
        if ballot == replaced, !refusers.contains(voter) { refusers.append(voter) }
        guard ballot == proposed, !oks.contains(voter), !errors.contains(voter) else { return }
        errors.append(voter)
    }

    /// A voter has begun another life: it may not have what the last one had; it is asked again.
    package mutating func forgetVotes(of voter: UInt32) {
        oks.removeAll { $0 == voter }
        errors.removeAll { $0 == voter }
        refusers.removeAll { $0 == voter }
    }

    /// A voter tries again to write what it could not.
    package mutating func forgetErrors(of voter: UInt32) {
        if !errors.isEmpty { errors.removeAll { $0 == voter } }
    }

    package var hasErrors: Bool { !errors.isEmpty }

    /// Whether any vote on the entry under way has come; most steps find none.
    @inline(__always)
    package var hasVotes: Bool { !oks.isEmpty || !errors.isEmpty }

    package func hasVoted(_ voter: UInt32) -> Bool { oks.contains(voter) || errors.contains(voter) }

    /// Who has said OK.
    package var supporters: [UInt32] { oks }

    /// How a vote leaves the entry under way.
    package enum Decision: Sendable, Hashable {
        /// Not decided.
        case open
        case committed
        /// No quorum of OKs can exist; some voters may have stored it.
        case refused
        /// No voter has stored it, and none will.
        case refusedByAll
    }

    /// Looks whether the entry in whose place an empty one is under way has been refused by all by now.
    package mutating func countRefusers(_ electorate: Electorate) {
        if replaced != nil { isReplacedNowhere = electorate.isUnanimous(refusers) }
    }

    /// Counts the votes.
    ///
    /// An empty entry is refused by all where the one in whose place it is has been, too (`countRefusers`).
    package func decision(_ electorate: Electorate) -> Decision {
        guard proposed != nil else { return .open }
        if electorate.isQuorum(oks) { return .committed }
        guard electorate.isBlocked(by: errors) else { return .open }
        let isNowhere = electorate.isUnanimous(errors) && (kind == .void ? isReplacedNowhere : !mayBeStored)
        return isNowhere ? .refusedByAll : .refused
    }

    /// Counts the votes where one alone has a vote.
    package func decision(of voter: UInt32) -> Decision {
        guard proposed != nil else { return .open }
        if oks.contains(voter) { return .committed }
        return errors.contains(voter) ? .refusedByAll : .open
    }

    // MARK: - Decided

    /// The entry under way is decided.
    package mutating func committed() {
        attempt = 0
        owesCommit = true
        mayBeStored = false
        forgetReplaced()
        clear()
    }

    /// The entry under way is refused: its index is tried again.
    ///
    /// `consequence` is what comes of that.
    package mutating func refused(_ consequence: Consequence) {
        attempt += 1
        switch consequence {
        case .void, .drop:
            if consequence == .void, kind == .fresh, !mayBeStored {
                (replaced, refusers) = (proposed, errors)
            } else {
                forgetReplaced()
            }
            mayBeStored = false
        // Whoever has it from this attempt does not refuse the next.
        case .again, .wait: break
        }
        clear()
    }

    private mutating func forgetReplaced() {
        replaced = nil
        refusers = []
        isReplacedNowhere = false
    }

    /// What a refusal of the entry under way leads to.
    package enum Consequence: Sendable, Hashable {
        /// Nothing yet.
        case wait
        /// The same entry is proposed again.
        case again
        /// An empty entry is proposed in its place.
        case void
        /// It is nowhere, and given up.
        case drop
    }

    /// Decides what becomes of an entry that is refused.
    ///
    /// - Parameters:
    ///   - isNowhere: whether no voter has stored it, and nobody will bring it in anew.
    ///   - now: the monotonic clock.
    ///   - pause: between two attempts of an entry that is not given up.
    /// - Returns: what to do about it now.
    package func consequence(isNowhere: Bool, now: Instant, pause: Duration) -> Consequence {
        switch kind {
        // Who may have stored the empty one alone harms nobody: in this attempt it will not be decided.
        case .void where isNowhere || isReplacedNowhere && now - proposedAt >= patience(pause): .drop
        case .inherited, .void: now - proposedAt >= patience(pause) ? .again : .wait
        case .fresh: isNowhere ? .drop : .void
        }
    }

    /// Whether the others have still to be told what was decided; they are, then.
    package mutating func takeCommit() -> Bool {
        defer { owesCommit = false }
        return owesCommit
    }

    private mutating func clear() {
        proposed = nil
        kind = .fresh
        if !oks.isEmpty { oks.removeAll(keepingCapacity: true) }
        if !errors.isEmpty { errors.removeAll(keepingCapacity: true) }
    }
}

extension Proposer {
    /// Takes in all state on which a master's later steps depend.
    ///
    /// - Parameters:
    ///   - print: the node's fingerprint so far.
    ///   - voters: all who may have voted, this master too.
    func absorb(into print: inout Fingerprint, voters: [UInt32]) {
        print.absorb(proposed) { $0.absorb($1) }
        print.absorb(attempt)
        print.absorb(unordered: oks) { $0.absorb($1) }
        print.absorb(unordered: voters.filter { errors.contains($0) }) { $0.absorb($1) }
        print.absorb(kind == .fresh && mayBeStored)
        print.absorb(replaced) { $0.absorb($1) }
        print.absorb(unordered: voters.filter { refusers.contains($0) }) { $0.absorb($1) }
        print.absorb(owesCommit)
    }

    /// The same, of what only a master looks at.
    func absorbPauses(into print: inout Fingerprint, now: Instant, retryPause: Duration, keepalive: Duration) {
        print.absorb(now - sentAt >= retryPause)
        print.absorb(!isIdle && now - proposedAt >= patience(keepalive))
        print.absorb(kind == .void)
        print.absorb(kind == .inherited)
    }
}

extension Proposer {
    mutating func walk(_ archive: inout Archive) {
        proposed.walk(&archive)
        kind.walk(&archive)
        attempt.walk(&archive)
        oks.walk(&archive)
        errors.walk(&archive)
        mayBeStored.walk(&archive)
        replaced.walk(&archive)
        refusers.walk(&archive)
        isReplacedNowhere.walk(&archive)
        proposedAt.walk(&archive)
        sentAt.walk(&archive)
        owesCommit.walk(&archive)
    }
}

extension Proposer.Kind: Archived { static var blank: Proposer.Kind { .fresh } }
