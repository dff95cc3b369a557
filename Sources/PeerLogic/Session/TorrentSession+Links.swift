// Connections: made, greeted, ended.

import Primitives
import Wire

extension TorrentSession {
    /// Connections being made at the same time: more would only compete, and routers dislike many.
    static let maxDiallingCount = 10
    /// Of the connections that there may be, we make so many ourselves; the others are for those who call.
    func maxDialledCount() -> Int { max(1, settings.maxLinks * 3 / 5) }
    /// TCP's own patience of two minutes is too long.
    static let dialPatience = Duration.seconds(10)
    static let greetingPatience = Duration.seconds(15)

    /// The slot of a connection that is open; nil for a name that is void.
    func slot(_ link: LinkID) -> Int? {
        let slot = Int(link.slot)
        guard slot < links.count, links[slot].generation == link.generation, links[slot].phase != .free else {
            return nil
        }
        return slot
    }

    func name(_ slot: Int) -> LinkID { LinkID(slot: UInt16(slot), generation: links[slot].generation) }

    var linkCount: Int { links.reduce(0) { $0 + ($1.phase == .free ? 0 : 1) } }
    /// Connections that we have made, or are making.
    var dialledCount: Int { links.reduce(0) { $0 + ($1.phase != .free && !$1.isIncoming ? 1 : 0) } }
    /// Whether anybody is there to speak with.
    var isConnected: Bool { links.contains { $0.isReady } }

    private mutating func freeSlot(_ now: Instant) -> Int? {
        if let slot = links.firstIndex(where: { $0.phase == .free }) { return slot }
        guard links.count < Int(UInt16.max) else { return nil }
        links.append(PeerLink(at: now))
        return links.count - 1
    }

    private mutating func reset(_ slot: Int, _ phase: PeerLink.Phase, _ now: Instant) {
        let generation = links[slot].generation &+ 1
        links[slot] = PeerLink(at: now)
        links[slot].generation = generation
        links[slot].phase = phase
        if let layout = torrent.layout { links[slot].has = Bitfield(count: layout.pieceCount) }
    }

    // MARK: - Made

    mutating func peersFound(
        _ addresses: [SocketAddress], _ source: PeerSource, _ now: Instant, _ actions: inout [Action]
    ) {
        if torrent.isPrivate, !has(.privateIgnored), source == .exchange || source == .local { return }
        for address in addresses { _ = book.found(address, source, now: now) }
        connect(now, &actions)
    }

    /// Calls as many peers as may be called.
    mutating func connect(_ now: Instant, _ actions: inout [Action]) {
        guard phase == .running else { return }
        var dialled = dialledCount
        var dialling = links.reduce(0) { $0 + ($1.phase == .dialling || $1.phase == .greeting ? 1 : 0) }
        while dialled < maxDialledCount(), dialling < Self.maxDiallingCount, linkCount < settings.maxLinks,
            let slot = freeSlot(now),
            let entry = book.next(now: has(.impatientCalls) ? now + .seconds(86_400) : now, withoutSeeds: isWholly)
        {
            guard let address = entry.address else { return }
            reset(slot, .dialling, now)
            links[slot].address = address
            links[slot].listenAddress = address
            links[slot].peer = entry.id
            actions.append(.dial(name(slot), address))
            dialled += 1
            dialling += 1
        }
    }

    /// Whether we have all pieces, wanted or not.
    var isWholly: Bool { picker?.have.isFull ?? false }

    /// A name for a connection that has come in, to be used with `accepted`; nil where there are as many as may be.
    ///
    /// Where all places are taken, one gives way that neither side has any use for.
    public mutating func newLink(now: Instant, into actions: inout [Action]) -> LinkID? {
        guard phase == .running else { return nil }
        if linkCount >= settings.maxLinks {
            guard
                let useless = links.indices.first(where: {
                    links[$0].isReady && !links[$0].weAreInterested && !links[$0].peerIsInterested
                        && now - links[$0].since > .seconds(60)
                })
            else { return nil }
            close(useless, .full, now, &actions)
        }
        guard let slot = freeSlot(now) else { return nil }
        reset(slot, .greeting, now)
        links[slot].isIncoming = true
        return name(slot)
    }

