// The requests of a group that snapshots know to be settled.

import Primitives
import TrackerLogic
import Wire

/// The requests of a group that snapshots know to be settled: all that the entries up to theirs have settled within a
/// minute of cluster time (docs/protocol.md, *A group*), so that a tracker which begins with one tells a late copy from
/// a new request.
struct SettledWatch: Sendable {
    private struct Settling: Sendable {
        var index: UInt64
        var seconds: UInt32
        var keys: [UInt64]
    }

    private static let memory: UInt32 = 60
    /// More entries than a minute has; what is forgotten here is not asked for.
    private static let count = 2048

    /// The last entries, in rising order.
    private var settlings: [Settling] = []

    /// An entry is decided, the next after the last.
    mutating func note(_ header: EntryHeader, _ tickets: Tickets) {
        if settlings.count == SettledWatch.count { settlings.removeFirst(SettledWatch.count / 2) }
        let keys = tickets.tickets.lazy.filter { tickets.life(of: $0) == Tickets.group }.map { $0.number }
        settlings.append(Settling(index: header.index, seconds: header.time.seconds, keys: Array(keys)))
    }

    /// A tracker writes chunk 0 of a snapshot.
    func check(_ chunk: SnapshotChunk, _ step: borrowing Step, _ scene: inout Scene) {
        guard chunk.number == 0, let last = settlings.last(where: { $0.index <= chunk.index }),
            last.index == chunk.index, let registry = try? chunk.registry()
        else { return }
        let from = last.seconds - min(last.seconds, SettledWatch.memory)
        for settling in settlings where settling.index <= chunk.index && settling.seconds >= from {
            for key in settling.keys where !registry.settled.contains(where: { $0.key == key }) {
                return scene.violate(
                    .updateIsAsked, at: step.time,
                    "\(scene.name(step.node)) writes a snapshot of entry \(chunk.index), which does not know a request "
                        + "that entry \(settling.index) has settled")
            }
        }
    }
}
