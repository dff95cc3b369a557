// Who is given blocks.

import PeerLogic
import Primitives
import Wire

/// Who is given blocks: no more peers at once than there are slots, each of those who want them in its turn, and nobody
/// who is choked but for what it was allowed.
struct UploadSlots: Sendable {
    /// A peer that wants blocks waits so long for each that wants them, too.
    private static let turn = Duration.seconds(40)
    /// And so long in any case.
    private static let slack = Duration.seconds(60)

    mutating func says(_ end: Int, isChoke: Bool, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        if isChoke { scene.ends[end].choked = now } else { checkWait(end, at: now, &scene) }
        guard scene.ends[end].saysChoke != isChoke else { return }
        scene.ends[end].saysChoke = isChoke
        if scene.ends[end].isAskedFor { scene.peers[peer].unchokedCount += isChoke ? -1 : 1 }
    }

    mutating func hears(_ end: Int, isInterested: Bool, at now: Instant, _ scene: inout TransferScene) {
        guard scene.ends[end].isAskedFor != isInterested else { return }
        let peer = scene.ends[end].peer
        scene.ends[end].isAskedFor = isInterested
        if isInterested { scene.ends[end].interestedAt = now }
        scene.peers[peer].interestedCount += isInterested ? 1 : -1
        scene.peers[peer].mostInterested = max(scene.peers[peer].mostInterested, scene.peers[peer].interestedCount)
        if !scene.ends[end].saysChoke { scene.peers[peer].unchokedCount += isInterested ? 1 : -1 }
    }

    mutating func closed(_ end: Int, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        guard scene.ends[end].isAskedFor else { return }
        scene.peers[peer].interestedCount -= 1
        if !scene.ends[end].saysChoke { scene.peers[peer].unchokedCount -= 1 }
    }

    /// A block is given.
    func gives(_ end: Int, _ block: Block, at now: Instant, _ scene: inout TransferScene) {
        guard scene.ends[end].saysChoke, !scene.ends[end].allowed.contains(block.piece) else { return }
        scene.violate(
            .uploadSlotsAreKept, at: now,
            "\(TransferScene.name(scene.ends[end].peer)) gives \(TransferScene.name(scene.ends[end].other)) a block, "
                + "and chokes it")
    }

    func check(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        let slots = scene.peers[peer].settings.uploadSlots
        guard scene.peers[peer].unchokedCount > slots else { return }
        scene.violate(
            .uploadSlotsAreKept, at: now,
            "\(TransferScene.name(peer)) gives to \(scene.peers[peer].unchokedCount) peers, and has \(slots) slots")
    }

    /// How long somebody has waited.
    private func checkWait(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.ends[end]
        guard record.isOpen, record.isGreeted, record.isAskedFor, record.saysChoke,
            scene.peers[record.peer].settings.uploadSlots > 0
        else { return }
        let waited = now - max(record.interestedAt, record.choked)
        guard waited > Self.slack + Self.turn * scene.peers[record.peer].mostInterested else { return }
        scene.violate(
            .chokingIsFair, at: now,
            "\(TransferScene.name(record.other)) has waited at \(TransferScene.name(record.peer)) for "
                + "\(waited.wholeSeconds) s, with \(scene.peers[record.peer].mostInterested) at most")
    }

    /// Whoever waits is looked at.
    func look(_ end: Int, at now: Instant, _ scene: inout TransferScene) { checkWait(end, at: now, &scene) }
}
