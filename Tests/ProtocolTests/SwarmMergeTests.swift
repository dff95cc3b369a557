// Two repositories become one after a partition (rule 12): in whatever order, and however often.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("Merge of repositories")
struct SwarmMergeTests {
    private typealias Story = MergeStory

    // MARK: Three sides of a partition

    @Test(arguments: [0, 20])
    func `merging is commutative, associative and idempotent, and does what the model does`(_ skew: Int) throws {
        var changes = 0
        for seed in 0..<UInt64(rounds(150)) {
            var random = RandomStream(seed: seed, stream: UInt64(skew))
            let (sides, models) = try Story.sides(&random, skew: skew)
            let (a, b, c) = (sides[0], sides[1], sides[2])
            for (side, model) in zip(sides, models) { #expect(try side.images() == model.images, "seed \(seed)") }

            let ab = try a.merged(with: b)
            let ba = try b.merged(with: a)
            #expect(ab.state.digest == ba.state.digest, "commutative; seed \(seed)")
            #expect(try ab.images() == ba.images())

            let left = try ab.merged(with: c)
            let right = try a.merged(with: try b.merged(with: c))
            #expect(left.state.digest == right.state.digest, "associative; seed \(seed)")
            #expect(try left.images() == right.images())
            #expect(left.state.table.counts == right.state.table.counts)

            #expect(try a.missing(from: a).isEmpty, "idempotent; seed \(seed)")
            for side in sides { #expect(try left.missing(from: side).isEmpty, "idempotent; seed \(seed)") }

            var model = models[0]
            for other in models { model.merge(other) }
            #expect(try left.images() == model.images, "seed \(seed)")
            if left.state.digest != a.state.digest { changes += 1 }
        }
        #expect(changes == rounds(150))
    }

    @Test func `the updates of a merge may come in any order, and any number of times`() throws {
        for seed in 0..<UInt64(rounds(100)) {
            var random = RandomStream(seed: seed, stream: 2)
            let (sides, _) = try Story.sides(&random, skew: 20)
            var updates = try sides[0].missing(from: sides[1]) + sides[0].missing(from: sides[2])
            var inOrder = sides[0]
            try inOrder.apply(updates)
            updates += updates
            random.shuffle(&updates)
            var shuffled = sides[0]
            while !updates.isEmpty {
                try shuffled.apply(Array(updates.suffix(5)))
                updates.removeLast(min(5, updates.count))
                shuffled.time += 1
            }
            #expect(shuffled.state.digest == inOrder.state.digest, "seed \(seed)")
            #expect(try shuffled.images() == inOrder.images(), "seed \(seed)")
        }
    }

    /// Clients speak now to one side, now to another; sides meet and part again; what was said last is the truth.
    @Test func `no live peer is lost, no stopped peer comes back, and completed counts add up`() throws {
        for seed in 0..<UInt64(rounds(100)) {
            var random = RandomStream(seed: seed, stream: 3)
            var sides = (1...3).map { Repository(master: UInt32($0)) }
            var truth: [MergeModel.Key: Bool] = [:]
            var completed: [InfoHash: UInt32] = [:]
            var told = Set<MergeModel.Key>()
            for round in 0..<300 {
                let key = MergeModel.Key(
                    infoHash: .numbered(random.below(5)),
                    address: random.oneIn(2) ? .v4(random.below(20)) : .v6(random.below(20)))
                var event = [.none, .started, .stopped, .completed][random.below(4)] as AnnounceEvent
                if event == .completed, !told.insert(key).inserted { event = .none }
                let side = random.below(3)
                sides[side].time = UInt32(1_000 + round)
                // Who has everything when it comes is not counted when it says so.
                let left: UInt64 = event == .completed ? 0 : 1
                try sides[side].apply(Story.announce(event, key.address, left: left, key.infoHash))
                truth[key] = event != .stopped
                if event == .completed { completed[key.infoHash, default: 0] += 1 }
                if random.oneIn(25) {
                    let (winner, loser) = (random.below(3), random.below(3))
                    let master = sides[loser].master
                    try sides[winner].merge(sides[loser])
                    sides[loser] = try sides[winner].transferred()
                    sides[loser].master = master
                }
            }
            let whole = try sides[0].merged(with: sides[1]).merged(with: sides[2])
            for (key, isThere) in truth where whole.contains(key.infoHash, key.address) != isThere {
                Issue.record("seed \(seed): \(key.address) of \(key.infoHash) \(isThere ? "is lost" : "came back")")
            }
            for (infoHash, count) in completed {
                #expect(whole.state.table.counts(of: infoHash).completed == count, "seed \(seed)")
            }
        }
    }

    @Test func `other shards and another secret make no difference`() throws {
        for seed in 0..<20 as Range<UInt64> {
            var random = RandomStream(seed: seed, stream: 4)
            let (sides, _) = try Story.sides(&random, skew: 5, shardCounts: [4, 1, 16])
            let (a, b, c) = (sides[0], sides[1], sides[2])
            #expect(
                try a.merged(with: b).merged(with: c).state.digest == b.merged(with: c).merged(with: a).state.digest)
            var foreign = Repository(secret: Repository.otherSecret)
            try foreign.merge(c)
            #expect(try foreign.images() == c.images())
            var home = Repository(time: 2_000)
            try home.merge(foreign)
            #expect(home.state.digest == c.state.digest)
        }
    }

    // MARK: Peers and stops, one by one

    /// What is known here, what comes, and whether the peer is there then.
    struct Meeting: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var here: [Update]
        var there: [Update]
        var isThere: Bool
    }

