// Each checker of clusters can fail: histories are made up in which one thing is wrong, beside one in which nothing
// is.

import Primitives
import Simulator
import Testing
import TrackerLogic
import Wire

@Suite("Checkers of clusters: log and votes", .computes)
struct LogCheckTests {
    private let second = Epoch(round: 2, id: 2)

    @Test
    func `a cluster that keeps its promises passes`() {
        var bench = ChecksBench()
        let first = bench.ask(0, bench.announce(0))
        bench.send(0, .prepare(entry: first, at: .start))
        bench.store([1], first)
        bench.send(1, .ok(Ballot(epoch: ChecksBench.epoch, attempt: 0, index: 1)))
        bench.commit(first, ChecksBench.effects(ChecksBench.reply(leechers: 1, seeders: 0), to: 0), storing: [0])
        bench.keepInTouch()
        let next = bench.ask(1, bench.announce(1, .started, left: 0))
        let reply = ChecksBench.reply(leechers: 1, seeders: 1, peers: [0])
        bench.commit(next, ChecksBench.effects(reply, to: 1))
        bench.connect(2)
        bench.hear(0, 2, ChecksBench.scrape(2, transaction: 9))
        bench.confirm()
        let scraped = ChecksBench.scraped(9, seeders: 1, completed: 0, leechers: 1)
        bench.step(0, doing: ChecksBench.effects(scraped, to: 2))
        bench.checks.finish(bench.views, at: bench.now)
        #expect(bench.checks.violations.isEmpty, "\(bench.checks.violations)")
    }

    // MARK: - Records

    @Test
    func `what is on a disk is not written again`() {
        var bench = ChecksBench()
        let entry = bench.ask(0, bench.announce(0))
        bench.commit(entry)
        bench.store([2], entry)
        #expect(bench.checks.violations.isEmpty)
        bench.store([2], entry)
        #expect(bench.invariants == [.recordIsNotRewritten])
    }

    @Test(arguments: [(0, true), (1, false)])
    func `a state is not written over a later one`(index: UInt64, isBroken: Bool) {
        var bench = ChecksBench()
        bench.commit(bench.ask(0, bench.announce(0)))
        let chunks = (0..<2).map { SnapshotChunk(number: $0, index: index, bytes: []) }
        bench.checks.wrote(node: 1, change: .replaceAll(chunks: chunks), at: bench.now)
        #expect(bench.invariants == (isBroken ? [.recordIsNotRewritten] : []))
    }

    // MARK: - Epochs and promises

    @Test
    func `two lives do not lead one epoch`() {
        var bench = ChecksBench()
        bench.step(1) { $0.leads = ChecksBench.epoch }
        #expect(bench.invariants == [.oneMasterPerEpoch])
    }

    @Test
    func `two lives do not stand for one epoch`() {
        var bench = ChecksBench()
        bench.promise(1, second)
        bench.send(1, .election, epoch: second)
        bench.checks.died(node: 1, at: bench.now)
        bench.views[1].life.incarnation += 1
        var record = DiskRecord()
        _ = record.apply(
            .promise(Promise(epoch: second, incarnation: 1, secret: ClusterSecret(1, 2, 3, 4), shardCount: 1)))
        bench.checks.began(1, bench.views[1], record, at: bench.now)
        bench.send(1, .election, epoch: second)
        #expect(bench.invariants == [.oneMasterPerEpoch])
    }

    @Test
    func `a slave that proposes in its master's epoch is seen`() {
        var bench = ChecksBench()
        bench.send(1, .prepare(entry: bench.entry(), at: .start))
        #expect(bench.invariants == [.oneMasterPerEpoch])
    }

    @Test
    func `a promise that goes back is seen`() {
        var bench = ChecksBench()
        bench.promise(2, second)
        bench.promise(2, ChecksBench.epoch)
        #expect(bench.invariants == [.promiseIsKept])
    }

    @Test
    func `a promise that is gone after a restart is seen`() {
        var bench = ChecksBench()
        bench.checks.died(node: 2, at: bench.now)
        bench.checks.began(2, bench.views[2], DiskRecord(), at: bench.now)
        #expect(bench.invariants == [.promiseIsKept])
    }

    @Test
    func `an answer before the promise is durable is seen`() {
        var bench = ChecksBench()
        bench.send(2, .answer(VoterAnswer(position: .start, pending: nil)), epoch: second)
        #expect(bench.invariants == [.promiseIsKept])
    }

    @Test
    func `a candidate whose promise is not durable is seen`() {
        var bench = ChecksBench()
        bench.send(1, .election, epoch: second)
        #expect(bench.invariants == [.promiseIsKept])
    }

    @Test
    func `a vote in an epoch below the one promised is seen`() {
        var bench = ChecksBench()
        let entry = bench.entry()
        bench.send(0, .prepare(entry: entry, at: .start))
        bench.store([2], entry)
        var effects = Effects()
        let promise = Promise(epoch: second, incarnation: 1, secret: ClusterSecret(1, 2, 3, 4), shardCount: 1)
        effects.persists = [Persist(token: PersistToken(1), change: .promise(promise))]
        bench.step(2, doing: effects)
        bench.promise(2, second)
        bench.step(2, .persisted(PersistToken(1)))
        bench.send(2, .ok(Ballot(epoch: ChecksBench.epoch, attempt: 0, index: 1)))
        #expect(bench.invariants == [.promiseIsKept])
    }

