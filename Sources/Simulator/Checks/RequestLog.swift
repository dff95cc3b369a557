// Every client's latest requests: when they were sent, how many copies of them came where, how often they took effect
// and who answered.

import Primitives
import Wire

/// A request, in all its copies.
struct Ask: Sendable {
    /// Who answered a copy.
    struct Answerer: Sendable, Hashable {
        var node: Int
        var life: Life
        var epoch: Epoch?
    }

    /// An answer, and the requests that it may be one to.
    struct Answer: Sendable, Hashable {
        var answerer: Answerer
        var time: Instant
        /// Empty where there is no doubt.
        var fits: [Fit] = []

        /// Whether a tracker gave it; in one of its lives, where that counts.
        func isBy(_ node: Int, _ life: Life?) -> Bool {
            answerer.node == node && (life == nil || answerer.life == life)
        }

        /// Copies of a request that the answerer might know of when it answered.
        func copies(of number: Int) -> Int { fits.first { $0.number == number }?.copies ?? 0 }
    }

    /// A request that an answer fits.
    struct Fit: Sendable, Hashable {
        /// Its number.
        var number: Int
        /// Copies of it that the answerer might know of when it answered.
        var copies: Int
    }

    /// Among all requests of its client.
    fileprivate(set) var number = 0
    let transactionID: TransactionID
    let bytes: [UInt8]
    /// nil for what is no request.
    let request: TrackerRequest?
    /// When the first copy was sent.
    let sentAt: Instant
    /// The last entry that was decided then.
    let decidedBefore: UInt64
    /// How often it was sent; a copy that a bit on the way has changed was not.
    var sentCount = 1
    /// Whether its connection id was good proof of its address when a tracker heard it.
    var isProven = false
    /// Whether nobody might refuse that id, whenever one heard it.
    var isFresh = true
    /// The addresses at which trackers have heard it.
    var locals: [SocketAddress] = []
    /// How many copies each tracker has heard.
    var heard: [Int]
    var lastHeardAt: Instant
    /// When any tracker first heard it.
    private(set) var firstHeardAt: Instant?
    /// How often it is in the log.
    var decidedCount = 0
    private(set) var answers: [Answer] = []
    /// When the last of them was given.
    private var answeredAt: Instant? { answers.last?.time }
    /// Rounds of copies that came so late after an answer that a group has to take them for new requests.
    private var lateRounds = 0
    private var isLateRoundOpen = false

    /// How long a group remembers what it has answered: twelve seconds, by a clock that may be fast.
    private static let memory = Duration.seconds(10)

    init(_ bytes: [UInt8], nodeCount: Int, decidedBefore: UInt64, at time: Instant) {
        transactionID = Ask.transactionID(bytes.span.bytes)
        self.bytes = bytes
        request = try? TrackerRequest(bytes.span.bytes)
        sentAt = time
        lastHeardAt = time
        self.decidedBefore = decidedBefore
        heard = Array(repeating: 0, count: nodeCount)
    }

    /// Where requests and replies have it.
    static func transactionID(_ bytes: RawSpan) -> TransactionID {
        TransactionID(bytes.byteCount >= 16 ? bytes.u32(at: 12) : 0)
    }

    /// Copies that a group may have heard: of those that were sent, each tracker may have missed another.
    var groupCopies: Int { max(heard.max() ?? 0, min(sentCount, heard.reduce(0, +))) + lateRounds }

    mutating func hear(by node: Int, on local: SocketAddress, at time: Instant) {
        if !locals.contains(local) { locals.append(local) }
        heard[node] += 1
        lastHeardAt = time
        firstHeardAt = firstHeardAt ?? time
        guard let answeredAt, !isLateRoundOpen, time - answeredAt >= Ask.memory else { return }
        isLateRoundOpen = true
        lateRounds += 1
    }

    /// How often a tracker has answered it; in a group, in one of its lives.
    func answerCount(by node: Int, in life: Life?) -> Int { answers.count { $0.isBy(node, life) } }

    /// Takes an answer, in the order of time.
    fileprivate mutating func take(_ answer: Answer) {
        if answer.time >= answers.last?.time ?? answer.time { isLateRoundOpen = false }
        answers.insert(answer, at: answers.firstIndex { $0.time > answer.time } ?? answers.count)
    }

    fileprivate mutating func giveBack(_ answer: Answer) {
        if let place = answers.firstIndex(of: answer) { answers.remove(at: place) }
    }

    /// Whether its answers may be others' as well: no copy was taken for a new request because of one.
    fileprivate var letsAnswersGo: Bool { lateRounds == 0 }

    /// Whether, with one answer more, each came when as many copies of it were heard.
    fileprivate func hasRoom(for answer: Answer, in life: Life?) -> Bool {
        var with = self
        with.take(answer)
        let given = with.answers.filter { $0.isBy(answer.answerer.node, life) }
        return given.enumerated().allSatisfy { $0.offset < $0.element.copies(of: number) }
    }

    func isCopy(of other: RawSpan) -> Bool {
        guard bytes.count == other.byteCount else { return false }
        return bytes.indices.allSatisfy { bytes[$0] == other.u8(at: $0) }
    }

    /// nil where it brings none.
    var connectionID: ConnectionID? {
        switch request {
        case .announce(let announce): announce.connectionID
        case .scrape(let id, _, _): id
        case .connect, nil: nil
        }
    }

    var announce: AnnounceRequest? { if case .announce(let announce)? = request { announce } else { nil } }
}

