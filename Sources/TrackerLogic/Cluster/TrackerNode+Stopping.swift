/// The orderly stop of a tracker, and of a cluster.
///
///     drain ──► hands its role over, answers who waits ──► `leave` ──► its last write: "left in order" ──► stopped
///     stop of the cluster, at the master ──► `stop` to all, until they have left ──► the same
///
/// Swarms are soft state, and an orderly stop of the cluster empties them, unless trackers are told to keep them. But
/// who leaves cannot know whether the others stay: that is seen when they come back. The cluster has stopped in good
/// order when a quorum of its voters has, each after its last vote: from then on nobody can have served. So each notes
/// on its disk that it has left in good order, and takes the note back when it starts, before it says anything. A
/// master that is elected by voters who all had that note empties the swarms by the log, before it serves. A tracker
/// that has crashed, or runs still, has no such note: then the swarms stay, as after any crash.
///
/// What the note says holds until the tracker votes for an entry that was not in its log when it stopped, confirms that
/// its master is one, is welcomed by a master that goes on, or serves as master: a master that is lost before it has
/// emptied the swarms leaves that to the next.
///
/// Invariants: a life that has written its note votes no more; no note is on the disk when the next life votes.

import Primitives
import Wire

/// What a tracker knows of the end of its last life.
enum LastStop: Sendable, Hashable {
    /// It was no orderly stop, or it is of no account any more. Stays so.
    case forgotten
    /// In good order; the note is being taken back. Can transition to: inOrder, forgotten.
    case recalling
    /// In good order; entries up to there were left by lives before the stop. Can transition to: forgotten.
    case inOrder(lastIndex: UInt64)

    var isInOrder: Bool { if case .inOrder = self { true } else { false } }
}

extension TrackerNode {
    // MARK: - Leaving

    /// An orderly stop: a master hands its role over, a slave waits for what it has sent on.
    mutating func leave(_ now: ClockReading, _ effects: inout Effects) {
        cluster.leavesAt = now.monotonic + policy.detectionTime * 2
        guard phase == .master, !cluster.stopsAll else { return }
        let order = policy.election.order(
            cluster.neighbours.all.filter(mayTakeOver).map(\.life.id), after: cluster.id)
        if let heir = order.first, let place = cluster.neighbours.place(of: heir) {
            beginHandover(to: cluster.neighbours[place].life, now)
        }
    }

    /// Ends the stop when nobody waits, or it has taken too long.
    mutating func leaveWhenDone(_ now: ClockReading, _ effects: inout Effects) {
        guard let due = cluster.leavesAt, phase == .following || phase == .candidate || phase == .master else { return }
        var isDone: Bool
        switch phase {
        case .master: isDone = cluster.handover == nil && proposer.isIdle && gathering.isEmpty
        default: isDone = cluster.book.isEmpty && !log.isWriting
        }
        if cluster.stopsAll, cluster.neighbours.all.contains(where: \.isUp) { isDone = false }
        // Not in the step that answers the last of them.
        guard isDone || due <= now.monotonic, effects.replies.isEmpty else { return }
        if phase == .master { stepDown(.stopping, now, &effects) }
        if phase == .candidate { abandonElection(now) }
        for request in cluster.book.removeAll() {
            guard let id = request.waiting.clientRequest else { continue }
            effects.answers.append(Answer(id: id, content: .failure(.notServing)))
        }
        if office.isBusUp { broadcast(.leave, &effects) }
        cluster.leavesAt = nil
        dropCommands("the tracker stopped before it was carried out", &effects)
        guard !configuration.keepsSwarms else { return stop(&effects) }
        office.drain()
        acceptor.promiseNotWritten()
        persist(.promise(acceptor.farewell), .final, &effects)
    }

    // MARK: - The whole cluster

