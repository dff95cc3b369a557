// Requests of a group that its trackers have booked.

import Primitives
import TrackerLogic
import Wire

/// Requests of a group that its trackers have booked, and that nobody has answered: an announce is sent on after a
/// keepalive by whoever has heard it, for its master may have missed it; and whoever becomes master answers what he has
/// heard shortly before (docs/protocol.md, *A group*).
///
/// What a tracker has booked is seen from outside where as many requests more wait after a step as it brought
/// datagrams.
struct GroupBook: Sendable {
    private struct Booked: Sendable {
        var client: Int
        /// Of the ask.
        var number: Int
        var isAnnounce: Bool
        var at: Instant
    }

    private struct Answered: Sendable, Hashable {
        var client: Int
        var transactionID: TransactionID
    }

    /// After that it may be dropped: nine seconds, by a clock that may be fast.
    private static let keptFor = Duration.milliseconds(7800)
    /// For so long after it was first heard by anybody a request is new.
    private static let newFor = Duration.seconds(2)
    private static let count = 64
    private static let answeredCount = 256

    /// By tracker, of this life, oldest first.
    private var booked: [[Booked]]
    private var isEmpty = true
    /// The last requests that somebody has answered, or refused.
    private var answered: [Answered] = []

    /// When somebody has last withheld an error.
    private var withheldAt: Instant?
    /// By tracker: from when until when it was held last.
    private var held: [(from: Instant, until: Instant)]

    init(nodeCount: Int) {
        booked = Array(repeating: [], count: nodeCount)
        held = Array(repeating: (Instant(nanoseconds: 0), Instant(nanoseconds: 0)), count: nodeCount)
    }

    /// A life begins.
    mutating func began(_ node: Int) {
        booked[node] = []
        held[node] = (Instant(nanoseconds: 0), Instant(nanoseconds: 0))
    }

    /// A tracker that has its bus is held, and sees nothing before the end of it.
    mutating func held(_ node: Int, from begin: Instant, until end: Instant) { held[node] = (begin, end) }

    mutating func check(
        _ step: borrowing Step, _ before: NodeView, _ event: Event, _ effects: Effects, _ requests: Requests,
        _ scene: inout Scene
    ) {
        if step.withheld > 0 {
            withheldAt = step.time
            forgetAll { _ in true }
        }
        note(effects, requests)
        if !isEmpty { settle(step, effects, requests) }
        // Who takes over a whole state forgets what it has heard until then.
        if Checks.isTransfer(effects) { booked[step.node] = [] }
        guard step.kind == .datagrams, case .datagramsReceived(let batch) = event, effects.replies.isEmpty,
            step.applied.isEmpty,
            step.view.waitingRequests - before.waitingRequests == batch.datagrams.count
        else { return }
        checkHeld(step, before, &scene)
        // Nobody is told of an error that is withheld, and so it is not known whose copies come behind it.
        if let withheldAt, step.time - withheldAt < GroupBook.keptFor { return }
        let span = batch.bytes.span.bytes
        for datagram in batch.datagrams {
            guard let client = requests.client(at: datagram.remote) else { continue }
            let start = Int(datagram.offset)
            let bytes = span.extracting(start..<start + Int(datagram.byteCount))
            // A copy that comes behind the answer waits until it is heard that there was one. What is asked once more
            // may have been settled by a master that died before it answered: then it is taken for a copy.
            guard let ask = requests.books[client].ask(bytes), let request = ask.request, ask.decidedCount == 0,
                step.time - (ask.firstHeardAt ?? step.time) < GroupBook.newFor,
                !answered.contains(Answered(client: client, transactionID: ask.transactionID))
            else { continue }
            var isAnnounce = false
            if case .announce = request { isAnnounce = true }
            if booked[step.node].count == GroupBook.count { booked[step.node].removeFirst() }
            booked[step.node].append(
                Booked(client: client, number: ask.number, isAnnounce: isAnnounce, at: step.time))
            isEmpty = false
        }
    }

    /// Whoever was held up heeds nothing for a quarter of a keepalive, by a clock that may be fast: what has piled up
    /// meanwhile the others have answered.
    private func checkHeld(_ step: borrowing Step, _ before: NodeView, _ scene: inout Scene) {
        let (from, until) = held[step.node]
        let cluster = scene.nodes[step.node].configuration.cluster
        guard until - from > cluster.detectionTime * 3 / 2 + cluster.keepalive, !before.isFenced, step.time >= until,
            step.time - until < cluster.keepalive / 5, step.view.waitingRequests > before.waitingRequests
        else { return }
        scene.violate(
            .answeredOnce, at: step.time,
            "\(scene.name(step.node)) was held for \((until - from).wholeMilliseconds) ms, and takes up what its "
                + "sockets hold")
    }

    private mutating func note(_ effects: Effects, _ requests: Requests) {
        let replies = effects.replies
        for number in replies.datagrams.indices {
            guard let client = requests.client(at: replies.datagrams[number].remote) else { continue }
            let id = replies.transactionID(of: replies.datagrams[number])
            if answered.count == GroupBook.answeredCount { answered.removeFirst(GroupBook.answeredCount / 2) }
            answered.append(Answered(client: client, transactionID: id))
        }
    }

    /// Forgets whatever is answered, decided or refused.
    private mutating func settle(_ step: borrowing Step, _ effects: Effects, _ requests: Requests) {
        for entry in step.applied {
            var cursor = UpdateCursor(entry.header)
            // Somebody may have had to tell that it is refused, and died.
            if entry.header.updateCount == 0 { forgetAll { _ in true } }
            while let update = try? cursor.next(entry.bytes) {
                guard let announced = Announced(update) else { continue }
                let client = requests.client(listeningAt: announced.address)
                forgetAll { $0.isAnnounce && $0.client == client }
            }
        }
        for reply in effects.replies.datagrams {
            let client = requests.client(at: reply.remote)
            forgetAll { $0.client == client }
        }
        for observation in effects.observations {
            if case .aborted = observation { forgetAll { _ in true } }
        }
    }

    private mutating func forgetAll(where isOver: (Booked) -> Bool) {
        isEmpty = true
        for node in booked.indices {
            booked[node].removeAll { isOver($0) }
            if !booked[node].isEmpty { isEmpty = false }
        }
    }

    /// Whether a tracker has booked a datagram that nobody has answered.
    mutating func hasBooked(_ node: Int) -> Bool { !isEmpty && !booked[node].isEmpty }

    /// Since when the oldest of those waits that are a tracker's to attend to.
    ///
    /// - Parameters:
    ///   - node: the tracker.
    ///   - leadsSince: since when it may have led; nil for a slave, which sends on announces alone.
    ///   - limit: connects and scrapes that a new master has heard longer before are answered already.
    ///   - time: now.
    /// - Returns: when the tracker has heard it; nil where none waits.
    mutating func oldest(at node: Int, leadsSince: Instant?, limit: Duration, now time: Instant) -> Instant? {
        guard !isEmpty, !booked[node].isEmpty else { return nil }
        booked[node].removeAll { time - $0.at > GroupBook.keptFor }
        return booked[node].first { request in
            request.isAnnounce || leadsSince.map { $0 - request.at < limit } ?? false
        }?.at
    }
}
