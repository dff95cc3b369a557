// Requests on their way: taken up by the master, sent on by a slave, taken into an entry or among the reads.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Handing on

    /// Whether clients may be answered here.
    @inline(__always)
    var isInService: Bool {
        office.maySpeak(
            Office.ServiceConditions(
                applied: has(.forwardedTooEarly) ? .max : state.index, promised: promise.epoch,
                holdsState: holdsWholeState,
                isSuspecting: detector.isSuspecting))
    }

    /// Requests in one message.
    private var forwardCount: Int { 512 }

    /// Takes up what is booked, as master; sends it on, as slave.
    mutating func pumpRequests(_ now: ClockReading, _ effects: inout Effects) {
        guard isInService else { return }
        if router.hasOverflow { gatherOverflow(now, &effects) }
        guard !router.isEmpty else { return }
        if phase == .master { gatherBooked(now, &effects) } else { forwardBooked(now, &effects) }
    }

    mutating func gatherBooked(_ now: ClockReading, _ effects: inout Effects) {
        while let number = router.nextUnforwarded(candidate.epoch), let request = router[number] {
            guard gathering.updateCount < configuration.limits.updatesPerEntry else { return }
            if isGroup, request.isGroupsRead, now.monotonic - request.heardAt > policy.detectionTime * 2 {
                // The last master will have answered it long ago.
                router.remove(number)
                continue
            }
            router.markForwarded(number, candidate.epoch, now: now.monotonic)
            let life = isGroup ? Tickets.group : self.life
            let name = isGroup ? request.key : number
            take(
                ForwardedRequest(
                    number: name, source: request.waiting.remote, content: router.content(of: number)),
                of: life, booked: number, now, &effects)
        }
    }

    mutating func forwardBooked(_ now: ClockReading, _ effects: inout Effects) {
        guard let following = office.following, router.forwardsAt(pause: policy.forwardPause) <= now.monotonic else {
            return
        }
        var requests: [ForwardedRequest] = []
        while let number = router.nextUnforwarded(following.epoch), let request = router[number] {
            if isGroup, now.monotonic - request.heardAt < policy.keepalive, request.waiting.clientRequest == nil {
                // The master will have heard it too; only what it seems to have missed is sent on.
                break
            }
            router.markForwarded(number, following.epoch, now: now.monotonic)
            if isGroup, request.isGroupsRead, !has(.twoConnectors) { continue }
            if !isGroup || has(.twoConnectors), request.kind == .connect {
                router.remove(number)
                connect(request.waiting.transactionID, request.waiting, now, &effects)
                continue
            }
            #if PLANTED_BUGS
                if has(.slaveScrapes), let answer = scrapedAlone(request, number) {
                    settle(answer, now, &effects)
                    continue
                }
            #endif
            requests.append(
                ForwardedRequest(
                    number: number, source: request.waiting.remote, content: router.content(of: number)))
            if requests.count == forwardCount { break }
        }
        guard !requests.isEmpty else { return }
        router.noteForwarded(now: now.monotonic)
        let index = isGroup ? state.index : 0
        send(.forward(requests, floor: router.floor, index: index), to: following.life, &effects)
    }

    /// When what waits to be forwarded is due.
    ///
    /// In a group it is at the next quarter of a keepalive.
    @inline(__always)
    var forwardDeadline: Instant? {
        guard !isGroup, !router.isEmpty, let following = office.following,
            router.hasUnforwarded(following.epoch), isInService
        else { return nil }
        return router.forwardsAt(pause: policy.forwardPause)
    }

    mutating func forwardReceived(
        _ requests: [ForwardedRequest], floor: UInt64, index: UInt64, _ place: Int, _ epoch: Epoch,
        _ now: ClockReading, _ effects: inout Effects
    ) {
        guard phase == .master, isServing, epoch == candidate.epoch,
            neighbours[place].follower.welcomedIn == candidate.epoch
        else { return }
        let sender = neighbours[place].life
        neighbours[place].follower.seen.raise(to: floor)
        for request in requests {
            if isGroup, case .datagram(let bytes) = request.content {
                takeForGroup(request, bytes, from: sender, knowing: index, now, &effects)
                continue
            }
            guard router.hasRoom(configuration.limits.waitingRequests) else { return }
            guard neighbours[place].follower.seen.insert(request.number) || has(.redeliveredTwice) else {
                // It is under way, or an old copy; or it was refused, and the answer was lost.
                if let refusal = neighbours[place].follower.refused.first(where: { $0.number == request.number }) {
                    router.send(refusal, to: sender)
                }
                continue
            }
            if gathering.updateCount < configuration.limits.updatesPerEntry, !router.hasOverflow {
                take(request, of: sender, booked: nil, now, &effects)
            } else {
                router.postpone(request, of: sender)
            }
        }
    }

    /// Those that the last entry of this master had no room for; whoever is master no more has none.
    mutating func gatherOverflow(_ now: ClockReading, _ effects: inout Effects) {
        var taken = 0
        while gathering.updateCount < configuration.limits.updatesPerEntry,
            let next = router.overflow(at: taken)
        {
            taken += 1
            take(next.request, of: next.life, booked: nil, now, &effects)
        }
        router.removeOverflow(taken)
    }

    /// A request of the group that this master has not heard: it is booked as if it had.
    ///
    /// (What comes over HTTP only its own tracker has heard, and answers.)
    ///
    /// - Parameters:
    ///   - request: as its tracker hands it on.
    ///   - bytes: the datagram.
    ///   - sender: the tracker that hands it on.
    ///   - index: up to which its sender had applied the log.
    ///   - now: both clocks.
    ///   - effects: get the reply, where it is one at once.
    mutating func takeForGroup(
        _ request: ForwardedRequest, _ bytes: [UInt8], from sender: Life, knowing index: UInt64, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        // Else it may have been settled here, and be forgotten. Its sender forwards it again, and will know more then.
        let isPlanted = has(.settledForgotten) || has(.settledByTimeOnly)
        guard index >= router.remembersSince || isPlanted else { return }
        let key = requestKey(request.source, bytes.span.bytes)
        let memory = isQuorumMode ? RecentKeys.memory : RecentKeys.memoryOfOthers
        let isSettled =
            router.isRecent(key, within: memory, now: now.monotonic)
            || router.isSettled(key, behind: index) && !has(.settledByTimeOnly)
        if isSettled, !has(.settledForgotten) {
            // The sender has missed that.
            let note = AnsweredRequest(number: key, content: .counts([]))
            return router.send(note, to: sender)
        }
        guard router.find(key: key) == nil, !router.isFull,
            let parsed = try? TrackerRequest(bytes.span.bytes)
        else { return }
        var waiting = WaitingRequest(remote: request.source)
        let kind: BookedRequest.Kind
        switch parsed {
        case .connect(let transactionID):
            kind = .connect
            waiting.transactionID = transactionID
        case .announce(let announce):
            kind = .announce
            waiting.transactionID = announce.transactionID
            waiting.numWant = numWant(announce.announce, overUDPTo: request.source)
        case .scrape(_, let transactionID, _):
            kind = .scrape
            waiting.transactionID = transactionID
        }
        router.add(BookedRequest(waiting, kind, key: key, now), bytes.span.bytes)
    }

    // MARK: - Taking

    /// Takes a request into the entry that gathers, among the reads, or refuses it.
    mutating func take(
        _ request: ForwardedRequest, of life: Life, booked: UInt64?, _ now: ClockReading, _ effects: inout Effects
    ) {
        switch request.content {
        case .datagram(let bytes):
            guard let parsed = try? TrackerRequest(bytes.span.bytes) else { return }
            switch parsed {
            case .connect(let transactionID):
                guard let booked, let key = router[booked]?.key, let waiting = router.remove(booked) else { return }
                noteSettled(key, now)
                connect(transactionID, waiting, now, &effects)
            case .announce(let announce):
                gather(announce.announce, claimed: announce.ip, request, of: life, now, &effects) {
                    Passkey.inURL(AnnounceOptions.urlData(bytes.span.bytes))
                }
            case .scrape(_, _, let hashCount):
                if let refusal = state.access.udpScrapeRefusal {
                    return refuse(number: request.number, of: life, refusal, now, &effects)
                }
                let infoHashes = (0..<hashCount).map { InfoHash(Bytes20(bytes.span.bytes, at: 16 + 20 * $0)) }
                read(infoHashes, request.number, life, now, &effects)
            }
        case .announce(let announce, let passkey): gather(announce, request, of: life, now, &effects) { passkey }
        case .scrape(let infoHashes, let passkey):
            if let refusal = state.access.refusal(state.accounts, passkey: passkey) {
                return refuse(number: request.number, of: life, refusal, now, &effects)
            }
            read(infoHashes, request.number, life, now, &effects)
        }
    }

    /// Takes an announce into the entry that gathers, or refuses it; `claimed` is the address in BEP 15's `ip`, or 0.
    mutating func gather(
        _ announce: Announce, claimed: UInt32 = 0, _ request: ForwardedRequest, of life: Life, _ now: ClockReading,
        _ effects: inout Effects, passkey: () -> [UInt8]
    ) {
        let peer = peerAddress(request.source, port: announce.port, claimed: claimed)
        if let refusal = refusal(of: announce, by: peer, passkey: passkey) {
            return refuse(number: request.number, of: life, refusal, now, &effects)
        }
        let hasRoom = gathering.append(announce, of: peer, life: life, number: request.number)
        if !hasRoom, let place = neighbours.place(of: life.id) {
            // It comes again.
            neighbours[place].follower.seen.remove(request.number)
        }
    }
}

extension AnsweredRequest {
    /// Whether this only says that the request of a key is done: a scrape has one info hash at least.
    var isSettledKey: Bool { content == .counts([]) }
}
