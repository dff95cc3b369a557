// Requests that this tracker has heard and that are not answered yet.

import Primitives
import Wire

struct BookedRequest: Sendable, Hashable {
    enum Kind: UInt8, Sendable, Hashable {
        case connect, announce, scrape
    }

    /// Where that lies which it asks, for whoever has to take it up: a request itself holds no references, for it is
    /// copied into its place and out of it.
    enum Content: Sendable, Hashable {
        /// A datagram, as it came: where it lies in the book's bytes, counted from the first that it ever held.
        case datagram(start: UInt64, byteCount: Int)
        /// What came over HTTP: among the book's visits.
        case visit
        /// It is in an entry, and nobody could have to take it up again.
        case forgotten
    }

    /// Who is to be answered, and how.
    var waiting: WaitingRequest
    /// What the content is, so that it is not read again to know.
    var kind: Kind
    fileprivate(set) var content = Content.forgotten
    /// In a group: what all trackers call it.
    var key: UInt64
    var heardAt: Instant
    /// When it was last sent on, in the epoch of `forwardedIn`.
    var forwardedAt: Instant
    /// The epoch whose master has it.
    var forwardedIn: Epoch

    /// A request that has just been heard; `epoch` is that of the master that has it already, or zero.
    @inline(__always)
    init(
        _ waiting: WaitingRequest, _ kind: Kind, key: UInt64, takenIn epoch: Epoch = .zero, _ now: ClockReading
    ) {
        self.waiting = waiting
        self.kind = kind
        self.key = key
        heardAt = now.monotonic
        forwardedAt = now.monotonic
        forwardedIn = epoch
    }

    /// Whether it goes into no entry.
    var isRead: Bool { kind != .announce }

    /// Whether, in a group, the master has heard it too and answers it: what came over HTTP one tracker alone has
    /// heard.
    var isGroupsRead: Bool { isRead && waiting.clientRequest == nil }
}

/// Requests that this tracker has heard and that are not answered yet, each with a number (rule 18).
///
///     heard ── taken (by this master), or sent on (to another) ──► its ticket applied, or answered: out
///       ▲                                                  │
///       └──────────── the master changes: all anew ────────┘
///
/// The tracker that heard a request answers it, whoever is master; what no master has decided is handed to the next.
/// In a multicast group, all keep what they heard until they see it decided.
///
/// Datagrams lie one behind another in one buffer, which is used again: to book one costs no allocation.
///
/// Invariants: at most as many requests as configured, and bytes of datagrams; none older than `maxAge`, for by then
/// its client has asked again.
struct RequestBook: Sendable, Equatable {
    /// BEP 15 has a client ask again after 15 s.
    private static let maxAge = Duration.seconds(15)
    /// In a group, what one tracker forwards late another may have settled long ago without an entry: it has to come
    /// while that is remembered (`RecentKeys.memory`), with three seconds to spare for the way.
    private static let maxGroupAge = Duration.seconds(9)
    /// Bytes of datagrams for each request that may wait: an announce has 98, and some for its options; one datagram
    /// has 2,048 at most.
    private static let datagramByteCount = 512
    /// Room that is kept while nobody waits.
    private static let keptByteCount = 1_048_576

    /// In the order of their numbers; nil where they are done.
    private(set) var requests: [BookedRequest?] = []
    /// How many of the first of them are done.
    private(set) var doneCount = 0
    /// The number of the first of them.
    private(set) var floor: UInt64 = 0
    /// The datagrams among them, and what has gone before the first of these bytes.
    private(set) var bytes: [UInt8] = []
    private(set) var goneByteCount: UInt64 = 0
    /// What came over HTTP, in the order of the numbers.
    private(set) var visits: [Visit] = []

    struct Visit: Sendable, Hashable {
        var number: UInt64
        var content: ForwardedRequest.Content
    }

    private(set) var count = 0
    /// Connects among them: they prove nothing, and anybody can send them in anybody's name.
    private(set) var connectCount = 0
    /// Below this place, all were handed to the master of `forwardedEpoch`; begun anew with the first request.
    private(set) var forwardedCount = 0
    private(set) var forwardedEpoch = Epoch.zero
    /// By key, for a group.
    private(set) var keys = SlotIndex()
    let isKeyed: Bool

    private let maxCount: Int
    private let maxByteCount: Int
    private var maxAge: Duration { isKeyed ? RequestBook.maxGroupAge : RequestBook.maxAge }

