// The announce over HTTP: what a client asks (BEP 3, "trackers"; BEP 7, 23, 27).

import Primitives

/// The query string of an announce, read.
///
/// Deviations: `uploaded` and `downloaded` may be absent and are then 0, since nothing but statistics rests on them
/// and small clients leave them out; `event` and the flags never make an announce fail.
public struct HTTPAnnounceRequest: Sendable, Hashable {
    /// Bytes of a query string that are read.
    ///
    /// libtorrent's longest has about 700; the rest is room for a passkey and for keys that we do not know.
    public static let maxQueryByteCount = 4_096
    /// Bytes of an opaque value: libtorrent's `key` has 8, a passkey commonly 32.
    ///
    /// A longer passkey is refused; a longer `key` or `trackerid` is ours or nobody's, and counts as absent. None is
    /// cut, so that no two become one.
    public static let maxOpaqueByteCount = 64

    /// Of the swarm that is announced to.
    public var infoHash: InfoHash
    /// The same in all announces of one download.
    public var peerID: PeerID
    /// Where the peer listens; never 0.
    public var port: UInt16
    /// Bytes uploaded since the client sent `started`.
    public var uploaded: UInt64
    /// Bytes downloaded since the client sent `started`.
    public var downloaded: UInt64
    /// Bytes still to be had; some clients say 2⁶⁴ − 1 while they have only a magnet link.
    public var left: UInt64
    /// What we do not know, such as BEP 21's `paused`, is `none`.
    public var event: AnnounceEvent
    /// Peers wanted; nil for the default, which any negative number asks for too.
    public var numWant: Int?
    /// BEP 23; nil where the client does not care, which since BEP 23 suggests the compact form.
    public var compact: Bool?
    /// In the dictionary form, leave the peer ids out.
    public var noPeerID: Bool
    /// Tells, with the peer id, that announces over IPv4 and IPv6 are one client's (BEP 7); opaque.
    public var key: [UInt8]?
    /// What the tracker gave as `tracker id` before; opaque.
    public var trackerID: [UInt8]?
    /// BEP 27: whose announce it is, where the tracker is private and the key stands in the query.
    public var passkey: [UInt8]?
    /// `ip`: an address that the client claims.
    ///
    /// Believed only from trusted senders; names are not looked up.
    public var claimedAddress: SocketAddress?
    /// `ipv4`, as former versions of BEP 7 had it: likewise a claim.
    public var claimedIPv4: SocketAddress?
    /// `ipv6`, likewise.
    public var claimedIPv6: SocketAddress?

    /// Takes the fields as they are; for clients and tests, which set the claimed addresses afterwards.
    public init(
        infoHash: InfoHash, peerID: PeerID, port: UInt16, uploaded: UInt64 = 0, downloaded: UInt64 = 0, left: UInt64,
        event: AnnounceEvent = .none, numWant: Int? = nil, compact: Bool? = true, noPeerID: Bool = false,
        key: [UInt8]? = nil, trackerID: [UInt8]? = nil, passkey: [UInt8]? = nil
    ) {
        self.infoHash = infoHash
        self.peerID = peerID
        self.port = port
        self.uploaded = uploaded
        self.downloaded = downloaded
        self.left = left
        self.event = event
        self.numWant = numWant
        self.compact = compact
        self.noPeerID = noPeerID
        self.key = key
        self.trackerID = trackerID
        self.passkey = passkey
    }

    /// `key` as the 32-bit number that the same client sends over UDP (libtorrent, Transmission and µTorrent write
    /// it in hexadecimal); nil for any other key.
    public var keyNumber: UInt32? {
        guard let key, (1...8).contains(key.count) else { return nil }
        return key.allSatisfy { $0 > UInt8(ascii: "-") }
            ? UInt32(Substring(decoding: key, as: UTF8.self), radix: 16) : nil
    }
}

// MARK: - Decoding

