// What the checkers see of a tracker.

import Primitives
import TrackerLogic
import Wire

/// What the checkers see of a tracker: a few plain values, so that a test can make up a tracker that misbehaves.
package struct NodeView: Sendable, Hashable {
    package var life: Life
    /// The epoch that it leads, where it is master.
    package var leads: Epoch?
    package var isServing: Bool
    /// What it has applied.
    package var position: Position
    package var digest: UInt64
    /// Cluster time of the last entry.
    package var time: WallTime
    /// The entry that it has accepted and does not know decided.
    package var pending: Ballot?
    package var hasFullState: Bool
    package var isFenced: Bool
    /// Whether it is master, and hands its role over.
    package var isHandingOver: Bool
    package var waitingRequests: Int
    package var tailCount: Int
    package var tailByteCount: Int
    /// The ids that vote, as far as it knows.
    package var voters: [UInt32]

    package init(
        life: Life, leads: Epoch? = nil, isServing: Bool = false, position: Position = .start, digest: UInt64 = 0,
        time: WallTime = WallTime(milliseconds: 0), pending: Ballot? = nil, hasFullState: Bool = true,
        isFenced: Bool = false, isHandingOver: Bool = false, waitingRequests: Int = 0, tailCount: Int = 0,
        tailByteCount: Int = 0, voters: [UInt32] = []
    ) {
        self.life = life
        self.leads = leads
        self.isServing = isServing
        self.position = position
        self.digest = digest
        self.time = time
        self.pending = pending
        self.hasFullState = hasFullState
        self.isFenced = isFenced
        self.isHandingOver = isHandingOver
        self.waitingRequests = waitingRequests
        self.tailCount = tailCount
        self.tailByteCount = tailByteCount
        self.voters = voters
    }
}

/// One step of a tracker, as the checkers are told of it.
package struct Step: ~Copyable, Sendable {
    package var node: Int
    package var time: Instant
    /// What the tracker is like afterwards.
    package var view: NodeView
    /// The entries that it has applied in this step, as far as they can be seen, in order.
    package var applied: [Entry]
    /// Says which shard an info hash falls into, and in survivor mode what the swarms are like.
    package var table: SwarmTable?
    /// Says which chunk a torrent file falls into.
    package var files: TorrentFiles?
    /// The ids that have ceased to vote in this step; told where it has applied something.
    package var gone: [UInt32]
    /// Errors that the tracker has withheld in it.
    var withheld: UInt64
    /// Requests that it has given up in it, as it counts.
    var timedOut: UInt64
    /// What has led to it.
    var kind: EventKind
    /// Whether a tracker has taken it, and not somebody who makes trackers up.
    var isReal: Bool

    package init(
        node: Int, time: Instant, view: NodeView, applied: [Entry] = [], table: SwarmTable? = nil,
        gone: [UInt32] = []
    ) {
        self.init(
            node: node, time: time, view: view, applied: applied, table: table, files: nil, gone: gone, withheld: 0,
            timedOut: 0, kind: .started, isReal: false)
    }

    init(
        node: Int, time: Instant, view: NodeView, applied: [Entry], table: SwarmTable?, files: TorrentFiles?,
        gone: [UInt32], withheld: UInt64, timedOut: UInt64, kind: EventKind, isReal: Bool
    ) {
        self.node = node
        self.time = time
        self.view = view
        self.applied = applied
        self.table = table
        self.files = files
        self.gone = gone
        self.withheld = withheld
        self.timedOut = timedOut
        self.kind = kind
        self.isReal = isReal
    }
}

extension NodeView {
    /// What a node shows; without a bus it is no tracker of a cluster, whatever it says.
    init(_ machine: TrackerNode, inCluster: Bool) { self.init(machine.inspection, machine.state.time, inCluster) }

    /// After a step: looks at the node itself, not at a copy; `voters` are what they were at the last look.
    init(_ machine: inout TrackerNode, knowing voters: [UInt32], inCluster: Bool) {
        self.init(machine.inspect(knowing: voters), machine.state.time, inCluster)
    }

    private init(_ inspection: Inspection, _ time: WallTime, _ inCluster: Bool) {
        self.init(
            life: inspection.life, leads: inspection.leads, isServing: inspection.isServing,
            position: inspection.position, digest: inspection.digest, time: time, pending: inspection.pending,
            hasFullState: inspection.hasFullState, isFenced: inCluster && inspection.isFenced,
            isHandingOver: inspection.isHandingOver, waitingRequests: inspection.waitingRequests,
            tailCount: inspection.tailCount, tailByteCount: inspection.tailByteCount, voters: inspection.voters)
    }
}

extension Event {
    /// A decided entry that has just come from another tracker.
    func entry(_ index: UInt64) -> Entry? {
        guard case .messageReceived(let message) = self, case .entries(let entries, _) = message.body else {
            return nil
        }
        return entries.first { $0.header.index == index }
    }
}
