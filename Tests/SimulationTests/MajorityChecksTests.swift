// The checkers of what needs a majority can fail, each of them.

import Primitives
import Simulator
import Testing
import TrackerLogic
import Wire

@Suite("Checkers of clusters: majorities", .computes)
struct MajorityCheckTests {
    private let second = Epoch(round: 2, id: 2)
    private let none = ChecksBench.scraped(9, seeders: 0, completed: 0, leechers: 0)

    // MARK: - To lead

    @Test(arguments: [([Int](), true), ([2], false), ([0, 2], false)])
    func `who leads without the promises of a majority is seen`(answering: [Int], isBroken: Bool) {
        var bench = ChecksBench()
        for node in [1] + answering { bench.promise(node, second) }
        bench.answer(answering, second)
        bench.step(1) { $0.leads = second }
        #expect(bench.invariants == (isBroken ? [.leadersArePromised] : []))
    }

    @Test
    func `an answer to another candidate is no promise`() {
        var bench = ChecksBench()
        for node in [1, 2] { bench.promise(node, second) }
        bench.answer([2], second)
        let third = Epoch(round: 3, id: 2)
        bench.promise(1, third)
        bench.step(1) { $0.leads = third }
        #expect(bench.invariants == [.leadersArePromised])
    }

    /// A promise that was lost with its disk counts until its giver has a vote again.
    @Test(arguments: [false, true])
    func `a promise that was lost counts no more once its giver votes again`(_ votesAgain: Bool) {
        var bench = ChecksBench()
        for node in [1, 2] { bench.promise(node, second) }
        bench.answer([2], second)
        bench.checks.memoryLost(node: 2, at: bench.now)
        if votesAgain { bench.promise(2, ChecksBench.epoch) }
        bench.step(1) { $0.leads = second }
        #expect(bench.invariants == (votesAgain ? [.leadersArePromised] : []))
    }

    // MARK: - To propose

    @Test(arguments: [([[1, 2, 3, 4]], [Invariant]()), ([[1, 2, 3, 4], [2, 3, 4]], [.votersAreChosen])])
    func `an entry changes the voters once`(lists: [[UInt32]], invariants: [Invariant]) {
        var bench = ChecksBench(count: 4)
        for node in bench.views.indices { bench.step(node) { $0.voters = [1, 2, 3] } }
        bench.send(0, .prepare(entry: bench.entry(lists.map { .setMembers($0) }), at: .start))
        #expect(bench.invariants == invariants)
    }

    @Test(arguments: [true, false])
    func `a voter that is added holds the whole state on its disk`(isWhole: Bool) {
        var bench = ChecksBench(count: 4)
        for node in bench.views.indices { bench.step(node) { $0.voters = [1, 2, 3] } }
        bench.promise(3, ChecksBench.epoch, hasFullState: isWhole)
        bench.send(0, .prepare(entry: bench.entry([.setMembers([1, 2, 3, 4])]), at: .start))
        #expect(bench.invariants == (isWhole ? [] : [.votersHoldFullState]))
    }

    @Test
    func `a new entry is proposed to voters of whom a majority has promised`() {
        var bench = ChecksBench(count: 5)
        // Of five voters two have promised the epoch that was promised by two of three.
        for node in bench.views.indices { bench.step(node) { $0.voters = [1, 2, 3] } }
        for node in [1, 2] { bench.promise(node, second) }
        bench.answer([2], second)
        bench.step(1) { $0.leads = second }
        #expect(bench.invariants.isEmpty)
        bench.step(1) { $0.voters = [1, 2, 3, 4, 5] }
        bench.send(1, .prepare(entry: bench.entry(epoch: second), at: .start), epoch: second)
        #expect(bench.invariants == [.leadersArePromised])
    }

    // MARK: - To answer a read

    /// Who has scraped at tracker 0.
    private var scraped: ChecksBench {
        var bench = ChecksBench()
        bench.keepInTouch()
        bench.connect(2)
        bench.hear(0, 2, ChecksBench.scrape(2, transaction: 9))
        return bench
    }

    @Test(arguments: [true, false])
    func `a read that nobody has confirmed is seen`(isHeard: Bool) {
        var bench = scraped
        bench.confirm(isHeard: isHeard)
        bench.step(0, doing: ChecksBench.effects(none, to: 2))
        #expect(bench.invariants == (isHeard ? [] : [.readsAreConfirmed]))
    }

    @Test
    func `a word that was said before the read came confirms nothing`() {
        var bench = ChecksBench()
        bench.keepInTouch()
        bench.connect(2)
        bench.confirm([1, 2])
        bench.hear(0, 2, ChecksBench.scrape(2, transaction: 9))
        bench.step(0, doing: ChecksBench.effects(none, to: 2))
        #expect(bench.invariants == [.readsAreConfirmed])
    }

    /// Two clusters may have given one number to two trackers, and on a shared bus each hears the other's.
    @Test(arguments: [true, false])
    func `what a namesake says to the master of a later epoch takes no place of a voter's word`(isConfirmed: Bool) {
        var bench = scraped
        bench.step(2) { $0.life = Life(id: 2, incarnation: 99) }
        bench.send(2, .confirmed(round: 1), epoch: second)
        let namesake = ClusterMessage(
            sender: bench.views[2].life, destination: .one(bench.views[2].life), epoch: second,
            body: .confirmed(round: 1))
        bench.step(0, .messageReceived(namesake))
        if isConfirmed { bench.confirm() }
        bench.step(0, doing: ChecksBench.effects(none, to: 2))
        // That it takes a number that nobody has given it is another rule's.
        #expect(bench.invariants.contains(.readsAreConfirmed) != isConfirmed)
    }

    @Test
    func `of five, one other voter is no majority`() {
        var bench = ChecksBench(count: 5)
        bench.keepInTouch()
        bench.connect(2)
        bench.hear(0, 2, ChecksBench.scrape(2, transaction: 9))
        bench.confirm([1])
        bench.step(0, doing: ChecksBench.effects(none, to: 2))
        #expect(bench.invariants == [.readsAreConfirmed])
    }

    @Test
    func `a slave that reads its own table is seen`() {
        var bench = ChecksBench()
        bench.connect(2, to: 1)
        bench.hear(1, 2, ChecksBench.scrape(2, transaction: 9))
        bench.step(1, doing: ChecksBench.effects(none, to: 2))
        #expect(bench.invariants == [.readsAreConfirmed])
    }

    @Test(arguments: [true, false])
    func `a read of another tracker's client is confirmed, too`(isConfirmed: Bool) {
        var bench = ChecksBench()
        let scrape = ChecksBench.scrape(2, transaction: 9)
        let request = ForwardedRequest(number: 4, source: ChecksBench.address(2), content: .datagram(scrape))
        let (asker, master) = (bench.views[1].life, bench.views[0].life)
        let forward = ClusterMessage(
            sender: asker, destination: .one(master), epoch: ChecksBench.epoch,
            body: .forward([request], floor: 4, index: 0))
        bench.step(0, .messageReceived(forward))
        if isConfirmed { bench.confirm([2]) }
        var effects = Effects()
        let counts = [ScrapeCounts(seeders: 0, leechers: 0, completed: 0)]
        effects.messages = [
            ClusterMessage(
                sender: master, destination: .one(asker), epoch: ChecksBench.epoch,
                body: .answered([AnsweredRequest(number: 4, content: .counts(counts))]))
        ]
        bench.step(0, doing: effects)
        #expect(bench.invariants == (isConfirmed ? [] : [.readsAreConfirmed]))
    }
}
