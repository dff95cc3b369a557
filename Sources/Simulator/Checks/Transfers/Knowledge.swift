// What either side of a connection knows that the other has.

import PeerLogic
import Primitives
import Wire

/// What either side of a connection knows that the other has, and what follows from it: who lacks a piece is soon told
/// of it, and once; begun pieces are asked for before others, and of the others the rarest; who chokes is asked for
/// nothing but what it has allowed; and what is not wanted is not asked for.
///
/// "Rarest first … random first piece … strict priority" (Cohen 2003, section 2.4): the first four pieces come in any
/// order.
struct Knowledge: Sendable {
    private static let randomFirstCount = 4
    /// Within which a new piece is told of.
    private static let haveDelay = Duration.milliseconds(1_200)
    /// After which it is told of, when it is.
    private static let longestDelay = Duration.milliseconds(60)
    private static let maxAllowedCount = 64

    // MARK: - What the other side has

    private func gains(_ end: Int, _ piece: Int, _ scene: inout TransferScene) {
        guard piece < scene.layout.pieceCount, scene.ends[end].has.insert(piece) else { return }
        scene.peers[scene.ends[end].peer].availability[piece] += 1
    }

    func loses(_ end: Int, _ piece: Int, _ scene: inout TransferScene) {
        guard piece < scene.layout.pieceCount, scene.ends[end].has.remove(piece) else { return }
        scene.peers[scene.ends[end].peer].availability[piece] -= 1
    }

    private func replace(_ end: Int, _ has: Bitfield, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        scene.ends[end].has.forEach { scene.peers[peer].availability[$0] -= 1 }
        scene.ends[end].has = has
        has.forEach { scene.peers[peer].availability[$0] += 1 }
    }

    /// Both handshakes are through.
    func opened(_ end: Int, _ scene: inout TransferScene) {
        scene.ends[end].has = Bitfield(count: scene.layout.pieceCount)
        scene.ends[end].told = scene.ends[end].has
        scene.ends[end].isHasUncertain =
            !scene.ends[end].isAmongHonest && !scene.peers[scene.ends[end].peer].hasMetadata
    }

    func closed(_ end: Int, _ scene: inout TransferScene) {
        replace(end, Bitfield(count: scene.ends[end].has.count), &scene)
    }

    func hears(_ end: Int, _ message: PeerMessage, _ scene: inout TransferScene) {
        let count = scene.layout.pieceCount
        switch message {
        case .have(let piece): gains(end, Int(piece), &scene)
        case .bitfield(let bytes):
            if let has = PlainLayout.pieces(ofWire: bytes, count: count) { replace(end, has, &scene) }
        case .haveAll: if scene.ends[end].hasFast { replace(end, Bitfield(count: count, isFull: true), &scene) }
        case .haveNone: if scene.ends[end].hasFast { replace(end, Bitfield(count: count), &scene) }
        case .allowedFast(let piece):
            if scene.ends[end].hasFast, scene.ends[end].allowedToUs.count < Self.maxAllowedCount,
                !scene.ends[end].allowedToUs.contains(piece)
            {
                scene.ends[end].allowedToUs.append(piece)
            }
        case .extended(let id, let payload):
            if id != 0, id == scene.ends[end].ownExtensions.dontHave, let said = try? DontHave(decoding: payload) {
                loses(end, Int(said.piece), &scene)
                scene.ends[end].hasLost = true
                // It may not have been told while it had it itself.
                if said.piece < count { scene.ends[end].told.remove(Int(said.piece)) }
            }
        default: break
        }
    }

    /// A request is refused.
    func refused(_ end: Int, _ block: Block, isCertain: Bool, _ scene: inout TransferScene) {
        if !isCertain { scene.ends[end].isHasUncertain = true }
        if scene.ends[end].isChoked {
            scene.ends[end].allowedToUs.removeAll { $0 == block.piece }
        } else {
            loses(end, Int(block.piece), &scene)
        }
    }

    // MARK: - What this side has

    func says(_ end: Int, _ message: PeerMessage, at now: Instant, _ scene: inout TransferScene) {
        let count = scene.layout.pieceCount
        switch message {
        case .have(let piece):
            guard piece < count else { return }
            let peer = scene.ends[end].peer
            checkDelay(end, Int(piece), at: now, &scene)
            if !scene.ends[end].told.insert(Int(piece)), !scene.peers[peer].lost[Int(piece)] {
                scene.violate(
                    .claimsAreTrue, at: now,
                    "\(TransferScene.name(peer)) tells \(scene.otherName(end)) of piece \(piece) twice")
            }
        case .bitfield(let bytes):
            if let told = PlainLayout.pieces(ofWire: bytes, count: count) { scene.ends[end].told = told }
        case .haveAll: scene.ends[end].told = Bitfield(count: count, isFull: true)
        case .extended(let id, let payload):
            if id != 0, id == scene.ends[end].theirExtensions.dontHave, let said = try? DontHave(decoding: payload),
                said.piece < count
            {
                scene.ends[end].told.remove(Int(said.piece))
            }
        default: break
        }
    }

