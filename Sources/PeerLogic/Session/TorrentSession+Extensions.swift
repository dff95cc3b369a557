// Extensions: their handshake, metadata, peer exchange, don't-have (BEP 10, 9, 11, 54, 21).

import Primitives
import Wire

extension TorrentSession {
    /// The numbers that we give to extensions: others use them when they speak to us (BEP 10).
    enum OwnID {
        static let metadata: UInt8 = 1
        static let exchange: UInt8 = 2
        static let dontHave: UInt8 = 3
    }

    /// "A peer … should not send them more often than once a minute" (BEP 11).
    static let exchangeInterval = Duration.seconds(60)
    /// "No more than 50 added and 50 dropped" (BEP 11).
    static let maxExchangedCount = 50
    /// Addresses that are taken from a peer in a minute: some send more than they may in their first message.
    static let maxExchangedPerMinute = 200
    /// A peer may ask for each part of the metadata so often.
    static let metadataRepeats = 3
    /// So long a peer that cannot give the metadata keeps a place that another one could have.
    static let metadataPatience = Duration.seconds(60)

    mutating func sendExtensionHandshake(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        var handshake = ExtensionHandshake()
        handshake.metadataID = OwnID.metadata
        handshake.dontHaveID = OwnID.dontHave
        if exchangesPeers { handshake.peerExchangeID = OwnID.exchange }
        handshake.client = settings.clientName
        handshake.requestQueue = UploadQueue.maxCount
        if settings.listenPort != 0 { handshake.listenPort = settings.listenPort }
        handshake.metadataByteCount = torrent.metadata?.count
        handshake.isUploadOnly = isComplete
        handshake.yourAddress = links[slot].address
        say(slot, .extended(id: 0, payload: handshake.encoded()), now, &actions)
    }

    private var exchangesPeers: Bool { settings.exchangesPeers && (!torrent.isPrivate || has(.privateIgnored)) }

    mutating func extended(
        _ slot: Int, _ id: UInt8, _ payload: [UInt8], _ now: Instant, _ actions: inout [Action]
    ) {
        guard links[slot].hasExtensions else {
            return breach(slot, "an extension's message without extensions", now, &actions)
        }
        switch id {
        case 0: extensionHandshake(slot, payload, now, &actions)
        case OwnID.metadata: metadataMessage(slot, payload, now, &actions)
        case OwnID.exchange: if exchangesPeers { exchangeMessage(slot, payload, now, &actions) }
        case OwnID.dontHave:
            guard let message = try? DontHave(decoding: payload) else {
                return breach(slot, "a don't-have of \(payload.count) bytes", now, &actions)
            }
            lacksPiece(slot, message.piece, now, &actions)
        // Numbers that we have given to nobody.
        default: break
        }
    }

    private mutating func extensionHandshake(
        _ slot: Int, _ payload: [UInt8], _ now: Instant, _ actions: inout [Action]
    ) {
        guard let said = try? ExtensionHandshake(decoding: payload) else {
            return breach(slot, "an extension handshake that is none", now, &actions)
        }
        // It may come again: what it does not name stays as it was, 0 switches off (BEP 10).
        if let id = said.metadataID { links[slot].theirs.metadata = id }
        if let id = said.peerExchangeID { links[slot].theirs.exchange = id }
        if let id = said.dontHaveID { links[slot].theirs.dontHave = id }
        if let client = said.client { links[slot].theirs.client = client }
        if let queue = said.requestQueue { links[slot].window.peerQueue = queue }
        if let count = said.metadataByteCount { links[slot].theirs.metadataSize = count }
        if let isUploadOnly = said.isUploadOnly { links[slot].theirs.isUploadOnly = isUploadOnly }
        if links[slot].isIncoming, links[slot].listenAddress == nil, let port = said.listenPort, port != 0 {
            var address = links[slot].address
            address.port = port
            links[slot].listenAddress = address
            book.listens(links[slot].peer, at: address)
        }
        links[slot].hasExtensionHandshake = true
        if exchangesPeers, links[slot].theirs.exchange != 0, links[slot].exchangeAt == nil {
            links[slot].exchangeAt = now + .seconds(5)
        }
        fetchMetadata(now, &actions)
    }

