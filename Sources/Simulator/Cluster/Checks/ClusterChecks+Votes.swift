/// What trackers write and tell each other: votes for what is durable, one value a ballot, positions that are decided;
/// and what was aborted stays so.

import Primitives
import TrackerLogic
import Wire

extension ClusterChecks {
    // MARK: - Writes

    /// A write is about to count as durable.
    mutating func checkWrite(_ node: Int, _ change: Persist.Change, at time: Instant) {
        guard case .promise(let promise) = change else { return }
        let disk = nodes[node].disk
        if promise.epoch < disk.promised {
            violate(
                .promiseIsKept, at: time,
                "\(name(node)) promises epoch \(promise.epoch) after \(disk.promised)")
        }
        guard promise.isWhole, !disk.isWhole, promises.votersRemember else { return }
        // What counts is what it would come back with, not what it has in memory.
        let index = min(nodes[node].sight?.position.index ?? .max, disk.wholeThrough)
        if index < nodes[node].decidedAtLoss {
            violate(
                .votersAreWhole, at: time,
                "\(name(node)) takes itself for whole, with the state up to entry \(index) on its disk; entry "
                    + "\(nodes[node].decidedAtLoss) was decided when it lost its disk")
        }
    }

    /// A tracker writes an entry of its own making: a proposal, if it leads and has not applied it already.
    mutating func checkOwnAppend(_ entry: [UInt8], _ step: ClusterStep) {
        guard let header = try? EntryHeader(entry), header.epoch == step.sight.leads,
            header.index > step.sight.position.index
        else { return }
        propose(header, entry, step)
    }

    // MARK: - Messages

    mutating func check(_ message: ClusterMessage, _ step: ClusterStep, _ before: NodeSight) {
        switch message.body {
        case .election: stands(message.epoch, step)
        case .answer(let answer): votes(message.epoch, answer, step)
        case .coordinator(let position):
            leads(message.epoch, step)
            checkDecided(position, step)
        case .prepare(let entry, let position):
            leads(message.epoch, step)
            checkDecided(position, step)
            guard let header = try? EntryHeader(entry) else {
                return violate(.recordIsReadable, at: step.time, "\(name(step.node)) proposes a damaged entry")
            }
            propose(header, entry, step)
        case .ok(let ballot):
            votes(ballot, step)
            goesOn(step.node, votingFor: ballot, asMaster: false)
        case .commit(let position):
            leads(message.epoch, step)
            checkDecided(position, step)
        case .keepalive(let keepalive): if keepalive.isWhole { checkDecided(keepalive.position, step) }
        case .entries(let entries, _): checkDecided(entries, step)
        case .confirmed: goesOn(step.node)
        case .suspect, .error, .confirm, .fetch, .hello, .welcome, .refused, .fetchChunk, .chunk,
            .welcomeDone, .forward, .answered, .handover, .leave, .report, .order, .ordered, .stop:
            break
        }
    }

    private mutating func leads(_ epoch: Epoch, _ step: ClusterStep) {
        guard nodes[step.node].led != epoch else { return }
        nodes[step.node].led = epoch
        claim(epoch, step, "leads")
    }

    private mutating func stands(_ epoch: Epoch, _ step: ClusterStep) {
        guard nodes[step.node].stood != epoch else { return }
        nodes[step.node].stood = epoch
        claim(epoch, step, "stands for")
        if promises.votersRemember, nodes[step.node].disk.promised < epoch {
            violate(
                .promiseIsKept, at: step.time,
                "\(name(step.node)) stands for epoch \(epoch), and has \(nodes[step.node].disk.promised) on its disk")
        }
    }

    /// Somebody says that this is decided.
    private mutating func checkDecided(_ position: Position, _ step: ClusterStep) {
        guard promises.hasOneHistory, !log.contains(position) else { return }
        violate(
            .decidedIsDecided, at: step.time,
            "\(name(step.node)) tells that entry \(position.index) is decided, which nobody has applied")
    }

