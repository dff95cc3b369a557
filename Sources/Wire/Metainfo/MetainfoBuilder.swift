// Making metainfo files (v1, BEP 3; hybrid, BEP 52), for `tracker torrent create`.

import Primitives

/// What goes into a new .torrent file, whose content the caller has read and hashed.
public struct MetainfoBuilder: Sendable, Hashable {
    /// A file with its path below the torrent's directory.
    public struct File: Sendable, Hashable {
        /// Below the torrent's directory; at least one component, at most `TorrentInfo.maxPathDepth`.
        public var path: [PathComponent]
        /// Bytes.
        public var length: Int
        /// BEP 47, `x`.
        public var isExecutable: Bool
        /// BEP 47, `p`: zeros that nobody keeps.
        public private(set) var isPadding = false

        /// Takes the fields as they are; `build` checks them.
        public init(path: [PathComponent], length: Int, isExecutable: Bool = false) {
            self.path = path
            self.length = length
            self.isExecutable = isExecutable
        }

        /// Zeros, after which a file begins a piece (BEP 47: "`.pad/N`").
        public static func padding(_ length: Int) -> File {
            var path: [PathComponent] = []
            for name in [".pad", "\(length)"] {
                guard let component = try? PathComponent(Array(name.utf8)) else {
                    preconditionFailure("a dot, letters and digits make a name")
                }
                path.append(component)
            }
            var file = File(path: path, length: length)
            file.isPadding = true
            return file
        }
    }

    /// The hashes of a file in version 2 (BEP 52).
    public struct Tree: Sendable, Hashable {
        /// `pieces root`; nil for an empty file.
        public var root: Bytes32?
        /// 32 bytes a piece; empty for a file of one piece.
        public var layer: [UInt8]

        /// Takes both as they are; `build` checks them.
        public init(root: Bytes32?, layer: [UInt8]) {
            self.root = root
            self.layer = layer
        }
    }

    /// Whether the torrent is a single file, or a directory of files.
    public enum Content: Sendable, Hashable {
        /// One file, named as the torrent is; its length in bytes.
        case file(length: Int)
        /// Files in a directory that is named as the torrent is, in the order in which they were hashed.
        case directory([File])
    }

    /// Of the file, or of the directory, that a client makes.
    public var name: PathComponent
    /// Bytes, 1…`TorrentInfo.maxPieceLength`; a power of two by custom.
    public var pieceLength: Int
    /// What the pieces are made of.
    public var content: Content
    /// The SHA-1 of each piece, 20 bytes each, one behind another.
    public var pieceHashes: [UInt8]
    /// Of each file but padding: makes a hybrid, in which each file begins a piece; nil for version 1.
    public var trees: [Tree]?
    /// BEP 27.
    public var isPrivate = false
    /// Tiers of tracker URLs (BEP 12); trackers that act as one belong in one tier.
    public var trackers: [[String]] = []
    /// Web seeds (BEP 19).
    public var urlList: [String] = []
    /// Written in whole seconds; nil to leave it out.
    public var creationDate: WallTime?
    /// For people; nil to leave it out.
    public var comment: String?
    /// The program that makes the file; nil to leave it out.
    public var createdBy: String?

    /// Takes what a metainfo file must have; the rest is set afterwards, and `build` checks all of it.
    public init(name: PathComponent, pieceLength: Int, content: Content, pieceHashes: [UInt8]) {
        self.name = name
        self.pieceLength = pieceLength
        self.content = content
        self.pieceHashes = pieceHashes
    }

    /// The piece length to take where nobody says: a power of two from 16 KiB to 16 MiB.
    ///
    /// It makes at most 2,048 pieces where it can, so that the file stays below 50 kB and a piece is downloaded in
    /// reasonable time.
    ///
    /// - Parameter totalLength: bytes of all files.
    /// - Returns: bytes.
    public static func pieceLength(for totalLength: Int) -> Int {
        var length = 16_384
        while length < 16 << 20, length * 2_048 < totalLength { length *= 2 }
        return length
    }