    // MARK: - Metadata

    /// How many parts of the metadata a peer may ask for.
    private var metadataAllowance: Int {
        let parts = ((torrent.metadata?.count ?? 0) + MetadataFetch.partByteCount) / MetadataFetch.partByteCount
        return parts * Self.metadataRepeats
    }

    /// Whether a peer says that it has the metadata, and gives it.
    private func givesMetadata(_ slot: Int) -> Bool {
        links[slot].theirs.metadata != 0 && (1...MetadataFetch.maxByteCount).contains(links[slot].theirs.metadataSize)
    }

    private mutating func metadataMessage(
        _ slot: Int, _ payload: [UInt8], _ now: Instant, _ actions: inout [Action]
    ) {
        guard let message = try? MetadataMessage(decoding: payload) else {
            return breach(slot, "a metadata message that is none", now, &actions)
        }
        switch message {
        case .request(let part): metadataRequested(slot, part, now, &actions)
        case .data(let part, _, let bytes):
            if let whole = metadata.received(part, bytes, from: slot, now: now) {
                actions.append(.checkMetadata(whole))
            }
            fetchMetadata(now, &actions)
        case .reject:
            if metadata.slot == slot { metadata.passOver(at: now) }
            fetchMetadata(now, &actions)
        case .unknown: break
        }
    }

    private mutating func metadataRequested(_ slot: Int, _ part: Int, _ now: Instant, _ actions: inout [Action]) {
        let id = links[slot].theirs.metadata
        guard id != 0 else { return }
        let start = part.multipliedReportingOverflow(by: MetadataFetch.partByteCount)
        guard let all = torrent.metadata, part >= 0, !start.overflow, start.partialValue < all.count,
            links[slot].metadataRequestCount < metadataAllowance
        else {
            let refusal = MetadataMessage.reject(part: part)
            return say(slot, .extended(id: id, payload: refusal.encoded()), now, &actions)
        }
        links[slot].metadataRequestCount += 1
        let bytes = Array(all[start.partialValue...].prefix(MetadataFetch.partByteCount))
        let data = MetadataMessage.data(part: part, totalByteCount: all.count, bytes: bytes)
        say(slot, .extended(id: id, payload: data.encoded()), now, &actions)
    }

    /// Asks for the parts that are missing.
    mutating func fetchMetadata(_ now: Instant, _ actions: inout [Action]) {
        guard phase == .running, torrent.layout == nil else { return }
        if let due = metadata.deadline, due <= now { metadata.passOver() }
        var candidates: [MetadataFetch.Source] = []
        for slot in links.indices where links[slot].isReady && givesMetadata(slot) {
            let (peer, byteCount) = (links[slot].peer, links[slot].theirs.metadataSize)
            candidates.append(MetadataFetch.Source(slot: slot, peer: peer, byteCount: byteCount, heardAt: now))
        }
        metadata.begin(candidates, now: now)
        while let slot = metadata.slot, let part = metadata.nextPart() {
            let request = MetadataMessage.request(part: part)
            let id = links[slot].theirs.metadata
            say(slot, .extended(id: id, payload: request.encoded()), now, &actions)
        }
    }

    /// Where all places are taken and the metadata is lacking, one that cannot give it gives way to another.
    ///
    /// Nothing else can be had before the metadata is here, and a peer without extensions never gives it (BEP 9).
    mutating func makeRoomForMetadata(_ now: Instant, _ actions: inout [Action]) {
        guard torrent.layout == nil, let due = book.nextTry, due <= now else { return }
        let mayDial = dialledCount < maxDialledCount()
        guard !mayDial || linkCount >= settings.maxLinks else { return }
        let useless = links.indices.first {
            links[$0].isReady && !givesMetadata($0) && (mayDial || !links[$0].isIncoming)
                && now - links[$0].since >= Self.metadataPatience
        }
        if let useless { close(useless, .full, now, &actions) }
    }

