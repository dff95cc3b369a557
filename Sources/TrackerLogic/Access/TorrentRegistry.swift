/// The torrents that the tracker knows by name: replicated, changed by updates alone.

import Primitives
import Wire

public struct TorrentRegistry: Sendable {
    private var torrents: FlatTable<RegisteredTorrent>
    private let secret: UInt64
    /// The sum of the fingerprints of all torrents, in no order.
    public private(set) var digest: UInt64 = 0

    public init(secret: UInt64) {
        self.secret = secret
        torrents = FlatTable(secret: secret)
    }

    public var count: Int { torrents.count }

    /// In an order that means nothing.
    public var all: [RegisteredTorrent] { torrents.records }

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
    public func keyHash(_ secret: UInt64) -> UInt64 { infoHash.bytes.hash(key: secret) }
    public func hasSameKey(as other: Self) -> Bool { infoHash == other.infoHash }
}
