// Messages between peers, to bytes and from a stream (BEP 3, "peer messages").

import Primitives

extension PeerMessage {
    /// Of the heads of `piece`, length prefix included.
    public static let pieceHeadByteCount = 13
    /// The longest payload that `piece` may bring: what others ask for at most.
    public static let maxBlockByteCount = 131_072
    /// The longest message but for `piece`: a bitfield of eight million pieces, or an extension's message.
    ///
    /// Metadata parts have 16 KiB, peer exchange some hundred bytes.
    public static let maxFrameByteCount = 1 << 20

    /// Appends the message as it goes over the wire, behind its length; of `piece` the head alone.
    public func encode(into bytes: inout [UInt8]) {
        switch self {
        case .keepAlive: bytes.append(bigEndian: UInt32(0))
        case .choke: bytes.append(frame: 0)
        case .unchoke: bytes.append(frame: 1)
        case .interested: bytes.append(frame: 2)
        case .notInterested: bytes.append(frame: 3)
        case .have(let piece): bytes.append(frame: 4, piece: piece)
        case .bitfield(let bits):
            bytes.append(frame: 5, byteCount: bits.count)
            bytes.append(contentsOf: bits)
        case .request(let block): bytes.append(frame: 6, block: block)
        case .piece(let block):
            bytes.append(frame: 7, byteCount: 8 + Int(block.length))
            bytes.append(bigEndian: block.piece)
            bytes.append(bigEndian: block.offset)
        case .cancel(let block): bytes.append(frame: 8, block: block)
        case .port(let port):
            bytes.append(frame: 9, byteCount: 2)
            bytes.append(bigEndian: port)
        case .suggest(let piece): bytes.append(frame: 13, piece: piece)
        case .haveAll: bytes.append(frame: 14)
        case .haveNone: bytes.append(frame: 15)
        case .reject(let block): bytes.append(frame: 16, block: block)
        case .allowedFast(let piece): bytes.append(frame: 17, piece: piece)
        case .extended(let id, let payload):
            bytes.append(frame: 20, byteCount: 1 + payload.count)
            bytes.append(id)
            bytes.append(contentsOf: payload)
        }
    }

    /// Why bytes are no message.
    public enum Malformed: Error, Sendable, Hashable {
        /// The length prefix is beyond all bounds.
        case tooLong(Int)
        /// The length does not suit the message's number.
        case wrongLength(id: UInt8, Int)

        /// What is wrong, for a log.
        public var words: String {
            switch self {
            case .tooLong(let count): "a message of \(count) bytes"
            case .wrongLength(let id, let count): "a message \(id) of \(count) bytes"
            }
        }
    }

    /// What stands at the start of a stream's bytes.
    public enum Reading: Sendable, Hashable {
        /// Too little to tell; with so many bytes from the start there is more to tell.
        case needs(Int)
        /// A whole message, and how many bytes it took.
        case message(PeerMessage, byteCount: Int)
        /// A message with a number that nobody here knows, to be passed over: so many bytes, which need not be here
        /// yet.
        case unknown(byteCount: Int)
        /// The head of a block took `pieceHeadByteCount` bytes; `length` bytes of payload follow.
        case block(Block)
    }

    /// Reads what stands in a stream from an offset on.
    ///
    /// - Complexity: O(1), without allocation, but for `bitfield` and `extended`.
    /// - Throws: `Malformed`, after which the stream means nothing any more.
    public static func read(_ bytes: RawSpan, from start: Int) throws(Malformed) -> Reading {
        let available = bytes.byteCount - start
        guard available >= 4 else { return .needs(4) }
        let length = Int(clamping: bytes.u32(at: start))
        guard length > 0 else { return .message(.keepAlive, byteCount: 4) }
        guard available >= 5 else { return .needs(5) }
        let id = bytes.u8(at: start + 4)
        if id == 7 {
            guard (10...9 + maxBlockByteCount).contains(length) else { throw .wrongLength(id: id, length) }
            guard available >= pieceHeadByteCount else { return .needs(pieceHeadByteCount) }
            return .block(
                Block(
                    piece: bytes.u32(at: start + 5), offset: bytes.u32(at: start + 9), length: UInt32(length - 9)))
        }
        // Before the rest is waited for: a stranger's word is no reason to make room.
        guard length <= maxFrameByteCount else { throw .tooLong(length) }
        let expected = fixedLength(id)
        guard length == expected ?? length, id != 20 || length >= 2 else { throw .wrongLength(id: id, length) }
        guard expected != nil || id == 5 || id == 20 else { return .unknown(byteCount: 4 + length) }
        guard available >= 4 + length else { return .needs(4 + length) }
        if expected != nil { return .message(fixed(id, bytes, start + 5), byteCount: 4 + length) }
        let rest = start + 5..<start + 4 + length
        if id == 5 { return .message(.bitfield(bytes.array(rest)), byteCount: 4 + length) }
        let extended = PeerMessage.extended(id: bytes.u8(at: start + 5), payload: bytes.array(rest.dropFirst()))
        return .message(extended, byteCount: 4 + length)
    }

    /// What the length prefix says of messages whose number fixes it; nil for others.
    private static func fixedLength(_ id: UInt8) -> Int? {
        switch id {
        case 0...3, 14, 15: 1
        case 4, 13, 17: 5
        case 6, 8, 16: 13
        case 9: 3
        default: nil
        }
    }

    private static func fixed(_ id: UInt8, _ bytes: RawSpan, _ start: Int) -> PeerMessage {
        switch id {
        case 0: return .choke
        case 1: return .unchoke
        case 2: return .interested
        case 3: return .notInterested
        case 14: return .haveAll
        case 15: return .haveNone
        case 4: return .have(piece: bytes.u32(at: start))
        case 13: return .suggest(piece: bytes.u32(at: start))
        case 17: return .allowedFast(piece: bytes.u32(at: start))
        case 9: return .port(bytes.u16(at: start))
        // 6, 8 and 16.
        default: break
        }
        let block = Block(
            piece: bytes.u32(at: start), offset: bytes.u32(at: start + 4), length: bytes.u32(at: start + 8))
        return id == 6 ? .request(block) : id == 8 ? .cancel(block) : .reject(block)
    }
}

extension RawSpan {
    fileprivate func array(_ range: Range<Int>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(range.count)
        for index in range { result.append(u8(at: index)) }
        return result
    }
}

extension [UInt8] {
    fileprivate mutating func append(frame id: UInt8, byteCount: Int = 0) {
        append(bigEndian: UInt32(1 + byteCount))
        append(id)
    }

    fileprivate mutating func append(frame id: UInt8, piece: UInt32) {
        append(frame: id, byteCount: 4)
        append(bigEndian: piece)
    }

    fileprivate mutating func append(frame id: UInt8, block: Block) {
        append(frame: id, byteCount: 12)
        append(bigEndian: block.piece)
        append(bigEndian: block.offset)
        append(bigEndian: block.length)
    }
}
