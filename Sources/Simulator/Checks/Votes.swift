// What trackers write and tell each other.

import Primitives
import TrackerLogic
import Wire

/// What trackers write and tell each other: an epoch belongs to one life, votes are for what is durable, a ballot has
/// one value, and what is said to be decided is.
struct Votes: Sendable {
    /// Which life stood for which epoch, and which led it.
    private var epochs = EpochRegister()

    /// A tracker has forgotten what it used, and nobody could tell it.
    mutating func forgetEpochs(of id: UInt32) { epochs.forget(id: id) }

    /// A write is about to count as durable.
    mutating func checkWrite(_ node: Int, _ change: Persist.Change, at time: Instant, _ scene: inout Scene) {
        let disk = scene.nodes[node].disk
        if scene.promises.hasOneHistory, let index = disk.rewritten(by: change, isAlone: scene.promises.diskDecides) {
            scene.violate(
                .recordIsNotRewritten, at: time,
                "\(scene.name(node)) writes again what its disk holds whole up to entry \(index)")
        }
        guard case .promise(let promise) = change else { return }
        if promise.epoch < disk.promised {
            scene.violate(
                .promiseIsKept, at: time,
                "\(scene.name(node)) scene.promises epoch \(promise.epoch) after \(disk.promised)")
        }
        guard promise.hasFullState, !disk.hasFullState, scene.promises.votersRemember else { return }
        // What counts is what it would come back with, not what it has in memory.
        let index = min(scene.nodes[node].view?.position.index ?? .max, disk.fullStateThrough)
        if index < scene.nodes[node].decidedAtLoss {
            scene.violate(
                .votersHoldFullState, at: time,
                "\(scene.name(node)) takes itself for whole, with the state up to entry \(index) on its disk; entry "
                    + "\(scene.nodes[node].decidedAtLoss) was decided when it lost its disk")
        }
    }

    /// A tracker writes an entry of its own making: a proposal, if it leads and has not applied it already.
    mutating func checkOwnAppend(
        _ entry: Entry, _ step: borrowing Step, _ scene: inout Scene, _ stops: inout Stops, _ aborts: inout Aborts
    ) {
        guard entry.header.epoch == step.view.leads, entry.header.index > step.view.position.index else { return }
        propose(entry, step, &scene, &stops, &aborts)
    }

    mutating func check(
        _ message: ClusterMessage, _ step: borrowing Step, _ before: NodeView, _ scene: inout Scene,
        _ stops: inout Stops,
        _ aborts: inout Aborts
    ) {
        switch message.body {
        case .election: stands(message.epoch, step, &scene)
        case .answer(let answer): votes(message.epoch, answer, step, &scene)
        case .coordinator(let position):
            leads(message.epoch, step, &scene)
            checkDecided(position, step, &scene)
        case .prepare(let entry, let position):
            leads(message.epoch, step, &scene)
            checkDecided(position, step, &scene)
            propose(entry, step, &scene, &stops, &aborts)
        case .ok(let ballot):
            votes(ballot, step, &scene)
            // To empty what was there before the stop is not to go on.
            if proposed(ballot, scene)?.emptiesSwarms != true {
                stops.goesOn(step.node, votingFor: ballot, asMaster: false)
            }
        case .commit(let position):
            leads(message.epoch, step, &scene)
            checkDecided(position, step, &scene)
        case .keepalive(let keepalive): if keepalive.hasFullState { checkDecided(keepalive.position, step, &scene) }
        case .entries(let entries, _): for entry in entries { checkDecided(entry.position, step, &scene) }
        case .confirmed: stops.goesOn(step.node)
        case .error(let ballot, .cannotStore): refuses(ballot, step, &scene)
        case .suspect, .error, .confirm, .fetch, .hello, .welcome, .refused, .fetchChunk, .chunk,
            .welcomeDone, .forward, .answered, .handover, .leave, .report, .order, .ordered, .stop:
            break
        }
    }

    mutating func checkEpoch(_ step: borrowing Step, _ scene: inout Scene, _ stops: inout Stops) {
        guard let led = step.view.leads, led != scene.nodes[step.node].led else { return }
        scene.nodes[step.node].led = led
        claim(led, step, "leads", &scene)
        stops.beginsToLead(led, step, scene)
        if scene.promises.votersRemember, scene.nodes[step.node].disk.promised < led {
            scene.violate(
                .promiseIsKept, at: step.time,
                "\(scene.name(step.node)) leads epoch \(led), and has \(scene.nodes[step.node].disk.promised) on its "
                    + "disk"
            )
        }
    }

