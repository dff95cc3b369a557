// A few peers and their connections in one process: just enough to see what sessions do with each other.

import PeerLogic
import Primitives
import Wire

/// A few peers and their connections, with one latency for everything: for tests of sessions, not of networks.
///
/// Blocks are facts, not bytes: each is right, or (from a peer that `corrupts`) wrong. Whole swarms with faults of
/// every kind are the simulator's.
struct SmallWorld {
    struct Peer {
        var session: TorrentSession
        var address: SocketAddress
        var links: [Link] = []
        var actions: [TorrentSession.Action] = []
        /// Of each piece, the digest of the bytes in each block of its buffer; 0 is right.
        var buffers: [Int: [UInt64]] = [:]
        var stored: [Int] = []
        var corrupts = false
        var diskIsFull = false
        var isListening = true
        /// It knows no extension.
        var isOld = false
        var observations: [TorrentSession.Observation] = []
        var closed: [CloseReason] = []
        /// All that it has said, with the time: for tests that ask who said what.
        var said: [(Instant, PeerMessage)] = []
        var blocksSent = 0
        var metadata: [UInt8]?
    }

    struct Link {
        var own: LinkID
        var other: Int
        var theirs: LinkID
        /// Arrives after all that was sent before.
        var busyUntil: Instant
        /// It has come in, and the caller's handshake has not.
        var isAwaitingCaller = false
    }

    enum Delivery {
        case dial(Int, LinkID, SocketAddress)
        case dialled(Int, LinkID)
        case handshake(Int, LinkID, PeerHandshake)
        case message(Int, LinkID, PeerMessage)
        case block(Int, LinkID, Block, digest: UInt64)
        case sent(Int, LinkID, Block)
        case closed(Int, LinkID)
        case verified(Int, Int)
        case stored(Int, Int)
        case metadata(Int, [UInt8])
    }

    var now = Instant(nanoseconds: 1_000_000_000)
    var latency = Duration.milliseconds(5)
    /// Bytes a second of each direction of each connection.
    var linkRate = 10_000_000
    var peers: [Peer] = []
    let torrent: TorrentSession.Torrent
    let layout: PieceLayout
    private var queue: [(at: Instant, number: Int, what: Delivery)] = []
    private var number = 0
    var delivered = 0

    init(pieceCount: Int = 8, pieceLength: Int = 32_768, metadata: [UInt8]? = nil) {
        layout = PieceLayout(pieceLength: pieceLength, totalLength: pieceCount * pieceLength - 5_000)
        var torrent = TorrentSession.Torrent(infoHash: InfoHash(Bytes20(Array(repeating: 7, count: 20))!))
        torrent.layout = layout
        torrent.metadata = metadata
        self.torrent = torrent
    }

    mutating func add(
        have: Bitfield? = nil, isMagnet: Bool = false, starts: Bool = true,
        _ change: (inout SessionSettings, inout TorrentSession.Torrent) -> Void = { _, _ in }
    ) -> Int {
        let index = peers.count
        var settings = SessionSettings()
        settings.listenPort = 6881
        var torrent = torrent
        if isMagnet { (torrent.layout, torrent.metadata) = (nil, nil) }
        change(&settings, &torrent)
        let id = PeerID(Bytes20([UInt8(index), 1] + Array(repeating: 45, count: 18))!)
        let session = TorrentSession(
            torrent, peerID: id, settings: settings, random: RandomStream(seed: UInt64(index) + 1))
        peers.append(
            Peer(session: session, address: SocketAddress(ipv4: 0x0A00_0001 + UInt32(index), port: 6881)))
        if starts { step(index, .started(have: isMagnet ? nil : have ?? Bitfield(count: layout.pieceCount))) }
        return index
    }

    mutating func addSeeder(
        _ change: (inout SessionSettings, inout TorrentSession.Torrent) -> Void = { _, _ in }
    ) -> Int {
        add(have: Bitfield(count: layout.pieceCount, isFull: true), change)
    }

