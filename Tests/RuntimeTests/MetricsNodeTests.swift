import Primitives
import Testing
import TrackerLogic
import Web
import Wire

@Suite("Metrics: the node and the process")
struct MetricsNodeTests {
    static func status(role: Role = .master) -> NodeStatus {
        var table = TableCounts()
        (table.torrents, table.peersIPv4, table.peersIPv6, table.seeders) = (11, 12, 13, 14)
        var counters = Counters()
        (counters.connects, counters.announces, counters.scrapes) = (101, 102, 103)
        (counters.errors, counters.errorsWithheld, counters.ignored, counters.dropped) = (104, 105, 106, 107)
        (counters.entries, counters.updates, counters.expired, counters.completed) = (108, 109, 110, .max)
        (counters.timedOut, counters.implausible) = (111, 112)
        return NodeStatus(
            id: 7, role: role, epoch: Epoch(round: 3, id: 7), commitIndex: 20, lastIndex: 21, digest: 0xABC,
            accessMode: .private, table: table, registeredTorrents: 15, interval: 1800, waitingRequests: 16,
            counters: counters)
    }

    @Test
    func `every figure of the status is there, totals as counters, under its name`() {
        var text = PrometheusText()
        NodeMetrics.write(Self.status(), into: &text)
        let samples = text.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(
            samples == [
                "swarmkeeper_up 1", "swarmkeeper_connects_total 101", "swarmkeeper_announces_total 102",
                "swarmkeeper_scrapes_total 103", "swarmkeeper_errors_total 104",
                "swarmkeeper_errors_withheld_total 105", "swarmkeeper_ignored_total 106",
                "swarmkeeper_dropped_total 107", "swarmkeeper_timed_out_total 111",
                "swarmkeeper_implausible_messages_total 112",
                "swarmkeeper_entries_total 108", "swarmkeeper_updates_total 109",
                "swarmkeeper_expired_total 110", "swarmkeeper_completed_total 18446744073709551615",
                "swarmkeeper_torrents 11", "swarmkeeper_peers{family=\"ipv4\"} 12",
                "swarmkeeper_peers{family=\"ipv6\"} 13", "swarmkeeper_seeders 14",
                "swarmkeeper_registered_torrents 15", "swarmkeeper_interval_seconds 1800",
                "swarmkeeper_waiting_requests 16", "swarmkeeper_id 7", "swarmkeeper_role{role=\"restoring\"} 0",
                "swarmkeeper_role{role=\"newcomer\"} 0", "swarmkeeper_role{role=\"slave\"} 0",
                "swarmkeeper_role{role=\"candidate\"} 0", "swarmkeeper_role{role=\"master\"} 1",
                "swarmkeeper_role{role=\"draining\"} 0", "swarmkeeper_role{role=\"failed\"} 0",
                "swarmkeeper_role{role=\"stopped\"} 0",
                "swarmkeeper_epoch_round 3", "swarmkeeper_epoch_id 7", "swarmkeeper_commit_index 20",
                "swarmkeeper_last_index 21",
            ])
        #expect(text.text.contains("# TYPE swarmkeeper_announces_total counter\n"))
        #expect(text.text.contains("# HELP swarmkeeper_peers Peers of all swarms.\n# TYPE swarmkeeper_peers gauge\n"))
    }