    private mutating func checkDecided(_ entries: [[UInt8]], _ step: ClusterStep) {
        guard promises.hasOneHistory else { return }
        for entry in entries {
            guard let header = try? EntryHeader(entry) else {
                return violate(.recordIsReadable, at: step.time, "\(name(step.node)) sends a damaged entry")
            }
            checkDecided(Position(index: header.index, chain: EntryHeader.chain(entry)), step)
        }
    }

    // MARK: - Votes

    /// Phase 1b.
    private mutating func votes(_ epoch: Epoch, _ answer: VoterAnswer, _ step: ClusterStep) {
        guard mayVote(epoch, "answers the candidate of", step), promises.votersRemember else { return }
        let disk = nodes[step.node].disk
        guard let last = disk.log.last, last.ballot.index > answer.position.index else { return }
        // A later proposal for the same place tells as much: none is made unless the earlier one is void.
        let told = try? EntryHeader(answer.pending)
        let isTold = told.map { told in
            EntryHeader.chain(answer.pending) == last.chain
                || told.index == last.ballot.index && told.ballot > last.ballot
        }
        if isTold != true {
            violate(
                .voteIsKept, at: step.time,
                "\(name(step.node)) has entry \(last.ballot.index) on its disk and does not say so to the candidate "
                    + "of epoch \(epoch)")
        }
    }

    /// Phase 2b.
    private mutating func votes(_ ballot: Ballot, _ step: ClusterStep) {
        guard mayVote(ballot.epoch, "votes in", step), promises.votersRemember else { return }
        let disk = nodes[step.node].disk
        let proposed = proposed(ballot)
        let chain = proposed?.chain
        if let written = disk.written(ballot.index) {
            if written.ballot == ballot {
                guard written.promised > ballot.epoch, step.sight.position.index < ballot.index else { return }
                return violate(
                    .promiseIsKept, at: step.time,
                    "\(name(step.node)) has accepted entry \(ballot.index) of epoch \(ballot.epoch) after it had "
                        + "promised \(written.promised)")
            }
            if written.chain == chain { return }
        }
        if let chain, disk.holds(ballot.index, chain: chain) { return }
        // What is decided needs no vote, but an old message may ask for one; what was in it nobody may know any more.
        if step.sight.position.index >= ballot.index {
            guard let chain, promises.hasOneHistory else { return }
            if log.contains(Position(index: ballot.index, chain: chain)) { return }
        }
        violate(
            .voteIsKept, at: step.time,
            "\(name(step.node)) votes for entry \(ballot.index) of epoch \(ballot.epoch), attempt \(ballot.attempt), "
                + "which is not on its disk")
    }

    private mutating func mayVote(_ epoch: Epoch, _ verb: String, _ step: ClusterStep) -> Bool {
        let disk = nodes[step.node].disk
        let name = name(step.node)
        if disk.promised < epoch {
            violate(
                .promiseIsKept, at: step.time, "\(name) \(verb) epoch \(epoch), and has \(disk.promised) on its disk")
            return false
        }
        if disk.told > epoch {
            violate(
                .promiseIsKept, at: step.time, "\(name) \(verb) epoch \(epoch), and has promised \(disk.told)")
            return false
        }
        if promises.votersRemember, !disk.isWhole {
            violate(
                .votersAreWhole, at: step.time, "\(name) \(verb) epoch \(epoch), and does not hold the whole state")
            return false
        }
        return true
    }

    // MARK: - Proposals

    private func proposed(_ ballot: Ballot) -> NodeRecord.Proposed? {
        guard let node = node(withID: ballot.epoch.id) else { return nil }
        return nodes[node].proposals.last { $0.ballot == ballot }
    }