    /// A tracker says that it leads or stands for an epoch.
    mutating func claim(_ epoch: Epoch, _ step: borrowing Step, _ verb: String, _ scene: inout Scene) {
        guard let other = epochs.claim(epoch, by: step.view.life) else { return }
        scene.violate(
            .oneMasterPerEpoch, at: step.time,
            "\(scene.name(step.node)) \(verb) epoch \(epoch), which belongs to life \(other.incarnation) of \(other.id)"
        )
    }

    private mutating func leads(_ epoch: Epoch, _ step: borrowing Step, _ scene: inout Scene) {
        guard scene.nodes[step.node].led != epoch else { return }
        scene.nodes[step.node].led = epoch
        claim(epoch, step, "leads", &scene)
    }

    private mutating func stands(_ epoch: Epoch, _ step: borrowing Step, _ scene: inout Scene) {
        guard scene.nodes[step.node].stood != epoch else { return }
        scene.nodes[step.node].stood = epoch
        claim(epoch, step, "stands for", &scene)
        if scene.promises.votersRemember, scene.nodes[step.node].disk.promised < epoch {
            scene.violate(
                .promiseIsKept, at: step.time,
                "\(scene.name(step.node)) stands for epoch \(epoch), and has \(scene.nodes[step.node].disk.promised) "
                    + "on its disk"
            )
        }
    }

    /// Somebody says that this is decided.
    private mutating func checkDecided(_ position: Position, _ step: borrowing Step, _ scene: inout Scene) {
        guard scene.promises.hasOneHistory, !scene.log.contains(position) else { return }
        scene.violate(
            .decidedIsDecided, at: step.time,
            "\(scene.name(step.node)) tells that entry \(position.index) is decided, which nobody has applied")
    }

    /// Phase 1b.
    private mutating func votes(_ epoch: Epoch, _ answer: VoterAnswer, _ step: borrowing Step, _ scene: inout Scene) {
        guard mayVote(epoch, "answers the candidate of", step, &scene), scene.promises.votersRemember else { return }
        let disk = scene.nodes[step.node].disk
        guard let last = disk.log.last, last.ballot.index > answer.position.index else { return }
        // A later proposal for the same place tells as much: none is made unless the earlier one is void.
        let isTold = answer.pending.map { told in
            told.chain == last.chain || told.header.index == last.ballot.index && told.header.ballot > last.ballot
        }
        if isTold != true {
            scene.violate(
                .voteIsKept, at: step.time,
                "\(scene.name(step.node)) has entry \(last.ballot.index) on its disk and does not say so to the "
                    + "candidate "
                    + "of epoch \(epoch)")
        }
    }

    /// Phase 2b.
    private mutating func votes(_ ballot: Ballot, _ step: borrowing Step, _ scene: inout Scene) {
        guard mayVote(ballot.epoch, "votes in", step, &scene), scene.promises.votersRemember else { return }
        let disk = scene.nodes[step.node].disk
        let proposed = proposed(ballot, scene)
        let chain = proposed?.chain
        if let written = disk.written(ballot.index) {
            if written.ballot == ballot {
                guard written.promised > ballot.epoch, step.view.position.index < ballot.index else { return }
                return scene.violate(
                    .promiseIsKept, at: step.time,
                    "\(scene.name(step.node)) has accepted entry \(ballot.index) of epoch \(ballot.epoch) after it had "
                        + "promised \(written.promised)")
            }
            if written.chain == chain { return }
        }
        if let chain, disk.holds(ballot.index, chain: chain) { return }
        // What is decided needs no vote, but an old message may ask for one; what was in it nobody may know any more.
        if step.view.position.index >= ballot.index {
            guard let chain, scene.promises.hasOneHistory else { return }
            if scene.log.contains(Position(index: ballot.index, chain: chain)) { return }
        }
        scene.violate(
            .voteIsKept, at: step.time,
            "\(scene.name(step.node)) votes for entry \(ballot.index) of epoch \(ballot.epoch), attempt "
                + "\(ballot.attempt), "
                + "which is not on its disk")
    }

    /// The other vote: it counts for an abort, so nobody gives it for what may yet be stored.
    private mutating func refuses(_ ballot: Ballot, _ step: borrowing Step, _ scene: inout Scene) {
        guard mayVote(ballot.epoch, "refuses an entry of", step, &scene), scene.promises.votersRemember,
            scene.nodes[step.node].disk.stores(ballot)
        else { return }
        scene.violate(
            .voteIsKept, at: step.time,
            "\(scene.name(step.node)) refuses entry \(ballot.index) of epoch \(ballot.epoch), attempt "
                + "\(ballot.attempt), which is on its disk, or on its way there")
    }

