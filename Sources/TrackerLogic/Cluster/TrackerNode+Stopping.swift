// Carrying out an orderly stop, of this tracker and of the cluster (`Departure`).

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Leaving

    /// An orderly stop: a master hands its role over, a slave waits for what it has sent on.
    mutating func leave(_ now: ClockReading, _ effects: inout Effects) {
        departure.leave(by: now.monotonic + policy.detectionTime * 2, isLast: !policy.hasBus)
        guard phase == .master, !departure.stopsAll else { return }
        let order = policy.election.order(
            neighbours.all.filter(mayTakeOver).map { $0.life.id }, after: admission.id)
        if let successor = order.first, let place = neighbours.place(of: successor) {
            beginHandover(to: neighbours[place].life, now)
        }
    }

    // MARK: - The whole cluster

    /// The operator wants the whole cluster to stop.
    mutating func stopCluster(_ now: ClockReading, _ effects: inout Effects) {
        guard departure.stopAll() else { return }
        handover.cancel()
        effects.observations.append(.stopsWithCluster(by: admission.id))
        leave(now, &effects)
        // The others leave first, each within the time that it has for it.
        departure.leave(by: now.monotonic + policy.detectionTime * 4)
        sendStop(&effects)
    }

    /// Tells those that are still there, as some may not have heard it.
    mutating func sendStop(_ effects: inout Effects) {
        guard departure.stopsAll else { return }
        for neighbour in neighbours.all where neighbour.isUp { send(.stop, to: neighbour.life, &effects) }
    }

    /// The master, or who was master just now, says that the whole cluster is to stop.
    mutating func stopReceived(_ sender: Life, _ now: ClockReading, _ effects: inout Effects) {
        guard !departure.isLeaving, office.follows(sender) || candidate.lastMaster == sender.id else {
            return
        }
        effects.observations.append(.stopsWithCluster(by: sender.id))
        drain(now, &effects)
    }

    // MARK: - Coming back

    /// Takes back the note of the last life, if there is one.
    mutating func recallStop(_ effects: inout Effects) {
        guard promise.leftInOrder else { return }
        departure.recall()
        if has(.stopNoteKept) { return stopRecalled() }
        acceptor.recallStop()
        persist(.promise(promise), .stopRecalled, &effects)
    }

    /// Tries again to take it back: a disk that could not be written to may be well again.
    mutating func recallStopAgain(_ effects: inout Effects) {
        guard acceptor.hasNote, !writes.hasRecall else { return }
        persist(.promise(promise), .stopRecalled, &effects)
    }

    mutating func stopRecalled() {
        acceptor.stopRecalled()
        // A master that goes on may have let it in meanwhile.
        guard departure.isRecalling || has(.recallOutlivesWelcome) else { return }
        guard !configuration.keepsSwarms else { return departure.forget() }
        departure.recalled(through: max(state.index, log.pending?.header.index ?? 0))
    }

    /// Begins without swarms where all that have elected this master have left in good order.
    mutating func beginEmptyWhenAllHadLeft(_ voters: [VoterPromise]) {
        let hadLeft = has(.emptiedByOne) ? departure.wasInOrder : voters.allSatisfy { $0.answer.leftInOrder }
        let beginsEmpty = hadLeft && !voters.isEmpty && !configuration.keepsSwarms
        departure.begin(empty: beginsEmpty)
        guard beginsEmpty else { return departure.forget() }
        commands.insert(.emptySwarms, at: 0)
    }

    /// A shard is emptied: by this master's own doing, which it has noted as it came into office, or by an entry that
    /// the one before it had left.
    mutating func noteEmptied(_ effects: inout Effects) {
        guard phase == .master, departure.noteEmptied() else { return }
        effects.observations.append(.swarmsEmptied)
    }

    /// Whether the swarms of before the stop are still to go: until then, nobody is answered.
    @inline(__always)
    var isBeginningEmpty: Bool { commandUnderWay == .emptySwarms || commands.first == .emptySwarms }

    /// What takes all swarms out.
    var emptyingUpdates: [Update] {
        (0..<promise.shardCount).filter { !state.table.isEmpty(shard: $0) }.map(Update.emptyShard)
    }
}
