// Which mutants the runs of a ground reach.

import Foundation
import MutationTable

/// Which mutants the runs of a ground reach, and in which of them they would have gone another way.
enum Tracing {
    /// Seeds that are kept of a mutant.
    private static let keptSeeds = 24

    static func run(_ ground: Ground, from: UInt64, count: UInt64) {
        var seeds: [[UInt64]] = Array(repeating: [], count: Int(mutation_point_limit) * 3)
        var counts = Array(repeating: 0, count: seeds.count)
        for seed in from..<from + count {
            let began = clock()
            mutation_trace_all()
            let outcome = ground.run(seed)
            let milliseconds = (clock() - began) / 1000
            say(
                "run \(seed) \(String(outcome.hash, radix: 16)) \(milliseconds)"
                    + (outcome.broken.map { " broken \($0)" } ?? ""))
            for point in 0..<UInt32(mutation_point_limit) {
                let noted = mutation_noted(point)
                guard noted != 0 else { continue }
                for bit in 0..<3 where noted >> bit & 1 == 1 {
                    let place = Int(point) * 3 + bit
                    counts[place] += 1
                    if seeds[place].count < keptSeeds { seeds[place].append(seed) }
                }
            }
        }
        for place in seeds.indices where counts[place] > 0 {
            // Bit 0 says that the point was reached at all.
            let name = place % 3 == 0 ? "reached \(place / 3)" : "seen \(place / 3) \(place % 3 - 1)"
            say("\(name) \(counts[place]) " + seeds[place].map { "\($0)" }.joined(separator: " "))
        }
    }
}
