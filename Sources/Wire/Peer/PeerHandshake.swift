// The first 68 bytes that a peer says (BEP 3, "handshake").

import Primitives

/// The first 68 bytes that a peer says: who it is, which torrent it wants, and what else it understands.
public struct PeerHandshake: Sendable, Hashable {
    /// 1 + 19 + 8 + 20 + 20. The first 48 are sent before the peer id by some, who wait for ours first.
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
