// Which tracker of a torrent is asked, and when (BEP 12).

import Primitives
import Wire

/// The trackers of a torrent, tier by tier (BEP 12): one is asked at a time, and another when it is silent.
///
/// "If an announce with a tracker fails, the next tracker in the tier is tried … when one responds, it is moved to the
/// front of its tier" (BEP 12). Each announce begins with the first tier.
///
/// Deviations, with reasons:
/// - A silent tracker is asked twice (15 and 30 seconds, BEP 15) before the next has its turn, rather than for the two
///   hours of BEP 15: that is meant for clients with one tracker. It is left alone for 15 · 2ⁿ seconds then.
/// - Of the end all are told that know us; where one is silent for 1.5 seconds, up to three others are told in its
///   place, those of its tier first: a tier is one tracker's addresses, or trackers that tell each other.
/// - Who has no connection at all announces sooner than the tracker's interval: after 60 seconds, then after twice as
///   long each time.
struct TrackerSet: Sendable, Equatable {
    /// Of one tracker, what people want to know too.
    struct Tracker: Sendable, Equatable {
        let kind: TrackerKind
        var announcer: Announcer?
        var failures = 0
        var nextTry = Instant(nanoseconds: 0)
        /// It has answered `started`, and wants to be told of the end.
        var knowsUs = false
    }

    /// What has come of an announce.
    enum Outcome: Sendable, Equatable {
        case answered(tracker: Int, seeders: Int, leechers: Int, peers: [SocketAddress])
        case failed(tracker: Int, String)
    }

    static let patience = {
        var patience = Announcer.RetryTimeouts()
        patience.maxRetransmissions = 1
        return patience
    }()
    static let shortestStarving = Duration.seconds(60)
    static let longestBackOff = 8
    /// For the answers to `stopped`.
    static let farewell = Duration.seconds(5)
    /// For those of the trackers that know us, before others are told.
    static let farewellPatience = Duration.milliseconds(1_500)
    static let maxSubstitutes = 3

    #if PLANTED_BUGS
        var plantedBug: PlantedPeerBug?
    #endif
    private(set) var trackers: [Tracker]
    /// Trackers by tier, in the order in which they are tried.
    private var tiers: [[Int]]
    private let subject: Announcer.Subject
    private var random: RandomStream

    private enum Phase: Sendable, Hashable {
        /// Nobody is asked. Can transition to: asking.
        case idle
        /// A tracker is asked. Can transition to: resting, asking, leaving.
        case asking(Int)
        /// Waits for the next announce. Can transition to: asking, leaving.
        case resting
        /// `stopped` is on its way. Can transition to: idle.
        case leaving
    }

    private var phase = Phase.idle
    private var owed = AnnounceEvent.started
    /// What the announce under way says.
    private var asked = AnnounceEvent.none
    private var leaving = Leaving()
    private var owesCompleted = false
    private var wakeAt: Instant?
    /// Announces in a row that were answered while there was no connection.
    private var starving = 0
    private var interval = Duration.seconds(1800)

    /// Who is told of the end.
    private struct Leaving: Sendable, Equatable {
        /// When nobody is waited for any more.
        var end: Instant?
        /// All that have been asked, whether they have answered or not.
        var told: [Int] = []
        /// Those that have not answered `stopped` yet.
        var unanswered: [Int] = []
        /// Those that are told in the place of silent ones; the first answer of one is enough.
        var substitutes: [Int] = []
        var hasSubstitute = false
        /// Is told `completed` first, which no tracker has taken yet; others are not, while it may answer.
        var completing: Int?
        /// Those whose last word of us was `completed`.
        var owedStopped: [Int] = []
        /// Those that take us for one who stays: told `completed`, until they have answered `stopped`; but none that is
        /// silent, and in whose place others are told.
        var believers: [Int] = []
    }

