// Whether a node holds what the model holds.

import Primitives
import TrackerLogic
import Wire

extension SwarmModel {
    /// What a state has otherwise than the model, in words; nil where they agree.
    func difference(from state: ReplicatedState) -> String? {
        if state.index != index { return "the node is at entry \(state.index), the model at \(index)" }
        let counts = state.table.counts
        if counts.torrents != swarms.count {
            return "the node has \(counts.torrents) swarms, the model \(swarms.count)"
        }
        if counts.peers != peerCount { return "the node has \(counts.peers) peers, the model \(peerCount)" }
        let seeders = swarms.reduce(0) { $0 + Int($1.counts.seeders) }
        if counts.seeders != seeders { return "the node has \(counts.seeders) seeders, the model \(seeders)" }
        do throws(ChunkDamaged) {
            for number in 1..<state.chunkCount {
                let chunk = state.chunk(number)
                for (image, emptySince) in zip(try chunk.swarms(), try chunk.emptyTimes()) {
                    if let difference = difference(from: image, emptySince) { return difference }
                }
            }
            return difference(from: try state.chunk(0).registry())
        } catch {
            return "chunk \(error.number) cannot be read back"
        }
    }

    private func difference(from image: SwarmImage, _ emptySince: UInt32) -> String? {
        guard let swarm = swarm(image.infoHash) else { return "the model has no swarm \(image.infoHash)" }
        if emptySince != swarm.emptySince {
            return "swarm \(image.infoHash) is empty since \(emptySince), in the model since \(swarm.emptySince)"
        }
        if image.completed != swarm.completed {
            return "swarm \(image.infoHash) has \(image.completed) completed, in the model \(swarm.completed)"
        }
        if image.peers.count != swarm.peers.count {
            return "swarm \(image.infoHash) has \(image.peers.count) peers, in the model \(swarm.peers.count)"
        }
        for peer in image.peers {
            guard let place = swarm.place(of: peer.address) else { return "the model has no peer \(peer.address)" }
            let known = swarm.peers[place]
            let isSame =
                known.peerID == peer.peerID && known.downloaded == peer.downloaded && known.left == peer.left
                && known.lastSeen == peer.lastSeen && known.isCounted == peer.isCounted
            if !isSame { return "peer \(peer.address) is \(peer), in the model \(known)" }
        }
        return nil
    }

    private func difference(from image: RegistryImage) -> String? {
        if image.access.mode != rules.mode { return "access is \(image.access.mode), in the model \(rules.mode)" }
        if image.access.infoHashes.count != rules.infoHashes.count
            || !image.access.infoHashes.allSatisfy(rules.infoHashes.contains)
        {
            return "other info hashes are listed than in the model"
        }
        if image.access.users.count != rules.users.count || !image.access.users.allSatisfy(rules.users.contains) {
            return "there are other users than in the model"
        }
        if image.torrents.count != torrents.count || !image.torrents.allSatisfy(torrents.contains) {
            return "other torrents are registered than in the model"
        }
        return nil
    }
}
