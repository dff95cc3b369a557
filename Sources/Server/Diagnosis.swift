// Why is nobody answered.

import Bus
import TrackerLogic
import Web
import Wire

/// Says why nobody is answered, and what else is wrong.
///
/// One answer for the log, the status, `/healthz`, the report to the other trackers, `tracker doctor` and the clients
/// alike. Pure: what the node, its bus and its disk say goes in, sentences come out, the cause first.
public enum Diagnosis {
    /// All that is wrong, the cause of silence first.
    ///
    /// - Parameters:
    ///   - node: what the node tells about itself.
    ///   - cluster: the cluster as it sees it.
    ///   - bus: nil for a tracker that is alone.
    ///   - tally: messages that this tracker has counted.
    ///   - lostDatagrams: that the kernel dropped in the last five minutes.
    /// - Returns: nothing where all is well.
    public static func findings(
        _ node: NodeStatus, _ cluster: ClusterStatus, bus: BusStatus?, tally: BusTally, lostDatagrams: UInt64 = 0
    ) -> [Finding] {
        var found: [Finding] = []
        let isSilent = !cluster.isServing
        func add(_ code: Finding.Code, _ words: String, detail: String = "", isSilence: Bool? = nil) {
            found.append(Finding(code, isSilence: isSilence ?? isSilent, words, detail: detail))
        }
        switch node.role {
        case .failed: add(.diskBroken, "the disk failed, and nobody can say what is on it", isSilence: true)
        case .stopped, .draining: add(.stopping, "the tracker stops", isSilence: true)
        case .restoring: add(.starting, "the tracker reads its record", isSilence: true)
        case .newcomer, .slave, .candidate, .master: break
        }
        if !found.isEmpty { return found }
        guard let mode = cluster.mode else {
            if let failure = node.storageFailure {
                add(.diskFails, "\(failure.words): announces are refused until they can be stored", isSilence: true)
            } else if isSilent {
                add(.starting, "the tracker is about to serve")
            }
            return found + drops(lostDatagrams)
        }
        if let bus, !bus.isConnected { add(.busLost, "the bus is lost", detail: bus.lastProblem ?? "") }
        let (disks, areWhy) = disks(node, cluster, isCutOff: !found.isEmpty || cluster.refusal != nil)
        if areWhy { found += disks }
        strangers(bus, tally, isSilent: isSilent, into: &found)
        mismatched(cluster, isSilent: isSilent, into: &found)
        if isSilent { silence(node, cluster, mode, into: &found) }
        if !areWhy { found += disks }
        return found + drops(lostDatagrams)
    }

    // MARK: - At the start

    /// What a tracker of a cluster waits for when its process has begun, before it answers anybody.
    public static func awaited(_ cluster: ClusterStatus) -> String {
        let others = cluster.voters.filter { $0 != cluster.life.id }
        if cluster.mode != .quorum { return "the bus, and for the master if there is one" }
        if others.isEmpty { return "the bus" }
        if cluster.isForming {
            return "the bus, and for a master that lets it in; a new cluster begins when \(named(others)) "
                + (others.count == 1 ? "is" : "are") + " there, too"
        }
        let needed = cluster.voters.count / 2 + 1
        return "the bus, and for a master, which takes \(needed) of \(named(cluster.voters))"
    }

    // MARK: - The bus

    /// Others on the bus whom this tracker cannot take for its own.
    private static func strangers(_ bus: BusStatus?, _ tally: BusTally, isSilent: Bool, into found: inout [Finding]) {
        for (reason, code, words) in [
            (BusRefusal.Reason.otherKey, Finding.Code.otherKey, "another key"),
            (.otherCluster, .otherCluster, "another cluster name"),
        ] {
            let refusals = bus?.refusals.filter { $0.reason == reason && $0.isRecent } ?? []
            guard !refusals.isEmpty else { continue }
            let each = refusals.map { "\(counted($0.count, "message")) refused from \($0.sender)" }
            // Clusters may share a network, so another name is a cause only where nobody else is heard.
            let isCause = isSilent && (reason == .otherKey || found.isEmpty)
            found.append(Finding(code, isSilence: isCause, words, detail: each.joined(separator: ", ")))
        }
        if tally.otherVersion > 0 {
            found.append(
                Finding(
                    .otherVersion, isSilence: false,
                    "another release (\(counted(tally.otherVersion, "message")) refused; the log names who)"))
        }
    }

