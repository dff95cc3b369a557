// Messages between peers, to bytes and back; and what is no message.

import PeerLogic
import Primitives
import Testing
import Wire

@Suite("Peer messages")
struct PeerMessageTests {
    static let block = Block(piece: 0x0102_0304, offset: 0x4000, length: 0x4000)
    static let vectors: [(PeerMessage, [UInt8])] = [
        (.keepAlive, [0, 0, 0, 0]),
        (.choke, [0, 0, 0, 1, 0]),
        (.unchoke, [0, 0, 0, 1, 1]),
        (.interested, [0, 0, 0, 1, 2]),
        (.notInterested, [0, 0, 0, 1, 3]),
        (.have(piece: 258), [0, 0, 0, 5, 4, 0, 0, 1, 2]),
        (.bitfield([0x80, 0x01]), [0, 0, 0, 3, 5, 0x80, 1]),
        (.request(block), [0, 0, 0, 13, 6, 1, 2, 3, 4, 0, 0, 0x40, 0, 0, 0, 0x40, 0]),
        (.cancel(block), [0, 0, 0, 13, 8, 1, 2, 3, 4, 0, 0, 0x40, 0, 0, 0, 0x40, 0]),
        (.port(6881), [0, 0, 0, 3, 9, 0x1A, 0xE1]),
        (.suggest(piece: 7), [0, 0, 0, 5, 13, 0, 0, 0, 7]),
        (.haveAll, [0, 0, 0, 1, 14]),
        (.haveNone, [0, 0, 0, 1, 15]),
        (.reject(block), [0, 0, 0, 13, 16, 1, 2, 3, 4, 0, 0, 0x40, 0, 0, 0, 0x40, 0]),
        (.allowedFast(piece: 9), [0, 0, 0, 5, 17, 0, 0, 0, 9]),
        (.extended(id: 3, payload: [1, 2]), [0, 0, 0, 4, 20, 3, 1, 2]),
    ]

    @Test(arguments: vectors.indices)
    func `a message has the bytes that the specifications say, and comes back from them`(index: Int) throws {
        let (message, expected) = Self.vectors[index]
        var bytes: [UInt8] = []
        message.encode(into: &bytes)
        #expect(bytes == expected)
        // A further message behind it is left alone.
        let stream = expected + [0, 0]
        #expect(try PeerMessage.read(stream.span.bytes, from: 0) == .message(message, byteCount: expected.count))
        // Cut at every byte, it asks for more, and never for more than there is to come.
        for count in expected.indices {
            guard case .needs(let more) = try PeerMessage.read(Array(expected[..<count]).span.bytes, from: 0) else {
                Issue.record("cut at \(count)")
                continue
            }
            #expect(more > count && more <= expected.count)
        }
    }

    @Test func `a block's head is told before its payload`() throws {
        var bytes: [UInt8] = []
        PeerMessage.piece(Self.block).encode(into: &bytes)
        #expect(bytes == [0, 0, 0x40, 9, 7, 1, 2, 3, 4, 0, 0, 0x40, 0])
        #expect(try PeerMessage.read(bytes.span.bytes, from: 0) == .block(Self.block))
        #expect(try PeerMessage.read(Array(bytes.dropLast()).span.bytes, from: 0) == .needs(13))
    }

    static let breaches: [([UInt8], PeerMessage.Malformed)] = [
        ([0xFF, 0xFF, 0xFF, 0xFF, 20], .tooLong(0xFFFF_FFFF)),
        ([0x7F, 0, 0, 0, 7], .wrongLength(id: 7, 0x7F00_0000)),
        ([0, 0, 0, 9, 7], .wrongLength(id: 7, 9)),
        ([0, 2, 0, 10, 7], .wrongLength(id: 7, 131_082)),
        ([0, 0, 0, 2, 0, 0], .wrongLength(id: 0, 2)),
        ([0, 0, 0, 4, 4, 0, 0, 0], .wrongLength(id: 4, 4)),
        ([0, 0, 0, 1, 20], .wrongLength(id: 20, 1)),
        ([0, 0x10, 0, 0, 0], .wrongLength(id: 0, 1 << 20)),
        ([0, 0, 0, 12, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], .wrongLength(id: 6, 12)),
    ]

    @Test(arguments: breaches.indices)
    func `what is no message is told as early as it can be known`(index: Int) {
        let (bytes, expected) = Self.breaches[index]
        #expect(throws: expected) { try PeerMessage.read(bytes.span.bytes, from: 0) }
    }

