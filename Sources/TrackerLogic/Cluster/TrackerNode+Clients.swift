// What clients ask, as datagrams or over HTTP.

import Primitives
import Wire

/// What clients ask, as datagrams or over HTTP: answered, taken into the entry that gathers, or booked (rule 18).
///
///     connect ──────► answered, by whoever may
///     announce ─┬───► the entry that gathers, and booked as taken: by the master, where nobody waits before it
///               └───► booked: taken up as soon as there is room (`pumpRequests`), or sent on to the master
///     scrape ───────► booked, and among the reads; answered at once where nobody else could be master
///
/// Whatever waits is in the book, so that whoever has heard it finds it: by the number or the key of its ticket when
/// its entry is decided, whoever decides it, or refused; by its epoch when this tracker is no longer master and hands
/// on what the next one lacks; by its age; and all of it when this tracker stops or its disk fails.
extension TrackerNode {
    // MARK: - Datagrams

    /// Without a bus, too, a tracker of a cluster keeps what it hears: it may be back before they have lost patience.
    mutating func receive(_ batch: DatagramBatch, _ now: ClockReading, _ effects: inout Effects) {
        guard takesRequests, router.heedsSockets(now: now.monotonic) else {
            counters.ignored += UInt64(batch.datagrams.count)
            return
        }
        // Nothing else empties it while there is no bus.
        if router.isFull, !office.isBusUp { dropStaleRequests(now, &effects) }
        let bytes = batch.bytes.span.bytes
        for datagram in batch.datagrams {
            let start = Int(datagram.offset)
            receive(bytes.extracting(start..<start + Int(datagram.byteCount)), datagram, now, &effects)
        }
    }

    @inline(__always)
    private mutating func receive(
        _ bytes: RawSpan, _ datagram: Datagram, _ now: ClockReading, _ effects: inout Effects
    ) {
        // From port 0 nobody can be answered.
        guard datagram.remote.port != 0 else {
            counters.ignored += 1
            return
        }
        guard !router.isFull else {
            counters.dropped += 1
            return
        }
        do throws(TrackerRequestError) {
            switch try TrackerRequest(bytes) {
            case .connect(let transactionID):
                connect(transactionID, bytes, datagram, now, &effects)
            case .announce(let request):
                guard connectionIDs.isValid(request.connectionID, from: datagram.remote, at: now.wall) else {
                    return complainAlone(request.transactionID, .connectionIDExpired, datagram, now, &effects)
                }
                announce(request, bytes, datagram, now, &effects)
            case .scrape(let connectionID, let transactionID, let hashCount):
                guard connectionIDs.isValid(connectionID, from: datagram.remote, at: now.wall) else {
                    return complainAlone(transactionID, .connectionIDExpired, datagram, now, &effects)
                }
                scrape(transactionID, hashCount, bytes, datagram, now, &effects)
            }
        } catch {
            if answersForGroup { malformed(error, datagram, now, &effects) }
        }
    }

    private mutating func connect(
        _ transactionID: TransactionID, _ bytes: RawSpan, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        let waiting = WaitingRequest(datagram, transactionID)
        if has(.fencedAnswers), !office.isBusUp { return connect(transactionID, waiting, now, &effects) }
        guard !router.isFullOfConnects else {
            counters.dropped += 1
            return
        }
        guard let key = newKey(datagram, bytes, now) else { return }
        if answersAtOnce {
            noteSettled(key, now)
            return connect(transactionID, waiting, now, &effects)
        }
        router.add(BookedRequest(waiting, .connect, key: key, now), bytes)
    }

    private mutating func announce(
        _ request: AnnounceRequest, _ bytes: RawSpan, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard let key = newKey(datagram, bytes, now) else { return }
        let announce = request.announce
        var waiting = WaitingRequest(datagram, request.transactionID)
        waiting.numWant = numWant(announce, overUDPTo: datagram.remote)
        let peer = peerAddress(datagram.remote, port: request.port, claimed: request.ip)
        let outcome = takeAtOnce(announce, of: peer, key: key, now) { Passkey.inURL(AnnounceOptions.urlData(bytes)) }
        switch outcome {
        case .taken:
            let booked = BookedRequest(waiting, .announce, key: key, takenIn: candidate.epoch, now)
            if policy.hasBus { router.add(booked, bytes) } else { router.add(booked) }
        case .refused(let refusal): turnDown(waiting, refusal, key: key, now, &effects)
        case .waits: router.add(BookedRequest(waiting, .announce, key: key, now), bytes)
        }
    }

