// Clients over HTTP.

import Primitives
import TrackerLogic
import Wire

/// Clients over HTTP: each asks one tracker over a connection, and waits there.
///
/// Nothing is lost on the way, and nobody asks again; so a tracker that lives owes each of them an answer, if only that
/// it has none.
extension World {
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
        let infoHash = workload.infoHashes[random.below(workload.infoHashes.count)]
        if random.oneIn(2) {
            let hashCount = 1 + random.below(3)
            content = .scrape(Array(repeating: infoHash, count: hashCount))
        } else {
            let events: [AnnounceEvent] = [.started, .none, .completed, .stopped]
            content = .announce(
                Announce(
                    infoHash: infoHash, peerID: PeerID(Workload.bytes20(&random)),
                    left: UInt64(random.below(2)), event: events[random.below(events.count)],
                    numWant: random.oneIn(2) ? nil : random.below(100), port: 5000))
        }
        var request = ClientRequest(id: lastVisit, source: AddressPlan.visitor(number), content: content)
        if !whims.isEmpty { takeWhims(number, &request) }
        checks.visited(request, node: node, life: nodes[node].life, at: now)
        step(node, .requestReceived(request))
    }

    /// A visit that is something else than most.
    private mutating func takeWhims(_ number: Int, _ request: inout ClientRequest) {
        var random = RandomStream(seed: whims[number].next())
        // Without clients it is one that nobody has been given.
        if random.oneIn(2) { request.passkey = Workload.passkey(random.below(max(1, 2 * options.clientCount))) }
        if random.oneIn(3) { request.source = AddressPlan.visitor(number, isIPv6: true) }
        switch request.content {
        case .announce(var announce):
            if random.oneIn(8) { announce.infoHash = InfoHash(Workload.bytes20(&random)) }
            if random.oneIn(12) { announce.port = 0 }
            if random.oneIn(6) { announce.numWant = -1 - random.below(9) }
            request.content = .announce(announce)
        case .scrape:
            let count = random.oneIn(8) ? 70 + random.below(20) : 1 + random.below(6)
            request.content = .scrape(
                (0..<count).map { _ in
                    random.oneIn(4)
                        ? InfoHash(Workload.bytes20(&random))
                        : workload.infoHashes[random.below(workload.infoHashes.count)]
                })
        }
    }

    /// Whoever waits on a connection to a tracker that lives is answered in time.
    mutating func checkVisits() {
        let lives = nodes.map { $0.life }
        let waiting = checks.openVisits(inLives: lives).first { visit in
            // Without its bus it looks at nothing; there the HTTP server's own patience ends first.
            if nodes[visit.node].heldUntil > now || hasBus && !connectivity[visit.node].isToldOnBus { return false }
            // What an entry is to hold waits while the role is handed over; a read is in none.
            if clientsWokenAt == nil, visit.announce != nil, nodes[visit.node].inspection?.isHandingOver == true {
                return false
            }
            if let clientsWokenAt, visit.askedAt >= clientsWokenAt { return now - visit.askedAt > World.answerBound }
            // As long as an entry is under way, so is what it holds.
            let pendingAt = visit.announce == nil ? visit.askedAt : nodes[visit.node].pendingAt
            let held = max(nodes[visit.node].heldUntil, connectivity[visit.node].busSince, pendingAt)
            return now - max(visit.askedAt + keptFor, held) > World.lookTime
        }
        guard let waiting else { return }
        violate(
            .requestsAreKept,
            "HTTP request \(waiting.request.id) at \(trace.names[waiting.node]) has waited for "
                + "\((now - waiting.askedAt).wholeMilliseconds) ms")
    }
}
