/// Whose requests are whose: what this tracker heard, what it sends on, and what it answers (rule 18).

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Hearing

    /// Books what came from peers; what can be answered is answered at the end of the step.
    ///
    /// Without a bus, too: it may be back before they have lost patience.
    mutating func book(_ batch: DatagramBatch, _ now: ClockReading, _ effects: inout Effects) {
        guard takesRequests, router.heedsSockets(now: now.monotonic) else {
            counters.ignored += UInt64(batch.datagrams.count)
            return
        }
        // Nothing else empties it while there is no bus.
        if router.book.isFull, !office.isBusUp { dropStaleRequests(now, &effects) }
        for number in batch.datagrams.indices {
            let datagram = batch.datagrams[number]
            guard datagram.remote.port != 0 else {
                counters.ignored += 1
                continue
            }
            guard !router.book.isFull else {
                counters.dropped += 1
                continue
            }
            book(datagram, batch.payload(number), now, &effects)
        }
    }

    mutating func book(
        _ datagram: Datagram, _ bytes: [UInt8], _ now: ClockReading, _ effects: inout Effects
    ) {
        var waiting = WaitingRequest(remote: datagram.remote, local: datagram.local, socket: datagram.socket)
        let kind: BookedRequest.Kind
        do throws(TrackerRequestError) {
            switch try TrackerRequest(bytes.span.bytes) {
            case .connect(let transactionID):
                kind = .connect
                waiting.transactionID = transactionID
                if has(.fencedAnswers), !office.isBusUp { return connect(transactionID, waiting, now, &effects) }
                guard !router.book.isFullOfConnects else {
                    counters.dropped += 1
                    return
                }
            case .announce(let request):
                kind = .announce
                waiting.transactionID = request.transactionID
                waiting.numWant = numWant(request.announce, overUDPTo: datagram.remote)
                guard connectionIDs.isValid(request.connectionID, from: datagram.remote, at: now.wall) else {
                    return complainAlone(request.transactionID, .connectionIDExpired, datagram, now, &effects)
                }
            case .scrape(let connectionID, let transactionID, _):
                kind = .scrape
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
        if isGroup {
            guard router.book.find(key: key) == nil, !router.recentKeys.isRecent(key, now: now.monotonic) else {
                return
            }
        }
        _ = router.book.add(
            BookedRequest(
                waiting: waiting, kind: kind, content: .datagram(bytes), key: key, heardAt: now.monotonic,
                handedAt: now.monotonic))
    }

    /// Whether clients are heard here.
    private var takesRequests: Bool { office.takesPart && !departure.isLast }

    var isGroup: Bool { configuration.cluster.entry == .group }

    /// Whether this tracker is the one to speak: each for its own clients, or the master for the group's; never one
    /// that is out of the cluster.
    var answersForGroup: Bool { isGroup ? phase == .master && isServing : isInService }

    mutating func complainAlone(
        _ transactionID: TransactionID, _ refusal: Refusal, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard answersForGroup else { return }
        complain(transactionID, refusal, datagram, now, &effects)
    }

    /// What all trackers of a group call a request.
    func requestKey(_ remote: SocketAddress, _ bytes: [UInt8]) -> UInt64 {
        let place = mixed(remote.high ^ mixed(remote.low ^ mixed(UInt64(remote.port) ^ promise.secret.w2)))
        return mixed(place ^ checksum(bytes.span.bytes))
    }

    /// Books a request over HTTP.
    mutating func book(_ request: ClientRequest, _ now: ClockReading, _ effects: inout Effects) {
        guard takesRequests, office.isBusUp, !router.book.isFull else {
            effects.answers.append(Answer(id: request.id, content: .failure(.notServing)))
            return
        }
        var waiting = WaitingRequest(request)
        let kind: BookedRequest.Kind
        let content: ForwardedRequest.Content
        switch request.content {
        case .announce(let announce):
            kind = .announce
            waiting.numWant = numWant(announce)
            content = .announce(announce, passkey: request.passkey)
        case .scrape(let infoHashes):
            kind = .scrape
            content = .scrape(Array(infoHashes.prefix(Limits.scrapeHashes)), passkey: request.passkey)
        }
        // In a group, nobody else has heard it.
        let key = isGroup ? mixed(request.id ^ mixed(promise.incarnation)) : 0
        _ = router.book.add(
            BookedRequest(
                waiting: waiting, kind: kind, content: content, key: key, heardAt: now.monotonic,
                handedAt: now.monotonic))
    }
}
