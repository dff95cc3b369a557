/// What is decided: one value at an index, by a quorum, in the order of time; equal histories lead to equal states.

import Primitives
import TrackerLogic
import Wire

extension ClusterChecks {
    /// Where a tracker has got to in this step.
    mutating func checkPosition(_ step: ClusterStep, _ before: NodeSight) {
        let sight = step.sight
        guard sight.isWhole || !step.applied.isEmpty else { return }
        if before.isWhole, sight.position == before.position, sight.digest == before.digest { return }
        guard before.isWhole || !step.applied.isEmpty else { return observe(sight, step.node, at: step.time) }
        if sight.position.index < before.position.index, promises.hasOneHistory {
            return violate(
                .decidedIsForEver, at: step.time,
                "\(name(step.node)) goes back from entry \(before.position.index) to \(sight.position.index)")
        }
        // In survivor mode a tracker may give its history up for another, which need not be later.
        guard continues(step, before) else { return observe(sight, step.node, at: step.time) }
        if sight.position.index > before.position.index, sight.time < before.time {
            violate(
                .timeNeverRunsBack, at: step.time,
                "entry \(sight.position.index) is earlier than entry \(before.position.index)")
        }
        follow(step, before)
        observe(sight, step.node, at: step.time)
    }

    /// Whether a tracker goes on in the history that it had.
    private func continues(_ step: ClusterStep, _ before: NodeSight) -> Bool {
        guard !promises.hasOneHistory else { return true }
        guard let entry = step.applied.first, let header = try? EntryHeader(entry) else { return false }
        return header.index == before.position.index + 1 && header.previous == before.position.chain
    }

    /// The entries that a tracker has applied in this step, one after another.
    private mutating func follow(_ step: ClusterStep, _ before: NodeSight) {
        var position = before.position
        for entry in step.applied {
            guard let header = try? EntryHeader(entry) else {
                return violate(.recordIsReadable, at: step.time, "\(name(step.node)) applies a damaged entry")
            }
            if header.index == position.index + 1, header.previous != position.chain {
                return violate(
                    .decidedIsForEver, at: step.time,
                    "entry \(header.index) at \(name(step.node)) does not continue the history that it has")
            }
            position = Position(index: header.index, chain: EntryHeader.chain(entry))
            let finding = log.observe(position, digest: nil, node: step.node, at: step.time)
            if finding == .new { decide(position, header, entry, step, before) }
            if !promises.repliesAreLinear { expectReplies(position, header, entry, step) }
        }
    }

    /// The state that a tracker holds.
    mutating func observe(_ sight: NodeSight, _ node: Int, at time: Instant) {
        switch log.observe(sight.position, digest: sight.digest, node: node, at: time) {
        case .known: break
        case .new:
            guard promises.hasOneHistory else { return }
            violate(
                .decidedIsForEver, at: time,
                "\(name(node)) holds entry \(sight.position.index) of a history that nobody has decided")
        case .otherDigest(let other):
            violate(
                .statesAgree, at: time,
                "\(name(node)) and \(name(other.node)) hold different states after entry \(sight.position.index)")
        }
    }

    /// What a tracker alone finds on its disk as it begins is decided, told or not; nobody is answered for it any more.
    mutating func settle(_ record: DiskRecord, _ step: ClusterStep) {
        isSettling = true
        defer { isSettling = false }
        // Of the same index, and without swarms.
        if stops.isReplaced[step.node] { log.forgetState(log.lastIndex) }
        stops.isReplaced[step.node] = false
        for (offset, entry) in record.entries.enumerated() {
            let index = record.firstIndex + UInt64(offset)
            guard index > log.lastIndex else { continue }
            guard let header = try? EntryHeader(entry), header.index == index else {
                return violate(.recordIsReadable, at: step.time, "entry \(index) of \(name(step.node)) is damaged")
            }
            let position = Position(index: index, chain: EntryHeader.chain(entry))
            _ = log.observe(position, digest: nil, node: step.node, at: step.time)
            decide(position, header, entry, step, step.sight)
        }
    }

    /// The swarms of a tracker alone are gone with all that was in them, or the snapshot says what is left.
    mutating func emptied(by chunks: [SnapshotChunk], _ node: Int, at time: Instant) {
        let swarms = chunks.reduce(0) { $1.number == 0 ? $0 : $0 + ((try? $1.swarms().count) ?? 1) }
        if swarms > 0 || !stops.isAsked[node] || nodes[node].configuration.keepsSwarms {
            violate(.onlyStopsEmptySwarms, at: time, "\(name(node)) begins a new record with \(swarms) swarms")
        }
        stops.isReplaced[node] = true
        stops.count += 1
        model.removeAllSwarms()
        for infoHash in history.infoHashes { history.note(infoHash, SwarmCounts(), after: model.index) }
        ledger.close()
    }

