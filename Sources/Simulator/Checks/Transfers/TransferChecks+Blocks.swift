// Blocks, and the pieces that they make: who looks at them.

import PeerLogic
import Primitives
import Wire

extension TransferChecks {
    // MARK: - Blocks

    mutating func gives(_ end: Int, _ block: Block, at now: Instant) {
        rests(scene.ends[end].peer, "gives a block", at: now)
        claims.gives(end, block, at: now, &scene)
        slots.gives(end, block, at: now, &scene)
        bans.says(end, at: now, &scene)
        answers.answers(end, block, "gives", isRefusal: false, at: now, &scene)
        limits.gives(end, block, at: now, &scene)
        patience.gives(end, &scene)
    }

    mutating func sent(_ end: Int, _ block: Block, isSent: Bool) {
        if let index = scene.ends[end].sending.firstIndex(of: block) { scene.ends[end].sending.remove(at: index) }
        if isSent {
            scene.peers[scene.ends[end].peer].sentByteCount += Int(block.length)
            scene.ends[end].up.add(Int(block.length), at: scene.local(end))
        } else {
            limits.takesBack(end, block, &scene)
            if scene.ends[end].hasFast { answers.takesBack(end, block, &scene) }
        }
    }

    mutating func blockBegins(_ end: Int, _ block: Block, isKept: Bool, at now: Instant) {
        if isKept {
            scene.ends[end].heardAt = scene.local(end)
            scene.ends[end].arrivingSince = scene.local(end)
        }
        scene.ends[end].isSkipping = !isKept
        guard let number = scene.number(block) else {
            if isKept {
                scene.violate(.contractIsKept, at: now, "\(TransferScene.name(scene.ends[end].peer)) keeps no block")
            }
            return
        }
        if let old = scene.ends[end].old.firstIndex(of: Int32(number)) { scene.ends[end].old.remove(at: old) }
        if isKept { requests.begins(end, number, at: now, &scene) } else { requests.ends(end, number, &scene) }
    }

    mutating func blockArrived(_ end: Int, _ block: Block, isCorrupt: Bool, at now: Instant) {
        requests.arrived(end, at: now, &scene)
        let peer = scene.ends[end].peer
        scene.peers[peer].receivedByteCount += Int(block.length)
        scene.ends[end].down.add(Int(block.length), at: scene.local(end))
        limits.arrived(end, &scene)
        scene.ends[end].heardAt = scene.local(end)
        scene.ends[end].usefulAt = scene.local(end)
        if isCorrupt { bans.poisoned(peer, by: scene.ends[end].other, &scene) }
    }

    /// A block that was of no use has come.
    mutating func skipped(_ end: Int, _ block: Block) {
        scene.ends[end].heardAt = scene.local(end)
        scene.ends[end].isSkipping = false
        scene.peers[scene.ends[end].peer].wastedByteCount += Int(block.length)
    }

    // MARK: - Pieces

    mutating func fetches(_ peer: Int, _ piece: Int, fromSeed seed: Int, at now: Instant) {
        rests(peer, "fetches piece \(piece)", at: now)
        bans.fetches(peer, fromSeed: seed, at: now, &scene)
        idleness.fetches(peer, piece, seed, at: now, &scene)
        requests.fetches(peer, piece, at: now, &scene)
        limits.asks(peer, scene.layout.pieceLength, at: now, &scene)
    }

    /// A piece is whole, and is hashed.
    mutating func pieceIsWhole(_ peer: Int, _ piece: Int) { scene.peers[peer].whole.insert(piece) }

    mutating func webPieceArrived(_ peer: Int, byteCount: Int) { scene.peers[peer].receivedByteCount += byteCount }

    /// A web server has given a piece, or not.
    mutating func webEnds(_ peer: Int, _ piece: Int, _ seed: Int, _ problem: WebSeedProblem?) {
        idleness.webEnds(peer, piece, seed, problem, scene)
    }

    mutating func webLied(_ peer: Int, _ seed: Int) { idleness.lied(peer, seed) }

    mutating func stores(_ peer: Int, _ piece: Int, at now: Instant) { disks.stores(peer, piece, at: now, &scene) }

