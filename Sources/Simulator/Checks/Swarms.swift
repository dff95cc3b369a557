// The swarms as the log says they are, and who waits for what it holds.

import Primitives
import TrackerLogic
import Wire

/// The swarms as the log says they are, and who waits for what it holds: each decided entry is carried over to the
/// model in the order of the log, at the moment at which the first tracker applies it.
struct Swarms: Sendable {
    /// Whether what is found on a disk is being carried over, for which nobody waits.
    var isSettling = false
    /// The interval that clients are told, in seconds, where one is decided (quorum mode).
    private var toldInterval: UInt32?
    private var intervals = ToldIntervals()
    /// The swarms before each of the last entries, the latest last, where there is little room for anybody: one of them
    /// is what an announce in an entry was held against.
    private var earlier: [SwarmModel] = []
    /// Downloads that the entry has completed that is being carried over.
    private var completions: UInt32 = 0
    /// In a group, the latest of what anybody may have to answer: also one who starts later.
    private var expectedGroupReplies: [ExpectedReply] = []

    /// What a tracker of a group that begins may have to answer.
    func expectedReplies(after index: UInt64) -> [ExpectedReply] {
        expectedGroupReplies.filter { $0.place.index > index }
    }

    /// Carries a decided entry over to the model, and notes who waits for it.
    mutating func carryOver(
        _ decided: Log.Decided, _ step: borrowing Step, _ scene: inout Scene, _ requests: inout Requests,
        _ elections: inout Elections, _ stops: inout Stops
    ) {
        let (entry, tickets) = (decided.entry, decided.tickets)
        let (position, header) = (entry.position, entry.header)
        guard let table = step.table else { preconditionFailure("whoever applies an entry shows its table") }
        let limits = scene.configurations[step.node].limits
        if limits.areSmall { remember(scene.model) }
        completions = 0
        intervals.note(scene.model.peerCount, scene)
        if scene.isGroup { scene.settled.note(header, tickets) }
        scene.model.begin(header)
        scene.console.begin(header)
        var cursor = UpdateCursor(header)
        var ordinal: UInt32 = 0
        var next = 0
        var isAnySwarmChanged = false
        var areRulesChanged = false
        do throws(EntryDamaged) {
            while let update = try cursor.next(entry.bytes) {
                let isWaitedFor = next < tickets.count && tickets.tickets[next].ordinal == ordinal
                let life = isWaitedFor ? tickets.life(of: tickets.tickets[next]) : nil
                let number = isWaitedFor ? tickets.tickets[next].number : 0
                if isWaitedFor { next += 1 }
                if let announced = Announced(update) {
                    let place = ExpectedReply.Place(index: position.index, ordinal: ordinal, chain: position.chain)
                    carryOver(announced, update, table, place, life, number, step, &scene, &requests)
                } else if case .setMembers(let ids) = update {
                    elections.checkMembers(ids, step, &scene)
                    scene.members = ids
                    scene.membersSince = step.time
                } else if case .setInterval(let seconds) = update {
                    toldInterval = seconds
                    if !isSettling, let fault = intervals.fault(in: seconds, scene.configurations[step.node]) {
                        scene.violate(.intervalSuitsPeers, at: step.time, "entry \(position.index): \(fault)")
                    }
                } else if case .emptyShard(let shard) = update {
                    scene.model.apply(update, table)
                    stops.checkEmptied(shard, header, table, step, &scene, &requests)
                    isAnySwarmChanged = true
                } else if case .expire = update {
                    expire(update, table, step, &scene, &requests)
                    isAnySwarmChanged = true
                } else if case .console(let update) = update {
                    if let theft = scene.console.theft(by: update) {
                        scene.violate(.uploadsStay, at: step.time, theft)
                    }
                    if let loss = scene.console.loss(by: update, scene.directory, at: step.time) {
                        scene.violate(.filesAreRegistered, at: step.time, loss)
                    }
                    if let passkey = scene.console.givenPasskey(by: update),
                        scene.access.wasAlwaysUsers(passkey, since: position.index - min(position.index, 3))
                    {
                        scene.violate(
                            .changesAreJudged, at: step.time,
                            "entry \(position.index) gives an account the passkey that a user has by a file")
                    }
                    scene.console.apply(update) { step.files?.chunk(of: $0) }
                    areRulesChanged = true
                } else {
                    scene.model.apply(update, table)
                    areRulesChanged = true
                }
                ordinal += 1
            }
        } catch {
            scene.violate(.recordIsReadable, at: step.time, "entry \(position.index) cannot be read")
        }
        scene.note(completions: completions, in: position.index)
        if areRulesChanged || limits.peers < 1000 || limits.torrents < 1000 {
            scene.access.note(scene.model, scene.console)
        }
        guard isAnySwarmChanged else { return }
        for infoHash in scene.history.infoHashes {
            scene.history.note(infoHash, scene.model.counts(of: infoHash), after: position.index)
        }
    }