    private static func mismatched(_ cluster: ClusterStatus, isSilent: Bool, into found: inout [Finding]) {
        let isRefused = cluster.refusal != nil
        if let refusal = cluster.refusal {
            found.append(Finding(.refused, isSilence: isSilent, "this tracker may not join: \(refusal.words)"))
        }
        let others = cluster.mismatched.filter { $0.settings.contains(.members) }
        if !others.isEmpty {
            found.append(
                Finding(
                    .otherMembers, isSilence: isSilent && !isRefused,
                    "other members at \(named(others.map(\.life.id)))"))
        }
        for tracker in cluster.mismatched where !tracker.settings.contains(.members) {
            let flags = tracker.settings.map(\.flag).joined(separator: ", ")
            found.append(
                Finding(
                    .otherSettings, isSilence: isSilent && tracker.isExcluded && !isRefused,
                    "other settings at \(named([tracker.life.id])): \(flags)"))
        }
    }

    // MARK: - The cluster

    private static func silence(
        _ node: NodeStatus, _ cluster: ClusterStatus, _ mode: ClusterConfiguration.Mode, into found: inout [Finding]
    ) {
        // A tracker that is cut off from the bus, or refused, hears nobody: that says nothing more.
        if found.contains(where: { $0.code == .busLost || $0.code == .refused }) { return }
        let missing = unheard(cluster)
        func add(_ code: Finding.Code, _ words: String) { found.append(Finding(code, isSilence: true, words)) }
        if cluster.isForming {
            let never = cluster.neverHeard.filter { id in !cluster.mismatched.contains { $0.life.id == id } }
            if !never.isEmpty {
                let have = never.count == 1 ? "which has" : "which have"
                add(
                    .waitsForMembers,
                    "waits for \(named(never)), \(have) never been heard: all members have to be up once")
            } else if !missing.isEmpty {
                add(.waitsForMembers, "waits for \(named(missing)): all members have to be up once, at one time")
            } else {
                add(.waitsForMembers, "the members are there, and form the cluster")
            }
            return
        }
        let needed = cluster.voters.count / 2 + 1
        let there = cluster.voters.count - missing.count
        if mode == .quorum, there < needed {
            add(
                .noMajority,
                "no majority (\(there) of \(cluster.voters.count)): \(named(missing)) "
                    + (missing.count == 1 ? "is not heard" : "are not heard")
            )
        } else if cluster.isFetching {
            add(.fetchesState, "fetches the whole state from tracker \(cluster.master ?? 0)")
        } else if node.role == .master {
            add(.election, "the new master has still to learn what was decided before")
        } else if let master = cluster.master {
            add(.fetchesState, "follows tracker \(master), and has still to catch up")
        } else if let heard = cluster.trackers.first(where: { $0.role == .master && $0.life != cluster.life }) {
            add(.fetchesState, "waits until tracker \(heard.life.id), the master, lets it in")
        } else {
            add(.election, "there is no master: an election is under way")
        }
    }

    /// The voters that are down, as far as this tracker hears.
    private static func unheard(_ cluster: ClusterStatus) -> [UInt32] {
        let up = cluster.trackers.filter { $0.role != nil }.map(\.life.id)
        return cluster.voters.filter { !up.contains($0) }
    }

    // MARK: - Disks

