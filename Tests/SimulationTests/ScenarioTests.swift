/// Random worlds: none may break a promise, and each comes back from its seed.

import Foundation
import Primitives
import Simulator
import Testing

@Suite("Scenarios", .computes)
struct ScenarioTests {
    @Test(arguments: 0..<Sweep.parts)
    func `no seed breaks a promise`(_ part: Int) {
        for seed in Sweep.seeds(part: part) {
            let result = Scenario(seed: seed).run()
            #expect(result.violations.isEmpty, "\(describe(result))")
        }
    }

    @Test
    func `one seed is one run`() {
        for seed: UInt64 in 0..<12 {
            let first = Scenario(seed: seed).run()
            let second = Scenario(seed: seed).run()
            #expect(first == second)
            // Writing the trace down does not change what happens.
            let third = Scenario(seed: seed).run(recordsTrace: true)
            #expect(third.traceHash == first.traceHash)
            #expect(third.trace.count > 100)
        }
    }

    @Test
    func `different seeds are different runs`() {
        let hashes = (0..<20).map { Scenario(seed: $0).run().traceHash }
        #expect(Set(hashes).count == hashes.count)
    }

    /// In other processes, in debug and in optimised builds, a seed means the same.
    ///
    /// A change of the logic or of the simulator changes these hashes: look at why, then run with REWRITE=1.
    @Test
    func `seeds mean what they meant when their hashes were written down`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "golden-hashes.txt")
        let seeds: [UInt64] = [1, 2, 3, 5, 8, 13, 21, 1_000_000, 18_446_744_073_709_551_615]
        let lines = seeds.map { "\($0) \(String(Scenario(seed: $0).run().traceHash, radix: 16))" }
        if Sweep.isRewriting {
            try (lines.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
        }
        let kept = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        #expect(lines == kept)
    }

    /// A sweep that does not reach the bad moments proves nothing.
    @Test
    func `scenarios reach what they are for`() {
        var tally = Tally()
        var seconds: Int64 = 0
        for seed: UInt64 in 0..<60 {
            let result = Scenario(seed: seed).run()
            tally += result.tally
            seconds += result.simulatedSeconds
        }
        for moment in Moment.allCases where moment != .stopping {
            #expect(tally.crashes[moment.rawValue] > 0, "no crash at \(moment)")
        }
        #expect(tally.starts > 100)
        #expect(tally.stops > 60)
        #expect(tally.announcesAnswered > 5000)
        #expect(tally.writesFailed > 100)
        #expect(tally.chunksSaved > 500)
        #expect(tally.trims > 200)
        #expect(tally.expired > 200)
        #expect(tally.probes > 500)
        #expect(tally.refusals > 500)
        #expect(seconds > 60 * 600)
    }

    @Test
    func `options may be changed before a run`() {
        var scenario = Scenario(seed: 4)
        scenario.options.faults = FaultOptions()
        scenario.options.network = NetworkOptions()
        scenario.options.disk = DiskOptions()
        scenario.options.coreLength = .seconds(300)
        let result = scenario.run()
        #expect(result.violations.isEmpty, "\(describe(result))")
        #expect(result.tally.starts == 1)
        #expect(result.tally.crashes.allSatisfy { $0 == 0 })
        #expect(result.traceHash != Scenario(seed: 4).run().traceHash)
    }
}