    mutating func metadataRejected(_ now: Instant, _ actions: inout [Action]) {
        guard let peer = metadata.rejected(), let entry = book.entry(peer), !entry.isBanned else { return }
        book.ban(peer)
        actions.append(.observe(.banned(entry.host)))
        for slot in links.indices where links[slot].phase != .free && links[slot].peer == peer {
            close(slot, .banned, now, &actions)
        }
        fetchMetadata(now, &actions)
        connect(now, &actions)
    }

    mutating func metadataAccepted(
        _ layout: PieceLayout, _ isPrivate: Bool, _ have: Bitfield, _ now: Instant, _ actions: inout [Action]
    ) {
        guard torrent.layout == nil else { return }
        torrent.layout = layout
        torrent.isPrivate = isPrivate
        if let bytes = metadata.accepted() { torrent.metadata = bytes }
        picker = PiecePicker(layout: layout, have: have, wanted: Bitfield(count: layout.pieceCount, isFull: true))
        beganComplete = picker?.isComplete ?? false
        wasWhole = wasWhole || isWholly
        hasCompleted = beganComplete
        if isPrivate { localAnnounceAt = nil }
        have.forEach { gained.append(UInt32($0)) }
        if !have.isEmpty { haveDeadline = now + Self.haveDelay }
        for slot in links.indices where links[slot].phase != .free {
            // Who is still being greeted will tell of its pieces, too.
            links[slot].has = Bitfield(count: layout.pieceCount)
            if links[slot].isReady { readEarly(slot, now, &actions) }
            if links[slot].isReady { offerMetadata(slot, now, &actions) }
        }
        fetchFromWeb(now, &actions)
    }

    /// Tells a peer that may lack the metadata, too, that it is here now: a handshake may come again (BEP 10).
    private mutating func offerMetadata(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].hasExtensions, torrent.metadata != nil else { return }
        let theirs = links[slot].theirs
        let mayLackIt = theirs.metadata != 0 && theirs.metadataSize == 0
        if mayLackIt || !links[slot].hasExtensionHandshake { sendExtensionHandshake(slot, now, &actions) }
    }

    // MARK: - Peer exchange

    private mutating func exchangeMessage(
        _ slot: Int, _ payload: [UInt8], _ now: Instant, _ actions: inout [Action]
    ) {
        guard let message = try? PeerExchange(decoding: payload) else {
            return breach(slot, "a peer exchange that is none", now, &actions)
        }
        let taken = Array(message.added.prefix(links[slot].exchangedAddressesLeft))
        links[slot].exchangedAddressesLeft -= taken.count
        peersFound(taken, .exchange, now, &actions)
    }

    /// Tells a peer who has come and who has gone since it was told last.
    mutating func exchangePeers(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        links[slot].exchangeAt = now + Self.exchangeInterval
        links[slot].exchangedAddressesLeft = Self.maxExchangedPerMinute
        guard exchangesPeers, links[slot].theirs.exchange != 0 else { return }
        var current: [SocketAddress] = []
        for other in links.indices where other != slot && links[other].isReady {
            if let address = links[other].listenAddress, !current.contains(address) { current.append(address) }
        }
        let told = links[slot].toldPeers
        let added = current.filter { !told.contains($0) }.prefix(Self.maxExchangedCount)
        let dropped = told.filter { !current.contains($0) }.prefix(Self.maxExchangedCount)
        guard !added.isEmpty || !dropped.isEmpty else { return }
        links[slot].toldPeers = told.filter { !dropped.contains($0) } + added
        let message = PeerExchange(added: Array(added), dropped: Array(dropped))
        say(slot, .extended(id: links[slot].theirs.exchange, payload: message.encoded()), now, &actions)
    }

    // MARK: - Don't have

    /// Tells a peer that a piece has gone, where it understands.
    mutating func tellLoss(_ slot: Int, _ piece: Int, _ now: Instant, _ actions: inout [Action]) {
        let id = has(.ownNumbers) ? OwnID.dontHave : links[slot].theirs.dontHave
        guard id != 0, !links[slot].has[piece] else { return }
        say(slot, .extended(id: id, payload: DontHave(piece: UInt32(piece)).encoded()), now, &actions)
    }
}
