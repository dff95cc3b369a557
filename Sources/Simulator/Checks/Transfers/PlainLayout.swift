// How the torrent is cut, as the judge reckons it.

import PeerLogic
import Wire

/// How the torrent of a swarm is cut, reckoned plainly from what the swarm was described by, and with none of the code
/// that is judged.
struct PlainLayout: Sendable {
    private static let blockByteCount = 16_384
    private static let maxRequestByteCount = 131_072

    let pieceCount: Int
    /// Of each piece but the last.
    let blocksPerPiece: Int
    private let lastPieceByteCount: Int

    init(_ options: TransferOptions) {
        pieceCount = options.pieceCount
        blocksPerPiece = options.blocksPerPiece
        lastPieceByteCount = min(options.lastPieceByteCount, options.blocksPerPiece * Self.blockByteCount)
    }

    var pieceLength: Int { blocksPerPiece * Self.blockByteCount }
    var totalLength: Int { (pieceCount - 1) * pieceLength + lastPieceByteCount }

    func length(ofPiece piece: Int) -> Int { piece == pieceCount - 1 ? lastPieceByteCount : pieceLength }

    func blockCount(ofPiece piece: Int) -> Int {
        let (whole, rest) = length(ofPiece: piece).quotientAndRemainder(dividingBy: Self.blockByteCount)
        return whole + (rest == 0 ? 0 : 1)
    }

    /// The place of a block in its piece; nil for one that the torrent is not cut into.
    func index(of block: Block) -> Int? {
        guard block.piece < pieceCount else { return nil }
        let (index, rest) = Int(block.offset).quotientAndRemainder(dividingBy: Self.blockByteCount)
        let left = length(ofPiece: Int(block.piece)) - Int(block.offset)
        return rest == 0 && left > 0 && block.length == min(left, Self.blockByteCount) ? index : nil
    }

    /// Whether somebody may ask for these bytes.
    func holds(_ block: Block) -> Bool {
        block.piece < pieceCount && block.length > 0 && block.length <= Self.maxRequestByteCount
            && Int(block.offset) + Int(block.length) <= length(ofPiece: Int(block.piece))
    }

    /// The pieces of a bitfield as it travels (BEP 3): "the first byte … corresponds to indices 0 - 7 from high bit to
    /// low bit … spare bits at the end are set to zero"; nil for one that is none.
    static func pieces(ofWire bytes: [UInt8], count: Int) -> Bitfield? {
        guard bytes.count == (count + 7) / 8 else { return nil }
        var pieces = Bitfield(count: count)
        for place in 0..<bytes.count * 8 where bytes[place / 8] & (128 >> (place % 8)) != 0 {
            guard place < count else { return nil }
            pieces.insert(place)
        }
        return pieces
    }
}
