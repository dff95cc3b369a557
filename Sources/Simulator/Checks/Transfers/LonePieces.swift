// Of whom pieces are had that were wrong.

import PeerLogic
import Primitives
import Wire

/// Of whom a piece is had that was wrong: of one peer alone, so that the culprit is known if it is wrong again; and of
/// another when that one gives nothing more.
struct LonePieces: Sendable {
    /// A piece that was wrong and is to be had anew.
    private struct Lone: Sendable {
        let piece: Int
        /// The end at which it was asked for last; -1 for nobody, or one that has closed.
        var giver = -1
    }

    /// By peer.
    private var lone: [[Lone]]

    init(peerCount: Int) { lone = Array(repeating: [], count: peerCount) }

    mutating func began(_ peer: Int) { lone[peer].removeAll() }

    /// A piece is wrong.
    mutating func failed(_ peer: Int, _ piece: Int) {
        ends(peer, piece)
        lone[peer].append(Lone(piece: piece))
    }

    /// A piece is on the disk, or was given up.
    mutating func ends(_ peer: Int, _ piece: Int) {
        if !lone[peer].isEmpty { lone[peer].removeAll { $0.piece == piece } }
    }

    mutating func closed(_ end: Int, _ scene: TransferScene) {
        let peer = scene.ends[end].peer
        for place in lone[peer].indices where lone[peer][place].giver == end { lone[peer][place].giver = -1 }
    }

    /// A block is asked for, before the request counts.
    mutating func asks(_ end: Int, _ block: Block, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        guard !lone[peer].isEmpty, let number = scene.number(block),
            let place = lone[peer].firstIndex(where: { $0.piece == Int(block.piece) })
        else { return }
        let other = lone[peer][place].giver
        lone[peer][place].giver = end
        guard other >= 0, other != end, !isUncertain(other, scene),
            scene.ends[other].asked.contains(where: { Int($0.block) == number })
        else { return }
        scene.violate(
            .blocksAreAskedOnce, at: now,
            "\(TransferScene.name(peer)) asks \(scene.otherName(end)) for \(scene.name(number)), and has asked "
                + "\(scene.otherName(other)), which alone is to give that piece, for it was wrong")
    }

    private func isUncertain(_ end: Int, _ scene: TransferScene) -> Bool {
        let record = scene.ends[end]
        return record.mayBeGivenUp || record.isAskedUncertain || record.isHasUncertain
            // Its patience may be over.
            || scene.local(end) - max(record.usefulAt, record.greetedAt) > .seconds(29)
    }

    /// A piece that nobody is at work on, and that an end might be asked for; the caller knows that nothing else keeps
    /// it from being asked.
    func askable(_ end: Int, _ scene: TransferScene) -> Int? {
        let peer = scene.ends[end].peer
        guard !lone[peer].isEmpty else { return nil }
        return lone[peer].first { isAskable($0, end, scene) }?.piece
    }

    private func isAskable(_ lone: Lone, _ end: Int, _ scene: TransferScene) -> Bool {
        let (peer, piece) = (scene.ends[end].peer, lone.piece)
        guard scene.ends[end].has[piece], scene.isMissing(peer, piece), !scene.peers[peer].whole[piece],
            !scene.ends[end].isChoked || scene.ends[end].allowedToUs.contains(UInt32(piece)),
            isFree(peer, piece, scene)
        else { return false }
        guard lone.giver >= 0, lone.giver != end else { return true }
        let giver = scene.ends[lone.giver]
        let givesNoMore = giver.isChoked && !giver.allowedToUs.contains(UInt32(piece)) || !giver.has[piece]
        return givesNoMore && giver.asked.isEmpty && giver.arriving < 0 && giver.hasFast
            && !isUncertain(lone.giver, scene)
    }

    /// Whether nobody is asked for any of a piece, and none of it is coming.
    private func isFree(_ peer: Int, _ piece: Int, _ scene: TransferScene) -> Bool {
        let first = piece * scene.blocksPerPiece
        let numbers = first..<first + scene.layout.blockCount(ofPiece: piece)
        return numbers.allSatisfy { scene.peers[peer].blocks[$0] & ~PeerRecord.here == 0 }
            && !scene.ends(of: peer).contains { numbers.contains(scene.ends[$0].arriving) }
    }
}
