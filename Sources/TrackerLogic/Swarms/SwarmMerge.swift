// After a partition has healed in survivor mode: two repositories become one (rule 12).

import Primitives
import Wire

/// What a shard keeps for the case of a merge.
///
/// The master reads the other tracker's chunks, puts what it does not know into updates of its own log, and all
/// trackers apply them. Of what was heard of one peer of one swarm, the latest counts, and it is one of two:
///
///     it is there, as of its last announce   <   it has stopped, at the same time or later
///
/// So merging takes a maximum, for each peer, and for each master's count of a torrent's downloads: in whatever order
/// updates of a merge come, and however often, the result is the same. A stop that is the latest is kept as a
/// tombstone, for as long as a silent peer would have been; a stop that is not is forgotten.
///
/// What a merge cannot know:
/// - a stop whose tombstone has made way for others, or has gone with the swarms of a cluster that was stopped whole:
///   the peer comes back until it expires;
/// - that both sides were told of the same completed download: it is counted twice;
/// - that a torrent was unregistered on one side only: it is registered again;
/// - the count of a master that has lost its memory and counts from 0: the greater of its two counts stands.
///
/// The time since when a torrent is empty is not merged: each history keeps its own.
struct MergeData: Sendable {
    /// Of peers that are not in the swarm.
    var tombstones = Tombstones()
    /// They add up to what each torrent shows as completed.
    var counters: CompletedCounters

    init(key: UInt64) { counters = CompletedCounters(key: key) }

    var digest: UInt64 { tombstones.digest &+ counters.digest }
    var byteCount: Int { tombstones.byteCount + counters.byteCount }
}

extension SocketAddress {
    /// Without a zone, as peers are kept.
    var withoutZone: SocketAddress { SocketAddress(high: high, low: low, port: port) }
}

extension Peer {
    init(_ merged: MergedPeer, endpoint: Endpoint) {
        self.init(
            downloaded: merged.downloaded, left: merged.left, peerID: merged.peerID, lastSeen: merged.lastSeen,
            endpoint: endpoint, isCounted: merged.isCounted)
    }

    /// By the time of the last announce, then by contents: of two that differ, one is later on every tracker.
    func isLater(than other: Peer) -> Bool {
        if lastSeen != other.lastSeen { return lastSeen > other.lastSeen }
        if isCounted != other.isCounted { return isCounted }
        if downloaded != other.downloaded { return downloaded > other.downloaded }
        if left != other.left { return left < other.left }
        return other.peerID.bytes.precedes(peerID.bytes)
    }
}

extension PeerStore {
    /// Whether a peer is unknown in the list, or later than what is known.
    func accepts(_ peer: Peer<Endpoint>, in list: PeerList, key: UInt64) -> Bool {
        guard let position = position(of: peer.endpoint, in: list, key: key) else { return true }
        return peer.isLater(than: self.peer(list, at: position))
    }

    /// Adds a peer of another repository, or replaces it.
    mutating func merge(
        _ peer: Peer<Endpoint>, to list: inout PeerList, torrent: UInt64, key: UInt64, digest: inout UInt64
    ) -> PeerChange {
        var change = PeerChange()
        change.after = .init(isSeeder: peer.isSeeder)
        digest &+= peer.fingerprint(torrent: torrent, key: key)
        guard let position = position(of: peer.endpoint, in: list, key: key) else {
            change.position = insert(peer, into: &list, key: key)
            return change
        }
        let before = self.peer(list, at: position)
        digest &-= before.fingerprint(torrent: torrent, key: key)
        change.before = .init(isSeeder: before.isSeeder)
        change.position = replace(peer, at: position, in: &list, key: key)
        return change
    }

    /// Takes out a peer that has stopped elsewhere; nothing where it is not here.
    mutating func stop(
        _ endpoint: Endpoint, in list: inout PeerList, torrent: UInt64, key: UInt64, digest: inout UInt64
    ) -> PeerChange {
        var change = PeerChange()
        guard let position = position(of: endpoint, in: list, key: key) else { return change }
        let before = peer(list, at: position)
        digest &-= before.fingerprint(torrent: torrent, key: key)
        change.before = .init(isSeeder: before.isSeeder)
        remove(at: position, from: &list, key: key)
        return change
    }
}

// MARK: - What is missing here

extension ReplicatedState {
    /// The updates that bring what another tracker's chunk knows and this state does not.
    ///
    /// Applied in any order and any number of times, they give the same state. The chunk may have been cut under
    /// another secret and into another number of shards. Torrents that are registered there and not here come along;
    /// access rules, members and the names of registered torrents are the operators' business, and this state's stand.
    /// Of accounts and torrent files the newer word counts.
    ///
    /// - Parameters:
    ///   - chunk: of the other tracker's state.
    ///   - seenBefore: cluster time in seconds; peers and tombstones from before it would be expired at once, and are
    ///     left out.
    /// - Returns: nothing where this state knows all of it.
    /// - Throws: `ChunkDamaged` where the bytes are not what a chunk may be.
    public func mergeUpdates(
        from chunk: SnapshotChunk, seenBefore: UInt32 = 0
    ) throws(ChunkDamaged) -> [Update] {
        guard chunk.number == 0 else {
            if chunk.holdsFiles { return mergeUpdates(from: try chunk.files()) }
            return table.mergeUpdates(from: try chunk.shard(), seenBefore: seenBefore)
        }
        let image = try chunk.registry()
        return image.torrents.filter { registry.find($0.infoHash) == nil }.map {
            .registerTorrent($0.infoHash, byteCount: $0.byteCount, name: Array($0.name.utf8))
        } + mergeUpdates(from: image.accounts)
    }
}

extension SwarmTable {
    func mergeUpdates(from other: ShardImage, seenBefore: UInt32) -> [Update] {
        var updates: [Update] = []
        for stop in other.tombstones where stop.time >= seenBefore {
            let hash = stop.infoHash.bytes.hash(key: key)
            guard shards[shard(hash)].accepts(stop, hash: hash, key: key) else { continue }
            updates.append(.mergeStop(stop.infoHash, stop.address, at: stop.time))
        }
        for swarm in other.swarms {
            let infoHash = swarm.image.infoHash
            let hash = infoHash.bytes.hash(key: key)
            if let counters = shards[shard(hash)].mergeData?.counters {
                for held in swarm.countsByOrigin where counters.count(infoHash, origin: held.origin) < held.count {
                    updates.append(.mergeCompleted(infoHash, origin: held.origin, count: held.count))
                }
            }
            for peer in swarm.image.peers where peer.lastSeen >= seenBefore {
                let merged = MergedPeer(
                    infoHash: infoHash, peerID: peer.peerID, downloaded: peer.downloaded, left: peer.left,
                    address: peer.address, lastSeen: peer.lastSeen, isCounted: peer.isCounted)
                guard shards[shard(hash)].accepts(merged, hash: hash, key: key) else { continue }
                updates.append(.mergePeer(merged))
            }
        }
        return updates
    }
}
