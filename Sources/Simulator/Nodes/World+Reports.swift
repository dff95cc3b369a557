// What trackers tell each other about how they fare, and whether what each tells of the others is true.

import Primitives
import TrackerLogic
import Wire

/// What trackers have said of themselves, by tracker; empty where they say nothing.
struct ReportWatch: Sendable {
    struct Seat: Sendable {
        /// When its next report is due, and how many it has made in all its lives.
        var due: Instant?
        var made: UInt32 = 0
        /// By other tracker: the reports of it that have come in this life, the last one first.
        var heard: [UInt32]
        var heardAt: [Instant]
        var random: RandomStream
    }

    var seats: [Seat]

    init(nodeCount: Int, seed: UInt64) {
        seats = (0..<nodeCount).map { node in
            Seat(
                heard: Array(repeating: 0, count: nodeCount),
                heardAt: Array(repeating: Instant(nanoseconds: 0), count: nodeCount),
                random: RandomStream(seed, .report, node))
        }
    }
}

extension World {
    /// A tracker reports about once a keepalive, as its owner does; and what it knows of the others is looked at.
    mutating func reportIfDue(_ node: Int, _ life: Int) {
        guard options.hasReports, nodes[node].life == life, nodes[node].heldUntil <= now else { return }
        let keepalive = nodes[node].told.cluster.keepalive
        guard let due = reports.seats[node].due else {
            reports.seats[node].due = now + reports.seats[node].random.between(.zero, keepalive)
            return
        }
        guard now >= due else { return }
        reports.seats[node].due = now + keepalive
        checkStatus(node)
        reports.seats[node].made += 1
        var report = TrackerReport()
        // By its number a report is known again, and by that of the tracker.
        (report.openFiles, report.maxFiles) = (reports.seats[node].made, UInt32(node))
        report.wallTime = UInt64(max(nodes[node].clock.reading(at: now).wall.milliseconds, 0))
        step(node, .reportMade(report))
    }

    /// A tracker begins a life, and has heard nothing in it.
    mutating func forgetReports(_ node: Int) {
        guard options.hasReports else { return }
        reports.seats[node].due = nil
        for other in nodes.indices { reports.seats[node].heard[other] = 0 }
    }

    /// A report comes to a tracker.
    mutating func noteReport(_ message: ClusterMessage, from other: Int, to node: Int) {
        guard options.hasReports, case .report(let report) = message.body else { return }
        reports.seats[node].heard[other] = report.openFiles
        reports.seats[node].heardAt[other] = now
    }

    /// What a tracker tells of the cluster: what the others last said, and how long ago.
    private mutating func checkStatus(_ node: Int) {
        guard let status = nodes[node].clusterStatus(at: now) else { return }
        for view in status.trackers where view.life != status.life {
            guard let other = nodes.indices.first(where: { nodes[$0].inspection?.life == view.life }) else { continue }
            checkView(view, of: other, by: node, status)
        }
        let ids = status.trackers.map { $0.life.id }
        if ids != ids.sorted() || !status.trackers.contains(where: { $0.life == status.life && $0.silence == .zero }) {
            violate(
                .statusIsTrue,
                "\(trace.names[node]) lists the trackers \(ids.inBrackets), and itself is \(status.life.id)"
            )
        }
        if let master = status.master, let own = nodes[node].inspection, own.promised.id != master {
            violate(.statusIsTrue, "\(trace.names[node]) follows tracker \(master), and has promised \(own.promised)")
        }
    }

    private mutating func checkView(_ view: TrackerView, of other: Int, by node: Int, _ status: ClusterStatus) {
        let name = trace.names[other]
        // The clock that tells of silence may run fast or slow by as much as clocks may.
        let slack = Duration.milliseconds(50) + view.reportAge / 100 + view.silence / 100
        if let report = view.report {
            let heard = reports.seats[node].heard[other]
            if report.report.maxFiles != UInt32(other) || report.report.openFiles > reports.seats[other].made {
                violate(.statusIsTrue, "\(trace.names[node]) tells a report of \(name) that it has never made")
            }
            let age = now - reports.seats[node].heardAt[other]
            if heard == report.report.openFiles, view.reportAge + slack < age || view.reportAge > age + slack {
                violate(
                    .statusIsTrue,
                    "\(trace.names[node]) says that the report of \(name) is \(view.reportAge.wholeMilliseconds) ms "
                        + "old, and it came \(age.wholeMilliseconds) ms ago")
            }
            // Of one id only what its present life says counts, and nothing that is not known to be one of ours.
            if heard > report.report.openFiles, !mayBeLeftOut(other), !mayBeLeftOut(node) {
                violate(
                    .statusIsTrue,
                    "\(trace.names[node]) tells report \(report.report.openFiles) of \(name), and has heard report "
                        + "\(heard) since")
            }
            if report.report.heard.contains(where: { $0.id == view.life.id }) {
                violate(.statusIsTrue, "\(name) reports that it hears itself")
            }
        }
        let silence = now - checks.lastHeard(other, by: node)
        if view.silence + slack < silence, !mayBeLeftOut(other), !mayBeLeftOut(node) {
            violate(
                .statusIsTrue,
                "\(trace.names[node]) says that it heard \(name) \(view.silence.wholeMilliseconds) ms ago, and nothing "
                    + "has come for \(silence.wholeMilliseconds) ms")
        }
        // A merge, or a state that is fetched, takes a history back.
        guard checks.promises.hasOneHistory else { return }
        let position = view.position.index
        if let applied = nodes[other].appliedIndex, position > applied, view.life.id != status.master {
            violate(
                .statusIsTrue,
                "\(trace.names[node]) says that \(name) has applied entry \(position), and it has \(applied)")
        }
        if view.lag > status.position.index {
            violate(
                .statusIsTrue,
                "\(trace.names[node]) says that \(name) is \(view.lag) entries behind its \(status.position.index)")
        }
    }
}
