// The interval that clients are told, worked out once more.

import Primitives
import TrackerLogic

/// The interval that clients are told, worked out once more from the peers that there were: as many seconds as there
/// are announces to spread, so that no more come in a second than the operator wants, but no fewer than he says, nor
/// more than four times as many (docs/configuration.md, `announce.target-rate`).
struct ToldIntervals: Sendable {
    /// Peers after each of the last entries, the latest last: whoever made the next one had applied all but the last
    /// two, which may have been under way.
    private var peers: [Int] = [0]
    /// Whether all trackers were told the same; of others it is not known who has proposed what.
    private var areAlike = true

    /// An entry is to be carried over to the model, which has so many peers; a stop may have emptied it since the last.
    mutating func note(_ count: Int, _ scene: Scene) {
        if areAlike {
            let (interval, rate) = (scene.configurations[0].interval, scene.configurations[0].targetRate)
            areAlike = scene.nodes.indices.allSatisfy {
                scene.nodes[$0].configuration.interval == interval
                    && scene.nodes[$0].configuration.targetRate == rate
            }
        }
        if peers.count == 4 { peers.removeFirst() }
        peers.append(count)
    }

    /// What is wrong with an interval in that entry.
    func fault(in seconds: UInt32, _ configuration: NodeConfiguration) -> String? {
        guard areAlike else { return nil }
        let base = Int(configuration.interval)
        let rate = max(1, Int(configuration.targetRate))
        let suitable = peers.map { min(max(base, ($0 + rate - 1) / rate), 4 * base) }
        if suitable.contains(Int(seconds)) { return nil }
        return "the interval is to be \(seconds) s, and what suits is one of \(suitable.inBrackets)"
    }
}
