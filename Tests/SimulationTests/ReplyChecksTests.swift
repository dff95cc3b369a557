// The checkers of what trackers say to clients can fail, each of them.

import Primitives
import Simulator
import Testing
import TrackerLogic
import Wire

@Suite("Checkers of clusters: replies", .computes)
struct ReplyCheckTests {
    private let right = ChecksBench.reply(leechers: 1, seeders: 0)

    // MARK: - Announces

    @Test
    func `a reply to an announce that is in no entry is seen`() {
        var bench = ChecksBench()
        _ = bench.ask(0, bench.announce(0))
        bench.step(0, doing: ChecksBench.effects(right, to: 0))
        #expect(bench.invariants == [.answeredOnce])
    }

    @Test
    func `a reply before the entry is applied here is seen`() {
        var bench = ChecksBench()
        let entry = bench.ask(0, bench.announce(0), of: 1)
        bench.store([0, 1], entry)
        bench.apply(0, entry)
        bench.step(1, doing: ChecksBench.effects(right, to: 0))
        #expect(bench.invariants == [.answeredOnce])
    }

    @Test
    func `a reply from an entry that was decided before the request is seen`() {
        var bench = ChecksBench(entry: .group)
        bench.commit(bench.ask(0, bench.announce(0)))
        bench.pass()
        _ = bench.ask(0, bench.announce(0, transaction: 2))
        bench.step(0, doing: ChecksBench.effects(ChecksBench.reply(2, leechers: 1, seeders: 0), to: 0))
        #expect(bench.invariants == [.answeredOnce])
    }

    @Test
    func `a second reply is seen`() {
        var bench = ChecksBench()
        var effects = ChecksBench.effects(right, to: 0)
        effects.replies.append(right, remote: ChecksBench.address(0))
        bench.commit(bench.ask(0, bench.announce(0)), effects)
        #expect(bench.invariants == [.answeredOnce])
    }

    @Test
    func `a reply by a tracker that was not asked is seen`() {
        var bench = ChecksBench()
        let entry = bench.ask(0, bench.announce(0), of: 1)
        bench.store([0, 1], entry)
        bench.apply(0, entry, ChecksBench.effects(right, to: 0))
        #expect(bench.invariants == [.replyIsAddressed])
    }

    @Test(arguments: [
        ChecksBench.reply(leechers: 2, seeders: 0), ChecksBench.reply(leechers: 1, seeders: 1),
        ChecksBench.reply(interval: 0, leechers: 1, seeders: 0),
        ChecksBench.reply(leechers: 1, seeders: 0, peers: [0]),
        ChecksBench.reply(leechers: 1, seeders: 0, peers: [3]), ChecksBench.reply(leechers: 1, seeders: 0) + [1],
    ])
    func `a reply that is wrong is seen`(_ reply: [UInt8]) {
        var bench = ChecksBench()
        bench.commit(bench.ask(0, bench.announce(0)), ChecksBench.effects(reply, to: 0))
        #expect(bench.invariants == [.replyIsRight])
    }

    @Test
    func `peers that are missing or named twice are seen`() {
        for peers in [[], [0, 0], [2]] {
            var bench = ChecksBench()
            bench.commit(bench.ask(0, bench.announce(0)), ChecksBench.effects(right, to: 0))
            let reply = ChecksBench.reply(leechers: 2, seeders: 0, peers: peers)
            bench.commit(bench.ask(1, bench.announce(1)), ChecksBench.effects(reply, to: 1))
            #expect(bench.invariants == [.replyIsRight])
        }
    }

    @Test
    func `a slave answers from the state right after the update, however late`() {
        var bench = ChecksBench()
        let first = bench.ask(0, bench.announce(0), of: 1)
        bench.store([0, 1], first)
        bench.apply(0, first)
        let second = bench.ask(2, bench.announce(2))
        bench.store([0, 2], second)
        bench.apply(0, second, ChecksBench.effects(ChecksBench.reply(leechers: 2, seeders: 0, peers: [0]), to: 2))
        var late = bench
        bench.apply(1, first, ChecksBench.effects(right, to: 0))
        #expect(bench.checks.violations.isEmpty, "\(bench.checks.violations)")
        late.apply(1, first, ChecksBench.effects(ChecksBench.reply(leechers: 2, seeders: 0, peers: [2]), to: 0))
        #expect(late.invariants == [.replyIsRight])
    }

