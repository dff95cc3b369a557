// Peers that download by the trackers of a simulated cluster.

import Primitives

/// Peers that download by the trackers of a simulated cluster: their world is run up to each time at which something
/// happens in it; what they send to trackers goes the way of all clients, and so do the replies.
extension World {
    /// Sees to it that the peers are given the time when they want it.
    mutating func planTransfers() {
        guard let next = transfers?.nextTime else { return }
        if let transfersAt, transfersAt <= next { return }
        transfersAt = next
        queue.put(.transfers, at: max(next, now))
    }

    mutating func runTransfers() {
        guard let due = transfersAt, due <= now else { return }
        transfersAt = nil
        transfers?.run(until: now)
        noteViolations()
        // Their events are bounded in their own world.
        eventCount -= 1
        let sent = transfers?.outbox ?? []
        transfers?.outbox.removeAll(keepingCapacity: true)
        let firstPlace = transfers?.firstPlace ?? 0
        for datagram in sent { sendToTrackers(firstPlace + datagram.peer, datagram.tracker, datagram.bytes) }
        planTransfers()
    }

    /// When the world is looked at, all peers have what they wanted.
    mutating func judgeTransfers() {
        guard let transfers, !transfers.isOver else { return }
        for peer in transfers.unfinishedPeers {
            self.transfers?.checks.unfinished(peer, transfers.whyUnfinished(peer), at: now)
        }
        noteViolations()
    }

    private mutating func noteViolations() { transfersAreRight = transfers?.checks.violations.isEmpty ?? true }

    /// A reply has reached a peer's socket; strangers do not wait for answers.
    mutating func hearTransfers(_ place: Int, from node: Int, _ bytes: [UInt8]) {
        guard let first = transfers?.firstPlace, place >= first, let life = transfers?.peers[place - first].life else {
            return
        }
        if let before = transfers?.now, before < now { transfers?.now = now }
        transfers?.queue.put(.datagramAtPeer(place - first, life: life, tracker: node, bytes), at: now)
        planTransfers()
    }
}
