// Reads that wait until it is certain that their master still is one (rule 5).

import Primitives
import Wire

package struct WaitingRead: Sendable, Hashable {
    /// Whose client asks.
    package var life: Life
    /// The request's number there.
    package var number: UInt64
    package var infoHashes: [InfoHash]

    package init(life: Life, number: UInt64, infoHashes: [InfoHash]) {
        self.life = life
        self.number = number
        self.infoHashes = infoHashes
    }
}

/// Reads that wait until it is certain that their master still is one (rule 5).
///
/// A read that came while a round was under way waits for the next: only a confirmation that was asked for after the
/// read came says that nobody else had been master when it came. One round serves all that wait. There is no lease: a
/// lease trusts clocks, a round trusts nobody, and costs one message each way without a write.
///
///     waiting ── round begins ──► asked ── a quorum confirms ──► answered
///
/// A tracker that has lost its memory waits for such a round, too, before its master lets it in: it may have promised
/// another master, and a vote that it is given by one who has not heard of that would take the promise back. Here its
/// own word does not count: the quorum is one without it.
///
/// Invariant: at most `maxCount` reads wait, and of each tracker without memory one life.
package struct ReadConfirmation: Sendable, Hashable {
    package static let maxCount = 4096

    /// Reads for the next round.
    private var waiting: [WaitingRead] = []
    /// Reads of the round under way.
    private var asked: [WaitingRead] = []
    /// Lives without memory that have said hello: for the next round, and of the round under way.
    private var newcomers: [Life] = []
    private var askedNewcomers: [Life] = []
    private var confirmedBy: [UInt32] = []
    package private(set) var round: UInt64 = 0
    /// When the others were last asked; apart from the proposal's, so that a steady stream of reads does not delay the
    /// resending of a PREPARE, nor one of announces that of a CONFIRM.
    private var sentAt = Instant(nanoseconds: 0)

    package init() {}

    package var count: Int { waiting.count + asked.count }
    /// Lives without memory that wait to be let in.
    package var waitingNewcomers: [Life] { askedNewcomers + newcomers }
    package var isRoundUnderWay: Bool { !asked.isEmpty || !askedNewcomers.isEmpty }

    /// - Returns: whether there was room.
    package mutating func add(_ read: WaitingRead) -> Bool {
        guard count < ReadConfirmation.maxCount else { return false }
        waiting.append(read)
        return true
    }

    /// A life without memory has said hello.
    ///
    /// A round that is under way for it began after that.
    package mutating func add(newcomer life: Life) {
        guard !askedNewcomers.contains(life) else { return }
        newcomers.removeAll { $0.id == life.id }
        newcomers.append(life)
    }

    package func contains(_ life: Life, _ number: UInt64) -> Bool {
        waiting.contains { $0.number == number && $0.life == life }
            || asked.contains { $0.number == number && $0.life == life }
    }

    /// Begins a round where none is under way and somebody waits.
    ///
    /// - Parameters:
    ///   - isServing: whether reads may be answered yet.
    ///   - now: the monotonic clock.
    /// - Returns: whether to ask the others.
    package mutating func begin(isServing: Bool, now: Instant) -> Bool {
        guard !isRoundUnderWay, isServing && !waiting.isEmpty || !newcomers.isEmpty else { return false }
        if isServing { swap(&asked, &waiting) }
        swap(&askedNewcomers, &newcomers)
        round += 1
        sentAt = now
        confirmedBy.removeAll(keepingCapacity: true)
        return true
    }

    /// Whether the others are to be asked again.
    package func isDue(now: Instant, pause: Duration) -> Bool { isRoundUnderWay && now - sentAt >= pause }

    /// Whether the others are to be asked again; they are, then.
    package mutating func takeResend(now: Instant, pause: Duration) -> Bool {
        guard isDue(now: now, pause: pause) else { return false }
        sentAt = now
        return true
    }

    /// A voter follows still.
    package mutating func confirmed(by id: UInt32, round: UInt64) {
        guard round == self.round, isRoundUnderWay, !confirmedBy.contains(id) else { return }
        confirmedBy.append(id)
    }

    /// The reads that may be answered now, where a quorum has confirmed.
    package mutating func take(_ electorate: Electorate) -> [WaitingRead] {
        guard !asked.isEmpty, electorate.isQuorum(confirmedBy) else { return [] }
        defer { asked = [] }
        return asked
    }

    /// The newcomers that may be let in now, where a quorum has confirmed that they are not of; the others of the round
    /// ask again.
    package mutating func takeNewcomers(_ electorate: Electorate) -> [Life] {
        guard !askedNewcomers.isEmpty, electorate.isQuorum(confirmedBy) else { return [] }
        defer { askedNewcomers = [] }
        return askedNewcomers.filter { life in electorate.isQuorum(confirmedBy.filter { $0 != life.id }) }
    }

    /// The master is none any more: those who asked are heard by the next.
    package mutating func removeAll() {
        waiting = []
        asked = []
        newcomers = []
        askedNewcomers = []
    }
}

extension ReadConfirmation {
    mutating func walk(_ archive: inout Archive) {
        waiting.walk(&archive)
        asked.walk(&archive)
        newcomers.walk(&archive)
        askedNewcomers.walk(&archive)
        confirmedBy.walk(&archive)
        round.walk(&archive)
        sentAt.walk(&archive)
    }
}

extension WaitingRead: Archived {
    static var blank: WaitingRead { WaitingRead(life: .blank, number: 0, infoHashes: []) }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        number.walk(&archive)
        infoHashes.walk(&archive)
    }
}
