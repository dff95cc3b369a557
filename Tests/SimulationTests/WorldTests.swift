// The simulated world: one seed is one run, what may be told to it does what it should, and so does the bus.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Simulated clusters", .computes)
struct WorldTests {
    @Test(arguments: Profile.allCases)
    func `one seed is one run`(_ profile: Profile) {
        for seed: UInt64 in 0..<3 {
            let first = Scenario(seed: seed, profile: profile).run()
            let second = Scenario(seed: seed, profile: profile).run()
            #expect(first == second)
            // Writing down what happens does not change it.
            let third = Scenario(seed: seed, profile: profile).run(recordsTrace: true, recordsHistory: true)
            #expect(third.traceHash == first.traceHash)
            #expect(third.events == first.events)
            #expect(third.trace.count > 100)
            #expect(third.trace.last == "trace hash \(String(first.traceHash, radix: 16))")
            #expect(!third.transitions.isEmpty)
            #expect(third.messages.isEmpty == (profile == .alone))
            #expect(!third.datagrams.isEmpty)
        }
    }

    @Test
    func `different seeds and profiles are different runs`() {
        var hashes: [UInt64] = []
        for profile in Profile.allCases {
            hashes += (0..<4).map { Scenario(seed: $0, profile: profile).run().traceHash }
        }
        #expect(Set(hashes).count == hashes.count)
    }

    @Test
    func `the caller may say how many trackers there are and how long it lasts`() {
        let scenario = Scenario(seed: 5, profile: .paxos, nodes: 4, seconds: 12)
        #expect(scenario.options.nodeCount == 4)
        #expect(scenario.options.coreLength == .seconds(12))
        let result = scenario.run(recordsTrace: true)
        // Time, four trackers, what happened.
        #expect(result.trace.first?.split(separator: "│").count == 6)
        #expect(result.simulatedSeconds <= 12 + 60)
    }

    @Test(arguments: Profile.allCases)
    func `what is drawn makes sense`(_ profile: Profile) {
        for seed: UInt64 in 0..<300 {
            let options = Scenario(seed: seed, profile: profile).options
            #expect(profile == .alone ? options.nodeCount == 1 : (3...7).contains(options.nodeCount))
            #expect(options.spareCount == 0 || (profile == .paxos && options.nodeCount - options.spareCount >= 3))
            #expect(options.unnumberedCount == 0 || (profile != .paxos && options.unnumberedCount < options.nodeCount))
            #expect((6...23).contains(options.clientCount))
            #expect((1...4).contains(options.swarmCount))
            #expect(!options.faults.kinds.contains(.memberChange) || profile == .paxos)
            #expect(!options.faults.kinds.contains(.partition) || profile != .alone)
        }
    }

    // MARK: - What only some seeds have

    @Test(arguments: Profile.allCases)
    func `bits flip, people share addresses and visitors have whims, and no promise is broken`(_ profile: Profile) {
        var tally = Tally()
        for seed: UInt64 in 0..<12 {
            var scenario = Scenario(seed: seed, profile: profile)
            scenario.options.network.flipPerMille = 40
            scenario.options.clientsPerAddress = 3
            scenario.options.visitorCount = 3
            scenario.options.hasWhimsicalVisitors = true
            let result = scenario.run()
            #expect(result.violations.isEmpty, "\(profile) \(seed): \(result.violations.map(\.description))")
            tally += result.tally
        }
        #expect(tally.flips > 50)
        #expect(tally.visitsAnswered > 100)
        #expect(tally.probes > 20)
    }

    @Test(arguments: Profile.allCases)
    func `whoever falls silent is gone in the end, and those who are there are not`(_ profile: Profile) {
        for seed: UInt64 in 0..<6 {
            var scenario = Scenario(seed: seed, profile: profile)
            scenario.options.outlastsTheSilent = true
            let result = scenario.run()
            #expect(result.violations.isEmpty, "\(profile) \(seed): \(result.violations.map(\.description))")
            #expect(result.simulatedSeconds > 180)
        }
    }

    /// Of what a tracker alone is for: its disk, its stops, its operator.
    @Test
    func `scenarios of a tracker alone reach what they are for`() {
        var tally = Tally()
        for seed: UInt64 in 0..<80 { tally += Scenario(seed: seed, profile: .alone).run().tally }
        for moment in [Moment.entrySubmitted, .entryDurable, .replied, .restarted, .snapshotUnderWay, .writeFailed] {
            #expect(tally.injected[moment.rawValue] > 0, "nothing strikes at \(moment)")
        }
        #expect(tally.deaths > 100)
        #expect(tally.stops > 80)
        #expect(tally.masters > 200)
        #expect(tally.answers > 5000)
        #expect(tally.refusals > 200)
        #expect(tally.writesFailed > 50)
        #expect(tally.chunksSaved > 200)
        #expect(tally.trims > 50)
        #expect(tally.probes > 200)
        #expect(tally.messagesSent == 0)
    }

    // MARK: - The bus

    private static let start = Instant(nanoseconds: 0)

    private func bus(_ options: SimulatedBusOptions = SimulatedBusOptions(), count: Int = 3) -> SimulatedBus {
        SimulatedBus(count: count, options: options, seed: 9)
    }

