// Of whom each block is asked.

import PeerLogic
import Primitives
import Wire

/// Of whom each block is asked: of one peer at a time, but in the endgame, and never when it is here.
///
/// What has been asked stays so until it comes, or is refused; until the peer chokes without the fast extension, or is
/// silent for as long as the session's patience; until the connection ends, or the block came from another and is
/// cancelled. The session does not say when its patience is over: that is found out when it asks somebody else.
struct BlockRequests: Sendable {
    /// Peers that a block may be asked of at once in the endgame.
    private static let maxEndgameCount: UInt8 = 2
    /// After so long without a block, what was asked may be asked of others; the session's own bound, less what clocks
    /// may differ by.
    private static let patience = Duration.seconds(29)

    mutating func asks(_ end: Int, _ block: Block, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        guard let number = scene.number(block) else {
            return scene.violate(
                .blocksAreAskedOnce, at: now,
                "\(TransferScene.name(peer)) asks for \(block.length) bytes at \(block.offset) of piece \(block.piece)")
        }
        // A piece that was wrong is had of one peer alone; when that one goes, all of it is had of the next.
        if scene.peers[peer].wrong[Int(block.piece)], scene.peers[peer].blocks[number] & PeerRecord.here != 0,
            !scene.peers[peer].whole[Int(block.piece)]
        {
            scene.again.wrong += 1
            restarts(peer, Int(block.piece), &scene)
        }
        let state = scene.peers[peer].blocks[number]
        if state & PeerRecord.here != 0 {
            scene.violate(
                .keptIsNotAskedAgain, at: now,
                "\(TransferScene.name(peer)) has \(scene.name(number)), and asks \(scene.otherName(end))"
            )
        }
        if state & PeerRecord.countMask > 0 { asksASecondTime(end, number, at: now, &scene) }
        if scene.ends[end].asked.isEmpty, !scene.ends[end].mayBeGivenUp { scene.ends[end].quietSince = now }
        scene.ends[end].asked.append(EndRecord.Asked(block: Int32(number), at: now))
        change(peer, number, scene.peers[peer].blocks[number] + 1, &scene)
    }

    /// Whether any block that is wanted is neither here nor asked for.
    private func isAnyFree(_ peer: Int, _ scene: TransferScene) -> Bool {
        let record = scene.peers[peer]
        if record.wanted.isFull { return record.freeCount > 0 }
        return record.blocks.indices.contains { record.blocks[$0] == 0 && record.wanted[$0 / scene.blocksPerPiece] }
    }

    /// The first blocks that are free, in words.
    private func free(_ peer: Int, _ scene: TransferScene) -> String {
        let free = scene.peers[peer].blocks.indices.filter { scene.peers[peer].blocks[$0] == 0 }
        return free.isEmpty ? "none" : free.prefix(3).map { scene.name($0) }.joined(separator: ", ")
    }

    /// Somebody was asked already: his time has to be over, or it is the endgame.
    private func asksASecondTime(_ end: Int, _ number: Int, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        let asked = askedNow(peer, number, at: now, &scene)
        let count = scene.peers[peer].blocks[number] & PeerRecord.countMask
        guard count > 0 else { return }
        scene.again.endgame += 1
        if asked.contains(end) {
            scene.violate(
                .blocksAreAskedOnce, at: now,
                "\(TransferScene.name(peer)) asks \(scene.otherName(end)) twice for \(scene.name(number))"
            )
        } else if isAnyFree(peer, scene) || count >= Self.maxEndgameCount {
            let names = asked.map { TransferScene.name(scene.ends[$0].other) }.joined(separator: " and ")
            scene.violate(
                .blocksAreAskedOnce, at: now,
                "\(TransferScene.name(peer)) asks \(scene.otherName(end)) for \(scene.name(number)), "
                    + "which \(names) was asked for; \(free(peer, scene)) are free")
        }
    }

