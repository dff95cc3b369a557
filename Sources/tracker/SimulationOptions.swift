// The options that `tracker simulate` and `tracker replay` share.

import ArgumentParser
import Simulator

/// The options that `tracker simulate` and `tracker replay` share.
struct SimulationOptions: ParsableArguments {
    @Flag(help: "A swarm of peers with trackers of their own, instead of trackers.")
    var swarm = false

    @Option(
        help: ArgumentHelp(
            "How trackers elect and vote: classic, rotating, lowest or paxos, or alone, for one tracker without a bus; "
                + "the seed says if not given.",
            valueName: "name"))
    var profile: String?

    /// Of any number, so that a second one is refused, and does not silently replace the first.
    @Option(
        name: .customLong("stress"),
        help: ArgumentHelp(
            "Stress beyond what a seed draws: \(Run.stressNames.joined(separator: ", ")).",
            valueName: "name"))
    var stresses: [String] = []

    /// What `--stress` was called before; still understood.
    @Option(name: .customLong("ground"), help: .hidden)
    var formerStresses: [String] = []

    @Option(help: ArgumentHelp("Trackers, 1 to 30; drawn from the seed if not given.", valueName: "number"))
    var nodes: Int?

    @Option(
        help: ArgumentHelp(
            "Simulated seconds of faults, 1 to 3600; drawn from the seed if not given. A healed phase follows.",
            valueName: "number"))
    var seconds: Int?

    /// The stress that was asked for, by its present name.
    private var chosenStress: String? {
        let name = (stresses + formerStresses).first
        return name == "stray" ? "duplicates" : name
    }

    func validate() throws {
        if !formerStresses.isEmpty { Terminal.errors.write("note: --ground is called --stress now\n") }
        let named = stresses + formerStresses
        if named.contains("stray") {
            Terminal.errors.write("note: the stress \"stray\" is called \"duplicates\" now\n")
        }
        if named.count > 1 {
            let flags = named.map { "--stress \($0)" }.joined(separator: " ")
            throw ValidationError("\(flags): a run is under one stress; write one of them")
        }
        if swarm {
            let given = [
                ("--profile", profile != nil), ("--stress", chosenStress != nil), ("--nodes", nodes != nil),
                ("--seconds", seconds != nil),
            ]
            try refuse(given)
        }
        if let profile, !Run.profileNames.contains(profile) {
            let names = Run.profileNames.joined(separator: ", ")
            throw ValidationError("there is no profile \"\(profile)\"; the profiles are \(names)")
        }
        if let stress = chosenStress, !Run.stressNames.contains(stress) {
            let names = Run.stressNames.joined(separator: ", ")
            throw ValidationError("there is no stress \"\(stress)\"; write one of \(names)")
        }
        if profile == Profile.alone.rawValue, let nodes, nodes != 1 {
            throw ValidationError(
                "--nodes \(nodes): profile alone is one tracker; leave --nodes out, or name another profile")
        }
        try check(nodes, "--nodes", within: Run.nodeRange, "a simulated cluster", "trackers")
        try check(seconds, "--seconds", within: Run.secondsRange, "a simulated cluster", "seconds of faults")
    }

    /// The flags that name a run, of those that were given.
    var given: [String] {
        [
            ("--profile", profile != nil), ("--stress", chosenStress != nil), ("--nodes", nodes != nil),
            ("--seconds", seconds != nil),
        ].filter { $0.1 }.map { $0.0 }
    }

    /// Refuses what a swarm of peers has not, by the names of the flags that were given.
    func refuse(_ flags: [(name: String, isGiven: Bool)]) throws {
        let given = flags.filter { $0.isGiven }.map { $0.name }
        guard !given.isEmpty else { return }
        throw ValidationError(
            "--swarm is a swarm of peers, drawn from the seed, but \(given.joined(separator: ", ")) is for simulated "
                + "trackers: leave one of them out")
    }

    func run(seed: UInt64) -> Run {
        Run(seed: seed, profileName: profile, stressName: chosenStress, nodes: nodes, seconds: seconds)
    }
}

/// Refuses a number that is out of its range, and says what the range is.
func check(_ value: Int?, _ flag: String, within range: ClosedRange<Int>, _ what: String, _ noun: String) throws {
    guard let value, !range.contains(value) else { return }
    throw ValidationError(
        "\(flag) \(value): \(what) has \(range.lowerBound) to \(range.upperBound) \(noun); write a number between them")
}
