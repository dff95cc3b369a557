// The swarms as a child would keep them.

import Primitives
import TrackerLogic
import Wire

/// The swarms as a child would keep them: lists that are searched from end to end.
///
/// What the node's tables say is compared with this.
struct SwarmModel: Sendable {
    struct Peer: Sendable, Equatable {
        var address: SocketAddress
        var peerID: PeerID
        var downloaded: UInt64
        var left: UInt64
        var lastSeen: UInt32
        var isCounted: Bool
    }

    struct Swarm: Sendable {
        var infoHash: InfoHash
        var completed: UInt32 = 0
        var peers: [Peer] = []
        /// Since when there have been no peers; 0 while there are.
        var emptySince: UInt32 = 0

        func place(of address: SocketAddress) -> Int? { peers.firstIndex { $0.address == address } }

        var counts: SwarmCounts {
            var counts = SwarmCounts(completed: completed)
            for peer in peers {
                if peer.left == 0 { counts.seeders += 1 } else { counts.leechers += 1 }
            }
            return counts
        }
    }

    private(set) var swarms: [Swarm] = []
    private(set) var rules = AccessRules()
    private(set) var torrents: [RegisteredTorrent] = []
    /// The last entry that was applied, and its time.
    private(set) var index: UInt64 = 0
    private(set) var time = WallTime(milliseconds: 0)

    // MARK: Looking

    func swarm(_ infoHash: InfoHash) -> Swarm? { place(of: infoHash).map { swarms[$0] } }

    private func place(of infoHash: InfoHash) -> Int? { swarms.firstIndex { $0.infoHash == infoHash } }

    func counts(of infoHash: InfoHash) -> SwarmCounts { swarm(infoHash)?.counts ?? SwarmCounts() }

    var peerCount: Int { swarms.reduce(0) { $0 + $1.peers.count } }

    /// Peers at an IPv4 address, or in an IPv6 network of 64 bits.
    func peers(near address: SocketAddress) -> Int {
        swarms.reduce(0) { sum, swarm in
            sum
                + swarm.peers.count { peer in
                    address.isIPv4
                        ? peer.address.high == 0 && peer.address.low == address.low : peer.address.high == address.high
                }
        }
    }

    /// Whether an announce may be let in: it stops, or its peer is here already, or there is room within the limits.
    func hasRoom(for announced: Announced, _ limits: Limits) -> Bool {
        let swarm = swarm(announced.infoHash)
        if announced.event == .stopped || swarm?.place(of: announced.address) != nil { return true }
        if swarm == nil, swarms.count >= limits.torrents { return false }
        let count = peerCount
        return count < limits.peers && (swarm?.peers.count ?? 0) < limits.peersPerSwarm
            && peers(near: announced.address) < limits.peersPerAddress(among: count)
    }

    // MARK: Changing

    mutating func begin(_ header: EntryHeader) {
        index = header.index
        time = header.time
    }

    /// Applies an update; `table` says into which shard an info hash falls, and nothing else is asked of it.
    mutating func apply(_ update: Update, _ table: SwarmTable) {
        switch update {
        case .announceIPv4(let announce):
            self.announce(
                announce.infoHash, announce.event,
                Peer(
                    address: announce.endpoint.socketAddress, peerID: announce.peerID,
                    downloaded: announce.downloaded, left: announce.left, lastSeen: time.seconds, isCounted: false))
        case .announceIPv6(let announce):
            self.announce(
                announce.infoHash, announce.event,
                Peer(
                    address: announce.endpoint.socketAddress, peerID: announce.peerID,
                    downloaded: announce.downloaded, left: announce.left, lastSeen: time.seconds, isCounted: false))
        case .expire(let shard, let seenBefore, let emptyBefore):
            expire(seenBefore: seenBefore, emptyBefore: emptyBefore) { table.shard(of: $0) == shard }
        case .emptyShard(let shard):
            swarms.removeAll { table.shard(of: $0.infoHash) == shard }
        case .registerTorrent(let infoHash, let byteCount, let name):
            let name = String(decoding: name, as: UTF8.self)
            torrents.removeAll { $0.infoHash == infoHash }
            torrents.append(RegisteredTorrent(infoHash: infoHash, name: name, byteCount: byteCount))
        case .unregisterTorrent(let infoHash): torrents.removeAll { $0.infoHash == infoHash }
        case .setAccessMode(let mode): rules.mode = AccessMode(rawValue: mode) ?? .open
        case .listInfoHash(let infoHash):
            if !rules.infoHashes.contains(infoHash) { rules.infoHashes.append(infoHash) }
        case .unlistInfoHash(let infoHash): rules.infoHashes.removeAll { $0 == infoHash }
        case .putUser(let name, let passkey):
            let user = User(name: String(decoding: name, as: UTF8.self), passkey: passkey)
            rules.users.removeAll { $0.name == user.name || $0.passkey == user.passkey }
            rules.users.append(user)
        case .removeUser(let name): rules.users.removeAll { Array($0.name.utf8) == name }
        case .setMembers, .mergePeer, .mergeStop, .mergeCompleted, .setInterval, .console: break
        }
    }

    private mutating func announce(_ infoHash: InfoHash, _ event: AnnounceEvent, _ peer: Peer) {
        guard event != .stopped else { return leave(infoHash, peer.address) }
        if place(of: infoHash) == nil { swarms.append(Swarm(infoHash: infoHash)) }
        guard let swarm = place(of: infoHash) else { preconditionFailure("a swarm was found or made") }
        var peer = peer
        let old = swarms[swarm].place(of: peer.address)
        let wasCounted = old.map { swarms[swarm].peers[$0].isCounted } ?? false
        let isOther = old.map { swarms[swarm].peers[$0].peerID != peer.peerID } ?? false
        let completes = event == .completed && peer.left == 0 && !wasCounted && !isOther
        let cameComplete = old == nil && peer.left == 0
        peer.isCounted = completes || cameComplete || (wasCounted && !(event == .started && peer.left > 0 && isOther))
        if completes { swarms[swarm].completed += 1 }
        swarms[swarm].emptySince = 0
        if let old {
            swarms[swarm].peers[old] = peer
        } else {
            swarms[swarm].peers.append(peer)
        }
    }

    private mutating func leave(_ infoHash: InfoHash, _ address: SocketAddress) {
        guard let swarm = place(of: infoHash), let peer = swarms[swarm].place(of: address) else { return }
        swarms[swarm].peers.remove(at: peer)
        settle(swarm, time.seconds)
    }

    /// A swarm whose last peer has gone keeps its count of downloads, if it has one.
    private mutating func settle(_ swarm: Int, _ time: UInt32) {
        guard swarms[swarm].peers.isEmpty else { return }
        if swarms[swarm].completed == 0 {
            swarms.remove(at: swarm)
        } else {
            swarms[swarm].emptySince = max(time, 1)
        }
    }

    private mutating func expire(
        seenBefore: UInt32, emptyBefore: UInt32, where isInShard: (InfoHash) -> Bool
    ) {
        for place in swarms.indices.reversed() where isInShard(swarms[place].infoHash) {
            if swarms[place].peers.isEmpty {
                if swarms[place].emptySince < emptyBefore { swarms.remove(at: place) }
                continue
            }
            swarms[place].peers.removeAll { $0.lastSeen < seenBefore }
            settle(place, seenBefore)
        }
    }

    /// An orderly stop: the swarms go, with their counts.
    mutating func removeAllSwarms() { swarms = [] }
}
