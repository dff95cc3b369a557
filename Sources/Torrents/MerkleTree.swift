// The trees of hashes that version 2 has in the place of a list (BEP 52).

import Crypto
import Primitives
import Wire

/// The trees of SHA-256 that version 2 has in the place of a list of hashes (BEP 52, "merkle tree").
enum MerkleTree {
    /// Bytes below a leaf, but for the last of a file.
    static let leafByteCount = 16_384

    /// A leaf that stands for nothing, beyond the end of a file.
    private static let absent = [UInt8](repeating: 0, count: Bytes32.byteCount)

    /// The root over some hashes of a layer, one behind another; at least one.
    ///
    /// - Parameters:
    ///   - hashes: 32 bytes each.
    ///   - padding: the hash, on this layer, of what lies beyond the end of the file.
    /// - Returns: 32 bytes.
    static func root(_ hashes: ArraySlice<UInt8>, padding: [UInt8]) -> [UInt8] {
        let size = Bytes32.byteCount
        var (level, padding) = (Array(hashes), padding)
        while level.count > size {
            if !level.count.isMultiple(of: 2 * size) { level += padding }
            var above: [UInt8] = []
            above.reserveCapacity(level.count / 2)
            for start in stride(from: 0, to: level.count, by: 2 * size) {
                above += sha256(level[start..<start + 2 * size])
            }
            padding = sha256(padding + padding)
            level = above
        }
        return level
    }

    /// What lies beyond the end of a file, on the layer of pieces: the root over leaves that stand for nothing.
    static func padding(pieceLength: Int) -> [UInt8] {
        var padding = absent
        var covered = leafByteCount
        while covered < pieceLength {
            padding = sha256(padding + padding)
            covered *= 2
        }
        return padding
    }

    /// The root over the leaves of a piece.
    ///
    /// - Parameters:
    ///   - leaves: at least one.
    ///   - width: leaves that the piece's part of the tree has: those beyond the end of the file stand for nothing.
    /// - Returns: 32 bytes.
    static func root(ofPiece leaves: [UInt8], width: Int) -> [UInt8] {
        let missing = width - leaves.count / Bytes32.byteCount
        return root((leaves + Array(repeating: 0, count: max(0, missing) * Bytes32.byteCount))[...], padding: absent)
    }
}
