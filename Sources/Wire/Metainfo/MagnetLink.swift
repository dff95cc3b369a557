// Magnet links: a torrent's name for a web page, without its metainfo (BEP 9, "magnet URI format"; BEP 53).

import Primitives

/// What a magnet link says.
public struct MagnetLink: Sendable, Hashable {
    /// More are left out: each takes some 60 characters of a link that people paste.
    public static let maxTrackerCount = 50
    /// Peers to call, and web seeds, of each; more are left out.
    public static let maxPeerCount = 50
    /// Ranges of files, each perhaps of one; a link with more is refused, so that no file is left out unseen.
    public static let maxSelectionCount = 10_000

    /// Where a peer listens (`x.pe`): a name or an address, without brackets, and a port.
    public struct Peer: Sendable, Hashable {
        /// A name to be looked up, or an address.
        public var host: String
        /// Never 0.
        public var port: UInt16

        /// Takes both as they are.
        public init(host: String, port: UInt16) {
            self.host = host
            self.port = port
        }
    }

    /// The SHA-1 of the info dictionary: v1 and hybrid torrents.
    public var infoHash: InfoHash?
    /// The whole SHA-256 of the info dictionary: v2 and hybrid torrents.
    public var infoHashV2: Bytes32?
    /// The torrent's name, as bytes; empty for none.
    public var displayName: [UInt8]
    /// URLs.
    public var trackers: [String]
    /// Peers to call besides those that trackers tell (`x.pe`).
    public var peers: [Peer] = []
    /// URLs of mirrors (`ws`, BEP 19).
    public var webSeeds: [String] = []
    /// The files that are wanted, by their places in the torrent (`so`, BEP 53); empty for all.
    public var selection: [ClosedRange<Int>] = []

    /// - Parameters:
    ///   - infoHash: for v1 and hybrid torrents.
    ///   - infoHashV2: for v2 and hybrid torrents.
    ///   - displayName: any bytes; none for no name.
    ///   - trackers: URLs, the first `maxTrackerCount` of which are used.
    public init(infoHash: InfoHash?, infoHashV2: Bytes32? = nil, displayName: [UInt8] = [], trackers: [String] = []) {
        precondition(infoHash != nil || infoHashV2 != nil, "a magnet link names at least one info hash")
        self.infoHash = infoHash
        self.infoHashV2 = infoHashV2
        self.displayName = displayName
        self.trackers = trackers
    }

    /// The link of a torrent, with its name and all its trackers.
    ///
    /// - Parameters:
    ///   - metainfo: whose `infoBytes` the caller has hashed.
    ///   - infoHash: their SHA-1, for v1 and hybrid torrents.
    ///   - infoHashV2: their SHA-256, for v2 and hybrid torrents.
    public init(_ metainfo: Metainfo, infoHash: InfoHash?, infoHashV2: Bytes32? = nil) {
        self.init(
            infoHash: infoHash, infoHashV2: infoHashV2, displayName: metainfo.info.name.bytes,
            trackers: metainfo.trackers.flatMap { $0 })
    }

    /// `magnet:?xt=urn:btih:…&dn=…&tr=…`: ASCII, all but unreserved characters percent-encoded.
    ///
    /// - SeeAlso: BEP 9; BEP 52; the multihash prefix `1220` says SHA-256 of 32 bytes.
    public var text: String {
        var parts: [String] = []
        if let infoHash { parts.append("xt=urn:btih:\(infoHash)") }
        if let infoHashV2 { parts.append("xt=urn:btmh:1220\(infoHashV2)") }
        if !displayName.isEmpty { parts.append("dn=\(PercentEncoding.encoded(displayName))") }
        for tracker in trackers.prefix(MagnetLink.maxTrackerCount) {
            parts.append("tr=\(PercentEncoding.encoded(tracker.utf8))")
        }
        for url in webSeeds.prefix(MagnetLink.maxPeerCount) { parts.append("ws=\(PercentEncoding.encoded(url.utf8))") }
        for peer in peers.prefix(MagnetLink.maxPeerCount) {
            let host = peer.host.contains(":") ? "[\(peer.host)]" : peer.host
            parts.append("x.pe=\(PercentEncoding.encoded("\(host):\(peer.port)".utf8))")
        }
        if !selection.isEmpty {
            let ranges = selection.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
            parts.append("so=\(ranges.joined(separator: ","))")
        }
        return "magnet:?" + parts.joined(separator: "&")
    }
}
