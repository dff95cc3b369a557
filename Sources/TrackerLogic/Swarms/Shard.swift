// One part of the swarm table.

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

/// One part of the swarm table: the torrents whose keyed hash falls into it, with their peers.
///
/// A shard is the unit of growth, of expiry and of the snapshot, so that none of them holds up the node for long.
struct Shard: Sendable {
    private(set) var torrents: [Torrent] = []
    private(set) var ipv4 = PeerStore<CompactIPv4>()
    private(set) var ipv6 = PeerStore<CompactIPv6>()
    private var index = SlotIndex()
    /// What a merge needs to know besides; nil where there is none to come.
    private(set) var mergeData: MergeData?
    /// The sum of the fingerprints of peers and torrents, in no order.
    private(set) var fingerprints: UInt64 = 0

    init(mergeData: MergeData? = nil) { self.mergeData = mergeData }

    /// Equal for equal contents.
    var digest: UInt64 { fingerprints &+ (mergeData?.digest ?? 0) }

    /// Finds a torrent.
    ///
    /// - Parameters:
    ///   - infoHash: the torrent's.
    ///   - hash: the info hash's, under the table's key.
    /// - Returns: its slot in `torrents`; nil where it is not here.
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
        fingerprints &-= fingerprint(torrents[slot], hash: hash)
        if torrents[slot].completed != 0 { mergeData?.counters.remove(torrents[slot].infoHash) }
        index.remove(UInt32(truncatingIfNeeded: hash), slot: slot)
        let last = torrents.count - 1
        if slot != last {
            let moved = torrents[last].infoHash.bytes.hash(key: key)
            index.move(UInt32(truncatingIfNeeded: moved), from: last, to: slot)
            torrents[slot] = torrents[last]
        }
        torrents.removeLast()
    }

    /// Where merges are to come, without the time since when a torrent is empty: that time is each history's own.
    func fingerprint(_ torrent: Torrent, hash: UInt64) -> UInt64 {
        if torrent.completed == 0 { return 0 }
        let emptySince = mergeData == nil ? torrent.emptySince : 0
        return folded(hash ^ 0x8EBC_6AF0_9C88_C6E3, UInt64(torrent.completed) | UInt64(emptySince) << 32)
    }

    private mutating func set(_ slot: Int, completed: UInt32, emptySince: UInt32, hash: UInt64) {
        fingerprints &-= fingerprint(torrents[slot], hash: hash)
        torrents[slot].completed = completed
        torrents[slot].emptySince = emptySince
        fingerprints &+= fingerprint(torrents[slot], hash: hash)
    }

    // MARK: Announces

    /// Applies an announce of a torrent that is here; the torrent stays, even without peers (`settle`).
    mutating func apply(
        _ announce: AnnounceUpdate<CompactIPv4>, to slot: Int, hash: UInt64, time: UInt32, origin: UInt32,
        key: UInt64
    ) -> PeerChange {
        let change = ipv4.apply(
            announce, to: &torrents[slot].ipv4, torrent: hash, time: time, key: key, digest: &fingerprints)
        finish(change, slot, hash, origin)
        if ipv4.wantsCompaction { compactIPv4() }
        return change
    }

    mutating func apply(
        _ announce: AnnounceUpdate<CompactIPv6>, to slot: Int, hash: UInt64, time: UInt32, origin: UInt32,
        key: UInt64
    ) -> PeerChange {
        let change = ipv6.apply(
            announce, to: &torrents[slot].ipv6, torrent: hash, time: time, key: key, digest: &fingerprints)
        finish(change, slot, hash, origin)
        if ipv6.wantsCompaction { compactIPv6() }
        return change
    }

    private mutating func finish(_ change: PeerChange, _ slot: Int, _ hash: UInt64, _ origin: UInt32) {
        guard change.after != nil, change.isNewlyCompleted || torrents[slot].emptySince != 0 else { return }
        var completed = torrents[slot].completed
        if change.isNewlyCompleted {
            completed &+= mergeData?.counters.increment(torrents[slot].infoHash, origin: origin) ?? 1
        }
        set(slot, completed: completed, emptySince: 0, hash: hash)
    }

    /// Decides about a torrent whose last peer may have left: without a count it goes at once.
    ///
    /// - Parameters:
    ///   - slot: the torrent's.
    ///   - time: cluster time, in seconds since 1970, from which on it is empty.
    ///   - key: the table's.
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
    ///
    /// - Parameters:
    ///   - seenBefore: cluster time, in seconds since 1970.
    ///   - emptyBefore: cluster time, in seconds since 1970.
    ///   - key: the table's.
    ///   - addresses: counts the peers that are taken out no more.
    /// - Returns: how much was taken out.
    mutating func expire(
        seenBefore: UInt32, emptyBefore: UInt32, key: UInt64, addresses: inout AddressCounts
    ) -> Expiry {
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
                    &torrents[slot].ipv4, seenBefore: seenBefore, torrent: hash, key: key, digest: &fingerprints,
                    addresses: &addresses)
                let before6 = ipv6.expire(
                    &torrents[slot].ipv6, seenBefore: seenBefore, torrent: hash, key: key, digest: &fingerprints,
                    addresses: &addresses)
                expiry.add(before4, before6)
                if settle(slot, time: seenBefore, key: key) { expiry.torrents += 1 }
            }
            slot -= 1
        }
        mergeData?.tombstones.expire(before: seenBefore)
        if ipv4.wantsCompaction { compactIPv4() }
        if ipv6.wantsCompaction { compactIPv6() }
        return expiry
    }

    // MARK: Restoring

    mutating func restore(_ tombstones: [Tombstone], key: UInt64) {
        for stop in tombstones {
            mergeData?.tombstones.put(stop, torrent: stop.infoHash.bytes.hash(key: key), key: key)
        }
    }

    /// Adds a torrent with its peers as a snapshot tells it.
    ///
    /// The torrent must not be here yet.
    mutating func restore(_ swarm: TimedSwarm, key: UInt64) {
        let image = swarm.image
        let hash = image.infoHash.bytes.hash(key: key)
        let slot = insert(image.infoHash, hash: hash)
        var completed = image.completed
        if mergeData != nil {
            completed = swarm.countsByOrigin.reduce(0) {
                $0 &+ (mergeData?.counters.raise(image.infoHash, origin: $1.origin, to: $1.count) ?? 0)
            }
        }
        set(slot, completed: completed, emptySince: swarm.emptySince, hash: hash)
        for peer in image.peers {
            if let endpoint = CompactIPv4(peer.address) {
                ipv4.restore(
                    Peer(peer, endpoint: endpoint), to: &torrents[slot].ipv4, torrent: hash, key: key,
                    digest: &fingerprints)
            } else if let endpoint = CompactIPv6(peer.address) {
                ipv6.restore(
                    Peer(peer, endpoint: endpoint), to: &torrents[slot].ipv6, torrent: hash, key: key,
                    digest: &fingerprints)
            }
        }
    }

    /// Resident bytes of the shard's arrays, without their headers.
    var byteCount: Int {
        torrents.capacity * MemoryLayout<Torrent>.stride + index.byteCount + ipv4.byteCount + ipv6.byteCount
            + (mergeData?.byteCount ?? 0)
    }
}

