// Swarms of peers: stories that the documents tell, and sweeps.

import PeerLogic
import Primitives
import Simulator
import Testing

/// One swarm of a few peers in which nothing goes wrong but what a story tells.
private func quiet(_ change: (inout TransferOptions) -> Void) -> TransferScenario {
    var options = TransferOptions()
    options.coreLength = .seconds(100)
    (options.minLineRate, options.maxLineRate) = (100_000, 100_000)
    options.leecherCount = 4
    change(&options)
    return TransferScenario(seed: 7, options: options)
}

private func isWhole(_ result: TransferResult, _ scenario: TransferScenario, but lost: [Int] = []) -> Bool {
    let honest = scenario.options.seederCount + scenario.options.leecherCount
    return (0..<honest).allSatisfy { lost.contains($0) || result.pieceCounts[$0] == scenario.options.pieceCount }
}

@Suite("Transfers", .computes)
struct TransferTests {
    @Test func `everybody gets everything, each piece once`() {
        let scenario = quiet { _ in }
        let result = scenario.run()
        #expect(result.violations.isEmpty)
        #expect(isWhole(result, scenario))
        #expect(result.tally.pieces == 4 * 40)
        #expect(result.tally.completions == 4)
        #expect(result.tally.bans == 0 && result.tally.breaches == 0)
    }

    @Test func `the same seed is the same run`() {
        for seed in 40...44 as ClosedRange<UInt64> {
            let (first, second) = (
                TransferScenario(seed: seed).run(), TransferScenario(seed: seed).run(recordsTrace: true)
            )
            #expect(first.traceHash == second.traceHash && first.events == second.events)
            #expect(first.traceHash != TransferScenario(seed: seed + 1).run().traceHash)
            #expect(!second.lines.isEmpty)
        }
    }

    @Test func `the peer with the wanted piece dies, and comes back`() {
        let scenario = quiet { $0.script = [ScriptedTransfer(at: .seconds(6), .crash(0, .seconds(20)))] }
        let result = scenario.run()
        #expect(result.violations.isEmpty)
        #expect(isWhole(result, scenario))
        #expect(result.tally.deaths == 1)
        // Its time away is seen: nobody had all before it died.
        #expect(result.doneAt[1...4].allSatisfy { $0.map { $0 > Instant(nanoseconds: 26_000_000_000) } ?? false })
    }

    @Test func `trackers fall silent during a download, and who comes then finds the swarm afterwards`() {
        let scenario = quiet {
            $0.trackerTiers = [2]
            $0.script = [
                ScriptedTransfer(at: .seconds(4), .trackersSilent(.seconds(60))),
                ScriptedTransfer(at: .seconds(6), .join(4)),
            ]
        }
        let result = scenario.run()
        #expect(result.violations.isEmpty)
        #expect(isWhole(result, scenario))
        #expect(result.tally.trackerFailures >= 2)
        // Those who knew each other were not held up.
        #expect(result.doneAt[1...3].allSatisfy { $0.map { $0 < Instant(nanoseconds: 60_000_000_000) } ?? false })
    }

    @Test func `trackers are slow to start, and the swarm waits for them`() {
        let scenario = quiet { $0.script = [ScriptedTransfer(at: .zero, .trackersSilent(.seconds(45)))] }
        let result = scenario.run()
        #expect(result.violations.isEmpty)
        #expect(isWhole(result, scenario))
    }

    @Test func `a piece that has gone is asked for, and is had of somebody else`() {
        let scenario = quiet {
            $0.seederCount = 2
            $0.script = (0..<20).map { ScriptedTransfer(at: .milliseconds(2_500), .pieceLost(1, piece: 2 * $0)) }
        }
        let result = scenario.run(recordsTrace: true)
        #expect(result.violations.isEmpty)
        // Nobody has told its owner of those that nobody asked for.
        #expect(isWhole(result, scenario, but: [1]))
        #expect(result.tally.lostPieces == 20)
        #expect(result.lines.contains { $0.text.hasPrefix("peer 1 finds that piece") })
        #expect(result.tally.again.rejected > 0)
    }

    @Test func `a full disk makes nobody wait but its peer, which finishes when there is room`() {
        let scenario = quiet { $0.script = [ScriptedTransfer(at: .seconds(3), .diskFails(2, .full, .seconds(40)))] }
        let result = scenario.run()
        #expect(result.violations.isEmpty)
        #expect(isWhole(result, scenario))
        #expect(result.tally.diskTroubles >= 1 && result.tally.failedWrites >= 2)
        #expect(result.doneAt[2].map { $0 > Instant(nanoseconds: 43_000_000_000) } ?? false)
    }

    @Test func `who sends corrupt bytes is found and banned, and nobody else`() {
        let scenario = quiet { $0.liars = [.poisoner, .slyPoisoner] }
        let result = scenario.run()
        #expect(result.violations.isEmpty)
        #expect(isWhole(result, scenario))
        #expect(result.tally.wrongPieces > 0 && result.tally.bans > 0)
    }

