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
    /// A tracker keeps a request for 15 s, by when a client asks again (BEP 15), and looks each quarter of a keepalive:
    /// all by its own clock, which may be slow.
    private var patience: Duration {
        .milliseconds(17_000 * 1_000_000 / (1_000_000 - options.maxDrift))
    }

    mutating func visitorActs(_ number: Int) {
        guard !isHealed else { return }
        queue.put(.visitorActs(number), at: now + visitors.between(.milliseconds(100), .seconds(6)))
        checkVisits()
        visit(visitors.below(nodes.count), from: number)
    }

    /// All trackers are asked over HTTP, and have to answer as soon as they answer anybody.
    mutating func visitAll() {
        guard options.visitorCount > 0 else { return }
        for node in nodes.indices { visit(node, from: 0) }
    }

    private mutating func visit(_ node: Int, from number: Int) {
        guard nodes[node].isUp, !nodes[node].isStopping, nodes[node].heldUntil <= now else { return }
        lastVisit += 1
        let content: ClientRequest.Content
        var hashCount = 0
        let infoHash = workload.infoHashes[visitors.below(workload.infoHashes.count)]
        if visitors.oneIn(2) {
            hashCount = 1 + visitors.below(3)
            content = .scrape(Array(repeating: infoHash, count: hashCount))
        } else {
            let events: [AnnounceEvent] = [.started, .none, .completed, .stopped]
            content = .announce(
                Announce(
                    infoHash: infoHash, peerID: PeerID(Workload.bytes20(&visitors)),
                    left: UInt64(visitors.below(2)), event: events[visitors.below(events.count)],
                    numWant: visitors.oneIn(2) ? nil : visitors.below(100), port: 5000))
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
            if nodes[visit.node].heldUntil > now || !seats[visit.node].isToldOnBus { return false }
            // As long as an entry is under way, so is what it holds; and while the role is handed over, what the next
            // entry is to hold waits for that.
            if nudgedAt == nil, let node = nodes[visit.node].inspection, node.pending != nil || node.isHandingOver {
                return false
            }
            let isWell = nudgedAt.map { visit.askedAt >= $0 } ?? false
            return now - visit.askedAt > (isWell ? ClusterWorld.answerBound : patience)
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