    init(isKeyed: Bool, maxCount: Int) {
        self.isKeyed = isKeyed
        self.maxCount = maxCount
        let (product, overflows) = maxCount.multipliedReportingOverflow(by: RequestBook.datagramByteCount)
        maxByteCount = overflows ? .max : product
    }

    var isEmpty: Bool { count == 0 }
    /// Whether as many connects are booked as may be: half of the book is for those who have proven their address.
    var isFullOfConnects: Bool { connectCount >= maxCount - maxCount / 2 }
    var isFull: Bool {
        count >= maxCount || requests.count >= SeenWindow.width - 1 || bytes.count >= maxByteCount
    }

    /// The number that the next request gets.
    var nextNumber: UInt64 { floor + UInt64(requests.count) }

    private func place(of number: UInt64) -> Int? {
        guard number >= floor, number - floor < UInt64(requests.count) else { return nil }
        return Int(number - floor)
    }

    subscript(number: UInt64) -> BookedRequest? { place(of: number).flatMap { requests[$0] } }

    /// Books a request that nobody could have to take up again.
    ///
    /// - Returns: its number.
    @discardableResult
    mutating func add(_ request: BookedRequest) -> UInt64 {
        precondition(!isFull, "a full book takes nothing")
        return put(request)
    }

    private mutating func put(_ request: BookedRequest) -> UInt64 {
        let number = nextNumber
        if requests.isEmpty { (forwardedEpoch, forwardedCount) = (request.forwardedIn, 0) }
        // What this master has taken at once is handed already.
        if request.forwardedIn != .zero, request.forwardedIn == forwardedEpoch, forwardedCount == requests.count {
            forwardedCount += 1
        }
        requests.append(request)
        count += 1
        if request.kind == .connect { connectCount += 1 }
        if isKeyed { keys.insert(UInt32(truncatingIfNeeded: request.key), slot: Int(number % UInt64(1 << 30))) }
        return number
    }

    /// Books a datagram.
    @discardableResult
    mutating func add(_ request: BookedRequest, _ datagram: RawSpan) -> UInt64 {
        // Whoever finds room may take the last of it, and more.
        precondition(!isFull, "a full book takes nothing")
        var request = request
        request.content = .datagram(start: goneByteCount + UInt64(bytes.count), byteCount: datagram.byteCount)
        datagram.withUnsafeBytes { bytes.append(contentsOf: $0) }
        return put(request)
    }

    /// Books what came over HTTP.
    @discardableResult
    mutating func add(_ request: BookedRequest, _ visit: ForwardedRequest.Content) -> UInt64 {
        var request = request
        request.content = .visit
        visits.append(Visit(number: nextNumber, content: visit))
        return add(request)
    }