    @Test
    func `a bus without fault delivers once, in order, within its bounds`() {
        var bus = bus()
        var last = WorldTests.start
        for number in 0..<500 {
            let now = WorldTests.start + .milliseconds(Int64(number))
            let fate = bus.carry(from: 0, to: 1, now: now)
            #expect(fate.second == nil)
            #expect(fate.third == nil)
            guard let time = fate.first else {
                Issue.record("message \(number) is lost")
                return
            }
            #expect(time > now)
            #expect(time >= last)
            #expect(time <= max(last, now + bus.options.maxDelay))
            last = time
        }
    }

    @Test
    func `a bad bus loses, repeats, reorders and delivers again, each about as often as it should`() {
        var options = SimulatedBusOptions()
        options.lossPerMille = 200
        options.repeatPerMille = 100
        options.redeliveredPerMille = 50
        options.stragglerPerMille = 100
        options.isReordering = true
        var bus = bus(options)
        var (lost, repeated, again, overtaken) = (0, 0, 0, 0)
        var latest = WorldTests.start
        for number in 0..<10_000 {
            let fate = bus.carry(from: 2, to: 0, now: WorldTests.start + .milliseconds(Int64(number)))
            if fate.second != nil { repeated += 1 }
            if fate.third != nil { again += 1 }
            guard let time = fate.first else {
                lost += 1
                continue
            }
            if time < latest { overtaken += 1 }
            latest = max(latest, time)
        }
        #expect((1800...2200).contains(lost))
        #expect((700...900).contains(repeated))
        #expect((340...460).contains(again))
        #expect(overtaken > 1000)
    }

    @Test
    func `a split keeps the two sides apart, in both directions or in one, for its time`() {
        let until = WorldTests.start + .seconds(5)
        for isOneWay in [false, true] {
            var bus = bus(count: 4)
            bus.split(0b0011, isOneWay: isOneWay, until: until)
            for sender in 0..<4 {
                for receiver in 0..<4 where receiver != sender {
                    let crosses = (sender < 2) != (receiver < 2)
                    let isBlocked = crosses && (!isOneWay || sender < 2)
                    let during = bus.carry(from: sender, to: receiver, now: WorldTests.start + .seconds(1))
                    #expect((during.first == nil) == isBlocked)
                    let after = bus.carry(from: sender, to: receiver, now: until)
                    #expect(after.first != nil)
                }
            }
        }
    }

    @Test
    func `a clogged link holds all and loses nothing, and others are as ever`() {
        var bus = bus()
        let until = WorldTests.start + .seconds(4)
        bus.clog(from: 0, to: 1, until: until)
        let held = bus.carry(from: 0, to: 1, now: WorldTests.start)
        #expect((held.first ?? WorldTests.start) >= until)
        let back = bus.carry(from: 1, to: 0, now: WorldTests.start)
        #expect((back.first ?? until) < until)
    }

    @Test
    func `a slow link is slow until it is not`() {
        var bus = bus()
        let until = WorldTests.start + .seconds(4)
        bus.slow(from: 0, to: 1, by: .seconds(1), until: until)
        let slow = bus.carry(from: 0, to: 1, now: WorldTests.start)
        #expect((slow.first ?? WorldTests.start) >= WorldTests.start + .seconds(1))
        let fast = bus.carry(from: 0, to: 1, now: until)
        #expect((fast.first ?? until + .seconds(9)) <= until + bus.options.maxDelay)
    }

    @Test
    func `a bus that is healed has forgotten all trouble`() {
        var options = SimulatedBusOptions()
        options.lossPerMille = 1000
        var bus = bus(options)
        bus.split(0b001, isOneWay: false, until: WorldTests.start + .seconds(100))
        bus.clog(from: 1, to: 2, until: WorldTests.start + .seconds(100))
        bus.heal(at: WorldTests.start)
        for sender in 0..<3 {
            for receiver in 0..<3 where receiver != sender {
                let fate = bus.carry(from: sender, to: receiver, now: WorldTests.start)
                #expect(fate.first.map { $0 <= WorldTests.start + bus.options.maxDelay } == true)
            }
        }
    }

    @Test
    func `of a bus that is healed it is known until when its links did not work`() {
        var bus = bus(count: 4)
        let (over, healed) = (WorldTests.start + .seconds(1), WorldTests.start + .seconds(4))
        bus.block(from: 0, to: 1, until: healed + .seconds(5))
        bus.clog(from: 0, to: 2, until: healed + .seconds(5))
        bus.slow(from: 0, to: 3, by: .seconds(1), until: healed + .seconds(5))
        bus.block(from: 1, to: 2, until: over)
        bus.heal(at: healed)
        for other in 1...3 {
            #expect(!bus.isClear(between: 0, and: other, now: healed - .milliseconds(1)))
            #expect(bus.isClear(between: other, and: 0, now: healed))
        }
        #expect(!bus.isClear(between: 1, and: 2, now: over - .milliseconds(1)))
        #expect(bus.isClear(between: 1, and: 2, now: over))
        #expect(bus.isClear(between: 2, and: 3, now: WorldTests.start))
    }
}
