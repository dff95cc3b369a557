// The swarm table against a dumb model, over hundreds of thousands of random updates and requests.

import Primitives
import Testing
import TrackerLogic
import Wire

/// A state that is fed entries as if from a log, beside a model that is told the same.
struct ModelledTable {
    private(set) var state: ReplicatedState
    private(set) var model = ReferenceSwarmTable()
    private(set) var time: UInt32
    private var index: UInt64 = 0
    private var bytes: [UInt8] = []
    private var updateCount: UInt32 = 0
    let shardCount: UInt32

    init(shardCount: UInt32 = 4, time: UInt32 = 1_800_000_000) {
        self.shardCount = shardCount
        self.time = time
        state = ReplicatedState(secret: NodeHarness.secret, shardCount: shardCount)
        EntryHeader.reserve(in: &bytes)
    }

    var table: SwarmTable { state.table }

    /// Adds an update to the entry under way.
    mutating func add(_ update: Update) {
        update.encode(into: &bytes)
        updateCount += 1
        switch update {
        case .announceIPv4(let announce): model.apply(announce, time: time)
        case .announceIPv6(let announce): model.apply(announce, time: time)
        case .expire(let shard, let seenBefore, let emptyBefore):
            let table = table
            model.expire(seenBefore: seenBefore, emptyBefore: emptyBefore) { table.shard(of: $0) == shard }
        case .registerTorrent, .unregisterTorrent, .setAccessMode, .listInfoHash, .unlistInfoHash, .putUser,
            .removeUser, .setMembers, .mergePeer, .mergeStop, .mergeCompleted, .setInterval, .console:
            break
        case .emptyShard(let shard):
            let table = table
            model.empty { table.shard(of: $0) == shard }
        }
    }

    /// Ends the entry: the state applies it.
    mutating func commit(thenPass seconds: UInt32 = 0) throws {
        index += 1
        EntryHeader(
            index: index, epoch: Epoch(round: 1, id: 1), time: WallTime(milliseconds: Int64(time) * 1000),
            updateCount: updateCount, previous: state.chain
        ).seal(&bytes)
        try state.apply(entry: bytes)
        EntryHeader.reserve(in: &bytes)
        updateCount = 0
        time += seconds
    }

    /// All swarms, as a snapshot tells them.
    func images() throws -> [SwarmImage] {
        try (1..<state.chunkCount).flatMap { try state.chunk($0).swarms() }.inOrder
    }

    /// Compares everything that can be asked.
    func check(_ context: String, _ location: SourceLocation = #_sourceLocation) throws {
        #expect(table.counts == model.counts, "\(context)", sourceLocation: location)
        for number in 0..<40 where table.counts(of: .numbered(number)) != model.counts(.numbered(number)) {
            Issue.record("\(context): the counts of torrent \(number) differ", sourceLocation: location)
        }
        let images = try images()
        for address in images.flatMap({ $0.peers.map(\.address) }) + [.v4(9_999_999), .v6(9_999_999)]
        where table.peers(at: address) != model.peers(near: address) {
            Issue.record("\(context): the peers at \(address.host) are miscounted", sourceLocation: location)
        }
        if images != model.images { Issue.record("\(context): the contents differ", sourceLocation: location) }
    }
}

@Suite("Swarm table")
struct SwarmTableTests {
    /// The lives that swarms lead: how many peers they have at most, and how often those leave.
    struct Shape: Sendable, CustomTestStringConvertible {
        var name: String
        var torrents: Int
        var addresses: Int
        /// Of 100 announces, how many are `stopped` in times of growth and of decline.
        var stops: (growth: Int, decline: Int)
        var testDescription: String { name }
    }

    static let shapes = [
        Shape(name: "many swarms of a few", torrents: 40, addresses: 6, stops: (20, 70)),
        Shape(name: "swarms around the size where they become large", torrents: 6, addresses: 24, stops: (10, 60)),
        Shape(name: "one large swarm", torrents: 1, addresses: 300, stops: (5, 80)),
        Shape(name: "few large swarms", torrents: 3, addresses: 120, stops: (5, 80)),
    ]

