/// Agreement on one entry after another: phase 2 of Multi-Paxos in the words of two-phase commit.
///
///           propose                     a quorum of OKs of this ballot
///     idle ─────────► proposed(ballot) ────────────────────────────────► committed: applied, answered
///       ▲                   │
///       └───────────────────┴ so many ERRORs that no quorum of OKs can exist: refused
///
/// One entry at a time is under way: entry N+1 gathers while N is being agreed on, so order costs no throughput, and
/// no entry can overtake another. A time-out is not an abort: a proposal stays until it is decided.
///
/// Deviations from textbook two-phase commit, with reasons:
/// - A majority decides, not everybody (policy `majority`): else one dead tracker would stop all.
/// - A refusal by vote is not yet an abort. A minority may have stored the entry, and a later master would find it
///   there and bring it back. So the master proposes an empty entry in its place, by a further *attempt*, and tells the
///   clients when that is decided. Only where every voter has refused is the entry nowhere, and aborted at once.
/// - There is no blocking wait for a dead coordinator: another one is elected, and finds what this one may have
///   decided.
///
/// Invariants: votes count only for the ballot proposed; a voter counts once, and only in the life that was welcomed.

import Primitives
import Wire

struct Replication: Sendable, Hashable {
    private(set) var proposed: Ballot?
    /// The attempt that the next proposal is.
    private(set) var attempt: UInt32 = 0
    private var oks: [UInt32] = []
    private var errors: [UInt32] = []

    var isIdle: Bool { proposed == nil }

    /// The next proposal's ballot.
    mutating func propose(_ epoch: Epoch, index: UInt64) -> Ballot {
        precondition(proposed == nil, "one entry at a time is under way")
        let ballot = Ballot(epoch: epoch, attempt: attempt, index: index)
        proposed = ballot
        return ballot
    }

    /// How a vote leaves the entry under way.
    enum Decision: Sendable, Hashable {
        /// Not decided.
        case open
        case committed
        /// No quorum of OKs can exist; some voters may have stored it.
        case refused
        /// No voter has stored it, and none will.
        case refusedByAll
    }

    /// A voter has the entry on its disk.
    mutating func okReceived(from voter: UInt32, _ ballot: Ballot) {
        guard ballot == proposed, !oks.contains(voter) else { return }
        oks.append(voter)
        errors.removeAll { $0 == voter }
    }

    /// A voter certainly does not have the entry on its disk.
    mutating func errorReceived(from voter: UInt32, _ ballot: Ballot) {
        guard ballot == proposed, !oks.contains(voter), !errors.contains(voter) else { return }
        errors.append(voter)
    }

    /// A voter has begun another life: it may not have what the last one had; it is asked again.
    mutating func forgetVotes(of voter: UInt32) {
        oks.removeAll { $0 == voter }
        errors.removeAll { $0 == voter }
    }

    /// A voter tries again to write what it could not.
    mutating func forgetErrors(of voter: UInt32) { errors.removeAll { $0 == voter } }

    var hasErrors: Bool { !errors.isEmpty }

    func hasVoted(_ voter: UInt32) -> Bool { oks.contains(voter) || errors.contains(voter) }

    /// Who has said OK.
    var supporters: [UInt32] { oks }

    /// Counts the votes.
    func decision(_ electorate: Electorate) -> Decision {
        guard proposed != nil else { return .open }
        if electorate.isQuorum(oks) { return .committed }
        guard electorate.isBlocked(by: errors) else { return .open }
        return electorate.isUnanimous(errors) ? .refusedByAll : .refused
    }

    /// The entry under way is decided.
    mutating func committed() {
        attempt = 0
        clear()
    }

    /// The entry under way is refused: its index is tried again.
    mutating func refused() {
        attempt += 1
        clear()
    }

    /// Begins to lead, or ceases to.
    mutating func reset() {
        attempt = 0
        clear()
    }

    private mutating func clear() {
        proposed = nil
        oks.removeAll(keepingCapacity: true)
        errors.removeAll(keepingCapacity: true)
    }
}
