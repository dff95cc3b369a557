// What a voter has sworn, event by event.

import Primitives
import Testing
import TrackerLogic
import Wire

@Suite struct AcceptorTests {
    private static let epoch = Epoch(5, by: 2)
    private static let record = Promise(
        epoch: epoch, incarnation: 7, secret: ClusterSecret(1, 2, 3, 4), shardCount: 16, hasFullState: false,
        leftInOrder: false)

    /// As it was read back: epoch 5.2 is on the disk.
    private var acceptor = Acceptor(Self.record)

    // MARK: - Phase 1

    @Test func `what was read back is on the disk`() {
        #expect(acceptor.promise == Self.record)
        #expect(acceptor.durableEpoch == Self.epoch)
        #expect(acceptor.isDurable)
        #expect(acceptor.awaitedBy == nil)
        #expect(acceptor.votedThrough == 0)
        #expect(acceptor.fullStateFrom == nil)
        #expect(!acceptor.isConfirming)
    }

    @Test(arguments: [
        (Epoch.zero, Acceptor.Verdict.isStale),
        (Epoch(4, by: 9), .isStale),
        (Epoch(5, by: 1), .isStale),
        (Epoch(5, by: 2), .isPromised(isDurable: true)),
        (Epoch(5, by: 3), .isNew),
        (Epoch(6, by: 0), .isNew),
    ])
    func `an ELECTION is stale below the promise, and new above it`(_ epoch: Epoch, _ verdict: Acceptor.Verdict) {
        #expect(acceptor.verdict(on: epoch) == verdict)
    }

    @Test mutating func `an answer is said again when its promise is on the disk and the first answer is out`() {
        let epoch = Epoch(6, by: 3)
        acceptor.promise(epoch, to: Life(3))
        #expect(acceptor.verdict(on: epoch) == .isPromised(isDurable: false))
        acceptor.promiseWritten(epoch)
        #expect(acceptor.verdict(on: epoch) == .isPromised(isDurable: false), "the first answer is not out yet")
        #expect(acceptor.takeCandidate() == Life(3))
        #expect(acceptor.verdict(on: epoch) == .isPromised(isDurable: true))
    }

    @Test mutating func `a promise that could not be written is not answered when it is asked for again`() {
        let epoch = Epoch(6, by: 3)
        acceptor.promise(epoch, to: Life(3))
        acceptor.promiseNotWritten()
        #expect(acceptor.awaitedBy == nil)
        #expect(acceptor.promise.epoch == epoch, "what was promised is not taken back")
        #expect(acceptor.verdict(on: epoch) == .isPromised(isDurable: false))
        #expect(acceptor.takeCandidate() == nil)
        acceptor.promiseWritten(epoch)
        #expect(acceptor.verdict(on: epoch) == .isPromised(isDurable: true))
    }

    @Test mutating func `a promise changes the epoch and nothing else, and counts when it is on the disk`() {
        acceptor.promise(Epoch(6, by: 3), to: Life(3, life: 9))
        var promised = Self.record
        promised.epoch = Epoch(6, by: 3)
        #expect(acceptor.promise == promised)
        #expect(acceptor.awaitedBy == Life(3, life: 9))
        #expect(acceptor.durableEpoch == Self.epoch)
        #expect(!acceptor.isDurable)
        acceptor.promiseWritten(Epoch(6, by: 3))
        #expect(acceptor.durableEpoch == Epoch(6, by: 3))
        #expect(acceptor.isDurable)
        #expect(acceptor.awaitedBy == Life(3, life: 9))
    }

    @Test mutating func `who stands promises itself, and answers no other candidate`() {
        acceptor.promise(Epoch(6, by: 3), to: Life(3))
        acceptor.stand(for: Epoch(7, by: 1))
        #expect(acceptor.promise.epoch == Epoch(7, by: 1))
        #expect(acceptor.awaitedBy == nil)
        #expect(acceptor.durableEpoch == Self.epoch)
        #expect(!acceptor.isDurable)
    }