    @Test
    func `a reply under a connection id that nobody has issued is seen`() {
        var bench = ChecksBench()
        let request = bench.announce(0)
        bench.hear(0, 0, ChecksBench.bytes(request))
        let entry = bench.entry([bench.update(request, of: 0)], waiting: [(bench.views[0].life, 1)])
        bench.commit(entry, ChecksBench.effects(right, to: 0))
        #expect(bench.invariants == [.onlyProvenAreAnswered])
    }

    @Test
    func `an update that nobody has asked for is seen`() {
        var bench = ChecksBench()
        bench.commit(bench.entry([bench.update(bench.announce(0), of: 0)]))
        #expect(bench.invariants == [.updateIsAsked])
    }

    @Test
    func `a request that is in the log twice is seen, and its repetition is not`() {
        for copies in 1...2 {
            var bench = ChecksBench()
            bench.commit(bench.ask(0, bench.announce(0)))
            if copies == 2 { bench.hear(0, 0, ChecksBench.bytes(bench.announce(0)), isSent: false) }
            bench.commit(
                bench.entry([bench.update(bench.announce(0), of: 0)], waiting: [(bench.views[0].life, 2)]))
            #expect(bench.invariants == (copies == 2 ? [] : [.updateIsAsked]))
        }
    }

    @Test
    func `a forwarded request that two masters bring in is seen`() {
        var bench = ChecksBench()
        let entry = bench.ask(0, bench.announce(0), of: 1)
        bench.hear(1, 0, ChecksBench.bytes(bench.announce(0)), isSent: false)
        bench.commit(entry)
        bench.commit(bench.entry([bench.update(bench.announce(0), of: 0)], waiting: [(bench.views[1].life, 1)]))
        #expect(bench.invariants == [.updateIsAsked])
    }

    // MARK: - Groups

    @Test(arguments: [false, true])
    func `in a group, a second tracker answers only after the first is deposed`(_ isDeposed: Bool) {
        var bench = ChecksBench(entry: .group)
        let request = bench.announce(0)
        bench.connect(0)
        for node in 0..<3 { bench.hear(node, 0, ChecksBench.bytes(request), isSent: node == 0) }
        let entry = bench.entry([bench.update(request, of: 0)], waiting: [(Tickets.group, 5)])
        bench.commit(entry, ChecksBench.effects(right, to: 0))
        bench.keepInTouch()
        // The first still leads; it is deposed by a higher epoch, and need not know.
        let epoch = Epoch(round: 2, id: 2)
        for node in [1, 2] { bench.promise(node, epoch) }
        bench.answer([2], epoch)
        bench.step(1, doing: ChecksBench.effects(right, to: 0)) { $0.leads = isDeposed ? epoch : nil }
        #expect(bench.invariants == (isDeposed ? [] : [.silentUnlessServing, .answeredOnce]))
    }

    @Test
    func `a slave of a group that replies is seen`() {
        var bench = ChecksBench(entry: .group)
        bench.connect(0, to: 1)
        #expect(bench.invariants == [.silentUnlessServing])
    }

    // MARK: - Who speaks

    @Test
    func `who is cut off, blank, or not in service is silent`() {
        let faults: [(inout NodeView) -> Void] = [
            { $0.isFenced = true }, { $0.hasFullState = false }, { $0.isServing = false },
        ]
        for fault in faults {
            var bench = ChecksBench()
            bench.step(1, .deadlineReached, applied: [], doing: Effects(), fault)
            bench.connect(0, to: 1)
            #expect(bench.invariants == [.silentUnlessServing])
        }
    }

    @Test
    func `a master that has not heard a quorum for long is silent in quorum mode`() {
        for profile in [Profile.paxos, .classic] {
            var bench = ChecksBench(profile)
            bench.pass(.seconds(5))
            bench.connect(0)
            #expect(bench.checks.violations.isEmpty)
            bench.pass(.seconds(2))
            bench.connect(1)
            #expect(bench.invariants == (profile == .paxos ? [.silentUnlessServing] : []))
        }
    }