    @Test
    func `what it sees of its cluster is there: the others, the bus, messages and elections`() {
        var text = PrometheusText()
        ClusterMetrics.write(StillCluster.report, into: &text)
        let samples = text.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map { $0.dropFirst("swarmkeeper_".count) }
        #expect(
            samples == [
                "silent 0", "finding{code=\"starting\"} 0", "finding{code=\"stopping\"} 0",
                "finding{code=\"diskBroken\"} 0", "finding{code=\"diskFails\"} 0", "finding{code=\"busLost\"} 0",
                "finding{code=\"otherKey\"} 1", "finding{code=\"otherCluster\"} 0",
                "finding{code=\"otherVersion\"} 0", "finding{code=\"refused\"} 0",
                "finding{code=\"otherMembers\"} 0", "finding{code=\"otherSettings\"} 0",
                "finding{code=\"waitsForMembers\"} 0", "finding{code=\"noMajority\"} 0",
                "finding{code=\"fetchesState\"} 0", "finding{code=\"election\"} 0",
                "finding{code=\"kernelDrops\"} 0", "disk{state=\"works\"} 0", "disk{state=\"full\"} 1",
                "disk{state=\"locked\"} 0", "disk{state=\"readOnly\"} 0", "disk{state=\"broken\"} 0",
                "cluster_fenced 0", "cluster_serving 1", "cluster_master 2", "cluster_voters 3",
                "cluster_majority 2", "cluster_tracker_voter{tracker=\"1\"} 1",
                "cluster_tracker_voter{tracker=\"2\"} 1", "cluster_tracker_voter{tracker=\"3\"} 1",
                "cluster_tracker_up{tracker=\"1\"} 1", "cluster_tracker_up{tracker=\"2\"} 1",
                "cluster_tracker_up{tracker=\"3\"} 0",
                "cluster_tracker_silent_seconds{tracker=\"1\"} 0",
                "cluster_tracker_silent_seconds{tracker=\"2\"} 0.125",
                "cluster_tracker_silent_seconds{tracker=\"3\"} 70", "cluster_tracker_lag_entries{tracker=\"1\"} 0",
                "cluster_tracker_lag_entries{tracker=\"2\"} 0", "cluster_tracker_lag_entries{tracker=\"3\"} 5",
                "cluster_messages_received_total 211", "cluster_messages_sent_total 212",
                "cluster_messages_malformed_total 213", "cluster_messages_other_version_total 215",
                "cluster_messages_dropped_total 214", "bus_up 1",
                "bus_sent_total 201", "bus_received_total 202", "bus_dropped_total 203", "bus_rejected_total 204",
                "bus_repaired_total 205", "bus_reconnections_total 206", "cluster_suspicions_total 221",
                "cluster_candidacies_total 222", "cluster_elections_won_total 223", "cluster_step_downs_total 224",
                "cluster_transfers_total 225", "cluster_merges_total 226", "cluster_divergences_total 227",
            ])
    }

    @Test
    func `a node that does not answer is down, and nothing else is claimed`() {
        var text = PrometheusText()
        NodeMetrics.write(nil, into: &text)
        #expect(text.text.hasSuffix("\nswarmkeeper_up 0\n"))
        #expect(text.text.split(separator: "\n").count == 3)
    }

    @Test
    func `the process knows its memory, time, files and start`() throws {
        let process = try #require(ProcessMetrics.read())
        #expect((1_000_000..<100_000_000_000).contains(process.residentByteCount))
        #expect(process.virtualByteCount >= process.residentByteCount)
        #expect(process.cpuSeconds > 0)
        #expect((3..<1_000_000).contains(process.openFileCount))
        #expect(process.maxFileCount >= 64)
        // After 2020, and not in the future.
        #expect(process.startTimeSeconds > 1_577_836_800)
        var text = PrometheusText()
        process.write(into: &text)
        for name in [
            "process_cpu_seconds_total", "process_max_fds", "process_open_fds", "process_resident_memory_bytes",
            "process_start_time_seconds", "process_virtual_memory_bytes",
        ] {
            #expect(text.text.contains("\n\(name) "))
        }
    }

    @Test
    func `processor time only grows`() throws {
        let before = try #require(ProcessMetrics.read()).cpuSeconds
        var last = before
        let end = ContinuousClock.now.advanced(by: Waiting.most)
        while last == before, ContinuousClock.now < end {
            let now = try #require(ProcessMetrics.read()).cpuSeconds
            #expect(now >= last)
            last = now
        }
        #expect(last > before)
    }
}
