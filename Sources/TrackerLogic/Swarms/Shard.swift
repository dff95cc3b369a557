/// One part of the swarm table: the torrents whose keyed hash falls into it, with their peers.
///
/// A shard is the unit of growth, of expiry and of the snapshot, so that none of them holds up the node for long.

import Primitives
import Wire

/// A torrent with its counts: 52 bytes.
struct Torrent: Sendable {
    var infoHash: InfoHash
    /// Downloads completed.
    var completed: UInt32 = 0
    var ipv4 = PeerList()
    var ipv6 = PeerList()
    /// Cluster time at which the last peer left, in seconds since 1970; 0 while there are peers.
    var emptySince: UInt32 = 0

    var counts: SwarmCounts {
        SwarmCounts(
            seeders: ipv4.seeders + ipv6.seeders, leechers: UInt32(ipv4.leechers + ipv6.leechers),
            completed: completed)
    }

    var isEmpty: Bool { ipv4.count == 0 && ipv6.count == 0 }
}

struct Shard: Sendable {
    private(set) var torrents: [Torrent] = []
    private(set) var ipv4 = PeerStore<CompactIPv4>()
    private(set) var ipv6 = PeerStore<CompactIPv6>()
    private var index = SlotIndex()
    /// The sum of all fingerprints, in no order: equal for equal contents.
    private(set) var digest: UInt64 = 0

    /// - Parameter hash: the info hash's, under the table's key.
    func find(_ infoHash: InfoHash, hash: UInt64) -> Int? {
        index.find(UInt32(truncatingIfNeeded: hash)) { torrents[$0].infoHash == infoHash }
    }

    mutating func insert(_ infoHash: InfoHash, hash: UInt64) -> Int {
        let slot = torrents.count
        if slot == torrents.capacity { torrents.reserveCapacity(slot + slot / 8 + 4) }
        torrents.append(Torrent(infoHash: infoHash))
        index.insert(UInt32(truncatingIfNeeded: hash), slot: slot)
        return slot
    }

    /// Removes a torrent that has no peers.
    mutating func remove(_ slot: Int, key: UInt64) {
        let hash = torrents[slot].infoHash.bytes.hash(key: key)
        digest &-= Shard.fingerprint(torrents[slot], hash: hash)
        index.remove(UInt32(truncatingIfNeeded: hash), slot: slot)
        let last = torrents.count - 1
        if slot != last {
            let moved = torrents[last].infoHash.bytes.hash(key: key)
            index.move(UInt32(truncatingIfNeeded: moved), from: last, to: slot)
            torrents[slot] = torrents[last]
        }
        torrents.removeLast()
    }

    private static func fingerprint(_ torrent: Torrent, hash: UInt64) -> UInt64 {
        if torrent.completed == 0 { return 0 }
        return folded(hash ^ 0x8EBC_6AF0_9C88_C6E3, UInt64(torrent.completed) | UInt64(torrent.emptySince) << 32)
    }

    private mutating func set(_ slot: Int, completed: UInt32, emptySince: UInt32, hash: UInt64) {
        digest &-= Shard.fingerprint(torrents[slot], hash: hash)
        torrents[slot].completed = completed
        torrents[slot].emptySince = emptySince
        digest &+= Shard.fingerprint(torrents[slot], hash: hash)
    }

    // MARK: Announces

    /// Applies an announce of a torrent that is here; the torrent stays, even without peers (`settle`).
    mutating func apply(
        _ announce: AnnounceUpdate<CompactIPv4>, to slot: Int, hash: UInt64, time: UInt32, key: UInt64
    ) -> PeerChange {
        let change = ipv4.apply(
            announce, to: &torrents[slot].ipv4, torrent: hash, time: time, key: key, digest: &digest)
        finish(change, slot, hash)
        if ipv4.wantsCompaction { compactIPv4() }
        return change
    }

    mutating func apply(
        _ announce: AnnounceUpdate<CompactIPv6>, to slot: Int, hash: UInt64, time: UInt32, key: UInt64
    ) -> PeerChange {
        let change = ipv6.apply(
            announce, to: &torrents[slot].ipv6, torrent: hash, time: time, key: key, digest: &digest)
        finish(change, slot, hash)
        if ipv6.wantsCompaction { compactIPv6() }
        return change
    }

