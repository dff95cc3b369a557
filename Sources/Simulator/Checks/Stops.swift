// The orderly stop of a cluster.

import Primitives
import TrackerLogic
import Wire

/// The orderly stop of a cluster: it empties the swarms, and nothing else does.
///
/// The promise, without a look at any note on a disk: a master may begin without swarms when so many voters have
/// stopped in good order, each after the last vote that it gave, that nobody can have served since.
struct Stops: Sendable {
    /// For each tracker that has stopped in good order and not voted since, the last entry of its log.
    var leftAt: [UInt64?]
    /// The epochs of masters that may begin without swarms, and the last entry that lives before the stop may have
    /// left.
    var emptyEpochs: [(epoch: Epoch, lastIndex: UInt64)] = []
    /// How often swarms were emptied.
    var count = 0

    /// Of a tracker alone: whether its life was asked to stop, and whether it has to come back without swarms.
    var isAsked: [Bool]
    var isEmptyDue: [Bool]
    /// Whether its record was begun anew in that life.
    var isReplaced: [Bool]

    init(nodeCount: Int) {
        leftAt = Array(repeating: nil, count: nodeCount)
        isAsked = Array(repeating: false, count: nodeCount)
        isEmptyDue = isAsked
        isReplaced = isAsked
    }

    /// A tracker alone begins: whether the state that it comes back with is another than the one that it stopped with.
    mutating func takeReplaced(_ node: Int) -> Bool {
        defer { isReplaced[node] = false }
        return isReplaced[node]
    }

    /// The swarms of a tracker alone are gone with all that was in them, or the snapshot says what is left.
    mutating func emptied(
        by chunks: [SnapshotChunk], _ node: Int, at time: Instant, _ scene: inout Scene, _ requests: inout Requests
    ) {
        let swarms = chunks.reduce(0) { $1.number == 0 ? $0 : $0 + ((try? $1.swarms().count) ?? 1) }
        if swarms > 0 || !isAsked[node] || scene.nodes[node].configuration.keepsSwarms {
            scene.violate(
                .onlyStopsEmptySwarms, at: time, "\(scene.name(node)) begins a new record with \(swarms) swarms")
        }
        isReplaced[node] = true
        count += 1
        scene.model.removeAllSwarms()
        for infoHash in scene.history.infoHashes {
            scene.history.note(infoHash, SwarmCounts(), after: scene.model.index)
        }
        requests.ledger.close()
    }

    /// A tracker has stopped in good order, as its disk says, and does not want the swarms to be kept.
    mutating func leftInOrder(node: Int, _ scene: Scene) { leftAt[node] = scene.nodes[node].disk.lastIndex }

    /// A tracker alone is asked to stop, or has done so; where its disk has not taken the last of its record, it has
    /// left things as they were.
    ///
    /// Whoever has asked before waits for his answer; of further requests it takes none, so that it comes to its end.
    mutating func noteStop(
        _ event: Event, _ effects: Effects, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene
    ) {
        if step.isReal, isAsked[step.node], step.view.waitingRequests > before.waitingRequests {
            scene.violate(
                .stopEnds, at: step.time, "\(scene.name(step.node)) is asked to stop, and takes further requests")
        }
        if step.kind == .started { isAsked[step.node] = false }
        if step.kind == .command, event == .commandReceived(.drain) || event == .commandReceived(.stopCluster) {
            isAsked[step.node] = true
        }
        guard step.kind == .persisted, effects.observations.contains(.drained) else { return }
        isEmptyDue[step.node] = !scene.nodes[step.node].configuration.keepsSwarms
    }

    /// A tracker comes into office.
    mutating func beginsToLead(_ epoch: Epoch, _ step: borrowing Step, _ scene: Scene) {
        let isEmpty: Bool
        if scene.promises.hasOneHistory {
            let left = scene.nodes.indices.filter { leftAt[$0] != nil && scene.members.contains(scene.nodes[$0].id) }
            isEmpty = left.count * 2 > scene.members.count
        } else {
            // Whoever is alone, and takes itself for the last survivor, is all there is.
            isEmpty = leftAt[step.node] != nil
        }
        if isEmpty { emptyEpochs.append((epoch, step.view.position.index + 1)) }
    }

    /// A master has emptied all that it had, if that was anything.
    mutating func beganEmpty(_ step: borrowing Step, _ scene: Scene, _ requests: inout Requests) {
        guard !scene.promises.hasOneHistory, let epoch = step.view.leads,
            emptyEpochs.contains(where: { $0.epoch == epoch })
        else { return }
        requests.ledger.close()
    }

    /// An entry is applied for the first time, where histories may differ: whether it takes out the swarms of before a
    /// stop.
    ///
    /// No master need tell of that. A lone one that dies finds its last entry decided as it comes back, and one that is
    /// stopped again gives its role up in the step that applies the entry.
    func noteEmptied(by entry: Entry, _ scene: borrowing Scene, _ requests: inout Requests) {
        guard !emptyEpochs.isEmpty, !scene.promises.hasOneHistory,
            emptyEpochs.contains(where: { $0.epoch == entry.header.epoch }), entry.emptiesSwarms
        else { return }
        requests.ledger.close()
    }

    /// A tracker confirms its master, or serves as one: the cluster goes on.
    mutating func goesOn(_ node: Int) { leftAt[node] = nil }

    /// A tracker votes for an entry: the same, unless that was left before the stop, or a master is still about to
    /// empty the swarms.
    mutating func goesOn(_ node: Int, votingFor ballot: Ballot, asMaster: Bool) {
        guard let index = leftAt[node], ballot.index > index else { return }
        if let empty = emptyEpochs.first(where: { $0.epoch == ballot.epoch }) {
            if asMaster || ballot.index <= empty.lastIndex { return }
        }
        goesOn(node)
    }

    /// A shard is emptied by an entry.
    mutating func checkEmptied(
        _ shard: UInt32, _ header: EntryHeader, _ table: SwarmTable, _ step: borrowing Step, _ scene: inout Scene,
        _ requests: inout Requests
    ) {
        count += 1
        requests.ledger.forget { table.shard(of: $0) == shard }
        // In survivor mode others may know more than this one did; that went with them.
        if !scene.promises.hasOneHistory { requests.ledger.close() }
        // A later master goes on with what one before it has left.
        let isRight = emptyEpochs.contains { $0.epoch.id == header.origin && $0.epoch <= header.epoch }
        if isRight { return }
        scene.violate(
            .onlyStopsEmptySwarms, at: step.time,
            "entry \(header.index) of epoch \(header.epoch) empties shard \(shard), and too few voters had stopped in "
                + "good order: "
                + "\(scene.nodes.indices.filter { leftAt[$0] != nil }.map { scene.nodes[$0].id }.inBrackets)"
        )
    }
}