    /// Whoever made the entry that follows had applied all before it, but for two that may have been under way.
    private mutating func remember(_ model: SwarmModel) {
        if earlier.count >= 3 { earlier.removeFirst() }
        earlier.append(model)
    }

    /// Nobody is let in without a port, nor who finds no room.
    private func checkRoom(_ announced: Announced, entry: UInt64, _ step: borrowing Step, _ scene: inout Scene) {
        if announced.address.port == 0 {
            return scene.violate(
                .admissionIsJustified, at: step.time, "entry \(entry) has an announce of \(announced.address)")
        }
        let limits = scene.configurations[step.node].limits
        guard limits.areSmall, !earlier.isEmpty, !isSettling,
            !earlier.contains(where: { $0.hasRoom(for: announced, limits) })
        else { return }
        scene.violate(
            .admissionIsJustified, at: step.time,
            "entry \(entry) has an announce of \(announced.address), for whom there was no room")
    }

    private mutating func carryOver(
        _ announced: Announced, _ update: Update, _ table: SwarmTable, _ place: ExpectedReply.Place, _ life: Life?,
        _ number: UInt64, _ step: borrowing Step, _ scene: inout Scene, _ requests: inout Requests
    ) {
        checkRoom(announced, entry: place.index, step, &scene)
        let before = scene.model.swarm(announced.infoHash)
        let completed = before?.completed ?? 0
        // Who has left or was taken out, and is heard of again by a late copy, is a new peer.
        let isKnown = before?.place(of: announced.address) != nil
        scene.model.apply(update, table)
        let swarm = scene.model.swarm(announced.infoHash) ?? SwarmModel.Swarm(infoHash: announced.infoHash)
        scene.history.note(announced.infoHash, swarm.counts, after: place.index)
        if swarm.completed > completed { completions += 1 }
        if let (client, sentAt) = requests.checkAsked(announced, life, number, step, &scene) {
            requests.checkAdmitted(announced, client, entry: place.index, step, &scene)
            if announced.event == .stopped {
                requests.ledger.decidedStop(announced.infoHash, by: client, announced.address, index: place.index)
            }
            // No tracker can tell a copy that the network has held back for long from a new request.
            let isLate = requests.ledger.isLate(announced.infoHash, by: client, announced.address, sentAt: sentAt)
            if swarm.completed > completed, isKnown, !isLate,
                !requests.ledger.counted(announced.infoHash, by: client, announced.address)
            {
                scene.violate(
                    .completedCountsOnce, at: step.time,
                    "entry \(place.index) counts one download of \(announced.address) once more")
            }
        }
        // A tracker alone answers all that it has in its log, and needs no tickets for that.
        let waiting = life ?? (scene.promises.answersAtOnce && !isSettling ? step.view.life : nil)
        guard let life = waiting else { return }
        let expected = ExpectedReply(
            place: place, time: scene.model.time, decidedAt: step.time, announced: announced, swarm: swarm,
            interval: toldInterval)
        expect(expected, from: life, &scene)
    }

    /// Whoever has heard the request, or in a group everybody, may have to answer it.
    private mutating func expect(_ expected: ExpectedReply, from life: Life, _ scene: inout Scene) {
        if life == Tickets.group {
            if expectedGroupReplies.count >= Scene.groupAnswerCount * 2 {
                expectedGroupReplies.removeFirst(Scene.groupAnswerCount)
            }
            expectedGroupReplies.append(expected)
        }
        for node in scene.nodes.indices {
            guard let view = scene.nodes[node].view, life == Tickets.group || life == view.life else { continue }
            scene.nodes[node].expectedReplies.append(expected)
        }
    }

