// The info dictionary: what a torrent shares, and what its info hash names (BEP 3, BEP 52).

import Primitives

/// A file of a torrent.
public struct TorrentFile: Sendable, Hashable {
    /// Below the torrent's directory; the only component is the torrent's name where it is a single file.
    ///
    /// At least one component, at most `TorrentInfo.maxPathDepth`.
    public let path: [PathComponent]
    /// Bytes.
    public let length: Int
    /// Where the file begins, in bytes from the start of the first piece.
    ///
    /// In v2 each file begins a piece.
    public let offset: Int
    /// What clients do with the file besides; of BEP 47's letters those that are known.
    public let attributes: Attributes
    /// BEP 52: the root of the file's Merkle tree; nil in v1, for empty files and for padding.
    public let piecesRoot: Bytes32?

    /// BEP 47, `attr`.
    public struct Attributes: OptionSet, Sendable, Hashable {
        /// One bit an attribute, which no wire knows.
        public let rawValue: UInt8

        /// A set of the bits below.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `p`, or BitComet's older way of naming: zeros up to the next piece, not to be written to a disk.
        public static let padding = Attributes(rawValue: 1)
        /// `x`: may be run.
        public static let executable = Attributes(rawValue: 2)
        /// `h`: not shown by default.
        public static let hidden = Attributes(rawValue: 4)
        /// `l`: no bytes of its own. (Its target is not read: who makes no links needs none.)
        public static let symbolicLink = Attributes(rawValue: 8)
    }

    /// Whether the file is nothing but zeros up to the next piece, never written to a disk.
    public var isPadding: Bool { attributes.contains(.padding) }
}

/// A validated info dictionary.
///
/// Only decoding makes one.
///
/// Invariants: there is at least one file, and one with a byte in it; the paths are safe and, where `hasDistinctPaths`,
/// distinct, and none is another's directory (padding aside); the hashes are as many as the pieces; no sum of lengths
/// overflows.
public struct TorrentInfo: Sendable, Hashable {
    /// 512 MiB, the longest that libtorrent loads (its limit is 16 KiB less).
    public static let maxPieceLength = 1 << 29
    /// As many files as `BencodeLimits.metainfo` has room for, nine values each.
    public static let maxFileCount = 200_000
    /// Directories inside one another, with the file; real torrents stay below 20.
    public static let maxPathDepth = 64
    /// 2⁵⁰ bytes: twice a million pieces (the most that `BencodeLimits.metainfo` holds) of `maxPieceLength`.
    ///
    /// Where `Int` has 32 bits, 1.5 GiB: as here, a multiple of every piece length.
    public static let maxTotalLength = Int(
        min(Int64(1) << 50, Int64(Int.max / maxPieceLength * maxPieceLength)))

    /// Which of the two formats the info dictionary has.
    public enum Version: Sendable, Hashable {
        /// BEP 3 only.
        case v1
        /// BEP 52 only.
        case v2
        /// Both, describing the same files.
        case hybrid
    }

    /// v1, v2 or both.
    public let version: Version
    /// The single file's name, or the directory's; advisory.
    public let name: PathComponent
    /// Bytes, 1…`maxPieceLength`; a power of two and at least 16 KiB in v2.
    public let pieceLength: Int
    /// BEP 27: only the trackers named may be asked for peers.
    public let isPrivate: Bool
    /// One file without a directory of its own.
    public let isSingleFile: Bool
    /// In the order of the pieces; v1 and hybrid torrents may hold padding.
    public let files: [TorrentFile]
    /// Whether each file has a path of its own; false only in lenient reading.
    ///
    /// Clients accept such torrents, and rename one of two files with the same path.
    public let hasDistinctPaths: Bool
    /// The SHA-1 of each piece; nil in v2, where each file has a tree of its own.
    public let pieceHashes: PieceHashes?
    /// Bytes of all files without padding: what people call the size.
    public let totalLength: Int
    /// Bytes from the start of the first piece to the end of the last, with padding or gaps.
    public let pieceSpaceLength: Int

    /// Pieces of the whole torrent; at least 1.
    public var pieceCount: Int { pieces(in: pieceSpaceLength, of: pieceLength) }

    /// The length of one piece of a v1 or hybrid torrent, in bytes: the last may be short.
    ///
    /// - Returns: nil beyond the last piece, and in v2, where each file's last piece may be short.
    public func length(ofPiece index: Int) -> Int? {
        guard pieceHashes != nil, index >= 0, index < pieceCount else { return nil }
        return min(pieceLength, pieceSpaceLength - index * pieceLength)
    }

