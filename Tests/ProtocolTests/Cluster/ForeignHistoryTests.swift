// What comes from another history than was asked for is left alone.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct ForeignHistoryTests {
    /// Two halves of a cluster in survivor mode, each with a master and a peer of its own, that hear each other again.
    ///
    /// - Returns: the cluster, with the chunks that go to the higher master held back.
    private func halves() throws -> Trio {
        var trio = Trio.serving(.classic)
        trio.cutOff(1)
        trio.run(.seconds(8))
        try trio.announce(.v4(1), at: 3)
        trio.crash(2)
        // It is alone now, and master of its own.
        trio.run(.seconds(8))
        #expect(trio.masters == [1, 3])
        return trio
    }

    @Test func `a chunk of another history than was told is not merged`() throws {
        var trio = try halves()
        trio.holdMessages { if case .chunk = $0.body { true } else { false } }
        trio.mend(1)
        trio.run(.seconds(2))
        let chunk = try #require(trio.held.first { if case .chunk = $0.body { true } else { false } })
        guard case .chunk(let number, let index, let bytes) = chunk.body else { return }
        let merging = chunk.to
        // The same place in another history, sealed anew, as by one who has gone over to that.
        var other = Array(bytes.dropLast(8))
        for offset in 22..<30 { other[offset] ^= 0x5A }
        other.append(bigEndian: checksum(other.span.bytes))
        trio.forget()
        trio.drop { _ in true }
        trio.tell(
            merging, .chunk(number: number, index: index, bytes: other), from: chunk.message.sender,
            in: chunk.message.epoch)
        // Nothing of it is taken over, so the next one is not asked for.
        #expect(trio.said(by: merging) { $0 == .fetchChunk(number + 1) }.isEmpty)
        trio.releaseMessages()
        trio.run(.seconds(8))
        #expect(trio.masters.count == 1)
        #expect(trio.ids.filter(trio.isAlive).allSatisfy { trio[$0].state.table.contains(.numbered(1), .v4(1)) })
    }

    /// It would be waited for, and does not vote, for it hears its own master (seed 8000545 of `lowest`).
    @Test(arguments: [ClusterProfile.classic, .rotating, .lowest])
    func `who was let in for an old word, and follows another, is not waited for`(_ profile: ClusterProfile) throws {
        var trio = Trio(profile)
        for id: UInt32 in 1...3 { trio.start(id) }
        trio.run(.seconds(8))
        let master = try #require(trio.masters.first)
        let lone: UInt32 = master == 2 ? 1 : 2
        let other = 6 - master - lone
        let hello = try #require(trio.said(by: other) { if case .hello = $0 { true } else { false } }.first)
        trio.cutOff(lone)
        trio.forget()
        trio.run(.seconds(10))
        #expect(Set(trio.masters) == [master, lone] && trio.epoch(lone) > trio.epoch(master))
        let word = try #require(
            trio.said(by: other) { if case .keepalive(let said) = $0 { said.role == .slave } else { false } }.last)
        trio.tell(lone, hello.body, from: other, in: hello.message.epoch)
        trio.tell(lone, word.body, from: other, in: word.message.epoch)
        #expect(try trio.announce(.v4(7), at: lone) != nil)
    }

    /// No entry comes to take the place of what it voted for, and clients would wait for the merge when one does, long
    /// after all is well (seed 1049 of `rotating`).
    @Test func `a vote of an epoch that is over is merged while nobody asks for anything`() throws {
        var trio = Trio.serving(.classic)
        // Only tracker 1 is asked for its vote, and nobody hears of it.
        trio.holdMessages { letter in
            guard letter.from != 1 else { return true }
            return if case .prepare = letter.body { letter.to == 2 } else { false }
        }
        #expect(try trio.announce(.v4(7), at: 3) == nil)
        trio.crash(3)
        for _ in 0..<80 where trio.masters.isEmpty { trio.run(.milliseconds(100)) }
        #expect(trio.masters == [2])
        #expect(!trio[2].state.table.contains(.numbered(1), .v4(7)))
        let decided = trio.index(2)
        trio.drop { _ in true }
        trio.releaseMessages()
        trio.run(.seconds(4))
        #expect(trio.masters == [2])
        #expect(trio.index(1) == trio.index(2) && trio.index(2) > decided)
        #expect([1, 2].allSatisfy { trio[$0].state.table.contains(.numbered(1), .v4(7)) })
    }
}
