// What a merge goes by, as plain lists: for simulated worlds and tests.

import Primitives
import Wire

/// The latest that a repository knows of a peer of a swarm.
package struct PeerWord: Sendable, Equatable {
    package var infoHash: InfoHash
    package var address: SocketAddress
    /// Cluster time of its last announce or of its stop, in seconds since 1970.
    package var time: UInt32
    /// What it has announced; nil where it has stopped.
    package var peer: PeerImage?
}

/// How many downloads of a torrent one master has counted.
package struct DownloadCount: Sendable, Equatable {
    package var infoHash: InfoHash
    /// The master's id.
    package var origin: UInt32
    package var count: UInt32
}

extension SwarmTable {
    /// The latest word on each peer, those that have stopped among them, without an order that means anything.
    ///
    /// - Complexity: O(peers).
    package var peerWords: [PeerWord] {
        shards.flatMap { shard in
            var words: [PeerWord] = []
            func add(_ image: PeerImage, _ infoHash: InfoHash) {
                words.append(
                    PeerWord(infoHash: infoHash, address: image.address, time: image.lastSeen, peer: image))
            }
            for torrent in shard.torrents {
                for place in 0..<Int(torrent.ipv4.count) {
                    add(PeerImage(shard.ipv4.peer(torrent.ipv4, at: place)), torrent.infoHash)
                }
                for place in 0..<Int(torrent.ipv6.count) {
                    add(PeerImage(shard.ipv6.peer(torrent.ipv6, at: place)), torrent.infoHash)
                }
            }
            for stop in shard.mergeData?.tombstones.all ?? [] {
                words.append(PeerWord(infoHash: stop.infoHash, address: stop.address, time: stop.time))
            }
            return words
        }
    }

    /// The downloads that each master has counted, without an order that means anything; none outside of survivor mode.
    ///
    /// - Complexity: O(torrents).
    package var downloadCounts: [DownloadCount] {
        shards.flatMap { shard in
            shard.torrents.flatMap { shard.mergeData?.counters.all($0.infoHash) ?? [] }.map {
                DownloadCount(infoHash: $0.infoHash, origin: $0.origin, count: $0.count)
            }
        }
    }
}

extension TorrentFiles {
    /// The removals that are remembered, without an order that means anything.
    package var removed: [RemovedFile] { chunks.flatMap { $0.removed } }
}

extension ReplicatedState {
    /// What this state would be if all that another knows were merged into it at once.
    ///
    /// - Throws: `ChunkDamaged` where a chunk of the other cannot be read, which would be a mistake.
    package func merged(with other: ReplicatedState) throws(ChunkDamaged) -> ReplicatedState {
        var state = self
        for number in 0..<other.chunkCount {
            for update in try state.mergeUpdates(from: other.chunk(number)) { state.apply(update) }
        }
        return state
    }
}