    /// The ends at which a block is asked for, without those that have been silent for too long.
    private func askedNow(_ peer: Int, _ number: Int, at now: Instant, _ scene: inout TransferScene) -> [Int] {
        var asked: [Int] = []
        for other in scene.ends(of: peer) where scene.ends[other].asked.contains(where: { $0.block == number }) {
            if now - scene.ends[other].quietSince >= Self.patience {
                scene.again.timedOut += 1
                dropAll(of: other, isCertain: false, &scene)
            } else {
                asked.append(other)
            }
        }
        return asked
    }

    // MARK: - What becomes of requests

    /// - Returns: whether it was asked there.
    @discardableResult
    mutating func ends(_ end: Int, _ number: Int, _ scene: inout TransferScene) -> Bool {
        guard let index = scene.ends[end].asked.firstIndex(where: { $0.block == number }) else { return false }
        scene.ends[end].asked.remove(at: index)
        freed(scene.ends[end].peer, number, &scene)
        return true
    }

    /// A block is not wanted of this peer any more, which may answer all the same.
    mutating func cancels(_ end: Int, _ number: Int, _ scene: inout TransferScene) {
        if ends(end, number, &scene), scene.ends[end].hasFast { scene.ends[end].old.append(Int32(number)) }
    }

    /// A request is refused: the oldest for this block.
    ///
    /// - Returns: whether it was waited for.
    mutating func rejected(_ end: Int, _ number: Int, _ scene: inout TransferScene) -> Bool {
        if let index = scene.ends[end].old.firstIndex(of: Int32(number)) {
            scene.ends[end].old.remove(at: index)
            return false
        }
        return ends(end, number, &scene)
    }

    /// All that was asked of one is free.
    ///
    /// It is not certain where the session may know or not: of its patience nobody can tell to the second.
    func dropAll(of end: Int, isCertain: Bool = true, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        for asked in scene.ends[end].asked { freed(peer, Int(asked.block), isCertain: isCertain, &scene) }
        if scene.ends[end].hasFast, scene.ends[end].isOpen, !isCertain {
            scene.ends[end].old += scene.ends[end].asked.map { $0.block }
        }
        scene.ends[end].asked.removeAll(keepingCapacity: true)
        if !isCertain {
            scene.ends[end].mayBeGivenUp = true
            scene.ends[end].isAskedUncertain = true
        }
    }

    /// A sign of life comes, perhaps too late.
    func heard(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        if !scene.ends[end].asked.isEmpty, now - scene.ends[end].quietSince >= Self.patience {
            scene.again.timedOut += 1
            dropAll(of: end, isCertain: false, &scene)
        }
        scene.ends[end].quietSince = now
        scene.ends[end].mayBeGivenUp = false
    }

    private func freed(_ peer: Int, _ number: Int, isCertain: Bool = true, _ scene: inout TransferScene) {
        let state = scene.peers[peer].blocks[number] - 1
        change(peer, number, isCertain ? state : state | PeerRecord.perhaps, &scene)
    }

    private func change(_ peer: Int, _ number: Int, _ state: UInt8, _ scene: inout TransferScene) {
        let wasFree = scene.peers[peer].blocks[number] == 0
        scene.peers[peer].blocks[number] = state
        guard wasFree != (state == 0) else { return }
        scene.peers[peer].freeCount += wasFree ? -1 : 1
        if scene.peers[peer].freeCount == 0 { scene.peers[peer].isAllAskedSince = scene.peers[peer].local }
        scene.peers[peer].busy[number / scene.blocksPerPiece] += wasFree ? 1 : -1
    }

    /// A block's head has come, and its bytes are kept.
    mutating func begins(_ end: Int, _ number: Int, at now: Instant, _ scene: inout TransferScene) {
        ends(end, number, &scene)
        let peer = scene.ends[end].peer
        let piece = number / scene.blocksPerPiece
        if scene.peers[peer].wrong[piece], scene.peers[peer].blocks[number] & PeerRecord.here != 0,
            !scene.peers[peer].whole[piece]
        {
            restarts(peer, piece, &scene)
        }
        let state = scene.peers[peer].blocks[number]
        if state & PeerRecord.here != 0 {
            scene.violate(
                .contractIsKept, at: now, "\(TransferScene.name(peer)) keeps \(scene.name(number)) twice")
        }
        change(peer, number, (state | PeerRecord.here) & ~PeerRecord.perhaps, &scene)
        scene.ends[end].arriving = number
    }