    static let meetings = [
        Meeting(testDescription: "unknown", here: [], there: [Story.merged(lastSeen: 5)], isThere: true),
        Meeting(
            testDescription: "stopped later", here: [.mergeStop(Story.torrent, Story.client, at: 6)],
            there: [Story.merged(lastSeen: 5)], isThere: false),
        Meeting(
            testDescription: "stopped in the same second", here: [.mergeStop(Story.torrent, Story.client, at: 5)],
            there: [Story.merged(lastSeen: 5)], isThere: false),
        Meeting(
            testDescription: "back after its stop", here: [.mergeStop(Story.torrent, Story.client, at: 4)],
            there: [Story.merged(lastSeen: 5)], isThere: true),
        Meeting(
            testDescription: "of two stops the later counts",
            here: [.mergeStop(Story.torrent, Story.client, at: 6), .mergeStop(Story.torrent, Story.client, at: 4)],
            there: [Story.merged(lastSeen: 5)], isThere: false),
        Meeting(
            testDescription: "the stop of another port is another's",
            here: [.mergeStop(Story.torrent, .v4(1, port: 9), at: 6)], there: [Story.merged(lastSeen: 5)], isThere: true
        ),
        Meeting(
            testDescription: "the stop in another swarm is another's",
            here: [.mergeStop(.numbered(2), Story.client, at: 6)], there: [Story.merged(lastSeen: 5)], isThere: true),
    ]

    @Test(arguments: meetings)
    func `the latest word counts, whoever says it`(_ meeting: Meeting) throws {
        for updates in [meeting.here + meeting.there, meeting.there + meeting.here] {
            var repository = Repository()
            try repository.apply(updates)
            #expect(repository.contains(Story.torrent, Story.client) == meeting.isThere)
            #expect(repository.state.table.counts.peers == (meeting.isThere ? 1 : 0))
            #expect(repository.state.table.counts.torrents == (meeting.isThere ? 1 : 0))
        }
    }

