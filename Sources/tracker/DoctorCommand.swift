// `tracker doctor`.

import ArgumentParser
import Client
import Foundation

/// `tracker doctor`.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Look at all trackers of a cluster, and say what is wrong.",
        discussion: """
            Asks one tracker's console, which knows of the others what they tell over the bus. Trackers that the bus \
            does not reach (another key, other members) are asked directly where their consoles are given, too.

            Exit codes: 0 when nothing is wrong, 1 when something is, 69 when no console answers.
            """)

    @OptionGroup var consoles: ClusterConsoles
    @OptionGroup var report: ReportOptions

    func run() async throws {
        var visits: [Checkup.Visit] = []
        for console in consoles.all {
            let client = try consoles.access.client(of: console)
            do throws(TrackerClientError) {
                visits.append(Checkup.Visit(console: console, view: try await client.cluster()))
            } catch {
                visits.append(
                    Checkup.Visit(console: console, failure: ConsolePlace.failure(error, at: console).message))
            }
        }
        let checkup = Checkup(visits)
        if report.isJSON {
            struct Result: Encodable {
                var isWell: Bool
                var trackers: [Checkup.Patient]
                var findings: [Checkup.Complaint]
            }
            try report.writeJSON(
                Result(isWell: checkup.isWell, trackers: checkup.patients, findings: checkup.complaints))
        } else {
            Terminal.output.write(Self.text(checkup))
        }
        guard visits.contains(where: { $0.view != nil }) else { throw Failure(.unavailable, nil) }
        guard checkup.isWell else { throw Failure(.failed, nil) }
    }

    private static func text(_ checkup: Checkup) -> String {
        var text = ""
        if !checkup.patients.isEmpty {
            var rows: [[String]] = [["tracker"] + checkup.patients.map { "\($0.id)" }]
            func add(_ name: String, _ value: (Checkup.Patient) -> String) {
                rows.append([name] + checkup.patients.map(value))
            }
            func told(_ name: String, _ value: @escaping (TrackerSelfReport) -> String) {
                add(name) { $0.report.map(value) ?? "?" }
            }
            add("role") { $0.role + ($0.hasVote ? "" : ", no vote") }
            told("host") { $0.host }
            told("clients") { $0.clients }
            told("console") { $0.console.isEmpty ? "none" : $0.console }
            told("version") { $0.version }
            add("applied") { Figures.grouped($0.commitIndex) }
            told("announces") { "\(Figures.grouped($0.announcesPerSecond))/s" }
            told("answers") { span($0.answerSeconds) }
            told("commits") { span($0.commitSeconds) }
            told("writes") { span($0.writeSeconds) }
            told("bus") { span($0.roundTripSeconds) }
            told("disk") { "\($0.disk), answers survive \($0.durability == "disk" ? "a power cut" : "a crash")" }
            told("buffer") { Figures.bytes($0.receiveBufferBytes) }
            told("lost") { Figures.counted($0.lostDatagrams, "datagram") }
            told("files") { "\(Figures.grouped($0.openFiles)) of \(Figures.grouped($0.maxFiles))" }
            told("clock") {
                "\($0.clockDifferenceSeconds < 0 ? "" : "+")\(Figures.decimal($0.clockDifferenceSeconds, 3)) s"
            }
            add("told by") { $0.wasAsked ? "itself" : "the bus" }
            text += TextTable(rows: rows).text { Terminal.output.styled($0, .bold) } + "\n"
        }
        if checkup.isWell { return text + "Nothing is wrong.\n" }
        for complaint in checkup.complaints {
            let who = complaint.tracker.map { "tracker \($0): " } ?? ""
            text += "\(Terminal.output.styled("!", .bold, .red)) \(who)\(complaint.text)\n"
        }
        return text
    }

    /// Median and 99th percentile.
    private static func span(_ latency: TrackerSelfReport.Latency) -> String {
        guard latency.p99 > 0 else { return "-" }
        func milliseconds(_ seconds: Double) -> String { Figures.decimal(seconds * 1000, seconds < 0.01 ? 2 : 0) }
        return "\(milliseconds(latency.median)) ms, p99 \(milliseconds(latency.p99)) ms"
    }
}
