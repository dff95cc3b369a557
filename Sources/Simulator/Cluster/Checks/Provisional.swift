/// What the node does not show yet; goes when it does.

import Primitives
import TrackerLogic
import Wire

extension TrackerNode {
    func committedEntry(at index: UInt64) -> [UInt8]? { nil }
}

extension NodeSight {
    init(_ machine: borrowing TrackerNode) {
        let status = machine.status
        self.init(
            life: Life(id: status.id, incarnation: 0), leads: status.role == .master ? status.epoch : nil,
            isServing: status.role == .master, position: machine.state.position, digest: machine.state.digest,
            time: machine.state.time, waitingRequests: status.waitingRequests, voters: [status.id])
    }
}