    private mutating func propose(_ header: EntryHeader, _ entry: [UInt8], _ step: ClusterStep) {
        let chain = EntryHeader.chain(entry)
        let new = NodeRecord.Proposed(ballot: header.ballot, chain: chain, bytes: entry)
        if let known = nodes[step.node].proposals.last(where: { $0.ballot == header.ballot }) {
            if known.chain != chain {
                violate(
                    .ballotHasOneValue, at: step.time,
                    "\(name(step.node)) proposes two values at index \(header.index) in epoch \(header.epoch)")
            }
            return
        }
        // What a tracker alone proposes anew is no ghost.
        if promises.diskDecides { abortedValues.removeAll { $0.chain == chain } }
        goesOn(step.node, votingFor: header.ballot, asMaster: true)
        let position = step.sight.position
        if header.index != position.index + 1 {
            violate(
                .logHasNoGap, at: step.time,
                "\(name(step.node)) proposes entry \(header.index) after entry \(position.index)")
        } else if header.previous != position.chain {
            violate(
                .decidedIsForEver, at: step.time,
                "\(name(step.node)) proposes an entry \(header.index) that does not continue its own history")
        }
        let limit = nodes[step.node].configuration.limits.updatesPerEntry
        if header.updateCount > UInt32(clamping: limit) {
            violate(.queuesAreBounded, at: step.time, "entry \(header.index) holds \(header.updateCount) updates")
        }
        if clocks.isAhead(header.time, at: step.time), header.time > step.sight.time {
            violate(
                .timeIsReal, at: step.time,
                "\(name(step.node)) proposes entry \(header.index) with a time that no clock has shown yet")
        }
        if header.time < step.sight.time {
            violate(.timeNeverRunsBack, at: step.time, "entry \(header.index) is earlier than the one before it")
        }
        nodes[step.node].propose(new)
    }

    // MARK: - Aborts

    /// A tracker says that an entry is aborted: whatever was proposed with these tickets at this index, and is not
    /// decided, is void.
    ///
    /// Where a vote refused it, an empty entry with its tickets is decided in its place.
    mutating func aborted(_ index: UInt64, _ step: ClusterStep) {
        if let latest = nodes[step.node].proposals.last(where: { $0.ballot.index == index }) {
            noteAborted(index, by: step.node, in: latest.ballot.epoch) { $0.ballot.epoch == latest.ballot.epoch }
        }
        guard let void = step.applied.first(where: { (try? EntryHeader($0))?.index == index }),
            let header = try? EntryHeader(void), header.updateCount == 0, let tickets = try? Tickets(void, header)
        else { return }
        for node in nodes.indices {
            noteAborted(index, by: node, in: header.epoch) { proposed in
                let other = (try? EntryHeader(proposed.bytes)).flatMap { try? Tickets(proposed.bytes, $0) }
                return other == tickets
            }
        }
    }

    /// - Parameter epoch: of the master whose vote has refused it.
    private mutating func noteAborted(
        _ index: UInt64, by node: Int, in epoch: Epoch, where isMeant: (NodeRecord.Proposed) -> Bool
    ) {
        for proposed in nodes[node].proposals where proposed.ballot.index == index && isMeant(proposed) {
            // In survivor mode, the other side of a partition may have decided what this side refuses.
            if promises.abortsAreFinal, log.contains(Position(index: index, chain: proposed.chain)) { continue }
            if let header = try? EntryHeader(proposed.bytes), header.updateCount == 0 { continue }
            let aborted = AbortedValue(chain: proposed.chain, epoch: epoch)
            if !abortedValues.contains(aborted) { abortedValues.append(aborted) }
            noteRefused(proposed.bytes, epoch)
        }
    }

    private mutating func noteRefused(_ entry: [UInt8], _ epoch: Epoch) {
        guard let header = try? EntryHeader(entry), let tickets = try? Tickets(entry, header) else { return }
        var cursor = UpdateCursor(header)
        var ordinal: UInt32 = 0
        var next = 0
        while next < tickets.count, let update = try? cursor.next(entry) {
            defer { ordinal += 1 }
            let ticket = tickets.tickets[next]
            guard ticket.ordinal == ordinal else { continue }
            next += 1
            guard let announced = Announced(update) else { continue }
            let life = tickets.life(of: ticket)
            // Everybody who applies the empty entry says so.
            let isKnown = { (known: RefusedTicket) in known.life == life && known.number == ticket.number }
            // In a group a request that is sent once more has the same name.
            if refused.contains(where: isKnown) || (life != Tickets.group && dead.contains(where: isKnown)) { continue }
            refused.append(RefusedTicket(life: life, number: ticket.number, epoch: epoch, announced: announced))
        }
        // Far more than can wait to be told at one time.
        if refused.count > 4096 { refused.removeFirst(refused.count - 4096) }
    }

