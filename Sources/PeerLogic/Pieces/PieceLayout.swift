// How a torrent's bytes are cut into pieces, and pieces into blocks.

import Wire

/// How a torrent's bytes are cut into pieces, and pieces into blocks of 16 KiB; which file each piece touches.
public struct PieceLayout: Sendable, Hashable {
    /// A file as far as pieces are concerned.
    public struct Span: Sendable, Hashable {
        /// Bytes from the start of the first piece.
        public var offset: Int
        /// Bytes; 0 for an empty file.
        public var length: Int
        /// Zeros that nobody keeps (BEP 47): asked for like other bytes, as everybody makes them up, and never written.
        public var isPadding: Bool

        /// Takes the numbers as they are.
        public init(offset: Int, length: Int, isPadding: Bool = false) {
            self.offset = offset
            self.length = length
            self.isPadding = isPadding
        }
    }

    /// Bytes of each piece but the last.
    public let pieceLength: Int
    /// Bytes of all pieces.
    public let totalLength: Int
    /// In the order of the pieces, without gaps.
    public let files: [Span]

    /// At least one byte, in pieces of at least one byte.
    public init(pieceLength: Int, totalLength: Int, files: [Span]? = nil) {
        precondition(pieceLength > 0 && totalLength > 0, "a torrent has bytes, in pieces")
        self.pieceLength = pieceLength
        self.totalLength = totalLength
        self.files = files ?? [Span(offset: 0, length: totalLength)]
    }

    /// The layout of a v1 or hybrid torrent; nil for v2, whose pieces have no SHA-1.
    public init?(_ info: TorrentInfo) {
        guard info.pieceHashes != nil else { return nil }
        self.init(
            pieceLength: info.pieceLength, totalLength: info.pieceSpaceLength,
            files: info.files.map { Span(offset: $0.offset, length: $0.length, isPadding: $0.isPadding) })
    }

    /// At least 1.
    public var pieceCount: Int { (totalLength - 1) / pieceLength + 1 }

    /// Bytes of a piece: the last may be short.
    public func length(ofPiece piece: Int) -> Int { min(pieceLength, totalLength - piece * pieceLength) }

    /// Blocks of a piece.
    public func blockCount(ofPiece piece: Int) -> Int {
        (length(ofPiece: piece) - 1) / Block.maxByteCount + 1
    }

    /// The block with an index in its piece, from 0.
    public func block(_ index: Int, ofPiece piece: Int) -> Block {
        let offset = index * Block.maxByteCount
        return Block(
            piece: UInt32(piece), offset: UInt32(offset),
            length: UInt32(min(Block.maxByteCount, length(ofPiece: piece) - offset)))
    }

    /// The index of a block in its piece; nil for one that this torrent is not cut into.
    public func index(of block: Block) -> Int? {
        guard block.piece < pieceCount, block.offset.isMultiple(of: UInt32(Block.maxByteCount)) else { return nil }
        let length = length(ofPiece: Int(block.piece))
        guard Int(block.offset) < length,
            Int(block.length) == min(Block.maxByteCount, length - Int(block.offset))
        else { return nil }
        return Int(block.offset) / Block.maxByteCount
    }

    /// Whether somebody may ask for these bytes: they lie within one piece, and are not more than 128 KiB.
    ///
    /// Others may cut their blocks as they like: "all current implementations use 2^14" is not all that were (BEP 3).
    public func holds(_ block: Block) -> Bool {
        guard block.piece < pieceCount, block.length > 0, block.length <= PieceLayout.maxRequestByteCount else {
            return false
        }
        return Int(block.offset) + Int(block.length) <= length(ofPiece: Int(block.piece))
    }

    /// The longest block that is given when asked for.
    public static let maxRequestByteCount: UInt32 = 131_072

    /// The pieces that a file has bytes in; nothing for an empty one.
    public func pieces(ofFile file: Int) -> Range<Int> {
        let span = files[file]
        guard span.length > 0 else { return 0..<0 }
        return span.offset / pieceLength..<(span.offset + span.length - 1) / pieceLength + 1
    }
}