    /// Whose disks fail, and what comes of it.
    ///
    /// A voter that is down stores as little as one whose disk fails: both are missed where a majority has to store an
    /// entry, or its promise in an election.
    ///
    /// - Parameters:
    ///   - node: what the node tells about itself; its disk's state counts for it.
    ///   - cluster: the cluster as it sees it; of the others, what they have reported counts.
    ///   - isCutOff: whether this tracker hears nobody, which says nothing of the others.
    /// - Returns: also whether the disks come first of all: enough voters are heard, and too few of them can store.
    private static func disks(
        _ node: NodeStatus, _ cluster: ClusterStatus, isCutOff: Bool
    ) -> (findings: [Finding], areWhy: Bool) {
        var failing: [UInt32] = []
        for tracker in cluster.trackers where tracker.role != nil {
            let isOwn = tracker.life == cluster.life
            let fails = isOwn ? node.storageFailure != nil : tracker.report.map { $0.report.disk != .works } ?? false
            if fails { failing.append(tracker.life.id) }
        }
        let missing = isCutOff ? [] : unheard(cluster)
        let heard = cluster.voters.filter { !missing.contains($0) }
        let storing = heard.filter { !failing.contains($0) }
        let needed = cluster.voters.count / 2 + 1
        let isRefusing = storing.count < needed && storing.count < heard.count
        let (own, theirs) = loss(cluster, isRefusing: isRefusing, areAllHeard: missing.isEmpty)
        let verb = missing.count == 1 ? "is" : "are"
        let besides = isRefusing && !missing.isEmpty ? ", and \(named(missing)) \(verb) not heard" : ""
        var found: [Finding] = []
        func add(_ words: String) { found.append(Finding(.diskFails, isSilence: isRefusing, words)) }
        if let failure = node.storageFailure { add("\(failure.words) at this tracker\(besides): \(own)") }
        let others = failing.filter { $0 != cluster.life.id }
        if !others.isEmpty { add("the disk fails at \(named(others))\(besides): \(theirs)") }
        // Where others have to be there first, room on a disk would not help.
        let awaited = cluster.isForming ? cluster.voters.count : needed
        return (found, areWhy: isRefusing && !isCutOff && heard.count >= awaited)
    }

    /// What comes of disks that fail, as is said of this tracker's own and of another's.
    private static func loss(
        _ cluster: ClusterStatus, isRefusing: Bool, areAllHeard: Bool
    ) -> (own: String, theirs: String) {
        guard isRefusing else {
            return ("its vote is missing; the others store what is announced", "a vote is missing")
        }
        let hasMaster = cluster.master != nil || cluster.trackers.contains { $0.role == .master }
        if !cluster.isServing, !hasMaster {
            let words = "no election can end, for too few trackers can store their promise"
            return (words, words)
        }
        // The votes of those that are down are awaited, so what is announced may wait rather than be refused.
        let words = "too few trackers can store what is announced"
        guard areAllHeard else { return (words, words) }
        return ("announces are refused: too few trackers can store them", "announces are refused")
    }

    private static func drops(_ count: UInt64) -> [Finding] {
        guard count > 0 else { return [] }
        let words =
            "the kernel dropped \(counted(count, "datagram")) of clients in the last five minutes: the receive buffer "
            + "was full"
        return [Finding(.kernelDrops, isSilence: false, words)]
    }

    // MARK: - Words

    /// `tracker 2`, `trackers 2 and 3`.
    static func named(_ ids: [UInt32]) -> String {
        let known = ids.filter { $0 != 0 }.sorted().map(String.init)
        guard let last = known.last else { return "a tracker without a number" }
        if known.count == 1 { return "tracker \(last)" }
        return "trackers \(known.dropLast().joined(separator: ", ")) and \(last)"
    }

    private static func counted(_ count: UInt64, _ noun: String) -> String {
        "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
}

extension StorageFailure {
    var words: String {
        switch self {
        case .full: "disk full"
        case .locked: "the database is held by another program"
        case .readOnly: "the disk may not be written to"
        case .broken: "the disk failed"
        }
    }
}

extension JoinRefusal {
    var words: String {
        switch self {
        case .idTaken: "another one has its id; give each tracker an id of its own"
        case .clusterFull: "the cluster has as many trackers as it can take; stop one first"
        case .otherMembers: "it was told of other members than the cluster has; name the same to all"
        case .otherSettings: "it was told other settings than the cluster; give all trackers the same"
        }
    }
}
