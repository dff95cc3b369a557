// What peers say to each other, as values (BEP 3, "peer messages"; BEP 6; BEP 10).

import Primitives

/// A part of a piece, as peers ask for it: `request`, `piece`, `cancel` and `reject` name one.
@frozen
public struct Block: Sendable, Hashable {
    /// 16 KiB: what everybody asks for; the last block of a piece may be shorter, and some refuse longer ones.
    public static let maxByteCount = 16_384

    /// Index of the piece, from 0.
    public var piece: UInt32
    /// Bytes from the start of the piece.
    public var offset: UInt32
    /// Bytes.
    public var length: UInt32

    /// Takes the numbers as they are: whether a torrent has such a block is for `PieceLayout` to say.
    @inlinable
    public init(piece: UInt32, offset: UInt32, length: UInt32) {
        self.piece = piece
        self.offset = offset
        self.length = length
    }
}

/// One message between two peers.
///
/// The payload of `piece` is no part of the value: it goes from the socket straight to its place in the piece, and from
/// the file straight to the socket.
public enum PeerMessage: Sendable, Hashable {
    /// Nothing but a sign of life.
    case keepAlive
    /// 0: requests will not be answered.
    case choke
    /// 1: requests will be answered.
    case unchoke
    /// 2
    case interested
    /// 3
    case notInterested
    /// 4: the sender has a further piece.
    case have(piece: UInt32)
    /// 5: the pieces that the sender has, the first in the highest bit of the first byte.
    case bitfield([UInt8])
    /// 6
    case request(Block)
    /// 7: the head of a block; `length` counts the payload, which follows it on the wire.
    case piece(Block)
    /// 8
    case cancel(Block)
    /// 9: the port of the sender's DHT node (BEP 5).
    case port(UInt16)
    /// 13: a piece that the sender would like to be asked for (BEP 6).
    case suggest(piece: UInt32)
    /// 14: the sender has all pieces (BEP 6).
    case haveAll
    /// 15: the sender has no piece (BEP 6).
    case haveNone
    /// 16: a request will not be answered (BEP 6).
    case reject(Block)
    /// 17: a piece that the sender gives even to whom it chokes (BEP 6).
    case allowedFast(piece: UInt32)
    /// 20: a message of an extension (BEP 10); 0 is the extension handshake, others as the *receiver* has numbered
    /// them.
    case extended(id: UInt8, payload: [UInt8])
}
