// The client's side of BEP 15, for one tracker.

import Primitives
import Wire

/// The client's side of BEP 15, for one tracker: asks until it is answered, and knows when to give up.
///
///              wanted                    answer: connection id                    answer
///     idle ─────────────► connecting ──────────────────────────► requesting ─────────────────► idle
///      │                   ▲ │ silence: again                     │ │ silence: again            ▲
///      │                   │ └─► connecting                       │ └─► requesting, or          │ stopped,
///      │                   └──────────────────────────────────────┘     connecting when the    │ or a single
///      │                       "connection id …" refused                id is a minute old     │ request
///      │                                                                                       │
///      └─ download started ─► connecting … requesting ── answer ─► resting ── interval over ───┴─► …
///
/// Single requests (`announceWanted`, `scrapeWanted`) end in one `Outcome`. A download (`downloadStarted`) announces
/// for as long as it lives: at its start, at the pace that the tracker asks for, when it completes and when it stops.
///
/// Time-outs: "If a response is not received after 15 * 2 ^ n seconds, the client should retransmit the request, where
/// n starts at 0 and is increased up to 8 (3840 seconds) after every retransmission. Note that it is necessary to
/// rerequest a connection ID when it has expired." (BEP 15). As in its example, n goes on rising through a change of
/// the connection id: a tracker that answers `connect` and nothing else is given up like a silent one.
///
/// Deviations, with reasons:
/// - A request keeps its transaction id when it is sent again, so that a late answer to an early copy counts.
/// - An error that names the connection id is answered by `connect` at once, but once a request only; a tracker that
///   refuses the new id as well is asked again at the pace of time-outs, for else the two would shout at each other.
/// - A download whose announce was refused tries again after 15 * 2 ^ n seconds, as if there had been silence; BEP 15
///   says nothing of errors. What the announce had to say (started, completed) is not forgotten.
///
/// Invariants: one request under way at a time; a deadline in every phase but idle; nothing is sent but in a step.
public struct Announcer: Sendable, Equatable {
    enum Phase: Sendable, Hashable {
        /// Nothing is wanted. Can transition to: connecting, requesting.
        case idle
        /// Waits for a connection id, by the answer to this transaction. Can transition to: requesting, resting, idle.
        case connecting(TransactionID)
        /// Waits for an answer. Can transition to: connecting, resting, idle.
        case requesting
        /// A download waits for its next announce. Can transition to: connecting, requesting.
        case resting
    }

    /// Proves to the tracker that we receive at the address we send from.
    struct Connection: Sendable, Hashable {
        var id: ConnectionID
        var receivedAt: Instant
    }

    /// How long a connection id may be used.
    ///
    /// "A client can use a connection ID until one minute after it has received it." (BEP 15)
    static let connectionLifetime = Duration.seconds(60)

    /// For how long a silent tracker is asked, and which intervals are believed.
    public let patience: RetryTimeouts
    /// Whether the tracker is asked over IPv6, which decides the size of a peer in its replies.
    var isIPv6: Bool
    private var random: RandomStream

    private var phase = Phase.idle
    private var subject: Subject?
    private var progress = Progress()
    /// What is being asked; nil when idle or resting.
    private var request: Request?
    /// Whether announces go on until the download stops.
    private var isFollowingDownload = false
    /// What the next announce of the download has to say.
    private var owedEvent = AnnounceEvent.none
    private var owesCompleted = false

    private var connection: Connection?
    private var requestTransaction: TransactionID?
    /// BEP 15's n: how often the request has been met with silence.
    private var silences = 0
    /// Refusals in a row, of a download.
    private var refusals = 0
    private var hasReconnected = false
    /// What the tracker last asked for.
    private var interval = Duration.seconds(1800)
    /// When the announcer wants `deadlineReached`; nil when it is idle.
    public private(set) var nextDeadline: Instant?

    /// An idle announcer for one tracker.
    ///
    /// - Parameters:
    ///   - isIPv6: whether the tracker is asked over IPv6, which decides the size of a peer in its replies.
    ///   - random: draws transaction ids: seeded by a secret where strangers could send us datagrams.
    ///   - patience: BEP 15's time-outs, unless told otherwise.
    public init(isIPv6: Bool, random: RandomStream, patience: RetryTimeouts = RetryTimeouts()) {
        self.isIPv6 = isIPv6
        self.random = random
        self.patience = patience
    }