    @Test func `a restart goes on with the pieces that are verified, and loses no other`() {
        let scenario = quiet {
            $0.leecherCount = 1
            $0.script = [ScriptedTransfer(at: .seconds(6), .crash(1, .seconds(3)))]
        }
        let result = scenario.run()
        #expect(result.violations.isEmpty)
        #expect(isWhole(result, scenario))
        // Each piece came onto the disk once; what was in memory when it died came again.
        #expect(result.tally.pieces == 40)
        #expect(result.tally.blocks >= 80 && result.tally.blocks < 120)
    }

    @Test func `whoever mistreats a swarm does not keep it from its end`() {
        for kind in LiarKind.allCases {
            let scenario = quiet { $0.liars = [kind, kind, kind] }
            let result = scenario.run()
            #expect(result.violations.isEmpty, "\(kind): \(result.violations)")
            #expect(isWhole(result, scenario), "\(kind)")
        }
    }

    @Test(arguments: [2, 30, 200]) func `swarms of many sizes come to their end`(count: Int) {
        let scenario = quiet {
            $0.leecherCount = count - 1
            $0.pieceCount = 20
            $0.maxLineRate = 2_000_000
            $0.maxLinks = 30
        }
        let result = scenario.run()
        #expect(result.violations.isEmpty)
        #expect(isWhole(result, scenario))
    }

    // MARK: - Beside a cluster

    /// Each tracker dies in turn, so that the master does, too; and after each death a leecher comes.
    @Test(arguments: Profile.clusters)
    func `trackers of a cluster die during a download, and who comes then finds the swarm`(_ profile: Profile) throws {
        var transfers = TransferOptions()
        transfers.coreLength = .seconds(90)
        transfers.leecherCount = 5
        (transfers.minLineRate, transfers.maxLineRate) = (100_000, 200_000)
        transfers.script = [3, 4, 5].enumerated().map { index, peer in
            ScriptedTransfer(at: .seconds(20 + 20 * Int64(index)) + .milliseconds(500), .join(peer))
        }
        var options = ScenarioOptions()
        options.coreLength = .seconds(200)
        options.clientCount = 2
        options.scraperCount = 0
        options.interval = 100
        options.script = (0..<3).map { ScriptedEvent(at: .seconds(20 + 20 * Int64($0)), .crash($0, .seconds(12))) }
        options.transfers = transfers
        var scenario = Scenario(seed: 5, profile: profile, nodes: 3, seconds: 200)
        scenario.options = options
        let result = scenario.run(recordsTrace: true)
        #expect(result.violations.isEmpty, "\(result.violations)")
        let swarm = try #require(result.transfers)
        #expect(swarm.pieceCounts.allSatisfy { $0 == transfers.pieceCount })
        #expect(result.tally.deaths == 3 && swarm.tally.completions == 5)
        #expect(scenario.run().traceHash == result.traceHash)
    }
}

@Suite("Sweeps of swarms", .computes)
struct TransferSweepTests {
    @Test(arguments: 0..<Sweep.parts)
    func `no seed breaks a promise`(_ part: Int) {
        let each = 3_000 / Sweep.parts
        for seed in UInt64(part * each)..<UInt64((part + 1) * each) {
            let result = TransferScenario(seed: 500_000 + seed).run()
            #expect(result.violations.isEmpty, "swarm \(result.seed): \(result.violations.map(\.description))")
        }
    }

    /// `trackersAreSpared`: a tracker that fails while it is told of the end has failed, also for a session that has
    /// gone on since.
    @Test func `a tracker that has not taken a farewell is not asked again at once`() {
        let result = TransferScenario(seed: 500_410).run()
        #expect(result.violations.isEmpty, "\(result.violations.map(\.description))")
    }

    /// Rule 28, `trackersAreTold`: a tracker that answered late that its peer has completed was once not told that the
    /// peer has stopped.
    @Test(arguments: [8, 500_001, 500_009] as [UInt64])
    func `whoever has been told that a peer has completed is told that it has stopped`(_ seed: UInt64) {
        #expect(TransferScenario(seed: seed).run().violations.isEmpty)
    }

    /// Rule 28, too: who has no connection announces after a minute, and once did after two.
    @Test(arguments: [16, 500_000, 500_005] as [UInt64])
    func `who is alone looks for others after a minute`(_ seed: UInt64) {
        #expect(TransferScenario(seed: seed).run().violations.isEmpty)
    }

    /// Rule 31, `trackersAreSpared`: what was lost after the download and had again was once told as another download.
    @Test(arguments: [26, 500_001, 500_011] as [UInt64])
    func `a download is told of once`(_ seed: UInt64) {
        #expect(TransferScenario(seed: seed).run().violations.isEmpty)
    }

    /// Rule 33, `extensionsAreKept`: whoever refused the metadata, and was alone, was once asked again at once.
    @Test(arguments: [2_018, 2_096, 500_064] as [UInt64])
    func `who refuses the metadata is left alone for a while`(_ seed: UInt64) {
        #expect(TransferScenario(seed: seed).run().violations.isEmpty)
    }

