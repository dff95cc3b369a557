// What a tracker sees of its cluster, as metrics.

import Bus
import Primitives
import TrackerLogic
import Wire

/// What a tracker sees of its cluster, as metrics: read off at each scrape.
public enum ClusterMetrics {
    /// Appends what a tracker sees of its cluster, as metrics.
    public static func write(_ report: ClusterReport, into text: inout PrometheusText) {
        health(report, into: &text)
        place(report.status, into: &text)
        messages(report, into: &text)
        elections(report.elections, into: &text)
    }

    private static func health(_ report: ClusterReport, into text: inout PrometheusText) {
        text.single(
            "swarmkeeper_silent", .gauge, help: "Whether clients get no answer, or their announces are refused.",
            Finding.problem(report.findings) == nil ? 0 : 1)
        text.family("swarmkeeper_finding", .gauge, help: "1 for what is wrong, 0 for what is not.")
        for code in Finding.Code.allCases {
            let labels = PrometheusLabels([("code", code.rawValue)])
            text.sample("swarmkeeper_finding", labels, report.findings.contains { $0.code == code } ? 1 : 0)
        }
        guard let own = report.own else { return }
        text.family("swarmkeeper_disk", .gauge, help: "1 for how the last write to the record went, 0 for the others.")
        for state in TrackerReport.Disk.allCases {
            text.sample("swarmkeeper_disk", PrometheusLabels([("state", "\(state)")]), state == own.disk ? 1 : 0)
        }
    }

    private static func place(_ status: ClusterStatus, into text: inout PrometheusText) {
        text.single(
            "swarmkeeper_cluster_fenced", .gauge, help: "Whether the tracker is cut off from the others.",
            status.isFenced ? 1 : 0)
        text.single(
            "swarmkeeper_cluster_serving", .gauge, help: "Whether the tracker answers clients.",
            status.isServing ? 1 : 0)
        text.single(
            "swarmkeeper_cluster_master", .gauge, help: "The master's id; 0 while there is none.", status.master ?? 0)
        text.single("swarmkeeper_cluster_voters", .gauge, help: "Trackers that vote.", status.voters.count)
        text.single(
            "swarmkeeper_cluster_majority", .gauge, help: "Votes that a decision takes; 0 where it takes no majority.",
            status.mode == .quorum ? status.voters.count / 2 + 1 : 0)
        text.family("swarmkeeper_cluster_tracker_voter", .gauge, help: "Whether a tracker's vote counts.")
        for tracker in status.trackers {
            text.sample("swarmkeeper_cluster_tracker_voter", label(tracker), tracker.hasVote ? 1 : 0)
        }
        text.family("swarmkeeper_cluster_tracker_up", .gauge, help: "Whether a tracker is heard.")
        for tracker in status.trackers {
            text.sample("swarmkeeper_cluster_tracker_up", label(tracker), tracker.role == nil ? 0 : 1)
        }
        text.family(
            "swarmkeeper_cluster_tracker_silent_seconds", .gauge, help: "Since a tracker's last message.")
        for tracker in status.trackers {
            text.sample(
                "swarmkeeper_cluster_tracker_silent_seconds", label(tracker),
                Double(tracker.silence.wholeMilliseconds) / 1000)
        }
        text.family(
            "swarmkeeper_cluster_tracker_lag_entries", .gauge,
            help: "Entries that a tracker lags behind this one, as of its last word.")
        for tracker in status.trackers {
            text.sample("swarmkeeper_cluster_tracker_lag_entries", label(tracker), Int64(clamping: tracker.lag))
        }
    }

    private static func label(_ tracker: TrackerView) -> PrometheusLabels {
        PrometheusLabels([("tracker", "\(tracker.life.id)")])
    }

    private static func messages(_ report: ClusterReport, into text: inout PrometheusText) {
        let tally = report.tally
        let totals: [(name: String, help: String, value: UInt64)] = [
            ("messages_received", "Messages of other trackers for this one.", tally.messagesIn),
            ("messages_sent", "Messages to other trackers.", tally.messagesOut),
            ("messages_malformed", "Authentic bytes that are no message of this version.", tally.malformed),
            ("messages_other_version", "Frames and messages of trackers of another version.", tally.otherVersion),
            ("messages_dropped", "Messages dropped because the tracker did not keep up.", tally.dropped),
        ]
        for total in totals {
            text.single("swarmkeeper_cluster_\(total.name)_total", .counter, help: total.help, total.value)
        }
        guard let bus = report.bus else { return }
        text.single("swarmkeeper_bus_up", .gauge, help: "Whether the bus works.", bus.isConnected ? 1 : 0)
        let counts: [(name: String, help: String, value: UInt64)] = [
            ("sent", "Messages handed to the network.", bus.sent),
            ("received", "Authentic messages that came.", bus.received),
            ("dropped", "Messages not sent because too many waited.", bus.dropped),
            ("rejected", "Frames that are forged, foreign, malformed or replayed.", bus.rejected),
            ("repaired", "Lost datagrams that were asked for again, and came.", bus.repaired),
            ("reconnections", "How often the bus was found again.", bus.reconnections),
        ]
        for count in counts {
            text.single("swarmkeeper_bus_\(count.name)_total", .counter, help: count.help, count.value)
        }
    }

    private static func elections(_ tally: ElectionTally, into text: inout PrometheusText) {
        let totals: [(name: String, help: String, value: UInt64)] = [
            ("suspicions", "Times that the tracker missed its master.", tally.suspicions),
            ("candidacies", "Times that it stood for master.", tally.candidacies),
            ("elections_won", "Times that it became master.", tally.victories),
            ("step_downs", "Times that it ceased to be master.", tally.stepDowns),
            ("transfers", "Whole states that it fetched.", tally.transfers),
            ("merges", "Times that it took in what the other side of a partition knew.", tally.merges),
            ("divergences", "Times that it held something else than its master.", tally.divergences),
        ]
        for total in totals {
            text.single("swarmkeeper_cluster_\(total.name)_total", .counter, help: total.help, total.value)
        }
    }
}
