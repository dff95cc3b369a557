// `tracker load`.

import ArgumentParser
import Foundation
import LoadGenerator
import Primitives

/// `tracker load`.
struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Ask a UDP tracker as many clients would, and measure its answers.",
        discussion: """
            Closed loop (--in-flight): so many requests are under way at any time, which finds the most that a \
            tracker can do. Open loop (--rate): so many leave each second, which finds the latency under that load; \
            it counts from when a request should have left.

            Load only trackers of your own: peers that do not exist enter their swarms.

            Only towards 127.0.0.0/8 do the peers have many addresses. Elsewhere they all have this host's, of which a \
            tracker takes 20,000 peers (--limit-peers-per-address); more are refused, and that is said before it starts.

            Ends with 0 when the load ran, whatever was lost; with 69 when nobody answers.

            JSON: mode, target, inFlight, rate, torrents, peers, sources; sent, resent, answered, lost, unsent, \
            late, errors, firstError, wrong (by kind), answeredInAll; seconds, repliesPerSecond, bytesInPerSecond, \
            bytesOutPerSecond, latencyMicroseconds (p50, p90, p99, p999, max), meanPeersPerReply, generatorLoad.
            """)

    @Argument(help: ArgumentHelp("udp://HOST:PORT, of a tracker or of a multicast group", valueName: "url"))
    var url: String

    @Option(help: ArgumentHelp("Swarms.", valueName: "number"))
    var torrents = 1000

    @Option(
        help: ArgumentHelp(
            "Peers in all swarms together (100000; 20000 where all have one address).", valueName: "number"))
    var peers: Int?

    @Option(help: ArgumentHelp("Requests under way at any time (closed loop; 256 unless --rate).", valueName: "number"))
    var inFlight: Int?

    @Option(help: ArgumentHelp("Requests a second (open loop).", valueName: "number"))
    var rate: Int?

    @Option(
        help: ArgumentHelp("Seconds to measure; with --fill, the longest that it may take (600).", valueName: "number"))
    var seconds: Double?

    @Option(name: .customLong("warm-up"), help: ArgumentHelp("Seconds before measuring (1).", valueName: "number"))
    var warmUp: Double?

    @Option(
        help: ArgumentHelp(
            "Seconds until a request without an answer counts as lost (1).",
            valueName: "number"))
    var patience: Double?

    @Option(help: ArgumentHelp("Peers wanted; 0 leaves the number to the tracker.", valueName: "number"))
    var numWant: Int32 = 50

    @Option(help: ArgumentHelp("Announces among the requests, 0 to 1; the others are scrapes.", valueName: "share"))
    var announceShare = 0.98

    @Option(help: ArgumentHelp("Info hashes in a scrape, 1 to 74.", valueName: "number"))
    var scrapeHashes = 4

    @Option(
        help: ArgumentHelp(
            "Client addresses, 1 to 16384; more than one only to 127.0.0.0/8 (64, and one for each 1,000 peers).",
            valueName: "number"))
    var sources: Int?

    @Option(
        help: ArgumentHelp("Names torrents and peers: the same seed finds the same swarms again.", valueName: "number"))
    var seed: UInt64 = 1

    @Flag(help: "Announce each peer once, and stop: fills the tracker.")
    var fill = false

    @Flag(help: "The peers are there already, from a --fill with the same numbers.")
    var filled = false

    @OptionGroup var report: ReportOptions

    func validate() throws {
        if rate != nil, inFlight != nil {
            throw ValidationError("--rate and --in-flight exclude each other: a load is open or closed")
        }
        if fill, filled { throw ValidationError("--fill and --filled exclude each other") }
        for seconds in [seconds, warmUp] {
            guard let seconds, !(0...86_400).contains(seconds) else { continue }
            throw ValidationError("--seconds and --warm-up are at most 86400")
        }
        if let patience, !(0.01...60).contains(patience) { throw ValidationError("--patience is 0.01 to 60 seconds") }
        if fill, warmUp != nil { throw ValidationError("--fill has no --warm-up: each peer announces once") }
    }

    func run() async throws {
        let (options, isShown) = (try loadOptions(), !report.isJSON)
        if let notice = options.notice { Terminal.errors.write(notice + "\n") }
        let result: LoadReport
        do throws(LoadError) {
            // On a thread of its own: it keeps a processor busy until it is done.
            result = try await onThread { () throws(LoadError) in
                var bar = ProgressBar(options.work == .fill ? "filling" : "loading", isShown: isShown)
                return try LoadGenerator(options).run { progress in
                    bar.update(progress.share, note: "\(Figures.grouped(progress.answered)) answers")
                }
            }
        } catch {
            switch error {
            case .invalid: throw Failure(.usage, error.description)
            case .noSuchHost, .silent: throw Failure(.unavailable, error.description)
            case .refused: throw Failure(.failed, error.description)
            case .socket: throw Failure(.system, error.description)
            }
        }
        if report.isJSON {
            try report.writeJSON(result)
        } else {
            Terminal.output.write("\(result)\n")
        }
    }

    private func loadOptions() throws(Failure) -> LoadOptions {
        var options: LoadOptions
        do throws(LoadError) {
            options = LoadOptions(target: try LoadOptions.target(url))
        } catch {
            if case .noSuchHost = error { throw Failure(.unavailable, error.description) }
            throw Failure(.usage, error.description)
        }
        options.work = fill ? .fill : .mixed
        options.pace = rate.map { .open(rate: $0) } ?? .closed(inFlight: inFlight ?? 256)
        options.duration = Self.span(seconds ?? (fill ? 600 : 5))
        if let warmUp { options.warmUp = Self.span(warmUp) }
        if let patience { options.patience = Self.span(patience) }
        options.torrents = torrents
        if let peers { options.peers = peers }
        options.spread()
        if let sources { options.sources = sources }
        options.announceShare = announceShare
        options.numWant = numWant
        options.scrapeHashes = scrapeHashes
        options.isFilled = filled
        options.seed = seed
        return options
    }

    /// `validate` has bounded it.
    private static func span(_ seconds: Double) -> Primitives.Duration {
        .milliseconds(Int64((seconds * 1000).rounded()))
    }
}

/// Runs something that blocks on a thread of its own.
func onThread<Value: Sendable, Problem: Error>(
    _ body: @escaping @Sendable () throws(Problem) -> Value
) async throws(Problem) -> Value {
    let result = await withCheckedContinuation { (continuation: CheckedContinuation<Result<Value, Problem>, Never>) in
        Thread.detachNewThread { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
}