    @Test func `of two announces the newer is taken, and of two in one second always the same`() throws {
        let other = PeerID(InfoHash.numbered(3).bytes)
        let pairs: [(earlier: Update, later: Update)] = [
            (Story.merged(lastSeen: 5, downloaded: 9, isCounted: true), Story.merged(lastSeen: 6)),
            (Story.merged(lastSeen: 5, downloaded: 9), Story.merged(lastSeen: 5, isCounted: true)),
            (Story.merged(lastSeen: 5, left: 0), Story.merged(lastSeen: 5, downloaded: 1, left: 9)),
            (Story.merged(lastSeen: 5, left: 2, id: other), Story.merged(lastSeen: 5, left: 1)),
            (Story.merged(lastSeen: 5), Story.merged(lastSeen: 5, id: other)),
        ]
        for pair in pairs {
            var expected = Repository()
            try expected.apply(pair.later)
            for updates in [[pair.earlier, pair.later], [pair.later, pair.earlier]] {
                var repository = Repository()
                try repository.apply(updates)
                #expect(try repository.images() == expected.images())
                #expect(repository.state.digest == expected.state.digest)
                #expect(repository.state.table.counts == expected.state.table.counts)
            }
        }
    }

    @Test func `a merged peer may become a seeder, or a leecher again`() throws {
        var repository = Repository()
        try repository.apply(Story.announce(left: 5), Story.merged(lastSeen: 2_000, left: 0))
        #expect(repository.state.table.counts(of: Story.torrent) == SwarmCounts(seeders: 1))
        #expect(repository.state.table.counts.seeders == 1)
        try repository.apply(Story.merged(lastSeen: 2_001, left: 4))
        #expect(repository.state.table.counts(of: Story.torrent) == SwarmCounts(leechers: 1))
        #expect(repository.state.table.counts.seeders == 0)
    }

    @Test func `a stop is remembered though its peer was never here`() throws {
        var a = Repository(master: 1)
        var b = Repository(master: 2)
        try b.apply(Story.announce())
        a.time += 10
        try a.apply(Story.announce(.stopped))
        try a.merge(b)
        #expect(!a.contains(Story.torrent, Story.client))
        try b.merge(a)
        #expect(!b.contains(Story.torrent, Story.client))
        #expect(b.state.table.counts == TableCounts())
        #expect(a.state.digest == b.state.digest)
    }

    @Test func `who comes back in the second of his stop stays, also through a merge`() throws {
        var a = Repository(master: 1)
        try a.apply(Story.announce(), Story.announce(.stopped))
        let b = a
        try a.apply(Story.announce(.started))
        for whole in [try a.merged(with: b), try b.merged(with: a)] {
            #expect(whole.contains(Story.torrent, Story.client))
        }
        // And who stops again in that second is gone.
        let back = a
        try a.apply(Story.announce(.stopped))
        for whole in [try a.merged(with: back), try back.merged(with: a), try a.merged(with: b)] {
            #expect(!whole.contains(Story.torrent, Story.client))
        }
    }

    @Test func `a clock that is behind neither hides a peer nor brings it back`() throws {
        var ahead = Repository(master: 2, time: 1_500)
        try ahead.apply(Story.announce(), Story.announce(.stopped, .v4(2)))
        var behind = Repository(master: 1, time: 1_000)
        try behind.merge(ahead)
        try behind.apply(Story.announce(.stopped), Story.announce(.none, .v4(2)))
        #expect(!behind.contains(Story.torrent, Story.client))
        #expect(behind.contains(Story.torrent, .v4(2)))
        try behind.merge(ahead)
        #expect(!behind.contains(Story.torrent, Story.client))
        #expect(behind.contains(Story.torrent, .v4(2)))
    }

    @Test func `a zone in an address names nobody else`() throws {
        var zoned = SocketAddress.v6(1)
        zoned.scope = 3
        var repository = Repository()
        try repository.apply(Story.merged(zoned, lastSeen: 5), Story.merged(.v6(1), lastSeen: 6))
        #expect(repository.state.table.counts.peersIPv6 == 1)
        try repository.apply(.mergeStop(Story.torrent, zoned, at: 7), Story.merged(.v6(1), lastSeen: 7))
        #expect(repository.state.table.counts == TableCounts())
    }