    /// A value is applied for the first time: it is decided.
    private mutating func decide(
        _ position: Position, _ header: EntryHeader, _ entry: [UInt8], _ step: ClusterStep, _ before: NodeSight
    ) {
        checkQuorum(position, step, before)
        noteWords(header, entry, step)
        let tickets = (try? Tickets(entry, header)) ?? Tickets()
        checkAborted(position, header, tickets, step)
        guard promises.hasOneHistory else { return }
        if let first = log.branch(position.index), first.chain != position.chain {
            return violate(
                .decidedIsForEver, at: step.time,
                "entry \(position.index) at \(name(step.node)) is another than at \(name(first.node))")
        }
        guard position.index == model.index + 1 else {
            return violate(
                .logHasNoGap, at: step.time, "entry \(position.index) is applied after entry \(model.index)")
        }
        if header.time < lastDecidedTime {
            violate(.timeNeverRunsBack, at: step.time, "entry \(header.index) is earlier than the one before it")
        }
        lastDecidedTime = header.time
        carryOver(position, header, entry, tickets, step)
    }

    private mutating func checkQuorum(_ position: Position, _ step: ClusterStep, _ before: NodeSight) {
        if promises.membersDecide {
            let holders = holders(position, among: members)
            if holders.count <= members.count / 2 {
                violate(
                    .quorumDecides, at: step.time,
                    "\(name(step.node)) applies entry \(position.index), which is on the disks of \(holders.inBrackets) of "
                        + "the members \(members.inBrackets)")
            }
            return
        }
        // Whoever is given another entry in its place takes what he has voted for as decided (survivor mode).
        let headers = step.applied.lazy.compactMap { try? EntryHeader($0) }
        if before.leads == nil, headers.contains(where: { $0.index == position.index && $0.isAlone }) {
            return checkKept(position, step)
        }
        // Who counts may have changed in this very step, also before its end, where the tracker gives up its role.
        let left = before.voters.filter { !step.gone.contains($0) }
        let isDecided = [before.voters, step.sight.voters, left].contains { voters in
            let holders = holders(position, among: voters)
            guard holders.count > voters.count / 2 else { return false }
            return !promises.allDecide || voters.allSatisfy { holders.contains($0) || !isHeard($0, by: step) }
        }
        if !isDecided {
            violate(
                .quorumDecides, at: step.time,
                "\(name(step.node)) applies entry \(position.index), which is on the disks of "
                    + "\(holders(position, among: step.sight.voters).inBrackets) of the active "
                    + "\(step.sight.voters.inBrackets)")
        }
    }

    /// Who has ceased to vote in a step: who is told to take the whole state anew, whose own state is to be merged
    /// first, and who is found to be down.
    ///
    /// The latter only where the number has had more than one life: the last one may have been heard and told to wait,
    /// while the one that had a vote was not.
    mutating func gone(_ effects: Effects) -> [UInt32] {
        var gone: [UInt32] = []
        for case .trackerDown(let id) in effects.observations where lives.count(where: { $0.life.id == id }) > 1 {
            gone.append(id)
        }
        for message in effects.messages {
            guard case .one(let life) = message.destination else { continue }
            switch message.body {
            case .welcome(let welcome) where welcome.needsTransfer: gone.append(life.id)
            case .fetchChunk(0): gone.append(life.id)
            default: break
            }
        }
        return gone
    }

    /// An entry that a tracker has accepted, and that may have been decided, as it gives up hope to learn that.
    private mutating func checkKept(_ position: Position, _ step: ClusterStep) {
        guard !nodes[step.node].disk.holds(position.index, chain: position.chain) else { return }
        violate(
            .quorumDecides, at: step.time,
            "\(name(step.node)) keeps entry \(position.index), which is not on its own disk")
    }

    /// Whether a tracker has been heard within the detection time, by a clock that may be fast.
    private func isHeard(_ id: UInt32, by step: ClusterStep) -> Bool {
        guard let node = node(withID: id), let cluster = nodes[step.node].configuration.cluster else { return false }
        return node == step.node || step.time - nodes[step.node].heardAt[node] < cluster.detectionTime * 3 / 4
    }

