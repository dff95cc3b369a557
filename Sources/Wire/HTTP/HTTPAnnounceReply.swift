// The answer to an announce over HTTP, written by trackers and read by clients (BEP 3, 7, 23, 24).

import Primitives

/// What a tracker says besides the peers.
public struct HTTPAnnounceReply: Sendable, Hashable {
    /// Seconds until the next announce.
    public var interval: UInt32
    /// Seconds before which the client is not to announce again, whatever happens.
    public var minInterval: UInt32?
    /// `complete`; nil where a tracker does not say.
    public var seeders: UInt32?
    /// `incomplete`; nil where a tracker does not say.
    public var leechers: UInt32?
    /// `downloaded`: how often the torrent has been completed.
    public var completed: UInt32?
    /// BEP 24: where the tracker sees the client; the port is not sent.
    public var externalIP: SocketAddress?
    /// Bytes for the client to send back with the next announce; opaque.
    public var trackerID: [UInt8]?
    /// For the person behind the client, when all is well otherwise.
    public var warningMessage: String?

    /// Takes the fields as they are.
    public init(
        interval: UInt32, minInterval: UInt32? = nil, seeders: UInt32? = nil, leechers: UInt32? = nil,
        completed: UInt32? = nil, externalIP: SocketAddress? = nil, trackerID: [UInt8]? = nil,
        warningMessage: String? = nil
    ) {
        self.interval = interval
        self.minInterval = minInterval
        self.seeders = seeders
        self.leechers = leechers
        self.completed = completed
        self.externalIP = externalIP
        self.trackerID = trackerID
        self.warningMessage = warningMessage
    }

    /// Encodes a reply in the compact form (BEP 23).
    ///
    /// - Parameters:
    ///   - compactIPv4: 6 bytes a peer, for `peers`, which is always there.
    ///   - compactIPv6: 18 bytes a peer, for `peers6` (BEP 7), which is there unless empty.
    /// - Returns: the body of the HTTP response.
    public func encoded(compactIPv4: [UInt8], compactIPv6: [UInt8] = []) -> [UInt8] {
        precondition(compactIPv4.count.isMultiple(of: CompactIPv4.byteCount), "a compact IPv4 peer has 6 bytes")
        precondition(compactIPv6.count.isMultiple(of: CompactIPv6.byteCount), "a compact IPv6 peer has 18 bytes")
        return encoded { bytes in
            bytes.append(bencoded: compactIPv4)
            if !compactIPv6.isEmpty {
                bytes.append(bencoded: "peers6")
                bytes.append(bencoded: compactIPv6)
            }
        }
    }

    /// Encodes a reply in the dictionary form (BEP 3), in which peers of both families stand side by side.
    ///
    /// - Parameters:
    ///   - peers: in any order; zones are left out.
    ///   - withPeerIDs: false where the client said `no_peer_id=1`.
    /// - Returns: the body of the HTTP response.
    public func encoded(peers: [(PeerID, SocketAddress)], withPeerIDs: Bool) -> [UInt8] {
        encoded { bytes in
            bytes.append(Bencode.list)
            for (peerID, address) in peers {
                var address = address
                address.scope = 0
                bytes.append(Bencode.dictionary)
                bytes.append(bencoded: "ip")
                bytes.append(bencoded: address.host)
                if withPeerIDs {
                    bytes.append(bencoded: "peer id")
                    bytes.append(bencoded: peerID.bytes.bytes)
                }
                bytes.append(bencoded: "port")
                bytes.append(bencoded: Int64(address.port))
                bytes.append(Bencode.end)
            }
            bytes.append(Bencode.end)
        }
    }

    /// Writes the keys in their order as raw bytes, which bencoding demands.
    private func encoded(peers appendPeers: (inout [UInt8]) -> Void) -> [UInt8] {
        var bytes: [UInt8] = [Bencode.dictionary]
        func add(_ key: String, _ number: UInt32?) {
            guard let number else { return }
            bytes.append(bencoded: key)
            bytes.append(bencoded: Int64(number))
        }
        add("complete", seeders)
        add("downloaded", completed)
        if let externalIP {
            bytes.append(bencoded: "external ip")
            bytes.append(bencoded: HTTPAnnounceReply.packed(externalIP))
        }
        add("incomplete", leechers)
        add("interval", interval)
        add("min interval", minInterval)
        bytes.append(bencoded: "peers")
        appendPeers(&bytes)
        if let trackerID {
            bytes.append(bencoded: "tracker id")
            bytes.append(bencoded: trackerID)
        }
        if let warningMessage {
            bytes.append(bencoded: "warning message")
            bytes.append(bencoded: HTTPFailure.cut(warningMessage))
        }
        bytes.append(Bencode.end)
        return bytes
    }

