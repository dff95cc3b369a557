// What a table keeps for speed, looked at: counts, orders and indexes must be what a search would find.

import Primitives
import Wire

extension SwarmTable {
    /// Looks whether all that is kept for speed is what it stands for: for simulated worlds and tests.
    ///
    /// - Returns: the first thing that is not, in words; nil where all is right.
    /// - Complexity: O(peers · peers of a small swarm).
    package func audit() -> String? {
        var sum = TableCounts()
        var addresses: [SocketAddress] = []
        for (number, shard) in shards.enumerated() {
            sum.torrents += shard.torrents.count
            for (slot, torrent) in shard.torrents.enumerated() {
                let hash = torrent.infoHash.bytes.hash(key: key)
                guard self.shard(hash) == number, shard.find(torrent.infoHash, hash: hash) == slot else {
                    return "torrent \(torrent.infoHash) in slot \(slot) of shard \(number) is not found there"
                }
                guard (torrent.emptySince != 0) == torrent.isEmpty else {
                    return "torrent \(torrent.infoHash) is empty since \(torrent.emptySince), and has "
                        + "\(torrent.ipv4.count + torrent.ipv6.count) peers"
                }
                let fault =
                    shard.ipv4.audit(torrent.ipv4, key, &addresses) ?? shard.ipv6.audit(torrent.ipv6, key, &addresses)
                if let fault { return "torrent \(torrent.infoHash): \(fault)" }
                sum.peersIPv4 += Int(torrent.ipv4.count)
                sum.peersIPv6 += Int(torrent.ipv6.count)
                sum.seeders += Int(torrent.counts.seeders)
            }
            let (four, six) = (
                shard.ipv4.auditRoom(shard.torrents.map { $0.ipv4 }),
                shard.ipv6.auditRoom(shard.torrents.map { $0.ipv6 })
            )
            if let fault = four ?? six ?? shard.auditContents(key: key) { return "shard \(number): \(fault)" }
        }
        guard sum == counts else {
            return "the table counts \(counts.torrents) torrents, \(counts.peersIPv4) and \(counts.peersIPv6) peers, "
                + "\(counts.seeders) seeders, and has \(sum.torrents), \(sum.peersIPv4), \(sum.peersIPv6) and "
                + "\(sum.seeders)"
        }
        for address in addresses {
            let count = addresses.reduce(0) { $0 + ($1.isSameHolder(as: address) ? 1 : 0) }
            guard peers(at: address) == count else {
                return "\(peers(at: address)) peers are counted at \(address), \(count) are there"
            }
        }
        return nil
    }
}

extension SocketAddress {
    /// Whether whoever has this address has the other one: IPv4 by the address, IPv6 by its first 64 bits.
    fileprivate func isSameHolder(as other: SocketAddress) -> Bool {
        isIPv4 ? other.isIPv4 && ipv4 == other.ipv4 : !other.isIPv4 && high == other.high
    }
}

extension PeerStore {
    /// Looks at the peers of a swarm, and notes their addresses.
    fileprivate func audit(_ list: PeerList, _ key: UInt64, _ addresses: inout [SocketAddress]) -> String? {
        if list.isLarge, Int(list.count) <= PeerStore.shrinkCount { return "\(list.count) peers are a large swarm" }
        if !list.isLarge, Int(list.count) > BlockPool<Peer<Endpoint>>.largest { return "\(list.count) peers are small" }
        for position in 0..<Int(list.count) {
            let peer = peer(list, at: position)
            guard peer.isSeeder == (position >= list.leechers) else {
                return "peer \(position) of \(list.count) is \(peer.isSeeder ? "a seeder" : "a leecher"), of "
                    + "\(list.leechers) leechers"
            }
            guard self.position(of: peer.endpoint, in: list, key: key) == position else {
                return "peer \(position) is not found there"
            }
            addresses.append(peer.endpoint.socketAddress)
        }
        return nil
    }

    /// Looks at the room of all swarms of a shard: each has its own, and what nobody has is free.
    fileprivate func auditRoom(_ lists: [PeerList]) -> String? {
        var isTaken = Array(repeating: false, count: pool.records.count)
        var used = 0
        for list in lists where !list.isLarge && list.count > 0 {
            let size = BlockPool<Peer<Endpoint>>.capacity(BlockPool<Peer<Endpoint>>.sizeClass(Int(list.count)))
            let start = Int(list.place)
            guard start + size <= isTaken.count else { return "a block of \(size) at \(start) is beyond the pool" }
            for place in start..<start + size {
                if isTaken[place] { return "two swarms have the place \(place)" }
                isTaken[place] = true
            }
            used += size
        }
        let free = pool.records.count - used
        if pool.freeRecords != free { return "\(pool.freeRecords) places are free, \(free) are" }
        return wantsCompaction ? "\(free) of \(pool.records.count) places lie free" : nil
    }
}