    /// Encodes the file, and decodes it again strictly: what a client would refuse is never made.
    ///
    /// - Returns: the metainfo as a client reads it; its `bytes` are the file.
    /// - Throws: `MetainfoError`, as for a file from a stranger; `badURL` for a tracker or web seed that would be left
    ///   out.
    /// - SeeAlso: BEP 3, "metainfo files"; BEP 12; BEP 19; BEP 27.
    public func build() throws(MetainfoError) -> Metainfo {
        let metainfo = try Metainfo(decoding: encoded(), strictness: .strict)
        guard metainfo.trackers == trackers else { throw MetainfoError(.badURL, key: "announce") }
        guard metainfo.urlList == urlList else { throw MetainfoError(.badURL, key: "url-list") }
        return metainfo
    }

    private func encoded() -> [UInt8] {
        var entries: [BencodeValue.Entry] = [.init("info", .dictionary(info))]
        if let first = trackers.first?.first { entries.append(.init("announce", .text(first))) }
        if trackers.count > 1 || trackers.contains(where: { $0.count != 1 }) {
            let tiers = trackers.map { tier in BencodeValue.list(tier.map { url in .text(url) }) }
            entries.append(.init("announce-list", .list(tiers)))
        }
        if !urlList.isEmpty { entries.append(.init("url-list", .list(urlList.map { .text($0) }))) }
        if let trees {
            // Files with the same bytes share a layer.
            var layers: [BencodeValue.Entry] = []
            for tree in trees.sorted(by: { ($0.root ?? .zero) < ($1.root ?? .zero) }) where !tree.layer.isEmpty {
                guard let root = tree.root, layers.last?.key.elementsEqual(root.bytes) != true else { continue }
                layers.append(.init(root.bytes, .bytes(tree.layer)))
            }
            entries.append(.init("piece layers", .dictionary(layers)))
        }
        if let comment { entries.append(.init("comment", .text(comment))) }
        if let createdBy { entries.append(.init("created by", .text(createdBy))) }
        if let creationDate {
            entries.append(.init("creation date", .integer(creationDate.milliseconds / 1_000)))
        }
        return BencodeValue.dictionary(entries).encoded()
    }

    private var info: [BencodeValue.Entry] {
        var info: [BencodeValue.Entry] = [
            .init("name", .bytes(name.bytes)),
            .init("piece length", .integer(Int64(pieceLength))),
            .init("pieces", .bytes(pieceHashes)),
        ]
        if isPrivate { info.append(.init("private", .integer(1))) }
        switch content {
        case .file(let length):
            info.append(.init("length", .integer(Int64(length))))
        case .directory(let files):
            info.append(.init("files", .list(files.map(MetainfoBuilder.value))))
        }
        if let trees {
            info.append(.init("meta version", .integer(2)))
            info.append(.init("file tree", tree(of: trees)))
        }
        return info
    }

    /// Directories in directories, and in each file's place what is known of it (BEP 52, "file tree").
    private func tree(of trees: [Tree]) -> BencodeValue {
        let files: [File] =
            switch content {
            case .file(let length): [File(path: [name], length: length)]
            case .directory(let files): files.filter { !$0.isPadding }
            }
        precondition(files.count == trees.count, "each file has a tree")
        return Self.directory(Array(zip(files, trees))[...], depth: 0)
    }

    /// Files that are in the order of their paths, so that a directory's are neighbours.
    private static func directory(_ files: ArraySlice<(File, Tree)>, depth: Int) -> BencodeValue {
        var entries: [BencodeValue.Entry] = []
        var rest = files
        while let (file, tree) = rest.first {
            let name = file.path[depth]
            if file.path.count == depth + 1 {
                var properties: [BencodeValue.Entry] = [.init("length", .integer(Int64(file.length)))]
                if let root = tree.root { properties.append(.init("pieces root", .bytes(root.bytes))) }
                if file.isExecutable { properties.append(.init("attr", .text("x"))) }
                entries.append(.init(name.bytes, .dictionary([.init("", .dictionary(properties))])))
                rest.removeFirst()
            } else {
                let inside = rest.prefix { $0.0.path.count > depth + 1 && $0.0.path[depth] == name }
                entries.append(.init(name.bytes, directory(inside, depth: depth + 1)))
                rest = rest.dropFirst(inside.count)
            }
        }
        return .dictionary(entries)
    }

    private static func value(_ file: File) -> BencodeValue {
        var entries: [BencodeValue.Entry] = [
            .init("length", .integer(Int64(file.length))),
            .init("path", .list(file.path.map { .bytes($0.bytes) })),
        ]
        if file.isExecutable { entries.append(.init("attr", .text("x"))) }
        if file.isPadding { entries.append(.init("attr", .text("p"))) }
        return .dictionary(entries)
    }
}
