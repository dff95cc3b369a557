// People and their clients.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

/// People and their clients, and what travels between them and the trackers.
///
/// With the entry `any`, a client asks the trackers of its list one after another (BEP 12, one tier) and takes replies
/// from the one that it asks only; with the entry `group` it asks all at once and takes a reply from anywhere.
extension World {
    static func announcer(
        for address: SocketAddress, _ options: ScenarioOptions, _ random: RandomStream
    ) -> Announcer {
        var patience = Announcer.RetryTimeouts()
        // Scenarios are short, so their intervals are.
        patience.minInterval = .seconds(2)
        patience.firstWait = options.clientWait
        patience.maxRetransmissions = options.clientRetransmissions
        return Announcer(isIPv6: !address.isIPv4, random: random, patience: patience)
    }

    // MARK: - The network

    mutating func sendToClient(_ remote: SocketAddress, from node: Int, _ bytes: [UInt8]) {
        if keepsHistory {
            let source = AddressPlan.node(node, isIPv6: !remote.isIPv4)
            history.captures.append(
                History.Capture(time: now, source: source, destination: remote, bytes: bytes))
        }
        let place = AddressPlan.place(of: remote)
        guard addresses.indices.contains(place), addresses[place] == remote, connectivity[node].darkUntil <= now else {
            return
        }
        let path = (place * nodes.count + node) * 2 + 1
        let fate = network.carry(&paths[path])
        let bytes = spoiled(bytes, on: path)
        guard let first = fate.first else { return note(.reply(place, bytes), from: node, to: place, as: 0) }
        let id = queue.put(.datagramAtClient(place, from: node, bytes), at: now + first)
        note(.reply(place, bytes), from: node, to: place, as: id)
        guard let second = fate.second else { return }
        let other = queue.put(.datagramAtClient(place, from: node, bytes), at: now + second)
        note(.reply(place, bytes), from: node, to: place, as: other, isAgain: true)
    }

    /// Sends a client's datagram to a tracker; with the entry `group`, all hear it, each over its own path.
    mutating func sendToTrackers(_ place: Int, _ node: Int, _ bytes: [UInt8]) {
        let remote = addresses[place]
        let isGroup = options.entry == .group
        checks.clientSent(client: place, bytes: bytes, node: isGroup ? nil : node, at: now)
        if keepsHistory {
            let destination =
                isGroup ? AddressPlan.group(isIPv6: !remote.isIPv4) : AddressPlan.node(node, isIPv6: !remote.isIPv4)
            history.captures.append(
                History.Capture(time: now, source: remote, destination: destination, bytes: bytes))
        }
        guard isGroup else { return carry(place, node, bytes) }
        for node in nodes.indices { carry(place, node, bytes) }
    }

    private mutating func carry(_ place: Int, _ node: Int, _ bytes: [UInt8]) {
        guard connectivity[node].isThere else { return }
        let remote = addresses[place]
        let path = (place * nodes.count + node) * 2
        let fate = network.carry(&paths[path])
        let bytes = spoiled(bytes, on: path)
        guard let first = fate.first else { return note(.datagram(place, bytes), from: place, to: node, as: 0) }
        let id = queue.put(.datagramAtNode(node, from: remote, bytes), at: now + first)
        note(.datagram(place, bytes), from: place, to: node, as: id)
        guard let second = fate.second else { return }
        let other = queue.put(.datagramAtNode(node, from: remote, bytes), at: now + second)
        note(.datagram(place, bytes), from: place, to: node, as: other, isAgain: true)
    }

    /// A datagram as it comes out of the network: now and then, one of its bits has flipped.
    private mutating func spoiled(_ bytes: [UInt8], on path: Int) -> [UInt8] {
        guard !flips.isEmpty, let bit = network.flippedBit(of: bytes.count, &flips[path]) else { return bytes }
        tally.flips += 1
        var bytes = bytes
        bytes[bit / 8] ^= 1 << UInt8(bit % 8)
        return bytes
    }

    /// A reply has reached a client's socket.
    mutating func hear(_ place: Int, from node: Int, _ bytes: [UInt8]) {
        trace.absorb(now, 7, place)
        // Replies are checked when they leave. That one comes to whom it is for is the network's affair.
        // Strangers do not wait for answers.
        guard clients.indices.contains(place) else {
            noteArrival(.arrived)
            return hearTransfers(place, from: node, bytes)
        }
        guard options.entry == .group || clients[place].home == node else { return noteArrival(.nobody) }
        noteArrival(.arrived)
        stepClient(place, .datagramReceived(bytes))
    }

