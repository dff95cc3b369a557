// The Merkle trees of v2 torrents, against a dumb model of BEP 52: all leaves, all levels.

import Primitives
import Testing
import Torrents
import Wire

@Suite("Piece layers")
struct TorrentLayerTests {
    private struct Tree {
        var root: [UInt8]
        var layer: [UInt8]
    }

    private static func hash(_ bytes: [UInt8]) -> [UInt8] { sha256(bytes[...]) }

    private static func tree(_ content: [UInt8], pieceLength: Int) -> Tree {
        let block = 16_384
        var level = stride(from: 0, to: content.count, by: block).map {
            hash(Array(content[$0..<min($0 + block, content.count)]))
        }
        while level.count.nonzeroBitCount != 1 || level.count < pieceLength / block {
            level.append([UInt8](repeating: 0, count: 32))
        }
        var covered = block
        var layer: [UInt8] = []
        while true {
            if covered == pieceLength {
                let count = (content.count + pieceLength - 1) / pieceLength
                layer = level.prefix(count).flatMap { $0 }
            }
            guard level.count > 1 else { break }
            level = stride(from: 0, to: level.count, by: 2).map { hash(level[$0] + level[$0 + 1]) }
            covered *= 2
        }
        return Tree(root: level[0], layer: layer)
    }

    private static func metainfo(_ length: Int, _ tree: Tree, pieceLength: Int) throws -> Metainfo {
        let leaf = BencodeValue.dictionary([
            .init(
                "",
                .dictionary([.init("length", .integer(Int64(length))), .init("pieces root", .bytes(tree.root))]))
        ])
        let info = BencodeValue.dictionary([
            .init("file tree", .dictionary([.init("a", leaf)])), .init("meta version", .integer(2)),
            .init("name", .text("a")), .init("piece length", .integer(Int64(pieceLength))),
        ])
        return try Metainfo(
            decoding: BencodeValue.dictionary([
                .init("info", info),
                .init("piece layers", .dictionary([.init(tree.root, .bytes(tree.layer))])),
            ]).encoded())
    }

    @Test(arguments: [16_384, 32_768, 131_072], [1, 2, 3, 4, 5, 8, 9])
    func `a layer that leads to the root is fine, and any other is not`(_ pieceLength: Int, _ pieces: Int) throws {
        var random = RandomStream(seed: UInt64(pieces))
        let content = (0..<pieces * pieceLength + 1_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        var tree = Self.tree(content, pieceLength: pieceLength)
        try Self.metainfo(content.count, tree, pieceLength: pieceLength).checkPieceLayers()
        tree.layer[random.below(tree.layer.count)] ^= 1
        let metainfo = try Self.metainfo(content.count, tree, pieceLength: pieceLength)
        let error = #expect(throws: MetainfoError.self) { try metainfo.checkPieceLayers() }
        #expect(error == MetainfoError(.wrongLayer, key: "piece layers", fileIndex: 0))
    }
}