// MARK: - Merging

extension Shard {
    /// Where an announce stands among all that was heard of its peer: never before what it follows.
    ///
    /// A merge may have brought that from a tracker whose clock was ahead, and a client may stop and come back in one
    /// second. A stop is remembered; anything else ends an earlier stop.
    ///
    /// - Returns: its time, in seconds since 1970.
    mutating func order(
        _ infoHash: InfoHash, _ address: SocketAddress, isStop: Bool, hash: UInt64, time: UInt32, key: UInt64
    ) -> UInt32 {
        if isStop {
            let stop = Tombstone(
                infoHash: infoHash, address: address,
                time: max(time, lastSeen(infoHash, address, hash: hash, key: key) ?? 0))
            mergeData?.tombstones.put(stop, torrent: hash, key: key)
            return stop.time
        }
        guard let stopped = mergeData?.tombstones.remove(infoHash, address, torrent: hash, key: key) else {
            return time
        }
        return max(time, stopped == .max ? stopped : stopped + 1)
    }

    private func lastSeen(_ infoHash: InfoHash, _ address: SocketAddress, hash: UInt64, key: UInt64) -> UInt32? {
        guard let slot = find(infoHash, hash: hash) else { return nil }
        if let endpoint = CompactIPv4(address) {
            return ipv4.position(of: endpoint, in: torrents[slot].ipv4, key: key).map {
                ipv4.lastSeen(torrents[slot].ipv4, at: $0)
            }
        }
        guard let endpoint = CompactIPv6(address) else { return nil }
        return ipv6.position(of: endpoint, in: torrents[slot].ipv6, key: key).map {
            ipv6.lastSeen(torrents[slot].ipv6, at: $0)
        }
    }

