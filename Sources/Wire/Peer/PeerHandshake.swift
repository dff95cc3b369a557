// The first 68 bytes that a peer says (BEP 3, "handshake").

import Primitives

/// The first 68 bytes that a peer says: who it is, which torrent it wants, and what else it understands.
public struct PeerHandshake: Sendable, Hashable {
    /// 1 + 19 + 8 + 20 + 20; some send the first 48, and wait for ours before they send their peer id.
    public static let byteCount = 68

    /// What a peer understands besides BEP 3; of the 64 bits those that are known.
    public struct Capabilities: OptionSet, Sendable, Hashable {
        /// One bit a capability, which no wire knows.
        public let rawValue: UInt8

        /// A set of the bits below.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The extension protocol (BEP 10).
        public static let extensions = Capabilities(rawValue: 1)
        /// The fast extension (BEP 6).
        public static let fast = Capabilities(rawValue: 2)
        /// A DHT node (BEP 5).
        public static let dht = Capabilities(rawValue: 4)
    }

    /// What the sender understands besides BEP 3.
    public var capabilities: Capabilities
    /// The torrent that is wanted.
    public var infoHash: InfoHash
    /// What the sender calls itself.
    public var peerID: PeerID

    /// Takes the fields as they are.
    public init(capabilities: Capabilities, infoHash: InfoHash, peerID: PeerID) {
        self.capabilities = capabilities
        self.infoHash = infoHash
        self.peerID = peerID
    }
}

// MARK: - Codec

extension PeerHandshake {
    /// Why the first bytes of a connection are no handshake.
    public enum Malformed: Error, Sendable, Hashable {
        /// There are fewer than 68.
        case short
        /// They do not begin with `\u{13}BitTorrent protocol`: another protocol, or an encrypted connection.
        case otherProtocol
    }

    /// How many bytes name the torrent; what follows is the peer id.
    public static let headByteCount = 48

    static let protocolName: [UInt8] = [19] + Array("BitTorrent protocol".utf8)

    /// Appends the 68 bytes.
    public func encode(into bytes: inout [UInt8]) {
        bytes.append(contentsOf: Self.protocolName)
        var reserved: [UInt8] = Array(repeating: 0, count: 8)
        if capabilities.contains(.extensions) { reserved[5] |= 0x10 }
        if capabilities.contains(.fast) { reserved[7] |= 0x04 }
        if capabilities.contains(.dht) { reserved[7] |= 0x01 }
        bytes.append(contentsOf: reserved)
        bytes.append(infoHash.bytes)
        bytes.append(peerID.bytes)
    }

    /// Whether bytes may yet become a handshake: as many as there are agree.
    public static func mayBegin(with bytes: some Collection<UInt8>) -> Bool {
        zip(bytes, protocolName).allSatisfy { $0 == $1 }
    }

    /// The torrent that a handshake names, as soon as its first 48 bytes are here; nil before.
    ///
    /// - Throws: `Malformed.otherProtocol`.
    public static func infoHash(in bytes: [UInt8]) throws(Malformed) -> InfoHash? {
        guard mayBegin(with: bytes) else { throw .otherProtocol }
        guard bytes.count >= headByteCount else { return nil }
        return Bytes20(bytes[28..<48]).map { InfoHash($0) }
    }

    /// Reads the first 68 bytes; what follows is left alone.
    ///
    /// - Throws: `Malformed`.
    /// - SeeAlso: BEP 3, "handshake"; BEP 4 for the reserved bits.
    public init(decoding bytes: [UInt8]) throws(Malformed) {
        guard Self.mayBegin(with: bytes) else { throw .otherProtocol }
        guard bytes.count >= Self.byteCount, let hash = Bytes20(bytes[28..<48]), let id = Bytes20(bytes[48..<68]) else {
            throw .short
        }
        var capabilities = Capabilities()
        if bytes[25] & 0x10 != 0 { capabilities.insert(.extensions) }
        if bytes[27] & 0x04 != 0 { capabilities.insert(.fast) }
        if bytes[27] & 0x01 != 0 { capabilities.insert(.dht) }
        self.init(capabilities: capabilities, infoHash: InfoHash(hash), peerID: PeerID(id))
    }
}