    /// The master has begun anew, and decides once more what it does not know to be decided.
    @Test(arguments: [[], [1], [2]])
    func `what is in the entry that takes a vote is answered by those who decide it`(_ heard: [Int]) {
        for isDeciding in [true, false] {
            var bench = ChecksBench()
            bench.step(0, .commandReceived(.removeMember(3)))
            bench.commit(bench.entry([.setMembers([1, 2])]))
            bench.pass(.seconds(7))
            for other in heard { bench.hear(0, from: other) }
            bench.connect(0) { if isDeciding { $0.voters = [1, 2] } }
            let mayAnswer = heard == [1] || heard == [2] && isDeciding
            #expect(bench.invariants == (mayAnswer ? [] : [.silentUnlessServing]), "heard \(heard), \(isDeciding)")
        }
    }

    // MARK: - Scrapes

    @Test
    func `a scrape sees a state between its sending and its answer`() {
        var bench = ChecksBench()
        bench.commit(bench.ask(0, bench.announce(0)), ChecksBench.effects(right, to: 0))
        bench.connect(2)
        bench.hear(0, 2, ChecksBench.scrape(2, transaction: 9))
        bench.keepInTouch()
        let reply = ChecksBench.reply(leechers: 2, seeders: 0, peers: [0])
        bench.commit(bench.ask(1, bench.announce(1)), ChecksBench.effects(reply, to: 1))
        let expected: [(leechers: UInt32, invariants: [Invariant])] = [
            (0, [.readsAreFresh]), (1, []), (2, []), (3, [.replyIsRight]),
        ]
        bench.confirm()
        for (leechers, invariants) in expected {
            var bench = bench
            let told = ChecksBench.scraped(9, seeders: 0, completed: 0, leechers: leechers)
            bench.step(0, doing: ChecksBench.effects(told, to: 2))
            #expect(bench.invariants == invariants, "\(leechers) leechers")
        }
    }

    @Test
    func `a scrape that is answered twice is seen`() {
        var bench = ChecksBench()
        bench.connect(2)
        bench.hear(0, 2, ChecksBench.scrape(2, transaction: 9))
        bench.confirm()
        for _ in 0..<2 {
            let told = ChecksBench.scraped(9, seeders: 0, completed: 0, leechers: 0)
            bench.step(0, doing: ChecksBench.effects(told, to: 2))
        }
        #expect(bench.invariants == [.answeredOnce])
    }

    /// A bit on the way has made another scrape of a copy, which nobody can tell from it by the first reply.
    ///
    /// Who has the reply to it taken for the other's alarms for nothing (rule 24; seed 8040020 of `paxos`).
    @Test(arguments: [[false, true], [true, false], [false], [true], [false, true, true]])
    func `of two scrapes a bit apart, the first reply may be to either`(_ heard: [Bool]) {
        var other = ChecksBench.scrape(2, transaction: 9)
        other[16] ^= 1
        var bench = ChecksBench()
        bench.connect(2)
        for isOther in heard {
            bench.hear(0, 2, isOther ? other : ChecksBench.scrape(2, transaction: 9), isSent: !isOther)
        }
        func told(_ leechers: UInt32) -> Effects {
            ChecksBench.effects(ChecksBench.scraped(9, seeders: 0, completed: 0, leechers: leechers), to: 2)
        }
        bench.confirm()
        bench.step(0, doing: told(0))
        bench.commit(bench.ask(0, bench.announce(0)), ChecksBench.effects(right, to: 0))
        bench.keepInTouch()
        #expect(bench.checks.violations.isEmpty, "\(bench.checks.violations)")
        bench.step(0, doing: told(1))
        // The one as it was sent has to be among them, and a copy left for each reply.
        let mayTellTwice = heard.contains(false) && heard.count > 1
        #expect(bench.invariants == (mayTellTwice ? [] : [.answeredOnce]))
        guard mayTellTwice else { return }
        for leechers: UInt32 in [0, 1] {
            var bench = bench
            bench.step(0, doing: told(leechers))
            // Zeros may be told of what nobody has, as often as that was heard.
            let isLeft = leechers == 0 && heard.count > 2
            #expect(bench.invariants == (isLeft ? [] : [.answeredOnce]), "\(leechers) leechers")
        }
    }

    // MARK: - Peers

