// A cluster as one of its trackers sees it.

import Client

/// A cluster as one of its trackers sees it, for people.
enum ClusterTable {
    static func text(_ cluster: ClusterView) -> String {
        var facts = TextTable(.left, .left)
        let master = cluster.master == 0 ? "no master" : "master \(cluster.master)"
        facts.add("cluster", "\(cluster.mode), \(master), epoch \(cluster.epoch.round).\(cluster.epoch.id)")
        facts.add("voters", cluster.voters.map(String.init).joined(separator: ", "))
        if let bus = cluster.bus {
            // With several brokers it is worth knowing which.
            let place = bus.endpoint.contains(",") ? bus.broker.map { " at \($0)" } ?? "" : ""
            let state = bus.isConnected ? "works" + place : "lost"
            facts.add(
                "bus",
                "\(bus.endpoint) \(state); \(Figures.grouped(bus.sent)) sent, \(Figures.grouped(bus.received)) "
                    + "received, \(Figures.grouped(bus.dropped)) dropped, \(Figures.grouped(bus.rejected)) rejected")
            if !bus.isConnected, let problem = bus.lastProblem { facts.add("", problem) }
        }
        if let count = cluster.messages?.otherVersion, count > 0 {
            facts.add(
                "versions",
                "\(Figures.counted(count, "message")) of trackers of another version; they are not heard, and the log "
                    + "names them")
        }
        // Where too few disks have room, the tracker serves scrapes, and refuses what people want of it.
        let isSilent = !cluster.isServing || cluster.findings?.contains(where: \.isSilence) == true
        facts.add("clients", isSilent ? "get no answer now" : "are answered")
        for (number, finding) in (cluster.findings ?? []).enumerated() {
            facts.add(number == 0 ? (finding.isSilence ? "because" : "mind") : "", finding.text)
        }
        return facts.text() + "\n" + trackers(cluster)
    }

    private static func trackers(_ cluster: ClusterView) -> String {
        var table = TextTable(.right, .left, .left, .right, .right, .right, .left, .left, .left, .left)
        table.add("id", "role", "epoch", "heard", "applied", "lag", "in sync", "vote", "host", "clients")
        for tracker in cluster.trackers {
            table.add(
                "\(tracker.id)", tracker.role, "\(tracker.epoch.round).\(tracker.epoch.id)",
                tracker.isThis ? "this one" : "\(Figures.decimal(tracker.silentSeconds, 1)) s ago",
                Figures.grouped(tracker.commitIndex), Figures.grouped(tracker.lag), cluster.step(of: tracker).rawValue,
                tracker.hasVote ? "yes" : "no", tracker.report?.host ?? "", tracker.report?.clients ?? "")
        }
        return table.text { Terminal.output.styled($0, .bold) }
    }
}
