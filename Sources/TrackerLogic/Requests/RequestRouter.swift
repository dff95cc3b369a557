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

    fileprivate struct Outgoing: Sendable, Hashable {
        var life: Life
        var answer: AnsweredRequest
    }

    /// What this tracker has heard itself.
    private(set) var book: RequestBook
    /// In a group: the last requests that were settled, so that what a slave forwards late is not answered again.
    private var recentKeys = RecentKeys()
    private var overflow: [Forwarded] = []
    private var outbox: [Outgoing] = []
    /// In a group: requests that were answered without an entry, in this step.
    private var settledKeys: [UInt64] = []
    /// When requests were last forwarded.
    private var lastForwardAt = Instant(nanoseconds: 0)
    /// In a group: until when this tracker does not heed what its sockets hold, for it may be old.
    private var deafUntil = Instant(nanoseconds: 0)

    init(isKeyed: Bool, maxCount: Int) { book = RequestBook(isKeyed: isKeyed, maxCount: maxCount) }

    // MARK: - Hearing

    /// This process was held up: what has piled up in its sockets the others have answered long ago.
    mutating func ignoreSockets(until time: Instant) { deafUntil = time }

    func heedsSockets(now: Instant) -> Bool { deafUntil <= now }

    // MARK: - The book

    var isEmpty: Bool { book.isEmpty }
    var isFull: Bool { book.isFull }
    /// Whether as many connects are booked as may be.
    var isFullOfConnects: Bool { book.isFullOfConnects }
    /// Requests of this tracker's own clients that wait.
    var count: Int { book.count }
    /// Below this number, nobody waits.
    var floor: UInt64 { book.floor }
    /// The number that the next request gets.
    var nextNumber: UInt64 { book.nextNumber }

    subscript(number: UInt64) -> BookedRequest? { book[number] }

    /// What a request asks, as it goes to the master.
    func content(of number: UInt64) -> ForwardedRequest.Content { book.content(of: number) }

    /// Books a request that was taken at once, and that nobody could have to take up again.
    mutating func add(_ request: BookedRequest) { book.add(request) }

    /// Books a datagram.
    ///
    /// - Returns: its number.
    @discardableResult
    mutating func add(_ request: BookedRequest, _ datagram: RawSpan) -> UInt64 { book.add(request, datagram) }

    /// Books what came over HTTP.
    mutating func add(_ request: BookedRequest, _ visit: ForwardedRequest.Content) { book.add(request, visit) }

    /// Takes a request out.
    ///
    /// - Returns: who is to be answered.
    @discardableResult
    mutating func remove(_ number: UInt64) -> WaitingRequest? { book.remove(number) }

    mutating func removeAll() -> [BookedRequest] { book.removeAll() }

    /// Takes out what is too old; see `RequestBook`.
    mutating func removeStale(now: Instant, leading: Epoch?, keepsReads: Bool) -> [BookedRequest] {
        book.removeStale(now: now, leading: leading, keepsReads: keepsReads)
    }

    // MARK: - Keys of a group

    /// The oldest request of a key.
    func find(key: UInt64) -> UInt64? { book.find(key: key) }

    /// Whether a datagram is a copy of one that waits, or that was settled just now.
    func isKnown(_ key: UInt64, now: Instant) -> Bool {
        book.find(key: key) != nil || recentKeys.isRecent(key, now: now)
    }

    /// Whether a request that another tracker forwards was settled: within a time, or behind an index.
    func isRecent(_ key: UInt64, within memory: Duration, now: Instant) -> Bool {
        recentKeys.isRecent(key, within: memory, now: now)
    }

    func isSettled(_ key: UInt64, behind index: UInt64) -> Bool { recentKeys.isSettled(key, behind: index) }

    /// All that entries behind this index have settled is remembered.
    var remembersSince: UInt64 { recentKeys.completeSince }

    /// Remembers what came with a state.
    mutating func remember(_ settled: [SettledKey], through index: UInt64, now: Instant) {
        recentKeys.insert(settled, through: index, now: now)
    }

    // MARK: - Handing on

    /// The next request that the master of an epoch does not have yet.
    mutating func nextUnforwarded(_ epoch: Epoch) -> UInt64? { book.nextUnforwarded(epoch) }

    /// Whether there may be requests that the master of an epoch does not have yet; `nextUnforwarded` knows.
    func hasUnforwarded(_ epoch: Epoch) -> Bool { book.hasUnforwarded(epoch) }

    mutating func markForwarded(_ number: UInt64, _ epoch: Epoch, now: Instant) {
        book.markForwarded(number, epoch, now: now)
    }

    /// What the master was sent before a time and has not settled may be lost.
    mutating func returnForwarded(sentBefore time: Instant, epoch: Epoch) {
        book.returnForwarded(sentBefore: time, epoch: epoch)
    }

    /// When what waits may be forwarded next.
    func forwardsAt(pause: Duration) -> Instant { lastForwardAt + pause }

    /// Requests were forwarded.
    mutating func noteForwarded(now: Instant) { lastForwardAt = now }

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

    /// Whether anything was; most steps find that nothing was.
    var hasSettled: Bool { !settledKeys.isEmpty }

    /// Takes the notes for the others of what was answered without an entry.
    mutating func takeSettled() -> [AnsweredRequest] {
        defer { settledKeys.removeAll(keepingCapacity: true) }
        return settledKeys.map { AnsweredRequest(number: $0, content: .counts([])) }
    }

    /// The role is lost: those who wait are still in the books of who heard them.
    mutating func leaveOffice() {
        outbox = []
        overflow = []
    }
}

extension RequestRouter {
    mutating func walk(_ archive: inout Archive) {
        book.walk(&archive)
        recentKeys.walk(&archive)
        overflow.walk(&archive)
        outbox.walk(&archive)
        settledKeys.walk(&archive)
        lastForwardAt.walk(&archive)
        deafUntil.walk(&archive)
    }
}

extension RequestRouter.Forwarded: Archived {
    static var blank: RequestRouter.Forwarded { RequestRouter.Forwarded(life: .blank, request: .blank) }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        request.walk(&archive)
    }
}

extension RequestRouter.Outgoing: Archived {
    static var blank: RequestRouter.Outgoing { RequestRouter.Outgoing(life: .blank, answer: .blank) }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        answer.walk(&archive)
    }
}