    private mutating func scrape(
        _ transactionID: TransactionID, _ hashCount: Int, _ bytes: RawSpan, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard let key = newKey(datagram, bytes, now) else { return }
        let waiting = WaitingRequest(datagram, transactionID)
        guard answersAtOnce else {
            router.add(BookedRequest(waiting, .scrape, key: key, now), bytes)
            return
        }
        if let refusal = state.access.udpScrapeRefusal {
            return turnDown(waiting, refusal, key: key, now, &effects)
        }
        // Nobody else could be master: there is nobody to ask whether this one still is.
        guard policy.hasBus else { return scraped(bytes, hashCount, waiting, &effects) }
        let number = router.add(
            BookedRequest(waiting, .scrape, key: key, takenIn: candidate.epoch, now), bytes)
        let infoHashes = (0..<hashCount).map { InfoHash(Bytes20(bytes, at: 16 + 20 * $0)) }
        read(infoHashes, isGroup ? key : number, isGroup ? Tickets.group : life, now, &effects)
    }

    // MARK: - HTTP

    mutating func receive(_ request: ClientRequest, _ now: ClockReading, _ effects: inout Effects) {
        guard takesRequests, office.isBusUp, !router.isFull else {
            let refusal = takesRequests && office.isBusUp ? Refusal.busy : .notServing
            effects.answers.append(Answer(id: request.id, content: .failure(refusal)))
            return
        }
        // In a group, nobody else has heard it.
        let key = isGroup ? mixed(request.id ^ mixed(promise.incarnation)) : 0
        switch request.content {
        case .announce(let announce):
            var waiting = WaitingRequest(request)
            waiting.numWant = numWant(announce)
            let content = ForwardedRequest.Content.announce(announce, passkey: request.passkey)
            let peer = peerAddress(request.source, port: announce.port)
            switch takeAtOnce(announce, of: peer, key: key, now, passkey: { request.passkey }) {
            case .taken:
                router.add(BookedRequest(waiting, .announce, key: key, takenIn: candidate.epoch, now), content)
            case .refused(let refusal): turnDown(waiting, refusal, key: key, now, &effects)
            case .waits: router.add(BookedRequest(waiting, .announce, key: key, now), content)
            }
        case .scrape(let infoHashes):
            // The end of the step takes it up.
            let content = ForwardedRequest.Content.scrape(
                Array(infoHashes.prefix(Limits.scrapeHashes)), passkey: request.passkey)
            router.add(BookedRequest(WaitingRequest(request), .scrape, key: key, now), content)
        }
    }

    // MARK: - Taking at once

    /// Whether clients are heard here.
    @inline(__always)
    private var takesRequests: Bool { office.takesPart && !departure.isLast }

    /// Whether what changes nothing is attended to as it comes, before announces that wait for room: by the master.
    @inline(__always)
    private var answersAtOnce: Bool { phase == .master && isServing }

    /// Whether announces go into the entry that gathers as they come: this is the master, there is room, and nobody
    /// waits before them.
    @inline(__always)
    private var gathersAtOnce: Bool {
        answersAtOnce && gathering.updateCount < configuration.limits.updatesPerEntry && !router.hasOverflow
            && !router.hasUnforwarded(candidate.epoch)
    }

    /// What becomes of an announce that was just heard.
    private enum Intake {
        /// It is in the entry that gathers, for the next number of the book.
        case taken
        case refused(Refusal)
        case waits
    }

    /// Takes an announce into the entry that gathers, where it need not wait.
    @inline(__always)
    private mutating func takeAtOnce(
        _ announce: Announce, of peer: SocketAddress, key: UInt64, _ now: ClockReading, passkey: () -> [UInt8]
    ) -> Intake {
        guard gathersAtOnce else { return .waits }
        if let refusal = refusal(of: announce, by: peer, passkey: passkey) { return .refused(refusal) }
        let isTaken = gathering.append(
            announce, of: peer, life: isGroup ? Tickets.group : life, number: isGroup ? key : router.nextNumber)
        return isTaken ? .taken : .waits
    }

    // MARK: - A group

    @inline(__always)
    var isGroup: Bool { configuration.cluster.entry == .group }

    /// What all trackers of a group call a datagram: 0 where there is no group.
    ///
    /// - Returns: nil for a copy of what waits already, or of what was settled just now.
    @inline(__always)
    private func newKey(_ datagram: Datagram, _ bytes: RawSpan, _ now: ClockReading) -> UInt64? {
        guard isGroup else { return 0 }
        let key = requestKey(datagram.remote, bytes)
        return router.isKnown(key, now: now.monotonic) ? nil : key
    }

    /// What all trackers of a group call a request.
    @inline(__always)
    func requestKey(_ remote: SocketAddress, _ bytes: RawSpan) -> UInt64 {
        let place = mixed(remote.high ^ mixed(remote.low ^ mixed(UInt64(remote.port) ^ promise.secret.w2)))
        return mixed(place ^ checksum(bytes))
    }

    /// Whether this tracker is the one to speak: each for its own clients, or the master for the group's; never one
    /// that is out of the cluster.
    @inline(__always)
    var answersForGroup: Bool { isGroup ? phase == .master && isServing : isInService }

    private mutating func complainAlone(
        _ transactionID: TransactionID, _ refusal: Refusal, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard answersForGroup else { return }
        complain(transactionID, refusal, datagram, now, &effects)
    }
}
