// What a swarm table must do, in the dumbest way: dictionaries of dictionaries.

import Primitives
import TrackerLogic
import Wire

struct ReferenceSwarmTable {
    struct Peer: Equatable {
        var peerID: PeerID
        var downloaded: UInt64
        var left: UInt64
        var lastSeen: UInt32
        var isCounted: Bool
    }

    struct Swarm: Equatable {
        var completed: UInt32 = 0
        var peers: [SocketAddress: Peer] = [:]
        /// When the last peer left; 0 while there are any.
        var emptySince: UInt32 = 0
    }

    private(set) var swarms: [InfoHash: Swarm] = [:]

    mutating func apply<Endpoint>(_ announce: AnnounceUpdate<Endpoint>, time: UInt32) {
        let address = announce.endpoint.socketAddress
        if announce.event == .stopped {
            guard swarms[announce.infoHash]?.peers.removeValue(forKey: address) != nil else { return }
            settle(announce.infoHash, time: time)
            return
        }
        let old = swarms[announce.infoHash]?.peers[address]
        var isCounted = old?.isCounted ?? false
        // A download that another client begins may complete anew.
        if announce.event == .started, announce.left > 0, old?.peerID != announce.peerID { isCounted = false }
        let cameComplete = old == nil && announce.left == 0
        let isOther = old.map { $0.peerID != announce.peerID } ?? false
        if announce.event == .completed, announce.left == 0, !isCounted, !isOther {
            isCounted = true
            swarms[announce.infoHash, default: Swarm()].completed += 1
        }
        swarms[announce.infoHash, default: Swarm()].peers[address] = Peer(
            peerID: announce.peerID, downloaded: announce.downloaded, left: announce.left, lastSeen: time,
            isCounted: isCounted || cameComplete)
        swarms[announce.infoHash]?.emptySince = 0
    }

    mutating func expire(seenBefore: UInt32, emptyBefore: UInt32, where isInShard: (InfoHash) -> Bool) {
        for infoHash in Array(swarms.keys) where isInShard(infoHash) {
            guard let swarm = swarms[infoHash] else { continue }
            if swarm.peers.isEmpty {
                if swarm.emptySince < emptyBefore { swarms[infoHash] = nil }
                continue
            }
            swarms[infoHash]?.peers = swarm.peers.filter { $0.value.lastSeen >= seenBefore }
            settle(infoHash, time: seenBefore)
        }
    }

    mutating func empty(where isInShard: (InfoHash) -> Bool) {
        for infoHash in Array(swarms.keys) where isInShard(infoHash) { swarms[infoHash] = nil }
    }

    /// A swarm without peers is remembered only for its count.
    private mutating func settle(_ infoHash: InfoHash, time: UInt32) {
        guard let swarm = swarms[infoHash], swarm.peers.isEmpty else { return }
        if swarm.completed == 0 {
            swarms[infoHash] = nil
        } else {
            swarms[infoHash]?.emptySince = max(time, 1)
        }
    }

    func counts(_ infoHash: InfoHash) -> SwarmCounts {
        guard let swarm = swarms[infoHash] else { return SwarmCounts() }
        let seeders = swarm.peers.values.count { $0.left == 0 }
        return SwarmCounts(
            seeders: UInt32(seeders), leechers: UInt32(swarm.peers.count - seeders), completed: swarm.completed)
    }

    var counts: TableCounts {
        var counts = TableCounts()
        counts.torrents = swarms.count
        for swarm in swarms.values {
            counts.peersIPv4 += swarm.peers.keys.count { $0.isIPv4 }
            counts.peersIPv6 += swarm.peers.keys.count { !$0.isIPv4 }
            counts.seeders += swarm.peers.values.count { $0.left == 0 }
        }
        return counts
    }

    /// Peers at an IPv4 address, or in an IPv6 network of 64 bits.
    func peers(near address: SocketAddress) -> Int {
        swarms.values.reduce(0) { sum, swarm in
            sum
                + swarm.peers.keys.count {
                    $0.isIPv4 == address.isIPv4 && $0.high == address.high && (!address.isIPv4 || $0.low == address.low)
                }
        }
    }