    private func holders(_ position: Position, among ids: [UInt32]) -> [UInt32] {
        // In survivor mode, two may have been given one number, on the two sides of a partition, and one that comes
        // back may be given another than it has just voted under.
        ids.filter { id in
            nodes.contains { $0.id == id && $0.disk.holds(position.index, chain: position.chain) }
                || !promises.hasOneHistory
                    && lives.contains { other in
                        other.life.id == id && nodes[other.node].disk.holds(position.index, chain: position.chain)
                    }
        }
    }

    // MARK: - The model

    /// Carries a decided entry over to the model, and notes who waits for it.
    private mutating func carryOver(
        _ position: Position, _ header: EntryHeader, _ entry: [UInt8], _ tickets: Tickets, _ step: ClusterStep
    ) {
        guard let table = step.table else { preconditionFailure("whoever applies an entry shows its table") }
        model.begin(header)
        var cursor = UpdateCursor(header)
        var ordinal: UInt32 = 0
        var next = 0
        var isAnySwarmChanged = false
        var areRulesChanged = false
        do throws(EntryDamaged) {
            while let update = try cursor.next(entry) {
                let isWaitedFor = next < tickets.count && tickets.tickets[next].ordinal == ordinal
                let life = isWaitedFor ? tickets.life(of: tickets.tickets[next]) : nil
                let number = isWaitedFor ? tickets.tickets[next].number : 0
                if isWaitedFor { next += 1 }
                if let announced = Announced(update) {
                    let place = Witness.Place(index: position.index, ordinal: ordinal, chain: position.chain)
                    carryOver(announced, update, table, place, life, number, step)
                } else if case .setMembers(let ids) = update {
                    checkMembers(ids, step)
                    members = ids
                    membersSince = step.time
                } else if case .setInterval(let seconds) = update {
                    toldInterval = seconds
                } else if case .emptyShard(let shard) = update {
                    model.apply(update, table)
                    checkEmptied(shard, header, table, step)
                    isAnySwarmChanged = true
                } else if case .expire = update {
                    expire(update, table, step)
                    isAnySwarmChanged = true
                } else {
                    model.apply(update, table)
                    areRulesChanged = true
                }
                ordinal += 1
            }
        } catch {
            violate(.recordIsReadable, at: step.time, "entry \(position.index) cannot be read")
        }
        let limits = configurations[step.node].limits
        if areRulesChanged || limits.peers < 1000 || limits.torrents < 1000 { access.note(model) }
        guard isAnySwarmChanged else { return }
        for infoHash in history.infoHashes {
            history.note(infoHash, model.counts(of: infoHash), after: position.index)
        }
    }

    private mutating func carryOver(
        _ announced: Announced, _ update: Update, _ table: SwarmTable, _ place: Witness.Place, _ life: Life?,
        _ number: UInt64, _ step: ClusterStep
    ) {
        let before = model.swarm(announced.infoHash)
        let completed = before?.completed ?? 0
        // Who has left or was taken out, and is heard of again by a late copy, is a new peer.
        let isKnown = before?.place(of: announced.address) != nil
        model.apply(update, table)
        let swarm = model.swarm(announced.infoHash) ?? SwarmModel.Swarm(infoHash: announced.infoHash)
        history.note(announced.infoHash, swarm.counts, after: place.index)
        if let (client, sentAt) = checkAsked(announced, life, number, step) {
            if announced.event == .stopped {
                ledger.decidedStop(announced.infoHash, by: client, announced.address, index: place.index)
            }
            // No tracker can tell a copy that the network has held back for long from a new request.
            let isLate = ledger.isLate(announced.infoHash, by: client, announced.address, sentAt: sentAt)
            if swarm.completed > completed, isKnown, !isLate,
                !ledger.counted(announced.infoHash, by: client, announced.address)
            {
                violate(
                    .completedCountsOnce, at: step.time,
                    "entry \(place.index) counts one download of \(announced.address) once more")
            }
        }
        // A tracker alone answers all that it has in its log, and needs no tickets for that.
        let waiting = life ?? (promises.answersAtOnce && !isSettling ? step.sight.life : nil)
        guard let life = waiting else { return }
        let witness = Witness(
            place: place, time: model.time, decidedAt: step.time, announced: announced, swarm: swarm,
            interval: toldInterval)
        expect(witness, from: life)
    }

    /// Whoever has heard the request, or in a group everybody, may have to answer it.
    private mutating func expect(_ witness: Witness, from life: Life) {
        if life == Tickets.group {
            if groupWitnesses.count >= ClusterChecks.groupAnswerCount * 2 {
                groupWitnesses.removeFirst(ClusterChecks.groupAnswerCount)
            }
            groupWitnesses.append(witness)
        }
        for node in nodes.indices {
            guard let sight = nodes[node].sight, life == Tickets.group || life == sight.life else { continue }
            nodes[node].witnesses.append(witness)
        }
    }

