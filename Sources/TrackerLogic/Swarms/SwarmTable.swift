// The repository of swarms.

import Primitives
import Wire

/// The repository of swarms: who has announced what, and when.
///
/// A deterministic function of the updates applied to it, in order: equal updates make equal tables, as their digests
/// show, whatever the order of records inside. Time comes with the updates; the table has no clock. Strangers choose
/// its keys, so all hashing is under a secret.
///
///     info hash ─► shard ─► torrent ─┬─ IPv4 list ─► block of ≤ 16 peers, or a large swarm
///                                    └─ IPv6 list ─► the same
///
/// Measured against a simple model in `SwarmTableTests`.
public struct SwarmTable: Sendable {
    /// Hashes info hashes and endpoints.
    let key: UInt64
    /// Whether stops and the masters' counts are remembered for a merge: survivor mode.
    let keepsMergeData: Bool
    private let shardShift: UInt64
    var shards: [Shard]
    /// Of all shards together.
    public private(set) var counts = TableCounts()
    private var addresses: AddressCounts

    /// - Parameters:
    ///   - key: secret; the same on all trackers of a cluster, for shards and digests to mean the same.
    ///   - shardCount: a power of two, at most 65,536.
    ///   - keepsMergeData: whether to remember what a merge with another repository needs.
    public init(key: UInt64, shardCount: UInt32, keepsMergeData: Bool = false) {
        precondition(
            NumberBounds.isShardCount(shardCount),
            "the number of shards is a power of two, at most 65,536")
        self.key = key
        self.keepsMergeData = keepsMergeData
        shardShift = UInt64(64 - shardCount.trailingZeroBitCount)
        addresses = AddressCounts(key: key, partCount: min(shardCount, 256))
        shards = Array(repeating: SwarmTable.emptyShard(key, keepsMergeData), count: Int(shardCount))
    }

    private static func emptyShard(_ key: UInt64, _ keepsMergeData: Bool) -> Shard {
        Shard(mergeData: keepsMergeData ? MergeData(key: key) : nil)
    }

    /// The state's fingerprint, in no order of anything.
    @inline(__always)
    public var digest: UInt64 { shards.reduce(0) { $0 &+ $1.digest } }

    /// Which shard an info hash belongs to.
    @inline(__always)
    func shard(_ hash: UInt64) -> Int { shardShift == 64 ? 0 : Int(hash &>> shardShift) }

    /// The shard of an info hash, 0..<shardCount; chunk s + 1 of a snapshot is shard s.
    public func shard(of infoHash: InfoHash) -> UInt32 { UInt32(shard(infoHash.bytes.hash(key: key))) }

    /// The counts of one swarm; zeros where it is unknown.
    public func counts(of infoHash: InfoHash) -> SwarmCounts {
        let hash = infoHash.bytes.hash(key: key)
        let number = shard(hash)
        guard let slot = shards[number].find(infoHash, hash: hash) else { return SwarmCounts() }
        return shards[number].torrents[slot].counts
    }

    /// Whether the table has a record of this torrent: it has peers, or has lately been completed.
    public func contains(_ infoHash: InfoHash) -> Bool {
        let hash = infoHash.bytes.hash(key: key)
        return shards[shard(hash)].find(infoHash, hash: hash) != nil
    }

    /// Whether a peer at this address and port is in the swarm.
    public func contains(_ infoHash: InfoHash, _ address: SocketAddress) -> Bool {
        let hash = infoHash.bytes.hash(key: key)
        let number = shard(hash)
        guard let slot = shards[number].find(infoHash, hash: hash) else { return false }
        let torrent = shards[number].torrents[slot]
        if let endpoint = CompactIPv4(address) {
            return shards[number].ipv4.position(of: endpoint, in: torrent.ipv4, key: key) != nil
        }
        guard let endpoint = CompactIPv6(address) else { return false }
        return shards[number].ipv6.position(of: endpoint, in: torrent.ipv6, key: key) != nil
    }

    /// How many peers of all swarms stand at an address: at an IPv4 address, or in an IPv6 network of 64 bits.
    ///
    /// - Complexity: O(1) expected, no allocation.
    public func peers(at address: SocketAddress) -> Int { addresses.count(of: address) }

    // MARK: Announces

    /// Where an applied announce has left its swarm, for the reply that follows at once.
    struct Place {
        var shard: Int
        /// The torrent; nil where it is gone or never was.
        var slot: Int?
        /// The announcer's position; nil where it has left.
        var position: Int?
        var isNewlyCompleted: Bool
    }

