// Change of the voters by entries in the log, one at a time (quorum mode).

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
            guard let neighbour = neighbours[id: added], neighbour.isUp, neighbour.hasFullState,
                neighbour.follower.welcomedIn == candidate.epoch
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
                return .failure(Impossible("too few of the members that remain, \(members.inBrackets), are in step"))
            }
            updates.append(.setMembers(members))
        }
        return .success(updates)
    }

    /// This master, and those that follow it and hold everything.
    private var inStep: [UInt32] {
        var ids = [admission.id]
        for neighbour in neighbours.all
        where neighbour.isUp && neighbour.hasFullState && neighbour.follower.welcomedIn == candidate.epoch {
            ids.append(neighbour.life.id)
        }
        return ids
    }

    /// A master that is a voter no more makes way.
    mutating func stepDownWhenRemoved(_ now: ClockReading, _ effects: inout Effects) {
        guard isQuorumMode, phase == .master, !members.contains(admission.id) else { return }
        broadcast(.commit(at: state.position), epoch: candidate.epoch, &effects)
        _ = proposer.takeCommit()
        stepDown(.removed, now, &effects)
    }
}