    mutating func dialled(_ slot: Int, _ now: Instant) {
        guard links[slot].phase == .dialling else { return }
        links[slot].phase = .greeting
        links[slot].since = now
    }

    // MARK: - Greeted

    mutating func handshakeReceived(
        _ slot: Int, _ handshake: PeerHandshake, _ now: Instant, _ actions: inout [Action]
    ) {
        guard links[slot].phase == .greeting, !links[slot].isIncoming else { return }
        guard handshake.infoHash == torrent.infoHash else { return close(slot, .otherTorrent, now, &actions) }
        greeted(slot, handshake, now, &actions)
    }

    mutating func accepted(
        _ slot: Int, _ address: SocketAddress, _ handshake: PeerHandshake, _ now: Instant, _ actions: inout [Action]
    ) {
        guard links[slot].phase == .greeting, links[slot].isIncoming else { return }
        links[slot].address = address
        guard handshake.infoHash == torrent.infoHash else { return close(slot, .otherTorrent, now, &actions) }
        guard !book.isBanned(address) || has(.bannedLetIn) else { return close(slot, .banned, now, &actions) }
        guard let peer = book.called(from: address, now: now, evenBanned: has(.bannedLetIn)) else {
            return close(slot, .full, now, &actions)
        }
        links[slot].peer = peer
        actions.append(.sendHandshake(name(slot)))
        greeted(slot, handshake, now, &actions)
    }

    private mutating func greeted(
        _ slot: Int, _ handshake: PeerHandshake, _ now: Instant, _ actions: inout [Action]
    ) {
        guard handshake.peerID != peerID else {
            let peer = links[slot].peer
            close(slot, .ourselves, now, &actions)
            return book.wasOurselves(peer)
        }
        // Before another connection to the same peer is closed, so that there is one at each time.
        links[slot].phase = .ready
        links[slot].peerID = handshake.peerID
        links[slot].capabilities = handshake.capabilities.intersection([.extensions, .fast])
        if let other = links.indices.first(where: {
            $0 != slot && links[$0].isReady && links[$0].peerID == handshake.peerID
        }) {
            let loser = loser(slot, other)
            close(loser, .duplicate, now, &actions)
            guard loser == other else { return }
        }
        links[slot].since = now
        links[slot].heardAt = now
        links[slot].toldCount = gained.count
        book.succeeded(links[slot].peer)
        actions.append(.observe(.linkReady(name(slot), links[slot].address, handshake.peerID)))
        if has(.bitfieldLate), links[slot].hasExtensions { sendExtensionHandshake(slot, now, &actions) }
        sayWhatWeHave(slot, now, &actions)
        if links[slot].hasExtensions, !has(.bitfieldLate) { sendExtensionHandshake(slot, now, &actions) }
    }

    /// Which of two connections to one peer is closed: both sides decide alike, by who has called.
    ///
    /// The one stays that was made by the peer with the greater id; of two that the same one made, the first.
    private func loser(_ newer: Int, _ older: Int) -> Int {
        guard links[newer].isIncoming != links[older].isIncoming else { return newer }
        let oursIsGreater = isLess(links[newer].peerID.bytes, peerID.bytes)
        let madeByGreater = links[newer].isIncoming ? !oursIsGreater : oursIsGreater
        return madeByGreater ? older : newer
    }

    private func isLess(_ left: Bytes20, _ right: Bytes20) -> Bool {
        var (a, b): ([UInt8], [UInt8]) = ([], [])
        a.append(left)
        b.append(right)
        return a.lexicographicallyPrecedes(b)
    }

