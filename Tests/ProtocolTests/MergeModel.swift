// What merging repositories must come to, in the dumbest way: the latest word on each peer, the largest count of each
// master. And a repository of the real kind, that a test holds in its hands.

import Primitives
import Testing
import TrackerLogic
import Wire

struct MergeModel: Equatable {
    struct Key: Hashable {
        var infoHash: InfoHash
        var address: SocketAddress
    }

    struct CountKey: Hashable {
        var infoHash: InfoHash
        var origin: UInt32
    }

    /// The latest that was heard of a peer.
    struct Word: Equatable {
        var time: UInt32
        /// nil for a stop.
        var peer: ReferenceSwarmTable.Peer?

        func isLater(than other: Word) -> Bool {
            func rank(_ word: Word) -> [UInt64] {
                guard let peer = word.peer else { return [UInt64(word.time), 1] }
                let id = peer.peerID.bytes.bytes.map { UInt64($0) }
                return [UInt64(word.time), 0, peer.isCounted ? 1 : 0, peer.downloaded, ~peer.left] + id
            }
            return rank(other).lexicographicallyPrecedes(rank(self))
        }
    }

    private(set) var words: [Key: Word] = [:]
    private(set) var counts: [CountKey: UInt32] = [:]

    /// A client tells a repository something; what follows an earlier word is never before it.
    mutating func announce(
        _ infoHash: InfoHash, _ address: SocketAddress, _ peer: ReferenceSwarmTable.Peer, _ event: AnnounceEvent,
        time: UInt32,
        origin: UInt32
    ) {
        let key = Key(infoHash: infoHash, address: address)
        let old = words[key]
        if event == .stopped {
            words[key] = Word(time: max(time, old?.time ?? 0), peer: nil)
            return
        }
        var peer = peer
        let isOther = old?.peer.map { $0.peerID != peer.peerID } ?? false
        let cameComplete = old?.peer == nil && peer.left == 0
        peer.isCounted = (old?.peer?.isCounted ?? false) && !(event == .started && peer.left > 0 && isOther)
        if event == .completed, peer.left == 0, !peer.isCounted, !isOther {
            peer.isCounted = true
            counts[CountKey(infoHash: infoHash, origin: origin), default: 0] += 1
        }
        if cameComplete { peer.isCounted = true }
        let isBack = old != nil && old?.peer == nil
        peer.lastSeen = max(time, (old?.time ?? 0) + (isBack ? 1 : 0))
        words[key] = Word(time: peer.lastSeen, peer: peer)
    }

    mutating func merge(_ other: MergeModel) {
        words.merge(other.words) { $1.isLater(than: $0) ? $1 : $0 }
        counts.merge(other.counts) { max($0, $1) }
    }

    /// In an order fit for comparing.
    var images: [SwarmImage] {
        var swarms: [InfoHash: SwarmImage] = [:]
        func change(_ infoHash: InfoHash, _ body: (inout SwarmImage) -> Void) {
            body(&swarms[infoHash, default: SwarmImage(infoHash: infoHash, completed: 0, peers: [])])
        }
        for (key, count) in counts { change(key.infoHash) { $0.completed += count } }
        for (key, word) in words {
            guard let peer = word.peer else { continue }
            let image = PeerImage(
                address: key.address, peerID: peer.peerID, downloaded: peer.downloaded, left: peer.left,
                lastSeen: peer.lastSeen, isCounted: peer.isCounted)
            change(key.infoHash) { $0.peers.append(image) }
        }
        return Array(swarms.values).inOrder
    }
}

/// The state of one side of a partition, whose master stamps entries with a clock of his own.
struct Repository {
    private(set) var state: ReplicatedState
    var master: UInt32
    var time: UInt32
    private let shardCount: UInt32

    static let otherSecret = ClusterSecret(5, 6, 7, 8)

    init(
        master: UInt32 = 1, shardCount: UInt32 = 4, secret: ClusterSecret = NodeHarness.secret, time: UInt32 = 1_000,
        keepsMergeData: Bool = true
    ) {
        state = ReplicatedState(secret: secret, shardCount: shardCount, keepsMergeData: keepsMergeData)
        self.master = master
        self.time = time
        self.shardCount = shardCount
    }