    /// In survivor mode, a tracker's own clients that wait for an entry.
    func expectReplies(_ entry: Entry, _ step: borrowing Step, _ scene: inout Scene) {
        let (position, header) = (entry.position, entry.header)
        guard let tickets = try? Tickets(entry.bytes, header), !tickets.isEmpty else { return }
        var cursor = UpdateCursor(header)
        var ordinal: UInt32 = 0
        var next = 0
        let first = scene.nodes[step.node].expectedReplies.count
        // What the table shows after the step is what the last update of a swarm has left.
        let table = position == step.view.position ? step.table : nil
        while let update = try? cursor.next(entry.bytes) {
            defer { ordinal += 1 }
            if let table { noteLaterWord(update, since: first, step, table, &scene) }
            guard next < tickets.count, tickets.tickets[next].ordinal == ordinal else { continue }
            let life = tickets.life(of: tickets.tickets[next])
            next += 1
            guard life == Tickets.group || life == step.view.life, let announced = Announced(update) else { continue }
            scene.nodes[step.node].expectedReplies.append(
                ExpectedReply(
                    place: ExpectedReply.Place(index: position.index, ordinal: ordinal, chain: position.chain),
                    time: header.time, decidedAt: step.time, announced: announced, swarm: nil,
                    counts: table?.counts(of: announced.infoHash)))
        }
    }

    /// Forgets what was said of a swarm that a later update of the entry changes.
    private func noteLaterWord(
        _ update: Update, since first: Int, _ step: borrowing Step, _ table: SwarmTable, _ scene: inout Scene
    ) {
        let announced = Announced(update)
        for place in first..<scene.nodes[step.node].expectedReplies.count {
            if let announced, scene.nodes[step.node].expectedReplies[place].announced.infoHash != announced.infoHash {
                continue
            }
            scene.nodes[step.node].expectedReplies[place].counts = nil
        }
    }

    /// Takes the silent out of the model; nobody may be among them who was told that he has more time.
    private mutating func expire(
        _ update: Update, _ table: SwarmTable, _ step: borrowing Step, _ scene: inout Scene, _ requests: inout Requests
    ) {
        checkPatience(update, step, &scene)
        let now = UInt64(scene.model.time.seconds)
        let patient = requests.ledger.accounts.joined().filter { account in
            account.answeredAt > 0 && now <= account.livesUntil
                && scene.model.swarm(account.infoHash)?.place(of: account.address) != nil
        }
        scene.model.apply(update, table)
        for account in patient where scene.model.swarm(account.infoHash)?.place(of: account.address) == nil {
            scene.violate(
                .expiryIsPatient, at: step.time,
                "peer \(account.address) of \(account.infoHash) was told \(account.told) s and is taken out "
                    + "\(now - UInt64(account.answeredAt)) s after that")
        }
    }

    /// A torrent without peers keeps its count for thirty days; for an hour where the table is nearly full.
    ///
    /// As docs/bounds.md has it: by more than three quarters. An entry may have waited, and clocks been set ahead.
    private func checkPatience(_ update: Update, _ step: borrowing Step, _ scene: inout Scene) {
        guard case .expire(_, _, let emptyBefore) = update, emptyBefore > 0 else { return }
        let limits = scene.configurations[step.node].limits
        let age = UInt64(scene.model.time.seconds) - min(UInt64(scene.model.time.seconds), UInt64(emptyBefore))
        if age >= 30 * 86_400 { return }
        let full = limits.torrents / 4 * 3
        let wasFull = scene.model.swarms.count > full || earlier.contains { $0.swarms.count > full }
        if wasFull, age >= 3_600 { return }
        scene.violate(
            .expiryIsPatient, at: step.time,
            "entry \(scene.model.index) forgets torrents that have been empty for \(age) s")
    }
}

extension Limits {
    /// Whether a world may reach them.
    fileprivate var areSmall: Bool {
        peers < 1000 || torrents < 1000 || peersPerSwarm < 1000 || peersPerAddress < 1000
    }
}
