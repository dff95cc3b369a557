// Files one behind another, as their pieces are cut.

import Primitives
import Wire

/// The files of a new torrent one behind another, with padding between them where each is to begin a piece (BEP 47,
/// 52).
struct HashingPlan {
    private(set) var stretches: [PieceHashing.Stretch] = []
    /// Of each file, its place in `stretches`.
    private(set) var stretchOfFile: [Int] = []
    /// What the torrent lists, padding among it.
    private(set) var entries: [MetainfoBuilder.File] = []
    /// With padding.
    private(set) var byteCount = 0
    private let files: [FileWalk.File]

    /// - Parameters:
    ///   - files: in the torrent's order.
    ///   - pieceLength: nil where files follow one another without padding.
    init(_ files: [FileWalk.File], alignedTo pieceLength: Int?) {
        self.files = files
        let last = files.lastIndex { $0.byteCount > 0 } ?? 0
        for (index, file) in files.enumerated() {
            stretchOfFile.append(stretches.count)
            append(file.path, file.byteCount)
            entries.append(
                .init(path: file.components, length: file.byteCount, isExecutable: file.isExecutable))
            // Behind the last byte nothing is to begin a piece.
            guard let pieceLength, index < last, !byteCount.isMultiple(of: pieceLength) else { continue }
            let count = pieceLength - byteCount % pieceLength
            append(nil, count)
            entries.append(.padding(count))
        }
    }

    private mutating func append(_ path: [CChar]?, _ count: Int) {
        stretches.append(.init(path: path, byteCount: count, offset: byteCount))
        byteCount += count
    }

    /// The trees of all files.
    ///
    /// - Parameters:
    ///   - roots: of each piece, 32 bytes.
    ///   - pieceLength: as in `init`.
    /// - Returns: one for each file, in the torrent's order.
    func trees(_ roots: [UInt8], pieceLength: Int) -> [MetainfoBuilder.Tree] {
        let size = Bytes32.byteCount
        let padding = MerkleTree.padding(pieceLength: pieceLength)
        return zip(files, stretchOfFile).map { file, stretch in
            guard file.byteCount > 0 else { return MetainfoBuilder.Tree(root: nil, layer: []) }
            let first = stretches[stretch].offset / pieceLength
            let count = (file.byteCount - 1) / pieceLength + 1
            let layer = roots[first * size..<(first + count) * size]
            guard count > 1 else { return MetainfoBuilder.Tree(root: Bytes32(layer), layer: []) }
            return MetainfoBuilder.Tree(
                root: Bytes32(MerkleTree.root(layer, padding: padding)), layer: Array(layer))
        }
    }
}
