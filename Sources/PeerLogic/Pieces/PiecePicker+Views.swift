// What is asked of a piece picker and changes nothing.

import Wire

extension PiecePicker {
    /// Bytes of wanted pieces that are not on the disk.
    var missingByteCount: Int {
        var result = 0
        wanted.walk(wanted, without: have) { piece in
            result += layout.length(ofPiece: piece)
            return true
        }
        return result
    }

    /// Bytes of all pieces that are not on the disk: what trackers are told (BEP 3).
    var left: Int {
        let missing = layout.pieceCount - have.setCount
        guard missing > 0 else { return 0 }
        let last = layout.pieceCount - 1
        return missing * layout.pieceLength - (have[last] ? 0 : layout.pieceLength - layout.length(ofPiece: last))
    }

    /// Whether somebody else is asked for a block, too.
    func isAskedOfOthers(_ block: Block) -> Bool {
        guard let slot = slot(of: Int(block.piece)), let index = layout.index(of: block) else { return false }
        return (active[slot]?.blocks[index].requestCount ?? 0) > 0
    }

    /// Whether pieces are between the first request and the disk.
    var hasBegun: Bool { !begun.isEmpty }

    /// Whether there are pieces that a peer alone is to give.
    func awaits(_ peer: UInt32) -> Bool { active.indices.contains { isAwaited($0, peer) } }

    /// Whether a slot has such a piece.
    func isAwaited(_ slot: Int, _ peer: UInt32) -> Bool {
        guard let piece = active[slot] else { return false }
        return piece.onlyFrom == peer && piece.phase == .fetching && piece.freeCount > 0
    }
}