    /// Whoever lacks a piece is told within a twentieth of a second: those that others wait for, at once.
    private func checkDelay(_ end: Int, _ piece: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.ends[end]
        // While the other side had the piece itself it was not told.
        guard !record.hasLost, record.isAmongHonest, let gained = scene.peers[record.peer].gainedAt[piece],
            gained > record.greetedAt
        else { return }
        let delay = scene.local(end) - gained
        guard delay > Self.longestDelay else { return }
        scene.violate(
            .claimsAreTrue, at: now,
            "\(TransferScene.name(record.peer)) tells \(scene.otherName(end)) of piece \(piece) after "
                + "\(delay.wholeMilliseconds) ms")
    }

    /// Everybody who lacks a piece has been told of it.
    func look(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.ends[end]
        let local = scene.local(end)
        guard record.isOpen, record.isGreeted, local - record.greetedAt > Self.haveDelay,
            scene.peers[record.peer].hasMetadata, record.isAmongHonest
        else { return }
        let peer = scene.peers[record.peer]
        for piece in 0..<scene.layout.pieceCount where peer.disk[piece] && !record.told[piece] && !record.has[piece] {
            if let gained = peer.gainedAt[piece], local - gained < Self.haveDelay { continue }
            return scene.violate(
                .claimsAreTrue, at: now,
                "\(TransferScene.name(record.peer)) has piece \(piece), and does not tell \(scene.otherName(end))")
        }
    }

    // MARK: - What is asked for

    /// Before a request counts.
    func asks(_ end: Int, _ block: Block, at now: Instant, _ scene: inout TransferScene) {
        guard scene.number(block) != nil else { return }
        let (peer, piece) = (scene.ends[end].peer, Int(block.piece))
        if scene.ends[end].isChoked, !scene.ends[end].allowedToUs.contains(block.piece) {
            scene.violate(
                .messagesAreInOrder, at: now,
                "\(TransferScene.name(peer)) asks \(scene.otherName(end)) for piece \(piece), and is choked")
        }
        if !scene.ends[end].has[piece], !scene.ends[end].isHasUncertain {
            scene.violate(
                .messagesAreInOrder, at: now,
                "\(TransferScene.name(peer)) asks \(scene.otherName(end)) for piece \(piece), which it lacks")
        }
        guard !scene.isBegun(peer, piece) else { return }
        if !scene.peers[peer].wanted[piece] {
            scene.violate(
                .rarestFirst, at: now, "\(TransferScene.name(peer)) begins piece \(piece), which is not wanted")
        }
        if !scene.ends[end].isChoked { begins(end, piece, at: now, &scene) }
    }

    /// A piece is begun: nothing is half done that could be had there, and no piece there is rarer.
    private func begins(_ end: Int, _ piece: Int, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        var begunCount = 0
        var (isRarer, isOpen) = (-1, -1)
        let count = scene.peers[peer].availability[piece]
        for other in 0..<scene.layout.pieceCount {
            // One that was wrong may have been given up since.
            if !scene.peers[peer].disk[other], scene.peers[peer].busy[other] > 0 { begunCount += 1 }
            guard other != piece, scene.ends[end].has[other], scene.isMissing(peer, other),
                !scene.peers[peer].wrong[other]
            else { continue }
            if scene.peers[peer].busy[other] == 0 {
                if scene.peers[peer].availability[other] < count { isRarer = other }
            } else if scene.peers[peer].busy[other] < scene.layout.blockCount(ofPiece: other) {
                isOpen = other
            }
        }
        if isOpen >= 0 {
            scene.violate(
                .rarestFirst, at: now,
                "\(TransferScene.name(peer)) begins piece \(piece), and could ask \(scene.otherName(end)) for the rest "
                    + "of piece \(isOpen)")
        }
        guard isRarer >= 0, scene.peers[peer].disk.setCount + begunCount >= Self.randomFirstCount,
            !scene.ends(of: peer).contains(where: { scene.ends[$0].isHasUncertain })
        else { return }
        scene.violate(
            .rarestFirst, at: now,
            "\(TransferScene.name(peer)) asks \(scene.otherName(end)) for piece \(piece), which is at \(count), before "
                + "piece \(isRarer), which is at \(scene.peers[peer].availability[isRarer])")
    }
}
