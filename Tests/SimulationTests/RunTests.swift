// Runs of clusters as command lines name them, made smaller, and drawn.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Runs of clusters", .computes)
struct RunTests {
    @Test func `a run is the command that repeats it`() {
        var run = Run(seed: 17)
        #expect(run.command == "tracker replay 17")
        run.profile = .paxos
        run.nodes = 5
        run.seconds = 12
        #expect(run.command == "tracker replay 17 --profile paxos --nodes 5 --seconds 12")
        run.clients = 2
        run.onlyTrackers = [1, 4]
        run.onlyClients = [0]
        run.faults = [ChosenFault(3), ChosenFault(7, dividedBy: 4)]
        run.injections = []
        run.without = [.bus, .disks]
        #expect(
            run.command == """
                tracker replay 17 --profile paxos --nodes 5 --seconds 12 --clients 2 --only-trackers 1,4 \
                --only-clients 0 --faults 3,7/4 --injections none --without bus,disks
                """)
    }

    @Test func `without a profile, seeds take them in turn`() {
        let profiles = (0..<10).map { Run(seed: $0).chosenProfile }
        #expect(
            profiles == [
                .classic, .rotating, .lowest, .paxos, .alone, .rotating, .lowest, .paxos, .classic, .alone,
            ])
        #expect(Run(seed: 0, profile: .paxos).chosenProfile == .paxos)
        // Who wants several trackers wants no tracker alone.
        #expect(Run(seed: 4, nodes: 5).chosenProfile == .classic)
        #expect(Run(seed: 4, nodes: 1).chosenProfile == .alone)
    }

    @Test func `numbers of faults are read as they are written`() {
        #expect(Run.numbers("none") == [])
        #expect(Run.numbers("7") == [7])
        #expect(Run.numbers("9,3,3") == [3, 9])
        #expect(Run.numbers("0", from: 0) == [0])
        for text in ["", "0", "-1", "1,", "a", "1 2"] { #expect(Run.numbers(text) == nil, "\(text)") }
    }

    @Test func `faults and strikes are read as they are written`() {
        let faults = [ChosenFault(3), ChosenFault(17, dividedBy: 4)]
        #expect(Run.faults(faults.map(\.description).joined(separator: ",")) == faults)
        let injections = Moment.allCases.map { Injection(tracker: 2, moment: $0, count: 11) }
        #expect(Run.injections(injections.map(\.description).joined(separator: ",")) == injections)
        #expect(Run.faults("none") == [])
        #expect(Run.injections("none") == [])
        for text in ["", "0", "3/0", "3/", "3/4/5", "3/2000", "x"] {
            #expect(Run.faults(text) == nil, "\(text)")
        }
        for text in ["", "2", "2-okSent", "0-okSent-1", "2-okSent-0", "2-lunch-1", "2-okSent-1-1"] {
            #expect(Run.injections(text) == nil, "\(text)")
        }
    }

    /// Visitors and people at consoles draw whose passkey they take; seeds 1 and 9 trapped there.
    @Test(arguments: Array(0..<20) as [UInt64])
    func `a cluster without clients runs to its end`(_ seed: UInt64) {
        var run = Run(seed: seed)
        run.clients = 0
        #expect(run.scenario.options.clientCount == 0)
        #expect(run.scenario.run().violations.isEmpty)
    }

    @Test func `what differs from the seed is in the scenario`() {
        var run = Run(seed: 5, profile: .classic, nodes: 4, seconds: 9)
        run.clients = 3
        run.faults = [ChosenFault(2)]
        run.onlyTrackers = [2, 3]
        run.without = Run.Noise.allCases
        let options = run.scenario.options
        #expect(options.nodeCount == 4)
        #expect(options.coreLength == .seconds(9))
        #expect(options.clientCount == 3)
        #expect(!options.hasScrapers)
        #expect(options.visitorCount == 0)
        #expect(options.onlyTrackers == [2, 3])
        #expect(options.faults.onlyFaults == [ChosenFault(2)])
        #expect(options.faults.onlyInjections == nil)
        #expect(options.bus.lossPerMille == 0)
        #expect(options.maxDrift == 0)
        #expect(options.summary.hasPrefix("4 trackers, entry "))
    }

    /// A fault left out changes no other fault by the clock.
    @Test func `all faults by their numbers are the run as it was`() {
        for seed: UInt64 in 0..<4 {
            var run = Run(seed: seed, seconds: 10)
            let whole = run.scenario.run()
            run.faults = (0..<whole.tally.faultsDrawn).map { ChosenFault($0 + 1) }
            run.injections = whole.injections
            run.onlyTrackers = (1...run.scenario.options.nodeCount).map { $0 }
            #expect(run.scenario.run().traceHash == whole.traceHash)
            run.faults = []
            run.injections = []
            let quiet = run.scenario.run()
            #expect(quiet.tally.faults.allSatisfy { $0 == 0 })
            #expect(quiet.tally.injected.allSatisfy { $0 == 0 })
        }
    }

    @Test func `a failing run shrinks to what it needs`() {
        let run = Run(seed: 3, profile: .paxos)
        var result = run.scenario.run()
        result.violations = [Violation(.decidedIsForEver, at: Instant(nanoseconds: 9_500_000_000), "made up")]
        result.tally.faultsDrawn = 20
        result.injections = (1...5).map { Injection(tracker: 1, moment: .okSent, count: $0) }
        var shrinker = RunShrinker(run, breaking: .decidedIsForEver) { run, invariant in
            func has(_ number: Int, _ divisor: Int) -> Bool {
                run.faults?.contains { $0.number == number && $0.divisor <= divisor } ?? true
            }
            return invariant == .decidedIsForEver && has(4, 1) && has(11, 16) && run.seconds ?? 10 >= 7
                && !run.without.contains(.bus) && run.onlyTrackers?.contains(2) ?? true
                && run.injections?.contains { $0.count == 3 } ?? true && run.onlyClients?.contains(3) ?? true
        }
        var told = 0
        shrinker.shrink(result) { tries, _ in told = tries }
        #expect(shrinker.run.faults == [ChosenFault(4), ChosenFault(11, dividedBy: 16)])
        #expect(shrinker.run.injections == [result.injections[2]])
        #expect(shrinker.run.seconds == 7)
        #expect(shrinker.run.onlyTrackers == [2])
        #expect(shrinker.run.onlyClients == [3])
        #expect(shrinker.run.without == Run.Noise.allCases.filter { $0 != .bus })
        #expect(told == shrinker.tries)
        #expect(told < 200)
    }

    /// Histories merge only after they have parted, so whatever shrinks must keep who parted them.
    @Test(arguments: [Profile.classic, .lowest, .rotating])
    func `a run of many faults shrinks to the few without which it does not happen`(_ profile: Profile) {
        var shrunk = 0
        for seed: UInt64 in 0..<40 where shrunk < 3 {
            let run = Run(seed: seed, profile: profile)
            let result = run.scenario.run()
            let count = result.tally.faultsDrawn + result.injections.count
            guard result.tally.merges > 0, count >= 8 else { continue }
            shrunk += 1
            let happens: @Sendable (Run, Invariant) -> Bool = { run, _ in
                run.scenario.run().tally.merges > 0
            }
            var shrinker = RunShrinker(run, breaking: .healedIsOne, isStillFailing: happens)
            shrinker.shrink(result)
            let small = shrinker.run
            let left = (small.faults ?? []).count + (small.injections ?? []).count
            #expect(left <= 3, "\(run.command): \(count) became \(left)")
            #expect(small.onlyTrackers.map { (2...3).contains($0.count) } ?? false, "\(small.command)")
            #expect(happens(small, .healedIsOne), "\(small.command)")
            // No single fault, injection, tracker or client of it is too much.
            for place in (small.faults ?? []).indices {
                var less = small
                less.faults?.remove(at: place)
                #expect(!happens(less, .healedIsOne), "\(less.command)")
            }
            // The same again: it hangs on nothing but the run.
            var again = RunShrinker(run, breaking: .healedIsOne, isStillFailing: happens)
            again.shrink(result)
            #expect(again.run == small && again.tries == shrinker.tries)
        }
        #expect(shrunk > 0)
    }

    /// All trackers lose their bus by the script, so no fault has to stay.
    @Test func `a run that is bound to fail shrinks to nothing, and fails on the same promise`() throws {
        let scenario: @Sendable (Run) -> Scenario = { run in
            var scenario = run.scenario
            let end = scenario.options.coreLength + .seconds(20)
            scenario.options.script = [ScriptedEvent(at: end, .brokerOutage(.seconds(60)))]
            return scenario
        }
        let run = Run(seed: 8, profile: .paxos)
        let result = scenario(run).run()
        let broken = try #require(result.violations.first)
        var shrinker = RunShrinker(run, breaking: broken.invariant, of: scenario)
        shrinker.shrink(result)
        #expect(shrinker.run.faults == [] && shrinker.run.injections == [])
        #expect((1...2).contains(shrinker.run.onlyTrackers?.count ?? 9))
        #expect((shrinker.run.onlyClients?.count ?? 9) <= 1)
        #expect(shrinker.run.seconds == 1)
        #expect(scenario(shrinker.run).run().violations.first?.invariant == broken.invariant)
    }

    @Test func `shrinking ends when its runs are used up`() {
        let run = Run(seed: 3, profile: .paxos)
        var result = run.scenario.run()
        result.violations = [Violation(.decidedIsForEver, at: Instant(nanoseconds: 9_500_000_000), "made up")]
        var shrinker = RunShrinker(run, breaking: .decidedIsForEver, maxTries: 12) { run, _ in
            !run.without.contains(.bus)
        }
        shrinker.shrink(result)
        #expect(shrinker.tries == 12)
        #expect(!shrinker.run.without.contains(.bus))
    }

    @Test func `a failure that cannot be repeated stays as it is`() {
        let run = Run(seed: 3, profile: .paxos, seconds: 20)
        var result = run.scenario.run()
        result.violations = [Violation(.decidedIsForEver, at: Instant(nanoseconds: 0), "made up")]
        var shrinker = RunShrinker(run, breaking: .decidedIsForEver) { _, _ in false }
        shrinker.shrink(result)
        #expect(shrinker.run.seconds == 20)
        #expect(shrinker.run.onlyClients == nil)
        #expect(shrinker.run.onlyTrackers == nil)
        #expect(shrinker.run.without == [])
    }

    @Test func `a run is told, drawn and captured`() {
        var run = Run(seed: 1, profile: .classic, nodes: 3, seconds: 10)
        run.without = [.network]
        var result = run.scenario.run(recordsTrace: true, recordsHistory: true)
        #expect(result.traceHash == run.scenario.run().traceHash)
        #expect(result.trace.last?.hasSuffix(String(result.traceHash, radix: 16)) ?? false)
        let svg = result.diagram(of: run).svg()
        #expect(svg.contains("seed 1, profile classic, 3 trackers"))
        #expect(svg.contains(">tracker 3</text>"))
        #expect(svg.contains("class=\"mark start\""))
        #expect(result.capture.packetCount > result.datagrams.count + result.history.sentMessages.count)
        #expect(result.history.sentMessages.count > 10)
        result.violations = [Violation(.oneMasterPerEpoch, at: Instant(nanoseconds: 2_000_000_000), "made up")]
        let text = result.failure(of: run)
        #expect(text.contains("seed 1, profile classic: oneMasterPerEpoch violated at 2.000 s: made up"))
        #expect(text.contains("first bad event: "))
        #expect(text.contains("tracker replay 1 --profile classic --nodes 3 --seconds 10 --without network"))
        #expect(result.diagram(of: run).svg().contains("oneMasterPerEpoch: made up"))
    }
}
