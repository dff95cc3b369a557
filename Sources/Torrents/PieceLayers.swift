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
        let padding = MerkleTree.padding(pieceLength: info.pieceLength)
        for layer in pieceLayers where Bytes32(MerkleTree.root(layer.hashes, padding: padding)) != layer.root {
            let file = info.files.firstIndex { $0.piecesRoot == layer.root }
            throw MetainfoError(.wrongLayer, key: "piece layers", fileIndex: file)
        }
    }
}