    /// A tracker alone hears that its entry is certainly not on its disk: it is void, and all who waited are told.
    mutating func noteNotStored(_ event: Event, _ effects: Effects, _ step: ClusterStep) {
        guard case .persistFailed(let token, let failure) = event, failure != .broken,
            let (asked, entry) = nodes[step.node].writing, asked == token, let header = try? EntryHeader(entry)
        else { return }
        nodes[step.node].writing = nil
        if header.updateCount > 0 {
            abortedValues.append(AbortedValue(chain: EntryHeader.chain(entry), epoch: header.epoch))
        }
        var waiting = 0
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(entry) {
            guard let announced = Announced(update) else { continue }
            waiting += 1
            refused.append(
                RefusedTicket(life: step.sight.life, number: 0, epoch: header.epoch, announced: announced))
        }
        let told = effects.replies.datagrams.count + effects.answers.count
        if told != waiting {
            violate(
                .answeredOnce, at: step.time,
                "\(waiting) requests at \(name(step.node)) were not stored, \(told) were told")
        }
    }

    /// An entry is decided: it must not be one that was aborted, nor hold what a client was told is not stored.
    mutating func checkAborted(
        _ position: Position, _ header: EntryHeader, _ tickets: Tickets, _ step: ClusterStep
    ) {
        // In survivor mode, whoever stored the entry may have found itself master on the other side of a partition, or
        // have kept it.
        if !promises.abortsAreFinal, header.isAlone { return }
        func isVoid(in epoch: Epoch) -> Bool { promises.abortsAreFinal || header.epoch == epoch }
        if abortedValues.contains(where: { $0.chain == position.chain && isVoid(in: $0.epoch) }) {
            violate(
                .abortedStaysAborted, at: step.time,
                "entry \(position.index) was aborted, and is applied by \(name(step.node))")
        }
        // An empty entry says who is refused.
        guard !dead.isEmpty, header.updateCount > 0 else { return }
        for ticket in tickets.tickets {
            let life = tickets.life(of: ticket)
            let told = dead.first { $0.life == life && $0.number == ticket.number && isVoid(in: $0.epoch) }
            guard let told else { continue }
            // A copy of the request that came afterwards is a request of its own.
            let isHeardAgain = books[told.client].asks.contains {
                $0.transactionID == told.transactionID && $0.lastHeardAt > told.toldAt
            }
            if life == Tickets.group, isHeardAgain { continue }
            violate(
                .abortedStaysAborted, at: step.time,
                "client \(told.client) was told that its request is not stored, and entry \(position.index) holds it")
        }
    }

    /// A client is told that its request is not stored.
    ///
    /// - Returns: whether that is so.
    mutating func toldRefused(_ client: Int, _ transactionID: TransactionID, _ step: ClusterStep) -> Bool {
        let requests = books[client].asks.filter { $0.transactionID == transactionID }.compactMap { $0.announce }
        let address = books[client].address
        let places = refused.indices.filter { place in
            let ticket = refused[place]
            guard ticket.life == Tickets.group || ticket.life == step.sight.life else { return false }
            return requests.contains { ticket.announced.isAsked(by: $0, from: address) }
        }
        // Where several copies wait, nobody can say from outside which of them was meant.
        guard let place = places.first, places.count == 1 else { return !places.isEmpty }
        var ticket = refused.remove(at: place)
        ticket.client = client
        ticket.transactionID = transactionID
        ticket.toldAt = step.time
        dead.append(ticket)
        return true
    }
}
