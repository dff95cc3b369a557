// The swarms as lists, against the table's own counts and the model.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Swarm listing")
struct SwarmListingTests {
    private func hash(_ number: Int) -> InfoHash {
        InfoHash(Bytes20([UInt8](repeating: UInt8(number), count: 20))!)
    }

    /// Swarms of 0 to 39 peers, of both families.
    private func table() throws -> SwarmTable {
        var modelled = ModelledTable()
        for swarm in 0..<40 {
            for peer in 0..<swarm {
                let left = UInt64(peer % 3)
                if peer.isMultiple(of: 2) {
                    modelled.add(
                        .announceIPv4(
                            AnnounceUpdate(
                                infoHash: hash(swarm), peerID: .zero, downloaded: UInt64(peer), left: left,
                                event: .started,
                                endpoint: CompactIPv4(SocketAddress(ipv4: UInt32(peer + 1), port: 1))!)))
                } else {
                    modelled.add(
                        .announceIPv6(
                            AnnounceUpdate(
                                infoHash: hash(swarm), peerID: .zero, downloaded: UInt64(peer), left: left,
                                event: .started,
                                endpoint: CompactIPv6(SocketAddress(high: 1, low: UInt64(peer + 1), port: 1))!)))
                }
            }
        }
        try modelled.commit()
        return modelled.table
    }

    @Test func `all shards together list each swarm once, with its counts`() throws {
        let table = try table()
        var list: [SwarmSummary] = []
        for shard in 0..<table.shardCount { table.list(shard: shard, into: &list) }
        #expect(list.count == table.counts.torrents)
        #expect(Set(list.map(\.infoHash)) == Set((1..<40).map(hash)))
        for swarm in list { #expect(swarm.counts == table.counts(of: swarm.infoHash)) }
    }

    @Test func `slices of a swarm's peers are all of them, whatever their size`() throws {
        let table = try table()
        for size in [1, 7, 16, 100] {
            var peers: [PeerImage] = []
            while true {
                let (part, total) = table.peers(of: hash(39), from: peers.count, atMost: size)
                #expect(total == 39)
                if part.isEmpty { break }
                #expect(part.count <= size)
                peers += part
            }
            #expect(Set(peers.map(\.address)).count == 39)
            #expect(Set(peers.map(\.downloaded)) == Set((0..<39).map { UInt64($0) }))
        }
        #expect(table.peers(of: hash(200), from: 0, atMost: 10).total == 0)
        #expect(table.peers(of: hash(5), from: 99, atMost: 10).peers.isEmpty)
    }
}
