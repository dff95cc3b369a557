// What trackers have said.

import Primitives
import Wire

extension TorrentSession {
    mutating func trackersHaveSaid(
        _ outcomes: [TrackerSet.Outcome], _ now: Instant, _ actions: inout [Action]
    ) {
        for outcome in outcomes {
            switch outcome {
            case .answered(let tracker, let seeders, let leechers, let peers):
                actions.append(
                    .observe(
                        .trackerAnswered(tracker: tracker, seeders: seeders, leechers: leechers, peers: peers.count)))
                peersFound(peers, .tracker, now, &actions)
                if isConnected { trackers.fed() } else { trackers.starve(now: now) }
            case .failed(let tracker, let words):
                actions.append(.observe(.trackerFailed(tracker: tracker, words)))
            }
        }
    }
}