    @Test func `an unknown message is passed over, whatever of it is here`() throws {
        let long: [UInt8] = [0, 1, 0, 3, 99]
        #expect(try PeerMessage.read(long.span.bytes, from: 0) == .unknown(byteCount: 65_543))
        #expect(
            try PeerMessage.read(([0, 0, 0, 3, 99, 1, 2] as [UInt8]).span.bytes, from: 0) == .unknown(byteCount: 7))
    }

    @Test func `whatever a stranger sends is read or refused`() {
        var random = RandomStream(seed: 14)
        var readings = 0
        for round in 0..<50_000 {
            var bytes = Self.vectors[random.below(Self.vectors.count)].1 + [0, 0, 0, 0]
            for _ in 0..<1 + round % 3 { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
            if (try? PeerMessage.read(bytes.span.bytes, from: 0)) != nil { readings += 1 }
        }
        #expect(readings > 1_000 && readings < 50_000)
    }

    // MARK: - Handshake

    @Test func `a handshake names torrent and peer, and what the sender understands`() throws {
        let handshake = PeerHandshake(
            capabilities: [.extensions, .fast], infoHash: InfoHash(Bytes20(Array(1...20))!),
            peerID: PeerID(Bytes20(Array(21...40))!))
        var bytes: [UInt8] = []
        handshake.encode(into: &bytes)
        #expect(bytes.count == 68)
        #expect(Array(bytes[20..<28]) == [0, 0, 0, 0, 0, 0x10, 0, 0x04])
        #expect(try PeerHandshake(decoding: bytes + [1, 2, 3]) == handshake)
        #expect(try PeerHandshake.infoHash(in: Array(bytes[..<47])) == nil)
        #expect(try PeerHandshake.infoHash(in: Array(bytes[..<48])) == handshake.infoHash)
        #expect(throws: PeerHandshake.Malformed.short) { try PeerHandshake(decoding: Array(bytes[..<67])) }
        bytes[5] ^= 1
        #expect(throws: PeerHandshake.Malformed.otherProtocol) { try PeerHandshake.infoHash(in: Array(bytes[..<8])) }
    }

    // MARK: - Extensions

    @Test func `an extension handshake comes back as it was said`() throws {
        var handshake = ExtensionHandshake()
        handshake.metadataID = 1
        handshake.peerExchangeID = 2
        handshake.dontHaveID = 7
        handshake.client = "Swarmkeeper 1"
        handshake.listenPort = 6881
        handshake.requestQueue = 500
        handshake.metadataByteCount = 12_345
        handshake.yourAddress = SocketAddress(ipv4: 0x0A00_0001, port: 0)
        handshake.isUploadOnly = true
        #expect(try ExtensionHandshake(decoding: handshake.encoded()) == handshake)
    }

    @Test(arguments: ["", "i1e", "le", "d1:m", "d1:md11:ut_metadatai999eee", "d4:reqqi-5ee"])
    func `absurd extension handshakes are refused, or what is absurd in them passed over`(text: String) {
        let said = try? ExtensionHandshake(decoding: Array(text.utf8))
        if let said { #expect(said.metadataID == nil && (said.requestQueue ?? 0) == 0) }
        #expect((said != nil) == (text.hasPrefix("d") && text.hasSuffix("e")))
    }

    @Test func `metadata messages come back as they were said`() throws {
        for message in [
            MetadataMessage.request(part: 3), .reject(part: 0),
            .data(part: 1, totalByteCount: 20_000, bytes: [1, 2, 3]),
        ] { #expect(try MetadataMessage(decoding: message.encoded()) == message) }
        #expect(throws: MalformedExtension.self) {
            try MetadataMessage(decoding: Array("d8:msg_typei0e5:piecei-1ee".utf8))
        }
        #expect(try MetadataMessage(decoding: Array("d8:msg_typei9e5:piecei1ee".utf8)) == .unknown)
    }

    @Test func `peers of both families are exchanged`() throws {
        let exchange = PeerExchange(
            added: [SocketAddress(ipv4: 0x7F00_0001, port: 1), SocketAddress(high: 1, low: 2, port: 3)],
            dropped: [SocketAddress(ipv4: 5, port: 6)])
        #expect(try PeerExchange(decoding: exchange.encoded()) == exchange)
        let ragged = BencodeValue.dictionary([.init("added", .bytes([1, 2, 3, 4, 5]))]).encoded()
        #expect(try PeerExchange(decoding: ragged) == PeerExchange(added: [], dropped: []))
        let flood = BencodeValue.dictionary([.init("added", .bytes(Array(repeating: 9, count: 6 * 5_000)))]).encoded()
        #expect(try PeerExchange(decoding: flood).added.count == PeerExchange.maxCount)
    }

    // MARK: - Bitfields

    @Test func `the first piece is the highest bit, and spare bits are zero`() {
        var bits = Bitfield(count: 10)
        bits.insert(0)
        bits.insert(9)
        #expect(bits.wire == [0x80, 0x40])
        #expect(Bitfield(wire: [0x80, 0x40], count: 10) == bits)
        #expect(Bitfield(wire: [0x80, 0x41], count: 10) == nil)
        #expect(Bitfield(wire: [0x80], count: 10) == nil)
        #expect(Bitfield(wire: [0x80, 0x40, 0], count: 10) == nil)
        #expect(Bitfield(count: 70, isFull: true).wire == Array(repeating: 0xFF, count: 8) + [0xFC])
    }
}