    /// Applies an announce.
    ///
    /// - Parameters:
    ///   - announce: of a peer with an IPv4 address.
    ///   - time: cluster time of its entry, in seconds since 1970.
    ///   - origin: the id of the master that made the entry.
    /// - Returns: where the announcer stands now.
    mutating func apply(_ announce: AnnounceUpdate<CompactIPv4>, time: UInt32, origin: UInt32) -> Place {
        apply(announce, time: time) { shard, announce, slot, hash, time, key in
            shard.apply(announce, to: slot, hash: hash, time: time, origin: origin, key: key)
        }
    }

    /// Applies the announce of a peer with an IPv6 address, as for IPv4.
    mutating func apply(_ announce: AnnounceUpdate<CompactIPv6>, time: UInt32, origin: UInt32) -> Place {
        apply(announce, time: time) { shard, announce, slot, hash, time, key in
            shard.apply(announce, to: slot, hash: hash, time: time, origin: origin, key: key)
        }
    }

    @inline(__always)
    private mutating func apply<Endpoint>(
        _ announce: AnnounceUpdate<Endpoint>, time: UInt32,
        _ body: (inout Shard, AnnounceUpdate<Endpoint>, Int, UInt64, UInt32, UInt64) -> PeerChange
    ) -> Place {
        let hash = announce.infoHash.bytes.hash(key: key)
        let number = shard(hash)
        var ordered = time
        if keepsMergeData {
            ordered = shards[number].order(
                announce.infoHash, announce.endpoint.socketAddress, isStop: announce.event == .stopped, hash: hash,
                time: time, key: key)
        }
        var slot = shards[number].find(announce.infoHash, hash: hash)
        if slot == nil {
            guard announce.event != .stopped else {
                return Place(shard: number, slot: nil, position: nil, isNewlyCompleted: false)
            }
            slot = shards[number].insert(announce.infoHash, hash: hash)
            counts.torrents += 1
        }
        guard let slot else { preconditionFailure("a torrent was found or made") }
        let change = body(&shards[number], announce, slot, hash, ordered, key)
        count(change, at: announce.endpoint.socketAddress)
        if change.before != nil, change.after == nil, shards[number].settle(slot, time: time, key: key) {
            counts.torrents -= 1
            return Place(shard: number, slot: nil, position: nil, isNewlyCompleted: false)
        }
        return Place(
            shard: number, slot: slot, position: change.position, isNewlyCompleted: change.isNewlyCompleted)
    }

    private mutating func count(_ change: PeerChange, at address: SocketAddress) {
        let peers = (change.after == nil ? 0 : 1) - (change.before == nil ? 0 : 1)
        if peers > 0 { addresses.add(address) } else if peers < 0 { addresses.remove(address) }
        if address.isIPv4 { counts.peersIPv4 += peers } else { counts.peersIPv6 += peers }
        counts.seeders += (change.after == .seeder ? 1 : 0) - (change.before == .seeder ? 1 : 0)
    }

    // MARK: Expiry

    /// Applies an expiry of one shard.
    ///
    /// - Returns: the number of peers taken out. A shard that does not exist has none.
    mutating func expire(shard: UInt32, seenBefore: UInt32, emptyBefore: UInt32) -> Int {
        guard shard < UInt32(shards.count) else { return 0 }
        let expiry = shards[Int(shard)].expire(
            seenBefore: seenBefore, emptyBefore: emptyBefore, key: key, addresses: &addresses)
        counts.torrents -= expiry.torrents
        counts.peersIPv4 -= expiry.ipv4
        counts.peersIPv6 -= expiry.ipv6
        counts.seeders -= expiry.seeders
        return expiry.ipv4 + expiry.ipv6
    }

    /// Takes all swarms out of a shard, with their counts and what a merge would need to know.
    ///
    /// - Returns: how many peers are gone.
    mutating func empty(shard: UInt32) -> Int {
        let peers = expire(shard: shard, seenBefore: .max, emptyBefore: .max)
        guard shard < UInt32(shards.count) else { return peers }
        // Torrents without peers, whose downloads were counted, were left.
        counts.torrents -= shards[Int(shard)].torrents.count
        shards[Int(shard)] = SwarmTable.emptyShard(key, keepsMergeData)
        return peers
    }

    /// Whether there is nothing at all in a shard.
    func isEmpty(shard: UInt32) -> Bool {
        guard shard < UInt32(shards.count) else { return true }
        return shards[Int(shard)].torrents.isEmpty && shards[Int(shard)].digest == 0
    }

    // MARK: Merging

