/// Clients over HTTP: each asks one tracker over a connection, and waits there. Nothing is lost on the way, and nobody
/// asks again; so a tracker that lives owes each of them an answer, if only that it has none.

import Primitives
import TrackerLogic
import Wire

/// A request over HTTP that has not been answered.
struct OpenVisit: Sendable {
    var id: UInt64
    var node: Int
    var life: Int
    var askedAt: Instant
    /// Info hashes that it asks for; none for an announce.
    var hashCount: Int
}

extension ClusterWorld {
    /// By its own clock a tracker keeps a request for 15 s, by when a client asks again (BEP 15).
    private var keptFor: Duration { .seconds(15) * 1_000_000 / Int(1_000_000 - options.maxDrift) }
    /// It looks each quarter of a keepalive; so long after it could look it has looked.
    private static let lookTime = Duration.seconds(2)

    mutating func visitorActs(_ number: Int) {
        guard !isHealed else { return }
        // Of each visit its own, for not all that is drawn is done.
        var random = RandomStream(seed: visitors[number].next())
        queue.put(.visitorActs(number), at: now + random.between(.milliseconds(100), .seconds(6)))
        checkVisits()
        visit(random.below(nodes.count), from: number, &random)
    }

    /// All trackers are asked over HTTP, and have to answer as soon as they answer anybody.
    mutating func visitAll() {
        guard options.visitorCount > 0 else { return }
        for node in nodes.indices {
            var random = RandomStream(seed, .lastVisit, node)
            visit(node, from: 0, &random)
        }
    }

    private mutating func visit(_ node: Int, from number: Int, _ random: inout RandomStream) {
        guard nodes[node].isUp, !nodes[node].isStopping, nodes[node].heldUntil <= now else { return }
        lastVisit += 1
        let content: ClientRequest.Content
        var hashCount = 0
        let infoHash = workload.infoHashes[random.below(workload.infoHashes.count)]
        if random.oneIn(2) {
            hashCount = 1 + random.below(3)
            content = .scrape(Array(repeating: infoHash, count: hashCount))
        } else {
            let events: [AnnounceEvent] = [.started, .none, .completed, .stopped]
            content = .announce(
                Announce(
                    infoHash: infoHash, peerID: PeerID(Workload.bytes20(&random)),
                    left: UInt64(random.below(2)), event: events[random.below(events.count)],
                    numWant: random.oneIn(2) ? nil : random.below(100), port: 5000))
        }
        visits.append(
            OpenVisit(id: lastVisit, node: node, life: nodes[node].life, askedAt: now, hashCount: hashCount))
        let request = ClientRequest(id: lastVisit, source: AddressPlan.visitor(number), content: content)
        step(node, .requestReceived(request))
    }

    /// A tracker answers requests over HTTP.
    mutating func answerVisitors(_ node: Int) {
        for answer in effects.answers {
            tally.visitsAnswered += 1
            guard let place = visits.firstIndex(where: { $0.id == answer.id }), visits[place].node == node else {
                violate(.answeredOnce, "tracker \(node) answers HTTP request \(answer.id), which nobody waits for")
                continue
            }
            let visit = visits.remove(at: place)
            switch answer.content {
            case .scrape(let counts):
                if counts.count != visit.hashCount {
                    violate(.replyIsRight, "\(counts.count) counts over HTTP, \(visit.hashCount) wanted")
                }
            case .announce(let announce):
                let longest = options.interval * IntervalPolicy.maxStretch + options.intervalJitter
                if visit.hashCount > 0 || announce.interval == 0 || announce.interval > longest {
                    violate(.replyIsRight, "an interval of \(announce.interval) s over HTTP")
                }
            case .failure(let refusal):
                if let nudgedAt, visit.askedAt >= nudgedAt, refusal.isTrouble {
                    violate(.healedIsAnswered, "HTTP at tracker \(node), when all is well: \(refusal.text)")
                }
            }
        }
    }

    /// Whoever waits on a connection to a tracker that lives is answered in time.
    mutating func checkVisits() {
        visits.removeAll { nodes[$0.node].life != $0.life }
        let waiting = visits.first { visit in
            // Without its bus it looks at nothing; there the HTTP server's own patience ends first.
            if nodes[visit.node].heldUntil > now || hasBus && !seats[visit.node].isToldOnBus { return false }
            // While the role is handed over, what the next entry is to hold waits for that.
            if nudgedAt == nil, nodes[visit.node].inspection?.isHandingOver == true { return false }
            if let nudgedAt, visit.askedAt >= nudgedAt { return now - visit.askedAt > ClusterWorld.answerBound }
            // As long as an entry is under way, so is what it holds.
            let held = max(nodes[visit.node].heldUntil, seats[visit.node].busSince, nodes[visit.node].pendingAt)
            return now - max(visit.askedAt + keptFor, held) > ClusterWorld.lookTime
        }
        guard let waiting else { return }
        violate(
            .requestsAreKept,
            "an HTTP request at tracker \(waiting.node) has waited for \((now - waiting.askedAt).wholeMilliseconds) ms")
    }
}

extension Refusal {
    /// Whether it tells of trouble at the tracker, and not of rules or limits.
    fileprivate var isTrouble: Bool {
        self == .notStored || self == .storageFailed || self == .busy || self == .notServing
    }
}
