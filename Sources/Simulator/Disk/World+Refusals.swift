// Disks that refuse what they are to write, and take it again.

import Primitives
import TrackerLogic

extension World {
    /// From now on no write of a node is made, for a while.
    mutating func refuse(_ node: Int, _ failure: StorageFailure, _ duration: Duration, _ cause: String) {
        if nodes[node].disk.failure != .broken { nodes[node].disk.failure = failure }
        begin(
            .disk, cause, "no write of \(trace.names[node]), \(failure.words)", trackers: 1 << UInt32(node),
            for: duration)
        queue.put(.diskRecovers(node), at: now + duration)
    }

    /// The disk of a node is as quick and as good as before.
    mutating func recoverDisk(_ node: Int) {
        if nodes[node].disk.failure != .broken { nodes[node].disk.failure = nil }
        endTroubles([.disk], of: node)
        nodes[node].disk.options.maxDelay = isHealed ? DiskOptions.healed.maxDelay : options.disk.maxDelay
    }
}
