// The options that `tracker simulate` and `tracker replay` share.

import ArgumentParser
import Simulator

/// The options that `tracker simulate` and `tracker replay` share.
struct SimulationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How trackers elect and vote: classic, rotating, lowest or paxos, or alone, for one tracker without a bus; "
                + "the seed says if not given.",
            valueName: "name"))
    var profile: String?

    @Option(
        help: ArgumentHelp(
            "Harsher than any seed draws: slow, stray or lossy, by what becomes of messages between trackers.",
            valueName: "name"))
    var ground: String?

    @Option(help: ArgumentHelp("Trackers, 1 to 30; drawn from the seed if not given.", valueName: "number"))
    var nodes: Int?

    @Option(
        help: ArgumentHelp(
            "Simulated seconds of faults, 1 to 3600; drawn from the seed if not given. A healed phase follows.",
            valueName: "number"))
    var seconds: Int?

    func validate() throws {
        if let profile, !Run.profileNames.contains(profile) {
            let names = Run.profileNames.joined(separator: ", ")
            throw ValidationError("there is no profile \"\(profile)\"; the profiles are \(names)")
        }
        if let ground, !Run.groundNames.contains(ground) {
            let names = Run.groundNames.joined(separator: ", ")
            throw ValidationError("there is no ground \"\(ground)\"; the grounds are \(names)")
        }
        if profile == Profile.alone.rawValue, let nodes, nodes != 1 {
            throw ValidationError(
                "--nodes \(nodes): profile alone is one tracker; leave --nodes out, or name another profile")
        }
        try check(nodes, "--nodes", within: Run.nodeRange, "a simulated cluster", "trackers")
        try check(seconds, "--seconds", within: Run.secondsRange, "a simulated cluster", "seconds of faults")
    }

    func run(seed: UInt64) -> Run {
        Run(seed: seed, profileName: profile, groundName: ground, nodes: nodes, seconds: seconds)
    }
}

/// Refuses a number that is out of its range, and says what the range is.
func check(_ value: Int?, _ flag: String, within range: ClosedRange<Int>, _ what: String, _ noun: String) throws {
    guard let value, !range.contains(value) else { return }
    throw ValidationError(
        "\(flag) \(value): \(what) has \(range.lowerBound) to \(range.upperBound) \(noun); write a number between them")
}