    @Test mutating func `a later candidate takes the place of the earlier`() {
        acceptor.promise(Epoch(6, by: 3), to: Life(3))
        acceptor.promise(Epoch(7, by: 1), to: Life(1))
        #expect(acceptor.takeCandidate() == Life(1))
        #expect(acceptor.takeCandidate() == nil, "it is answered once")
        #expect(acceptor.promise.epoch == Epoch(7, by: 1))
    }

    @Test(arguments: [
        (Epoch(5, by: 1), false, Epoch(5, by: 2)),
        (Epoch(5, by: 2), false, Epoch(5, by: 2)),
        (Epoch(5, by: 3), true, Epoch(5, by: 3)),
        (Epoch(6, by: 0), true, Epoch(6, by: 0)),
    ])
    func `to follow a master is a promise where its epoch is higher`(_ epoch: Epoch, _ isNew: Bool, _ promised: Epoch) {
        var acceptor = acceptor
        #expect(acceptor.follow(epoch) == isNew)
        #expect(acceptor.promise.epoch == promised)
        #expect(acceptor.durableEpoch == Self.epoch)
        #expect(acceptor.isDurable == !isNew)
    }

    @Test(arguments: [
        (Epoch(5, by: 1), Epoch(5, by: 2)),
        (Epoch(5, by: 2), Epoch(5, by: 2)),
        (Epoch(5, by: 3), Epoch(5, by: 3)),
    ])
    func `a write of an earlier promise that ends late takes nothing back`(_ written: Epoch, _ durable: Epoch) {
        var acceptor = acceptor
        acceptor.promiseWritten(written)
        #expect(acceptor.durableEpoch == durable)
    }

    @Test mutating func `an earlier promise on the disk is not the later one`() {
        acceptor.promise(Epoch(6, by: 3), to: Life(3))
        acceptor.promise(Epoch(7, by: 1), to: Life(1))
        acceptor.promiseWritten(Epoch(6, by: 3))
        #expect(!acceptor.isDurable)
        #expect(acceptor.verdict(on: Epoch(6, by: 3)) == .isStale)
        #expect(acceptor.verdict(on: Epoch(7, by: 1)) == .isPromised(isDurable: false))
    }

    /// What the node does with a verdict, and with the end of a write, in any order.
    @Test mutating func `the epoch promised never falls, and what is durable is never above it`() {
        var random = RandomStream(seed: 9)
        var writing: [Epoch] = []
        var heard: [Acceptor.Verdict] = []
        for _ in 0..<2000 {
            let before = acceptor
            let round = before.promise.epoch.round + UInt64(random.below(4)) - 2
            let epoch = Epoch(round, by: UInt32(random.below(4)))
            switch random.below(4) {
            case 0:
                let verdict = acceptor.verdict(on: epoch)
                if !heard.contains(verdict) { heard.append(verdict) }
                if verdict == .isNew {
                    acceptor.promise(epoch, to: Life(epoch.id))
                    writing.append(epoch)
                }
            case 1: if acceptor.follow(epoch) { writing.append(epoch) }
            case 2: if !writing.isEmpty { acceptor.promiseWritten(writing.remove(at: random.below(writing.count))) }
            default: _ = acceptor.takeCandidate()
            }
            #expect(acceptor.promise.epoch >= before.promise.epoch)
            #expect(acceptor.durableEpoch >= before.durableEpoch)
            #expect(acceptor.durableEpoch <= acceptor.promise.epoch)
        }
        #expect(heard.count == 4, "the walk has to meet each verdict")
    }

    // MARK: - Phase 2

    @Test(arguments: [(5, 4, 5), (5, 5, 5), (5, 6, 6), (0, 1, 1)] as [(UInt64, UInt64, UInt64)])
    func `the last entry voted for is the greatest`(_ first: UInt64, _ second: UInt64, _ through: UInt64) {
        var acceptor = acceptor
        acceptor.entryWritten(first)
        acceptor.entryWritten(second)
        #expect(acceptor.votedThrough == through)
    }

    @Test mutating func `votes of another history are forgotten, and what was read back counts as it is`() {
        acceptor.entryWritten(5)
        acceptor.forgetVotes()
        #expect(acceptor.votedThrough == 0)
        acceptor.entryWritten(5)
        acceptor.restoreVote(3)
        #expect(acceptor.votedThrough == 3)
    }

    // MARK: - The whole state

