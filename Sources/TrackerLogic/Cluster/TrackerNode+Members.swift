/// Change of the voters by entries in the log, one at a time (quorum mode), and leaving in good order.

import Primitives
import Wire

/// A change of the voters that an operator wants: an addition before a removal, so that majorities always overlap.
struct MemberChange: Sendable, Hashable {
    var added: UInt32?
    var removed: UInt32?
}

extension TrackerNode {
    /// The updates of a command about members; nil with the reason where it cannot be carried out.
    func memberUpdates(_ change: MemberChange) -> Result<[Update], Impossible> {
        guard isQuorumMode else { return .failure(Impossible("a cluster without members has none to change")) }
        var members = self.members
        var updates: [Update] = []
        if let added = change.added, !members.contains(added) {
            guard let neighbour = cluster.neighbours[id: added], neighbour.isUp, neighbour.isWhole,
                neighbour.installedIn == election.epoch
            else { return .failure(Impossible("tracker \(added) does not follow, or is not in sync yet")) }
            guard members.count < Neighbours.maxCount else {
                return .failure(Impossible("there are \(members.count) members already"))
            }
            members.append(added)
            members.sort()
            if !has(.membersSwapped) || change.removed == nil { updates.append(.setMembers(members)) }
        }
        if let removed = change.removed, members.contains(removed) {
            guard members.count > 1 else { return .failure(Impossible("the last member stays")) }
            members.removeAll { $0 == removed }
            guard Electorate(voters: members).isQuorum(inStep) else {
                return .failure(Impossible("too few of the members that remain, \(members), are in step"))
            }
            updates.append(.setMembers(members))
        }
        return .success(updates)
    }

    /// This master, and those that follow it and hold everything.
    private var inStep: [UInt32] {
        var ids = [cluster.id]
        for neighbour in cluster.neighbours.all
        where neighbour.isUp && neighbour.isWhole && neighbour.installedIn == election.epoch {
            ids.append(neighbour.life.id)
        }
        return ids
    }

    /// A master that is a voter no more makes way.
    mutating func stepDownWhenRemoved(_ now: ClockReading, _ effects: inout Effects) {
        guard isQuorumMode, phase == .master, !members.contains(cluster.id) else { return }
        broadcast(.commit(at: state.position), epoch: election.epoch, &effects)
        cluster.owesCommit = false
        stepDown(.removed, now, &effects)
    }

    // MARK: - Leaving

    /// An orderly stop: a master hands its role over, a slave waits for what it has sent on.
    mutating func leave(_ now: ClockReading, _ effects: inout Effects) {
        cluster.leavesAt = now.monotonic + policy.detectionTime * 2
        guard phase == .master else { return }
        let order = policy.election.order(
            cluster.neighbours.all.filter(mayTakeOver).map(\.life.id), after: cluster.id)
        if let heir = order.first, let place = cluster.neighbours.place(of: heir) {
            beginHandover(to: cluster.neighbours[place].life, now)
        }
    }

    /// Ends the stop when nobody waits, or it has taken too long.
    mutating func leaveWhenDone(_ now: ClockReading, _ effects: inout Effects) {
        guard let due = cluster.leavesAt, phase == .following || phase == .candidate || phase == .master else { return }
        let isDone: Bool
        switch phase {
        case .master: isDone = cluster.handover == nil && replication.isIdle && gathering.isEmpty
        default: isDone = cluster.book.isEmpty && !log.isWriting
        }
        // Not in the step that answers the last of them.
        guard isDone || due <= now.monotonic, effects.replies.isEmpty else { return }
        if phase == .master { stepDown(.stopping, now, &effects) }
        for request in cluster.book.removeAll() {
            guard let id = request.waiting.clientRequest else { continue }
            effects.answers.append(Answer(id: id, content: .failure(.notServing)))
        }
        if cluster.isBusUp { broadcast(.leave, &effects) }
        cluster.leavesAt = nil
        dropCommands("the tracker stopped before it was carried out", &effects)
        stop(&effects)
    }
}
