/// Whose requests are whose: what this tracker heard, what it sends on, and what it answers (design 3.5).

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Hearing

    /// Books what came from peers; what can be answered is answered at the end of the step.
    mutating func book(_ batch: DatagramBatch, _ now: ClockReading, _ effects: inout Effects) {
        guard phase == .following || phase == .candidate || phase == .master,
            cluster.isBusUp || has(.fencedAnswers)
        else {
            counters.ignored += UInt64(batch.datagrams.count)
            return
        }
        for number in batch.datagrams.indices {
            let datagram = batch.datagrams[number]
            guard datagram.remote.port != 0 else {
                counters.ignored += 1
                continue
            }
            guard !cluster.book.isFull else {
                counters.dropped += 1
                continue
            }
            book(datagram, batch.payload(number), now, &effects)
        }
    }

    private mutating func book(
        _ datagram: Datagram, _ bytes: [UInt8], _ now: ClockReading, _ effects: inout Effects
    ) {
        var waiting = WaitingRequest(
            remote: datagram.remote, local: datagram.local, transactionID: TransactionID(0), socket: datagram.socket,
            numWant: 0, ordinal: 0)
        do {
            switch try TrackerRequest(bytes.span.bytes) {
            case .connect(let transactionID):
                waiting.transactionID = transactionID
                if has(.fencedAnswers), !cluster.isBusUp { return connect(transactionID, waiting, now, &effects) }
            case .announce(let request):
                waiting.transactionID = request.transactionID
                waiting.numWant = numWant(request.numWant, isIPv4: datagram.remote.isIPv4)
                guard connectionIDs.isValid(request.connectionID, from: datagram.remote, at: now.wall) else {
                    return complainAlone(request.transactionID, .connectionIDExpired, datagram, now, &effects)
                }
            case .scrape(let connectionID, let transactionID, _):
                waiting.transactionID = transactionID
                guard connectionIDs.isValid(connectionID, from: datagram.remote, at: now.wall) else {
                    return complainAlone(transactionID, .connectionIDExpired, datagram, now, &effects)
                }
            }
        } catch {
            if answersForGroup { malformed(error, datagram, now, &effects) }
            return
        }
        let key = isGroup ? requestKey(datagram.remote, bytes) : 0
        // A copy of what waits already, or of what was settled just now.
        if isGroup, cluster.book.find(key: key) != nil || cluster.wasSettled(key, now: now.monotonic) { return }
        _ = cluster.book.add(
            BookedRequest(
                waiting: waiting, content: .datagram(bytes), key: key, heardAt: now.monotonic,
                handedAt: now.monotonic))
    }

    var isGroup: Bool { configuration.cluster?.entry == .group }

    /// Whether this tracker is the one to speak: each for its own clients, or the master for the group's; never one
    /// that is out of the cluster.
    private var answersForGroup: Bool { isGroup ? phase == .master && isServing : isInService }

    private mutating func complainAlone(
        _ transactionID: TransactionID, _ refusal: Refusal, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard answersForGroup else { return }
        complain(transactionID, refusal, datagram, now, &effects)
    }

    /// What all trackers of a group call a request.
    private func requestKey(_ remote: SocketAddress, _ bytes: [UInt8]) -> UInt64 {
        let place = mixed(remote.high ^ mixed(remote.low ^ mixed(UInt64(remote.port) ^ promise.secret.w2)))
        return mixed(place ^ checksum(bytes.span.bytes))
    }

    /// Books a request over HTTP.
    mutating func book(_ request: ClientRequest, _ now: ClockReading, _ effects: inout Effects) {
        guard phase == .following || phase == .candidate || phase == .master, cluster.isBusUp, !cluster.book.isFull
        else {
            effects.answers.append(Answer(id: request.id, content: .failure(.notServing)))
            return
        }
        var waiting = WaitingRequest(
            remote: request.source, local: .unspecified, transactionID: TransactionID(0), socket: 0, numWant: 0,
            ordinal: 0, clientRequest: request.id)
        let content: ForwardedRequest.Content
        switch request.content {
        case .announce(let announce):
            let wanted = announce.numWant.map { $0 < 0 ? configuration.numWant : $0 } ?? configuration.numWant
            waiting.numWant = UInt16(min(wanted, configuration.maxNumWant))
            content = .announce(
                ForwardedAnnounce(
                    infoHash: announce.infoHash, peerID: announce.peerID, downloaded: announce.downloaded,
                    left: announce.left, event: announce.event, port: announce.port, passkey: request.passkey))
        case .scrape(let infoHashes):
            content = .scrape(Array(infoHashes.prefix(Limits.scrapeHashes)), passkey: request.passkey)
        }
        // In a group, nobody else has heard it.
        let key = isGroup ? mixed(request.id ^ mixed(promise.incarnation)) : 0
        _ = cluster.book.add(
            BookedRequest(
                waiting: waiting, content: content, key: key, heardAt: now.monotonic, handedAt: now.monotonic))
    }

    // MARK: - Handing on

    /// Whether clients may be answered here: as master, or as a slave that hears its master and has caught up.
    var isInService: Bool {
        if phase == .master { return isServing }
        guard phase == .following, cluster.isBusUp, cluster.transfer == nil, promise.isWhole,
            let following = cluster.following, following.isInstalled, following.epoch == promise.epoch,
            cluster.suspectingSince == nil, state.index >= cluster.servesFrom || has(.forwardedTooEarly)
        else { return false }
        return true
    }

    /// Requests in one message.
    private var forwardCount: Int { 512 }

    /// Takes up what is booked, as master; sends it on, as slave.
    mutating func pumpRequests(_ now: ClockReading, _ effects: inout Effects) {
        guard isInService else { return }
        if phase == .master, !cluster.overflow.isEmpty { takeUpOverflow(now, &effects) }
        guard !cluster.book.isEmpty else { return }
        if phase == .master { takeUpBooked(now, &effects) } else { sendOnBooked(now, &effects) }
    }

    private mutating func takeUpBooked(_ now: ClockReading, _ effects: inout Effects) {
        while let number = cluster.book.nextUnhanded(election.epoch), let request = cluster.book[number] {
            guard gathering.updateCount < configuration.limits.updatesPerEntry else { return }
            if isGroup, request.isRead, now.monotonic - request.heardAt > policy.detectionTime * 2 {
                // The last master will have answered it long ago.
                cluster.book.remove(number)
                continue
            }
            cluster.book.hand(number, election.epoch, now: now.monotonic)
            let life = isGroup ? Tickets.group : self.life
            let name = isGroup ? request.key : number
            take(
                ForwardedRequest(number: name, source: request.waiting.remote, content: request.content), of: life,
                booked: number, now, &effects)
        }
    }

    private mutating func sendOnBooked(_ now: ClockReading, _ effects: inout Effects) {
        guard let following = cluster.following else { return }
        var requests: [ForwardedRequest] = []
        while let number = cluster.book.nextUnhanded(following.epoch), let request = cluster.book[number] {
            if isGroup, now.monotonic - request.heardAt < policy.keepalive, request.waiting.clientRequest == nil {
                // The master will have heard it too; only what it seems to have missed is sent on.
                break
            }
            cluster.book.hand(number, following.epoch, now: now.monotonic)
            if isGroup, request.isRead, !has(.twoConnectors) { continue }
            if !isGroup || has(.twoConnectors), case .datagram(let bytes) = request.content,
                case .connect(let transactionID)? = try? TrackerRequest(bytes.span.bytes)
            {
                cluster.book.remove(number)
                connect(transactionID, request.waiting, now, &effects)
                continue
            }
            #if PLANTED_BUGS
                if has(.slaveScrapes), let answer = scrapedAlone(request, number) {
                    settle(answer, now, &effects)
                    continue
                }
            #endif
            requests.append(
                ForwardedRequest(number: number, source: request.waiting.remote, content: request.content))
            if requests.count == forwardCount { break }
        }
        guard !requests.isEmpty else { return }
        send(.forward(requests, floor: cluster.book.floor), to: following.life, &effects)
    }

    mutating func forwardReceived(
        _ requests: [ForwardedRequest], _ floor: UInt64, _ place: Int, _ epoch: Epoch, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard phase == .master, isServing, epoch == election.epoch,
            cluster.neighbours[place].installedIn == election.epoch
        else { return }
        let sender = cluster.neighbours[place].life
        cluster.neighbours[place].seen.raise(to: floor)
        for request in requests {
            if isGroup {
                takeForGroup(request, from: sender, now, &effects)
                continue
            }
            guard cluster.overflow.count < configuration.limits.waitingRequests else { return }
            guard cluster.neighbours[place].seen.insert(request.number) || has(.redeliveredTwice) else {
                // It is under way, or an old copy; or it was refused, and the answer was lost.
                if let refusal = cluster.neighbours[place].refused.first(where: { $0.number == request.number }) {
                    cluster.outbox.append(ClusterState.Outgoing(life: sender, answer: refusal))
                }
                continue
            }
            if gathering.updateCount < configuration.limits.updatesPerEntry, cluster.overflow.isEmpty {
                take(request, of: sender, booked: nil, now, &effects)
            } else {
                cluster.overflow.append(ClusterState.Forwarded(life: sender, request: request))
            }
        }
    }

    /// Those that the last entry had no room for.
    private mutating func takeUpOverflow(_ now: ClockReading, _ effects: inout Effects) {
        var taken = 0
        while taken < cluster.overflow.count, gathering.updateCount < configuration.limits.updatesPerEntry {
            let next = cluster.overflow[taken]
            taken += 1
            take(next.request, of: next.life, booked: nil, now, &effects)
        }
        cluster.overflow.removeFirst(taken)
    }

    /// A request of the group that this master has not heard: it is booked as if it had.
    private mutating func takeForGroup(
        _ request: ForwardedRequest, from sender: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard case .datagram(let bytes) = request.content else {
            // Over HTTP only its own tracker has heard it, and answers.
            take(request, of: sender, booked: nil, now, &effects)
            return
        }
        let key = requestKey(request.source, bytes)
        if cluster.wasSettled(key, now: now.monotonic), !has(.settledForgotten) {
            // The sender has missed that.
            let note = AnsweredRequest(number: key, content: .counts([]))
            return cluster.outbox.append(ClusterState.Outgoing(life: sender, answer: note))
        }
        guard cluster.book.find(key: key) == nil, !cluster.book.isFull,
            let parsed = try? TrackerRequest(bytes.span.bytes)
        else { return }
        var waiting = WaitingRequest(
            remote: request.source, local: .unspecified, transactionID: TransactionID(0), socket: 0, numWant: 0,
            ordinal: 0)
        switch parsed {
        case .connect(let transactionID): waiting.transactionID = transactionID
        case .announce(let announce):
            waiting.transactionID = announce.transactionID
            waiting.numWant = numWant(announce.numWant, isIPv4: request.source.isIPv4)
        case .scrape(_, let transactionID, _): waiting.transactionID = transactionID
        }
        _ = cluster.book.add(
            BookedRequest(
                waiting: waiting, content: request.content, key: key, heardAt: now.monotonic,
                handedAt: now.monotonic))
    }

    // MARK: - Taking

    /// Takes a request into the entry that gathers, among the reads, or refuses it.
    private mutating func take(
        _ request: ForwardedRequest, of life: Life, booked: UInt64?, _ now: ClockReading, _ effects: inout Effects
    ) {
        switch request.content {
        case .datagram(let bytes):
            guard let parsed = try? TrackerRequest(bytes.span.bytes) else { return }
            switch parsed {
            case .connect(let transactionID):
                guard let booked, let known = cluster.book.remove(booked) else { return }
                noteSettled(known.key, now)
                connect(transactionID, known.waiting, now, &effects)
            case .announce(let announce):
                gather(announce, bytes, request, life, now, &effects)
            case .scrape(_, _, let hashCount):
                let infoHashes = (0..<hashCount).map { InfoHash(Bytes20(bytes.span.bytes, at: 16 + 20 * $0)) }
                read(infoHashes, request.number, life, now, &effects)
            }
        case .announce(let announce): gather(announce, request, life, now, &effects)
        case .scrape(let infoHashes, let passkey):
            if let refusal = state.access.refusal(passkey: passkey) {
                return refuse(number: request.number, of: life, refusal, now, &effects)
            }
            read(infoHashes, request.number, life, now, &effects)
        }
    }

    private mutating func gather(
        _ announce: AnnounceRequest, _ bytes: [UInt8], _ request: ForwardedRequest, _ life: Life,
        _ now: ClockReading, _ effects: inout Effects
    ) {
        counters.announces += 1
        var peer = request.source
        if announce.ip != 0, peer.isIPv4, isTrusted(peer) { peer = SocketAddress(ipv4: announce.ip, port: 0) }
        peer.port = announce.port
        peer.scope = 0
        let refusal = refusal(of: announce.infoHash, port: announce.port, event: announce.event, peer: peer) {
            Passkey.inURL(AnnounceOptions.urlData(bytes.span.bytes))
        }
        if let refusal { return refuse(number: request.number, of: life, refusal, now, &effects) }
        gather(
            ForwardedAnnounce(
                infoHash: announce.infoHash, peerID: announce.peerID, downloaded: announce.downloaded,
                left: announce.left, event: announce.event, port: announce.port, passkey: []),
            peer, request.number, life)
    }

    private mutating func gather(
        _ announce: ForwardedAnnounce, _ request: ForwardedRequest, _ life: Life, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        counters.announces += 1
        var peer = request.source
        peer.port = announce.port
        peer.scope = 0
        let refusal = refusal(of: announce.infoHash, port: announce.port, event: announce.event, peer: peer) {
            announce.passkey
        }
        if let refusal { return refuse(number: request.number, of: life, refusal, now, &effects) }
        gather(announce, peer, request.number, life)
    }

    private mutating func gather(_ announce: ForwardedAnnounce, _ peer: SocketAddress, _ number: UInt64, _ life: Life) {
        var hasRoom = true
        if let endpoint = CompactIPv4(peer) {
            hasRoom = gathering.append(
                AnnounceUpdate(
                    infoHash: announce.infoHash, peerID: announce.peerID, downloaded: announce.downloaded,
                    left: announce.left, event: announce.event, endpoint: endpoint),
                life: life, number: number)
        } else if let endpoint = CompactIPv6(peer) {
            hasRoom = gathering.append(
                AnnounceUpdate(
                    infoHash: announce.infoHash, peerID: announce.peerID, downloaded: announce.downloaded,
                    left: announce.left, event: announce.event, endpoint: endpoint),
                life: life, number: number)
        }
        if !hasRoom, let place = cluster.neighbours.place(of: life.id) {
            // It comes again.
            cluster.neighbours[place].seen.remove(number)
        }
    }

    // MARK: - Answering

    /// A ticket's update is applied: its request is answered, if it is this tracker's to answer.
    mutating func settle(
        _ ticket: Ticket, of owner: Life, _ update: Update, _ outcome: ReplicatedState.Outcome,
        _ now: ClockReading, _ effects: inout Effects
    ) {
        if owner == Tickets.group {
            cluster.rememberSettled(ticket.number, now: now.monotonic)
            guard let number = cluster.book.find(key: ticket.number),
                let request = cluster.book.remove(number)
            else { return }
            // All hear; the master answers. The entry is its own, or one that it found undecided.
            if phase == .master || request.waiting.clientRequest != nil || has(.twoRepliers) {
                answer(request.waiting, update, outcome, &effects)
            }
        } else if owner == life, let request = cluster.book.remove(ticket.number) {
            answer(request.waiting, update, outcome, &effects)
        }
    }

    /// In a group: the requests of an entry that comes in another way than by a master's word are settled, too.
    mutating func noteSettledTickets(of entry: LoggedEntry, now: Instant) {
        guard isGroup, let tickets = try? Tickets(entry.bytes, entry.header) else { return }
        for ticket in tickets.tickets where tickets.life(of: ticket) == Tickets.group {
            cluster.rememberSettled(ticket.number, now: now)
        }
    }

    /// A ticket's update was refused by the vote: its client is told, if it is this tracker's to tell.
    mutating func settleRefused(
        _ ticket: Ticket, of owner: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        let isGroups = owner == Tickets.group
        if isGroups { cluster.rememberSettled(ticket.number, now: now.monotonic) }
        guard isGroups || owner == life,
            let number = isGroups ? cluster.book.find(key: ticket.number) : ticket.number,
            let request = cluster.book.remove(number)
        else { return }
        if isGroups, phase != .master, request.waiting.clientRequest == nil { return }
        refuse(request.waiting, .notStored, now, &effects)
    }

    /// Tells a request's tracker, or its client, that it is refused.
    mutating func refuse(
        number: UInt64, of owner: Life, _ refusal: Refusal, _ now: ClockReading, _ effects: inout Effects
    ) {
        let answer = AnsweredRequest(number: number, content: .refusal(refusal.rawValue))
        deliver(answer, to: owner, now, &effects)
    }

    /// Brings an answer to the tracker that heard the request.
    private mutating func deliver(
        _ answer: AnsweredRequest, to owner: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        if owner == Tickets.group {
            guard let number = cluster.book.find(key: answer.number) else { return }
            noteSettled(answer.number, now)
            settle(AnsweredRequest(number: number, content: answer.content), now, &effects)
        } else if owner == life {
            settle(answer, now, &effects)
        } else {
            if let place = cluster.neighbours.place(of: owner.id), cluster.neighbours[place].life == owner {
                switch answer.content {
                // If this is lost, the read comes again.
                case .counts: cluster.neighbours[place].seen.remove(answer.number)
                case .refusal: cluster.neighbours[place].remember(answer)
                }
            }
            cluster.outbox.append(ClusterState.Outgoing(life: owner, answer: answer))
        }
    }

    mutating func answeredReceived(
        _ answers: [AnsweredRequest], _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard cluster.following?.life == sender, cluster.following?.epoch == epoch else { return }
        if isGroup, answers.first?.isSettledKey == true {
            // The master has answered these: nobody else is to.
            for answer in answers {
                cluster.rememberSettled(answer.number, now: now.monotonic)
                if let number = cluster.book.find(key: answer.number) { cluster.book.remove(number) }
            }
            return
        }
        guard isInService else { return }
        for answer in answers { settle(answer, now, &effects) }
    }

    /// In a group, the others keep what they heard until they know it answered.
    private mutating func noteSettled(_ key: UInt64, _ now: ClockReading) {
        guard isGroup else { return }
        cluster.settledKeys.append(key)
        cluster.rememberSettled(key, now: now.monotonic)
    }

    /// Sends answers to the trackers whose clients they are for, one message each.
    mutating func sendOutbox(_ effects: inout Effects) {
        while let first = cluster.outbox.first {
            let answers = cluster.outbox.filter { $0.life == first.life }.map(\.answer)
            cluster.outbox.removeAll { $0.life == first.life }
            send(.answered(answers), to: first.life, epoch: election.epoch, &effects)
        }
    }

    /// Tells the group what was answered without an entry.
    mutating func tellSettled(_ effects: inout Effects) {
        guard !cluster.settledKeys.isEmpty else { return }
        let answers = cluster.settledKeys.map { AnsweredRequest(number: $0, content: .counts([])) }
        cluster.settledKeys.removeAll(keepingCapacity: true)
        if phase == .master { broadcast(.answered(answers), epoch: election.epoch, &effects) }
    }

    private mutating func settle(_ answer: AnsweredRequest, _ now: ClockReading, _ effects: inout Effects) {
        guard let request = cluster.book.remove(answer.number) else { return }
        switch answer.content {
        case .refusal(let number):
            guard let refusal = Refusal(rawValue: number) else { return }
            if request.waiting.clientRequest == nil, !errorLimiter.allows(request.waiting.remote, at: now.monotonic) {
                counters.errorsWithheld += 1
                return
            }
            refuse(request.waiting, refusal, now, &effects)
        case .counts(let counts):
            counters.scrapes += 1
            scraped(counts, request.waiting, &effects)
        }
    }

    private func scraped(_ counts: [ScrapeCounts], _ waiting: WaitingRequest, _ effects: inout Effects) {
        if let id = waiting.clientRequest {
            let swarms = counts.map {
                SwarmCounts(seeders: $0.seeders, leechers: $0.leechers, completed: $0.completed)
            }
            effects.answers.append(Answer(id: id, content: .scrape(swarms)))
            return
        }
        effects.replies.append(
            to: waiting.remote, from: waiting.local, socket: waiting.socket, limit: 8 + 12 * counts.count
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

    private mutating func connect(
        _ transactionID: TransactionID, _ waiting: WaitingRequest, _ now: ClockReading, _ effects: inout Effects
    ) {
        counters.connects += 1
        let connectionID = connectionIDs.issue(to: waiting.remote, at: now.wall)
        effects.replies.append(to: waiting.remote, from: waiting.local, socket: waiting.socket, limit: 16) {
            ReplyWriter.connect(transactionID, connectionID, into: $0)
        }
    }

    // MARK: - Reading

    private mutating func read(
        _ infoHashes: [InfoHash], _ number: UInt64, _ life: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard !cluster.reads.contains(life, number) else { return }
        if !cluster.reads.add(WaitingRead(life: life, number: number, infoHashes: infoHashes)) {
            refuse(number: number, of: life, .busy, now, &effects)
        }
    }

    /// Begins a round of reads, and answers those that are confirmed.
    mutating func attendToReads(_ now: ClockReading, _ effects: inout Effects) {
        if isServing, cluster.reads.begin() {
            cluster.reads.confirmed(by: cluster.id, round: cluster.reads.round)
            cluster.sentAt = now.monotonic
            broadcast(.confirm(round: cluster.reads.round), epoch: election.epoch, &effects)
        }
        answerReads(now, by: hasLease(now) ? Electorate(voters: [cluster.id]) : electorate, &effects)
    }

    /// Answers what a quorum has confirmed.
    mutating func answerReads(_ now: ClockReading, by electorate: Electorate, _ effects: inout Effects) {
        for read in cluster.reads.take(electorate) {
            let counts = read.infoHashes.map { infoHash in
                let counts = state.table.counts(of: infoHash)
                return ScrapeCounts(
                    seeders: counts.seeders, leechers: counts.leechers, completed: counts.completed)
            }
            deliver(AnsweredRequest(number: read.number, content: .counts(counts)), to: read.life, now, &effects)
        }
    }

    func confirmReceived(
        _ round: UInt64, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard phase == .following, let following = cluster.following, following.life == sender,
            following.epoch == epoch, following.isInstalled, promise.epoch == epoch, mayVote
        else { return }
        send(.confirmed(round: round), to: sender, &effects)
    }

    mutating func confirmedReceived(
        _ round: UInt64, _ place: Int, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard phase == .master, epoch == election.epoch, cluster.neighbours[place].installedIn == election.epoch else {
            return
        }
        cluster.reads.confirmed(by: cluster.neighbours[place].life.id, round: round)
        if has(.confirmedByOne) { answerReads(now, by: Electorate(voters: [cluster.id]), &effects) }
    }
}

extension AnsweredRequest {
    /// Whether this only says that the request of a key is done: a scrape has one info hash at least.
    fileprivate var isSettledKey: Bool { content == .counts([]) }
}

extension BookedRequest {
    /// Whether it goes into no entry: a connect or a scrape.
    fileprivate var isRead: Bool {
        switch content {
        case .datagram(let bytes): if case .announce? = try? TrackerRequest(bytes.span.bytes) { false } else { true }
        case .announce: false
        case .scrape: true
        }
    }
}