    init(_ tiers: [[TrackerKind]], subject: Announcer.Subject, random: RandomStream) {
        var random = random
        self.subject = subject
        trackers = []
        self.tiers = []
        for tier in tiers {
            var numbers: [Int] = []
            for kind in tier {
                numbers.append(trackers.count)
                trackers.append(Tracker(kind: kind))
            }
            // "The ordering of the trackers within a tier should be random" (BEP 12).
            random.shuffle(&numbers)
            self.tiers.append(numbers)
        }
        self.random = random
    }

    var isIdle: Bool { phase == .idle }

    /// When `woken` is to be called.
    var deadline: Instant? {
        var result = wakeAt
        for tracker in trackers { result = earliest(result, tracker.announcer?.nextDeadline) }
        return result
    }

    // MARK: - What is wanted

    mutating func start(_ progress: Announcer.Progress, now: Instant, _ actions: inout [TorrentSession.Action]) {
        guard !trackers.isEmpty else { return }
        // Who goes on does not go on saying that it leaves.
        if phase == .leaving { end() }
        owed = .started
        owesCompleted = false
        askNext(progress, now, &actions)
    }

    mutating func completed(_ progress: Announcer.Progress, now: Instant, _ actions: inout [TorrentSession.Action]) {
        owesCompleted = true
        if phase == .resting { askNext(progress, now, &actions) }
    }

    mutating func update(_ progress: Announcer.Progress, now: Instant, _ actions: inout [TorrentSession.Action]) {
        if phase == .resting { askNext(progress, now, &actions) }
    }

    /// There is no connection left: the next announce comes sooner.
    mutating func starve(now: Instant) {
        guard phase == .resting, let wakeAt else { return }
        let wait = Self.shortestStarving * (1 << Int64(min(max(starving - 1, 0), 6)))
        if now + wait < wakeAt { self.wakeAt = now + wait }
    }

    /// Tells all that know us that we leave.
    mutating func stop(_ progress: Announcer.Progress, now: Instant, _ actions: inout [TorrentSession.Action]) {
        guard phase != .idle, phase != .leaving else { return }
        leaving = Leaving(end: now + Self.farewell)
        for number in trackers.indices {
            if trackers[number].knowsUs {
                sayFarewell(number, progress, now, &actions)
                trackers[number].knowsUs = false
            } else {
                trackers[number].announcer = nil
            }
        }
        phase = leaving.told.isEmpty ? .idle : .leaving
        wakeAt = leaving.told.isEmpty ? nil : now + Self.farewellPatience
    }

    private mutating func sayFarewell(
        _ number: Int, _ progress: Announcer.Progress, _ now: Instant, _ actions: inout [TorrentSession.Action]
    ) {
        leaving.told.append(number)
        leaving.unanswered.append(number)
        let completes = owesCompleted && leaving.completing == nil && trackers[number].nextTry <= now
        if completes {
            leaving.completing = number
            leaving.owedStopped.append(number)
            leaving.believers.append(number)
        }
        ask(number, completes ? .completed : .stopped, progress, now, &actions)
    }

    /// Tells others in the place of those that are silent, or ends.
    private mutating func leave(
        _ progress: Announcer.Progress, _ now: Instant, _ actions: inout [TorrentSession.Action]
    ) {
        guard let end = leaving.end, now < end else { return self.end() }
        wakeAt = end
        let silent = leaving.unanswered
        let near = tiers.filter { $0.contains(where: silent.contains) }
        let far = tiers.filter { !$0.contains(where: silent.contains) }
        let others = (near + far).flatMap { $0 }.filter { !leaving.told.contains($0) }
        leaving.substitutes = Array(others.prefix(Self.maxSubstitutes))
        leaving.completing = nil
        leaving.believers.removeAll()
        for number in leaving.substitutes { sayFarewell(number, progress, now, &actions) }
    }

    // MARK: - What happens

