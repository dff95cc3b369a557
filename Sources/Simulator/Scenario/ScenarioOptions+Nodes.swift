// From the options of a scenario to the configuration of its trackers, and to who is there.

import Primitives
import TrackerLogic

extension ScenarioOptions {
    /// Whether the tracker of this place is there.
    func hasTracker(_ place: Int) -> Bool { onlyTrackers?.contains(place + 1) ?? true }

    /// Whether the client or scraper of this place is there.
    func hasClient(_ place: Int) -> Bool {
        if place >= clientCount, !hasScrapers { return false }
        return onlyClients?.contains(place) ?? true
    }

    /// The trackers that a client asks, in order.
    ///
    /// Each tracker draws a lot, so that those who are there keep their order.
    func tier(of client: Int, seed: UInt64) -> [Int] {
        let all = (0..<nodeCount).filter(hasTracker)
        let lots = (0..<nodeCount).map { node -> UInt64 in
            var random = RandomStream(seed, .tier, client, node)
            return random.next()
        }
        return (all.isEmpty ? [0] : all).sorted { (lots[$0], $0) < (lots[$1], $1) }
    }

    /// Of all trackers, by their places; 0 is the id of who has none yet.
    func configurations(_ profile: Profile) -> [NodeConfiguration] {
        let memberCount = max(1, nodeCount - spareCount)
        let voters = (0..<memberCount).filter { hasTracker($0) || onlyTrackers == [] }
        let members = profile == .paxos ? voters.map { UInt32($0 + 1) } : []
        var cluster = profile.configuration(members: members)
        cluster.entry = entry
        cluster.forwardPause = forwardPause
        // Members are called by their numbers.
        let unnumberedCount = cluster.mode == .quorum ? 0 : unnumberedCount
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
            configuration.limits.peersPerSwarm = maxPeersPerSwarm
            configuration.limits.peersPerAddress = maxPeersPerAddress
            configuration.limits.updatesPerEntry = updatesPerEntry
            configuration.limits.waitingRequests = waitingRequests
            configuration.limits.errorsPerSecond = errorsPerSecond
            configuration.limits.uploads = maxUploads
            configuration.uploadPatience = 6
            if trustsVisitors { configuration.trusted = AddressPlan.visitorPrefixes }
            #if PLANTED_BUGS
                configuration.plantedBug = plantedBug
            #endif
            return configuration
        }
    }
}
