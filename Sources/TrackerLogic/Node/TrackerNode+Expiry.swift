// What a master decides as time goes by: who has been silent for too long, and how often clients are to announce.

import Primitives
import Wire

extension TrackerNode {
    mutating func sweepWhenDue(_ now: ClockReading) {
        guard let due = sweep.deadline, due <= now.monotonic else { return }
        let time = clock.read(now).seconds
        var updates: [Update] = []
        if backlog.isEmpty, writes.failure == nil {
            let interval = intervals.change(of: state.told, peers: state.table.counts.peers)
            if let interval, proposer.isIdle || interval != intervalUnderWay {
                updates.append(.setInterval(interval))
                intervalUnderWay = interval
            }
        }
        updates += sweep.step(
            state.table, now: now.monotonic, time: time,
            lifetime: lifetime(at: time) / (has(.impatientExpiry) ? 2 : 1),
            isNearlyFull: state.table.counts.torrents > configuration.limits.torrents / 4 * 3)
        updates += consoleExpiries(at: time)
        // What finds no room is found again in the next round.
        for update in updates where gathering.updateCount < configuration.limits.updatesPerEntry {
            gathering.append(update)
        }
    }

    /// Seconds that a silent peer lives: also who is about to be told more than anybody has been, or is merged and was.
    private func lifetime(at time: UInt32) -> UInt32 {
        max(
            intervals.lifetime(state.told, at: time),
            intervals.lifetime(ofInterval: max(intervalUnderWay, merging.toldInterval)))
    }
}