    @Test
    func `a late copy of who has left is a new peer, and no fault`() {
        var bench = ChecksBench()
        let request = bench.announce(0, .completed, left: 0)
        bench.commit(bench.ask(0, request), ChecksBench.effects(ChecksBench.reply(leechers: 0, seeders: 1), to: 0))
        // The peer is gone, and an old copy of what it said comes in.
        let stop = bench.announce(0, .stopped, left: 0, transaction: 2)
        bench.commit(
            bench.ask(0, stop), ChecksBench.effects(ChecksBench.reply(2, leechers: 0, seeders: 0), to: 0))
        #expect(bench.checks.violations.isEmpty, "\(bench.checks.violations)")
        bench.hear(0, 0, ChecksBench.bytes(request), isSent: false)
        bench.commit(bench.entry([bench.update(request, of: 0)], waiting: [(bench.views[0].life, 9)]))
        #expect(!bench.invariants.contains(.completedCountsOnce))
    }

    @Test(arguments: [(2100, true), (2200, false)] as [(UInt32, Bool)])
    func `a peer that is taken out before its time is seen`(_ silence: UInt32, _ isEarly: Bool) {
        var bench = ChecksBench()
        bench.commit(bench.ask(0, bench.announce(0)), ChecksBench.effects(right, to: 0))
        let expiry = Update.expire(shard: 0, seenBefore: 1000 + silence, emptyBefore: 0)
        let entry = bench.entry([expiry], second: Int64(silence))
        bench.store([0, 1], entry)
        bench.apply(0, entry)
        #expect(bench.invariants == (isEarly ? [.expiryIsPatient] : []))
    }

    // MARK: - Bounds and the end

    @Test
    func `queues without bounds are seen`() {
        var bench = ChecksBench()
        bench.step(1) { $0.waitingRequests = 1_000_000 }
        var effects = Effects()
        effects.messages = Array(
            repeating: ClusterMessage(
                sender: bench.views[0].life, destination: .all, epoch: ChecksBench.epoch, body: .leave),
            count: 60)
        bench.step(0, doing: effects)
        #expect(bench.invariants == [.queuesAreBounded, .queuesAreBounded])
    }

    @Test
    func `an end without agreement is seen`() {
        let faults: [(Invariant, (inout [NodeView]) -> Void)] = [
            (.healedIsOne, { $0[0].leads = nil }), (.healedIsOne, { $0[1].leads = Epoch(round: 2, id: 2) }),
            (.healedIsOne, { $0[1].isFenced = true }), (.healedIsOne, { $0[1].hasFullState = false }),
            (.healedIsOne, { $0[1].isServing = false }), (.healedIsOne, { $0[2].digest &+= 1 }),
            (.decidedIsForEver, { $0[2].position = .start }),
        ]
        for (invariant, fault) in faults {
            var bench = ChecksBench()
            bench.commit(bench.entry())
            bench.pass(.seconds(3))
            bench.checks.finish(bench.views, at: bench.now)
            #expect(bench.checks.violations.isEmpty)
            fault(&bench.views)
            bench.checks.finish(bench.views, at: bench.now)
            #expect(bench.invariants.first == invariant)
        }
    }

    @Test
    func `clients that nobody answers, and peers that are lost, are seen`() {
        var bench = ChecksBench()
        bench.commit(bench.ask(0, bench.announce(0)), ChecksBench.effects(right, to: 0))
        bench.checks.checkUnanswered([(client: 1, since: bench.now)], at: bench.now + .seconds(9))
        #expect(bench.invariants == [.healedIsAnswered])
        // A state without that peer: its entry may be on its way, but not for long.
        let without = ReplicatedState(secret: ClusterSecret(1, 2, 3, 4), shardCount: 1)
        bench.checks.checkState(without, 1, at: bench.now + .seconds(1))
        #expect(bench.invariants == [.healedIsAnswered])
        bench.checks.checkState(without, 1, at: bench.now + .seconds(3))
        #expect(bench.invariants == [.healedIsAnswered, .answeredSurvives])
    }

    @Test
    func `every profile says what it promises`() {
        for profile in Profile.allCases {
            let promises = Promises(profile)
            // A tracker alone is the only voter that there is.
            let isQuorum = profile.configuration(members: [1, 2, 3]).mode == .quorum || profile == .alone
            #expect(promises.hasOneHistory == isQuorum)
            #expect(promises.membersDecide == isQuorum)
            #expect(promises.repliesAreLinear == isQuorum)
            #expect(promises.abortsAreFinal == isQuorum)
            let vote = profile.configuration(members: []).vote
            #expect(promises.allDecide == (vote != .majority))
            #expect(promises.diskDecides == (profile == .alone))
            #expect(promises.answersAtOnce == (profile == .alone))
        }
    }
}
