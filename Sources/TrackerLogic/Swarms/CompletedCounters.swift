// Completed downloads by the master that counted them.

import Primitives
import Wire

/// How many downloads of a torrent one master has counted: 28 bytes.
struct CompletedCount: Sendable, Hashable {
    var infoHash: InfoHash
    /// The master's id; 0 for what nobody is known to have counted.
    var origin: UInt32
    /// More than 0.
    var count: UInt32
}

extension CompletedCount: FlatRecord {
    fileprivate static func keyHash(_ infoHash: InfoHash, _ origin: UInt32, _ secret: UInt64) -> UInt64 {
        mixed(infoHash.bytes.hash(key: secret) ^ UInt64(origin))
    }

    func keyHash(_ secret: UInt64) -> UInt64 { Self.keyHash(infoHash, origin, secret) }
    func hasSameKey(as other: Self) -> Bool { origin == other.origin && infoHash == other.infoHash }
}

/// The completed downloads of one shard, by the master that counted them.
///
/// In survivor mode, two masters may count at once while they do not hear each other, and a merge must neither lose a
/// download nor count it twice (rule 12).
///
/// A grow-only counter a torrent: each master adds to its own count alone, the larger of two counts of one master is
/// the later, and the torrent's total is the sum over all. What the total was before anybody counted this way is the
/// count of master 0, who does not exist.
struct CompletedCounters: Sendable {
    /// Whose count it is that has no origin.
    static let nobody: UInt32 = 0

    private var counts: FlatTable<CompletedCount>
    /// All masters that have counted anything here, in rising order: as many as trackers of the cluster have ever been
    /// master, which is a handful.
    private var origins: [UInt32] = []
    private let key: UInt64
    /// The sum of all fingerprints, in no order.
    private(set) var digest: UInt64 = 0

    init(key: UInt64) {
        self.key = key
        counts = FlatTable(secret: key)
    }

    /// Of all torrents.
    var count: Int { counts.count }

    /// A torrent's, in rising order of the masters' ids.
    func all(_ infoHash: InfoHash) -> [CompletedCount] {
        origins.compactMap { find(infoHash, origin: $0) }
    }

    func count(_ infoHash: InfoHash, origin: UInt32) -> UInt32 { find(infoHash, origin: origin)?.count ?? 0 }

    private func find(_ infoHash: InfoHash, origin: UInt32) -> CompletedCount? {
        counts.find(keyHash: CompletedCount.keyHash(infoHash, origin, key)) {
            $0.origin == origin && $0.infoHash == infoHash
        }
    }

    /// Counts one download.
    ///
    /// - Returns: by how much the total has grown: 1, but for a count that is at its end.
    mutating func increment(_ infoHash: InfoHash, origin: UInt32) -> UInt32 {
        let old = count(infoHash, origin: origin)
        return old == .max ? 0 : raise(infoHash, origin: origin, to: old + 1)
    }

    /// Takes the larger of two counts of one master.
    ///
    /// - Returns: by how much the total has grown.
    mutating func raise(_ infoHash: InfoHash, origin: UInt32, to count: UInt32) -> UInt32 {
        let new = CompletedCount(infoHash: infoHash, origin: origin, count: count)
        let old = self.count(infoHash, origin: origin)
        guard old < count else { return 0 }
        if let before = counts.put(new) { digest &-= fingerprint(before) }
        digest &+= fingerprint(new)
        if !origins.contains(origin) {
            origins.insert(origin, at: origins.firstIndex { $0 > origin } ?? origins.count)
        }
        return count - old
    }

    /// Forgets the counts of a torrent.
    mutating func remove(_ infoHash: InfoHash) {
        for gone in all(infoHash) {
            counts.remove(gone)
            digest &-= fingerprint(gone)
        }
    }

    private func fingerprint(_ count: CompletedCount) -> UInt64 {
        folded(count.keyHash(key) ^ 0x2545_F491_4F6C_DD1D, UInt64(count.count) | UInt64(count.origin) << 32)
    }

    /// Whether the digest is that of what is there, for who looks whether all is in order.
    var isDigestRight: Bool { counts.records.reduce(0) { $0 &+ fingerprint($1) } == digest }

    var byteCount: Int { counts.byteCount + origins.capacity * MemoryLayout<UInt32>.stride }
}

extension CompletedCounters {
    mutating func walk(_ archive: inout Archive) {
        archive.walk(table: &counts)
        origins.walk(&archive)
        digest.walk(&archive)
    }
}

extension CompletedCount: Archived {
    static var blank: CompletedCount { CompletedCount(infoHash: .blank, origin: 0, count: 0) }

    mutating func walk(_ archive: inout Archive) {
        infoHash.walk(&archive)
        origin.walk(&archive)
        count.walk(&archive)
    }
}