    /// Whether nothing is under way, and nothing will be without a further wish.
    public var isIdle: Bool { phase == .idle }

    /// Whether it waits for the tracker, rather than for time to pass.
    public var isWaiting: Bool { phase != .idle && phase != .resting }

    // MARK: - The step

    /// Takes one event, and says what is to be done about it: the only way in and out.
    ///
    /// - Parameters:
    ///   - event: what has happened.
    ///   - now: the monotonic clock, read just before.
    ///   - effects: appended to; the caller carries them out and empties the buffer.
    public mutating func step(_ event: Event, now: Instant, into effects: inout Effects) {
        switch event {
        case .announceWanted(let subject, let progress, let event):
            self.subject = subject
            self.progress = progress
            isFollowingDownload = false
            begin(.announce(event), now, &effects)
        case .scrapeWanted(let infoHashes):
            precondition(
                (1...ScrapeRequest.maxInfoHashes).contains(infoHashes.count), "a scrape asks for 1 to 74 info hashes")
            isFollowingDownload = false
            begin(.scrape(infoHashes), now, &effects)
        case .downloadStarted(let subject, let progress):
            self.subject = subject
            self.progress = progress
            isFollowingDownload = true
            owesCompleted = false
            owedEvent = .started
            refusals = 0
            begin(.announce(.started), now, &effects)
        case .downloadProgressed(let progress):
            self.progress = progress
        case .downloadCompleted(let progress):
            self.progress = progress
            completed(now, &effects)
        case .downloadStopped(let progress):
            self.progress = progress
            guard isFollowingDownload else { return }
            // Whatever was on its way has lost its meaning.
            begin(.announce(.stopped), now, &effects)
        case .updateWanted:
            update(now, &effects)
        case .datagramReceived(let bytes):
            received(bytes, now, &effects)
        case .deadlineReached:
            guard let due = nextDeadline, due <= now else { return }
            deadlineReached(now, &effects)
        }
    }

    private mutating func completed(_ now: Instant, _ effects: inout Effects) {
        guard isFollowingDownload, request != .announce(.stopped) else { return }
        owesCompleted = true
        switch phase {
        case .resting where owedEvent == .none: begin(.announce(.completed), now, &effects)
        case .connecting, .requesting:
            // A regular announce has nothing to say that this one does not.
            if request == .announce(.none) { begin(.announce(.completed), now, &effects) }
        case .idle, .resting: break
        }
    }

    private mutating func update(_ now: Instant, _ effects: inout Effects) {
        switch phase {
        case .idle: break
        case .resting: announceNext(now, &effects)
        case .connecting, .requesting:
            if let request { begin(request, now, &effects) }
        }
    }

    private mutating func deadlineReached(_ now: Instant, _ effects: inout Effects) {
        switch phase {
        case .idle: break
        case .resting: announceNext(now, &effects)
        case .connecting, .requesting:
            silences += 1
            guard silences <= patience.maxRetransmissions else { return end(.timedOut, now, &effects) }
            send(now, &effects)
        }
    }

    // MARK: - Asking

    private mutating func announceNext(_ now: Instant, _ effects: inout Effects) {
        begin(.announce(owedEvent == .none && owesCompleted ? .completed : owedEvent), now, &effects)
    }

    private mutating func begin(_ request: Request, _ now: Instant, _ effects: inout Effects) {
        self.request = request
        requestTransaction = TransactionID(UInt32(truncatingIfNeeded: random.next()))
        silences = 0
        hasReconnected = false
        send(now, &effects)
    }

    /// Sends the request, or first a `connect` where there is no connection id that may still be used.
    private mutating func send(_ now: Instant, _ effects: inout Effects) {
        nextDeadline = now + patience.wait(afterSilences: silences)
        if let connection, now - connection.receivedAt < Announcer.connectionLifetime {
            phase = .requesting
            if let request, let requestTransaction {
                effects.sends.append(encoded(request, requestTransaction, connection.id))
            }
            return
        }
        let transaction = TransactionID(UInt32(truncatingIfNeeded: random.next()))
        phase = .connecting(transaction)
        var bytes: [UInt8] = []
        ConnectRequest(transactionID: transaction).encode(into: &bytes)
        effects.sends.append(bytes)
    }