/// The requests of one client.
struct RequestLog: Sendable {
    /// Requests that are remembered: far more than a client has on its way at once.
    private static let askCount = 48
    private static let issuedCount = 24

    private struct Issued: Sendable {
        var id: ConnectionID
        /// By the clock of the tracker that issued it; nil where nobody has looked at it.
        var wall: WallTime?
    }

    /// Seconds of age at which a connection id is good: two minutes, half a minute of skew, and the grain of its time.
    private static let goodAges: ClosedRange<Int64> = -45...175
    /// "A tracker should accept the connection ID until two minutes after it has been send" (BEP 15).
    private static let freshAges: ClosedRange<Int64> = -29...120

    let address: SocketAddress
    private(set) var asks: [Ask] = []
    /// Of all that there ever were.
    private var count = 0
    private var oldest = 0
    private var issued: [Issued] = []
    private var oldestIssued = 0

    init(address: SocketAddress) { self.address = address }

    /// A request is sent, perhaps once more.
    mutating func send(_ ask: @autoclosure () -> Ask, _ bytes: [UInt8]) {
        if let place = place(of: bytes.span.bytes) {
            asks[place].sentCount += 1
        } else {
            put(ask())
        }
    }

    private mutating func put(_ ask: Ask) {
        var ask = ask
        ask.number = count
        count += 1
        if asks.count < RequestLog.askCount {
            asks.append(ask)
        } else {
            asks[oldest] = ask
            oldest = (oldest + 1) % RequestLog.askCount
        }
    }

    /// A tracker hears a request: as it was sent, or as a bit on the way has made it.
    ///
    /// The result is whether it was never sent so. `wall` is the tracker's clock; nil where ages by it say nothing.
    mutating func hear(
        _ bytes: RawSpan, on local: SocketAddress, node: Int, nodeCount: Int, decidedBefore: UInt64,
        wall: WallTime?, at time: Instant
    ) -> Bool {
        let known = place(of: bytes)
        if known == nil {
            let copy = bytes.withUnsafeBytes { Array($0) }
            put(Ask(copy, nodeCount: nodeCount, decidedBefore: decidedBefore, at: time))
        }
        guard let place = known ?? place(of: bytes) else { return false }
        asks[place].hear(by: node, on: local, at: time)
        prove(place, at: wall)
        return known == nil
    }

    private mutating func prove(_ place: Int, at wall: WallTime?) {
        guard let id = asks[place].connectionID else { return }
        guard let proof = issued.last(where: { $0.id == id }) else {
            asks[place].isFresh = false
            return
        }
        guard let wall, let issuedAt = proof.wall else {
            asks[place].isProven = true
            return
        }
        let age = (wall.milliseconds - issuedAt.milliseconds) / 1000
        if RequestLog.goodAges.contains(age) { asks[place].isProven = true }
        if !RequestLog.freshAges.contains(age) { asks[place].isFresh = false }
    }

    private func place(of bytes: RawSpan) -> Int? {
        let transactionID = Ask.transactionID(bytes)
        return asks.indices.first { asks[$0].transactionID == transactionID && asks[$0].isCopy(of: bytes) }
    }

    /// A request that was sent, or heard, with these bytes.
    func ask(_ bytes: RawSpan) -> Ask? { place(of: bytes).map { asks[$0] } }

    /// The places of all requests with a transaction id, oldest first where there is no doubt.
    func places(_ transactionID: TransactionID) -> [Int] {
        asks.indices.filter { asks[$0].transactionID == transactionID }
    }

    /// An answer is given to a request.
    mutating func answer(_ place: Int, _ answerer: Ask.Answerer, at time: Instant) {
        asks[place].take(Ask.Answer(answerer: answerer, time: time))
    }

    /// An answer is given to one of the requests that it fits.
    ///
    /// A bit on the way makes another request of a copy, and the transaction id is the same. Of two that ask for much
    /// the same nobody can tell which one was meant; so where a later answer fits only one, what counts for that may
    /// have been for the other.
    ///
    /// - Parameters:
    ///   - answer: with all requests that it fits.
    ///   - life: the answerer's, where what others of its lives have said does not count.
    /// - Returns: false where there is no way to give each answer a copy of its own, heard before it was given.
    mutating func answer(_ answer: Ask.Answer, in life: Life?) -> Bool {
        var tried: [Int] = []
        return find(answer, life, &tried)
    }

    private mutating func find(_ answer: Ask.Answer, _ life: Life?, _ tried: inout [Int]) -> Bool {
        let places = answer.fits.compactMap { fit in asks.firstIndex { $0.number == fit.number } }
        if let place = places.first(where: { !tried.contains($0) && asks[$0].hasRoom(for: answer, in: life) }) {
            asks[place].take(answer)
            return true
        }
        for place in places where !tried.contains(place) && asks[place].letsAnswersGo {
            tried.append(place)
            for other in asks[place].answers where other.isBy(answer.answerer.node, life) {
                var rest = asks[place]
                rest.giveBack(other)
                guard rest.hasRoom(for: answer, in: life), find(other, life, &tried) else { continue }
                asks[place].giveBack(other)
                asks[place].take(answer)
                return true
            }
        }
        return false
    }

    mutating func decide(_ place: Int) { asks[place].decidedCount += 1 }

    mutating func issue(_ id: ConnectionID, at wall: WallTime?) {
        let new = Issued(id: id, wall: wall)
        if issued.count < RequestLog.issuedCount {
            issued.append(new)
        } else {
            issued[oldestIssued] = new
            oldestIssued = (oldestIssued + 1) % RequestLog.issuedCount
        }
    }
}
