// What a tracker has lived through in its cluster.

import Synchronization
import TrackerLogic
import Web
import Wire

/// What a tracker has lived through in its cluster: counted for the metrics, and told to the hooks.
final class ElectionObserver: Sendable {
    private struct State {
        var tally = ElectionTally()
        var hook: HookState
        var members: [UInt32] = []
    }

    private let state: Mutex<State>

    /// - Parameter id: this tracker's number; 0 while it has none.
    init(id: UInt32) {
        state = Mutex(State(hook: HookState(isMaster: false, id: id, epoch: .zero, master: 0)))
    }

    /// Whether this tracker follows a master.
    var isSlave: Bool { state.withLock { !$0.hook.isMaster && $0.hook.master != 0 } }

    var tally: ElectionTally { state.withLock { $0.tally } }

    /// Notes what has happened.
    ///
    /// - Returns: the role, where it may have changed.
    func observed(_ observation: Observation) -> HookState? {
        state.withLock { state in
            switch observation {
            case .becameMaster(let epoch):
                state.tally.victories += 1
                (state.hook.isMaster, state.hook.epoch, state.hook.master) = (true, epoch, state.hook.id)
            case .steppedDown:
                state.tally.stepDowns += 1
                (state.hook.isMaster, state.hook.master) = (false, 0)
            case .follows(let master, let epoch):
                (state.hook.isMaster, state.hook.epoch, state.hook.master) = (false, epoch, master)
            case .fenced, .drained: (state.hook.isMaster, state.hook.master) = (false, 0)
            case .idAssigned(let id):
                state.hook.id = id
                return nil
            case .suspects: return count(&state.tally.suspicions)
            case .stands: return count(&state.tally.candidacies)
            case .transferEnded: return count(&state.tally.transfers)
            case .merged: return count(&state.tally.merges)
            case .diverged: return count(&state.tally.divergences)
            case .joinRefused, .trackerUp, .trackerDown, .transferBegan, .aborted, .membersChanged, .storageFailed,
                .storageRecovered, .voteFailed, .voteRecovered, .settingsDiffer, .accessChanged, .registryChanged,
                .commandRefused, .commandDropped, .stopsWithCluster, .swarmsEmptied, .changeEnded, .fileAccountsSet:
                return nil
            }
            return state.hook
        }
    }

    /// Whether the members are others than those told last: the logic tells of each entry that sets them, and of each
    /// order.
    func isNews(_ members: [UInt32]) -> Bool {
        state.withLock { state in
            defer { state.members = members }
            return state.members != members
        }
    }

    private func count(_ number: inout UInt64) -> HookState? {
        number += 1
        return nil
    }
}