    private func randomUpdate(_ shape: Shape, _ stops: Int, _ random: inout RandomStream) -> Update {
        let number = random.below(shape.addresses)
        let address = random.oneIn(3) ? SocketAddress.v6(number / 2, port: UInt16(1 + number % 2)) : .v4(number)
        let events: [AnnounceEvent] = [.none, .none, .started, .completed]
        let event = random.below(100) < stops ? AnnounceEvent.stopped : events[random.below(4)]
        let peer = ReferenceSwarmTable.Peer(
            peerID: PeerID(InfoHash.numbered(random.below(3)).bytes), downloaded: UInt64(random.below(5)),
            left: UInt64(random.below(2)), lastSeen: 0, isCounted: false)
        return .announce(.numbered(random.below(shape.torrents)), address, peer, event)
    }

    @Test(arguments: shapes)
    func `the table does what the model does`(_ shape: Shape) throws {
        var random = RandomStream(seed: 31, stream: UInt64(shape.torrents))
        var both = ModelledTable()
        let total = rounds(200_000)
        var done = 0
        var entries = 0
        while done < total {
            // Growth and decline by turns, so that blocks grow, shrink, come free and are compacted.
            let stops = entries / 150 % 2 == 0 ? shape.stops.growth : shape.stops.decline
            for _ in 0...random.below(40) {
                both.add(randomUpdate(shape, stops, &random))
                done += 1
            }
            if random.oneIn(30) {
                let age = UInt32(random.below(60))
                both.add(
                    .expire(
                        shard: UInt32(random.below(4)), seenBefore: both.time - age,
                        emptyBefore: both.time - age * 3))
            }
            try both.commit(thenPass: UInt32(random.below(3)))
            entries += 1
            #expect(both.table.counts == both.model.counts)
            if entries % 100 == 0 { try both.check("after \(done) updates") }
        }
        try both.check("at the end")
        #expect(both.model.swarms.values.contains { $0.completed > 0 })
    }

    @Test(arguments: shapes)
    func `the digest tells contents, not history`(_ shape: Shape) throws {
        var random = RandomStream(seed: 32, stream: UInt64(shape.torrents))
        var both = ModelledTable()
        for round in 0..<20 {
            for _ in 0..<200 { both.add(randomUpdate(shape, 30, &random)) }
            both.add(.expire(shard: UInt32(random.below(4)), seenBefore: both.time - 10, emptyBefore: both.time - 20))
            if random.oneIn(8) { both.add(.emptyShard(UInt32(random.below(4)))) }
            try both.commit(thenPass: 1)

            var retold = ModelledTable(time: 1)
            for (time, update) in both.model.retold(&random) {
                if time > retold.time { try retold.commit(thenPass: time - retold.time) }
                retold.add(update)
            }
            try retold.commit()
            let isSame = retold.model.swarms == both.model.swarms
            #expect(isSame, "the retelling is at fault")
            #expect(retold.table.digest == both.table.digest, "round \(round)")
            #expect(retold.table.counts == both.table.counts)
        }
    }

