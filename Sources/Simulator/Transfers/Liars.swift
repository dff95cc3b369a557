// Peers that break the protocol.

import PeerLogic
import Primitives
import Wire

/// Peers that break the protocol: no session, but something that hears, and says what it likes.
extension TransferWorld {
    mutating func liarComes(_ peer: Int) {
        peers[peer].random = RandomStream(seed, .liar, peer, peers[peer].life)
        queue.put(.liarActs(peer, life: peers[peer].life), at: now + .milliseconds(100))
        liarAnnounces(peer)
    }

    private mutating func liarAnnounces(_ peer: Int) {
        for tracker in simpleTrackers.indices {
            announce(
                peer, tracker,
                HTTPAnnounceRequest(
                    infoHash: infoHash, peerID: peers[peer].peerID, port: peers[peer].address.port, uploaded: 0,
                    downloaded: 0, left: 1, event: .started, numWant: 50))
        }
    }

    /// It calls some of those whom a tracker has named.
    mutating func liarFinds(_ peer: Int, _ answer: TrackerAnswer) {
        guard case .announced(_, _, _, let addresses) = answer else { return }
        for address in addresses.prefix(6) where address.port != 0 { dial(peer, nil, address) }
    }

    private mutating func say(_ end: Int, _ message: PeerMessage) { enqueue(end, .message(message)) }

    /// A handshake has come.
    mutating func liarGreeted(_ end: Int) {
        let peer = table.ends[end].peer
        if table.ends[end].phase == .called {
            checks.opened(end, peer, table.ends[end ^ 1].peer, at: now)
            enqueue(end, .handshake)
        }
        table.ends[end].phase = .open
        let hasFast = table.capabilities[end >> 1].contains(.fast)
        switch peers[peer].traits.liar {
        case .babbler: babble(end)
        case .flooder: if hasFast { say(end, .haveNone) }
        case .forger, .gossip:
            if hasFast { say(end, .haveNone) }
            guard table.capabilities[end >> 1].contains(.extensions) else { break }
            var handshake = ExtensionHandshake()
            if peers[peer].traits.liar == .forger {
                handshake.metadataID = LiarKind.metadataID
                let isMistaken = peers[peer].random.oneIn(4)
                handshake.metadataByteCount = isMistaken ? 1 + peers[peer].random.below(60_000) : metadata.count
            } else {
                handshake.peerExchangeID = LiarKind.exchangeID
            }
            say(end, .extended(id: 0, payload: handshake.encoded()))
        case .poisoner, .slyPoisoner, .mute, .choker, .rejecter, .snail, nil:
            if hasFast {
                say(end, .haveAll)
            } else {
                say(end, .bitfield(Bitfield(count: layout.pieceCount, isFull: true).wire))
            }
            if peers[peer].traits.liar == .rejecter, options.hasMisers, hasFast {
                // It chokes, and refuses what it has allowed.
                for piece in 0..<min(5, layout.pieceCount) { say(end, .allowedFast(piece: UInt32(piece))) }
            } else if peers[peer].traits.liar != .choker {
                say(end, .unchoke)
            }
        }
        serve(peer)
    }

    mutating func liarHears(_ end: Int, _ message: PeerMessage) {
        let peer = table.ends[end].peer
        guard table.ends[end].phase == .open else { return }
        if case .extended(LiarKind.metadataID, let payload) = message, peers[peer].traits.liar == .forger {
            return forge(end, payload)
        }
        guard case .request(let block) = message else { return }
        // Bounded: whoever asks without end is not answered.
        guard table.ends[end].out.count < 200 else { return }
        switch peers[peer].traits.liar {
        case .poisoner: enqueue(end, .block(block, salt: salt(peer)))
        case .slyPoisoner: enqueue(end, .block(block, salt: peers[peer].random.oneIn(8) ? salt(peer) : 0))
        case .snail: enqueue(end, .block(block, salt: 0))
        case .rejecter: if table.capabilities[end >> 1].contains(.fast) { say(end, .reject(block)) }
        case .babbler: if peers[peer].random.oneIn(2) { babble(end) }
        case .mute, .choker, .flooder, .forger, .gossip, nil: break
        }
        tally.lies += 1
        serve(peer)
    }

    /// Answers for a part of the metadata with other bytes, or not at all.
    private mutating func forge(_ end: Int, _ payload: [UInt8]) {
        let (peer, other) = (table.ends[end].peer, table.ends[end ^ 1].peer)
        guard case .request(let part)? = try? MetadataMessage(decoding: payload) else { return }
        tally.lies += 1
        let start = part * 16_384
        switch peers[peer].random.below(8) {
        case 0: say(end, .extended(id: LiarKind.theirMetadataID, payload: MetadataMessage.reject(part: part).encoded()))
        case 1: return
        default:
            checks.poisoned(other, by: peer)
            let count = max(0, min(16_384, metadata.count - start))
            let bytes = Array(repeating: UInt8(7), count: peers[peer].random.oneIn(6) ? count / 2 : count)
            let data = MetadataMessage.data(part: part, totalByteCount: metadata.count, bytes: bytes)
            say(end, .extended(id: LiarKind.theirMetadataID, payload: data.encoded()))
        }
        serve(peer)
    }