    private mutating func mayVote(_ epoch: Epoch, _ verb: String, _ step: borrowing Step, _ scene: inout Scene) -> Bool
    {
        let disk = scene.nodes[step.node].disk
        let name = scene.name(step.node)
        if disk.promised < epoch {
            scene.violate(
                .promiseIsKept, at: step.time, "\(name) \(verb) epoch \(epoch), and has \(disk.promised) on its disk")
            return false
        }
        if disk.told > epoch {
            scene.violate(
                .promiseIsKept, at: step.time, "\(name) \(verb) epoch \(epoch), and has promised \(disk.told)")
            return false
        }
        if scene.promises.votersRemember, !disk.hasFullState {
            scene.violate(
                .votersHoldFullState, at: step.time, "\(name) \(verb) epoch \(epoch), and does not hold the whole state"
            )
            return false
        }
        return true
    }

    private func proposed(_ ballot: Ballot, _ scene: Scene) -> Entry? {
        guard let node = scene.node(withID: ballot.epoch.id) else { return nil }
        return scene.nodes[node].proposals.last { $0.header.ballot == ballot }
    }

    private mutating func propose(
        _ entry: Entry, _ step: borrowing Step, _ scene: inout Scene, _ stops: inout Stops, _ aborts: inout Aborts
    ) {
        let header = entry.header
        if let known = scene.nodes[step.node].proposals.last(where: { $0.header.ballot == header.ballot }) {
            if known.chain != entry.chain {
                scene.violate(
                    .ballotHasOneValue, at: step.time,
                    "\(scene.name(step.node)) proposes two values at index \(header.index) in epoch \(header.epoch)")
            }
            return
        }
        // What a tracker alone proposes anew is no ghost.
        if scene.promises.diskDecides { aborts.forget(entry.chain) }
        stops.goesOn(step.node, votingFor: header.ballot, asMaster: true)
        let position = step.view.position
        if header.index != position.index + 1 {
            scene.violate(
                .logHasNoGap, at: step.time,
                "\(scene.name(step.node)) proposes entry \(header.index) after entry \(position.index)")
        } else if header.previous != position.chain {
            scene.violate(
                .decidedIsForEver, at: step.time,
                "\(scene.name(step.node)) proposes an entry \(header.index) that does not continue its own history")
        }
        let limit = scene.nodes[step.node].configuration.limits.updatesPerEntry
        if header.updateCount > UInt32(clamping: limit) {
            scene.violate(.queuesAreBounded, at: step.time, "entry \(header.index) holds \(header.updateCount) updates")
        }
        if scene.clocks.isAhead(header.time, at: step.time), header.time > step.view.time {
            scene.violate(
                .timeIsReal, at: step.time,
                "\(scene.name(step.node)) proposes entry \(header.index) with a time that no clock has shown yet")
        }
        if header.time < step.view.time {
            scene.violate(.timeNeverRunsBack, at: step.time, "entry \(header.index) is earlier than the one before it")
        }
        scene.nodes[step.node].propose(entry)
    }

    /// A life begins, with a record on its disk.
    mutating func began(
        _ node: Int, _ view: NodeView, _ record: DiskRecord, at time: Instant, _ scene: inout Scene
    ) {
        let known = scene.nodes[node].disk
        if known.promised > record.promise?.epoch ?? .zero {
            scene.violate(
                .promiseIsKept, at: time, "\(scene.name(node)) comes back without its promise of \(known.promised)")
        }
        if known.log.count > 0, known.lastIndex > record.lastIndex {
            scene.violate(
                .voteIsKept, at: time,
                "\(scene.name(node)) comes back with a log up to \(record.lastIndex), and had written "
                    + "\(known.lastIndex)"
            )
        }
        scene.nodes[node].disk.adopt(record)
        // Chunks may be ahead of the log that is read back after them: what it holds counts from its first step on.
        var unsettled = view
        unsettled.hasFullState = false
        scene.nodes[node].begin(unsettled, at: time)
        scene.lives.append((view.life, node))
        guard scene.nodes[node].disk.hasFullState, view.hasFullState else { return }
        if scene.promises.votersRemember, scene.nodes[node].isLost {
            scene.violate(.votersHoldFullState, at: time, "\(scene.name(node)) comes back whole, and has lost its disk")
        }
        // One entry at a time is under way, so all but the last are decided, and the last is pending.
        let last = view.position.index + (view.pending == nil ? 0 : 1)
        if scene.promises.votersRemember, !record.entries.isEmpty, last < record.lastIndex {
            scene.violate(
                .voteIsKept, at: time,
                "\(scene.name(node)) has entry \(record.lastIndex) on its disk, and goes on from \(last)")
        }
    }
}
