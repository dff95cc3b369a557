// What becomes of requests, at those who were asked.

import PeerLogic
import Primitives
import Wire

/// What becomes of requests, at those who were asked: each is answered once, by its block or, with the fast extension,
/// by `reject`; and nothing is answered that was not asked (BEP 6).
///
/// "When a choke is sent … the peer must reject all requests which are pending from the peer it is choking except
/// requests for pieces that are in the allowed fast set" (BEP 6).
struct Answers: Sendable {
    /// What is kept of one who asks (`reqq`).
    private static let maxCount = 1_000

    private var cancelled: (end: Int, block: Block, isWaiting: Bool, isSending: Bool)?

    mutating func hears(_ end: Int, _ block: Block, _ scene: inout TransferScene) {
        // Those who break the protocol may ask twice at once, and are answered once or twice.
        guard scene.ends[end].isAmongHonest else { return }
        let isNew = !scene.ends[end].sending.contains(block) && !scene.ends[end].toAnswer.contains(block)
        if isNew, scene.ends[end].saysChoke, scene.ends[end].allowed.contains(block.piece),
            scene.ends[end].allowanceLeft > 0, scene.peers[scene.ends[end].peer].disk[Int(block.piece)]
        {
            scene.ends[end].allowanceLeft -= 1
            scene.ends[end].granted.append(block)
        }
        // Who has lost patience may ask again for what is on its way.
        if scene.ends[end].sending.contains(block) { return scene.ends[end].doubled.append(block) }
        if !scene.ends[end].toAnswer.contains(block) { scene.ends[end].toAnswer.append(block) }
    }

    /// A block is given, or refused.
    mutating func answers(
        _ end: Int, _ block: Block, _ what: String, isRefusal: Bool, at now: Instant, _ scene: inout TransferScene
    ) {
        guard scene.ends[end].isAmongHonest else { return }
        guard let index = scene.ends[end].toAnswer.firstIndex(of: block) else {
            if let again = scene.ends[end].doubled.firstIndex(of: block) {
                scene.ends[end].doubled.remove(at: again)
                return
            }
            return scene.violate(
                .answersWereAsked, at: now,
                "\(TransferScene.name(scene.ends[end].peer)) \(what) \(scene.otherName(end)) a block "
                    + "of piece \(block.piece) that it was not asked for")
        }
        scene.ends[end].toAnswer.remove(at: index)
        let isGranted = scene.ends[end].granted.firstIndex(of: block)
        if let isGranted { scene.ends[end].granted.remove(at: isGranted) }
        let mayReject = scene.ends[end].mayReject.firstIndex(of: block)
        if let mayReject { scene.ends[end].mayReject.remove(at: mayReject) }
        guard isRefusal, mayReject == nil, scene.peers[scene.ends[end].peer].disk[Int(block.piece)],
            !scene.ends[end].saysChoke || isGranted != nil,
            scene.ends[end].toAnswer.count + scene.ends[end].sending.count < Self.maxCount
        else { return }
        scene.violate(
            .answersWereAsked, at: now,
            "\(TransferScene.name(scene.ends[end].peer)) refuses \(scene.otherName(end)) a block of piece "
                + "\(block.piece), and could give it")
    }

    /// A block is refused in the step in which its receiver is choked, which may still be given it.
    func refusesAllowed(_ end: Int, _ block: Block, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        guard scene.ends[end].isAmongHonest, scene.ends[end].allowed.contains(block.piece),
            scene.peers[peer].disk[Int(block.piece)], !scene.ends[end].mayReject.contains(block)
        else { return }
        scene.violate(
            .answersWereAsked, at: now,
            "\(TransferScene.name(peer)) chokes \(scene.otherName(end)), and refuses it a block of piece "
                + "\(block.piece), which it has allowed it")
    }

    /// The other side wants a block no more: what waits is refused, and what has not left need not.
    mutating func cancels(_ end: Int, _ block: Block, _ scene: inout TransferScene) {
        guard scene.ends[end].isAmongHonest, scene.ends[end].hasFast else { return }
        scene.ends[end].mayReject.append(block)
        cancelled = (end, block, scene.ends[end].toAnswer.contains(block), scene.ends[end].sending.contains(block))
    }

    /// The owner need not send a block.
    mutating func drops(_ end: Int, _ block: Block) {
        if let asked = cancelled, asked.end == end, asked.block == block { cancelled?.isSending = false }
    }

    /// At the end of the step in which a block was cancelled.
    mutating func checkCancelled(at now: Instant, _ scene: inout TransferScene) {
        guard let asked = cancelled else { return }
        cancelled = nil
        guard scene.ends[asked.end].isOpen,
            asked.isWaiting && scene.ends[asked.end].toAnswer.contains(asked.block)
                || !asked.isWaiting && asked.isSending
        else { return }
        scene.violate(
            .answersWereAsked, at: now,
            "\(TransferScene.name(scene.ends[asked.end].peer)) was told that \(scene.otherName(asked.end)) does not "
                + "want a block of piece \(asked.block.piece) any more, and takes no notice")
    }

    /// A block was to be given, and has not left: it waits for its answer again.
    mutating func takesBack(_ end: Int, _ block: Block, _ scene: inout TransferScene) {
        guard scene.ends[end].isAmongHonest else { return }
        scene.ends[end].toAnswer.append(block)
        scene.ends[end].mayReject.append(block)
    }

    mutating func choked(_ end: Int, _ scene: inout TransferScene) {
        if !scene.ends[end].hasFast { scene.ends[end].toAnswer.removeAll(keepingCapacity: true) }
    }

    /// At the end of a step all that is left may still be answered.
    func check(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.ends[end]
        guard record.isOpen, record.isGreeted, record.hasFast, record.saysChoke else { return }
        guard let block = record.toAnswer.first(where: { !record.allowed.contains($0.piece) }) else { return }
        scene.violate(
            .answersWereAsked, at: now,
            "\(TransferScene.name(record.peer)) chokes \(TransferScene.name(record.other)), and neither gives nor "
                + "rejects a block of piece \(block.piece)")
    }
}