    /// Reads the raw bytes of an info dictionary, as peers hand them out (BEP 9).
    ///
    /// - Parameters:
    ///   - infoBytes: the dictionary and nothing behind it; at most 32 MiB (`BencodeLimits.metainfo`).
    ///   - strictness: lenient unless told, as clients are; the hash over the raw bytes decides.
    /// - Throws: `MetainfoError`.
    /// - SeeAlso: BEP 3, BEP 27, BEP 47, BEP 52.
    public init(decoding infoBytes: [UInt8], strictness: BencodeStrictness = .lenient) throws(MetainfoError) {
        let document: BencodeDocument
        do throws(BencodeError) {
            document = try BencodeDocument(infoBytes, strictness: strictness, limits: .metainfo)
        } catch {
            throw MetainfoError(.notBencoded(error), key: "info")
        }
        // Bytes behind the dictionary would be hashed with it.
        let end = document.root.range.upperBound
        guard end == infoBytes.count else {
            throw MetainfoError(.notBencoded(BencodeError(.trailingBytes, at: end)), key: "info")
        }
        self = try TorrentInfo(MetainfoField(node: document.root, key: "info"), strictness)
    }
}

/// The SHA-1 hashes of the pieces, one behind another.
public struct PieceHashes: Sendable, Hashable {
    /// 20 bytes a piece, sharing the metainfo's storage.
    public let bytes: ArraySlice<UInt8>

    /// How many hashes there are: one a piece.
    public var count: Int { bytes.count / Bytes20.byteCount }

    /// The SHA-1 of a piece, from 0; nil beyond the last piece.
    public subscript(piece index: Int) -> Bytes20? {
        guard index >= 0, index < count else { return nil }
        let start = bytes.startIndex + index * Bytes20.byteCount
        return Bytes20(bytes[start..<start + Bytes20.byteCount])
    }
}

/// How many pieces so many bytes take; the last may be short.
func pieces(in byteCount: Int, of pieceLength: Int) -> Int {
    byteCount / pieceLength + (byteCount.isMultiple(of: pieceLength) ? 0 : 1)
}

// MARK: - Validation

extension TorrentInfo {
    init(_ info: MetainfoField, _ strictness: BencodeStrictness) throws(MetainfoError) {
        _ = try info.entries()
        // BEP 52: "Implementations must check this field first".
        let hasV2 = try TorrentInfo.hasV2(info)
        let hasV1 = !hasV2 || info.field("pieces") != nil
        version = hasV2 ? (hasV1 ? .hybrid : .v2) : .v1
        name = try info.requireText("name").component()
        isPrivate = try TorrentInfo.isPrivate(info)
        let pieceLengthField = try info.require("piece length")
        pieceLength = try pieceLengthField.integer(in: 1...TorrentInfo.maxPieceLength)
        if hasV2, pieceLength < 16_384 || pieceLength.nonzeroBitCount != 1 {
            throw pieceLengthField.error(.notPowerOfTwo)
        }
        let tree = hasV2 ? try FileTree.files(info.require("file tree"), pieceLength: pieceLength) : []
        if hasV1 {
            isSingleFile = info.field("files") == nil
            let list = try FileList.files(info, name: name, strictness)
            hasDistinctPaths = try FileList.areDistinct(list, strictness)
            files = hasV2 ? try FileTree.joined(list, tree, pieceLength: pieceLength) : list
        } else {
            hasDistinctPaths = true
            isSingleFile = tree.count == 1 && tree[0].path.count == 1
            files = tree
        }
        // `FileList` and `FileTree` have bounded every sum.
        totalLength = files.reduce(0) { $1.isPadding ? $0 : $0 + $1.length }
        pieceSpaceLength = files.last.map { $0.offset + $0.length } ?? 0
        guard totalLength > 0 else { throw info.error(.nothingToShare) }
        pieceHashes = hasV1 ? try TorrentInfo.hashes(info, pieces(in: pieceSpaceLength, of: pieceLength)) : nil
    }

    private static func hasV2(_ info: MetainfoField) throws(MetainfoError) -> Bool {
        guard let field = info.field("meta version") else { return false }
        let metaVersion = try field.integer()
        guard metaVersion == 2 else { throw field.error(.unknownVersion(metaVersion)) }
        return true
    }

    private static func isPrivate(_ info: MetainfoField) throws(MetainfoError) -> Bool {
        guard let field = info.field("private") else { return false }
        return try field.integer() != 0
    }

    private static func hashes(_ info: MetainfoField, _ pieceCount: Int) throws(MetainfoError) -> PieceHashes {
        let field = try info.require("pieces")
        let hashes = PieceHashes(bytes: try field.bytes())
        guard hashes.bytes.count.isMultiple(of: Bytes20.byteCount) else {
            throw field.error(.ragged(hashByteCount: Bytes20.byteCount))
        }
        guard hashes.count == pieceCount else {
            throw field.error(.pieceCount(expected: pieceCount, found: hashes.count))
        }
        return hashes
    }
}
