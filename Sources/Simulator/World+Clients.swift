/// People and their clients, and what travels between them and the nodes.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

extension World {
    // MARK: - The network

    mutating func sendToClient(_ remote: SocketAddress, _ bytes: [UInt8]) {
        let place = AddressPlan.place(of: remote)
        tally.repliesToClients += 1
        // Strangers do not wait for answers.
        guard clients.indices.contains(place), clients[place].address == remote else { return }
        let fate = network.carry(byteCount: bytes.count, now: now)
        let bytes = World.spoiled(bytes, fate)
        if let first = fate.first { queue.put(.datagramAtClient(place, bytes), at: now + first) }
        if let second = fate.second { queue.put(.datagramAtClient(place, bytes), at: now + second) }
    }

    mutating func sendToNode(_ node: Int, from remote: SocketAddress, _ bytes: [UInt8]) {
        let fate = network.carry(byteCount: bytes.count, now: now)
        let bytes = World.spoiled(bytes, fate)
        if let first = fate.first { queue.put(.datagramAtNode(node, from: remote, bytes), at: now + first) }
        if let second = fate.second { queue.put(.datagramAtNode(node, from: remote, bytes), at: now + second) }
    }

    private static func spoiled(_ bytes: [UInt8], _ fate: SimulatedNetwork.Fate) -> [UInt8] {
        guard let bit = fate.flippedBit else { return bytes }
        var bytes = bytes
        bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        return bytes
    }

    // MARK: - Clients

    mutating func stepClient(_ place: Int, _ event: Announcer.Event) {
        guard clients[place].stage != .absent || clients[place].kind == .scraper else { return }
        let wasWaiting = clients[place].announcer.isWaiting
        clients[place].announcer.step(event, now: now, into: &clientEffects)
        trace.absorb(UInt64(bitPattern: now.nanoseconds))
        trace.absorb(
            UInt64(place) << 32 | UInt64(clientEffects.sends.count) << 8 | UInt64(clientEffects.outcomes.count))
        for bytes in clientEffects.sends { sendToNode(clients[place].home, from: clients[place].address, bytes) }
        let outcomes = clientEffects.outcomes
        clientEffects.removeAll()
        for outcome in outcomes { ended(place, outcome) }
        if !clients[place].announcer.isWaiting {
            clients[place].askedAt = nil
        } else if !wasWaiting || !outcomes.isEmpty || event == .updateWanted {
            clients[place].askedAt = now
        }
        scheduleWake(place)
    }

    /// A request of a client has come to its end.
    private mutating func ended(_ place: Int, _ outcome: Announcer.Outcome) {
        trace.line(now, "client \(place)", World.describe(outcome))
        if let nudgedAt, let askedAt = clients[place].askedAt, askedAt >= nudgedAt, now - askedAt > World.answerBound {
            checks.violate(
                .healedIsAnswered, at: now,
                "client \(place) is answered after \((now - askedAt).wholeMilliseconds) ms")
        }
        switch outcome {
        case .announced: clients[place].isGranted = true
        case .refused:
            tally.refusals += 1
            clients[place].isGranted = false
        case .timedOut: tally.timeOuts += 1
        case .scraped, .malformed: break
        }
        if clients[place].stage == .leaving, clients[place].announcer.isIdle { depart(place) }
        if clients[place].kind == .scraper, clients[place].announcer.isIdle {
            queue.put(.clientActs(place, resolve: clients[place].resolve, .scrape), at: now + workload.scrapePause())
        }
    }

    private mutating func scheduleWake(_ place: Int) {
        guard let deadline = clients[place].announcer.nextDeadline else { return }
        if let planned = clients[place].wakeAt, planned <= deadline, planned > now { return }
        clients[place].wakeAt = deadline
        queue.put(.clientWakes(place), at: deadline)
    }

    mutating func wakeClient(_ place: Int) {
        // A wake that was overtaken by another.
        guard clients[place].wakeAt == now else { return }
        clients[place].wakeAt = nil
        guard clients[place].stage != .absent || clients[place].kind == .scraper else { return }
        if let deadline = clients[place].announcer.nextDeadline, deadline > now { return scheduleWake(place) }
        stepClient(place, .deadlineReached)
    }

    // MARK: - People

    mutating func act(_ place: Int, _ act: SimulatedClient.Act) {
        // After the faults everybody stays as he is, so that it can be said who is there.
        guard !isHealed || act == .scrape else { return }
        trace.line(now, "client \(place)", "\(act)")
        switch act {
        case .arrive: arrive(place)
        case .progress:
            let done = clients[place].progress.left / 2
            clients[place].progress.left -= done
            clients[place].progress.downloaded += done
            stepClient(place, .downloadProgressed(clients[place].progress))
        case .complete:
            clients[place].progress.downloaded += clients[place].progress.left
            clients[place].progress.left = 0
            stepClient(place, .downloadCompleted(clients[place].progress))
        case .stop:
            clients[place].resolve += 1
            clients[place].stage = .leaving
            stepClient(place, .downloadStopped(clients[place].progress))
        case .vanish: depart(place)
        case .scrape: stepClient(place, .scrapeWanted(workload.scrape()))
        }
    }

    mutating func arrive(_ place: Int) {
        clients[place].resolve += 1
        clients[place].stage = .present
        clients[place].isGranted = false
        for (delay, act) in workload.visit(&clients[place]) {
            queue.put(.clientActs(place, resolve: clients[place].resolve, act), at: now + delay)
        }
        stepClient(place, .downloadStarted(clients[place].subject, clients[place].progress))
    }

    private mutating func depart(_ place: Int) {
        clients[place].resolve += 1
        clients[place].stage = .absent
        clients[place].askedAt = nil
        queue.put(.clientActs(place, resolve: clients[place].resolve, .arrive), at: now + workload.absence())
    }

    // MARK: - Strangers and visitors

    mutating func strangerActs(_ number: Int) {
        guard !isHealed else { return }
        let place = clients.count + number
        for _ in 0..<(1 + workload.random.below(3)) {
            sendToNode(0, from: checks.correspondents[place].address, workload.junk())
        }
        queue.put(.strangerActs(number), at: now + workload.strangerPause())
    }

    mutating func visitorActs(_ number: Int) {
        guard !isHealed else { return }
        queue.put(.visitorActs(number), at: now + workload.visitorPause())
        // Over TCP nobody waits for a node that is dead or held.
        guard isUp(0), nodes[0].heldUntil <= now else { return }
        lastVisit += 1
        var visit = Visit(id: lastVisit, source: AddressPlan.visitor(number))
        let content: ClientRequest.Content
        if workload.random.oneIn(4) {
            visit.scrape = Array(workload.scrape().prefix(Limits.scrapeHashes))
            content = .scrape(visit.scrape)
        } else {
            let events: [AnnounceEvent] = [.started, .none, .completed, .stopped]
            let announce = Announce(
                infoHash: workload.infoHash(), peerID: PeerID(Workload.bytes20(&workload.random)),
                left: UInt64(workload.random.below(2)), event: events[workload.random.below(4)],
                numWant: workload.random.oneIn(2) ? nil : workload.random.below(100), port: 5000)
            visit.announce = Visit.Announcement(
                infoHash: announce.infoHash, peerID: announce.peerID, downloaded: 0, left: announce.left,
                event: announce.event, numWant: announce.numWant ?? nodes[0].configuration.numWant,
                port: announce.port)
            content = .announce(announce)
        }
        checks.visits.append(visit)
        step(0, .requestReceived(ClientRequest(id: visit.id, source: visit.source, content: content)), .heard)
    }
}