    mutating func woken(
        _ progress: Announcer.Progress, now: Instant, _ actions: inout [TorrentSession.Action]
    ) -> [Outcome] {
        var outcomes: [Outcome] = []
        for number in trackers.indices {
            guard let due = trackers[number].announcer?.nextDeadline, due <= now else { continue }
            feed(number, .deadlineReached, progress, now, &actions, &outcomes)
        }
        guard let due = wakeAt, due <= now else { return outcomes }
        switch phase {
        case .leaving: leave(progress, now, &actions)
        case .resting: askNext(progress, now, &actions)
        case .idle, .asking: wakeAt = nil
        }
        return outcomes
    }

    mutating func datagram(
        _ number: Int, _ bytes: [UInt8], isIPv6: Bool, _ progress: Announcer.Progress, now: Instant,
        _ actions: inout [TorrentSession.Action]
    ) -> [Outcome] {
        var outcomes: [Outcome] = []
        guard trackers.indices.contains(number) else { return [] }
        trackers[number].announcer?.isIPv6 = isIPv6
        feed(number, .datagramReceived(bytes), progress, now, &actions, &outcomes)
        return outcomes
    }

    mutating func answer(
        _ number: Int, _ answer: TrackerAnswer, _ progress: Announcer.Progress, now: Instant,
        _ actions: inout [TorrentSession.Action]
    ) -> [Outcome] {
        if phase == .leaving {
            var isGood = false
            if case .announced = answer { isGood = true }
            saidFarewell(number, isGood: isGood, progress, now, &actions)
        }
        guard phase == .asking(number) else {
            // To a farewell of a session that has gone on since.
            if case .failed = answer, phase != .idle, phase != .leaving { noteFailure(of: number, now) }
            return []
        }
        switch answer {
        case .announced(let interval, let seeders, let leechers, let peers):
            answered(number, interval, progress, now, &actions)
            return [.answered(tracker: number, seeders: seeders, leechers: leechers, peers: peers)]
        case .failed(let words):
            failed(number, progress, now, &actions)
            return [.failed(tracker: number, words)]
        }
    }

    // MARK: -

    private mutating func feed(
        _ number: Int, _ event: Announcer.Event, _ progress: Announcer.Progress, _ now: Instant,
        _ actions: inout [TorrentSession.Action], _ outcomes: inout [Outcome]
    ) {
        var effects = Announcer.Effects()
        trackers[number].announcer?.step(event, now: now, into: &effects)
        for bytes in effects.sends { actions.append(.sendToTracker(tracker: number, bytes)) }
        guard let outcome = effects.outcomes.first else { return }
        if phase == .leaving {
            var isGood = false
            if case .announced = outcome { isGood = true }
            saidFarewell(number, isGood: isGood, progress, now, &actions)
        }
        guard phase == .asking(number) else { return }
        switch outcome {
        case .announced(let reply):
            answered(number, reply.interval, progress, now, &actions)
            outcomes.append(
                .answered(
                    tracker: number, seeders: Int(reply.seeders), leechers: Int(reply.leechers), peers: reply.peers))
        case .refused(let message):
            failed(number, progress, now, &actions)
            outcomes.append(.failed(tracker: number, "it refuses: \(displayText(message))"))
        case .timedOut:
            failed(number, progress, now, &actions)
            outcomes.append(.failed(tracker: number, "no answer"))
        case .malformed, .scraped:
            failed(number, progress, now, &actions)
            outcomes.append(.failed(tracker: number, "its answer is none"))
        }
    }

    private mutating func answered(
        _ number: Int, _ seconds: UInt32, _ progress: Announcer.Progress, _ now: Instant,
        _ actions: inout [TorrentSession.Action]
    ) {
        trackers[number].failures = 0
        trackers[number].knowsUs = true
        for tier in tiers.indices {
            if let place = tiers[tier].firstIndex(of: number) {
                tiers[tier].remove(at: place)
                tiers[tier].insert(number, at: 0)
            }
        }
        if asked == .completed { owesCompleted = false }
        if asked == .started { owed = .none }
        interval = Self.patience.bounded(interval: seconds)
        starving = min(starving + 1, 8)
        phase = .resting
        wakeAt = now + interval
        if owesCompleted { askNext(progress, now, &actions) }
    }

