// A node's own figures as metrics.

import Primitives
import TrackerLogic
import Wire

/// A node's own figures as metrics.
///
/// They are read off a `NodeStatus` at each scrape, not counted a second time: the totals there only grow in the
/// life of a process, which is what Prometheus asks of a counter.
public enum NodeMetrics {
    /// Appends a node's figures as metrics.
    ///
    /// - Parameters:
    ///   - status: nil where the node does not answer; then only `swarmkeeper_up` is told, as 0.
    ///   - text: of one scrape.
    public static func write(_ status: NodeStatus?, into text: inout PrometheusText) {
        text.single(
            "swarmkeeper_up", .gauge, help: "Whether the tracker's logic answers.", status == nil ? 0 : 1)
        guard let status else { return }
        totals(status.counters, into: &text)
        swarms(status, into: &text)
        cluster(status, into: &text)
    }

    private static func totals(_ counters: Counters, into text: inout PrometheusText) {
        let totals: [(name: String, help: String, value: UInt64)] = [
            ("connects", "Connection ids given out (BEP 15).", counters.connects),
            ("announces", "Announces answered here, errors apart.", counters.announces),
            ("scrapes", "Scrapes answered here, errors apart.", counters.scrapes),
            ("errors", "Requests answered with an error.", counters.errors),
            ("errors_withheld", "Errors withheld by the limit per address.", counters.errorsWithheld),
            ("ignored", "Datagrams that got silence: junk or forged.", counters.ignored),
            ("dropped", "Requests dropped because too many were waiting.", counters.dropped),
            ("timed_out", "Requests given up because nobody could answer in time.", counters.timedOut),
            (
                "implausible_messages", "Messages of other trackers with an epoch that no election can have come to.",
                counters.implausible
            ),
            ("entries", "Log entries applied.", counters.entries),
            ("updates", "Updates applied.", counters.updates),
            ("expired", "Peers taken out because they fell silent.", counters.expired),
            ("completed", "Downloads completed.", counters.completed),
        ]
        for total in totals {
            text.single("swarmkeeper_\(total.name)_total", .counter, help: total.help, total.value)
        }
    }

    private static func swarms(_ status: NodeStatus, into text: inout PrometheusText) {
        let table = status.table
        text.single("swarmkeeper_torrents", .gauge, help: "Torrents with peers or counts.", table.torrents)
        text.family("swarmkeeper_peers", .gauge, help: "Peers of all swarms.")
        text.sample("swarmkeeper_peers", PrometheusLabels([("family", "ipv4")]), table.peersIPv4)
        text.sample("swarmkeeper_peers", PrometheusLabels([("family", "ipv6")]), table.peersIPv6)
        text.single("swarmkeeper_seeders", .gauge, help: "Peers that have everything.", table.seeders)
        text.single(
            "swarmkeeper_registered_torrents", .gauge, help: "Torrents in the registry.", status.registeredTorrents)
        text.single(
            "swarmkeeper_interval_seconds", .gauge, help: "The interval that clients are told now.", status.interval)
        text.single(
            "swarmkeeper_waiting_requests", .gauge, help: "Requests that wait for their entry.",
            status.waitingRequests)
    }

    /// All there are; the switch makes sure of it.
    private static let roles: [Role] =
        switch Role.master {
        case .restoring, .newcomer, .slave, .candidate, .master, .draining, .failed, .stopped:
            [.restoring, .newcomer, .slave, .candidate, .master, .draining, .failed, .stopped]
        }

    private static func cluster(_ status: NodeStatus, into text: inout PrometheusText) {
        text.single("swarmkeeper_id", .gauge, help: "This tracker's number.", status.id)
        text.family("swarmkeeper_role", .gauge, help: "1 for the role that the tracker has, 0 for the others.")
        for role in roles {
            let labels = PrometheusLabels([("role", role.rawValue)])
            text.sample("swarmkeeper_role", labels, role == status.role ? 1 : 0)
        }
        text.single("swarmkeeper_epoch_round", .gauge, help: "The round of the epoch.", status.epoch.round)
        text.single("swarmkeeper_epoch_id", .gauge, help: "The id in the epoch: its master's.", status.epoch.id)
        text.single(
            "swarmkeeper_commit_index", .gauge, help: "The last entry that was decided and applied.",
            status.commitIndex)
        text.single("swarmkeeper_last_index", .gauge, help: "The last entry of the log.", status.lastIndex)
    }
}