    /// BEP 24: "the IPv4 address as a 32 bit binary or … the IPv6 address as a 128 bit binary".
    private static func packed(_ address: SocketAddress) -> [UInt8] {
        var bytes: [UInt8] = []
        if address.isIPv4 {
            bytes.append(bigEndian: address.ipv4)
        } else {
            bytes.append(bigEndian: address.high)
            bytes.append(bigEndian: address.low)
        }
        return bytes
    }
}

// MARK: - Decoding

/// Why an answer to an announce or a scrape is of no use.
public enum HTTPReplyError: Error, Sendable, Hashable {
    /// The answer is not bencoded: often a web page.
    case notBencoded(BencodeError)
    /// The tracker has refused, and says why.
    case refused(HTTPFailure)
    /// A key that the answer needs is absent, or its value is of another kind.
    case malformed(key: String)
}

extension HTTPReplyError: CustomStringConvertible {
    /// A sentence for a person, which shows the tracker's own words cut and cleaned.
    public var description: String {
        switch self {
        case .notBencoded(let error): "the tracker's answer is not bencoded: \(error)"
        case .refused(let failure): "the tracker refuses: \(failure.reason)"
        case .malformed(let key): "the tracker's answer has no usable “\(key)”"
        }
    }
}

extension HTTPAnnounceReply {
    /// A peer that a tracker names.
    public struct Peer: Sendable, Hashable {
        /// Where the peer is reached; never port 0.
        public var address: SocketAddress
        /// Only in the dictionary form, and not always there.
        public var peerID: PeerID?

        /// Takes the fields as they are.
        public init(address: SocketAddress, peerID: PeerID? = nil) {
            self.address = address
            self.peerID = peerID
        }
    }

    /// Peers that are taken from one reply: five times what a client asks for, where a hostile tracker could send
    /// 170,000.
    public static let maxPeerCount = 1_000

    /// Reads a tracker's answer, in either form; keys may be unsorted, as some trackers send them.
    ///
    /// - Parameter bytes: at most 1 MiB (`BencodeLimits.message`).
    /// - Returns: the reply and up to `maxPeerCount` peers. Peers that have a name instead of an address, or port 0, or
    ///   that are cut short are left out; a missing interval is 1,800 s, as in libtorrent.
    /// - Throws: `HTTPReplyError`; a `failure reason` is thrown as `refused`.
    /// - SeeAlso: BEP 3, BEP 7, BEP 23, BEP 24, BEP 31.
    public static func decode(
        _ bytes: [UInt8]
    ) throws(HTTPReplyError) -> (reply: HTTPAnnounceReply, peers: [Peer]) {
        let root = try HTTPFailure.root(bytes)
        func number(_ key: String) -> UInt32? { root[key]?.integer.map { UInt32(clamping: $0) } }
        var reply = HTTPAnnounceReply(interval: number("interval") ?? 1_800)
        reply.minInterval = number("min interval")
        reply.seeders = number("complete")
        reply.leechers = number("incomplete")
        reply.completed = number("downloaded")
        reply.externalIP = root["external ip"]?.bytes.flatMap { compact($0 + [0, 0]) }
        reply.trackerID = root["tracker id"]?.bytes.map { Array($0.prefix(HTTPAnnounceRequest.maxOpaqueByteCount)) }
        reply.warningMessage = root["warning message"]?.bytes.map(HTTPFailure.text)

        var peers: [Peer] = []
        if let packed = root["peers"]?.bytes { append(packed, byteCount: CompactIPv4.byteCount, to: &peers) }
        if let packed = root["peers6"]?.bytes { append(packed, byteCount: CompactIPv6.byteCount, to: &peers) }
        if let elements = root["peers"]?.elements {
            for element in elements where peers.count < maxPeerCount {
                if let peer = peer(element) { peers.append(peer) }
            }
        }
        return (reply, peers)
    }

    private static func append(_ packed: ArraySlice<UInt8>, byteCount: Int, to peers: inout [Peer]) {
        var rest = packed
        while rest.count >= byteCount, peers.count < maxPeerCount {
            if let address = compact(rest.prefix(byteCount)), address.port != 0 { peers.append(Peer(address: address)) }
            rest = rest.dropFirst(byteCount)
        }
    }

    /// An address and a port, by their length: 6 or 18 bytes.
    private static func compact(_ bytes: ArraySlice<UInt8>) -> SocketAddress? {
        let bytes = Array(bytes)
        switch bytes.count {
        case CompactIPv4.byteCount: return CompactIPv4(bytes.span.bytes, at: 0).socketAddress
        case CompactIPv6.byteCount: return CompactIPv6(bytes.span.bytes, at: 0).socketAddress
        default: return nil
        }
    }

    private static func peer(_ node: BencodeNode) -> Peer? {
        guard let host = node["ip"]?.bytes, let port = node["port"]?.integer.flatMap({ UInt16(exactly: $0) }),
            port != 0, let address = SocketAddress(host: String(decoding: host.prefix(64), as: UTF8.self), port: port)
        else { return nil }
        return Peer(address: address, peerID: node["peer id"]?.bytes.flatMap { Bytes20($0) }.map { PeerID($0) })
    }
}
