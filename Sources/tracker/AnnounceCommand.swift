// `tracker announce`.

import ArgumentParser
import Client
import Primitives
import Settings
import Wire

/// `tracker announce`.
struct AnnounceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "announce",
        abstract: "Announce to a tracker once, and show its answer.",
        discussion: """
            The tracker takes this machine for a peer until the announce expires; `--event stopped` with the same \
            --port says goodbye.

            JSON: url, infoHash, server, roundTripMilliseconds, intervalSeconds, minIntervalSeconds, seeders, \
            leechers, completed, warning, peers (address, peerID). What the tracker does not say is left out.
            """)

    @OptionGroup var target: TrackerTarget

    @Argument(help: ArgumentHelp("40 hexadecimal digits.", valueName: "infohash"), transform: readInfoHash)
    var infoHash: InfoHash

    @Option(help: "Where the peer would listen.")
    var port: UInt16 = 6881

    @Option(help: ArgumentHelp("Bytes still to be had; 0 makes a seeder.", valueName: "bytes"))
    var left: UInt64 = 1

    @Option(help: "none, started, completed or stopped.")
    var event = EventName.started

    @Option(help: ArgumentHelp("Peers wanted; the tracker chooses unless told.", valueName: "number"))
    var numWant: Int?

    @Option(
        name: .customLong("peer-id"),
        // Peer ids begin with a dash, as flags do (BEP 20).
        parsing: .unconditional,
        help: ArgumentHelp("20 characters, or 40 hexadecimal digits; random unless told.", valueName: "id"),
        transform: readPeerID)
    var peerID: PeerID?

    @OptionGroup var report: ReportOptions

    enum EventName: String, ExpressibleByArgument, CaseIterable {
        case none
        case started
        case completed
        case stopped

        var event: AnnounceEvent {
            switch self {
            case .none: .none
            case .started: .started
            case .completed: .completed
            case .stopped: .stopped
            }
        }
    }

    func validate() throws {
        guard port != 0 else { throw ValidationError("--port 0 cannot be reached by peers; give the port of the peer") }
        if let numWant, !(0...10_000).contains(numWant) { throw ValidationError("--num-want is 0 to 10,000") }
    }

    func run() async throws {
        let client = target.client()
        var announce = ClientAnnounce(infoHash: infoHash, peerID: peerID ?? Self.randomPeerID(), port: port, left: left)
        announce.event = event.event
        announce.numWant = numWant
        let reply: ClientAnnounceReply
        do throws(TrackerClientError) {
            reply = try await client.announce(announce)
        } catch {
            throw Failure(error)
        }
        if report.isJSON {
            try report.writeJSON(Document(reply, client.url, infoHash))
        } else {
            Terminal.output.write(Self.text(reply, client.url))
        }
    }

    private static func text(_ reply: ClientAnnounceReply, _ url: TrackerURL) -> String {
        func said(_ count: UInt32?) -> String { count.map { Figures.grouped($0) } ?? "not said" }
        var table = TextTable(.left, .left)
        table.add("tracker", "\(url), \(reply.server) answered in \(Figures.milliseconds(reply.roundTrip))")
        let least = reply.minInterval.map { ", at most every \(Figures.span(seconds: Int($0)))" } ?? ""
        table.add("interval", Figures.span(seconds: Int(reply.interval)) + least)
        table.add("seeders", said(reply.seeders))
        table.add("leechers", said(reply.leechers))
        if let completed = reply.completed { table.add("completed", Figures.grouped(completed)) }
        if let warning = reply.warning { table.add("warning", warning) }
        table.add("peers", Figures.grouped(reply.peers.count))
        return table.text() + reply.peers.map { "  \($0.address)\n" }.joined()
    }

    /// Twelve letters and digits behind our prefix (BEP 20).
    private static func randomPeerID() -> PeerID {
        let characters = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        return PeerID.own { _ in characters[Int.random(in: 0..<characters.count)] }
    }

    private struct Document: Encodable {
        struct Peer: Encodable {
            var address: String
            var peerID: String?
        }

        var url: String
        var infoHash: String
        var server: String
        var roundTripMilliseconds: Double
        var intervalSeconds: UInt32
        var minIntervalSeconds: UInt32?
        var seeders: UInt32?
        var leechers: UInt32?
        var completed: UInt32?
        var warning: String?
        var peers: [Peer]

        init(_ reply: ClientAnnounceReply, _ url: TrackerURL, _ infoHash: InfoHash) {
            self.url = "\(url)"
            self.infoHash = "\(infoHash)"
            server = "\(reply.server)"
            roundTripMilliseconds = Double(reply.roundTrip.nanoseconds) / 1e6
            intervalSeconds = reply.interval
            minIntervalSeconds = reply.minInterval
            seeders = reply.seeders
            leechers = reply.leechers
            completed = reply.completed
            warning = reply.warning
            peers = reply.peers.map { Peer(address: "\($0.address)", peerID: $0.peerID.map { "\($0)" }) }
        }
    }
}

/// The tracker that `announce` and `scrape` ask.
struct TrackerTarget: ParsableArguments {
    @Argument(
        help: ArgumentHelp("udp://HOST:PORT or http://HOST:PORT/announce.", valueName: "url"),
        transform: readTrackerURL)
    var url: TrackerURL

    @Option(
        help: ArgumentHelp(
            "How long to try, all attempts together: over UDP the first waits 15s, each further one twice as "
                + "long. (default: 60s)",
            valueName: "duration"),
        transform: readTimeout)
    var timeout: Primitives.Duration = .seconds(60)

    func client() -> any TrackerClient {
        var options = ClientOptions()
        options.timeout = timeout
        options.userAgent = "Swarmkeeper/\(version)"
        if Terminal.errors.isTerminal {
            options.onRetry = { retry in
                Terminal.errors.write(
                    "no answer from \(retry.host) within \(Figures.span(seconds: Int(retry.waited.wholeSeconds))), "
                        + "asking again (\(Figures.span(seconds: Int(retry.left.wholeSeconds))) left)\n")
            }
        }
        return url.client(options)
    }
}

@Sendable
private func readTrackerURL(_ text: String) throws -> TrackerURL {
    do throws(TrackerURLError) {
        return try TrackerURL(text)
    } catch {
        throw ValidationError(error.description)
    }
}

@Sendable
private func readTimeout(_ text: String) throws -> Primitives.Duration {
    guard let duration = Primitives.Duration(text), duration > .zero, duration <= .seconds(86_400) else {
        throw ValidationError("\"\(text)\" is not a time to wait; write for example 90s or 5m")
    }
    return duration
}

/// Reads an info hash as people have it at hand.
@Sendable
func readInfoHash(_ text: String) throws -> InfoHash {
    if let infoHash = InfoHash(hexadecimal: text) { return infoHash }
    let hint =
        text.utf8.count == 64 && Primitives.bytes(hexadecimal: text) != nil
        ? "a v2 info hash goes by its first 40 digits: \(text.prefix(40))" : "write 40 hexadecimal digits"
    throw ValidationError("\"\(text.prefix(80))\" is not an info hash; \(hint)")
}

@Sendable
private func readPeerID(_ text: String) throws -> PeerID {
    if let bytes = Bytes20(Array(text.utf8)) { return PeerID(bytes) }
    if let raw = Primitives.bytes(hexadecimal: text), let bytes = Bytes20(raw) { return PeerID(bytes) }
    throw ValidationError("\"\(text.prefix(80))\" is not a peer id; write 20 characters, or 40 hexadecimal digits")
}
