// Magnet links: the info dictionary is had of others, and given on (BEP 9, BEP 10).

import PeerLogic
import Primitives
import Testing
import Wire

/// Rule 28, `leechersFinish`: whoever begins with a magnet link finishes while somebody gives the metadata.
@Suite("Metadata is shared")
struct MetadataSharingTests {
    private static let metadata = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    @Test func `who had the metadata of another gives it on, to those that were there before, too`() {
        var world = SmallWorld(metadata: Self.metadata)
        let seeder = world.addSeeder()
        let first = world.add(isMagnet: true)
        let second = world.add(isMagnet: true)
        // They say that neither has it.
        world.introduce(second, to: first)
        #expect(!world.run(for: .seconds(5)) { $0.peers[second].session.layout != nil })
        world.introduce(first, to: seeder)
        #expect(world.run(for: .seconds(20)) { $0.peers[second].session.isComplete })
    }

    @Test func `who comes when the metadata is here has it of whoever has had it`() {
        var world = SmallWorld(metadata: Self.metadata)
        let seeder = world.addSeeder()
        let first = world.add(isMagnet: true)
        world.introduce(first, to: seeder)
        #expect(world.run { $0.peers[first].session.isComplete })
        world.kill(seeder)
        let second = world.add(isMagnet: true)
        world.introduce(second, to: first)
        #expect(world.run(for: .seconds(20)) { $0.peers[second].session.isComplete })
    }

    @Test func `a part may be asked for as often by who was there before the metadata as by others`() {
        // Four parts: more than were allowed when nothing was here.
        var world = SmallWorld(metadata: (0..<60_000).map { UInt8(truncatingIfNeeded: $0 &* 11) })
        let seeder = world.addSeeder()
        let first = world.add(isMagnet: true)
        let second = world.add(isMagnet: true)
        world.introduce(second, to: first)
        _ = world.run(for: .seconds(5))
        world.introduce(first, to: seeder)
        #expect(world.run(for: .seconds(20)) { $0.peers[second].session.isComplete })
    }

    @Test func `peers that cannot give the metadata make room for one that can`() {
        var world = SmallWorld(metadata: Self.metadata)
        let old = (0..<3).map { _ in world.addSeeder() }
        for peer in old { world.peers[peer].isOld = true }
        let seeder = world.addSeeder()
        // Three fifths of them for those that it calls itself.
        let leecher = world.add(isMagnet: true) { settings, _ in settings.maxLinks = 4 }
        world.introduce(leecher, to: old[0], old[1], old[2], seeder)
        #expect(!world.run(for: .seconds(55)) { $0.peers[leecher].session.layout != nil })
        #expect(world.run(for: .seconds(120)) { $0.peers[leecher].session.isComplete })
        #expect(world.peers[leecher].closed.contains(.full))
    }

    @Test func `where there is room, nobody is sent away for lack of the metadata`() {
        var world = SmallWorld(metadata: Self.metadata)
        let old = (0..<2).map { _ in world.addSeeder() }
        for peer in old { world.peers[peer].isOld = true }
        let leecher = world.add(isMagnet: true)
        world.introduce(leecher, to: old[0], old[1])
        _ = world.run(for: .seconds(200))
        #expect(world.peers[leecher].closed.isEmpty)
        #expect(world.peers[leecher].links.count == 2)
    }
}
