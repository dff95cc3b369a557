// The JSON of what trackers say of themselves.

import Primitives
import TrackerLogic
import Wire

/// The JSON of what trackers say of themselves, and of what is wrong.
struct ReportDocument: Encodable {
    struct LatencyDocument: Encodable {
        var median: Double
        var p99: Double

        init(_ latency: TrackerReport.Latency) {
            median = Double(latency.median) / 1e6
            p99 = Double(latency.p99) / 1e6
        }
    }

    /// Another tracker, as the one that reports hears it.
    struct HeardDocument: Encodable {
        var id: UInt32
        var silentSeconds: Double
        var isUp: Bool
    }

    /// Since it came.
    var ageSeconds: Double
    var hears: [HeardDocument]
    var version: String
    var host: String
    var clients: String
    var console: String
    var problem: String
    var durability: String
    var disk: String
    var announcesPerSecond: UInt32
    var answerSeconds: LatencyDocument
    var commitSeconds: LatencyDocument
    var writeSeconds: LatencyDocument
    var roundTripSeconds: LatencyDocument
    var openFiles: UInt32
    var maxFiles: UInt32
    var receiveBufferBytes: UInt32
    var wantedReceiveBufferBytes: UInt32
    var lostDatagrams: UInt64
    var clockDifferenceSeconds: Double

    /// What a tracker says of itself, as JSON has it.
    ///
    /// - Parameters:
    ///   - report: as it came over the bus.
    ///   - clockDifference: milliseconds by which its clock is ahead.
    ///   - age: since it came.
    init(_ report: TrackerReport, clockDifference: Int64, age: Duration) {
        ageSeconds = Double(age.wholeMilliseconds) / 1000
        hears = report.heard.map { HeardDocument(id: $0.id, silentSeconds: Double($0.silence), isUp: $0.isUp) }
        version = "\(report.version)"
        host = "\(report.host)"
        clients = "\(report.clients)"
        console = "\(report.console)"
        problem = "\(report.problem)"
        durability = "\(report.durability)"
        disk = "\(report.disk)"
        announcesPerSecond = report.announceRate
        answerSeconds = LatencyDocument(report.answers)
        commitSeconds = LatencyDocument(report.commits)
        writeSeconds = LatencyDocument(report.writes)
        roundTripSeconds = LatencyDocument(report.roundTrips)
        openFiles = report.openFiles
        maxFiles = report.maxFiles
        receiveBufferBytes = report.receiveBuffer
        wantedReceiveBufferBytes = report.wantedReceiveBuffer
        lostDatagrams = report.lostDatagrams
        clockDifferenceSeconds = Double(clockDifference) / 1000
    }

    /// What the tracker that is asked says of itself: whom it hears it knows by now, and exactly.
    init(own report: TrackerReport, of status: ClusterStatus) {
        self.init(report, clockDifference: 0, age: .zero)
        hears = status.trackers.filter { $0.life != status.life }.map { view in
            HeardDocument(
                id: view.life.id, silentSeconds: Double(view.silence.wholeMilliseconds) / 1000, isUp: view.role != nil)
        }
    }
}

struct FindingDocument: Encodable {
    var code: String
    var isSilence: Bool
    var text: String

    init(_ finding: Finding) {
        code = finding.code.rawValue
        isSilence = finding.isSilence
        text = finding.text
    }
}
