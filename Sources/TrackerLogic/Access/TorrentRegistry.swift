// The torrents that the tracker knows by name.

import Primitives
import Wire

/// The torrents that the tracker knows by name: replicated, changed by updates alone.
public struct TorrentRegistry: Sendable {
    private var torrents: FlatTable<RegisteredTorrent>
    private let secret: UInt64
    /// The sum of the fingerprints of all torrents, in no order.
    public private(set) var digest: UInt64 = 0

    /// An empty registry; `secret` keys the hashes of its table.
    public init(secret: UInt64) {
        self.secret = secret
        torrents = FlatTable(secret: secret)
    }

    /// An empty registry under the same secret.
    var emptied: TorrentRegistry { TorrentRegistry(secret: secret) }

    /// How many torrents are known by name.
    public var count: Int { torrents.count }

    /// All torrents, in an order that means nothing.
    public var all: [RegisteredTorrent] { torrents.records }

    /// The torrent with this info hash; nil where it is not known by name.
    public func find(_ infoHash: InfoHash) -> RegisteredTorrent? {
        torrents.find(RegisteredTorrent(infoHash: infoHash, name: "", byteCount: 0))
    }

    mutating func put(_ torrent: RegisteredTorrent) {
        if let old = torrents.put(torrent) { digest &-= fingerprint(old) }
        digest &+= fingerprint(torrent)
    }

    mutating func remove(_ infoHash: InfoHash) {
        let key = RegisteredTorrent(infoHash: infoHash, name: "", byteCount: 0)
        if let old = torrents.remove(key) { digest &-= fingerprint(old) }
    }

    private func fingerprint(_ torrent: RegisteredTorrent) -> UInt64 {
        folded(torrent.keyHash(secret) ^ torrent.byteCount, hash(torrent.name.utf8, secret: secret))
    }
}

extension RegisteredTorrent: FlatRecord {
    /// A hash of the info hash.
    public func keyHash(_ secret: UInt64) -> UInt64 { infoHash.bytes.hash(key: secret) }
    /// Whether the other torrent has the same info hash.
    public func hasSameKey(as other: Self) -> Bool { infoHash == other.infoHash }
}

extension TorrentRegistry {
    mutating func walk(_ archive: inout Archive) {
        archive.walk(table: &torrents)
        digest.walk(&archive)
    }
}
