/// `tracker status`

import ArgumentParser
import Foundation
import Runtime

struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show what a running tracker is, does and holds.",
        discussion: """
            Asks the tracker's console. JSON: as the console gives it; docs/openapi.yaml describes each key \
            (Status).
            """)

    @Option(help: ArgumentHelp("Where the tracker's console listens.", valueName: "host:port"))
    var console = "127.0.0.1:6970"

    @Option(
        name: .customLong("token-file"),
        help: ArgumentHelp("File with the console's bearer token, where it asks for one.", valueName: "file"))
    var tokenFile: String?

    @OptionGroup var report: ReportOptions

    func run() async throws {
        let place: TrackerURL
        do {
            place = try TrackerURL("http://\(console)")
        } catch {
            throw ValidationError("\"\(console)\" is not a host with a port; write for example 127.0.0.1:6970")
        }
        let token = try tokenFile.map { path in
            try Failure.telling(.system) { try ServerConfiguration.readToken(path) }
        }
        let client = ConsoleClient(host: place.host, port: place.port, token: token)
        do throws(TrackerClientError) {
            let (status, json) = try await client.status()
            Terminal.output.write(report.isJSON ? String(decoding: json, as: UTF8.self) + "\n" : Self.text(status))
        } catch {
            if case .unreachable = error {
                throw Failure(
                    .unavailable,
                    "no tracker's console listens at \(console); is a tracker running there, with a console at this "
                        + "address (--console)?")
            }
            throw Failure(error)
        }
    }

    private static func text(_ status: StatusReport) -> String {
        let node = status.node
        let counters = node.counters
        var table = TextTable(.left, .left)
        func add(_ name: String, _ value: String) { table.add(name, value) }
        add("tracker", "\(node.id), \(node.role) of epoch \(node.epoch.round).\(node.epoch.id)")
        let uptime = Figures.span(seconds: Int(status.uptimeSeconds))
        add("running", "\(uptime), version \(status.version), process \(status.processID)")
        for listener in status.listeners { add(listener.service, listener.address) }
        add("access", node.accessMode)
        add(
            "torrents",
            "\(Figures.grouped(node.torrents)) active, \(Figures.grouped(node.registeredTorrents)) registered")
        add(
            "peers",
            "\(Figures.grouped(node.peers)): \(Figures.grouped(node.seeders)) seeders; "
                + "\(Figures.grouped(node.peersIPv4)) over IPv4, \(Figures.grouped(node.peersIPv6)) over IPv6")
        add("interval", Figures.span(seconds: node.intervalSeconds))
        add(
            "log",
            "applied \(Figures.grouped(node.commitIndex)) of \(Figures.grouped(node.lastIndex)), state \(node.digest)")
        add("waiting", Figures.counted(node.waitingRequests, "request"))
        add(
            "answered",
            "\(Figures.grouped(counters.announces)) announces, \(Figures.grouped(counters.scrapes)) scrapes, "
                + "\(Figures.grouped(counters.connects)) connects, \(Figures.grouped(counters.errors)) errors")
        add(
            "not answered",
            "\(Figures.grouped(counters.ignored)) junk, \(Figures.grouped(counters.dropped)) dropped, "
                + "\(Figures.grouped(counters.errorsWithheld)) errors withheld")
        add(
            "since start",
            "\(Figures.grouped(counters.completed)) downloads completed, "
                + "\(Figures.grouped(counters.expired)) peers expired"
        )
        return table.text()
    }
}
