// What is decided.

import Primitives
import TrackerLogic
import Wire

/// What is decided: one value at an index, by a quorum, in the order of time; equal histories lead to equal states.
struct Log: Sendable {
    /// An entry that a tracker is the first to apply.
    struct Decided {
        var entry: Entry
        var tickets: Tickets
        /// Whether it is the next one of the one history.
        var isNext: Bool
    }

    /// An entry that a tracker applies.
    enum Finding {
        /// It is of another history.
        case stray
        case known
        case new(Decided)
    }

    private var lastDecidedTime = WallTime(milliseconds: 0)

    /// Where a tracker has got to in a step.
    ///
    /// - Returns: whether what it has applied is to be looked at; and then what it holds.
    mutating func mayFollow(_ step: borrowing Step, _ before: NodeView, _ scene: inout Scene) -> Bool {
        let view = step.view
        guard view.hasFullState || !step.applied.isEmpty else { return false }
        if before.hasFullState, view.position == before.position, view.digest == before.digest { return false }
        guard before.hasFullState || !step.applied.isEmpty else {
            observe(view, step.node, at: step.time, &scene)
            return false
        }
        if view.position.index < before.position.index, scene.promises.hasOneHistory {
            scene.violate(
                .decidedIsForEver, at: step.time,
                "\(scene.name(step.node)) goes back from entry \(before.position.index) to \(view.position.index)")
            return false
        }
        // In survivor mode a tracker may give its history up for another, which need not be later.
        guard continues(step, before, scene) else {
            observe(view, step.node, at: step.time, &scene)
            return false
        }
        if view.position.index > before.position.index, view.time < before.time {
            scene.violate(
                .timeNeverRunsBack, at: step.time,
                "entry \(view.position.index) is earlier than entry \(before.position.index)")
        }
        return true
    }

    /// A tracker has applied an entry after a position, which becomes that of the entry.
    mutating func follow(
        _ entry: Entry, after position: inout Position, _ step: borrowing Step, _ before: NodeView,
        _ scene: inout Scene
    ) -> Finding {
        let header = entry.header
        if header.index == position.index + 1, header.previous != position.chain {
            scene.violate(
                .decidedIsForEver, at: step.time,
                "entry \(header.index) at \(scene.name(step.node)) does not continue the history that it has")
            return .stray
        }
        position = entry.position
        let finding = scene.log.observe(position, digest: nil, node: step.node, at: step.time)
        return finding == .new ? .new(decide(entry, step, before, &scene)) : .known
    }

    /// An entry that a tracker alone finds at an index of its disk as it begins is decided, told or not.
    mutating func settle(
        _ entry: Entry, at index: UInt64, _ step: borrowing Step, _ scene: inout Scene
    ) -> Decided? {
        guard index > scene.log.lastIndex else { return nil }
        guard entry.header.index == index else {
            scene.violate(
                .recordIsReadable, at: step.time, "entry \(index) of \(scene.name(step.node)) is damaged")
            return nil
        }
        _ = scene.log.observe(entry.position, digest: nil, node: step.node, at: step.time)
        return decide(entry, step, step.view, &scene)
    }

    /// A value is applied for the first time: it is decided.
    private mutating func decide(
        _ entry: Entry, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene
    ) -> Decided {
        let (position, header) = (entry.position, entry.header)
        checkQuorum(position, step, before, &scene)
        var decided = Decided(
            entry: entry, tickets: (try? Tickets(entry.bytes, header)) ?? Tickets(), isNext: false)
        guard scene.promises.hasOneHistory else { return decided }
        if let first = scene.log.branch(position.index), first.chain != position.chain {
            scene.violate(
                .decidedIsForEver, at: step.time,
                "entry \(position.index) at \(scene.name(step.node)) is another than at \(scene.name(first.node))")
            return decided
        }
        guard position.index == scene.model.index + 1 else {
            scene.violate(
                .logHasNoGap, at: step.time, "entry \(position.index) is applied after entry \(scene.model.index)")
            return decided
        }
        if header.time < lastDecidedTime {
            scene.violate(.timeNeverRunsBack, at: step.time, "entry \(header.index) is earlier than the one before it")
        }
        lastDecidedTime = header.time
        decided.isNext = true
        return decided
    }

    /// Whether a tracker goes on in the history that it had.
    private func continues(_ step: borrowing Step, _ before: NodeView, _ scene: Scene) -> Bool {
        guard !scene.promises.hasOneHistory else { return true }
        guard let header = step.applied.first?.header else { return false }
        return header.index == before.position.index + 1 && header.previous == before.position.chain
    }

    /// The state that a tracker holds.
    mutating func observe(_ view: NodeView, _ node: Int, at time: Instant, _ scene: inout Scene) {
        switch scene.log.observe(view.position, digest: view.digest, node: node, at: time) {
        case .known: break
        case .new:
            guard scene.promises.hasOneHistory else { return }
            scene.violate(
                .decidedIsForEver, at: time,
                "\(scene.name(node)) holds entry \(view.position.index) of a history that nobody has decided")
        case .otherDigest(let other):
            scene.violate(
                .statesAgree, at: time,
                "\(scene.name(node)) and \(scene.name(other.node)) hold different states after entry "
                    + "\(view.position.index)"
            )
        }
    }