    // MARK: - Clients

    mutating func stepClient(_ place: Int, _ event: Announcer.Event) {
        guard clients[place].stage != .absent || clients[place].kind == .scraper else { return }
        let wasWaiting = clients[place].announcer.isWaiting
        if case .downloadStarted = event { checks.clients.starts(place) }
        clients[place].announcer.step(event, now: now, into: &clientEffects)
        let isAnswered = clientEffects.outcomes.contains { if case .announced = $0 { true } else { false } }
        // What it sends now it sends after that.
        if isAnswered { checks.clients.answered(place) }
        trace.absorb(now, 8, place)
        trace.absorb(UInt64(clientEffects.sends.count) << 8 | UInt64(clientEffects.outcomes.count))
        for bytes in clientEffects.sends { sendToTrackers(place, clients[place].home, bytes) }
        let outcomes = clientEffects.outcomes
        clientEffects.removeAll()
        for outcome in outcomes { ended(place, outcome) }
        if !clients[place].announcer.isWaiting {
            clients[place].askedAt = nil
        } else if !wasWaiting || !outcomes.isEmpty || event == .updateWanted {
            // Who goes on to the next tracker waits on.
            if !outcomes.contains(.timedOut) || clients[place].askedAt == nil { clients[place].askedAt = now }
        }
        scheduleWake(place)
    }

    /// Whether a request may be met by silence, and be sent once more, though all works.
    ///
    /// Where clocks are too far apart for connection ids, trackers do not agree on who has proved its address. One that
    /// is not in service, or a slave of a group, says nothing to what it takes for forged, and does not keep it.
    ///
    /// Only while the role changes hands: where elections go on and on, nobody is excused. And where few errors go to
    /// one address, one of them may have been withheld.
    func mayBeUnheard(since askedAt: Instant) -> Bool {
        if let withheldAt = checks.withheldAt, withheldAt >= askedAt { return true }
        return !checks.hasGoodClocks && lastMasterAt >= askedAt && lastMasterAt - askedAt <= .seconds(1)
    }

    /// A request of a client has come to its end.
    private mutating func ended(_ place: Int, _ outcome: Announcer.Outcome) {
        trace.line(now, .clients, "client \(place) \(TraceText.describe(outcome))")
        if let clientsWokenAt, let askedAt = clients[place].askedAt, askedAt >= clientsWokenAt,
            now - askedAt > World.answerBound, !mayBeUnheard(since: askedAt)
        {
            violate(
                .healedIsAnswered, "client \(place) is answered after \((now - askedAt).wholeMilliseconds) ms")
        }
        switch outcome {
        case .announced:
            tally.answers += 1
            clients[place].isGranted = true
            if !clients[place].announcer.isWaiting { owesCompleted[place] = false }
        case .refused:
            tally.answers += 1
            tally.refusals += 1
            clients[place].isGranted = false
        case .scraped: tally.answers += 1
        case .malformed: break
        case .timedOut:
            tally.timeOuts += 1
            if goOn(place) { return }
        }
        if clients[place].stage == .leaving, clients[place].announcer.isIdle { depart(place) }
        if clients[place].kind == .scraper, clients[place].announcer.isIdle {
            let pause = people[place].random.between(.seconds(1), options.stay)
            queue.put(.clientActs(place, resolve: clients[place].resolve, .scrape), at: now + pause)
        }
    }

    /// A client gives its tracker up and asks the next of its list.
    ///
    /// - Returns: whether it asks on.
    private mutating func goOn(_ place: Int) -> Bool {
        let isScraper = clients[place].kind == .scraper
        let next = (tiers[place].firstIndex(of: clients[place].home) ?? 0) + 1
        clients[place].home = tiers[place][next % tiers[place].count]
        // A scraper that was heard nowhere asks something else, later; somebody who leaves does not ask for ever.
        if next == tiers[place].count, isScraper || clients[place].stage == .leaving { return false }
        let random = RandomStream(seed: people[place].announcers.next())
        clients[place].announcer = World.announcer(for: clients[place].address, options, random)
        // `stepClient` has emptied the buffer before it came here, and looks at the announcer after.
        var effects = Announcer.Effects()
        if isScraper {
            let wanted = drawing(place) { $0.scrape() }
            clients[place].announcer.step(.scrapeWanted(wanted), now: now, into: &effects)
        } else {
            startAnew(place, &effects)
        }
        // Of two wishes at once, the later has taken the place of the other.
        if let last = effects.sends.last { sendToTrackers(place, clients[place].home, last) }
        return true
    }

