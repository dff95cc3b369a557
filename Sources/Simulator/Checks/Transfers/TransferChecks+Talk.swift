// What is said of extensions, and to trackers: who looks at it.

import PeerLogic
import Primitives
import Wire

extension TransferChecks {
    // MARK: - Extensions

    mutating func saysExtended(_ end: Int, _ id: UInt8, _ payload: [UInt8], at now: Instant) {
        let theirs = scene.ends[end].theirExtensions
        if id == 0 {
            guard let said = try? ExtensionHandshake(decoding: payload) else { return }
            if let own = said.metadataID { scene.ends[end].ownExtensions.metadata = own }
            if let own = said.peerExchangeID { scene.ends[end].ownExtensions.exchange = own }
            if let own = said.dontHaveID { scene.ends[end].ownExtensions.dontHave = own }
            if said.metadataByteCount != nil { scene.ends[end].offersMetadata = true }
            checkHandshake(end, said, at: now)
        } else if id == theirs.metadata {
            metadata.says(end, payload, at: now, &scene)
        } else if id == theirs.exchange {
            exchanges.says(end, payload, at: now, &scene)
        }
    }

    /// What an extension handshake says is so (BEP 10).
    private mutating func checkHandshake(_ end: Int, _ said: ExtensionHandshake, at now: Instant) {
        let peer = scene.ends[end].peer
        let record = scene.peers[peer]
        let port = record.settings.listenPort
        let isRight =
            said.listenPort == (port == 0 ? nil : port) && (said.metadataByteCount != nil) == record.hasMetadata
            && (said.isUploadOnly ?? false) == scene.isComplete(peer)
            && (said.peerExchangeID == nil) == (record.isPrivate || !record.settings.exchangesPeers)
        guard !isRight else { return }
        scene.violate(
            .extensionsAreKept, at: now,
            "\(TransferScene.name(peer)) says something in its extension handshake that is not so")
    }

    mutating func hearsExtended(_ end: Int, _ id: UInt8, _ payload: [UInt8]) {
        if id == 0 { return hearsExtensionHandshake(end, payload) }
        let own = scene.ends[end].ownExtensions
        if id == own.metadata {
            metadata.hears(end, payload, scene)
            askedForMetadata = end
        } else if id == own.exchange, !scene.peers[scene.ends[end].peer].isPrivate {
            guard let said = try? PeerExchange(decoding: payload), scene.ends[end].isAmongHonest else { return }
            for address in said.added { found(scene.ends[end].peer, address, isProper: false, isNews: true) }
        }
    }

    /// An extension handshake has come, which says where the other side listens (BEP 10).
    private mutating func hearsExtensionHandshake(_ end: Int, _ payload: [UInt8]) {
        guard let said = try? ExtensionHandshake(decoding: payload) else { return }
        order.hears(end, said, &scene)
        if let queue = said.requestQueue {
            scene.ends[end].theirQueue = max(1, queue)
            scene.ends[end].window = min(scene.ends[end].window, max(1, queue))
            scene.ends[end].leastWindow = min(scene.ends[end].leastWindow, max(1, queue))
        }
        if let count = said.metadataByteCount { scene.ends[end].theirMetadataByteCount = count }
        let local = scene.local(end)
        if scene.ends[end].extensionsAt == nil { scene.ends[end].extensionsAt = local }
        guard let address = scene.ends[end].address else { return }
        if scene.ends[end].listens == nil, let port = said.listenPort, port != 0 {
            var listens = address
            listens.port = port
            scene.ends[end].listens = listens
            scene.ends[end].listensAt = local
            if end & 1 == 1 { recalls.listens(end, at: listens, scene) }
        }
        guard scene.ends[end].isAmongHonest else { return }
        calls.succeeded(scene.ends[end].peer, address)
        calls.meets(scene.ends[end].peer, address)
    }

    // MARK: - Metadata

    mutating func checksMetadata(_ peer: Int) { metadata.checks(peer) }

    mutating func metadataRejected(_ peer: Int) {
        let end = metadata.rejected(peer)
        guard end >= 0, scene.ends[end].isOpen, scene.ends[end].peer == peer else { return }
        bans.metadataFailed(peer, of: scene.ends[end].other, &scene)
    }

    mutating func metadataAccepted(_ peer: Int) {
        scene.peers[peer].hasMetadata = true
        for piece in 0..<scene.layout.pieceCount where scene.peers[peer].disk[piece] {
            scene.peers[peer].gainedAt[piece] = scene.peers[peer].local
        }
        scene.peers[peer].beganComplete = scene.isComplete(peer)
        trackers.knowsPieces(peer, scene)
        metadata.accepted(peer, scene)
        shown.changed(peer, scene)
    }

    // MARK: - Trackers

    /// An announce over HTTP.
    mutating func announces(_ peer: Int, _ tracker: Int, _ request: HTTPAnnounceRequest, at now: Instant) {
        trackers.asks(peer, tracker, at: now, &scene)
        let said = TrackerManners.Announce(
            event: request.event, downloaded: request.downloaded, uploaded: request.uploaded, left: request.left,
            numWant: request.numWant ?? 0, port: request.port)
        trackers.says(peer, tracker, said, isNew: true, at: now, &scene)
    }

    /// An announce over UDP, or what comes before it.
    mutating func sends(_ peer: Int, _ tracker: Int, _ bytes: [UInt8], at now: Instant) {
        let (isNew, announce) = datagrams.sends(peer, tracker, bytes, at: now, &scene)
        if isNew { trackers.asks(peer, tracker, at: now, &scene) }
        guard let announce else { return }
        let said = TrackerManners.Announce(
            event: announce.event, downloaded: announce.downloaded, uploaded: announce.uploaded, left: announce.left,
            numWant: Int(announce.numWant), port: announce.port)
        trackers.says(peer, tracker, said, isNew: isNew, at: now, &scene)
    }

    mutating func hearsDatagram(_ peer: Int, _ tracker: Int, _ bytes: [UInt8]) {
        switch datagrams.hears(peer, tracker, bytes, scene) {
        case .nothing: break
        case .answered(let interval, let peers): trackerAnswered(peer, tracker, interval: interval, peers)
        case .failed: trackers.failed(peer, tracker, scene)
        }
    }

    mutating func trackerAnswered(_ peer: Int, _ tracker: Int, interval: UInt32, _ peers: [SocketAddress]) {
        let isNews = trackers.isAsking(peer, tracker)
        for address in peers { found(peer, address, isProper: true, isNews: isNews) }
        trackers.answered(peer, tracker, interval: interval, scene)
    }

    mutating func trackerFailed(_ peer: Int, _ tracker: Int) { trackers.failed(peer, tracker, scene) }

    /// The clock has come to the end of requests over UDP.
    mutating func timeOut(_ peer: Int) {
        for tracker in 0..<datagrams.trackerCount where datagrams.timesOut(peer, tracker, scene) {
            trackers.failed(peer, tracker, scene)
        }
    }
}