extension HTTPAnnounceRequest {
    /// Reads what stands behind the `?` of an announce URL.
    ///
    /// - Parameter query: raw, still percent-encoded bytes; at most `maxQueryByteCount`.
    /// - Throws: `HTTPRequestError`, whose `failureReason` may be sent to the client.
    /// - SeeAlso: BEP 3, "trackers"; BEP 7; BEP 23; BEP 27.
    public init(query: [UInt8]) throws(HTTPRequestError) {
        guard query.count <= HTTPAnnounceRequest.maxQueryByteCount else {
            throw .tooLong(limit: HTTPAnnounceRequest.maxQueryByteCount)
        }
        var draft = Draft()
        for (key, value) in HTTPQuery(query) { try draft.take(key, value) }
        guard let infoHash = draft.infoHash else { throw .missing(.infoHash) }
        guard let peerID = draft.peerID else { throw .missing(.peerID) }
        guard let port = draft.port else { throw .missing(.port) }
        guard port != 0 else { throw .portZero }
        guard let left = draft.left else { throw .missing(.left) }
        self.init(
            infoHash: InfoHash(infoHash), peerID: PeerID(peerID), port: port, uploaded: draft.uploaded ?? 0,
            downloaded: draft.downloaded ?? 0, left: left, event: draft.event ?? .none, numWant: draft.numWant,
            compact: draft.compact, noPeerID: draft.noPeerID, key: draft.key, trackerID: draft.trackerID,
            passkey: draft.passkey)
        claimedAddress = HTTPAnnounceRequest.address(draft.ip, port: port)
        claimedIPv4 = HTTPAnnounceRequest.address(draft.ipv4, port: port).flatMap { $0.isIPv4 ? $0 : nil }
        claimedIPv6 = HTTPAnnounceRequest.address(draft.ipv6, port: port).flatMap { $0.isIPv4 ? nil : $0 }
    }

    /// What has been read of a query so far.
    private struct Draft {
        var infoHash: Bytes20?
        var peerID: Bytes20?
        var port: UInt16?
        var uploaded: UInt64?
        var downloaded: UInt64?
        var left: UInt64?
        var event: AnnounceEvent?
        var numWant: Int?
        var compact: Bool?
        var noPeerID = false
        var key: [UInt8]?
        var trackerID: [UInt8]?
        var passkey: [UInt8]?
        var ip: ArraySlice<UInt8>?
        var ipv4: ArraySlice<UInt8>?
        var ipv6: ArraySlice<UInt8>?

        /// What says who announces what is read once; of the rest the last counts, as libtorrent repeats `ipv6`.
        mutating func take(_ key: HTTPRequestKey, _ value: ArraySlice<UInt8>) throws(HTTPRequestError) {
            switch key {
            case .infoHash: try Draft.fill(&infoHash, key, try key.bytes20(value))
            case .peerID: try Draft.fill(&peerID, key, try key.bytes20(value))
            case .port: try Draft.fill(&port, key, try key.number(value))
            case .uploaded: try Draft.fill(&uploaded, key, try key.number(value))
            case .downloaded: try Draft.fill(&downloaded, key, try key.number(value))
            case .left: try Draft.fill(&left, key, try key.number(value))
            case .event: event = HTTPAnnounceRequest.event(value)
            case .numWant: numWant = try HTTPAnnounceRequest.numWant(value)
            case .compact: compact = HTTPAnnounceRequest.flag(value)
            case .noPeerID: noPeerID = HTTPAnnounceRequest.flag(value) ?? false
            case .key: self.key = try HTTPAnnounceRequest.opaque(key, value)
            case .trackerID: trackerID = try HTTPAnnounceRequest.opaque(key, value)
            case .passkey: passkey = try key.passkey(value)
            case .ip: ip = value
            case .ipv4: ipv4 = value
            case .ipv6: ipv6 = value
            }
        }

        private static func fill<Value>(
            _ slot: inout Value?, _ key: HTTPRequestKey, _ value: Value
        ) throws(HTTPRequestError) {
            guard slot == nil else { throw .repeated(key) }
            slot = value
        }
    }

    private static func event(_ value: ArraySlice<UInt8>) -> AnnounceEvent {
        if value.elementsEqual("started".utf8) { return .started }
        if value.elementsEqual("completed".utf8) { return .completed }
        if value.elementsEqual("stopped".utf8) { return .stopped }
        return .none
    }