    private mutating func startAnew(_ place: Int, _ effects: inout Announcer.Effects) {
        let progress = clients[place].progress
        checks.clients.starts(place)
        clients[place].announcer.step(.downloadStarted(clients[place].subject, progress), now: now, into: &effects)
        if owesCompleted[place] {
            clients[place].announcer.step(.downloadCompleted(progress), now: now, into: &effects)
        }
        if clients[place].stage == .leaving {
            clients[place].announcer.step(.downloadStopped(progress), now: now, into: &effects)
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
        // After the faults everybody stays as he is.
        guard !isHealed || act == .scrape else { return }
        if trace.isRecording {
            let client = clients[place]
            trace.line(now, .clients, "client \(place) \(TraceText.describe(act, client))")
        }
        switch act {
        case .arrive: arrive(place)
        case .progress:
            let done = clients[place].progress.left / 2
            clients[place].progress.left -= done
            clients[place].progress.downloaded += done
            stepClient(place, .downloadProgressed(clients[place].progress))
        case .complete:
            // Nobody completes what he has.
            guard clients[place].progress.left > 0 else { return }
            clients[place].progress.downloaded += clients[place].progress.left
            clients[place].progress.left = 0
            owesCompleted[place] = true
            stepClient(place, .downloadCompleted(clients[place].progress))
        case .stop:
            clients[place].resolve += 1
            clients[place].stage = .leaving
            stepClient(place, .downloadStopped(clients[place].progress))
        case .vanish: depart(place)
        case .scrape: stepClient(place, .scrapeWanted(drawing(place) { $0.scrape() }))
        }
    }

    mutating func arrive(_ place: Int) {
        clients[place].resolve += 1
        clients[place].stage = .present
        clients[place].isGranted = false
        owesCompleted[place] = false
        people[place].random = RandomStream(seed, .visit, place, clients[place].resolve)
        var client = clients[place]
        let acts = drawing(place) { $0.visit(&client) }
        clients[place] = client
        for (delay, act) in acts {
            queue.put(.clientActs(place, resolve: clients[place].resolve, act), at: now + delay)
        }
        if trace.isRecording {
            let (infoHash, home) = (clients[place].infoHash, home(of: place))
            trace.line(now, .clients, "client \(place) starts with \(infoHash) at \(home)")
        }
        stepClient(place, .downloadStarted(clients[place].subject, clients[place].progress))
    }

    /// Whom a client asks.
    func home(of place: Int) -> String { options.entry == .group ? "the group" : trace.names[clients[place].home] }

    private mutating func depart(_ place: Int) {
        clients[place].resolve += 1
        clients[place].stage = .absent
        clients[place].askedAt = nil
        let absence = drawing(place) { $0.absence() }
        queue.put(.clientActs(place, resolve: clients[place].resolve, .arrive), at: now + absence)
    }

    mutating func strangerActs(_ number: Int) {
        guard !isHealed else { return }
        let node = strangers[number].below(nodes.count)
        swap(&workload.random, &strangers[number])
        let junk = workload.junk()
        swap(&workload.random, &strangers[number])
        sendToTrackers(clients.count + number, node, junk)
        queue.put(.strangerActs(number), at: now + strangers[number].between(.milliseconds(10), .seconds(8)))
    }

    // MARK: - Chance

    /// Draws what a person does.
    mutating func drawing<Drawn>(_ place: Int, _ draw: (inout Workload) -> Drawn) -> Drawn {
        swap(&workload.random, &people[place].random)
        defer { swap(&workload.random, &people[place].random) }
        return draw(&workload)
    }

    /// Draws what the fault under way has to do with people.
    mutating func drawingFault<Drawn>(_ draw: (inout Workload) -> Drawn) -> Drawn {
        swap(&workload.random, &plan.random)
        defer { swap(&workload.random, &plan.random) }
        return draw(&workload)
    }
}