    private mutating func sayWhatWeHave(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard let picker else {
            if links[slot].hasFast { say(slot, .haveNone, now, &actions) }
            return
        }
        if links[slot].hasFast, picker.have.isFull {
            say(slot, .haveAll, now, &actions)
        } else if links[slot].hasFast, picker.have.isEmpty {
            say(slot, .haveNone, now, &actions)
        } else if !picker.have.isEmpty {
            say(slot, .bitfield(picker.have.wire), now, &actions)
        }
        allowFast(slot, now, &actions)
    }

    /// Says something to a peer.
    mutating func say(_ slot: Int, _ message: PeerMessage, _ now: Instant, _ actions: inout [Action]) {
        links[slot].saidAt = now
        actions.append(.send(name(slot), message))
    }

    // MARK: - Ended

    /// Closes a connection of our own accord.
    mutating func close(_ slot: Int, _ reason: CloseReason, _ now: Instant, _ actions: inout [Action]) {
        actions.append(.close(name(slot), reason))
        let peer = links[slot].peer
        let isSeed = links[slot].isSeed
        let isOfUse = isOfUse(slot)
        let isAskedFor =
            links[slot].requests.activeCount > 0 || links[slot].arriving != nil || picker?.awaits(peer) ?? false
        let isGiven = !links[slot].uploads.sending.isEmpty
        if has(.saidAfterClose) { say(slot, .keepAlive, now, &actions) }
        cleared(slot, now, &actions)
        // What it was asked for is asked of others at once.
        if isAskedFor, reason != .ended { refillAll(now, &actions) }
        // And what the limit was to let go there, goes elsewhere.
        if isGiven, reason != .ended { upload(now, &actions) }
        switch reason {
        case .banned: if has(.bannedCalled) { book.banAlone(peer) } else { book.ban(peer) }
        case .ended, .bothComplete, .full, .duplicate: book.left(peer, isSeed: isSeed, now: now)
        case .idle, .stalled, .handshakeTimedOut, .otherTorrent, .breach, .ourselves:
            if isOfUse, reason == .idle {
                book.left(peer, isSeed: isSeed, now: now)
            } else {
                book.failed(peer, now: now, isConstant: has(.constantBackOff))
            }
        }
        // Who is banned stays so, and who is ourselves.
        if reason != .banned, reason != .ourselves { handOver(slot) }
    }

    mutating func linkClosed(_ slot: Int, _ end: LinkEnd, _ now: Instant, _ actions: inout [Action]) {
        let peer = links[slot].peer
        let isSeed = links[slot].isSeed
        let isOfUse = isOfUse(slot)
        let isGiven = !links[slot].uploads.sending.isEmpty
        cleared(slot, now, &actions)
        if isGiven { upload(now, &actions) }
        guard peer != 0 else { return }
        if end == .closed, isOfUse {
            book.left(peer, isSeed: isSeed, now: now)
        } else {
            book.failed(peer, now: now, isConstant: has(.constantBackOff))
        }
        handOver(slot)
        connect(now, &actions)
        refillAll(now, &actions)
    }

    /// A connection is over: who is there on another one, too, is not called where it listens as long as that stands.
    private mutating func handOver(_ slot: Int) {
        guard let address = links[slot].listenAddress,
            let other = links.indices.first(where: {
                $0 != slot && links[$0].isReady && links[$0].listenAddress == address
            })
        else { return }
        book.listens(links[other].peer, at: address)
    }

    /// Whether anything has come of a connection, or it has stood for a minute.
    private func isOfUse(_ slot: Int) -> Bool { links[slot].down.total > 0 || links[slot].up.total > 0 }

    /// Frees the slot, and what was asked of it for others.
    private mutating func cleared(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        releaseAllRequests(slot, &actions)
        if links[slot].isReady { picker?.left(links[slot].has) }
        for block in links[slot].uploads.sending { uploadLimit.giveBack(Int(block.length)) }
        metadata.left(slot)
        choker.forget(slot)
        links[slot].phase = .free
        links[slot].has = Bitfield(count: 0)
        if !isConnected { trackers.starve(now: now) }
    }
}
