// A sweep meets all that it is there for, or it is known why not.

import Foundation
import Simulator
import Testing

@Suite("Census", .computes)
struct CensusTests {
    /// What never happens in a simulated world, by group, and why; a name stands for all that end like it.
    private static let never: [(group: Census.Group, names: [String], why: String)] = [
        (.said, ["ORDER", "ORDERED"], "whoever is at a console asks the master itself"),
        (.heard, ["ORDER", "ORDERED"], "as they are never said"),
        (.events, ["is commanded to empty the swarms"], "only a stop empties swarms"),
        (.observed, ["has diverged"], "it would take a mistake of the logic, or damage that nobody has noticed"),
        (.joinsRefused, ["there are as many trackers as there may be"], "worlds have seven trackers at most"),
        (.clientsRefused, ["busy"], "worlds do not come near this bound"),
        (.clientsRefused, ["malformedAnnounce", "malformedScrape"], "no stranger sends a request that is cut short"),
        (.clientsRefused, ["notServing"], "over UDP, who does not serve is silent"),
        (
            .visitorsRefused,
            ["connectionIDExpired", "malformedAnnounce", "malformedScrape", "unknownAction", "scrapeNeedsPasskey"],
            "there is no such thing over HTTP"
        ),
        (.blows, [", down"], "who is down is not hit"),
        (
            .injections,
            [
                "pause when half-way through a step", "loss of the bus when half-way through a step",
                "full disk when half-way through a step",
            ],
            "there it is always death"
        ),
        (
            .turns,
            [
                "from down to a master", "from down to a master that does not serve yet",
                "from down to a master that makes way", "from a newcomer to a master that makes way",
                "from a newcomer to a master that does not serve yet", "from a slave to a master",
                "from a slave to a master that does not serve yet", "from a slave to a master that makes way",
                "from a slave that does not serve to a master",
                "from a slave that does not serve to a master that does not serve yet",
                "from a slave that does not serve to a master that makes way", "from not whole to a master",
                "from not whole to a master that does not serve yet", "from not whole to a master that makes way",
                "from without its bus to a master", "from without its bus to a master that does not serve yet",
                "from without its bus to a master that makes way",
            ],
            "who leads has stood"
        ),
        (
            .turns,
            [
                "from down to a slave", "from down to a slave that does not serve", "from without its bus to a slave",
                "from without its bus to a slave that does not serve",
            ],
            "who is back is a newcomer until it has been welcomed"
        ),
    ]

    private static let rareFile = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "census-rare.txt")

    /// So seldom or less is rare: a change of the streams may leave it out.
    private static let rarity = 12

    private func isNever(_ row: Census.Row) -> Bool {
        CensusTests.never.contains { never in
            never.group == row.group
                && never.names.contains { $0.hasPrefix(",") ? row.name.hasSuffix($0) : row.name == $0 }
        }
    }

    /// Some seeds of each profile, on plain ground and under each stress.
    private static func sweep() -> CensusByProfile {
        var census = CensusByProfile()
        for stress in [nil] + Stress.allCases.map(Optional.some) {
            let count: UInt64 = stress == nil ? 80 : stress == .deaths || stress == .hours ? 6 : 24
            for profile in Profile.allCases {
                for seed in 0..<count {
                    let result = Run(seed: seed, profile: profile, stress: stress).scenario.run(takesCensus: true)
                    if let counted = result.census { census.add(counted, profile) }
                }
            }
        }
        return census
    }

    /// What is rare is in a file, which REWRITE=1 writes anew: what stands there with 0 is a hole of the worlds.
    @Test
    func `all that must occur does`() throws {
        let rows = CensusTests.sweep().all.rows
        if Sweep.isRewriting {
            let rare = rows.filter { $0.count < CensusTests.rarity && !isNever($0) }
            let lines = rare.map { "\($0.group.title): \($0.name): \($0.count)" }
            try
                ("# Rare in the sweep of CensusTests, and how often it happened there.\n"
                + lines.joined(separator: "\n")
                + "\n").write(to: CensusTests.rareFile, atomically: true, encoding: .utf8)
        }
        let rare = try String(contentsOf: CensusTests.rareFile, encoding: .utf8).split(separator: "\n")
        for row in rows {
            if isNever(row) {
                #expect(row.count == 0, "\(row.group.title): \(row.name) never happens, it is said, and does")
            } else if row.count == 0 {
                let isRare = rare.contains { $0.hasPrefix("\(row.group.title): \(row.name): ") }
                #expect(isRare, "\(row.group.title): \(row.name) does not happen any more")
            }
        }
    }

    @Test
    func `each name is one of its group, and is there once`() {
        for group in Census.Group.allCases {
            #expect(Set(group.names).count == group.names.count, "\(group.title)")
            #expect(!group.names.isEmpty)
        }
        for never in CensusTests.never {
            for name in never.names where !name.hasPrefix(",") {
                #expect(never.group.names.contains(name), "\(never.group.title): \(name)")
            }
        }
    }

    @Test
    func `to count changes nothing, and counts of one seed are the same each time`() {
        for profile in Profile.allCases {
            let scenario = Scenario(seed: 5, profile: profile)
            let (counted, again, plain) = (
                scenario.run(takesCensus: true), scenario.run(takesCensus: true), scenario.run()
            )
            #expect(counted.traceHash == plain.traceHash)
            #expect(plain.census == nil)
            #expect(counted.census != nil && counted.census == again.census)
        }
    }

    /// What is counted is what the tally has counted all along.
    @Test
    func `the counts are those of what happened`() throws {
        let result = Run(seed: 3, profile: .paxos, stress: .disks).scenario.run(takesCensus: true)
        let census = try #require(result.census)
        #expect(census.count(.observed, "becomes master") == result.tally.masters)
        #expect(census.count(.observed, "steps down") == result.tally.stepDowns)
        let failed = census.rows.filter { $0.group == .writesFailed }.reduce(0) { $0 + $1.count }
        #expect(failed == result.tally.writesFailed)
        #expect(failed > 0)
    }

    @Test
    func `a sweep adds up by profile, in any order`() {
        let outcomes = (0..<4).map { seed -> SweepOutcome in
            let result = Scenario(seed: UInt64(seed), profile: seed < 3 ? .paxos : .alone).run(takesCensus: true)
            var outcome = SweepOutcome(
                seed: UInt64(seed), traceHash: result.traceHash, events: result.events,
                simulatedSeconds: result.simulatedSeconds)
            (outcome.census, outcome.profile) = (result.census, result.profile)
            return outcome
        }
        var (straight, backwards) = (SweepTally(), SweepTally())
        for place in outcomes.indices { straight.add(outcomes[place], at: UInt64(place)) }
        for place in outcomes.indices.reversed() { backwards.add(outcomes[place], at: UInt64(place)) }
        #expect(straight.census == backwards.census)
        #expect(straight.census.profiles == [.paxos, .alone])
        #expect(straight.census.scenarioCount(.paxos) == 3)
        let lines = straight.census.lines(.heard)
        let sums = lines.map { $0.counts.reduce(0, +) }
        #expect(sums == sums.sorted() && sums.last! > 0)
    }
}
