// How trackers are asked.

import PeerLogic
import Primitives
import Wire

/// How trackers are asked: not again at once when they are silent or say no, not sooner than they want, and of the end
/// of a download once.
struct TrackerManners: Sendable {
    private struct Asked: Sendable {
        var tracker: Int
        var at = Instant(nanoseconds: 0)
        var failures = 0
        var failedAt = Instant(nanoseconds: 0)
        var completedCount = 0
        var hasAnswered = false
        var saidGoodbye = false
    }

    /// Announces that have nothing to say come no closer than this (BEP 3 leaves it to the tracker; ours say 60 s).
    private static let leastInterval = Duration.milliseconds(59_800)
    private static let firstWait = Duration.milliseconds(14_950)

    /// By peer.
    private var asked: [[Asked]]

    init(peerCount: Int) { asked = Array(repeating: [], count: peerCount) }

    mutating func began(_ peer: Int) { asked[peer].removeAll() }

    private mutating func place(_ peer: Int, _ tracker: Int) -> Int {
        if let place = asked[peer].firstIndex(where: { $0.tracker == tracker }) { return place }
        asked[peer].append(Asked(tracker: tracker))
        return asked[peer].count - 1
    }

    mutating func announces(
        _ peer: Int, _ tracker: Int, _ event: AnnounceEvent, at now: Instant, _ scene: inout TransferScene
    ) {
        let place = place(peer, tracker)
        let before = asked[peer][place]
        asked[peer][place].at = now
        asked[peer][place].saidGoodbye = event == .stopped
        if before.failures > 0, event != .stopped {
            let wait = Self.firstWait * (1 << Int64(min(before.failures - 1, 8)))
            if now - before.failedAt < wait {
                scene.violate(
                    .trackersAreSpared, at: now,
                    "\(TransferScene.name(peer)) asks tracker \(tracker) after \(before.failures) failures, "
                        + "\((now - before.failedAt).wholeMilliseconds) ms after the last")
            }
        }
        if before.hasAnswered, event == .none, now - before.at < Self.leastInterval {
            scene.violate(
                .trackersAreSpared, at: now,
                "\(TransferScene.name(peer)) asks tracker \(tracker) again "
                    + "after \((now - before.at).wholeMilliseconds) ms")
        }
        guard event == .completed else { return }
        asked[peer][place].completedCount += 1
        if scene.peers[peer].beganComplete || !scene.peers[peer].wasComplete {
            scene.violate(
                .trackersAreSpared, at: now,
                "\(TransferScene.name(peer)) says that it has completed what it "
                    + (scene.peers[peer].beganComplete ? "had" : "lacks"))
        }
    }

    mutating func answered(_ peer: Int, _ tracker: Int, isGood: Bool, at now: Instant) {
        let place = place(peer, tracker)
        // Whether a tracker has heard the end is of no use to anybody.
        guard !asked[peer][place].saidGoodbye else { return }
        asked[peer][place].hasAnswered = isGood
        asked[peer][place].failures = isGood ? 0 : asked[peer][place].failures + 1
        asked[peer][place].failedAt = now
    }
}