    mutating func announcesLocally(_ peer: Int, at now: Instant) { disks.tellsLocally(peer, at: now, &scene) }

    /// `senders` are those that alone may have sent it, as far as they are known; `corrupt`, those of its corrupt
    /// blocks.
    mutating func pieceFailed(_ peer: Int, _ piece: Int, senders: [Int], corrupt: [PieceSender]) {
        scene.peers[peer].wrongByteCount += scene.layout.length(ofPiece: piece)
        scene.peers[peer].wastedByteCount += scene.layout.length(ofPiece: piece)
        requests.restarts(peer, piece, &scene)
        scene.peers[peer].wrong.insert(piece)
        bans.failed(peer, senders: senders, &scene)
        culprits.failed(peer, piece, corrupt: corrupt)
        lone.failed(peer, piece)
    }

    /// A piece is right.
    ///
    /// - Returns: those who have sent corrupt blocks of it before, when it came from several.
    mutating func pieceVerified(_ peer: Int, _ piece: Int) -> [PieceSender] { culprits.verified(peer, piece) }

    /// It is known of somebody who is there now.
    mutating func isFound(_ peer: Int, culprit: Int) { scene.peers[peer].mustBan.append(culprit) }

    /// A buffer is given up whose piece is not on the disk.
    mutating func pieceGivenUp(_ peer: Int, _ piece: Int) {
        scene.peers[peer].freedAt = scene.peers[peer].local
        requests.givesUp(peer, piece, &scene)
        lone.ends(peer, piece)
    }

    /// Whether the step under way is one after which nothing is held that nobody is at work on.
    var endsWork: Bool { scene.cause == .ended || scene.cause == .selection }

    /// A piece is held in such a step, not whole, and nothing of it is coming over a connection.
    mutating func holds(_ peer: Int, _ piece: Int, at now: Instant) {
        guard scene.cause == .ended || !scene.peers[peer].wanted[piece], !idleness.isFetching(peer, piece) else {
            return
        }
        scene.violate(
            .buffersAreBounded, at: now,
            "\(TransferScene.name(peer)) holds piece \(piece) in memory, which nobody is to finish")
    }

    /// The owner need not send a block.
    mutating func drops(_ end: Int, _ block: Block) {
        answers.drops(end, block)
        claims.drops(end, block)
    }

    mutating func pieceStored(_ peer: Int, _ piece: Int, isRight: Bool, at now: Instant) {
        if !isRight {
            scene.violate(
                .onlyVerifiedIsStored, at: now,
                "\(TransferScene.name(peer)) writes piece \(piece), which is not verified or is wrong")
        }
        scene.peers[peer].disk.insert(piece)
        scene.peers[peer].gainedAt[piece] = scene.peers[peer].local
        requests.stored(peer, piece, &scene)
        lone.ends(peer, piece)
        if scene.peers[peer].disk.isFull, scene.peers[peer].isRunning { trackers.completed(peer) }
    }

    mutating func pieceLost(_ peer: Int, _ piece: Int) {
        guard scene.peers[peer].disk.remove(piece) else { return }
        scene.peers[peer].lost.insert(piece)
        scene.peers[peer].freedAt = scene.peers[peer].local
        requests.restarts(peer, piece, &scene)
        claims.lost(peer, piece, scene)
        // When it is here again, it is allowed to nobody who is choked.
        for end in scene.ends(of: peer) { scene.ends[end].allowed.removeAll { $0 == UInt32(piece) } }
        shown.changed(peer, scene)
    }

    /// Whether a piece has been wrong at a peer.
    func wasWrong(_ peer: Int, _ piece: Int) -> Bool { scene.peers[peer].wrong[piece] }

    /// What the contract does not allow.
    mutating func breaks(_ peer: Int, _ what: String, at now: Instant) {
        scene.violate(.contractIsKept, at: now, "\(TransferScene.name(peer)) \(what)")
    }

    /// What a peer keeps for speed is not what it stands for.
    mutating func audited(_ peer: Int, _ fault: String, at now: Instant) {
        scene.violate(.bookkeepingAgrees, at: now, "\(TransferScene.name(peer)): \(fault)")
    }
}
