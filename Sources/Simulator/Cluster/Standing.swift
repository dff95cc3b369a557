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
        let inspection = inspection
        return Standing(
            role: inspection.role, isServing: inspection.isServing, promised: inspection.promised,
            index: inspection.position.index, isPending: inspection.pending != nil, isWhole: inspection.isWhole,
            isFenced: inspection.isFenced)
    }
}
