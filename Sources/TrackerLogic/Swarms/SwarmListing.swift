// The swarms as lists, for people.

import Primitives
import Wire

/// One swarm in a list.
public struct SwarmSummary: Sendable, Equatable {
    /// Of the swarm.
    public var infoHash: InfoHash
    /// As applied.
    public var counts: SwarmCounts

    /// Takes the fields as they are.
    public init(infoHash: InfoHash, counts: SwarmCounts) {
        self.infoHash = infoHash
        self.counts = counts
    }
}

extension SwarmTable {
    /// How many shards there are.
    public var shardCount: Int { shards.count }

    /// Appends all swarms of a shard, in an order that means nothing.
    ///
    /// - Parameters:
    ///   - shard: 0..<`shardCount`.
    ///   - list: appended to.
    /// - Complexity: O(swarms of the shard).
    public func list(shard: Int, into list: inout [SwarmSummary]) {
        for torrent in shards[shard].torrents {
            list.append(SwarmSummary(infoHash: torrent.infoHash, counts: torrent.counts))
        }
    }

    /// A part of a swarm's peers: IPv4 first, then IPv6, each in an order that changes as peers come and go.
    ///
    /// - Parameters:
    ///   - infoHash: the swarm's.
    ///   - start: the position of the first, from 0.
    ///   - count: how many at most.
    /// - Returns: the peers, and how many the swarm has in all; none where the swarm or the position is not there.
    /// - Complexity: O(count).
    public func peers(of infoHash: InfoHash, from start: Int, atMost count: Int) -> (peers: [PeerImage], total: Int) {
        let hash = infoHash.bytes.hash(key: key)
        let shard = shards[shard(hash)]
        guard let slot = shard.find(infoHash, hash: hash) else { return ([], 0) }
        let torrent = shard.torrents[slot]
        let (four, six) = (Int(torrent.ipv4.count), Int(torrent.ipv6.count))
        var peers: [PeerImage] = []
        var position = max(start, 0)
        let end = min(position + min(count, four + six), four + six)
        while position < end {
            peers.append(
                position < four
                    ? PeerImage(shard.ipv4.peer(torrent.ipv4, at: position))
                    : PeerImage(shard.ipv6.peer(torrent.ipv6, at: position - four)))
            position += 1
        }
        return (peers, four + six)
    }
}

extension PeerImage {
    init<Endpoint>(_ peer: Peer<Endpoint>) {
        self.init(
            address: peer.endpoint.socketAddress, peerID: peer.peerID, downloaded: peer.downloaded, left: peer.left,
            lastSeen: peer.lastSeen, isCounted: peer.isCounted)
    }
}
