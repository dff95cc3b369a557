// What the node's thread has measured and found out, for other threads to read.

import Datagrams
import Foundation
import Primitives
import Storage
import Synchronization
import TrackerLogic
import Web
import Wire

/// What the node's thread has measured and found out, for other threads to read: figures, its own report, and why
/// nobody is answered, if so.
final class LatestFigures: Sendable {
    private static let countPeriod = Primitives.Duration.seconds(10)

    private struct State {
        var figures = NodeFigures()
        var report: TrackerReport
        var findings: [Finding] = []
        /// When the open files were last counted, for there may be many.
        var countedAt: Instant?
    }

    private let state: Mutex<State>

    /// A board on which nothing is known yet but what does not change.
    ///
    /// - Parameters:
    ///   - version: of the program.
    ///   - durability: of the record.
    init(version: String, durability: Durability) {
        var report = TrackerReport()
        report.version = ShortText(version)
        report.host = ShortText(ProcessInfo.processInfo.hostName)
        report.durability =
            switch durability {
            case .disk: .disk
            case .process: .process
            }
        state = Mutex(State(report: report))
    }

    var figures: NodeFigures { state.withLock { $0.figures } }

    /// As it was last told to the others; without stamp and echoes.
    var report: TrackerReport { state.withLock { $0.report } }

    /// Why nobody is answered, as it was at the last look, for clients: without other people's addresses.
    var problem: String? { state.withLock { Finding.problem($0.findings) } }

    func publish(_ figures: NodeFigures) { state.withLock { $0.figures = figures } }

    /// Where the tracker listens is known when all its listeners are open.
    func note(_ facts: ProcessFacts) {
        let clients = facts.advertised ?? facts.listeners.first { $0.service != .api }.map { "\($0.address)" }
        let console = facts.consoleURL ?? facts.listeners.first { $0.service == .api }.map { "\($0.address)" }
        state.withLock { state in
            state.report.clients = ShortText(clients ?? "")
            state.report.console = ShortText(console ?? "")
        }
    }

    /// Takes the findings and figures of now.
    ///
    /// - Returns: what the others are to be told.
    func update(_ findings: [Finding], _ figures: NodeFigures, announceRate: UInt32, disk: StorageFailure?)
        -> TrackerReport
    {
        let now = Clock.monotonic()
        let isDue = state.withLock { $0.countedAt.map { now - $0 >= LatestFigures.countPeriod } ?? true }
        let files = isDue ? ProcessMetrics.openFiles() : nil
        return state.withLock { state in
            if let files {
                state.countedAt = now
                state.report.openFiles = UInt32(clamping: min(files.open, Int(TrackerReport.Limits.count)))
                state.report.maxFiles = UInt32(clamping: min(files.maximum, UInt64(TrackerReport.Limits.count)))
            }
            state.figures = figures
            state.findings = findings
            state.report.problem = ShortText(findings.first { $0.isSilence }?.text ?? "")
            state.report.disk = TrackerReport.Disk(disk)
            state.report.announceRate = announceRate
            state.report.answers = figures.announces.latency
            state.report.commits = figures.commits.latency
            state.report.writes = figures.writes.latency
            state.report.roundTrips = figures.roundTrips.latency
            state.report.receiveBuffer = UInt32(clamping: figures.receiveBuffer)
            state.report.wantedReceiveBuffer = UInt32(clamping: figures.wantedReceiveBuffer)
            state.report.lostDatagrams = min(figures.lostLately, TrackerReport.Limits.total)
            return state.report
        }
    }
}

extension TrackerReport.Disk {
    init(_ failure: StorageFailure?) {
        self =
            switch failure {
            case nil: .works
            case .full: .full
            case .locked: .locked
            case .readOnly: .readOnly
            case .broken: .broken
            }
    }
}