    /// The operator wants the whole cluster to stop.
    mutating func stopCluster(_ now: ClockReading, _ effects: inout Effects) {
        guard !cluster.stopsAll else { return }
        cluster.stopsAll = true
        cluster.handover = nil
        effects.observations.append(.stopsWithCluster(by: cluster.id))
        leave(now, &effects)
        // The others leave first, each within the time that it has for it.
        cluster.leavesAt = now.monotonic + policy.detectionTime * 4
        tellToStop(&effects)
    }

    /// Tells those that are still there, as some may not have heard it.
    mutating func tellToStop(_ effects: inout Effects) {
        guard cluster.stopsAll else { return }
        for neighbour in cluster.neighbours.all where neighbour.isUp { send(.stop, to: neighbour.life, &effects) }
    }

    /// The master, or who was master just now, says that the whole cluster is to stop.
    mutating func stopReceived(_ sender: Life, _ now: ClockReading, _ effects: inout Effects) {
        guard cluster.leavesAt == nil, office.follows(sender) || candidate.lastMaster == sender.id else {
            return
        }
        effects.observations.append(.stopsWithCluster(by: sender.id))
        drain(now, &effects)
    }

    // MARK: - Coming back

    /// Takes back the note of the last life, if there is one.
    mutating func recallStop(_ effects: inout Effects) {
        guard promise.leftInOrder else { return }
        cluster.lastStop = .recalling
        if has(.stopNoteKept) { return stopRecalled() }
        acceptor.recallStop()
        persist(.promise(promise), .stopRecalled, &effects)
    }

    mutating func stopRecalled() {
        // A master that goes on may have let it in meanwhile.
        guard cluster.lastStop == .recalling || has(.recallOutlivesWelcome) else { return }
        let lastIndex = max(state.index, log.pending?.header.index ?? 0)
        cluster.lastStop = configuration.keepsSwarms ? .forgotten : .inOrder(lastIndex: lastIndex)
    }

    mutating func stopNotRecalled() { cluster.lastStop = .forgotten }

    /// This tracker votes for an entry: the cluster goes on, unless the entry was left by the last life.
    mutating func forgetStop(votingFor index: UInt64) {
        if case .inOrder(let lastIndex) = cluster.lastStop, index > lastIndex { cluster.lastStop = .forgotten }
    }

    /// A master lets this tracker in: one that goes on, or one that is still about to empty the swarms, and may decide
    /// what was left by the last lives before.
    mutating func noteStop(_ welcome: Welcome) {
        guard welcome.beginsEmpty else { return forgetStop() }
        guard case .inOrder(let lastIndex) = cluster.lastStop else { return }
        cluster.lastStop = .inOrder(lastIndex: max(lastIndex, welcome.servesFrom))
    }

    mutating func forgetStop() { cluster.lastStop = .forgotten }

    /// Begins without swarms where all that have elected this master have left in good order.
    mutating func beginEmptyWhenAllHadLeft(_ voters: [VoterPromise]) {
        let hadLeft = has(.emptiedByOne) ? cluster.lastStop.isInOrder : voters.allSatisfy(\.answer.leftInOrder)
        cluster.hasBegunEmpty = hadLeft && !voters.isEmpty && !configuration.keepsSwarms
        guard cluster.hasBegunEmpty else { return forgetStop() }
        commands.insert(.emptySwarms, at: 0)
    }

    /// A shard is emptied: by this master's own doing, or by an entry that the one before it had left.
    mutating func noteEmptied(_ effects: inout Effects) {
        guard phase == .master, !isBeginningEmpty, !cluster.hasBegunEmpty else { return }
        cluster.hasBegunEmpty = true
        effects.observations.append(.swarmsEmptied)
    }

    /// Whether the swarms of before the stop are still to go: until then, nobody is answered.
    var isBeginningEmpty: Bool { commandUnderWay == .emptySwarms || commands.first == .emptySwarms }

    /// What takes all swarms out.
    var emptyingUpdates: [Update] {
        (0..<promise.shardCount).filter { !state.table.isEmpty(shard: $0) }.map(Update.emptyShard)
    }
}
