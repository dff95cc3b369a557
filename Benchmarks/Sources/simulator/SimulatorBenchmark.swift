// How fast clusters are simulated.

import Glibc
import Simulator
import TrackerLogic

/// How fast clusters are simulated: whole runs with their faults, their clients and all of their checkers, on one
/// processor.
///
///     simulator [SEEDS [ROUNDS [NODES [SECONDS]]]]
///
/// Runs the seeds 1…SEEDS of each profile, in ROUNDS rounds in which the profiles take turns, and prints the medians.
/// Counted is the processor time of the one thread, so that others on the machine disturb it little.
@main
struct SimulatorBenchmark {
    static func main() {
        guard let plan = Plan(CommandLine.arguments.dropFirst()) else {
            print(
                "usage: simulator [SEEDS [ROUNDS [NODES [SECONDS]]]], whole numbers above 0, and three nodes at least")
            exit(64)
        }
        print(
            "\(plan.nodes) trackers, \(plan.seconds) simulated seconds with faults and \(plan.quietSeconds) without; "
                + "seeds 1…\(plan.seeds), median (least…most) of \(plan.rounds) rounds, on one processor\n")
        print(Row.header)
        // What the first run pays for everybody, such as the tables of types.
        for profile in Profile.allCases { _ = plan.run(profile, seeds: 1) }
        var rounds: [[Round]] = Profile.allCases.map { _ in [] }
        for _ in 0..<plan.rounds {
            for (place, profile) in Profile.allCases.enumerated() {
                rounds[place].append(plan.run(profile, seeds: plan.seeds))
            }
        }
        for (place, profile) in Profile.allCases.enumerated() {
            print(Row.text(profile.rawValue, rounds[place], seeds: plan.seeds))
        }
    }
}

/// What is asked for.
struct Plan {
    var seeds = 50
    var rounds = 5
    var nodes = 5
    /// With faults.
    var seconds = 60

    /// Of every scenario: until all is repaired, and until everybody must have been answered.
    let quietSeconds = 28

    init?(_ arguments: ArraySlice<String>) {
        guard arguments.count <= 4 else { return nil }
        var numbers: [Int] = []
        for argument in arguments {
            guard let number = Int(argument), number > 0 else { return nil }
            numbers.append(number)
        }
        if numbers.count > 0 { seeds = numbers[0] }
        if numbers.count > 1 { rounds = numbers[1] }
        if numbers.count > 2 { nodes = numbers[2] }
        if numbers.count > 3 { seconds = numbers[3] }
        guard nodes >= 3 else { return nil }
    }

    func run(_ profile: Profile, seeds: Int) -> Round {
        var round = Round()
        let began = Self.processorSeconds
        for seed in 1...UInt64(seeds) {
            let result = Scenario(seed: seed, profile: profile, nodes: nodes, seconds: Int64(seconds)).run()
            round.events += result.events
            round.simulatedSeconds += Int(result.simulatedSeconds)
            if !result.violations.isEmpty { round.failures += 1 }
            // FNV-1a over the words.
            round.hash = (round.hash ^ result.traceHash) &* 0x100_0000_01B3
        }
        round.seconds = Self.processorSeconds - began
        return round
    }

    /// What this thread has used of a processor.
    private static var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// All seeds of one profile, once.
struct Round {
    /// Of a processor.
    var seconds = 0.0
    var events = 0
    var simulatedSeconds = 0
    /// Scenarios that ended early, at a broken promise.
    var failures = 0
    /// Of all traces: the same in every round, or the simulator is not deterministic.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
}

enum Row {
    static let header = line([
        "profile", "scenarios/s", "events/s", "simulated s/s", "events each", "failed", "trace hash",
    ])

    static func text(_ profile: String, _ rounds: [Round], seeds: Int) -> String {
        let hashes = Set(rounds.map(\.hash))
        return line([
            profile,
            spread(rounds.map { Double(seeds) / $0.seconds }),
            grouped(median(rounds.map { Double($0.events) / $0.seconds })),
            grouped(median(rounds.map { Double($0.simulatedSeconds) / $0.seconds })),
            grouped(Double(rounds[0].events) / Double(seeds)),
            "\(rounds[0].failures)",
            hashes.count == 1 ? text(hash: rounds[0].hash) : "DIFFERS",
        ])
    }

    private static func text(hash: UInt64) -> String {
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    private static let widths = [10, 18, 12, 15, 13, 8, 18]

    private static func line(_ cells: [String]) -> String {
        var line = ""
        for (place, cell) in cells.enumerated() {
            let padding = String(repeating: " ", count: max(0, widths[place] - cell.count))
            line += place == 0 ? cell + padding : padding + cell
        }
        return line
    }

    private static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    private static func spread(_ values: [Double]) -> String {
        "\(grouped(median(values))) (\(grouped(values.min() ?? 0))…\(grouped(values.max() ?? 0)))"
    }

    /// Whole, with a comma at the thousands.
    private static func grouped(_ value: Double) -> String {
        var text = ""
        for (place, digit) in String(Int(value.rounded())).reversed().enumerated() {
            if place > 0, place % 3 == 0 { text = "," + text }
            text = String(digit) + text
        }
        return text
    }
}
