/// Reads that wait until it is certain that their master still is one (design 3.4, rule 5).
///
/// A read that came while a round was under way waits for the next: only a confirmation that was asked for after the
/// read came says that nobody else had been master when it came. One round serves all that wait. There is no lease: a
/// lease trusts clocks, a round trusts nobody, and costs one message each way without a write.
///
///     waiting ── round begins ──► asked ── a quorum confirms ──► answered
///
/// Invariant: at most `maxCount` reads wait.

import Primitives
import Wire

struct WaitingRead: Sendable, Hashable {
    /// Whose client asks.
    var life: Life
    /// The request's number there.
    var number: UInt64
    var infoHashes: [InfoHash]
}

struct ReadRounds: Sendable, Hashable {
    static let maxCount = 4096

    /// Reads for the next round.
    private var waiting: [WaitingRead] = []
    /// Reads of the round under way.
    private var asked: [WaitingRead] = []
    private var confirmedBy: [UInt32] = []
    private(set) var round: UInt64 = 0

    var count: Int { waiting.count + asked.count }
    var isRoundUnderWay: Bool { !asked.isEmpty }

    /// - Returns: whether there was room.
    mutating func add(_ read: WaitingRead) -> Bool {
        guard count < ReadRounds.maxCount else { return false }
        waiting.append(read)
        return true
    }

    func contains(_ life: Life, _ number: UInt64) -> Bool {
        waiting.contains { $0.number == number && $0.life == life }
            || asked.contains { $0.number == number && $0.life == life }
    }

    /// Begins a round where none is under way and somebody waits.
    ///
    /// - Returns: whether to ask the others.
    mutating func begin() -> Bool {
        guard asked.isEmpty, !waiting.isEmpty else { return false }
        swap(&asked, &waiting)
        round += 1
        confirmedBy.removeAll(keepingCapacity: true)
        return true
    }

    /// A voter follows still.
    mutating func confirmed(by id: UInt32, round: UInt64) {
        guard round == self.round, !asked.isEmpty, !confirmedBy.contains(id) else { return }
        confirmedBy.append(id)
    }

    /// The reads that may be answered now, where a quorum has confirmed.
    mutating func take(_ electorate: Electorate) -> [WaitingRead] {
        guard !asked.isEmpty, electorate.isQuorum(confirmedBy) else { return [] }
        defer { asked = [] }
        return asked
    }

    /// The master is none any more: those who asked are heard by the next.
    mutating func removeAll() {
        waiting = []
        asked = []
    }
}