    mutating func introduce(_ peer: Int, to others: Int...) {
        step(peer, .peersFound(others.map { peers[$0].address }, .person))
    }

    // MARK: - Time

    /// Goes on until a condition holds, or so long; false where it does not.
    mutating func run(for span: Duration = .seconds(120), until isDone: (SmallWorld) -> Bool = { _ in false }) -> Bool {
        let end = now + span
        while !isDone(self) {
            let next = queue.min { ($0.at, $0.number) < ($1.at, $1.number) }
            var deadline: (Instant, Int)?
            for index in peers.indices {
                if let due = peers[index].session.nextDeadline, due < deadline?.0 ?? Instant(nanoseconds: .max) {
                    deadline = (due, index)
                }
            }
            let at = min(next?.at ?? Instant(nanoseconds: .max), deadline?.0 ?? Instant(nanoseconds: .max))
            guard at <= end else {
                now = max(now, end)
                return isDone(self)
            }
            now = max(now, at)
            if let next, next.at <= at {
                queue.removeAll { $0.number == next.number }
                deliver(next.what)
            } else if let deadline {
                step(deadline.1, .deadlineReached)
            }
        }
        return true
    }

    private mutating func later(_ at: Instant, _ what: Delivery) {
        queue.append((at, number, what))
        number += 1
    }

    // MARK: - The owner's part

    mutating func step(_ peer: Int, _ event: TorrentSession.Event) {
        var actions: [TorrentSession.Action] = []
        peers[peer].session.step(event, now: now, into: &actions)
        carryOut(peer, actions)
    }

    private mutating func carryOut(_ peer: Int, _ actions: [TorrentSession.Action]) {
        for action in actions {
            peers[peer].actions.append(action)
            switch action {
            case .dial(let link, let address): later(now + latency, .dial(peer, link, address))
            case .sendHandshake(let link): send(peer, link, 68) { .handshake($0, $1, $2) }
            case .send(let link, let message):
                peers[peer].said.append((now, message))
                send(peer, link, 13) { other, theirs, _ in .message(other, theirs, message) }
            case .sendBlock(let link, let block):
                peers[peer].blocksSent += 1
                let digest: UInt64 = peers[peer].corrupts ? UInt64(peer) + 1 : 0
                send(peer, link, Int(block.length)) { other, theirs, _ in
                    .block(other, theirs, block, digest: digest)
                }
                later(linkIndex(peer, link).map { peers[peer].links[$0].busyUntil } ?? now, .sent(peer, link, block))
            case .dropBlock: break
            case .close(let link, let reason):
                peers[peer].closed.append(reason)
                hangUp(peer, link)
            case .verify(let piece, _): later(now + .milliseconds(1), .verified(peer, piece))
            case .store(let piece): later(now + .milliseconds(1), .stored(peer, piece))
            case .releaseBuffer(let piece): peers[peer].buffers[piece] = nil
            case .checkMetadata(let bytes): later(now + .milliseconds(1), .metadata(peer, bytes))
            case .observe(let observation): peers[peer].observations.append(observation)
            case .sendToTracker, .announceOverHTTP, .fetchFromWeb, .announceLocally: break
            }
        }
    }

    func linkIndex(_ peer: Int, _ link: LinkID) -> Int? { peers[peer].links.firstIndex { $0.own == link } }

    private mutating func send(
        _ peer: Int, _ link: LinkID, _ byteCount: Int, _ what: (Int, LinkID, PeerHandshake) -> Delivery
    ) {
        guard let index = linkIndex(peer, link) else { return }
        let entry = peers[peer].links[index]
        let took = Duration(nanoseconds: Int64(byteCount) * 1_000_000_000 / Int64(linkRate))
        let leaves = max(now, entry.busyUntil) + took
        peers[peer].links[index].busyUntil = leaves
        var handshake = peers[peer].session.handshake
        // What one of them does not know, neither uses.
        if peers[peer].isOld || peers[entry.other].isOld { handshake.capabilities = [] }
        later(leaves + latency, what(entry.other, entry.theirs, handshake))
    }