    mutating func arrived(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        scene.ends[end].arriving = -1
        heard(end, at: now, &scene)
    }

    /// The connection has ended.
    mutating func closed(_ end: Int, _ scene: inout TransferScene) {
        if !scene.ends[end].asked.isEmpty {
            scene.again.lost += 1
            dropAll(of: end, &scene)
        }
        if scene.ends[end].arriving >= 0 {
            gone(scene.ends[end].peer, scene.ends[end].arriving, &scene)
            scene.ends[end].arriving = -1
        }
    }

    /// A block is here no longer.
    private func gone(_ peer: Int, _ number: Int, _ scene: inout TransferScene) {
        guard scene.peers[peer].blocks[number] & PeerRecord.here != 0 else { return }
        change(peer, number, scene.peers[peer].blocks[number] & ~PeerRecord.here, &scene)
    }

    /// A begun piece is given up: nobody is asked for any of it any more.
    mutating func givesUp(_ peer: Int, _ piece: Int, _ scene: inout TransferScene) {
        let numbers =
            piece * scene.blocksPerPiece..<piece * scene.blocksPerPiece + scene.layout.blockCount(ofPiece: piece)
        for number in numbers where scene.peers[peer].blocks[number] & PeerRecord.countMask > 0 {
            for end in scene.ends(of: peer) { cancels(end, number, &scene) }
        }
        restarts(peer, piece, &scene)
    }

    /// All blocks of a piece are to be had again: it was wrong, given up, or is gone from the disk.
    mutating func restarts(_ peer: Int, _ piece: Int, _ scene: inout TransferScene) {
        scene.peers[peer].whole.remove(piece)
        for index in 0..<scene.layout.blockCount(ofPiece: piece) {
            let number = piece * scene.blocksPerPiece + index
            gone(peer, number, &scene)
            // Whatever the session did not know, it has begun anew.
            change(peer, number, scene.peers[peer].blocks[number] & ~PeerRecord.perhaps, &scene)
        }
    }

    /// A piece is on the disk.
    mutating func stored(_ peer: Int, _ piece: Int, _ scene: inout TransferScene) {
        for number in piece * scene.blocksPerPiece..<piece * scene.blocksPerPiece
            + scene.layout.blockCount(ofPiece: piece)
        {
            change(peer, number, (scene.peers[peer].blocks[number] | PeerRecord.here) & ~PeerRecord.perhaps, &scene)
        }
    }

    /// A web seed is asked for a whole piece.
    mutating func fetches(_ peer: Int, _ piece: Int, at now: Instant, _ scene: inout TransferScene) {
        for index in 0..<scene.layout.blockCount(ofPiece: piece) {
            let number = piece * scene.blocksPerPiece + index
            _ = askedNow(peer, number, at: now, &scene)
            if scene.peers[peer].blocks[number] & ~PeerRecord.perhaps != 0 {
                scene.violate(
                    .blocksAreAskedOnce, at: now,
                    "\(TransferScene.name(peer)) fetches piece \(piece) from the web, and has asked for some of it")
            }
            change(peer, number, PeerRecord.here, &scene)
        }
    }

    /// A life begins, with what is on the disk.
    mutating func began(_ peer: Int, _ scene: inout TransferScene) {
        var blocks: [UInt8] = []
        blocks.reserveCapacity(scene.blockCount)
        for number in 0..<scene.blockCount {
            blocks.append(scene.peers[peer].disk[number / scene.blocksPerPiece] ? PeerRecord.here : 0)
        }
        scene.peers[peer].freeCount = blocks.count { $0 == 0 }
        scene.peers[peer].blocks = blocks
        scene.peers[peer].busy = (0..<scene.layout.pieceCount).map { piece in
            scene.peers[peer].disk[piece] ? scene.layout.blockCount(ofPiece: piece) : 0
        }
        scene.peers[peer].wrong = Bitfield(count: scene.layout.pieceCount)
        scene.peers[peer].whole = scene.peers[peer].disk
    }
}
