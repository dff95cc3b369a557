// Requests and answers on their way between trackers.

import Primitives
import Wire

/// What a tracker keeps of requests while it, or another tracker, has still to answer them.
///
///     heard ──► book ──► into the entry that gathers (master), or FORWARD (slave)
///     FORWARD ──► into the entry that gathers, or overflow until the next one has room
///     answered without an entry ──► outbox: ANSWERED, at the end of the step
///
/// Invariants: each list is bounded (docs/bounds.md); the outbox is empty between steps.
struct RequestRouter: Sendable, Equatable {
    /// A request of another tracker's client that the next entry is to take up.
    struct Forwarded: Sendable, Hashable {
        var life: Life
        var request: ForwardedRequest
    }

    private struct Outgoing: Sendable, Hashable {
        var life: Life
        var answer: AnsweredRequest
    }

    /// What this tracker has heard itself.
    var book: RequestBook
    /// In a group: the last requests that were settled, so that what a slave hands on late is not answered again.
    var recentKeys = RecentKeys()
    private var overflow: [Forwarded] = []
    private var outbox: [Outgoing] = []
    /// In a group: requests that were answered without an entry, in this step.
    private var settledKeys: [UInt64] = []
    /// When requests were last handed on.
    private var handedOnAt = Instant(nanoseconds: 0)
    /// In a group: until when this tracker does not heed what its sockets hold, for it may be old.
    private var deafUntil = Instant(nanoseconds: 0)

    init(isKeyed: Bool, maxCount: Int) { book = RequestBook(isKeyed: isKeyed, maxCount: maxCount) }

    // MARK: - Hearing

    /// This process was held up: what has piled up in its sockets the others have answered long ago.
    mutating func ignoreSockets(until time: Instant) { deafUntil = time }

    func heedsSockets(now: Instant) -> Bool { deafUntil <= now }

    // MARK: - Handing on

    /// When what waits may be handed on next.
    func handsOnAt(pause: Duration) -> Instant { handedOnAt + pause }

    /// Requests were handed on.
    mutating func handedOn(now: Instant, pause: Duration) { if pause > .zero { handedOnAt = now } }

    // MARK: - Overflow

    var hasOverflow: Bool { !overflow.isEmpty }

    /// Keeps a request for the next entry.
    mutating func postpone(_ request: ForwardedRequest, of life: Life) {
        overflow.append(Forwarded(life: life, request: request))
    }

    /// Whether another request may be postponed.
    func hasRoom(_ limit: Int) -> Bool { overflow.count < limit }

    /// One of those that the last entry had no room for, the oldest first; nil behind the last.
    func overflow(at place: Int) -> Forwarded? { place < overflow.count ? overflow[place] : nil }

    mutating func removeOverflow(_ count: Int) { overflow.removeFirst(count) }

    // MARK: - Answers

    /// An answer goes to another tracker at the end of the step.
    mutating func send(_ answer: AnsweredRequest, to life: Life) { outbox.append(Outgoing(life: life, answer: answer)) }

    var outboxCount: Int { outbox.count }

    /// Takes the answers for the next tracker that has some.
    mutating func takeAnswers() -> (life: Life, answers: [AnsweredRequest])? {
        guard let life = outbox.first?.life else { return nil }
        let answers = outbox.filter { $0.life == life }.map { $0.answer }
        outbox.removeAll { $0.life == life }
        return (life, answers)
    }

    /// In a group: a request was settled.
    mutating func remember(_ key: UInt64, at index: UInt64, now: Instant) {
        recentKeys.insert(key, at: index, now: now)
    }

    /// In a group: a request was answered without an entry; the others are to know.
    mutating func noteSettled(_ key: UInt64) { settledKeys.append(key) }

    /// Takes the notes for the others of what was answered without an entry.
    mutating func takeSettled() -> [AnsweredRequest] {
        guard !settledKeys.isEmpty else { return [] }
        defer { settledKeys.removeAll(keepingCapacity: true) }
        return settledKeys.map { AnsweredRequest(number: $0, content: .counts([])) }
    }

    /// The role is lost: those who wait are still in the books of who heard them.
    mutating func leaveOffice() {
        outbox = []
        overflow = []
    }
}
