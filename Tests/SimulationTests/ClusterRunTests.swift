/// Runs of clusters as command lines name them, made smaller, and drawn.

import Primitives
import Simulator
import Testing
import TrackerLogic

@Suite("Runs of clusters", .computes)
struct ClusterRunTests {
    @Test func `a run is the command that repeats it`() {
        var run = ClusterRun(seed: 17)
        #expect(run.command == "tracker replay 17")
        run.profile = .paxos
        run.nodes = 5
        run.seconds = 12
        #expect(run.command == "tracker replay 17 --profile paxos --nodes 5 --seconds 12")
        run.clients = 2
        run.faults = [3, 7]
        run.strikes = []
        run.without = [.bus, .disks]
        #expect(
            run.command == """
                tracker replay 17 --profile paxos --nodes 5 --seconds 12 --clients 2 --faults 3,7 --strikes none \
                --without bus,disks
                """)
    }

    @Test func `without a profile, seeds take them in turn`() {
        let profiles = (0..<8).map { ClusterRun(seed: $0).chosenProfile }
        #expect(profiles == ClusterProfile.allCases + ClusterProfile.allCases)
        #expect(ClusterRun(seed: 0, profile: .paxos).chosenProfile == .paxos)
    }

    @Test func `numbers of faults are read as they are written`() {
        #expect(ClusterRun.numbers("none") == [])
        #expect(ClusterRun.numbers("7") == [7])
        #expect(ClusterRun.numbers("9,3,3") == [3, 9])
        for text in ["", "0", "-1", "1,", "a", "1 2"] { #expect(ClusterRun.numbers(text) == nil, "\(text)") }
    }

    @Test func `what differs from the seed is in the scenario`() {
        var run = ClusterRun(seed: 5, profile: .classic, nodes: 4, seconds: 9)
        run.clients = 3
        run.faults = [2]
        run.without = ClusterRun.Noise.allCases
        let options = run.scenario.options
        #expect(options.nodeCount == 4)
        #expect(options.coreLength == .seconds(9))
        #expect(options.clientCount == 3)
        #expect(options.scraperCount == 0)
        #expect(options.faults.onlyFaults == [2])
        #expect(options.faults.onlyStrikes == nil)
        #expect(options.bus.lossPerMille == 0)
        #expect(options.maxDrift == 0)
        #expect(options.summary.hasPrefix("4 trackers, entry "))
    }

    /// A fault left out changes no other fault by the clock.
    @Test func `all faults by their numbers are the run as it was`() {
        for seed: UInt64 in 0..<4 {
            var run = ClusterRun(seed: seed, seconds: 10)
            let whole = run.scenario.run()
            run.faults = (0..<whole.tally.faultsDrawn).map { $0 + 1 }
            run.strikes = (0..<whole.tally.strikesDrawn).map { $0 + 1 }
            #expect(run.scenario.run().traceHash == whole.traceHash)
            run.faults = []
            run.strikes = []
            let quiet = run.scenario.run()
            #expect(quiet.tally.faults.allSatisfy { $0 == 0 })
            #expect(quiet.tally.struck.allSatisfy { $0 == 0 })
        }
    }

    @Test func `a failing run shrinks to what it needs`() {
        let run = ClusterRun(seed: 3, profile: .paxos)
        var result = run.scenario.run()
        result.violations = [Violation(.decidedIsForEver, at: Instant(nanoseconds: 9_500_000_000), "made up")]
        result.tally.faultsDrawn = 20
        result.tally.strikesDrawn = 5
        var shrinker = ClusterShrinker(run, breaking: .decidedIsForEver) { run, invariant in
            invariant == .decidedIsForEver && run.faults?.contains(4) ?? true && run.faults?.contains(11) ?? true
                && run.seconds ?? 10 >= 7 && !run.without.contains(.bus) && run.nodes ?? 7 >= 3
        }
        var told = 0
        shrinker.shrink(result) { tries, _ in told = tries }
        #expect(shrinker.run.faults == [4, 11])
        #expect(shrinker.run.strikes == [])
        #expect(shrinker.run.seconds == 7)
        #expect(shrinker.run.nodes == 3)
        #expect(shrinker.run.clients == 0)
        #expect(shrinker.run.without == ClusterRun.Noise.allCases.filter { $0 != .bus })
        #expect(told == shrinker.tries)
        #expect(told < 200)
    }

    @Test func `a failure that cannot be repeated stays as it is`() {
        let run = ClusterRun(seed: 3, profile: .paxos, seconds: 20)
        var result = run.scenario.run()
        result.violations = [Violation(.decidedIsForEver, at: Instant(nanoseconds: 0), "made up")]
        var shrinker = ClusterShrinker(run, breaking: .decidedIsForEver) { _, _ in false }
        shrinker.shrink(result)
        #expect(shrinker.run.seconds == 20)
        #expect(shrinker.run.clients == nil)
        #expect(shrinker.run.nodes == nil)
        #expect(shrinker.run.without == [])
    }

    @Test func `a run is told, drawn and captured`() {
        var run = ClusterRun(seed: 1, profile: .classic, nodes: 3, seconds: 10)
        run.without = [.network]
        var result = run.scenario.run(recordsTrace: true, recordsHistory: true)
        #expect(result.traceHash == run.scenario.run().traceHash)
        #expect(result.trace.last?.hasSuffix(String(result.traceHash, radix: 16)) ?? false)
        let svg = result.diagram(of: run).svg()
        #expect(svg.contains("seed 1, profile classic, 3 trackers"))
        #expect(svg.contains(">tracker 3</text>"))
        #expect(svg.contains("class=\"mark start\""))
        #expect(result.capture.packetCount > result.datagrams.count + result.history.letters.count)
        #expect(result.history.letters.count > 10)
        result.violations = [Violation(.epochsRise, at: Instant(nanoseconds: 2_000_000_000), "made up")]
        let text = result.failure(of: run)
        #expect(text.contains("seed 1, profile classic: epochsRise violated at 2.000 s: made up"))
        #expect(text.contains("first bad event: "))
        #expect(text.contains("tracker replay 1 --profile classic --nodes 3 --seconds 10 --without network"))
        #expect(result.diagram(of: run).svg().contains("epochsRise: made up"))
    }
}