    /// What a request asks, as it goes to the master.
    func content(of number: UInt64) -> ForwardedRequest.Content {
        switch self[number]?.content ?? .forgotten {
        case .datagram(let start, let byteCount):
            let first = Int(start - goneByteCount)
            return .datagram(Array(bytes[first..<first + byteCount]))
        case .visit:
            var (low, high) = (0, visits.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if visits[middle].number < number { low = middle + 1 } else { high = middle }
            }
            return visits[low].content
        case .forgotten: preconditionFailure("what nobody could have to take up again is not asked for")
        }
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
    ///
    /// - Returns: who is to be answered; the rest of it is not copied out.
    @discardableResult
    mutating func remove(_ number: UInt64) -> WaitingRequest? {
        guard let place = place(of: number), let waiting = requests[place]?.waiting else { return nil }
        if requests[place]?.kind == .connect { connectCount -= 1 }
        if isKeyed, let key = requests[place]?.key {
            keys.remove(UInt32(truncatingIfNeeded: key), slot: Int(number % UInt64(1 << 30)))
        }
        requests[place] = nil
        count -= 1
        compact()
        return waiting
    }

    private mutating func compact() {
        // Matched, not compared: `==` copies what it looks at.
        while doneCount < requests.count, case nil = requests[doneCount] { doneCount += 1 }
        // Half at once, so that the rest is not moved for every few.
        guard doneCount == requests.count || doneCount >= max(256, requests.count / 2) else { return }
        // Most often nobody is left, and nothing is moved.
        if doneCount == requests.count {
            requests.removeAll(keepingCapacity: true)
        } else {
            requests.removeFirst(doneCount)
        }
        floor += UInt64(doneCount)
        forwardedCount = max(0, forwardedCount - doneCount)
        doneCount = 0
        if !bytes.isEmpty { compactBytes() }
        visits.removeFirst(visits.firstIndex { $0.number >= floor } ?? visits.count)
    }

    /// Forgets the datagrams of requests that are gone.
    private mutating func compactBytes() {
        for request in requests {
            guard case .datagram(let start, _)? = request?.content else { continue }
            bytes.removeFirst(Int(start - goneByteCount))
            goneByteCount = start
            return
        }
        goneByteCount += UInt64(bytes.count)
        if bytes.capacity > RequestBook.keptByteCount { bytes = [] } else { bytes.removeAll(keepingCapacity: true) }
    }

    /// The next request that the master of an epoch does not have yet.
    mutating func nextUnforwarded(_ epoch: Epoch) -> UInt64? {
        if forwardedEpoch != epoch {
            forwardedEpoch = epoch
            forwardedCount = 0
        }
        while forwardedCount < requests.count {
            if let request = requests[forwardedCount], request.forwardedIn != epoch {
                return floor + UInt64(forwardedCount)
            }
            forwardedCount += 1
        }
        return nil
    }

    /// Whether there may be requests that the master of an epoch does not have yet; `nextUnforwarded` knows.
    func hasUnforwarded(_ epoch: Epoch) -> Bool {
        !isEmpty && (forwardedEpoch != epoch || forwardedCount < requests.count)
    }

    mutating func markForwarded(_ number: UInt64, _ epoch: Epoch, now: Instant) {
        guard let place = place(of: number) else { return }
        requests[place]?.forwardedIn = epoch
        requests[place]?.forwardedAt = now
    }

    /// Those that the master was sent before a time and has not settled: they may be lost.
    mutating func returnForwarded(sentBefore time: Instant, epoch: Epoch) {
        for place in requests.indices {
            guard let request = requests[place], request.forwardedIn == epoch, request.forwardedAt <= time else {
                continue
            }
            requests[place]?.forwardedIn = .zero
            forwardedCount = min(forwardedCount, place)
        }
    }

    /// Takes out what is too old, but for what this master has taken into an entry.
    ///
    /// A read is in no entry: nothing decides it, and where no quorum confirms this master nobody answers it.
    ///
    /// - Parameters:
    ///   - now: the monotonic clock.
    ///   - leading: the epoch that this tracker leads, if it does.
    ///   - keepsReads: whether reads that this master has taken up stay, too: a planted mistake.
    /// - Returns: what was taken out, in the order in which it was heard.
    mutating func removeStale(now: Instant, leading: Epoch?, keepsReads: Bool) -> [BookedRequest] {
        var stale: [BookedRequest] = []
        guard !isEmpty else { return stale }
        var number = floor
        let end = floor + UInt64(requests.count)
        // In the order in which they were heard.
        while number < end {
            defer { number += 1 }
            guard let request = self[number] else { continue }
            guard now - request.heardAt >= maxAge else { break }
            if let leading, request.forwardedIn == leading, !request.isRead || keepsReads { continue }
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
        doneCount = 0
        goneByteCount += UInt64(bytes.count)
        bytes = []
        visits = []
        count = 0
        connectCount = 0
        keys = SlotIndex()
        return all
    }
}

// MARK: - An image of a node

extension RequestBook {
    mutating func walk(_ archive: inout Archive) {
        requests.walk(&archive)
        doneCount.walk(&archive)
        floor.walk(&archive)
        archive.walk(bytes: &bytes)
        goneByteCount.walk(&archive)
        visits.walk(&archive)
        count.walk(&archive)
        connectCount.walk(&archive)
        forwardedCount.walk(&archive)
        forwardedEpoch.walk(&archive)
        guard archive.isReading, isKeyed else { return }
        keys = SlotIndex()
        for place in requests.indices {
            guard let key = requests[place]?.key else { continue }
            keys.insert(
                UInt32(truncatingIfNeeded: key), slot: Int((floor + UInt64(place)) % UInt64(1 << 30)))
        }
    }
}

extension RequestBook.Visit: Archived {
    static var blank: RequestBook.Visit { RequestBook.Visit(number: 0, content: .blank) }

    mutating func walk(_ archive: inout Archive) {
        number.walk(&archive)
        content.walk(&archive)
    }
}

extension BookedRequest: Archived {
    static var blank: BookedRequest {
        BookedRequest(.blank, .connect, key: 0, ClockReading(monotonic: .blank, wall: .blank))
    }

    mutating func walk(_ archive: inout Archive) {
        waiting.walk(&archive)
        kind.walk(&archive)
        content.walk(&archive)
        key.walk(&archive)
        heardAt.walk(&archive)
        forwardedAt.walk(&archive)
        forwardedIn.walk(&archive)
    }
}
