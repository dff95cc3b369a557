// What survivor mode keeps for the case of a merge: for how long, how much of it, and how it is written down.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite("What is kept for a merge")
struct MergeDataTests {
    private typealias Story = MergeStory

    // MARK: What is kept, and for how long

    @Test func `tombstones go with the silent, and an announce ends its own`() throws {
        var repository = Repository()
        let empty = repository.state.digest
        try repository.apply(Story.announce(.stopped), Story.announce(.stopped, .v6(1)))
        let stopped = repository.state.digest
        #expect(stopped != empty)
        try repository.expire(seenBefore: 1_000)
        #expect(repository.state.digest == stopped)
        try repository.expire(seenBefore: 1_001)
        #expect(repository.state.digest == empty)

        try repository.apply(Story.announce(.stopped))
        repository.time += 1
        var fresh = Repository()
        fresh.time += 1
        try repository.apply(Story.announce())
        try fresh.apply(Story.announce())
        #expect(repository.state.digest == fresh.state.digest)
    }

    @Test func `what would be expired at once is not merged`() throws {
        var other = Repository(master: 2)
        try other.apply(Story.announce(), Story.announce(.stopped, .v4(2)))
        other.time += 1
        try other.apply(Story.announce(.none, .v4(3)), Story.announce(.stopped, .v4(4)))
        let updates = try other.chunks.flatMap { try Repository().state.mergeUpdates(from: $0, seenBefore: 1_001) }
        #expect(updates.contains(Story.merged(.v4(3), lastSeen: 1_001)))
        #expect(updates.contains(.mergeStop(Story.torrent, .v4(4), at: 1_001)))
        #expect(updates.count == 2)
    }

    @Test func `a shard keeps 4,096 tombstones, and the oldest go first`() throws {
        var random = RandomStream(seed: 6)
        var stops = (0..<5_000).map { Update.mergeStop(Story.torrent, .v4($0), at: UInt32(100 + $0 / 2)) }
        var digests: [UInt64] = []
        for _ in 0..<3 {
            var repository = Repository(shardCount: 1)
            try repository.apply(stops)
            digests.append(repository.state.digest)
            let peers = (0..<5_000).map { Story.merged(.v4($0), lastSeen: 50) }
            try repository.apply(peers)
            #expect(repository.state.table.counts.peers == 5_000 - 4_096)
            #expect(repository.contains(Story.torrent, .v4(903)))
            #expect(!repository.contains(Story.torrent, .v4(904)))
            random.shuffle(&stops)
        }
        #expect(Set(digests).count == 1, "which ones are kept is no matter of order")
    }

    @Test func `without survivor mode nothing is kept for a merge`() throws {
        var repository = Repository(keepsMergeData: false)
        let empty = repository.state.digest
        let size = repository.state.table.byteCount
        for number in 0..<50 { try repository.apply(Story.announce(.stopped, .v4(number))) }
        try repository.apply(.mergeStop(Story.torrent, Story.client, at: 9_000))
        try repository.apply(.mergeCompleted(Story.torrent, origin: 2, count: 7))
        #expect(repository.state.digest == empty)
        #expect(repository.state.table.byteCount == size)
        #expect(repository.state.table.counts == TableCounts())
        // What comes is still applied in the one way that there is.
        try repository.apply(Story.merged(lastSeen: 5), .mergeStop(Story.torrent, Story.client, at: 4))
        #expect(repository.contains(Story.torrent, Story.client))
        try repository.apply(.mergeStop(Story.torrent, Story.client, at: 5))
        #expect(repository.state.digest == empty)
    }

    // MARK: Written down and read back

    @Test func `stops and counts are in the digest and in the chunks`() throws {
        let stories: [[Update]] = [
            [], [.mergeStop(Story.torrent, Story.client, at: 5)], [.mergeStop(Story.torrent, Story.client, at: 6)],
            [.mergeStop(Story.torrent, .v4(2), at: 5)], [.mergeStop(Story.torrent, .v4(1, port: 2), at: 5)],
            [.mergeStop(Story.torrent, .v6(1), at: 5)], [.mergeStop(.numbered(2), Story.client, at: 5)],
            [.mergeCompleted(Story.torrent, origin: 1, count: 2)],
            [.mergeCompleted(Story.torrent, origin: 2, count: 2)],
            [.mergeCompleted(Story.torrent, origin: 1, count: 1), .mergeCompleted(Story.torrent, origin: 2, count: 1)],
            [.mergeCompleted(Story.torrent, origin: 1, count: 3)],
            [.mergeCompleted(.numbered(2), origin: 1, count: 2)],
        ]
        var digests: [UInt64] = []
        for story in stories {
            var repository = Repository()
            try repository.apply(story)
            digests.append(repository.state.digest)
            let copy = try repository.transferred()
            #expect(copy.state == repository.state)
            #expect(copy.state.table.counts == repository.state.table.counts)
        }
        #expect(Set(digests).count == digests.count)
    }

