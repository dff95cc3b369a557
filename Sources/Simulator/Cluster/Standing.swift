/// A tracker's place in the cluster, as far as the world itself wants to know it: for the columns of a trace, and to
/// tell when a disk may be lost without losing what only it holds.

import Primitives
import TrackerLogic
import Wire

struct Standing: Sendable, Hashable {
    var role: ClusterRole
    var isServing: Bool
    var promised: Epoch
    var index: UInt64
    var isPending: Bool
    var isWhole: Bool
    var isFenced: Bool
}

extension TrackerNode {
    var standing: Standing {
        let status = status
        let role: ClusterRole =
            switch status.role {
            case .master, .draining: .master
            case .candidate: .candidate
            case .restoring, .failed, .stopped: .newcomer
            }
        return Standing(
            role: role, isServing: role == .master, promised: status.epoch, index: status.commitIndex,
            isPending: status.lastIndex > status.commitIndex, isWhole: true, isFenced: false)
    }
}