    /// Whether another repository's word on a peer is later than all that is known here.
    func accepts(_ merged: MergedPeer, hash: UInt64, key: UInt64) -> Bool {
        let stopped = mergeData?.tombstones.time(merged.infoHash, merged.address, torrent: hash, key: key)
        if let stopped, stopped >= merged.lastSeen { return false }
        guard let slot = find(merged.infoHash, hash: hash) else { return true }
        if let endpoint = CompactIPv4(merged.address) {
            return ipv4.accepts(Peer(merged, endpoint: endpoint), in: torrents[slot].ipv4, key: key)
        }
        guard let endpoint = CompactIPv6(merged.address) else { return false }
        return ipv6.accepts(Peer(merged, endpoint: endpoint), in: torrents[slot].ipv6, key: key)
    }

    /// Whether another repository's word that a peer has stopped is later than all that is known here.
    func accepts(_ stop: Tombstone, hash: UInt64, key: UInt64) -> Bool {
        if let lastSeen = lastSeen(stop.infoHash, stop.address, hash: hash, key: key) { return lastSeen <= stop.time }
        guard let mergeData else { return false }
        let known = mergeData.tombstones.time(stop.infoHash, stop.address, torrent: hash, key: key)
        return known.map { $0 < stop.time } ?? true
    }

    /// Puts a peer that is accepted into its torrent, which is here.
    mutating func merge(_ merged: MergedPeer, to slot: Int, hash: UInt64, key: UInt64) -> PeerChange {
        mergeData?.tombstones.remove(merged.infoHash, merged.address, torrent: hash, key: key)
        var change = PeerChange()
        if let endpoint = CompactIPv4(merged.address) {
            change = ipv4.merge(
                Peer(merged, endpoint: endpoint), to: &torrents[slot].ipv4, torrent: hash, key: key,
                digest: &fingerprints)
            if ipv4.wantsCompaction { compactIPv4() }
        } else if let endpoint = CompactIPv6(merged.address) {
            change = ipv6.merge(
                Peer(merged, endpoint: endpoint), to: &torrents[slot].ipv6, torrent: hash, key: key,
                digest: &fingerprints)
            if ipv6.wantsCompaction { compactIPv6() }
        }
        set(slot, completed: torrents[slot].completed, emptySince: 0, hash: hash)
        return change
    }

    /// Takes out a peer whose stop is accepted, if it is here, and remembers the stop.
    ///
    /// The torrent stays, even without peers (`settle`).
    mutating func merge(_ stop: Tombstone, hash: UInt64, key: UInt64) -> PeerChange {
        mergeData?.tombstones.put(stop, torrent: hash, key: key)
        var change = PeerChange()
        guard let slot = find(stop.infoHash, hash: hash) else { return change }
        if let endpoint = CompactIPv4(stop.address) {
            change = ipv4.stop(endpoint, in: &torrents[slot].ipv4, torrent: hash, key: key, digest: &fingerprints)
            if ipv4.wantsCompaction { compactIPv4() }
        } else if let endpoint = CompactIPv6(stop.address) {
            change = ipv6.stop(endpoint, in: &torrents[slot].ipv6, torrent: hash, key: key, digest: &fingerprints)
            if ipv6.wantsCompaction { compactIPv6() }
        }
        return change
    }

    /// Takes the larger of two counts of one master into a torrent that is here.
    mutating func merge(_ held: CompletedCount, to slot: Int, hash: UInt64) {
        let growth = mergeData?.counters.raise(held.infoHash, origin: held.origin, to: held.count) ?? 0
        guard growth > 0 else { return }
        set(
            slot, completed: torrents[slot].completed &+ growth, emptySince: torrents[slot].emptySince, hash: hash)
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

// MARK: - An image of a node

extension Shard {
    /// Walks over the shard; `key` is the table's.
    mutating func walk(_ archive: inout Archive, key: UInt64) {
        torrents.walk(&archive)
        ipv4.walk(&archive, key: key)
        ipv6.walk(&archive, key: key)
        mergeData?.tombstones.walk(&archive)
        mergeData?.counters.walk(&archive)
        fingerprints.walk(&archive)
        guard archive.isReading else { return }
        index = SlotIndex()
        for slot in torrents.indices {
            index.insert(UInt32(truncatingIfNeeded: torrents[slot].infoHash.bytes.hash(key: key)), slot: slot)
        }
    }
}

extension Shard {
    /// Visits the address of each peer; false where a list of peers is none, and not all were visited.
    func forEachAddress(_ visit: (SocketAddress) -> Void) -> Bool {
        for torrent in torrents {
            guard ipv4.holds(torrent.ipv4), ipv6.holds(torrent.ipv6) else { return false }
            for place in 0..<Int(torrent.ipv4.count) {
                visit(ipv4.peer(torrent.ipv4, at: place).endpoint.socketAddress)
            }
            for place in 0..<Int(torrent.ipv6.count) {
                visit(ipv6.peer(torrent.ipv6, at: place).endpoint.socketAddress)
            }
        }
        return true
    }
}