    /// Tells of peers at addresses where nobody is.
    private mutating func tellTales(_ end: Int) {
        let peer = table.ends[end].peer
        guard table.capabilities[end >> 1].contains(.extensions), table.ends[end].out.count < 200 else { return }
        var added: [SocketAddress] = []
        for _ in 0..<1 + peers[peer].random.below(90) {
            lastStale += 1
            let port: UInt16 = options.hasTalesOfNoPort && lastStale.isMultiple(of: 3) ? 0 : 6_881
            added.append(SocketAddress(ipv4: 0x0C00_0001 + UInt32(truncatingIfNeeded: lastStale), port: port))
        }
        tally.lies += 1
        let message = PeerExchange(added: added, dropped: [])
        say(end, .extended(id: LiarKind.theirExchangeID, payload: message.encoded()))
    }

    private mutating func salt(_ peer: Int) -> UInt32 { UInt32(1 + peer + peers[peer].random.below(1000) * 256) }

    /// By the clock.
    mutating func liarActs(_ peer: Int) {
        queue.put(
            .liarActs(peer, life: peers[peer].life),
            at: now + peers[peer].random.between(.milliseconds(200), .seconds(4)))
        guard !isHealed else { return }
        // Those who were sent away come again.
        if peers[peer].random.oneIn(8), !simpleTrackers.isEmpty { liarAnnounces(peer) }
        let open = table.ends.indices.filter { table.ends[$0].peer == peer && table.ends[$0].phase == .open }
        guard !open.isEmpty else { return }
        let end = open[peers[peer].random.below(open.count)]
        switch peers[peer].traits.liar {
        case .babbler: for _ in 0..<4 where table.ends[end].phase == .open { babble(end) }
        case .flooder: flood(end)
        case .gossip: tellTales(end)
        case .forger, .poisoner, .slyPoisoner, .mute, .choker, .rejecter, .snail, nil:
            if peers[peer].random.oneIn(3) { say(end, peers[peer].random.oneIn(2) ? .interested : .keepAlive) }
        }
        serve(peer)
    }

    /// More requests than anybody keeps, and blocks that nobody asked for.
    private mutating func flood(_ end: Int) {
        let peer = table.ends[end].peer
        guard table.ends[end].out.count < 2_000 else { return }
        say(end, .interested)
        for _ in 0..<200 {
            let block = layout.block(0, ofPiece: peers[peer].random.below(layout.pieceCount))
            if peers[peer].random.oneIn(10) { enqueue(end, .block(block, salt: 1)) } else { say(end, .request(block)) }
        }
        tally.lies += 200
    }

    /// Something that may make sense, or not.
    private mutating func babble(_ end: Int) {
        let peer = table.ends[end].peer
        func number(_ bound: Int) -> UInt32 {
            peers[peer].random.oneIn(12) ? .max : UInt32(peers[peer].random.below(bound + 1))
        }
        let piece = number(layout.pieceCount)
        let block = Block(
            piece: piece, offset: UInt32(peers[peer].random.below(4)) * 16_384,
            length: peers[peer].random.oneIn(8) ? .max : 16_384)
        tally.lies += 1
        switch peers[peer].random.below(18) {
        case 0: say(end, .choke)
        case 1: say(end, .unchoke)
        case 2: say(end, .interested)
        case 3: say(end, .notInterested)
        case 4: say(end, .have(piece: piece))
        case 5:
            let count = peers[peer].random.oneIn(3) ? peers[peer].random.below(40) : (layout.pieceCount + 7) / 8
            say(end, .bitfield((0..<count).map { _ in UInt8(truncatingIfNeeded: peers[peer].random.next()) }))
        case 6: say(end, .request(block))
        case 7: say(end, .cancel(block))
        case 8: say(end, .port(6881))
        case 9: say(end, .suggest(piece: piece))
        case 10: say(end, .haveAll)
        case 11: say(end, .haveNone)
        case 12: say(end, .reject(block))
        case 13: say(end, .allowedFast(piece: piece))
        case 14, 15:
            let count = peers[peer].random.below(60)
            say(
                end,
                .extended(
                    id: UInt8(peers[peer].random.below(6)),
                    payload: (0..<count).map { _ in UInt8(truncatingIfNeeded: peers[peer].random.next()) }))
        case 16: if block.length == 16_384 { enqueue(end, .block(block, salt: 1)) }
        default: say(end, .keepAlive)
        }
    }
}

extension LiarKind {
    /// What liars call extensions, and what peers do.
    fileprivate static let metadataID: UInt8 = 7
    fileprivate static let exchangeID: UInt8 = 9
    fileprivate static let theirMetadataID: UInt8 = 1
    fileprivate static let theirExchangeID: UInt8 = 2
}