    @Test
    func `an entry that is accepted after a higher promise is seen`() {
        var bench = ChecksBench()
        bench.promise(2, second)
        bench.store([2], bench.entry())
        bench.send(2, .ok(Ballot(epoch: ChecksBench.epoch, attempt: 0, index: 1)))
        #expect(bench.invariants == [.promiseIsKept])
    }

    // MARK: - Votes

    @Test
    func `a vote for what is not on the disk is seen`() {
        var bench = ChecksBench()
        bench.send(0, .prepare(entry: bench.entry(), at: .start))
        bench.send(2, .ok(Ballot(epoch: ChecksBench.epoch, attempt: 0, index: 1)))
        #expect(bench.invariants == [.voteIsKept])
    }

    @Test
    func `a vote for another value than the one proposed is seen`() {
        var bench = ChecksBench()
        bench.send(0, .prepare(entry: bench.entry(), at: .start))
        bench.store([2], bench.entry(epoch: .zero, second: 5))
        bench.send(2, .ok(Ballot(epoch: ChecksBench.epoch, attempt: 0, index: 1)))
        #expect(bench.invariants == [.voteIsKept])
    }

    @Test
    func `an answer that hides an accepted entry is seen`() {
        var bench = ChecksBench()
        bench.store([2], bench.entry())
        bench.promise(2, second)
        bench.send(2, .answer(VoterAnswer(position: .start, pending: nil)), epoch: second)
        #expect(bench.invariants == [.voteIsKept])
    }

    @Test
    func `a restart that forgets an accepted entry is seen`() {
        var bench = ChecksBench()
        let entry = bench.entry()
        bench.store([2], entry)
        bench.checks.died(node: 2, at: bench.now)
        var record = DiskRecord()
        _ = record.apply(
            .promise(
                Promise(
                    epoch: ChecksBench.epoch, incarnation: 1, secret: ClusterSecret(1, 2, 3, 4), shardCount: 1)))
        _ = record.apply(.append(entry))
        bench.checks.began(2, bench.views[2], record, at: bench.now)
        #expect(bench.invariants == [.voteIsKept])
    }

    @Test
    func `a vote by a newcomer is seen, but not in survivor mode`() {
        for profile in [Profile.paxos, .classic] {
            var bench = ChecksBench(profile)
            bench.checks.died(node: 2, at: bench.now)
            bench.checks.memoryLost(node: 2, at: bench.now)
            bench.views[2].hasFullState = false
            bench.checks.began(2, bench.views[2], DiskRecord(), at: bench.now)
            bench.promise(2, second, hasFullState: false)
            bench.send(2, .answer(VoterAnswer(position: .start, pending: nil)), epoch: second)
            #expect(bench.invariants == (profile == .paxos ? [.votersHoldFullState] : []))
        }
    }

    @Test
    func `who has lost its disk is whole only with all that was decided then`() {
        var bench = ChecksBench()
        bench.commit(bench.entry())
        bench.checks.died(node: 2, at: bench.now)
        bench.checks.memoryLost(node: 2, at: bench.now)
        bench.views[2] = NodeView(life: Life(id: 3, incarnation: 99), hasFullState: false)
        bench.checks.began(2, bench.views[2], DiskRecord(), at: bench.now)
        bench.promise(2, ChecksBench.epoch)
        #expect(bench.invariants == [.votersHoldFullState])
    }

    @Test
    func `two values of one ballot are seen`() {
        var bench = ChecksBench()
        bench.send(0, .prepare(entry: bench.entry(), at: .start))
        bench.send(0, .prepare(entry: bench.entry(second: 3), at: .start))
        #expect(bench.invariants == [.ballotHasOneValue])
    }

    // MARK: - The log

    @Test
    func `an entry that only a minority has stored is not decided`() {
        var bench = ChecksBench()
        let entry = bench.entry()
        bench.store([0], entry)
        bench.apply(0, entry)
        #expect(bench.invariants == [.quorumDecides])
    }

    @Test(arguments: [false, true])
    func `the vote of a lost disk counts until its tracker votes again`(_ isWholeAgain: Bool) {
        var bench = ChecksBench()
        let entry = bench.entry()
        bench.store([0, 1], entry)
        bench.checks.died(node: 1, at: bench.now)
        bench.checks.memoryLost(node: 1, at: bench.now)
        bench.views[1].hasFullState = false
        bench.checks.began(1, bench.views[1], DiskRecord(), at: bench.now)
        bench.promise(1, ChecksBench.epoch, hasFullState: isWholeAgain)
        bench.apply(0, entry)
        #expect(bench.invariants == (isWholeAgain ? [.quorumDecides] : []))
    }