    @Test func `large swarms are merged as small ones are`() throws {
        var random = RandomStream(seed: 5)
        var a = Repository(master: 1)
        var b = Repository(master: 2)
        for number in 0..<400 {
            a.time = 1_000 + UInt32(random.below(100))
            b.time = 1_000 + UInt32(random.below(100))
            try a.apply(Story.announce(random.oneIn(3) ? .stopped : .none, .v4(number % 90), left: 0))
            try b.apply(Story.announce(random.oneIn(2) ? .stopped : .none, .v4(random.below(90)), left: 1))
        }
        let (ab, ba) = (try a.merged(with: b), try b.merged(with: a))
        #expect(ab.state.digest == ba.state.digest)
        #expect(try ab.images() == ba.images())
        #expect(ab.state.table.counts == ba.state.table.counts)
        #expect(ab.state.table.counts.peers > 20)
    }

    // MARK: Completed

    @Test func `each master's count is its own, and the larger of two of one master is taken`() throws {
        var a = Repository(master: 1)
        try a.apply(Story.announce(.completed, .v4(1), left: 0), Story.announce(.completed, .v4(2), left: 0))
        var b = a
        b.master = 2
        try a.apply(Story.announce(.completed, .v4(3), left: 0))
        try b.apply(Story.announce(.completed, .v4(4), left: 0), Story.announce(.completed, .v4(5), left: 0))
        let whole = try a.merged(with: b)
        #expect(whole.state.table.counts(of: Story.torrent) == SwarmCounts(seeders: 5, completed: 5))
        #expect(try b.merged(with: a).state.digest == whole.state.digest)

        var repository = Repository()
        try repository.apply(
            .mergeCompleted(Story.torrent, origin: 4, count: 3), .mergeCompleted(Story.torrent, origin: 4, count: 2),
            .mergeCompleted(Story.torrent, origin: 5, count: 1), .mergeCompleted(Story.torrent, origin: 6, count: 0))
        #expect(repository.state.table.counts(of: Story.torrent).completed == 4)
    }

    @Test func `a torrent that comes with its count alone is kept as an empty one`() throws {
        var repository = Repository(time: 5_000)
        try repository.apply(.mergeCompleted(Story.torrent, origin: 2, count: 7))
        #expect(repository.state.table.counts.torrents == 1)
        try repository.expire(seenBefore: 5_000, emptyBefore: 5_000)
        #expect(repository.state.table.counts(of: Story.torrent).completed == 7)
        try repository.expire(seenBefore: 5_000, emptyBefore: 5_001)
        #expect(repository.state.table.counts == TableCounts())
        #expect(repository.state.digest == Repository().state.digest, "its counts are gone with it")
        try repository.apply(Story.announce(.completed, left: 0))
        #expect(repository.state.table.counts(of: Story.torrent).completed == 1)
        try repository.apply(.mergeCompleted(.numbered(9), origin: 2, count: 0))
        #expect(repository.state.table.counts.torrents == 1, "a count of nothing makes no torrent")
    }

    @Test func `counts from before they were kept apart are nobody's`() throws {
        var old = Repository(master: 1, keepsMergeData: false)
        for number in 0..<3 { try old.apply(Story.announce(.completed, .v4(number), left: 0)) }
        var now = try old.transferred()
        #expect(now.state.table.counts(of: Story.torrent).completed == 3)
        try now.apply(Story.announce(.completed, .v4(3), left: 0))
        #expect(now.state.table.counts(of: Story.torrent).completed == 4)
        #expect(try now.missing(from: old).isEmpty)
        var other = Repository(master: 2)
        try other.apply(Story.announce(.completed, .v4(4), left: 0))
        try other.merge(old)
        try other.merge(now)
        #expect(other.state.table.counts(of: Story.torrent).completed == 5)
    }
}
