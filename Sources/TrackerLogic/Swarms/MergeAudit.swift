// What a shard keeps for a merge, looked at.

import Primitives
import Wire

extension Tombstones {
    /// Looks whether stops lie in order and are found.
    ///
    /// - Parameter key: the table's.
    /// - Returns: the first thing that is not so, in words; nil where all is right.
    func audit(key: UInt64) -> String? {
        var sum: UInt64 = 0
        for (slot, stop) in all.enumerated() {
            sum &+= fingerprint(at: slot)
            if slot > 0, isOlder(slot, than: (slot - 1) / 2) { return "a stop of \(stop.time) is below a later one" }
            let found = self.time(stop.infoHash, stop.address, torrent: stop.infoHash.bytes.hash(key: key), key: key)
            guard found == stop.time else { return "the stop of \(stop.address) at \(stop.time) is not found" }
        }
        if indexCount != count { return "\(indexCount) stops are indexed, \(count) are there" }
        return sum == digest ? nil : "the digest of stops is not theirs"
    }
}

extension Shard {
    /// Looks whether the digest is that of what is there, and whether what is kept for a merge goes with it.
    ///
    /// - Parameter key: the table's.
    /// - Returns: the first thing that is not so, in words; nil where all is right.
    func auditContents(key: UInt64) -> String? {
        var sum: UInt64 = 0
        for torrent in torrents {
            let hash = torrent.infoHash.bytes.hash(key: key)
            sum &+= fingerprint(torrent, hash: hash)
            for position in 0..<Int(torrent.ipv4.count) {
                sum &+= ipv4.peer(torrent.ipv4, at: position).fingerprint(torrent: hash, key: key)
            }
            for position in 0..<Int(torrent.ipv6.count) {
                sum &+= ipv6.peer(torrent.ipv6, at: position).fingerprint(torrent: hash, key: key)
            }
        }
        guard sum == fingerprints else { return "the digest of peers and torrents is not theirs" }
        guard let mergeData else { return nil }
        if let fault = mergeData.tombstones.audit(key: key) { return fault }
        if let stop = mergeData.tombstones.all.first(where: { holds($0, key: key) }) {
            return "\(stop.address) has stopped at \(stop.time), and is in swarm \(stop.infoHash)"
        }
        return auditCounters(mergeData.counters)
    }

    /// Whether a peer that has stopped is in its swarm.
    private func holds(_ stop: Tombstone, key: UInt64) -> Bool {
        guard let slot = find(stop.infoHash, hash: stop.infoHash.bytes.hash(key: key)) else { return false }
        if let endpoint = CompactIPv4(stop.address) {
            return ipv4.position(of: endpoint, in: torrents[slot].ipv4, key: key) != nil
        }
        guard let endpoint = CompactIPv6(stop.address) else { return true }
        return ipv6.position(of: endpoint, in: torrents[slot].ipv6, key: key) != nil
    }

    /// The masters' counts add up to what torrents show.
    private func auditCounters(_ counters: CompletedCounters) -> String? {
        var held = 0
        for torrent in torrents {
            let counts = counters.all(torrent.infoHash)
            held += counts.count
            for place in counts.indices.dropFirst() where counts[place].origin <= counts[place - 1].origin {
                return "the count of master \(counts[place].origin) comes behind that of \(counts[place - 1].origin)"
            }
            if counts.contains(where: { $0.count == 0 }) {
                return "a master has counted nothing of \(torrent.infoHash)"
            }
            let sum = counts.reduce(0) { $0 &+ $1.count } as UInt32
            if sum != torrent.completed {
                return "torrent \(torrent.infoHash) shows \(torrent.completed) downloads, its masters counted \(sum)"
            }
        }
        if held != counters.count { return "\(counters.count) counts are kept, \(held) of torrents that are here" }
        return counters.isDigestRight ? nil : "the digest of counts is not theirs"
    }
}