    private func encoded(
        _ request: Request, _ transaction: TransactionID, _ connectionID: ConnectionID
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        switch request {
        case .announce(let event):
            guard let subject else { preconditionFailure("an announce was wanted of something") }
            AnnounceRequest(
                connectionID: connectionID, transactionID: transaction, infoHash: subject.infoHash,
                peerID: subject.peerID, downloaded: progress.downloaded, left: progress.left,
                uploaded: progress.uploaded, event: event, key: subject.key, numWant: subject.numWant,
                port: subject.port
            ).encode(into: &bytes, urlData: subject.urlData)
        case .scrape(let infoHashes):
            ScrapeRequest(connectionID: connectionID, transactionID: transaction, infoHashes: infoHashes)
                .encode(into: &bytes)
        }
        return bytes
    }

    // MARK: - Being answered

    private mutating func received(_ bytes: [UInt8], _ now: Instant, _ effects: inout Effects) {
        guard isWaiting, bytes.count >= 8 else { return }
        let transaction = TransactionID(bytes.span.bytes.u32(at: 4))
        let isForConnect = phase == .connecting(transaction)
        // Also while it connects again, the request may be answered: it was sent under the id before.
        guard isForConnect || transaction == requestTransaction else { return }
        let reply: TrackerReply
        do throws(TrackerReply.Malformed) {
            reply = try TrackerReply(bytes, isIPv6: isIPv6)
        } catch {
            return end(.malformed, now, &effects)
        }
        switch reply {
        case .connect(_, let id):
            guard isForConnect else { return }
            connection = Connection(id: id, receivedAt: now)
            send(now, &effects)
        case .announce(_, let announce):
            guard !isForConnect, case .announce = request else { return end(.malformed, now, &effects) }
            interval = patience.bounded(interval: announce.interval)
            end(.announced(announce), now, &effects)
        case .scrape(_, let counts):
            guard !isForConnect, case .scrape(let asked) = request, counts.count == asked.count else {
                return end(.malformed, now, &effects)
            }
            end(.scraped(counts), now, &effects)
        case .error(_, let message):
            if !isForConnect, Announcer.namesConnectionID(message) {
                reconnect(message, now, &effects)
            } else {
                end(.refused(message: message), now, &effects)
            }
        }
    }

    /// The tracker no longer takes our connection id: it, or we, have slept too long, or it has forgotten its secret.
    private mutating func reconnect(_ message: [UInt8], _ now: Instant, _ effects: inout Effects) {
        connection = nil
        // The second time, `connect` waits for the deadline.
        guard !hasReconnected, phase == .requesting else { return }
        hasReconnected = true
        send(now, &effects)
    }

    /// Whether an error speaks of the connection id; trackers word it in their own ways, in upper or lower case.
    static func namesConnectionID(_ message: [UInt8]) -> Bool {
        let wanted = Array("connection id".utf8)
        guard message.count >= wanted.count else { return false }
        for start in 0...(message.count - wanted.count) {
            var length = 0
            while length < wanted.count, message[start + length] | 0x20 == wanted[length] { length += 1 }
            if length == wanted.count { return true }
        }
        return false
    }

    // MARK: - Ending a request

    private mutating func end(_ outcome: Outcome, _ now: Instant, _ effects: inout Effects) {
        effects.outcomes.append(outcome)
        guard isFollowingDownload, request != .announce(.stopped) else {
            rest(until: nil)
            return
        }
        switch outcome {
        case .announced:
            refusals = 0
            if request == .announce(.completed) { owesCompleted = false }
            owedEvent = .none
            if owesCompleted {
                begin(.announce(.completed), now, &effects)
            } else {
                rest(until: now + interval)
            }
        case .refused, .malformed, .scraped:
            rest(until: now + patience.wait(afterSilences: refusals))
            refusals = min(refusals + 1, patience.maxRetransmissions)
        case .timedOut:
            rest(until: now + interval)
        }
    }

    /// - Parameter deadline: nil to become idle.
    private mutating func rest(until deadline: Instant?) {
        phase = deadline == nil ? .idle : .resting
        if deadline == nil { isFollowingDownload = false }
        request = nil
        nextDeadline = deadline
    }
}