    private mutating func checkQuorum(
        _ position: Position, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene
    ) {
        if scene.promises.membersDecide {
            let holders = holders(position, among: scene.members, scene)
            if holders.count <= scene.members.count / 2 {
                scene.violate(
                    .quorumDecides, at: step.time,
                    "\(scene.name(step.node)) applies entry \(position.index), which is on the disks of "
                        + "\(holders.inBrackets) of "
                        + "the members \(scene.members.inBrackets)")
            }
            return
        }
        // Whoever is given another entry in its place takes what he has voted for as decided, and so does a master that
        // gives up its role to one that asks for its state (survivor mode).
        let isKept = step.applied.contains { $0.header.index == position.index && $0.header.isAlone }
        if before.leads == nil || step.view.leads == nil, isKept {
            return checkOwnDisk(position, step, &scene)
        }
        // Who counts may have changed in this very step, also before its end, where the tracker gives up its role.
        let left = before.voters.filter { !step.gone.contains($0) }
        let entry = step.applied.first { $0.position == position }
        let isDecided = [before.voters, step.view.voters, left].contains { voters in
            let holders = voters.filter { holds($0, position, scene) || hasReplaced($0, entry, scene) }
            guard holders.count > voters.count / 2 else { return false }
            return !scene.promises.allDecide
                || voters.allSatisfy { holders.contains($0) || !isHeard($0, by: step, scene) }
        }
        if !isDecided {
            scene.violate(
                .quorumDecides, at: step.time,
                "\(scene.name(step.node)) applies entry \(position.index), which is on the disks of "
                    + "\(holders(position, among: step.view.voters, scene).inBrackets) of the active "
                    + "\(step.view.voters.inBrackets)")
        }
    }

    /// Who has ceased to vote in a step: who is told to take the whole state anew, whose own state is to be merged
    /// first, and who is found to be down.
    ///
    /// The end of the step does not always show the latter. The number may have had more than one life: the last one
    /// may have been heard and told to wait, while the one that had a vote was not. And a master that stops counts its
    /// votes without them, gives up its role, and then takes others for voters: whom it hears, welcomed or not.
    func gone(_ effects: Effects) -> [UInt32] {
        var gone: [UInt32] = []
        for case .trackerDown(let id) in effects.observations { gone.append(id) }
        for message in effects.messages {
            guard case .one(let life) = message.destination else { continue }
            switch message.body {
            case .welcome(let welcome) where welcome.needsTransfer: gone.append(life.id)
            case .fetchChunk(0): gone.append(life.id)
            default: break
            }
        }
        return gone
    }

    /// An entry that a tracker has accepted, and that may have been decided, as it gives up hope to learn that.
    private mutating func checkOwnDisk(_ position: Position, _ step: borrowing Step, _ scene: inout Scene) {
        guard !scene.nodes[step.node].disk.holds(position.index, chain: position.chain) else { return }
        scene.violate(
            .quorumDecides, at: step.time,
            "\(scene.name(step.node)) keeps entry \(position.index), which is not on its own disk")
    }

    /// Whether a tracker has been heard within the detection time, by a clock that may be fast.
    private func isHeard(_ id: UInt32, by step: borrowing Step, _ scene: Scene) -> Bool {
        guard let node = scene.node(withID: id) else { return false }
        let cluster = scene.nodes[step.node].configuration.cluster
        return node == step.node || step.time - scene.nodes[step.node].heardAt[node] < cluster.detectionTime * 3 / 4
    }

    private func holders(_ position: Position, among ids: [UInt32], _ scene: Scene) -> [UInt32] {
        ids.filter { holds($0, position, scene) }
    }

    private func holds(_ id: UInt32, _ position: Position, _ scene: Scene) -> Bool {
        // In survivor mode, two may have been given one number, on the two sides of a partition, and one that comes
        // back may be given another than it has just voted under.
        scene.nodes.contains { $0.id == id && $0.disk.holds(position.index, chain: position.chain) }
            || !scene.promises.hasOneHistory
                && scene.lives.contains { other in
                    other.life.id == id && scene.nodes[other.node].disk.holds(position.index, chain: position.chain)
                }
    }

    /// Whether a voter may have stored an empty entry and gone over to another master, whose entry has taken its place
    /// before its vote was heard (survivor mode): of what is not empty it would have kept the vote.
    private func hasReplaced(_ id: UInt32, _ entry: Entry?, _ scene: Scene) -> Bool {
        guard let entry, entry.header.updateCount == 0 else { return false }
        return scene.nodes.contains {
            $0.id == id && $0.disk.promised > entry.header.epoch && $0.disk.lastIndex >= entry.header.index
        }
    }

    /// Of a tracker alone, an entry that it has applied: what its log in memory says does not count.
    mutating func durable(
        _ index: UInt64, in record: DiskRecord, _ node: Int, at time: Instant, _ scene: inout Scene
    ) -> Entry? {
        if let entry = record.entry(index), entry.header.index == index { return entry }
        scene.violate(
            .appliedIsDurable, at: time, "\(scene.name(node)) applies entry \(index), which is not on its disk")
        return nil
    }
}