    /// In survivor mode, a tracker's own clients that wait for an entry.
    private mutating func expectReplies(
        _ position: Position, _ header: EntryHeader, _ entry: [UInt8], _ step: ClusterStep
    ) {
        guard let tickets = try? Tickets(entry, header), !tickets.isEmpty else { return }
        var cursor = UpdateCursor(header)
        var ordinal: UInt32 = 0
        var next = 0
        while next < tickets.count, let update = try? cursor.next(entry) {
            defer { ordinal += 1 }
            guard tickets.tickets[next].ordinal == ordinal else { continue }
            let life = tickets.life(of: tickets.tickets[next])
            next += 1
            guard life == Tickets.group || life == step.sight.life, let announced = Announced(update) else { continue }
            nodes[step.node].witnesses.append(
                Witness(
                    place: Witness.Place(index: position.index, ordinal: ordinal, chain: position.chain),
                    time: header.time, decidedAt: step.time, announced: announced, swarm: nil))
        }
    }

    /// Updates are asked for, each as often as it came at most.
    ///
    /// - Returns: whose it is, and when it was sent; nil where there is no such client.
    private mutating func checkAsked(
        _ announced: Announced, _ life: Life?, _ number: UInt64, _ step: ClusterStep
    ) -> (client: Int, sentAt: Instant)? {
        guard !AddressPlan.isVisitor(announced.address) else { return nil }
        var hearer: Int?
        if let life, life != Tickets.group {
            hearer = node(of: life)
            if let hearer, nodes[hearer].sight?.life == life, !nodes[hearer].decide(number: number) {
                violate(
                    .updateIsAsked, at: step.time,
                    "request \(number) of \(name(hearer)) is in the log for the second time")
            }
        }
        guard let client = client(listeningAt: announced.address) else {
            violate(.updateIsAsked, at: step.time, "the log has an announce of \(announced.address), who never asked")
            return nil
        }
        if let place = openAsk(announced, client, hearer) {
            books[client].decide(place)
            return (client, books[client].asks[place].sentAt)
        }
        // Where people share an address, a bit on the way may have made one's port of another's.
        for other in books.indices where other != client && books[other].address.low == announced.address.low {
            guard let place = openAsk(announced, other, hearer) else { continue }
            books[other].decide(place)
            return (other, books[other].asks[place].sentAt)
        }
        do {
            let asks = books[client].asks.filter { ask in
                ask.announce.map { announced.isAsked(by: $0, from: books[client].address) } ?? false
            }
            violate(
                .updateIsAsked, at: step.time,
                "the log has an announce of client \(client) more often than it was heard: "
                    + "\(asks.map { $0.decidedCount }.inBrackets) before, copies heard by each tracker "
                    + "\(asks.map { $0.heard.inBrackets }.inBrackets)")
            return nil
        }
    }

    /// A request of a client that asks for an update, and that is not in the log as often as it was heard.
    ///
    /// - Parameter hearer: the tracker whose request it is; nil where it may be anybody's.
    private func openAsk(_ announced: Announced, _ client: Int, _ hearer: Int?) -> Int? {
        let (address, isGroup) = (books[client].address, isGroup)
        return books[client].asks.firstIndex { ask in
            guard let request = ask.announce, announced.isAsked(by: request, from: address) else { return false }
            let copies = hearer.map { ask.heard[$0] } ?? (isGroup ? ask.groupCopies : ask.heard.reduce(0, +))
            return ask.decidedCount < copies
        }
    }

    /// Takes the silent out of the model; nobody may be among them who was told that he has more time.
    private mutating func expire(_ update: Update, _ table: SwarmTable, _ step: ClusterStep) {
        let now = UInt64(model.time.seconds)
        // Whole seconds on both sides, so one of them may be lost.
        let patient = ledger.accounts.joined().filter { account in
            account.answeredAt > 0 && now + 1 < account.livesUntil
                && model.swarm(account.infoHash)?.place(of: account.address) != nil
        }
        model.apply(update, table)
        for account in patient where model.swarm(account.infoHash)?.place(of: account.address) == nil {
            violate(
                .expiryIsPatient, at: step.time,
                "peer \(account.address) of \(account.infoHash) was told \(account.told) s and is taken out "
                    + "\(now - UInt64(account.answeredAt)) s after that")
        }
    }
}
