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
                if readyCount == 0 { trackers.starve(now: now) } else { trackers.fed() }
            case .failed(let tracker, let words):
                actions.append(.observe(.trackerFailed(tracker: tracker, words)))
            }
        }
    }
}
