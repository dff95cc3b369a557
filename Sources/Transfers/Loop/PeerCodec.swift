// Messages and handshakes as bytes.

import Primitives
import Wire

/// Messages and handshakes as bytes.
enum PeerCodec {
    /// What every handshake begins with.
    static let prefix = [19] + Array("BitTorrent protocol".utf8)

    enum Outcome {
        case message(PeerMessage)
        case unknown
        case malformed
    }

    static func handshake(_ bytes: [UInt8]) -> PeerHandshake? {
        guard bytes.count == 68, bytes.starts(with: prefix), let hash = Bytes20(bytes[28..<48]),
            let peer = Bytes20(bytes[48..<68])
        else { return nil }
        var capabilities: PeerHandshake.Capabilities = []
        if bytes[25] & 0x10 != 0 { capabilities.insert(.extensions) }
        if bytes[27] & 4 != 0 { capabilities.insert(.fast) }
        if bytes[27] & 1 != 0 { capabilities.insert(.dht) }
        return PeerHandshake(capabilities: capabilities, infoHash: InfoHash(hash), peerID: PeerID(peer))
    }

    static func append(_ handshake: PeerHandshake, to bytes: inout [UInt8]) {
        bytes += prefix
        var reserved = [UInt8](repeating: 0, count: 8)
        if handshake.capabilities.contains(.extensions) { reserved[5] |= 0x10 }
        if handshake.capabilities.contains(.fast) { reserved[7] |= 4 }
        if handshake.capabilities.contains(.dht) { reserved[7] |= 1 }
        bytes += reserved
        bytes += handshake.infoHash.bytes.bytes
        bytes += handshake.peerID.bytes.bytes
    }

    static func message(_ body: Slice<UnsafeMutableRawBufferPointer>) -> Outcome {
        let bytes = Array(body)
        let rest = bytes.dropFirst()
        func number(_ at: Int) -> UInt32 { bytes[at..<at + 4].reduce(0) { $0 << 8 | UInt32($1) } }
        func block() -> Block { Block(piece: number(1), offset: number(5), length: number(9)) }
        switch (bytes[0], rest.count) {
        case (0, 0): return .message(.choke)
        case (1, 0): return .message(.unchoke)
        case (2, 0): return .message(.interested)
        case (3, 0): return .message(.notInterested)
        case (4, 4): return .message(.have(piece: number(1)))
        case (5, _): return .message(.bitfield(Array(rest)))
        case (6, 12): return .message(.request(block()))
        case (8, 12): return .message(.cancel(block()))
        case (9, 2): return .message(.port(UInt16(bytes[1]) << 8 | UInt16(bytes[2])))
        case (13, 4): return .message(.suggest(piece: number(1)))
        case (14, 0): return .message(.haveAll)
        case (15, 0): return .message(.haveNone)
        case (16, 12): return .message(.reject(block()))
        case (17, 4): return .message(.allowedFast(piece: number(1)))
        case (20, 1...): return .message(.extended(id: bytes[1], payload: Array(rest.dropFirst())))
        case (0...9, _), (13...17, _), (20, _): return .malformed
        default: return .unknown
        }
    }

    static func append(_ message: PeerMessage, to bytes: inout [UInt8]) {
        func head(_ length: Int, _ id: UInt8) {
            number(UInt32(length))
            bytes.append(id)
        }
        func number(_ value: UInt32) {
            for shift: UInt32 in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
        }
        func block(_ id: UInt8, _ block: Block) {
            head(13, id)
            number(block.piece)
            number(block.offset)
            number(block.length)
        }
        switch message {
        case .keepAlive: number(0)
        case .choke: head(1, 0)
        case .unchoke: head(1, 1)
        case .interested: head(1, 2)
        case .notInterested: head(1, 3)
        case .have(let piece): head(5, 4); number(piece)
        case .bitfield(let bits): head(1 + bits.count, 5); bytes += bits
        case .request(let asked): block(6, asked)
        case .piece(let sent): head(9 + Int(sent.length), 7); number(sent.piece); number(sent.offset)
        case .cancel(let asked): block(8, asked)
        case .port(let port): head(3, 9); bytes += [UInt8(port >> 8), UInt8(truncatingIfNeeded: port)]
        case .suggest(let piece): head(5, 13); number(piece)
        case .haveAll: head(1, 14)
        case .haveNone: head(1, 15)
        case .reject(let asked): block(16, asked)
        case .allowedFast(let piece): head(5, 17); number(piece)
        case .extended(let id, let payload): head(2 + payload.count, 20); bytes.append(id); bytes += payload
        }
    }
}
