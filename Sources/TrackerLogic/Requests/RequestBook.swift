/// Requests that this tracker has heard and that are not answered yet, each with a number (rule 18).
///
///     heard ── taken (by this master), or sent on (to another) ──► its ticket applied, or answered: out
///       ▲                                                  │
///       └──────────── the master changes: all anew ────────┘
///
/// The tracker that heard a request answers it, whoever is master; what no master has decided is handed to the next.
/// In a multicast group, all keep what they heard until they see it decided.
///
/// Invariants: at most as many requests as configured; none older than `maxAge`, for by then its client has asked
/// again.

import Primitives
import Wire

struct BookedRequest: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case connect, announce, scrape
    }

    /// Who is to be answered, and how.
    var waiting: WaitingRequest
    /// What the content is, so that it is not read again to know.
    var kind: Kind
    var content: ForwardedRequest.Content
    /// In a group: what all trackers call it.
    var key: UInt64
    var heardAt: Instant
    /// When it was last sent on, in the epoch of `handedIn`.
    var handedAt: Instant
    /// The epoch whose master has it.
    var handedIn = Epoch.zero

    /// Whether it goes into no entry.
    var isRead: Bool { kind != .announce }

    /// Whether, in a group, the master has heard it too and answers it: what came over HTTP one tracker alone has
    /// heard.
    var isGroupsRead: Bool { isRead && waiting.clientRequest == nil }
}

struct RequestBook: Sendable, Equatable {
    /// BEP 15 has a client ask again after 15 s.
    private static let maxAge = Duration.seconds(15)
    /// In a group, what one tracker hands on late another may have settled long ago without an entry: it has to come
    /// while that is remembered (`RecentKeys.memory`), with three seconds to spare for the way.
    private static let maxGroupAge = Duration.seconds(9)

    /// In the order of their numbers; nil where they are done.
    private var requests: [BookedRequest?] = []
    /// The number of the first of them.
    private(set) var floor: UInt64 = 0
    private(set) var count = 0
    /// Connects among them: they prove nothing, and anybody can send them in anybody's name.
    private var connectCount = 0
    /// Below this place, all were handed to the master of `handedEpoch`.
    private var handedCount = 0
    private var handedEpoch = Epoch.zero
    /// By key, for a group.
    private var keys = SlotIndex()
    private let isKeyed: Bool

    private let maxCount: Int
    private var maxAge: Duration { isKeyed ? RequestBook.maxGroupAge : RequestBook.maxAge }

    init(isKeyed: Bool, maxCount: Int) {
        self.isKeyed = isKeyed
        self.maxCount = maxCount
    }

    var isEmpty: Bool { count == 0 }
    /// Whether as many connects are booked as may be: half of the book is for those who have proven their address.
    var isFullOfConnects: Bool { connectCount >= maxCount - maxCount / 2 }
    var isFull: Bool { count >= maxCount || requests.count >= SeenWindow.width - 1 }

    private func place(of number: UInt64) -> Int? {
        guard number >= floor, number - floor < UInt64(requests.count) else { return nil }
        return Int(number - floor)
    }

    subscript(number: UInt64) -> BookedRequest? { place(of: number).flatMap { requests[$0] } }

    /// Books a request.
    ///
    /// - Returns: its number.
    mutating func add(_ request: BookedRequest) -> UInt64 {
        precondition(!isFull, "a full book takes nothing")
        let number = floor + UInt64(requests.count)
        requests.append(request)
        count += 1
        if request.kind == .connect { connectCount += 1 }
        if isKeyed { keys.insert(UInt32(truncatingIfNeeded: request.key), slot: Int(number % UInt64(1 << 30))) }
        return number
    }

    /// The oldest request of a key; retransmissions share theirs.
    func find(key: UInt64) -> UInt64? {
        guard isKeyed else { return nil }
        let slot = keys.find(UInt32(truncatingIfNeeded: key)) { slot in
            let base = floor % UInt64(1 << 30)
            let offset = (UInt64(slot) + UInt64(1 << 30) - base) % UInt64(1 << 30)
            return self[floor + offset]?.key == key
        }
        return slot.map { floor + (UInt64($0) + UInt64(1 << 30) - floor % UInt64(1 << 30)) % UInt64(1 << 30) }
    }

    /// Takes a request out.
    @discardableResult
    mutating func remove(_ number: UInt64) -> BookedRequest? {
        guard let place = place(of: number), let request = requests[place] else { return nil }
        requests[place] = nil
        count -= 1
        if request.kind == .connect { connectCount -= 1 }
        if isKeyed { keys.remove(UInt32(truncatingIfNeeded: request.key), slot: Int(number % UInt64(1 << 30))) }
        compact()
        return request
    }

    private mutating func compact() {
        var gone = 0
        // Matched, not compared: `==` copies what it looks at.
        while gone < requests.count, case nil = requests[gone] { gone += 1 }
        guard gone == requests.count || gone >= 256 else { return }
        requests.removeFirst(gone)
        floor += UInt64(gone)
        handedCount = max(0, handedCount - gone)
    }

    /// The next request that the master of an epoch does not have yet.
    mutating func nextUnhanded(_ epoch: Epoch) -> UInt64? {
        if handedEpoch != epoch {
            handedEpoch = epoch
            handedCount = 0
        }
        while handedCount < requests.count {
            if let request = requests[handedCount], request.handedIn != epoch { return floor + UInt64(handedCount) }
            handedCount += 1
        }
        return nil
    }

    /// Whether there may be requests that the master of an epoch does not have yet; `nextUnhanded` knows.
    func hasUnhanded(_ epoch: Epoch) -> Bool { handedEpoch != epoch || handedCount < requests.count }

    mutating func hand(_ number: UInt64, _ epoch: Epoch, now: Instant) {
        guard let place = place(of: number) else { return }
        requests[place]?.handedIn = epoch
        requests[place]?.handedAt = now
    }

    /// Those that the master was sent before a time and has not settled: they may be lost.
    mutating func unhand(sentBefore time: Instant, epoch: Epoch) {
        for place in requests.indices {
            guard let request = requests[place], request.handedIn == epoch, request.handedAt <= time else { continue }
            requests[place]?.handedIn = .zero
            handedCount = min(handedCount, place)
        }
    }

    /// Takes out what is too old, but for what this master has taken into an entry.
    ///
    /// - Parameters:
    ///   - now: the monotonic clock.
    ///   - leading: the epoch that this tracker leads, if it does.
    /// - Returns: what was taken out, in the order in which it was heard.
    mutating func removeStale(now: Instant, leading: Epoch?) -> [BookedRequest] {
        var stale: [BookedRequest] = []
        guard !isEmpty else { return stale }
        var number = floor
        let end = floor + UInt64(requests.count)
        // In the order in which they were heard.
        while number < end {
            defer { number += 1 }
            guard let request = self[number] else { continue }
            guard now - request.heardAt >= maxAge else { break }
            if let leading, request.handedIn == leading { continue }
            remove(number)
            stale.append(request)
        }
        return stale
    }

    /// Takes everything out.
    mutating func removeAll() -> [BookedRequest] {
        let all = requests.compactMap { $0 }
        floor += UInt64(requests.count)
        requests = []
        count = 0
        connectCount = 0
        handedCount = 0
        keys = SlotIndex()
        return all
    }
}
