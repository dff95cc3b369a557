// What peers say that they have.

import PeerLogic
import Primitives
import Wire

/// What peers say that they have: what is on their disks, and nothing else.
///
/// Only that is given, too.
struct Claims: Sendable {
    /// Pieces that somebody is given though it is choked (BEP 6 has 10, and lets each choose).
    private static let maxAllowedCount = 5

    /// Blocks of a piece that is gone as of the step under way, which the owner has and is to keep.
    private var gone: [(end: Int, block: Block)] = []

    func says(_ end: Int, _ message: PeerMessage, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        switch message {
        case .have(let piece):
            if piece >= scene.layout.pieceCount || !scene.peers[peer].disk[Int(piece)] {
                lie(peer, "piece \(piece), which is not on its disk", at: now, &scene)
            }
        case .haveAll:
            if !scene.peers[peer].disk.isFull { lie(peer, "all pieces, and lacks some", at: now, &scene) }
        case .bitfield(let bytes):
            guard let said = PlainLayout.pieces(ofWire: bytes, count: scene.layout.pieceCount) else {
                return lie(peer, "pieces in a bitfield of \(bytes.count) bytes", at: now, &scene)
            }
            let disk = scene.peers[peer].disk
            var isTrue = true
            said.forEach { if !disk[$0] { isTrue = false } }
            if !isTrue { lie(peer, "pieces in its bitfield that are not on its disk", at: now, &scene) }
        case .allowedFast(let piece):
            let isRight =
                piece < scene.layout.pieceCount && scene.peers[peer].disk[Int(piece)]
                && !scene.ends[end].allowed.contains(piece) && scene.ends[end].allowed.count < Self.maxAllowedCount
            guard isRight else {
                return lie(peer, "piece \(piece) to give to whom it chokes, and may not", at: now, &scene)
            }
            scene.ends[end].allowed.append(piece)
            scene.ends[end].allowanceLeft += 2 * scene.layout.blockCount(ofPiece: Int(piece))
        case .keepAlive, .choke, .unchoke, .interested, .notInterested, .request, .piece, .cancel, .port, .suggest,
            .haveNone, .reject, .extended:
            break
        }
    }

    func gives(_ end: Int, _ block: Block, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        if !scene.layout.holds(block) || !scene.peers[peer].disk[Int(block.piece)] {
            lie(peer, "a block of piece \(block.piece) to give, which is not on its disk", at: now, &scene)
        }
    }

    /// A piece is gone, as a session is about to be told.
    mutating func lost(_ peer: Int, _ piece: Int, _ scene: TransferScene) {
        for end in scene.ends(of: peer) where scene.ends[end].isOpen {
            for block in scene.ends[end].sending where block.piece == UInt32(piece) { gone.append((end, block)) }
        }
    }

    mutating func drops(_ end: Int, _ block: Block) {
        gone.removeAll { $0.end == end && $0.block == block }
    }

    mutating func stepEnds(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        guard !gone.isEmpty else { return }
        for (end, block) in gone where scene.ends[end].isOpen {
            lie(peer, "a block of piece \(block.piece) to give, and was told that it is gone", at: now, &scene)
        }
        gone.removeAll(keepingCapacity: true)
    }

    private func lie(_ peer: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.claimsAreTrue, at: now, "\(TransferScene.name(peer)) says that it has \(what)")
    }
}