    @Test func `any difference in the contents shows in the digest`() throws {
        func digest(_ change: (inout ModelledTable) -> Void) throws -> UInt64 {
            var both = ModelledTable()
            change(&both)
            try both.commit()
            return both.state.digest
        }
        func peer(
            _ id: Int = 1, downloaded: UInt64 = 1, left: UInt64 = 1
        ) -> ReferenceSwarmTable.Peer {
            ReferenceSwarmTable.Peer(
                peerID: PeerID(InfoHash.numbered(id).bytes), downloaded: downloaded, left: left, lastSeen: 0,
                isCounted: false)
        }
        let digests = [
            try digest { _ in },
            try digest { $0.add(.announce(.numbered(1), .v4(1), peer(), .none)) },
            try digest { $0.add(.announce(.numbered(2), .v4(1), peer(), .none)) },
            try digest { $0.add(.announce(.numbered(1), .v4(2), peer(), .none)) },
            try digest { $0.add(.announce(.numbered(1), .v4(1, port: 2), peer(), .none)) },
            try digest { $0.add(.announce(.numbered(1), .v6(1), peer(), .none)) },
            try digest { $0.add(.announce(.numbered(1), .v4(1), peer(2), .none)) },
            try digest { $0.add(.announce(.numbered(1), .v4(1), peer(downloaded: 2), .none)) },
            try digest { $0.add(.announce(.numbered(1), .v4(1), peer(left: 2), .none)) },
            try digest { $0.add(.announce(.numbered(1), .v4(1), peer(left: 0), .none)) },
            try digest { $0.add(.announce(.numbered(1), .v4(1), peer(left: 0), .completed)) },
            try digest {
                $0.add(.announce(.numbered(1), .v4(1), peer(left: 0), .completed))
                $0.add(.announce(.numbered(1), .v4(1), peer(left: 0), .stopped))
            },
            try digest {
                $0.add(.announce(.numbered(1), .v4(1), peer(left: 0), .completed))
                $0.add(.announce(.numbered(1), .v4(1), peer(left: 0), .stopped))
                try? $0.commit(thenPass: 5)
                $0.add(.announce(.numbered(1), .v4(1), peer(left: 0), .none))
                $0.add(.announce(.numbered(1), .v4(1), peer(left: 0), .stopped))
            },
            try digest {
                try? $0.commit(thenPass: 1)
                $0.add(.announce(.numbered(1), .v4(1), peer(), .none))
            },
            try digest { $0.add(.setAccessMode(1)) },
            try digest { $0.add(.setAccessMode(2)) },
            try digest { $0.add(.listInfoHash(.numbered(1))) },
            try digest { $0.add(.listInfoHash(.numbered(2))) },
            try digest { $0.add(.putUser(name: [97], passkey: [98])) },
            try digest { $0.add(.putUser(name: [98], passkey: [97])) },
            try digest { $0.add(.registerTorrent(.numbered(1), byteCount: 1, name: [97])) },
            try digest { $0.add(.registerTorrent(.numbered(1), byteCount: 2, name: [97])) },
            try digest { $0.add(.registerTorrent(.numbered(1), byteCount: 1, name: [98])) },
            try digest { $0.add(.registerTorrent(.numbered(2), byteCount: 1, name: [97])) },
        ]
        #expect(Set(digests).count == digests.count)
    }

    @Test func `an empty table has the digest of one that has become empty`() throws {
        var both = ModelledTable()
        let before = both.state.digest
        for number in 0..<100 {
            both.add(.announce(.numbered(number % 5), .v4(number), .leecher, .none))
            both.add(.listInfoHash(.numbered(number)))
            both.add(.putUser(name: [UInt8(number)], passkey: [UInt8(number)]))
            both.add(.registerTorrent(.numbered(number), byteCount: 1, name: []))
        }
        both.add(.setAccessMode(3))
        try both.commit()
        #expect(both.state.digest != before)
        for number in 0..<100 {
            both.add(.announce(.numbered(number % 5), .v4(number), .leecher, .stopped))
            both.add(.unlistInfoHash(.numbered(number)))
            both.add(.removeUser(name: [UInt8(number)]))
            both.add(.unregisterTorrent(.numbered(number)))
        }
        both.add(.setAccessMode(0))
        try both.commit()
        #expect(both.state.digest == before)
        #expect(both.table.counts == TableCounts())
    }

    @Test func `a stranger's stop keeps no empty torrent alive`() throws {
        var both = ModelledTable()
        let infoHash = InfoHash.numbered(1)
        both.add(.announce(infoHash, .v4(1), .seeder, .completed))
        both.add(.announce(infoHash, .v4(1), .seeder, .stopped))
        try both.commit(thenPass: 100)
        both.add(.announce(infoHash, .v4(2), .seeder, .stopped))
        both.add(.expire(shard: both.table.shard(of: infoHash), seenBefore: 0, emptyBefore: both.time - 50))
        try both.commit()
        #expect(both.table.counts.torrents == 0)
        try both.check("after the expiry")
    }