    /// Applies what another repository knew of a peer; nothing where this one knows better.
    mutating func merge(_ peer: MergedPeer) {
        let hash = peer.infoHash.bytes.hash(key: key)
        let number = shard(hash)
        var peer = peer
        peer.address = peer.address.withoutZone
        guard shards[number].accepts(peer, hash: hash, key: key) else { return }
        let slot = findOrInsert(peer.infoHash, number, hash)
        count(shards[number].merge(peer, to: slot, hash: hash, key: key), at: peer.address)
    }

    /// Applies that a peer has stopped at another tracker; nothing where it was heard here since.
    ///
    /// - Parameters:
    ///   - infoHash: of the swarm that it left.
    ///   - address: the peer's; its zone is ignored.
    ///   - stopped: cluster time of its stop there, in seconds since 1970.
    ///   - time: cluster time of the entry, in seconds since 1970.
    mutating func mergeStop(_ infoHash: InfoHash, _ address: SocketAddress, at stopped: UInt32, time: UInt32) {
        let hash = infoHash.bytes.hash(key: key)
        let number = shard(hash)
        let stop = Tombstone(infoHash: infoHash, address: address.withoutZone, time: stopped)
        guard shards[number].accepts(stop, hash: hash, key: key) else { return }
        let change = shards[number].merge(stop, hash: hash, key: key)
        count(change, at: stop.address)
        guard change.before != nil, let slot = shards[number].find(infoHash, hash: hash) else { return }
        if shards[number].settle(slot, time: time, key: key) { counts.torrents -= 1 }
    }

    /// Applies what another master had counted of a torrent's downloads.
    ///
    /// Nothing where counts are not kept apart, since they cannot be told from this repository's own.
    ///
    /// - Parameters:
    ///   - held: the other master's count.
    ///   - time: cluster time of the entry, in seconds since 1970.
    mutating func mergeCompleted(_ held: CompletedCount, time: UInt32) {
        guard keepsMergeData, held.count > 0 else { return }
        let hash = held.infoHash.bytes.hash(key: key)
        let number = shard(hash)
        let slot = findOrInsert(held.infoHash, number, hash)
        shards[number].merge(held, to: slot, hash: hash)
        // A torrent that comes with nothing but its count has been without peers from now on.
        if shards[number].torrents[slot].isEmpty, shards[number].torrents[slot].emptySince == 0 {
            if shards[number].settle(slot, time: time, key: key) { counts.torrents -= 1 }
        }
    }

    private mutating func findOrInsert(_ infoHash: InfoHash, _ number: Int, _ hash: UInt64) -> Int {
        if let slot = shards[number].find(infoHash, hash: hash) { return slot }
        counts.torrents += 1
        return shards[number].insert(infoHash, hash: hash)
    }

    // MARK: Restoring

    /// Puts a snapshot chunk into a shard that is empty.
    mutating func restore(_ number: Int, _ image: ShardImage) {
        precondition(shards[number].torrents.isEmpty, "a chunk is restored into an empty shard")
        shards[number].restore(image.tombstones, key: key)
        for swarm in image.swarms {
            shards[number].restore(swarm, key: key)
            counts.torrents += 1
            for peer in swarm.image.peers {
                addresses.add(peer.address)
                if peer.address.isIPv4 { counts.peersIPv4 += 1 } else { counts.peersIPv6 += 1 }
                if peer.left == 0 { counts.seeders += 1 }
            }
        }
    }

    /// Resident bytes of the table's arrays, without their headers.
    public var byteCount: Int { shards.reduce(addresses.byteCount) { $0 + $1.byteCount } }
}

extension SwarmTable: Equatable {
    /// Equal contents, in whatever order they lie.
    public static func == (left: SwarmTable, right: SwarmTable) -> Bool {
        left.key == right.key && left.counts == right.counts && left.digest == right.digest
    }
}

// MARK: - An image of a node

extension SwarmTable {
    /// Walks over all shards; addresses are counted anew.
    mutating func walk(_ archive: inout Archive) {
        guard archive.count(shards.count) == shards.count else { return archive.refuse() }
        for number in shards.indices {
            var shard = shards[number]
            shard.walk(&archive, key: key)
            if archive.isDamaged { return }
            guard archive.isReading else { continue }
            guard shard.forEachAddress({ addresses.add($0) }) else { return archive.refuse() }
            shards[number] = shard
        }
        counts.torrents.walk(&archive)
        counts.peersIPv4.walk(&archive)
        counts.peersIPv6.walk(&archive)
        counts.seeders.walk(&archive)
    }
}