    private mutating func failed(
        _ number: Int, _ progress: Announcer.Progress, _ now: Instant, _ actions: inout [TorrentSession.Action]
    ) {
        if has(.trackerAwaited) { return }
        trackers[number].announcer = nil
        noteFailure(of: number, now)
        askNext(progress, now, &actions)
    }

    private mutating func noteFailure(of number: Int, _ now: Instant) {
        let wait = Duration.seconds(15) * (1 << Int64(min(trackers[number].failures, Self.longestBackOff)))
        trackers[number].failures += 1
        trackers[number].nextTry = has(.impatientAnnounces) ? now : now + wait
    }

    /// Asks the first tracker of the first tier that may be asked; or waits for the one that may be asked soonest.
    private mutating func askNext(
        _ progress: Announcer.Progress, _ now: Instant, _ actions: inout [TorrentSession.Action]
    ) {
        var soonest: Instant?
        for tier in tiers {
            for number in tier {
                guard trackers[number].nextTry <= now else {
                    soonest = earliest(soonest, trackers[number].nextTry)
                    continue
                }
                phase = .asking(number)
                wakeAt = nil
                asked = owed == .none && owesCompleted ? .completed : owed
                ask(number, asked, progress, now, &actions)
                return
            }
        }
        phase = .resting
        wakeAt = soonest
    }

    private mutating func ask(
        _ number: Int, _ event: AnnounceEvent, _ progress: Announcer.Progress, _ now: Instant,
        _ actions: inout [TorrentSession.Action]
    ) {
        switch trackers[number].kind {
        case .udp(let urlData):
            if trackers[number].announcer == nil {
                trackers[number].announcer = Announcer(
                    isIPv6: false, random: RandomStream(seed: random.next()), patience: Self.patience)
            }
            var own = subject
            own.urlData = urlData
            var effects = Announcer.Effects()
            trackers[number].announcer?.step(.announceWanted(own, progress, event), now: now, into: &effects)
            for bytes in effects.sends { actions.append(.sendToTracker(tracker: number, bytes)) }
        case .http:
            var request = HTTPAnnounceRequest(
                infoHash: subject.infoHash, peerID: subject.peerID, port: subject.port,
                uploaded: progress.uploaded, downloaded: progress.downloaded, left: progress.left, event: event,
                numWant: Int(subject.numWant))
            var key: [UInt8] = []
            key.append(bigEndian: subject.key)
            request.key = Array(hexadecimal(key).utf8)
            actions.append(.announceOverHTTP(tracker: number, request))
        }
    }

    private mutating func saidFarewell(
        _ number: Int, isGood: Bool, _ progress: Announcer.Progress, _ now: Instant,
        _ actions: inout [TorrentSession.Action]
    ) {
        if let place = leaving.owedStopped.firstIndex(of: number) {
            if isGood { owesCompleted = false } else { noteFailure(of: number, now) }
            leaving.owedStopped.remove(at: place)
            if !leaving.believers.contains(number) { leaving.believers.append(number) }
            if leaving.completing == number { leaving.completing = nil }
            return ask(number, .stopped, progress, now, &actions)
        }
        leaving.unanswered.removeAll { $0 == number }
        leaving.believers.removeAll { $0 == number }
        leaving.hasSubstitute = leaving.hasSubstitute || leaving.substitutes.contains(number)
        let isEnough = leaving.believers.isEmpty && leaving.hasSubstitute
        if leaving.unanswered.isEmpty || isEnough { end() }
    }

    private mutating func end() {
        phase = .idle
        wakeAt = nil
        for number in trackers.indices { trackers[number].announcer = nil }
    }

    /// There are connections: the next time without will be the first.
    mutating func fed() { starving = 0 }
}
