// Where each mistake that is planted into peers is looked for.

import Dispatch
import PeerLogic
import Primitives
import Simulator
import Synchronization

/// A mistake of peers, who is to find it, and in which swarms it is looked for.
struct PeerPlant: Sendable {
    /// Seeds from each of three starting points, at most.
    static let budget = 1_000
    private static let starts: [UInt64] = [1, 1_000_001, 2_000_001]

    var bug: PlantedPeerBug
    /// What it may break; other alarms count for nothing.
    var checkers: [Invariant]

    /// All of them: whatever the rule that it breaks is checked by may find it, and what it leads to.
    static let all = PlantedPeerBug.allCases.map { bug in
        let rule = Rule.allCases.first { $0.plantedPeerBugs.contains(bug) }
        return PeerPlant(bug: bug, checkers: (rule?.invariants ?? []) + consequences(of: bug))
    }

    /// What is forgotten to be free is found when it is asked for again, before its leecher has waited for long.
    private static func consequences(of bug: PlantedPeerBug) -> [Invariant] {
        switch bug {
        case .lossOfLinkForgotten, .rejectIgnored: [.blocksAreAskedOnce]
        default: []
        }
    }

    func scenario(_ seed: UInt64, isPlanted: Bool) -> TransferScenario {
        var scenario = TransferScenario(seed: seed)
        if isPlanted { scenario.options.plantedBug = bug }
        return scenario
    }

    /// Seeds until it is found, and by whom; nil where it is not.
    ///
    /// A seed that alarms without the mistake proves nothing.
    private func find(from: UInt64) -> (seeds: Int, checker: Invariant)? {
        for seed in from..<from + UInt64(PeerPlant.budget) {
            guard let violation = scenario(seed, isPlanted: true).run().violations.first,
                checkers.contains(violation.invariant), scenario(seed, isPlanted: false).run().violations.isEmpty
            else { continue }
            return (Int(seed - from) + 1, violation.invariant)
        }
        return nil
    }

    /// Looks for all, and prints a table.
    ///
    /// - Returns: whether each was found from each starting point.
    static func run() -> Bool {
        let rows = Mutex(Array(repeating: "", count: all.count))
        let missed = Mutex([String]())
        DispatchQueue.concurrentPerform(iterations: all.count) { place in
            let plant = all[place]
            let finds = starts.map { plant.find(from: $0) }
            if finds.contains(where: { $0 == nil }) { missed.withLock { $0.append(plant.bug.rawValue) } }
            let counts = finds.map { $0?.seeds ?? Int.max }.sorted()
            var names: [String] = []
            for name in finds.compactMap({ $0?.checker.rawValue }).sorted() where !names.contains(name) {
                names.append(name)
            }
            let texts = [counts[1], counts[0], counts[2]].map { $0 == .max ? "not found" : "\($0)" }
            let row = [plant.bug.rawValue, names.joined(separator: ", ")] + texts + ["\(budget)"]
            rows.withLock { $0[place] = "| " + row.joined(separator: " | ") + " |" }
        }
        print("| mistake of peers | found by | seeds until found: median | least | most | budget |")
        print("| --- | --- | --- | --- | --- | --- |")
        for row in rows.withLock({ $0 }) { print(row) }
        let names = missed.withLock { $0 }.sorted()
        print("\(all.count - names.count) of \(all.count) mistakes of peers found")
        for name in names { print("not found: \(name)") }
        return names.isEmpty
    }
}
