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

    private func lie(_ peer: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.claimsAreTrue, at: now, "\(TransferScene.name(peer)) says that it has \(what)")
    }
}
