// `tracker replay --swarm`.

import ArgumentParser
import Primitives
import Simulator

extension ReplayCommand {
    /// Refuses what only trackers have.
    func checkSwarm() throws {
        try options.refuse([
            ("--clients", clients != nil), ("--only-trackers", onlyTrackers != nil),
            ("--only-clients", onlyClients != nil), ("--faults", faults != nil),
            ("--injections", chosenInjections != nil), ("--without", without != nil), ("--shrink", shrink),
            ("--svg", svg != nil), ("--tracker", !trackers.isEmpty), ("--at", at != nil),
            ("--keepalives", keepalives), ("--pcap", pcap != nil), ("--what-if", !whatIfs.isEmpty),
        ])
    }

    /// Runs a swarm again, and shows what happens in it.
    func replaySwarm() async throws {
        let (run, isTraced) = (SwarmRun(seed: seed ?? 0), !quiet)
        let count = run.scenario.options.peerCount
        if let peer = peers.first(where: { !(0..<count).contains($0) }) {
            throw Failure(.usage, "there is no peer \(peer) in this swarm; there are 0 to \(count - 1)")
        }
        let filter = TraceFilter(from: Self.time(from), until: Self.time(until), kinds: try chosenKinds())
        let result = await onThread { run.scenario.run(recordsTrace: isTraced) }
        if report.isJSON {
            let lines = result.lines.filter { shows($0, filter) }.map { $0.words() }
            try report.writeJSON(SwarmDocument(run, result, isTraced ? lines + [Self.hashLine(result)] : nil))
        } else {
            tell(run, result, filter)
        }
        if !result.violations.isEmpty { throw Failure(.failed, nil) }
    }

    /// Whether a line is to be seen; what concerns the whole swarm is, where its time is right.
    private func shows(_ line: TraceLine, _ filter: TraceFilter) -> Bool {
        guard filter.holds(line) else { return false }
        guard !peers.isEmpty, !line.kinds.isEmpty, let column = line.columns.first else { return true }
        return peers.contains { column.hasPrefix("\($0) ") }
    }

    private static func hashLine(_ result: TransferResult) -> String {
        "trace hash \(SweepReport.text(hash: result.traceHash))"
    }

    private func tell(_ run: SwarmRun, _ result: TransferResult, _ filter: TraceFilter) {
        if !quiet {
            var lines = [
                run.scenario.options.summary,
                "column: the peer, and how many of the pieces are on its disk",
                "      seconds │ peer             │ what happens",
            ]
            for line in result.lines where shows(line, filter) {
                lines.append(line.words())
                // In pieces: a trace may have a hundred thousand lines.
                guard lines.count >= 1000 else { continue }
                Terminal.output.write(lines.joined(separator: "\n") + "\n")
                lines = []
            }
            Terminal.output.write((lines + [Self.hashLine(result)]).joined(separator: "\n") + "\n")
        }
        guard result.violations.isEmpty else { return Terminal.errors.write(run.failure(result)) }
        Terminal.errors.write("seed \(result.seed), a swarm: no promise broken\n")
    }
}

/// The report of one swarm.
private struct SwarmDocument: Encodable {
    struct Broken: Encodable {
        var invariant: String
        var seconds: Double
        var detail: String
    }

    struct Peer: Encodable {
        var pieces: Int
        var done: Double?
    }

    var command: String
    var options: String
    var seed: UInt64
    var violations: [Broken]
    var peers: [Peer]
    var events: Int
    var simulatedSeconds: Int64
    var traceHash: String
    var trace: [String]?

    private enum CodingKeys: String, CodingKey {
        case command
        case options
        case seed
        case violations
        case peers
        case events
        case simulatedSeconds = "simulated_seconds"
        case traceHash = "trace_hash"
        case trace
    }

    init(_ run: SwarmRun, _ result: TransferResult, _ trace: [String]?) {
        command = run.command
        options = run.scenario.options.summary
        seed = result.seed
        violations = result.violations.map {
            Broken(invariant: $0.invariant.rawValue, seconds: Double($0.time.nanoseconds) / 1e9, detail: $0.detail)
        }
        peers = zip(result.pieceCounts, result.doneAt).map { count, done in
            Peer(pieces: count, done: done.map { Double($0.nanoseconds) / 1e9 })
        }
        events = result.events
        simulatedSeconds = result.simulatedSeconds
        traceHash = SweepReport.text(hash: result.traceHash)
        self.trace = trace
    }
}