    @Test func `memory comes back when swarms shrink`() throws {
        var both = ModelledTable(shardCount: 1)
        for number in 0..<2_000 {
            for peer in 0..<10 { both.add(.announce(.numbered(number), .v4(peer), .leecher, .none)) }
        }
        try both.commit()
        let full = both.table.byteCount
        for number in 0..<2_000 {
            for peer in 1..<10 { both.add(.announce(.numbered(number), .v4(peer), .leecher, .stopped)) }
        }
        try both.commit()
        #expect(both.table.counts.peers == 2_000)
        #expect(both.table.byteCount < full / 2)
    }

    /// Else whoever fills one swarm after another, and leaves a few peers in each, would have the memory of all.
    @Test func `memory comes back when a large swarm stays large`() throws {
        var both = ModelledTable(shardCount: 1)
        for swarm in 0..<4 {
            for peer in 0..<5_000 { both.add(.announce(.numbered(swarm), .v4(peer), .leecher, .none)) }
            try both.commit()
            let full = both.table.byteCount
            for peer in 20..<5_000 { both.add(.announce(.numbered(swarm), .v4(peer), .leecher, .stopped)) }
            try both.commit()
            try both.check("after swarm \(swarm) has shrunk")
            #expect(both.table.byteCount < full / 2)
        }
    }

    // MARK: Through requests

    @Test(arguments: shapes)
    func `replies name peers that are there, and as many as there are`(_ shape: Shape) throws {
        var random = RandomStream(seed: 33, stream: UInt64(shape.torrents))
        var model = ReferenceSwarmTable()
        var harness = NodeHarness()
        let time = harness.now.wall.seconds
        var faults: [String] = []
        for round in 0..<rounds(40_000) {
            let stops = round / 3_000 % 2 == 0 ? shape.stops.growth : shape.stops.decline
            let update = randomUpdate(shape, stops, &random)
            let (announce, address) = request(update, wanting: random.below(30))
            let answer = try harness.request(.announce(announce), from: address)
            switch update {
            case .announceIPv4(let announce): model.apply(announce, time: time)
            case .announceIPv6(let announce): model.apply(announce, time: time)
            default: break
            }
            guard case .announce(let reply) = answer else {
                Issue.record("\(answer)")
                return
            }
            let swarm = model.swarms[announce.infoHash] ?? ReferenceSwarmTable.Swarm()
            var named: [SocketAddress: PeerID] = [:]
            for peer in reply.ipv4 { named[peer.endpoint.socketAddress] = peer.peerID }
            for peer in reply.ipv6 { named[peer.endpoint.socketAddress] = peer.peerID }
            let own = address.port(announce.port)
            let isSeeder = announce.left == 0
            let others = swarm.peers.filter { $0.key != own && !(isSeeder && $0.value.left == 0) }
            let expected = announce.event == .stopped ? 0 : min(announce.numWant ?? 0, others.count)
            if reply.counts != model.counts(announce.infoHash) { faults.append("counts in round \(round)") }
            if reply.ipv4.count + reply.ipv6.count != named.count { faults.append("a repeat in round \(round)") }
            if named.count != expected { faults.append("\(named.count), not \(expected) peers in round \(round)") }
            if !named.allSatisfy({ others[$0.key]?.peerID == $0.value }) { faults.append("a ghost in \(round)") }
        }
        #expect(faults.isEmpty, "\(faults.prefix(5))")
    }

    private func request(_ update: Update, wanting numWant: Int) -> (Announce, SocketAddress) {
        func announce<Endpoint>(_ update: AnnounceUpdate<Endpoint>) -> (Announce, SocketAddress) {
            let address = update.endpoint.socketAddress
            let announce = Announce(
                infoHash: update.infoHash, peerID: update.peerID, downloaded: update.downloaded, left: update.left,
                event: update.event, numWant: numWant, port: address.port)
            return (announce, address)
        }
        switch update {
        case .announceIPv4(let update): return announce(update)
        case .announceIPv6(let update): return announce(update)
        default: preconditionFailure("only announces are asked for here")
        }
    }
}

extension ReferenceSwarmTable.Peer {
    static let leecher = ReferenceSwarmTable.Peer(peerID: .zero, downloaded: 0, left: 1, lastSeen: 0, isCounted: false)
    static let seeder = ReferenceSwarmTable.Peer(peerID: .zero, downloaded: 0, left: 0, lastSeen: 0, isCounted: false)
}
