// The demonstration itself.

import Client
import Foundation
import Primitives
import UnixSignals

/// The demonstration itself: starts the trackers, tells what happens to them, and starts again what was killed.
struct Demo {
    private static let ids = 1...3
    /// How long a killed tracker stays away: long enough to see the others go on without it.
    private static let absence = Swift.Duration.seconds(10)
    /// How long the trackers may take to stop in good order before they are killed.
    private static let farewell = Swift.Duration.seconds(8)

    let basePort: UInt16
    let profile: String
    let directory: URL
    let bus: String

    private enum Happening: Sendable {
        case tracker(DemoEvent)
        case back(Int)
        case ready
        case notReady
        case interrupted
    }

    /// Runs until it is interrupted, and all trackers have ended.
    ///
    /// - Returns: why it could not go on, if it could not.
    func run(until signals: UnixSignalsSequence) async -> Failure? {
        let (happenings, happened) = AsyncStream.makeStream(of: Happening.self)
        let (events, event) = AsyncStream.makeStream(of: DemoEvent.self)
        let listeners = [
            Task<Void, Never> { for await event in events { happened.yield(.tracker(event)) } },
            Task<Void, Never> { for await _ in signals { happened.yield(.interrupted) } },
            Task<Void, Never> { happened.yield(await isFormed() ? .ready : .notReady) },
        ]
        defer { for listener in listeners { listener.cancel() } }
        var trackers: [Int: DemoTracker] = [:]
        var isStopping = false
        var failure: Failure?
        func stop() {
            isStopping = true
            for tracker in trackers.values { tracker.stop() }
        }
        do {
            for id in Self.ids { trackers[id] = try start(id, event) }
        } catch {
            failure = Failure(.system, "a tracker cannot be started: \(error.localizedDescription)")
            stop()
        }
        if trackers.isEmpty { return failure }
        var isReady = false
        for await happening in happenings {
            switch happening {
            case .tracker(.line(let id, let line)): show(id, line, isReady: isReady)
            case .tracker(.ended(let id, let process, let how)):
                guard trackers[id]?.process == process else { continue }
                trackers[id] = nil
                if isStopping {
                    if trackers.isEmpty { return failure }
                } else if !isReady {
                    failure = Failure(.system, "tracker \(id) \(how), before the cluster was complete")
                    stop()
                    if trackers.isEmpty { return failure }
                } else {
                    say(id, "\(how); it comes back in \(Self.absence.components.seconds) seconds", .yellow)
                    Task {
                        try? await Task.sleep(for: Self.absence)
                        happened.yield(.back(id))
                    }
                }
            case .back(let id):
                guard !isStopping, let tracker = try? start(id, event) else { continue }
                trackers[id] = tracker
                say(id, "is back as process \(tracker.process)", .green)
            case .ready:
                isReady = true
                introduce(trackers)
            case .notReady:
                failure = Failure(.failed, "the trackers have not become a cluster within \(Self.patience)")
                stop()
            case .interrupted:
                guard !isStopping else { continue }
                Terminal.output.write("\nStopping.\n")
                stop()
                let left = trackers
                Task {
                    try? await Task.sleep(for: Self.farewell)
                    for tracker in left.values { tracker.kill() }
                }
            }
        }
        return failure
    }

    // MARK: - The trackers

    private func start(_ id: Int, _ events: AsyncStream<DemoEvent>.Continuation) throws -> DemoTracker {
        var arguments = [
            "serve", "--id", "\(id)", "--profile", profile, "--bus", bus,
            "--cluster-key-file", directory.appending(path: "cluster.key").path,
            "--udp", "127.0.0.1:\(udpPort(id))", "--console", "127.0.0.1:\(consolePort(id))",
            "--data", directory.appending(path: "\(id)").path, "--log-format", "json", "--stop-at-end-of-input",
        ]
        if profile == "paxos" { arguments += ["--members", Self.ids.map(String.init).joined(separator: ",")] }
        return try DemoTracker(
            id: id, program: URL(filePath: "/proc/self/exe").resolvingSymlinksInPath(), arguments: arguments,
            events: events)
    }

    private func udpPort(_ id: Int) -> UInt16 { basePort + UInt16(id) }

    private func consolePort(_ id: Int) -> UInt16 { basePort + 10 + UInt16(id) }

    private static let patience = Swift.Duration.seconds(30)

    /// Whether all three become a cluster in time.
    private func isFormed() async -> Bool {
        let end = ContinuousClock.now.advanced(by: Self.patience)
        while ContinuousClock.now < end {
            var serving = 0
            for id in Self.ids {
                let view = try? await ConsoleClient(host: "127.0.0.1", port: consolePort(id)).cluster()
                if let view, view.isServing, view.trackers.count == Self.ids.count { serving += 1 }
            }
            if serving == Self.ids.count { return true }
            guard (try? await Task.sleep(for: .milliseconds(200))) != nil else { return false }
        }
        return false
    }

    // MARK: - Telling

    private func introduce(_ trackers: [Int: DemoTracker]) {
        var table = TextTable(.right, .right, .left, .left)
        table.add("id", "process", "announce URL", "console")
        for id in Self.ids {
            guard let tracker = trackers[id] else { continue }
            table.add(
                "\(id)", "\(tracker.process)", "udp://127.0.0.1:\(udpPort(id))/announce",
                "http://127.0.0.1:\(consolePort(id))/")
        }
        let program = CommandLine.arguments[0]
        let hash = String(repeating: "0123456789", count: 4)
        let header = { Terminal.output.styled($0, .bold) }
        Terminal.output.write(
            """

            Three trackers act as one; all they keep is in \(directory.path), until you stop them with Ctrl-C.

            \(table.text(indent: "  ", header: header))
            Open a console in a browser: each shows the whole cluster. In another terminal, try:
              \(program) status --console 127.0.0.1:\(consolePort(1))
              \(program) announce udp://127.0.0.1:\(udpPort(1))/announce \(hash) --left 0
              \(program) announce udp://127.0.0.1:\(udpPort(2))/announce \(hash) --port 6882
              \(program) handover 1 --console 127.0.0.1:\(consolePort(1)) --console 127.0.0.1:\(consolePort(2)) \
            --console 127.0.0.1:\(consolePort(3))
              kill -9 PROCESS     (of the master: another takes over, and nothing that was answered is lost)

            What happens:

            """)
    }

    private func show(_ id: Int, _ line: DemoLine, isReady: Bool) {
        guard line.isOfInterest else { return }
        let style: Terminal.Style? =
            switch line.level {
            case "error", "critical": .red
            case "warning": .yellow
            default: nil
            }
        say(id, line.text, style)
    }

    private func say(_ id: Int, _ text: String, _ style: Terminal.Style?) {
        let time = Date().formatted(.iso8601.time(includingFractionalSeconds: true).timeSeparator(.colon))
        let name = Terminal.output.styled("tracker \(id)", .bold)
        Terminal.output.write("\(time)  \(name)  \(style.map { Terminal.output.styled(text, $0) } ?? text)\n")
    }
}