    /// Cuts a connection, as its own side has just done.
    mutating func hangUp(_ peer: Int, _ link: LinkID) {
        guard let index = linkIndex(peer, link) else { return }
        let entry = peers[peer].links.remove(at: index)
        later(now + latency, .closed(entry.other, entry.theirs))
    }

    /// A peer is gone from one moment to the next.
    mutating func kill(_ peer: Int) {
        for link in peers[peer].links { hangUp(peer, link.own) }
        peers[peer].isListening = false
        step(peer, .stopped)
    }

    private mutating func deliver(_ what: Delivery) {
        delivered += 1
        switch what {
        case .dial(let peer, let link, let address): dial(peer, link, address)
        case .dialled(let peer, let link):
            step(peer, .dialled(link))
            send(peer, link, 68) { .handshake($0, $1, $2) }
        case .handshake(let peer, let link, let handshake):
            guard let index = linkIndex(peer, link) else { return }
            if peers[peer].links[index].isAwaitingCaller {
                peers[peer].links[index].isAwaitingCaller = false
                let caller = peers[peers[peer].links[index].other].address
                step(peer, .accepted(link, SocketAddress(high: caller.high, low: caller.low, port: 50_000), handshake))
            } else {
                step(peer, .handshakeReceived(link, handshake))
            }
        case .message(let peer, let link, let message):
            if linkIndex(peer, link) != nil { step(peer, .messageReceived(link, message)) }
        case .block(let peer, let link, let block, let digest):
            guard linkIndex(peer, link) != nil else { return }
            switch peers[peer].session.blockBegins(block, on: link, now: now) {
            case .keep:
                let piece = Int(block.piece)
                let count = layout.blockCount(ofPiece: piece)
                peers[peer].buffers[piece, default: Array(repeating: .max, count: count)][Int(block.offset) / 16_384] =
                    digest
                step(peer, .blockReceived(link, block))
            case .skip: step(peer, .blockSkipped(link, block))
            }
        case .sent(let peer, let link, let block):
            if linkIndex(peer, link) != nil { step(peer, .blockSent(link, block, isSent: true)) }
        case .closed(let peer, let link):
            guard let index = linkIndex(peer, link) else { return }
            peers[peer].links.remove(at: index)
            step(peer, .linkClosed(link, .closed))
        case .verified(let peer, let piece):
            let digests = peers[peer].buffers[piece] ?? []
            let isRight = !digests.isEmpty && digests.allSatisfy { $0 == 0 }
            step(
                peer,
                isRight
                    ? .pieceVerified(piece: piece, digests: digests)
                    : .pieceFailed(piece: piece, digests: digests))
        case .stored(let peer, let piece):
            if peers[peer].diskIsFull { return step(peer, .storeFailed(piece: piece, .full)) }
            peers[peer].stored.append(piece)
            step(peer, .pieceStored(piece: piece))
        case .metadata(let peer, let bytes):
            if bytes == torrent.metadata {
                step(
                    peer,
                    .metadataAccepted(
                        layout: layout, isPrivate: torrent.isPrivate, have: Bitfield(count: layout.pieceCount)))
            } else {
                step(peer, .metadataRejected)
            }
        }
    }

    private mutating func dial(_ peer: Int, _ link: LinkID, _ address: SocketAddress) {
        guard let other = peers.firstIndex(where: { $0.address == address && $0.isListening }) else {
            return step(peer, .linkClosed(link, .unreachable))
        }
        var actions: [TorrentSession.Action] = []
        let theirs = peers[other].session.newLink(now: now, into: &actions)
        carryOut(other, actions)
        guard let theirs else { return step(peer, .linkClosed(link, .closed)) }
        peers[peer].links.append(Link(own: link, other: other, theirs: theirs, busyUntil: now))
        peers[other].links.append(
            Link(own: theirs, other: peer, theirs: link, busyUntil: now, isAwaitingCaller: true))
        later(now + latency, .dialled(peer, link))
    }
}