    /// Signed, as over UDP: whatever is negative asks for the default, and so does nothing at all.
    private static func numWant(_ value: ArraySlice<UInt8>) throws(HTTPRequestError) -> Int? {
        guard !value.isEmpty else { return nil }
        guard value.first == UInt8(ascii: "-") else { return try HTTPRequestKey.numWant.number(value) }
        _ = try HTTPRequestKey.numWant.number(value.dropFirst(), as: Int.self)
        return nil
    }

    private static func flag(_ value: ArraySlice<UInt8>) -> Bool? {
        if value.elementsEqual("1".utf8) { return true }
        if value.elementsEqual("0".utf8) { return false }
        return nil
    }

    private static func opaque(
        _ key: HTTPRequestKey, _ value: ArraySlice<UInt8>
    ) throws(HTTPRequestError) -> [UInt8]? {
        let bytes = try key.decoded(value)
        return (1...maxOpaqueByteCount).contains(bytes.count) ? bytes : nil
    }

    /// Reads `192.0.2.1`, `192.0.2.1:6881`, `2001:db8::1` or `[2001:db8::1]:6881`.
    ///
    /// - Returns: nil for anything else, names included: a claim is a wish, and no reason to refuse an announce.
    private static func address(_ value: ArraySlice<UInt8>?, port: UInt16) -> SocketAddress? {
        // Three times the longest IPv6 address, should each of its characters come encoded.
        guard let value, value.count <= 160, let bytes = PercentEncoding.decoded(value) else { return nil }
        let colons = bytes.count { $0 == UInt8(ascii: ":") }
        let isBracketed = bytes.first == UInt8(ascii: "[")
        var host = bytes[...]
        var port = port
        if isBracketed || colons == 1 {
            let end = isBracketed ? UInt8(ascii: "]") : UInt8(ascii: ":")
            host = (isBracketed ? bytes.dropFirst() : bytes[...]).prefix { $0 != end }
            var rest = bytes[host.endIndex...]
            if isBracketed {
                guard rest.first == end else { return nil }
                rest = rest.dropFirst()
            }
            if let colon = rest.first {
                guard colon == UInt8(ascii: ":"), let number: UInt16 = try? HTTPRequestKey.ip.number(rest.dropFirst()),
                    number != 0
                else { return nil }
                port = number
            }
        }
        return SocketAddress(host: Substring(decoding: host, as: UTF8.self), port: port)
    }
}

// MARK: - Encoding

extension HTTPAnnounceRequest {
    /// The query string, to be put behind the `?` of an announce URL, or behind an `&` where it has a query already.
    public func encodedQuery() -> [UInt8] {
        var query: [UInt8] = []
        func add(_ key: HTTPRequestKey, _ value: some Sequence<UInt8>) {
            if !query.isEmpty { query.append(UInt8(ascii: "&")) }
            query.append(contentsOf: key.rawValue.utf8)
            query.append(UInt8(ascii: "="))
            PercentEncoding.append(value, to: &query)
        }
        func add(_ key: HTTPRequestKey, _ number: some FixedWidthInteger) { add(key, String(number).utf8) }
        add(.infoHash, infoHash.bytes.bytes)
        add(.peerID, peerID.bytes.bytes)
        add(.port, port)
        add(.uploaded, uploaded)
        add(.downloaded, downloaded)
        add(.left, left)
        switch event {
        case .none: break
        case .started: add(.event, "started".utf8)
        case .completed: add(.event, "completed".utf8)
        case .stopped: add(.event, "stopped".utf8)
        }
        if let numWant { add(.numWant, numWant) }
        if let compact { add(.compact, compact ? 1 : 0) }
        if noPeerID { add(.noPeerID, 1) }
        if let key { add(.key, key) }
        if let trackerID { add(.trackerID, trackerID) }
        if let passkey { add(.passkey, passkey) }
        if let claimedAddress { add(.ip, HTTPAnnounceRequest.text(claimedAddress, port: port)) }
        if let claimedIPv4 { add(.ipv4, HTTPAnnounceRequest.text(claimedIPv4, port: port)) }
        if let claimedIPv6 { add(.ipv6, HTTPAnnounceRequest.text(claimedIPv6, port: port)) }
        return query
    }

    /// The port is said only where it differs from the one announced.
    private static func text(_ address: SocketAddress, port: UInt16) -> String.UTF8View {
        var address = address
        address.scope = 0
        return (address.port == port ? address.host : address.description).utf8
    }
}