    /// In an order fit for comparing.
    var images: [SwarmImage] {
        swarms.map { infoHash, swarm in
            SwarmImage(
                infoHash: infoHash, completed: swarm.completed,
                peers: swarm.peers.map { address, peer in
                    PeerImage(
                        address: address, peerID: peer.peerID, downloaded: peer.downloaded, left: peer.left,
                        lastSeen: peer.lastSeen, isCounted: peer.isCounted)
                })
        }.inOrder
    }

    /// Updates that bring about the same contents by another way, each with its time.
    ///
    /// Peers come in another order, some with a past; strangers come, complete and go, to make up the counts.
    func retold(_ random: inout RandomStream) -> [(time: UInt32, update: Update)] {
        var story: [(time: UInt32, order: Int, update: Update)] = []
        func tell(_ time: UInt32, _ order: Int, _ update: Update) { story.append((time, order, update)) }
        func announce(
            _ infoHash: InfoHash, _ address: SocketAddress, _ peer: Peer, _ event: AnnounceEvent
        ) -> Update {
            .announce(infoHash, address, peer, event)
        }
        for (infoHash, swarm) in swarms {
            var missing = Int(swarm.completed)
            for (address, peer) in swarm.peers {
                let order = random.below(1 << 20) * 4
                var past = peer
                past.peerID = .zero
                past.left = peer.isCounted ? 0 : 1
                if peer.isCounted {
                    // Who came with everything was not counted.
                    let event = missing > 0 ? AnnounceEvent.completed : .none
                    missing -= 1
                    tell(peer.lastSeen, order, announce(infoHash, address, past, event))
                } else if peer.left == 0 || random.oneIn(2) {
                    tell(peer.lastSeen, order, announce(infoHash, address, past, .none))
                }
                tell(peer.lastSeen, order + 1, announce(infoHash, address, peer, .none))
            }
            let last = swarm.peers.isEmpty ? swarm.emptySince : swarm.peers.values.map(\.lastSeen).max() ?? 0
            for number in 0..<max(missing, 0) {
                let stranger = Peer(peerID: .zero, downloaded: 0, left: 0, lastSeen: last, isCounted: true)
                let order = random.below(1 << 20) * 4
                tell(last, order, announce(infoHash, .v4(1_000_000 + number), stranger, .completed))
                tell(last, order + 1, announce(infoHash, .v4(1_000_000 + number), stranger, .stopped))
            }
        }
        story.sort { ($0.time, $0.order) < ($1.time, $1.order) }
        return story.map { ($0.time, $0.update) }
    }
}

extension Update {
    static func announce(
        _ infoHash: InfoHash, _ address: SocketAddress, _ peer: ReferenceSwarmTable.Peer, _ event: AnnounceEvent
    ) -> Update {
        if let endpoint = CompactIPv4(address) {
            return .announceIPv4(
                AnnounceUpdate(
                    infoHash: infoHash, peerID: peer.peerID, downloaded: peer.downloaded, left: peer.left,
                    event: event, endpoint: endpoint))
        }
        guard let endpoint = CompactIPv6(address) else { preconditionFailure("an address is IPv4 or IPv6") }
        return .announceIPv6(
            AnnounceUpdate(
                infoHash: infoHash, peerID: peer.peerID, downloaded: peer.downloaded, left: peer.left, event: event,
                endpoint: endpoint))
    }
}

extension [SwarmImage] {
    /// Swarms and peers in an order that does not depend on where they lay.
    var inOrder: [SwarmImage] {
        func key(_ peer: PeerImage) -> (UInt64, UInt64, UInt16) {
            (peer.address.high, peer.address.low, peer.address.port)
        }
        return map { image in
            var image = image
            image.peers.sort { key($0) < key($1) }
            return image
        }.sorted { $0.infoHash.bytes.bytes.lexicographicallyPrecedes($1.infoHash.bytes.bytes) }
    }
}
