/// From the options of a scenario to the configuration of its trackers, and to what its people are like.

import Primitives
import TrackerLogic

extension ClusterOptions {
    /// What people do, for `Workload`.
    var people: ScenarioOptions {
        var people = ScenarioOptions()
        people.clientCount = clientCount
        people.swarmCount = swarmCount
        people.isFlashCrowd = isFlashCrowd
        people.stay = stay
        return people
    }

    /// Of all trackers, by their places; 0 is the id of who has none yet.
    func configurations(_ profile: ClusterProfile) -> [NodeConfiguration] {
        let memberCount = max(1, nodeCount - spareCount)
        let members = profile == .paxos ? (1...UInt32(memberCount)).map { $0 } : []
        var cluster = profile.configuration(members: members)
        cluster.entry = entry
        cluster.handOnPause = handOnPause
        return (0..<nodeCount).map { place in
            var configuration = NodeConfiguration()
            // Whoever is given a number, or takes one, must not take one that somebody else was configured with.
            let number = UInt32(place + 1) + (unnumberedCount > 0 ? 100 : 0)
            configuration.id = place < nodeCount - unnumberedCount ? number : 0
            configuration.cluster = cluster
            configuration.interval = interval
            configuration.minInterval = interval / 2
            configuration.intervalJitter = intervalJitter
            configuration.targetRate = targetRate
            configuration.shardCount = shardCount
            configuration.keepsSwarms = keepsSwarms
            configuration.snapshotAge = snapshotAge
            configuration.snapshotLogByteCount = snapshotLogByteCount
            configuration.tailCount = tailCount
            configuration.limits.torrents = maxTorrents
            configuration.limits.peers = maxPeers
            configuration.limits.updatesPerEntry = updatesPerEntry
            configuration.limits.waitingRequests = waitingRequests
            configuration.limits.errorsPerSecond = 1000
            #if PLANTED_BUGS
                configuration.plantedBug = plantedBug
            #endif
            return configuration
        }
    }
}
