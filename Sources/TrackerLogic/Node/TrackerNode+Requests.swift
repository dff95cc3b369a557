/// What peers ask: read, checked, and either answered at once (connect, scrape, errors) or gathered (announces).
///
/// Everything that can be refused is refused here, before the log; what is in the log is applied without question.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Datagrams

    mutating func receive(_ batch: DatagramBatch, _ now: ClockReading, _ effects: inout Effects) {
        if isClustered { return book(batch, now, &effects) }
        guard phase == .master, isServing else {
            // Restoring, standing, stopping or failed: silence. Clients ask again, or ask another tracker.
            counters.ignored += UInt64(batch.datagrams.count)
            return
        }
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
        do throws(TrackerRequestError) {
            switch try TrackerRequest(bytes) {
            case .connect(let transactionID):
                connect(transactionID, datagram, now, &effects)
            case .announce(let request):
                guard connectionIDs.isValid(request.connectionID, from: datagram.remote, at: now.wall) else {
                    return complain(request.transactionID, .connectionIDExpired, datagram, now, &effects)
                }
                announce(request, bytes, datagram, now, &effects)
            case .scrape(let connectionID, let transactionID, let hashCount):
                guard connectionIDs.isValid(connectionID, from: datagram.remote, at: now.wall) else {
                    return complain(transactionID, .connectionIDExpired, datagram, now, &effects)
                }
                scrape(bytes, hashCount, transactionID, datagram, now, &effects)
            }
        } catch {
            malformed(error, datagram, now, &effects)
        }
    }

    private mutating func connect(
        _ transactionID: TransactionID, _ datagram: Datagram, _ now: ClockReading, _ effects: inout Effects
    ) {
        counters.connects += 1
        let connectionID = connectionIDs.issue(to: datagram.remote, at: now.wall)
        effects.replies.append(to: datagram.remote, from: datagram.local, socket: datagram.socket, limit: 16) {
            ReplyWriter.connect(transactionID, connectionID, into: $0)
        }
    }

    private mutating func announce(
        _ request: AnnounceRequest, _ bytes: RawSpan, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        counters.announces += 1
        let announce = request.announce
        let peer = peerAddress(datagram.remote, port: request.port, claimed: request.ip)
        let refusal = refusal(of: announce, by: peer) { Passkey.inURL(AnnounceOptions.urlData(bytes)) }
        if let refusal { return complain(request.transactionID, refusal, datagram, now, &effects) }
        guard hasRoomToWait() else { return }
        let waiting = WaitingRequest(
            remote: datagram.remote, local: datagram.local, transactionID: request.transactionID,
            socket: datagram.socket, numWant: numWant(announce, overUDPTo: peer))
        gathering.append(announce, of: peer, for: waiting)
    }

    private mutating func scrape(
        _ bytes: RawSpan, _ hashCount: Int, _ transactionID: TransactionID, _ datagram: Datagram,
        _ now: ClockReading, _ effects: inout Effects
    ) {
        counters.scrapes += 1
        if let refusal = state.access.udpScrapeRefusal {
            return complain(transactionID, refusal, datagram, now, &effects)
        }
        let table = state.table
        effects.replies.append(
            to: datagram.remote, from: datagram.local, socket: datagram.socket, limit: 8 + 12 * hashCount
        ) { room in
            var offset = ReplyWriter.scrapeHeader(transactionID, into: room)
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

    mutating func malformed(
        _ error: TrackerRequestError, _ datagram: Datagram, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard case .answerable(let complaint) = error,
            connectionIDs.isValid(complaint.connectionID, from: datagram.remote, at: now.wall)
        else {
            counters.ignored += 1
            return
        }
        let refusal: Refusal =
            switch complaint.fault {
            case .shortAnnounce: .malformedAnnounce
            case .scrapeLength: .malformedScrape
            case .unknownAction: .unknownAction
            }
        complain(complaint.transactionID, refusal, datagram, now, &effects)
    }

    /// Sends an error, never longer than what was asked, and not too many to one address.
    mutating func complain(
        _ transactionID: TransactionID, _ refusal: Refusal, _ datagram: Datagram, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard errorLimiter.allows(datagram.remote, at: now.monotonic) else {
            counters.errorsWithheld += 1
            return
        }
        counters.errors += 1
        let limit = refusal == .connectionIDExpired ? Int(datagram.byteCount) : 100
        effects.replies.append(to: datagram.remote, from: datagram.local, socket: datagram.socket, limit: limit) {
            ReplyWriter.error(transactionID, refusal.text, into: $0)
        }
    }

    // MARK: - HTTP

    mutating func receive(_ request: ClientRequest, _ now: ClockReading, _ effects: inout Effects) {
        if isClustered { return book(request, now, &effects) }
        guard phase == .master, isServing else {
            effects.answers.append(Answer(id: request.id, content: .failure(.notServing)))
            return
        }
        switch request.content {
        case .announce(let announce): gather(announce, request, &effects)
        case .scrape(let infoHashes):
            counters.scrapes += 1
            if let refusal = state.access.refusal(passkey: request.passkey) {
                counters.errors += 1
                effects.answers.append(Answer(id: request.id, content: .failure(refusal)))
            } else {
                let counts = infoHashes.prefix(Limits.scrapeHashes).map { state.table.counts(of: $0) }
                effects.answers.append(Answer(id: request.id, content: .scrape(counts)))
            }
        }
    }

    private mutating func gather(_ announce: Announce, _ request: ClientRequest, _ effects: inout Effects) {
        counters.announces += 1
        let peer = peerAddress(request.source, port: announce.port)
        if let refusal = refusal(of: announce, by: peer, passkey: { request.passkey }) {
            counters.errors += 1
            effects.answers.append(Answer(id: request.id, content: .failure(refusal)))
            return
        }
        guard hasRoomToWait() else {
            effects.answers.append(Answer(id: request.id, content: .failure(.busy)))
            return
        }
        gathering.append(announce, of: peer, for: WaitingRequest(request, numWant: numWant(announce)))
    }

    // MARK: - What an announce says

    /// Where a peer is, as far as its tracker believes it: at its sender's address, and the port that it names.
    ///
    /// - Parameter claimed: the address in BEP 15's `ip`, which counts where its sender is trusted; 0 for none. Over
    ///   IPv6 a reply has peers of 18 bytes, whatever that field of 4 bytes says, so there it says nothing.
    @inline(__always)
    func peerAddress(_ source: SocketAddress, port: UInt16, claimed: UInt32 = 0) -> SocketAddress {
        var peer = source
        if claimed != 0, peer.isIPv4, isTrusted(peer) { peer = SocketAddress(ipv4: claimed, port: 0) }
        peer.port = port
        peer.scope = 0
        return peer
    }

    /// How many peers an announce asks for: nothing, or less than nothing, is the default; 0 is none.
    ///
    /// - Parameter peer: to whom the answer goes as a datagram; nil where it goes over HTTP, which has no end.
    @inline(__always)
    func numWant(_ announce: Announce, overUDPTo peer: SocketAddress? = nil) -> UInt16 {
        let wanted = announce.numWant ?? -1
        let count = min(wanted < 0 ? configuration.numWant : wanted, configuration.maxNumWant)
        guard let peer, !peer.isIPv4 else { return UInt16(count) }
        return UInt16(min(count, ReplyWriter.maxIPv6Peers))
    }

    // MARK: - Checks

    /// Why an announce may not go into the log; nil where it may.
    @inline(__always)
    func refusal(
        of announce: Announce, by peer: SocketAddress, passkey: () -> [UInt8]
    ) -> Refusal? {
        let (infoHash, event) = (announce.infoHash, announce.event)
        if announce.port == 0 { return .portZero }
        if let refusal = state.access.refusal(infoHash, passkey: passkey) { return refusal }
        let limits = configuration.limits
        let counts = state.table.counts
        // Those that are already here may go on when the table is full.
        if counts.torrents >= limits.torrents, event != .stopped, !state.table.contains(infoHash) {
            return .trackerFull
        }
        if counts.peers >= limits.peers, event != .stopped, !state.table.contains(infoHash, peer) {
            return .trackerFull
        }
        // A look at the swarm costs something, so only where it can be so large.
        if counts.peers >= limits.peersPerSwarm, event != .stopped,
            state.table.counts(of: infoHash).peers >= limits.peersPerSwarm, !state.table.contains(infoHash, peer)
        {
            return .swarmFull
        }
        if event != .stopped, isFull(peer, counts.peers), !state.table.contains(infoHash, peer) { return .addressFull }
        return nil
    }

    /// Whether an address holds all that one may.
    ///
    /// A proxy's own is nobody's in particular; where it tells whose peers it brings, those addresses are bounded.
    @inline(__always)
    private func isFull(_ address: SocketAddress, _ peers: Int) -> Bool {
        state.table.peers(at: address) >= configuration.limits.peersPerAddress(among: peers) && !isTrusted(address)
    }

    /// Whether one more request may wait; counts it as dropped if not.
    @inline(__always)
    private mutating func hasRoomToWait() -> Bool {
        guard gathering.updateCount < configuration.limits.updatesPerEntry else {
            counters.dropped += 1
            return false
        }
        return true
    }

    func isTrusted(_ address: SocketAddress) -> Bool {
        configuration.trusted.contains { $0.contains(address) }
    }
}