    /// Rule 28, `nothingWaits`: who has only what others were asked for before the endgame is asked, too, when it
    /// begins.
    @Test(arguments: [189, 500_157] as [UInt64])
    func `in the endgame nobody is forgotten`(_ seed: UInt64) {
        #expect(TransferScenario(seed: seed).run().violations.isEmpty)
    }

    /// Rule 31, `backedOffAreLeftAlone`: whoever had called while it was called was once called again and again.
    @Test(arguments: [5, 21, 56, 58, 62, 75, 78, 80] as [UInt64])
    func `nobody is called with whom there is a connection`(_ seed: UInt64) {
        let result = TransferScenario(seed: seed).run()
        #expect(result.violations.isEmpty, "\(result.violations.map(\.description))")
    }

    /// Rule 31, `backedOffAreLeftAlone`: a call that comes to nothing while its peer, which has called meanwhile, has
    /// not said yet where it listens is no failure in a row with the next.
    ///
    /// The checker once took it for one in these.
    @Test(arguments: [78, 182, 1_014, 1_036, 1_077, 500_431, 500_767, 501_058, 501_292] as [UInt64])
    func `whoever answers begins anew, though a second call to it failed`(_ seed: UInt64) {
        #expect(TransferScenario(seed: seed).run().violations.isEmpty)
    }

    /// Rules 27 to 33: mistakes of the session that its first judge did not see; docs/simulation.md tells of each.
    @Test(
        arguments: [
            5, 64, 155, 175, 189, 218, 352, 360, 450, 545, 662, 709, 789, 877, 979, 1_100, 1_182, 1_303, 1_882, 2_446,
            10_339, 11_131, 12_175, 13_387, 502_658, 502_817,
        ] as [UInt64])
    func `what was lost, given up or ended is made good at once`(_ seed: UInt64) {
        let result = TransferScenario(seed: seed).run()
        #expect(result.violations.isEmpty, "\(result.violations.map(\.description))")
    }

    /// Rules 27 and 33, `keptIsNotAskedAgain` and `answersWereAsked`: a piece that was lost is no more allowed to
    /// whoever is choked, and a loss that nobody noticed is found with the metadata.
    ///
    /// The checkers once did not know.
    @Test(arguments: [10_860, 12_063, 500_869] as [UInt64])
    func `what was lost begins anew`(_ seed: UInt64) {
        #expect(TransferScenario(seed: seed).run().violations.isEmpty)
    }

    /// Rule 28, `leechersFinish`: whoever had the metadata of another once gave it to nobody.
    @Test(arguments: [150, 242, 394] as [UInt64])
    func `the metadata is had of those that had it of others`(_ seed: UInt64) {
        #expect(TransferScenario(seed: seed).run().violations.isEmpty)
    }

    /// Rule 28, too: nobody is waited for that meets nobody with extensions.
    @Test(arguments: [(6, 0), (2, 93)])
    func `leechers that begin with magnet links have the metadata of each other`(_ count: Int, _ old: Int) {
        var lonely = 0
        for seed: UInt64 in 1...40 {
            var options = TransferOptions()
            (options.leecherCount, options.magnetPercent, options.withoutFastPercent) = (count, 100, old)
            options.coreLength = .seconds(40)
            let scenario = TransferScenario(seed: seed, options: options)
            let result = scenario.run()
            #expect(result.violations.isEmpty, "swarm \(seed): \(result.violations.map(\.description))")
            if !isWhole(result, scenario) { lonely += 1 }
        }
        // Who meets nobody with extensions cannot know what the pieces are, and is not waited for.
        #expect(old == 0 ? lonely == 0 : (1...20).contains(lonely))
    }

    /// A sweep that does not reach what goes wrong proves nothing.
    @Test func `all kinds of trouble come, and all reasons to ask again`() {
        var tally = TransferTally()
        for seed: UInt64 in 1...600 { tally += TransferScenario(seed: seed).run().tally }
        #expect(tally.faults.allSatisfy { $0 > 100 })
        #expect(tally.bans > 100 && tally.breaches > 100 && tally.ratiosReached > 50 && tally.deaths > 200)
        #expect(tally.webPieces > 500 && tally.wrongPieces > 500 && tally.failedWrites > 300)
        #expect(tally.again.rejected > 500 && tally.again.choked > 50 && tally.again.timedOut > 50)
        #expect(tally.again.lost > 500 && tally.again.endgame > 1_000)
        #expect(tally.metadata > 300)
    }

    /// Fifty peers and five hundred pieces: what the simulator is to do in a second.
    @Test func `a swarm of fifty peers and five hundred pieces comes to its end`() {
        var options = TransferOptions()
        options.leecherCount = 49
        (options.pieceCount, options.lastPieceByteCount) = (500, 32_768)
        (options.minLineRate, options.maxLineRate) = (2_000_000, 8_000_000)
        let result = TransferScenario(seed: 1, options: options).run()
        #expect(result.violations.isEmpty)
        #expect(result.tally.pieces == 49 * 500 && result.tally.blocks == 49_000)
    }
}
