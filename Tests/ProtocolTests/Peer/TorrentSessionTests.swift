// What sessions do with each other.

import PeerLogic
import Primitives
import Testing
import Wire

@Suite("Torrent session")
struct TorrentSessionTests {
    @Test func `a leecher has all of a seeder`() {
        var world = SmallWorld()
        let seeder = world.addSeeder()
        let leecher = world.add()
        world.introduce(leecher, to: seeder)
        #expect(world.run { $0.peers[leecher].session.isComplete })
        #expect(world.peers[leecher].stored.sorted() == Array(0..<8))
        #expect(world.peers[seeder].blocksSent == 16)
        #expect(world.peers[leecher].observations.contains(.completed))
        // Neither has anything for the other any more.
        #expect(world.peers[leecher].closed == [.bothComplete])
    }

    @Test func `leechers share what they have`() {
        var world = SmallWorld(pieceCount: 64)
        let seeder = world.addSeeder()
        let leechers = (0..<5).map { _ in world.add() }
        for leecher in leechers { world.introduce(leecher, to: seeder) }
        for leecher in leechers { for other in leechers where other != leecher { world.introduce(leecher, to: other) } }
        #expect(world.run { world in leechers.allSatisfy { world.peers[$0].session.isComplete } })
        #expect(world.peers[seeder].blocksSent < 5 * 128)
    }

    @Test func `who sends corrupt bytes is found among many, and the others are not blamed`() {
        var world = SmallWorld(pieceCount: 32)
        let seeder = world.addSeeder()
        let liar = world.addSeeder()
        let third = world.addSeeder()
        world.peers[liar].corrupts = true
        let leecher = world.add()
        world.introduce(leecher, to: seeder, liar, third)
        #expect(world.run { $0.peers[leecher].session.isComplete })
        let banned = world.peers[leecher].observations.filter { if case .banned = $0 { true } else { false } }
        #expect(banned == [.banned(world.peers[liar].address)])
    }

    @Test func `a full disk ends nothing, and what waits is written when there is room`() {
        var world = SmallWorld(pieceCount: 32)
        let seeder = world.addSeeder()
        let leecher = world.add { settings, _ in settings.maxBufferedByteCount = 5 * 32_768 }
        world.peers[leecher].diskIsFull = true
        world.introduce(leecher, to: seeder)
        #expect(!world.run(for: .seconds(60)) { $0.peers[leecher].session.isComplete })
        #expect((4 * 32_768...5 * 32_768).contains(world.peers[leecher].session.bufferedByteCount))
        #expect(world.peers[leecher].session.waitsForDisk)
        world.peers[leecher].diskIsFull = false
        #expect(world.run { $0.peers[leecher].session.isComplete })
    }

    @Test func `the metadata comes from peers`() {
        var world = SmallWorld(metadata: (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        let seeder = world.addSeeder()
        let leecher = world.add(isMagnet: true)
        world.introduce(leecher, to: seeder)
        #expect(world.run { $0.peers[leecher].session.isComplete })
    }

    @Test func `a peer that dies leaves its blocks to others`() {
        var world = SmallWorld(pieceCount: 64)
        let first = world.addSeeder()
        let second = world.addSeeder()
        let leecher = world.add()
        world.introduce(leecher, to: first, second)
        _ = world.run { $0.peers[leecher].stored.count > 10 }
        world.kill(first)
        #expect(world.run { $0.peers[leecher].session.isComplete })
    }
}