    @Test(
        arguments: [
            (nil, 11, 11, false),
            (10, 9, 10, false),
            (10, 10, 9, false),
            (10, 10, 10, true),
            (10, 11, 11, true),
            (0, 0, 0, true),
        ] as [(UInt64?, UInt64, UInt64, Bool)])
    func `the state is whole when all that was expected is applied, and on the disk`(
        _ expected: UInt64?, _ applied: UInt64, _ durable: UInt64, _ isHeld: Bool
    ) {
        var acceptor = acceptor
        if let expected { acceptor.expectState(through: expected) }
        #expect(acceptor.fullStateFrom == expected)
        #expect(acceptor.holdsState(applied: applied, durable: durable) == isHeld)
    }

    @Test mutating func `the mark is written before the record counts as whole`() {
        acceptor.expectState(through: 10)
        acceptor.beginConfirming()
        #expect(acceptor.isConfirming)
        #expect(acceptor.record.hasFullState, "it is on its way")
        #expect(!acceptor.promise.hasFullState)
        #expect(acceptor.stateConfirmed() == true)
        #expect(acceptor.promise.hasFullState)
        #expect(!acceptor.isConfirming)
        #expect(acceptor.fullStateFrom == nil)
        #expect(acceptor.stateConfirmed() == false, "it is news once")
        #expect(acceptor.promise.hasFullState && acceptor.record.hasFullState)
    }

    @Test mutating func `a mark that nobody waits for makes nothing whole`() {
        acceptor.expectState(through: 10)
        #expect(acceptor.stateConfirmed() == false)
        #expect(!acceptor.promise.hasFullState)
        #expect(acceptor.fullStateFrom == 10)
    }

    @Test mutating func `a mark that could not be written is written again later`() {
        acceptor.expectState(through: 10)
        acceptor.beginConfirming()
        acceptor.stateNotConfirmed()
        #expect(!acceptor.isConfirming)
        #expect(!acceptor.record.hasFullState)
        #expect(acceptor.stateConfirmed() == false)
        #expect(!acceptor.promise.hasFullState)
        #expect(acceptor.holdsState(applied: 10, durable: 10))
    }

    @Test mutating func `a state that is lost while its mark is written is not whole when that ends`() {
        acceptor.expectState(through: 10)
        acceptor.beginConfirming()
        acceptor.loseState()
        #expect(!acceptor.isConfirming)
        #expect(!acceptor.record.hasFullState)
        #expect(acceptor.fullStateFrom == nil)
        #expect(!acceptor.holdsState(applied: .max, durable: .max), "a master has to tell it anew")
        #expect(acceptor.stateConfirmed() == false)
        #expect(!acceptor.promise.hasFullState)
    }

    @Test func `a whole state that is lost is whole no more`() {
        var record = Self.record
        record.hasFullState = true
        var acceptor = Acceptor(record)
        #expect(acceptor.record == record)
        acceptor.loseState()
        #expect(acceptor.promise == Self.record)
        #expect(acceptor.record == Self.record)
    }

    @Test mutating func `the cluster's secret comes with its shards, and the promise stays`() {
        acceptor.adopt(ClusterSecret(9, 8, 7, 6), shardCount: 64)
        var adopted = Self.record
        adopted.secret = ClusterSecret(9, 8, 7, 6)
        adopted.shardCount = 64
        #expect(acceptor.promise == adopted)
        #expect(acceptor.isDurable)
    }

    // MARK: - The orderly stop

    @Test mutating func `the last write says that it left in order, and whether the state is whole`() {
        var stopRecord = Self.record
        stopRecord.leftInOrder = true
        #expect(acceptor.stopRecord == stopRecord)
        #expect(!acceptor.record.leftInOrder, "nothing has been left yet")
        acceptor.beginConfirming()
        stopRecord.hasFullState = true
        #expect(acceptor.stopRecord == stopRecord)
    }

    @Test func `the note of the last life is taken back`() {
        var left = Self.record
        left.leftInOrder = true
        var acceptor = Acceptor(left)
        #expect(acceptor.record.leftInOrder)
        acceptor.recallStop()
        #expect(acceptor.promise == Self.record)
        #expect(acceptor.record == Self.record)
    }
}
