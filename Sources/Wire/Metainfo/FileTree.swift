// The files of a v2 torrent.

import Primitives

/// The hashes of one layer of a file's Merkle tree, each for one piece.
///
/// That they hash up to `root` is for the caller to check (`Metainfo.checkPieceLayers`): there is no SHA-256 here.
public struct PieceLayer: Sendable, Hashable {
    /// `pieces root` of the files that it belongs to; identical files share it.
    public let root: Bytes32
    /// 32 bytes a piece, sharing the metainfo's storage.
    public let hashes: ArraySlice<UInt8>
}

/// The files of a v2 torrent, and how they agree with the v1 half of a hybrid (BEP 52).
struct FileTree {
    private let pieceLength: Int
    private var files: [TorrentFile] = []
    private var offset = 0

    /// Walks the tree in the order of its keys, which is the order of the pieces.
    static func files(_ tree: MetainfoField, pieceLength: Int) throws(MetainfoError) -> [TorrentFile] {
        var walk = FileTree(pieceLength: pieceLength)
        // BEP 52: "The file tree root dictionary itself must not be a file".
        if let properties = tree.field(""), properties.field("length") != nil { throw tree.error(.fileIsDirectory) }
        try walk.directory(tree, path: [])
        return walk.files
    }

    private init(pieceLength: Int) { self.pieceLength = pieceLength }

    /// Recursion is bounded by `TorrentInfo.maxPathDepth`.
    private mutating func directory(_ entry: MetainfoField, path: [PathComponent]) throws(MetainfoError) {
        var last: ArraySlice<UInt8>?
        for (key, node) in try entry.entries() {
            let child = MetainfoField(node: node, key: "file tree", fileIndex: files.count)
            // The order of the keys is the order of the pieces: unsorted, two clients see two torrents.
            if let last, !last.lexicographicallyPrecedes(key) {
                throw child.error(.notBencoded(BencodeError(.keysUnsorted, at: node.range.lowerBound)))
            }
            last = key
            guard !key.isEmpty else {
                // A directory's properties; whatever looks like a file without a name is none.
                guard node[""] == nil else { throw child.error(.badName(.empty)) }
                continue
            }
            guard path.count < TorrentInfo.maxPathDepth else {
                throw entry.error(.tooMany(limit: TorrentInfo.maxPathDepth))
            }
            let childPath = path + [try child.component(key)]
            if let properties = child.field(""), properties.node["length"] != nil {
                // BEP 52, "length": "it must not have any sibling entries".
                guard try child.entries().allSatisfy({ $0.key.isEmpty }) else { throw child.error(.fileIsDirectory) }
                try file(properties, path: childPath)
            } else {
                try directory(child, path: childPath)
            }
        }
    }

    private mutating func file(_ properties: MetainfoField, path: [PathComponent]) throws(MetainfoError) {
        guard files.count < TorrentInfo.maxFileCount else {
            throw properties.error(.tooMany(limit: TorrentInfo.maxFileCount))
        }
        let attributes = FileList.attributes(properties)
        guard !attributes.contains(.padding) else { throw properties.error(.paddingInTree) }
        let length = try properties.require("length").integer(in: 0...TorrentInfo.maxTotalLength - offset)
        var root: Bytes32?
        if length > 0 {
            let field = try properties.require("pieces root")
            root = Bytes32(try field.bytes())
            guard root != nil else { throw field.error(.ragged(hashByteCount: Bytes32.byteCount)) }
            // Zeros stand for the absent leaves of a tree (BEP 52), so they are the root of nothing.
            guard root != .zero else { throw field.error(.missing) }
        }
        files.append(
            TorrentFile(
                path: path, length: length, offset: offset, attributes: attributes, piecesRoot: root))
        // The next file begins a piece. Still within `maxTotalLength`, which is a multiple of every piece length.
        offset = pieces(in: offset + length, of: pieceLength) * pieceLength
    }

    /// Joins the two halves of a hybrid: the v1 list, with the roots of the v2 tree.
    ///
    /// "they must validate that the content (file names, order, piece alignment) is identical".
    static func joined(
        _ list: [TorrentFile], _ tree: [TorrentFile], pieceLength: Int
    ) throws(MetainfoError) -> [TorrentFile] {
        var rest = tree[...]
        var files: [TorrentFile] = []
        files.reserveCapacity(list.count)
        for (index, file) in list.enumerated() {
            guard !file.isPadding else {
                files.append(file)
                continue
            }
            guard let twin = rest.popFirst(), twin.path == file.path, twin.length == file.length,
                file.length == 0 || file.offset.isMultiple(of: pieceLength)
            else { throw MetainfoError(.hybridMismatch, key: "files", fileIndex: index) }
            files.append(
                TorrentFile(
                    path: file.path, length: file.length, offset: file.offset, attributes: file.attributes,
                    piecesRoot: twin.piecesRoot))
        }
        guard rest.isEmpty else { throw MetainfoError(.hybridMismatch, key: "file tree") }
        return files
    }

    /// Reads `piece layers`, sorted by root, and checks that each file longer than a piece has the one it needs.
    static func layers(_ file: MetainfoField, _ info: TorrentInfo) throws(MetainfoError) -> [PieceLayer] {
        let needed = info.files.enumerated().filter { $0.element.length > info.pieceLength }
            .compactMap { index, file in file.piecesRoot.map { (index: index, length: file.length, root: $0) } }
            .sorted { $0.root < $1.root }
        guard !needed.isEmpty || file.field("piece layers") != nil else { return [] }
        let field = try file.require("piece layers")
        var layers: [PieceLayer] = []
        for (key, node) in try field.entries() {
            let value = try MetainfoField(node: node, key: field.key).bytes()
            guard let root = Bytes32(key) else { throw field.error(.ragged(hashByteCount: Bytes32.byteCount)) }
            layers.append(PieceLayer(root: root, hashes: value))
        }
        layers.sort { $0.root < $1.root }
        // Both sides are sorted by root: walk along them together. Keys are unique, files may share one.
        var next = 0
        for (position, file) in needed.enumerated() {
            if position > 0, needed[position - 1].root != file.root { next += 1 }
            guard next < layers.count, layers[next].root <= file.root else {
                throw MetainfoError(.missing, key: field.key, fileIndex: file.index)
            }
            guard layers[next].root == file.root else { throw field.error(.layerWithoutFile) }
            let hashes = layers[next].hashes
            guard hashes.count.isMultiple(of: Bytes32.byteCount) else {
                throw field.error(.ragged(hashByteCount: Bytes32.byteCount))
            }
            let expected = pieces(in: file.length, of: info.pieceLength)
            guard hashes.count / Bytes32.byteCount == expected else {
                throw MetainfoError(
                    .pieceCount(expected: expected, found: hashes.count / Bytes32.byteCount), key: field.key,
                    fileIndex: file.index)
            }
        }
        guard layers.count == (needed.isEmpty ? 0 : next + 1) else { throw field.error(.layerWithoutFile) }
        return layers
    }
}
