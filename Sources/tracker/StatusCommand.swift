// `tracker status`.

import ArgumentParser
import Client
import Foundation

/// `tracker status`.
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show what a running tracker is, does and holds.",
        discussion: """
            Asks the tracker's console. Of a cluster it shows all trackers, as this one sees them. JSON: as the \
            console gives it; docs/openapi.yaml describes each key (Status).
            """)

    @Option(help: ArgumentHelp("Where the tracker's console listens.", valueName: "host:port"))
    var console = ConsolePlace.standard

    @OptionGroup var access: ConsoleAccess
    @OptionGroup var report: ReportOptions

    func run() async throws {
        let client = try access.client(of: console)
        do throws(TrackerClientError) {
            let (status, json) = try await client.status()
            guard !report.isJSON else { return Terminal.output.write(String(decoding: json, as: UTF8.self) + "\n") }
            Terminal.output.write(Self.text(status))
            if let cluster = status.cluster, cluster.mode != "alone" {
                Terminal.output.write("\n" + ClusterTable.text(cluster))
            }
        } catch {
            throw ConsolePlace.failure(error, at: console)
        }
    }

    private static func text(_ recording: StatusReport.Recording) -> String {
        if let problem = recording.problem { return problem }
        guard recording.mode == "ring" else { return "nothing" }
        let span = recording.seconds.map { "the last \(Figures.span(seconds: Int($0)))" } ?? "nothing that replays yet"
        return "\(span), in \(recording.bytes >> 20) MiB"
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
        if let advertised = status.advertised { add("advertised", advertised) }
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
        if let recording = status.recording { add("recorded", Self.text(recording)) }
        add("waiting", Figures.counted(node.waitingRequests, "request"))
        add(
            "answered",
            "\(Figures.grouped(counters.announces)) announces, \(Figures.grouped(counters.scrapes)) scrapes, "
                + "\(Figures.grouped(counters.connects)) connects, \(Figures.grouped(counters.errors)) errors")
        add(
            "not answered",
            "\(Figures.grouped(counters.ignored)) junk, \(Figures.grouped(counters.dropped)) dropped, "
                + "\(Figures.grouped(counters.timedOut)) timed out, "
                + "\(Figures.grouped(counters.errorsWithheld)) errors withheld")
        add(
            "since start",
            "\(Figures.grouped(counters.completed)) downloads completed, "
                + "\(Figures.grouped(counters.expired)) peers expired"
        )
        // Of a cluster its own table tells them.
        if let cluster = status.cluster, cluster.mode == "alone" {
            for finding in cluster.findings ?? [] { add(finding.isSilence ? "no answers" : "mind", finding.text) }
        }
        return table.text()
    }
}
