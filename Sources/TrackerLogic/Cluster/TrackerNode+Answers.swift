// Answers on their way back to the tracker that heard the request, and to the client.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Answering

    /// A ticket's update is applied: its request is answered, if it is this tracker's to answer.
    mutating func settle(
        _ ticket: Ticket, of owner: Life, _ update: Update, _ outcome: ReplicatedState.Outcome,
        _ now: ClockReading, _ effects: inout Effects
    ) {
        if owner == life {
            if let waiting = router.remove(ticket.number) { answer(waiting, update, outcome, &effects) }
        } else if owner == Tickets.group {
            rememberSettled(ticket.number, now)
            guard let number = router.find(key: ticket.number), let waiting = router.remove(number) else { return }
            // All hear; the master answers. The entry is its own, or one that it found undecided.
            if phase == .master || waiting.clientRequest != nil || has(.twoRepliers) {
                answer(waiting, update, outcome, &effects)
            }
        }
    }

    /// A ticket's update was refused by the vote: its client is told, if it is this tracker's to tell.
    mutating func settleRefused(
        _ ticket: Ticket, of owner: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        let isGroups = owner == Tickets.group
        if isGroups { rememberSettled(ticket.number, now) }
        guard isGroups || owner == life,
            let number = isGroups ? router.find(key: ticket.number) : ticket.number,
            let waiting = router.remove(number)
        else { return }
        if isGroups, phase != .master, waiting.clientRequest == nil { return }
        turnDown(waiting, .notStored, now, &effects)
    }

    /// Tells a request's tracker, or its client, that it is refused.
    mutating func refuse(
        number: UInt64, of owner: Life, _ refusal: Refusal, _ now: ClockReading, _ effects: inout Effects
    ) {
        let answer = AnsweredRequest(number: number, content: .refusal(refusal.rawValue))
        deliver(answer, to: owner, now, &effects)
    }

    /// Brings an answer to the tracker that heard the request.
    mutating func deliver(
        _ answer: AnsweredRequest, to owner: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        if owner == Tickets.group {
            guard let number = router.find(key: answer.number) else { return }
            noteSettled(answer.number, now)
            settle(AnsweredRequest(number: number, content: answer.content), now, &effects)
        } else if owner == life {
            settle(answer, now, &effects)
        } else {
            if let place = neighbours.place(of: owner.id), neighbours[place].life == owner {
                switch answer.content {
                // If this is lost, the read comes again.
                case .counts: neighbours[place].follower.seen.remove(answer.number)
                case .refusal: neighbours[place].follower.remember(answer)
                }
            }
            router.send(answer, to: owner)
        }
    }

    mutating func answeredReceived(
        _ answers: [AnsweredRequest], _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard office.follows(sender, in: epoch) else { return }
        if isGroup, answers.first?.isSettledKey == true {
            // The master has answered these: nobody else is to.
            for answer in answers {
                rememberSettled(answer.number, now)
                if let number = router.find(key: answer.number) { router.remove(number) }
            }
            return
        }
        guard isInService else { return }
        for answer in answers { settle(answer, now, &effects) }
    }

    /// In a group, the others keep what they heard until they know it answered.
    mutating func noteSettled(_ key: UInt64, _ now: ClockReading) {
        guard isGroup else { return }
        router.noteSettled(key)
        rememberSettled(key, now)
    }

    private mutating func rememberSettled(_ key: UInt64, _ now: ClockReading) {
        router.remember(key, at: state.index, now: now.monotonic)
    }

    /// Sends answers to the trackers whose clients they are for, one message each.
    mutating func sendOutbox(_ effects: inout Effects) {
        guard router.outboxCount > 0 else { return }
        while let (life, answers) = router.takeAnswers() {
            send(.answered(answers), to: life, epoch: candidate.epoch, &effects)
        }
    }

    /// Tells the group what was answered without an entry.
    mutating func sendSettled(_ effects: inout Effects) {
        guard router.hasSettled else { return }
        let answers = router.takeSettled()
        if phase == .master { broadcast(.answered(answers), epoch: candidate.epoch, &effects) }
    }

    mutating func settle(_ answer: AnsweredRequest, _ now: ClockReading, _ effects: inout Effects) {
        guard let waiting = router.remove(answer.number) else { return }
        switch answer.content {
        case .refusal(let number):
            guard let refusal = Refusal(rawValue: number) else { return }
            turnDown(waiting, refusal, now, &effects)
        case .counts(let counts):
            counters.scrapes += 1
            scraped(counts, waiting, &effects)
        }
    }

    /// Tells a client why it gets nothing, unless its address has been told so much already.
    mutating func turnDown(
        _ request: WaitingRequest, _ refusal: Refusal, _ now: ClockReading, _ effects: inout Effects
    ) {
        if request.clientRequest == nil, !errorLimiter.allows(request.remote, at: now.monotonic) {
            counters.errorsWithheld += 1
            return
        }
        refuse(request, refusal, now, &effects)
    }

    /// The same for a request that was in no book yet.
    mutating func turnDown(
        _ request: WaitingRequest, _ refusal: Refusal, key: UInt64, _ now: ClockReading, _ effects: inout Effects
    ) {
        noteSettled(key, now)
        turnDown(request, refusal, now, &effects)
    }

    /// Answers a scrape from its datagram.
    mutating func scraped(
        _ bytes: RawSpan, _ hashCount: Int, _ waiting: WaitingRequest, _ effects: inout Effects
    ) {
        counters.scrapes += 1
        let table = state.table
        effects.replies.append(
            to: waiting.remote, from: waiting.local, socket: waiting.socket,
            limit: ReplyWriter.scrapeByteCount(hashCount)
        ) { room in
            var offset = ReplyWriter.scrapeHeader(waiting.transactionID, into: room)
            for number in 0..<hashCount {
                let counts = table.counts(of: InfoHash(Bytes20(bytes, at: 16 + 20 * number)))
                ReplyWriter.scrapeCounts(
                    seeders: counts.seeders, completed: counts.completed, leechers: counts.leechers, at: offset,
                    into: room)
                offset += 12
            }
            return offset
        }
    }

    func scraped(_ counts: [ScrapeCounts], _ waiting: WaitingRequest, _ effects: inout Effects) {
        if let id = waiting.clientRequest {
            let swarms = counts.map {
                SwarmCounts(seeders: $0.seeders, leechers: $0.leechers, completed: $0.completed)
            }
            effects.answers.append(Answer(id: id, content: .scrape(swarms)))
            return
        }
        effects.replies.append(
            to: waiting.remote, from: waiting.local, socket: waiting.socket,
            limit: ReplyWriter.scrapeByteCount(counts.count)
        ) { room in
            var offset = ReplyWriter.scrapeHeader(waiting.transactionID, into: room)
            for count in counts {
                ReplyWriter.scrapeCounts(
                    seeders: count.seeders, completed: count.completed, leechers: count.leechers, at: offset,
                    into: room)
                offset += 12
            }
            return offset
        }
    }

    mutating func connect(
        _ transactionID: TransactionID, _ waiting: WaitingRequest, _ now: ClockReading, _ effects: inout Effects
    ) {
        counters.connects += 1
        let connectionID = connectionIDs.issue(to: waiting.remote, at: now.wall)
        effects.replies.append(to: waiting.remote, from: waiting.local, socket: waiting.socket, limit: 16) {
            ReplyWriter.connect(transactionID, connectionID, into: $0)
        }
    }

    // MARK: - Reading

    mutating func read(
        _ infoHashes: [InfoHash], _ number: UInt64, _ life: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard !reads.contains(life, number) else { return }
        if !reads.add(WaitingRead(life: life, number: number, infoHashes: infoHashes)) {
            refuse(number: number, of: life, .busy, now, &effects)
        }
    }

    /// Begins a round of reads and newcomers, and attends to those that are confirmed.
    mutating func driveReads(_ now: ClockReading, _ effects: inout Effects) {
        if reads.begin(isServing: isServing, now: now.monotonic) {
            reads.confirmed(by: admission.id, round: reads.round)
            broadcast(.confirm(round: reads.round), epoch: candidate.epoch, &effects)
        }
        guard reads.isRoundUnderWay else { return }
        for newcomer in reads.takeNewcomers(electorate) { admitNewcomer(newcomer, now, &effects) }
        answerReads(now, by: hasLease(now) ? Electorate(voters: [admission.id]) : electorate, &effects)
    }

    /// Answers what a quorum has confirmed.
    mutating func answerReads(_ now: ClockReading, by electorate: Electorate, _ effects: inout Effects) {
        for read in reads.take(electorate) {
            let counts = read.infoHashes.map { infoHash in
                let counts = state.table.counts(of: infoHash)
                return ScrapeCounts(
                    seeders: counts.seeders, leechers: counts.leechers, completed: counts.completed)
            }
            deliver(AnsweredRequest(number: read.number, content: .counts(counts)), to: read.life, now, &effects)
        }
    }

    mutating func confirmReceived(
        _ round: UInt64, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard phase == .following, let following = office.following, following.life == sender,
            following.epoch == epoch, following.isWelcomed, promise.epoch == epoch, mayVote
        else { return }
        departure.forget()
        send(.confirmed(round: round), to: sender, &effects)
    }

    mutating func confirmedReceived(
        _ round: UInt64, _ place: Int, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard phase == .master, epoch == candidate.epoch, neighbours[place].follower.welcomedIn == candidate.epoch
        else {
            return
        }
        reads.confirmed(by: neighbours[place].life.id, round: round)
        if has(.confirmedByOne) { answerReads(now, by: Electorate(voters: [admission.id]), &effects) }
    }
}