    @Test func `whoever took the chunks goes on as whoever wrote them`() throws {
        for seed in 0..<30 as Range<UInt64> {
            var random = RandomStream(seed: seed, stream: 7)
            let (sides, _) = try Story.sides(&random, skew: 10)
            var whole = try sides[0].merged(with: sides[1])
            var copy = try whole.transferred()
            #expect(copy.state == whole.state)
            let later = try whole.missing(from: sides[2])
            try whole.apply(later)
            #expect(try copy.missing(from: sides[2]).count == later.count)
            try copy.apply(later)
            #expect(copy.state.digest == whole.state.digest)
            try whole.expire(seenBefore: 1_020, emptyBefore: 1_005)
            try copy.expire(seenBefore: 1_020, emptyBefore: 1_005)
            #expect(copy.state.digest == whole.state.digest)
            #expect(try copy.images() == whole.images())
            #expect(copy.state.table.counts == whole.state.table.counts)
        }
    }

    @Test func `torrents that are registered there are registered here, and no rule changes`() throws {
        var a = Repository()
        try a.apply(
            .registerTorrent(.numbered(1), byteCount: 1, name: Array("ours".utf8)), .setMembers([1, 2]),
            .setAccessMode(AccessMode.allow.rawValue), .listInfoHash(.numbered(1)))
        var b = Repository(master: 2)
        try b.apply(
            .registerTorrent(.numbered(1), byteCount: 2, name: Array("theirs".utf8)),
            .registerTorrent(.numbered(2), byteCount: 3, name: Array("both".utf8)), .setMembers([7]),
            .setAccessMode(AccessMode.deny.rawValue), .listInfoHash(.numbered(2)),
            .putUser(name: [97], passkey: [98]))
        let updates = try a.missing(from: b)
        #expect(updates == [.registerTorrent(.numbered(2), byteCount: 3, name: Array("both".utf8))])
        try a.apply(updates)
        #expect(a.state.registry.find(.numbered(1))?.name == "ours")
        #expect(a.state.registry.find(.numbered(2))?.byteCount == 3)
        #expect(a.state.members == [1, 2])
        #expect(a.state.access.mode == .allow)
        #expect(try a.missing(from: b).isEmpty)
    }

    @Test func `a damaged chunk is refused, and one that says nonsense harms nobody`() throws {
        var random = RandomStream(seed: 8)
        let (sides, _) = try Story.sides(&random, skew: 10, shardCounts: [1, 1, 1])
        let chunk = sides[1].chunks[1]
        var counts = (read: 0, refused: 0)
        for round in 0..<rounds(10_000) {
            var bytes = chunk.bytes
            let content = 30..<(bytes.count - 8)
            let offset = content.lowerBound + random.below(content.count)
            bytes[offset] = random.oneIn(2) ? UInt8(random.below(256)) : bytes[offset] ^ 1
            if random.oneIn(10) { bytes.removeSubrange(offset..<content.upperBound) }
            let broken = SnapshotChunk(number: 1, index: chunk.index, bytes: bytes)
            if bytes != chunk.bytes {
                #expect(throws: ChunkDamaged(number: 1), "round \(round)") {
                    try sides[0].state.mergeUpdates(from: broken)
                }
            }
            // With a checksum that fits, as if another tracker had really written it.
            bytes.removeLast(8)
            let sum = checksum(bytes.span.bytes)
            bytes.append(bigEndian: sum)
            let sealed = SnapshotChunk(number: 1, index: chunk.index, bytes: bytes)
            var repository = sides[0]
            do {
                try repository.apply(try repository.state.mergeUpdates(from: sealed))
                counts.read += 1
            } catch is ChunkDamaged {
                counts.refused += 1
            }
        }
        #expect(counts.read > 100)
        #expect(counts.refused > 100)
    }
}