    /// One entry, now.
    mutating func apply(_ updates: [Update]) throws {
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        for update in updates { update.encode(into: &bytes) }
        EntryHeader(
            index: state.index + 1, epoch: Epoch(round: 9, id: 99), time: WallTime(milliseconds: Int64(time) * 1000),
            origin: master, updateCount: UInt32(updates.count), previous: state.chain
        ).seal(&bytes)
        try state.apply(entry: bytes)
    }

    mutating func apply(_ updates: Update...) throws { try apply(updates) }

    mutating func expire(seenBefore: UInt32, emptyBefore: UInt32 = 0) throws {
        try apply(
            (0..<shardCount).map { .expire(shard: $0, seenBefore: seenBefore, emptyBefore: emptyBefore) })
    }

    var chunks: [SnapshotChunk] { (0..<state.chunkCount).map { state.chunk($0) } }

    /// What another repository knows and this one does not.
    func missing(from other: Repository) throws -> [Update] {
        try other.chunks.flatMap { try state.mergeUpdates(from: $0) }
    }

    mutating func merge(_ other: Repository) throws { try apply(try missing(from: other)) }

    func merged(with other: Repository) throws -> Repository {
        var result = self
        try result.merge(other)
        return result
    }

    /// What a tracker has that took all chunks of this one.
    func transferred() throws -> Repository {
        var copy = self
        copy.state = ReplicatedState(secret: NodeHarness.secret, shardCount: shardCount, keepsMergeData: true)
        for chunk in chunks { try copy.state.restore(chunk) }
        return copy
    }

    /// All swarms, in an order fit for comparing.
    func images() throws -> [SwarmImage] { try chunks.dropFirst().flatMap { try $0.swarms() }.inOrder }

    func contains(_ infoHash: InfoHash, _ address: SocketAddress) -> Bool {
        state.table.contains(infoHash, address)
    }
}

/// What the tests of merges tell repositories.
enum MergeStory {
    static let torrent = InfoHash.numbered(1)
    static let client = SocketAddress.v4(1)

    static func announce(
        _ event: AnnounceEvent = .none, _ address: SocketAddress = client, left: UInt64 = 1, downloaded: UInt64 = 0,
        _ infoHash: InfoHash = torrent
    ) -> Update {
        let peer = ReferenceSwarmTable.Peer(
            peerID: .zero, downloaded: downloaded, left: left, lastSeen: 0, isCounted: false)
        return .announce(infoHash, address, peer, event)
    }

    static func merged(
        _ address: SocketAddress = client, lastSeen: UInt32, downloaded: UInt64 = 0, left: UInt64 = 1,
        id: PeerID = .zero, isCounted: Bool = false
    ) -> Update {
        .mergePeer(
            MergedPeer(
                infoHash: torrent, peerID: id, downloaded: downloaded, left: left, address: address,
                lastSeen: lastSeen, isCounted: isCounted))
    }

    /// Repositories that have a past in common and then do not hear each other, each with the model of what it knows.
    ///
    /// `skew` is by how many seconds the masters' clocks jump ahead at most.
    static func sides(
        _ random: inout RandomStream, skew: Int, shardCounts: [UInt32] = [4, 4, 4]
    ) throws -> (repositories: [Repository], models: [MergeModel]) {
        var repositories = shardCounts.map { Repository(shardCount: $0) }
        var models = Array(repeating: MergeModel(), count: repositories.count)
        for round in 0..<(60 + random.below(200)) {
            let infoHash = InfoHash.numbered(random.below(4))
            let address = random.oneIn(3) ? SocketAddress.v6(random.below(4)) : .v4(random.below(6))
            let events: [AnnounceEvent] = [.none, .started, .completed, .stopped, .stopped]
            let event = events[random.below(events.count)]
            let peer = ReferenceSwarmTable.Peer(
                peerID: PeerID(InfoHash.numbered(random.below(2)).bytes), downloaded: UInt64(random.below(2)),
                left: UInt64(random.below(2)), lastSeen: 0, isCounted: false)
            let update = Update.announce(infoHash, address, peer, event)
            let time = UInt32(1_000 + round / 8)
            let isCommon = round < 40
            for side in isCommon ? Array(0..<3) : [random.below(3)] {
                let late = isCommon ? 0 : UInt32(random.below(skew + 1))
                repositories[side].time = max(repositories[side].time, time + late)
                repositories[side].master = isCommon ? 1 : UInt32(side + 1)
                try repositories[side].apply(update)
                models[side].announce(
                    infoHash, address, peer, event, time: repositories[side].time,
                    origin: repositories[side].master)
            }
        }
        return (repositories, models)
    }
}