    private mutating func finish(_ change: PeerChange, _ slot: Int, _ hash: UInt64) {
        guard change.after != nil, change.isNewlyCompleted || torrents[slot].emptySince != 0 else { return }
        let completed = torrents[slot].completed &+ (change.isNewlyCompleted ? 1 : 0)
        set(slot, completed: completed, emptySince: 0, hash: hash)
    }

    /// Decides about a torrent whose last peer may have left: without a count it goes at once.
    ///
    /// - Returns: whether it went.
    mutating func settle(_ slot: Int, time: UInt32, key: UInt64) -> Bool {
        guard torrents[slot].isEmpty else { return false }
        if torrents[slot].completed == 0 {
            remove(slot, key: key)
            return true
        }
        let hash = torrents[slot].infoHash.bytes.hash(key: key)
        set(slot, completed: torrents[slot].completed, emptySince: max(time, 1), hash: hash)
        return false
    }

    // MARK: Compaction

    private mutating func compactIPv4() {
        var fresh = ipv4.emptiedOfBlocks()
        for slot in torrents.indices { fresh.adopt(&torrents[slot].ipv4, from: ipv4) }
        ipv4 = fresh
    }

    private mutating func compactIPv6() {
        var fresh = ipv6.emptiedOfBlocks()
        for slot in torrents.indices { fresh.adopt(&torrents[slot].ipv6, from: ipv6) }
        ipv6 = fresh
    }

    // MARK: Expiry

    /// Takes out peers last seen before a time, and torrents empty since before another.
    mutating func expire(seenBefore: UInt32, emptyBefore: UInt32, key: UInt64) -> Expiry {
        var expiry = Expiry()
        var slot = torrents.count - 1
        while slot >= 0 {
            if torrents[slot].isEmpty {
                if torrents[slot].emptySince < emptyBefore {
                    remove(slot, key: key)
                    expiry.torrents += 1
                }
            } else {
                let hash = torrents[slot].infoHash.bytes.hash(key: key)
                let before4 = ipv4.expire(
                    &torrents[slot].ipv4, seenBefore: seenBefore, torrent: hash, key: key, digest: &digest)
                let before6 = ipv6.expire(
                    &torrents[slot].ipv6, seenBefore: seenBefore, torrent: hash, key: key, digest: &digest)
                expiry.add(before4, before6)
                if settle(slot, time: seenBefore, key: key) { expiry.torrents += 1 }
            }
            slot -= 1
        }
        if ipv4.wantsCompaction { compactIPv4() }
        if ipv6.wantsCompaction { compactIPv6() }
        return expiry
    }

    // MARK: Restoring

    /// Adds a torrent with its peers as a snapshot tells it.
    ///
    /// The torrent must not be here yet.
    mutating func restore(_ image: SwarmImage, emptySince: UInt32, key: UInt64) {
        let hash = image.infoHash.bytes.hash(key: key)
        let slot = insert(image.infoHash, hash: hash)
        set(slot, completed: image.completed, emptySince: emptySince, hash: hash)
        for peer in image.peers {
            if let endpoint = CompactIPv4(peer.address) {
                ipv4.restore(
                    Peer(peer, endpoint: endpoint), to: &torrents[slot].ipv4, torrent: hash, key: key, digest: &digest)
            } else if let endpoint = CompactIPv6(peer.address) {
                ipv6.restore(
                    Peer(peer, endpoint: endpoint), to: &torrents[slot].ipv6, torrent: hash, key: key, digest: &digest)
            }
        }
    }

    /// Resident bytes of the shard's arrays, without their headers.
    var byteCount: Int {
        torrents.capacity * MemoryLayout<Torrent>.stride + index.byteCount + ipv4.byteCount + ipv6.byteCount
    }
}

/// What an expiry took out.
struct Expiry {
    var torrents = 0
    var ipv4 = 0
    var ipv6 = 0
    var seeders = 0

    mutating func add(_ four: (peers: Int, seeders: Int), _ six: (peers: Int, seeders: Int)) {
        ipv4 += four.peers
        ipv6 += six.peers
        seeders += four.seeders + six.seeders
    }
}
