// `tracker replay`.

import ArgumentParser
import Primitives
import Settings
import Simulator

/// `tracker replay`.
struct ReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Run one simulated cluster or swarm again, and show what happens in it.",
        discussion: """
            The trace has one line a transition: seconds, one column for each tracker (role, epoch promised, last \
            entry applied, + where it has accepted one more), and what happened. Roles are M master, m master not \
            serving yet, S slave, s slave not in good standing, C candidate, N newcomer, F fenced, - down. It ends \
            with the hash that the same run always has. --from, --until, --tracker and --kind show a part of it.

            Kinds are messages, elections, votes, joins, clients, disk, faults, lives and commands.

            --at shows the state of trackers at one moment instead of the trace.

            --shrink finds fewer trackers, clients, faults, injections, shorter and weaker faults and less time that \
            still break the same promise, and shows that run instead, with the command that repeats it.

            --pcap writes pcapng with three interfaces: clients, bus, and steps (what happened, as syslog messages); \
            examples/wireshark/README.md has a dissector.

            --what-if does something to the run after one of its steps, counted from 1: 412.drop.9981 (event 9981, a \
            message or datagram under way, is lost), 412.delay.9981.1500 (comes 1500 ms later), 412.kill.2.8000 (the \
            tracker at place 2, from 0, dies for 8000 ms; 0 for good), 412.pause.2.3000, 412.cut.0-2.5000 (these are \
            cut off from the others), 412.fence.2.5000 (loses its bus), 412.disk.2.5000 (its disk is full), \
            412.wake.2, 412.hand.2.1 (its operator wants the role for id 1); 412.net (messages wait from there on), \
            412.take.9981, 412.time, 412.auto. The page Simulator makes them; steps and ids are those of exactly this \
            run. --words takes a run as its links have it.

            With --swarm it is a swarm of peers: one line a step of a peer, with a column for that peer and its \
            pieces. --from, --until, --kind and --peer show a part of it; the rest is for trackers.

            Files are what trackers have recorded of themselves (docs/recording.md): their steps are run again, those \
            of several as one story, in the same lines and pictures, and it is said whether all effects were the \
            recorded ones.

            Ends with 0 when no promise was broken, with 1 when one was, or an effect was another than the recorded one.

            JSON: command, options, seed, profile, violations (invariant, seconds, detail), reasons (where a promise \
            of the end is broken), events, steps, simulated_seconds, trace_hash, trace (lines), state (with --at), \
            what_ifs (what_if, unmet: why it came to nothing), waits (whether the player is to go on). Of a swarm: no \
            profile, reasons and state, but peers (pieces, and done: the second at which it had all).
            """)

    @Argument(
        help: ArgumentHelp(
            "The seed, as `tracker simulate` tells it; or files that trackers have recorded.", valueName: "seed|file"))
    var subjects: [String] = []

    @Option(
        help: ArgumentHelp(
            "The run in the words of a link instead, for example 'seed=17&profile=paxos'.", valueName: "words"))
    var words: String?

    @OptionGroup var options: SimulationOptions

    @Option(help: ArgumentHelp("Clients; drawn from the seed if not given.", valueName: "number"))
    var clients: Int?

    @Option(
        help: ArgumentHelp(
            "Leave out all trackers but these, from 1; they keep their ids.", valueName: "numbers"))
    var onlyTrackers: String?

    @Option(
        help: ArgumentHelp(
            "Leave out all clients and scrapers but these, from 0 (\"none\" for all of them).", valueName: "numbers"))
    var onlyClients: String?

    @Option(
        help: ArgumentHelp(
            "Carry out only these faults by the clock (\"none\" for none); 17/4 is a quarter of fault 17.",
            valueName: "numbers"))
    var faults: String?

    @Option(
        help: ArgumentHelp(
            "Carry out only these faults injected at bad moments (\"none\" for none), for example 2-okSent-1.",
            valueName: "names"))
    var injections: String?

    /// What `--injections` was called before; still understood.
    @Option(name: .customLong("strikes"), help: .hidden)
    var formerInjections: String?

    @Option(
        help: ArgumentHelp(
            "Leave out troubles: network, bus, disks, clocks, polling, latecomers, strangers, scrapers, visitors.",
            valueName: "names"))
    var without: String?

    @Option(
        name: .customLong("what-if"),
        help: ArgumentHelp("Do this after a step, for example 412.kill.2.8000; may be given again.", valueName: "words")
    )
    var whatIfs: [String] = []

    @Flag(help: "Make a failing run as small as it can be.")
    var shrink = false

    @Option(help: ArgumentHelp("Draw a space-time diagram.", valueName: "file"))
    var svg: String?

    @Option(help: ArgumentHelp("Trace and diagram begin at this second.", valueName: "number"))
    var from: Double?

    @Option(help: ArgumentHelp("Trace and diagram end at this second.", valueName: "number"))
    var until: Double?

    @Option(
        name: .customLong("tracker"),
        help: ArgumentHelp("Show only lines about this tracker; may be given again.", valueName: "number"))
    var trackers: [String] = []

    @Option(
        name: .customLong("peer"),
        help: ArgumentHelp("With --swarm: only lines of this peer; may be given again.", valueName: "number"))
    var peers: [Int] = []

    @Option(
        name: .customLong("kind"),
        help: ArgumentHelp("Show only lines of this kind; may be given again.", valueName: "name"))
    var kinds: [String] = []

    @Option(
        help: ArgumentHelp("Show the state at this second, of the trackers named or of all.", valueName: "number"))
    var at: Double?

    @Flag(help: "Draw keepalives, too.")
    var keepalives = false

    @Option(help: ArgumentHelp("Write what clients and trackers sent as a pcapng file.", valueName: "file"))
    var pcap: String?

    @Flag(help: "Do not print the trace.")
    var quiet = false

    @Flag(
        help: ArgumentHelp(
            "Of recordings: call clients by made-up names, and name nothing that people keep at consoles, so that the "
                + "story can be shown to others."))
    var anonymous = false

    @OptionGroup var report: ReportOptions

    /// The seed; nil where files are named, or nothing.
    var seed: UInt64? { subjects.count == 1 ? UInt64(subjects[0]) : nil }
    private var isOfRecordings: Bool { !subjects.isEmpty && seed == nil }

    var chosenInjections: String? { injections ?? formerInjections }

    func validate() throws {
        if formerInjections != nil { Terminal.errors.write("note: --strikes is called --injections now\n") }
        if isOfRecordings { try checkRecordings() } else { try checkWords() }
        if options.swarm { try checkSwarm() }
        if !options.swarm, !peers.isEmpty { throw ValidationError("--peer shows a peer of a swarm: add --swarm") }
        try check(clients, "--clients", within: Run.clientRange, "a simulated cluster", "clients")
        try checkNames()
        _ = try noises()
        _ = try chosenKinds()
        for (flag, seconds) in [("--from", from), ("--until", until), ("--at", at)] {
            guard let seconds, !(0...Self.maxSeconds).contains(seconds) else { continue }
            throw ValidationError("\(flag) \(seconds): a simulated world lasts 0 to \(Int(Self.maxSeconds)) seconds")
        }
        if anonymous, !isOfRecordings {
            throw ValidationError("--anonymous is for what real trackers have recorded: name a file")
        }
        if anonymous, pcap != nil {
            throw ValidationError("a capture holds what was sent, addresses and all: leave out --pcap or --anonymous")
        }
        if svg == nil, keepalives { throw ValidationError("--keepalives is for the diagram: add --svg FILE") }
        if at != nil, from != nil || until != nil || !kinds.isEmpty || shrink || svg != nil || pcap != nil {
            throw ValidationError(
                "--at shows the state of trackers at one moment: leave out --from, --until, --kind, --shrink, --svg "
                    + "and --pcap")
        }
        if let from, let until, from > until {
            throw ValidationError("--from \(from) comes after --until \(until): exchange them")
        }
    }

    /// A run is named by its seed and flags, or by words.
    private func checkWords() throws {
        if words == nil, seed == nil { throw ValidationError("no run is named; write its seed, or --words") }
        _ = try named()
        guard words != nil else { return }
        let given = [
            ("the seed", seed != nil), ("--swarm", options.swarm), ("--clients", clients != nil),
            ("--only-trackers", onlyTrackers != nil), ("--only-clients", onlyClients != nil),
            ("--faults", faults != nil), ("--injections", chosenInjections != nil), ("--without", without != nil),
        ]
        let flags = options.given + given.filter { $0.1 }.map { $0.0 }
        if flags.isEmpty { return }
        throw ValidationError("--words says it all: leave out \(flags.joined(separator: ", "))")
    }

    /// What the words and the what-ifs name.
    private func named() throws -> Run {
        do throws(WordsRefused) {
            var run = options.run(seed: seed ?? 0)
            if let words { run = try Run(words: words) }
            for text in whatIfs { run.whatIfs += try WhatIf.list(text) }
            try WhatIf.check(run.whatIfs)
            return run
        } catch {
            throw ValidationError(error.description)
        }
    }

    private func checkNames() throws {
        if let faults, Run.faults(faults) == nil {
            throw ValidationError("--faults \"\(faults)\" are no numbers of faults; write for example 3,17/4 or none")
        }
        if let injections = chosenInjections, Run.injections(injections) == nil {
            throw ValidationError(
                "--injections \"\(injections)\" are no names of injections; write for example 2-okSent-1 or none")
        }
        if let onlyTrackers, (Run.numbers(onlyTrackers) ?? []).isEmpty {
            throw ValidationError(
                "--only-trackers \"\(onlyTrackers)\" are no numbers of trackers; write for example 1,3")
        }
        if let onlyClients, Run.numbers(onlyClients, from: 0) == nil {
            throw ValidationError(
                "--only-clients \"\(onlyClients)\" are no numbers of clients; write for example 0,5 or none")
        }
    }

    private static let maxSeconds = 100_000.0

    private func noises() throws -> [Run.Noise] {
        guard let without, without != "none" else { return [] }
        return try without.split(separator: ",", omittingEmptySubsequences: false).map { name in
            guard let noise = Run.Noise(rawValue: String(name)) else {
                let names = Run.Noise.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("there is no trouble \"\(name)\" to leave out; there are \(names)")
            }
            return noise
        }
    }

    func chosenKinds() throws -> TraceKinds {
        try kinds.reduce(into: TraceKinds()) { all, name in
            guard let kind = TraceKinds(name: name) else {
                let names = TraceKinds.named.map(\.name).joined(separator: ", ")
                throw ValidationError("there is no kind \"\(name)\" of lines; the kinds are \(names)")
            }
            all.formUnion(kind)
        }
    }

    /// The places of the trackers that were named.
    func places(_ names: TrackerNames) throws(Failure) -> [Int] {
        var places: [Int] = []
        for tracker in trackers {
            guard let place = names.place(of: tracker) else {
                throw Failure(
                    .usage,
                    "there is no tracker \"\(tracker)\" in this run; there are \(names.short.joined(separator: ", "))")
            }
            places.append(place)
        }
        return places.sorted()
    }

    func run() async throws {
        if isOfRecordings { return try await replayRecordings() }
        if options.swarm { return try await replaySwarm() }
        var run = try named()
        if words == nil {
            run.clients = clients
            run.onlyTrackers = onlyTrackers.flatMap { Run.numbers($0) }
            run.onlyClients = onlyClients.flatMap { Run.numbers($0, from: 0) }
            run.faults = faults.flatMap(Run.faults)
            run.injections = chosenInjections.flatMap(Run.injections)
            run.without = try noises()
        }
        let places = try places(run.scenario.names)
        let (asked, shrinks, isShown, moment) = (run, shrink, !report.isJSON, Self.time(at))
        let (shown, result) = await onThread { () -> (Run, ScenarioResult) in
            let run = shrinks ? Self.shrunk(asked, isShown: isShown) : asked
            return (run, run.scenario.run(recordsTrace: true, recordsHistory: true, stopsAt: moment, telling: places))
        }
        let filter = TraceFilter(
            from: Self.time(from), until: Self.time(until), trackers: places, kinds: try chosenKinds())
        if report.isJSON {
            try report.writeJSON(Document(shown, result, at == nil ? filter : nil, hasTrace: !quiet))
        } else {
            tell(shown, result, filter)
        }
        if at != nil { return }
        try writeFiles(shown, result)
        if !result.violations.isEmpty { throw Failure(.failed, nil) }
    }

    /// The smallest run that breaks the same promise first; the run as it is where none is broken.
    private static func shrunk(_ run: Run, isShown: Bool) -> Run {
        let result = run.scenario.run()
        guard let violation = result.violations.first else { return run }
        var shrinker = RunShrinker(run, breaking: violation.invariant)
        var bar = ProgressBar("shrinking", isShown: isShown)
        shrinker.shrink(result) { tries, run in
            let left = (run.faults ?? []).count + (run.injections ?? []).count
            bar.update(
                Double(tries) / Double(RunShrinker.maxTries),
                note: "\(Figures.counted(tries, "run")), \(Figures.counted(left, "fault")) left")
        }
        return shrinker.run
    }

    private func tell(_ run: Run, _ result: ScenarioResult, _ filter: TraceFilter) {
        guard at == nil else { return Terminal.output.write(result.state.joined(separator: "\n") + "\n") }
        if !quiet {
            let places = filter.trackers.isEmpty ? nil : filter.trackers
            var lines = result.names.heads(columns: places)
            for line in result.lines where filter.holds(line) {
                lines.append(line.words(columns: places))
                // In pieces: a trace may have a hundred thousand lines.
                guard lines.count >= 1000 else { continue }
                Terminal.output.write(lines.joined(separator: "\n") + "\n")
                lines = []
            }
            Terminal.output.write((lines + [result.hashLine]).joined(separator: "\n") + "\n")
        }
        for unmet in result.unmetWhatIfs {
            Terminal.errors.write("note: --what-if \(unmet.whatIf) came to nothing: \(unmet.reason)\n")
        }
        if result.waitsForPlayer {
            let step = result.steps
            Terminal.errors.write(
                "note: the player is the network, and says no more: the run waits after step \(step); go on with "
                    + "\(step).take.ID, \(step).time or \(step).auto\n")
        }
        if result.violations.isEmpty {
            let what = shrink ? "no promise broken, so nothing to shrink" : "no promise broken"
            Terminal.errors.write("seed \(result.seed), profile \(result.profileName): \(what)\n")
            return
        }
        Terminal.errors.write(result.failure(of: run))
    }

    static func time(_ seconds: Double?) -> Primitives.Instant? {
        seconds.map { Primitives.Instant(nanoseconds: Int64($0 * 1e9)) }
    }

    private func writeFiles(_ run: Run, _ result: ScenarioResult) throws(Failure) {
        if let svg {
            let diagram = result.diagram(
                of: run, from: Self.time(from), until: Self.time(until), hasKeepalives: keepalives)
            try Self.write(Array(diagram.svg().utf8), to: svg)
        }
        if let pcap { try Self.write(result.capture.bytes, to: pcap) }
    }

    /// Writes a diagram or a capture; what keeps it from that is told with the file's name.
    static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
        try Failure.telling(.system) { try WrittenFile.write(bytes, to: path) }
    }

    private struct Document: Encodable {
        struct Broken: Encodable {
            var invariant: String
            var seconds: Double
            var detail: String
        }

        struct Done: Encodable {
            var whatIf: String
            var unmet: String?

            private enum CodingKeys: String, CodingKey {
                case whatIf = "what_if"
                case unmet
            }
        }

        var command: String
        var options: String
        var seed: UInt64
        var profile: String
        var violations: [Broken]
        var reasons: [String]?
        var events: Int
        var steps: Int
        var simulatedSeconds: Int64
        var traceHash: String
        var whatIfs: [Done]?
        var waits: Bool?
        var trace: [String]?
        var state: [String]?

        private enum CodingKeys: String, CodingKey {
            case command
            case options
            case seed
            case profile
            case violations
            case reasons
            case events
            case steps
            case simulatedSeconds = "simulated_seconds"
            case traceHash = "trace_hash"
            case whatIfs = "what_ifs"
            case waits
            case trace
            case state
        }

        /// The report of one scenario.
        ///
        /// - Parameters:
        ///   - run: what the seed means.
        ///   - result: what came of it.
        ///   - filter: which lines of the trace; nil for the state instead.
        ///   - hasTrace: whether the trace is shown at all.
        init(_ run: Run, _ result: ScenarioResult, _ filter: TraceFilter?, hasTrace: Bool) {
            command = run.command
            options = run.scenario.options.summary
            seed = result.seed
            profile = result.profileName
            violations = result.violations.map {
                Broken(
                    invariant: $0.invariant.rawValue, seconds: Double($0.time.nanoseconds) / 1e9, detail: $0.detail)
            }
            events = result.events
            steps = result.steps
            if !run.whatIfs.isEmpty {
                whatIfs = run.whatIfs.enumerated().map { place, whatIf in
                    Done(
                        whatIf: whatIf.description,
                        unmet: result.unmetWhatIfs.first { $0.place == place }?.reason)
                }
                waits = result.waitsForPlayer
            }
            simulatedSeconds = result.simulatedSeconds
            traceHash = SweepReport.text(hash: result.traceHash)
            reasons = result.reasons.isEmpty ? nil : result.reasons
            state = filter == nil ? result.state : nil
            guard hasTrace, let filter else { return }
            let places = filter.trackers.isEmpty ? nil : filter.trackers
            trace = result.lines.filter(filter.holds).map { $0.words(columns: places) } + [result.hashLine]
        }
    }
}
