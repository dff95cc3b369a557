// Whether the piece layers of a v2 torrent lead to the roots of its files (BEP 52).

import Primitives
import Wire

extension Metainfo {
    /// Hashes each piece layer up to its root.
    ///
    /// What lies beyond the end of a file is, on that layer, the root of a tree whose leaves are all zero.
    ///
    /// - Throws: `wrongLayer`, with the first file whose layer leads elsewhere.
    /// - Complexity: as many hashes as there are pieces.
    public func checkPieceLayers() throws(MetainfoError) {
        guard !pieceLayers.isEmpty else { return }
        var padding = [UInt8](repeating: 0, count: Bytes32.byteCount)
        var covered = 16_384
        while covered < info.pieceLength {
            padding = sha256(padding + padding)
            covered *= 2
        }
        for layer in pieceLayers where Bytes32(Self.root(layer.hashes, padding)) != layer.root {
            let file = info.files.firstIndex { $0.piecesRoot == layer.root }
            throw MetainfoError(.wrongLayer, key: "piece layers", fileIndex: file)
        }
    }

    private static func root(_ hashes: ArraySlice<UInt8>, _ padding: [UInt8]) -> [UInt8] {
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
}
