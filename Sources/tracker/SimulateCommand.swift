// `tracker simulate`.

import ArgumentParser
import Foundation
import Simulator

/// `tracker simulate`.
struct SimulateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Put simulated trackers, or peers, through loss, crashes, partitions and more.",
        discussion: """
            Each seed is one cluster, or a tracker alone, with its clients, its faults and its checkers, and always \
            the same one. It runs the logic of `tracker serve`, without sockets and with time of its own, on all \
            processors. One scenario in 50 is run twice and compared.

            With --swarm each seed is a swarm of peers: the logic of `tracker get` and `tracker seed`, with liars, \
            full disks and dead trackers.

            `tracker replay SEED` shows a failure step by step, and makes it smaller.

            With --census it is counted what happened: each message, refusal, change of part, failed write, and fault \
            in each state, by profile. What never happened comes first: about that the sweep says nothing.

            Ends with 0 when no promise was broken, with 1 when one was.

            JSON: scenarios, failures (seed, invariant), simulated_seconds, wall_seconds, events, trace_hash: of all \
            scenarios in the order of their seeds, the same on any number of processors; census: by profile, group and \
            name, with zeros.
            """)

    @Option(help: ArgumentHelp("One scenario.", valueName: "number"))
    var seed: UInt64?

    @Option(help: ArgumentHelp("Scenarios from one seed to another, both included.", valueName: "a..b"))
    var seeds: String?

    @Option(help: ArgumentHelp("So many scenarios, of the seeds from 1 on.", valueName: "number"))
    var count: Int?

    @Flag(help: "Tell how often each kind of thing happened, zeros first.")
    var census = false

    @OptionGroup var options: SimulationOptions

    @OptionGroup var report: ReportOptions

    /// Failures that are told at length; the others by seed only.
    private static let failuresToldInFull = 10

    func validate() throws {
        if options.swarm { try options.refuse([("--census", census)]) }
        let given = [seed != nil, seeds != nil, count != nil].count { $0 }
        guard given == 1 else {
            throw ValidationError(
                given == 0
                    ? "which scenarios? Write --count 1000, --seeds 1..1000 or --seed 17"
                    : "--seed, --seeds and --count exclude each other: write one of them")
        }
        do {
            _ = try range()
        } catch {
            throw ValidationError("\(error)")
        }
    }

    private func range() throws(SeedRangeError) -> SeedRange {
        if let seed { return SeedRange(seed: seed) }
        if let seeds { return try SeedRange(seeds) }
        return try SeedRange(count: count ?? 0)
    }

    func run() async throws {
        let range = try range()
        let (options, takesCensus, isShown) = (self.options, census, !report.isJSON)
        let began = ContinuousClock.now
        let tally = await onThread {
            var bar = ProgressBar("simulating", isShown: isShown)
            return SimulationSweep(range) { options.outcome(seed: $0, takesCensus: takesCensus) }.run { tally in
                bar.update(
                    Double(tally.scenarios) / Double(range.count),
                    note: "\(Figures.grouped(tally.scenarios)) scenarios, "
                        + Figures.counted(tally.failures.count, "failure"))
            }
        }
        let wall = (ContinuousClock.now - began) / .seconds(1)
        if report.isJSON {
            var told = SweepReport(tally, wallSeconds: (wall * 1000).rounded() / 1000)
            if census { told.census = tally.census }
            try report.writeJSON(told)
        } else {
            tell(tally, wall)
        }
        if !tally.failures.isEmpty { throw Failure(.failed, nil) }
    }

    private func tell(_ tally: SweepTally, _ wall: Double) {
        if census { Terminal.output.write(tally.census.text()) }
        for failure in tally.failures.prefix(Self.failuresToldInFull) {
            Terminal.output.write(text(failure) + "\n")
        }
        let rest = tally.failures.dropFirst(Self.failuresToldInFull)
        if !rest.isEmpty {
            Terminal.output.write("More failures:\n")
            for failure in rest {
                Terminal.output.write(
                    "  \(failure.invariant ?? ""): \(options.command(seed: failure.seed))\n")
            }
        }
        if tally.failures.count > 1 {
            var table = TextTable(.left, .right)
            for (invariant, count) in tally.failuresByInvariant { table.add(invariant, Figures.grouped(count)) }
            Terminal.output.write("\n" + table.text() + "\n")
        }
        let verdict =
            tally.failures.isEmpty
            ? Terminal.output.styled("no promise broken", .green)
            : Terminal.output.styled(Figures.counted(tally.failures.count, "failure"), .bold, .red)
        let pace = Figures.grouped(Int(Double(tally.scenarios) / max(wall, 0.001)))
        Terminal.output.write(
            """
            \(Figures.counted(tally.scenarios, "scenario")): \(verdict)
            \(Figures.span(seconds: Int(tally.simulatedSeconds))) simulated in \(Figures.decimal(wall, 1)) s \
            (\(pace) scenarios a second), \(Figures.grouped(tally.events)) events
            trace hash \(SweepReport.text(hash: tally.traceHash))

            """)
    }

    /// A failure at length: its scenario runs once more, with its trace.
    private func text(_ failure: SweepOutcome) -> String {
        let (seed, command) = (failure.seed, options.command(seed: failure.seed))
        if failure.invariant == SweepOutcome.isNotReproducible {
            return """
                seed \(seed): two runs of this seed differ, so something in them does not come from the seed
                  options:         \(options.summary(seed: seed))
                  replay:          \(command)

                """
        }
        if options.swarm { return SwarmRun(seed: seed).failure(SwarmRun(seed: seed).scenario.run()) }
        let run = options.run(seed: seed)
        return run.scenario.run(recordsTrace: true).failure(of: run)
    }
}

/// The keys are part of the command's interface.
extension SweepReport: Encodable {
    private enum CodingKeys: String, CodingKey {
        case scenarios
        case failures
        case simulatedSeconds = "simulated_seconds"
        case wallSeconds = "wall_seconds"
        case events
        case traceHash = "trace_hash"
        case census
    }

    /// Writes the report of a sweep as one JSON object with keys in snake case.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(scenarios, forKey: .scenarios)
        try container.encode(failures, forKey: .failures)
        try container.encode(simulatedSeconds, forKey: .simulatedSeconds)
        try container.encode(wallSeconds, forKey: .wallSeconds)
        try container.encode(events, forKey: .events)
        try container.encode(traceHash, forKey: .traceHash)
        try container.encodeIfPresent(census, forKey: .census)
    }
}

extension SweepReport.Failure: Encodable {
    private enum CodingKeys: String, CodingKey {
        case seed
        case invariant
    }

    /// Writes seed and invariant of a scenario that failed.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(seed, forKey: .seed)
        try container.encode(invariant, forKey: .invariant)
    }
}
