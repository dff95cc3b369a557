// What a voter says of an entry that it could not write.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct FailedWriteTests {
    private static let client = SocketAddress.v4(1)
    private static let other = SocketAddress.v4(2)

    private func refusals(of trio: Trio, by id: UInt32) -> [Trio.Letter] {
        trio.said(by: id) { if case .error = $0 { true } else { false } }
    }

    /// The other client is told once, and what its master then knows.
    private func expectOneTrueAnswer(_ trio: Trio, by master: UInt32) throws {
        let isStored = trio[master].state.table.contains(.numbered(1), Self.other)
        let replies = try trio.replies(to: Self.other).map { try TrackerReply($0.payload, isIPv6: false) }
        #expect(replies.map(\.errorText) == [isStored ? nil : Refusal.notStored.clientText])
    }

    @Test func `a voter that cannot write an entry refuses it, and takes it when it is proposed again`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.run(.seconds(1))
        // Its vote is needed.
        trio.cutOff(1)
        trio.failWrites(2, .full)
        trio.forget()
        #expect(try trio.announce(Self.other, at: 3) == nil)
        #expect(refusals(of: trio, by: 2).count >= 1)
        trio.failWrites(2, nil)
        trio.run(.milliseconds(1900))
        #expect(trio.replies(to: Self.other).count == 1)
        #expect(trio.masters == [3])
    }

    /// The write of an entry that others have decided meanwhile says nothing about the one that is under way.
    @Test func `the failed write of a decided entry is no word on the next one`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.run(.seconds(1))
        let before = trio.index(3)
        trio.holdWrites(2)
        // Decided by 1 and 3, and known to be at 2, whose disk is slow.
        #expect(try trio.announce(Self.other, at: 3) != nil)
        #expect(trio.index(2) == before + 1)
        #expect(trio.heldWrites(2).count == 1)
        // The next entry needs the vote of 2.
        trio.cutOff(1)
        trio.forget()
        #expect(try trio.announce(Self.client, at: 3) == nil)
        trio.failWrite(2)
        #expect(refusals(of: trio, by: 2).isEmpty)
        trio.releaseWrites(2)
        trio.run(.milliseconds(1500))
        #expect(refusals(of: trio, by: 2).isEmpty)
        #expect(trio.replies(to: Self.client).count == 1)
        #expect(trio.index(2) == before + 2)
    }

    /// Seed 7101545 under the stress `lossy`, as it was once: the refusal of an old entry voided the attempt under way,
    /// for ever; and what the vote had aborted could come back.
    @Test func `an aborted entry is not revived by whoever could not write it`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.run(.seconds(1))
        for id: UInt32 in [1, 2, 3] { trio.failWrites(id, .full) }
        trio.forget()
        // Two of three have refused it; some may have it. So nobody is told before an empty entry is decided.
        #expect(try trio.announce(Self.other, at: 3) == nil)
        for id: UInt32 in [1, 2, 3] { trio.failWrites(id, nil) }
        trio.run(.milliseconds(1500))
        try expectOneTrueAnswer(trio, by: 3)
        #expect(!trio[3].state.table.contains(.numbered(1), Self.other))
        trio.crash(3)
        trio.run(.seconds(8))
        #expect(trio.masters == [2])
        for id: UInt32 in [1, 2] {
            #expect(trio[id].state.table.contains(.numbered(1), Self.client))
            #expect(!trio[id].state.table.contains(.numbered(1), Self.other))
        }
    }

    /// Seed 8100698 of `disks`, as it was once: a group's master gave an entry up that nobody could store, and told
    /// its client; the next master had heard the request, too, and had it decided.
    @Test func `in a group nobody is told before an empty entry is decided, though nobody can store that`() throws {
        var trio = Trio.serving { $1.cluster.entry = .group }
        try trio.announce(Self.client, at: 3)
        trio.run(.seconds(1))
        for id: UInt32 in [1, 2, 3] { trio.failWrites(id, .full) }
        for id: UInt32 in [3, 2, 1] { try trio.announce(Self.other, at: id) }
        trio.run(.seconds(3))
        #expect(trio.replies(to: Self.other).isEmpty)
        trio.crash(3)
        for id: UInt32 in [1, 2] { trio.failWrites(id, nil) }
        trio.run(.seconds(5))
        #expect(trio.masters == [2])
        // The empty entry may have come to be stored since: it is one or the other, and said once.
        try expectOneTrueAnswer(trio, by: 2)
    }

    /// Seed 5001339 of `refusals`, as it was once: a master gave up what its own disk still had of an earlier attempt,
    /// told the client that it is nowhere, and proposed nothing any more.
    ///
    /// A write that is slower than the pause between two attempts ends when the next is under way.
    @Test(arguments: [false, true])
    func `what was stored in one attempt is not given up because nobody can store the next`(_ isLate: Bool) throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.run(.seconds(1))
        trio.cutOff(1)
        trio.failWrites(2, .full)
        if isLate { trio.holdWrites(3) }
        // The master has it, or will.
        #expect(try trio.announce(Self.other, at: 3) == nil)
        if isLate { trio.run(.milliseconds(2500)) }
        for id: UInt32 in [1, 3] { trio.failWrites(id, .full) }
        trio.mend(1)
        if isLate { trio.releaseWrites(3) }
        trio.run(.seconds(6))
        #expect(trio.replies(to: Self.other).isEmpty)
        for id: UInt32 in [1, 2, 3] { trio.failWrites(id, nil) }
        trio.run(.seconds(4))
        #expect(trio.replies(to: Self.other).count == 1)
        #expect(try trio.announce(.v4(3), at: 3) != nil)
    }

    /// All disks are full, but for what tracker 3 has stored as the master before.
    @Test func `what an earlier master has left on one disk is not given up by the next one`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.run(.seconds(1))
        trio.holdMessages { letter in
            switch letter.body {
            case .prepare: true
            case .forward: letter.to == 2
            default: false
            }
        }
        #expect(try trio.announce(Self.other, at: 1) == nil)
        trio.cutOff(3)
        for _ in 0..<100 where trio.masters != [2] { trio.run(.milliseconds(50)) }
        trio.mend(3)
        trio.run(.seconds(3))
        #expect(trio.masters == [2])
        for id: UInt32 in [1, 2, 3] { trio.failWrites(id, .full) }
        trio.drop { if case .prepare = $0.body { true } else { false } }
        trio.holdMessages { _ in false }
        trio.deliver { _ in true }
        trio.run(.seconds(6))
        for id: UInt32 in [1, 2, 3] { trio.failWrites(id, nil) }
        trio.crash(2)
        trio.run(.seconds(10))
        #expect(trio.masters == [3])
        try expectOneTrueAnswer(trio, by: 3)
    }

    /// Who says that it cannot store a further attempt would be counted among those who have none.
    @Test func `a voter that has stored an earlier attempt does not refuse a further one`() throws {
        var trio = Trio.serving()
        try trio.announce(Self.client, at: 3)
        trio.run(.seconds(1))
        trio.cutOff(1)
        trio.failWrites(3, .full)
        // Voter 2 has it, and the master hears nothing of that.
        trio.holdMessages { if case .ok = $0.body { true } else { false } }
        #expect(try trio.announce(Self.other, at: 3) == nil)
        trio.failWrites(2, .full)
        trio.forget()
        trio.run(.seconds(5))
        #expect(refusals(of: trio, by: 2).isEmpty)
        let further = trio.said(by: 3) { body in
            guard case .prepare(let entry, _) = body else { return false }
            return entry.header.attempt > 0
        }
        #expect(!further.isEmpty)
        trio.releaseMessages()
        for id: UInt32 in [1, 2, 3] { trio.failWrites(id, nil) }
        trio.run(.seconds(4))
        #expect(trio.replies(to: Self.other).count == 1)
    }
}