    @Test(arguments: [Profile.classic, .rotating, .lowest])
    func `in survivor mode the active decide, a majority or all of them`(_ profile: Profile) {
        var bench = ChecksBench(profile)
        let first = bench.entry()
        bench.store([0, 1], first)
        bench.apply(0, first)
        #expect(bench.invariants == (profile == .classic ? [] : [.quorumDecides]))
        var other = ChecksBench(profile)
        other.step(0) { $0.voters = [1] }
        let second = other.entry()
        other.store([0], second)
        other.apply(0, second)
        #expect(other.checks.violations.isEmpty)
    }

    /// A master that stops decides with those that it hears, and then takes for voters whom it has not welcomed, too
    /// (seed 20734 of `classic`).
    @Test(arguments: [true, false])
    func `who is found down in the step in which a master stops does not vote`(_ isFoundDown: Bool) {
        var bench = ChecksBench(.classic, count: 5)
        // It has welcomed all but tracker 5.
        bench.step(0) { $0.voters = [1, 2, 3, 4] }
        let entry = bench.entry()
        bench.store([0, 1], entry)
        bench.pass(.seconds(10))
        for other in [1, 4] { bench.hear(0, from: other) }
        var effects = Effects()
        if isFoundDown { effects.observations = [.trackerDown(3)] }
        bench.step(0, applied: [entry], doing: effects) { view in
            (view.position, view.digest, view.time) = (entry.position, entry.chain, entry.header.time)
            (view.leads, view.voters) = (nil, [1, 2, 4, 5])
        }
        #expect(bench.invariants.contains(.quorumDecides) == !isFoundDown)
    }

    @Test
    func `another entry at a decided index is seen`() {
        var bench = ChecksBench()
        bench.commit(bench.entry())
        let other = bench.entry(epoch: Epoch(round: 2, id: 2), after: .start, second: 7)
        bench.views[2].position = .start
        bench.checks.died(node: 2, at: bench.now)
        bench.checks.began(2, bench.views[2], DiskRecord(), at: bench.now)
        bench.store([1, 2], other)
        bench.apply(2, other)
        #expect(bench.invariants.contains(.decidedIsForEver))
    }

    @Test
    func `different states after one history are seen`() {
        var bench = ChecksBench()
        let entry = bench.entry()
        bench.store([0, 1], entry)
        bench.apply(0, entry, digest: 1)
        bench.apply(1, entry, digest: 2)
        #expect(bench.invariants == [.statesAgree])
    }

    @Test
    func `a state that changes without an entry is seen`() {
        var bench = ChecksBench()
        bench.commit(bench.entry())
        bench.step(1) { $0.digest &+= 1 }
        #expect(bench.invariants == [.statesAgree])
    }

    @Test
    func `a tracker that goes back is seen`() {
        var bench = ChecksBench()
        bench.commit(bench.entry())
        bench.step(1) { $0.position = .start }
        #expect(bench.invariants == [.decidedIsForEver])
    }

    @Test
    func `time that runs back is seen`() {
        var bench = ChecksBench()
        bench.commit(bench.entry(second: 9))
        let entry = bench.entry(second: 8)
        bench.store([0, 1], entry)
        bench.apply(0, entry)
        #expect(bench.invariants.first == .timeNeverRunsBack)
    }

    @Test
    func `a gap in the log is seen`() {
        var bench = ChecksBench()
        let entry = bench.entry(after: Position(index: 4, chain: 77))
        bench.store([0, 1], entry)
        bench.apply(0, entry)
        #expect(bench.invariants.first == .logHasNoGap)
    }

    @Test
    func `a master that tells of what is not decided is seen`() {
        var bench = ChecksBench()
        bench.send(0, .commit(at: Position(index: 1, chain: 5)))
        #expect(bench.invariants == [.decidedIsDecided])
    }

    // MARK: - Aborts

    @Test
    func `an aborted entry that comes back is seen`() {
        var bench = ChecksBench()
        let entry = bench.entry([.setAccessMode(0)], second: 1)
        bench.send(0, .prepare(entry: entry, at: .start))
        bench.observe(0, .aborted(index: 1, refused: 0))
        bench.store([0, 1], entry)
        bench.apply(0, entry)
        #expect(bench.invariants == [.abortedStaysAborted])
    }

    @Test
    func `a request whose client was told that it is not stored stays out of the log`() {
        var bench = ChecksBench()
        let entry = bench.ask(0, bench.announce(0))
        bench.send(0, .prepare(entry: entry, at: .start))
        bench.observe(0, .aborted(index: 1, refused: 1))
        bench.step(0, doing: ChecksBench.effects(ChecksBench.error(1, .notStored), to: 0))
        #expect(bench.checks.violations.isEmpty)
        let again = bench.entry(
            [bench.update(bench.announce(0), of: 0)], waiting: [(bench.views[0].life, 1)], second: 50)
        bench.store([0, 1], again)
        bench.apply(0, again)
        #expect(bench.invariants == [.abortedStaysAborted])
    }

    @Test
    func `a client that is told so without an abort is seen`() {
        var bench = ChecksBench()
        _ = bench.ask(0, bench.announce(0))
        bench.step(0, doing: ChecksBench.effects(ChecksBench.error(1, .notStored), to: 0))
        #expect(bench.invariants == [.refusalIsJustified])
    }
}
