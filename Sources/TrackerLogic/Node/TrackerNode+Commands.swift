// What an operator asks.

import Primitives
import Wire

/// What an operator asks: checked here, brought into the log as updates, a few with each entry.
///
///     waiting ── its turn ──► under way ── all its updates applied ──► told
///        ▲                        │
///        └── an entry not stored ─┘  once more, a second later
///
/// Commands are carried out one after another: what a command changes is worked out only when all before it is applied.
/// Access rules that wait or are under way are overtaken by later ones.
extension TrackerNode {
    mutating func obey(_ command: OperatorCommand, _ now: ClockReading, _ effects: inout Effects) {
        if command == .drain { return drain(now, &effects) }
        guard phase != .draining, phase != .stopped, phase != .failed else {
            return turnAway(command, "the tracker is stopping, or has lost its disk", &effects)
        }
        if let following = office.following, following.isWelcomed {
            let master = following.life.id
            return drop(command, "this tracker follows tracker \(master): that one has to be asked", &effects)
        }
        if case .handOver(let id) = command { return handOver(to: id, now, &effects) }
        if command == .elect { return resign(now, &effects) }
        if command == .stopCluster {
            // Whoever has no bus is all of it.
            guard policy.hasBus else { return drain(now, &effects) }
            guard phase == .master else {
                return decline("there is no master now: stop each tracker by itself", &effects)
            }
            return stopCluster(now, &effects)
        }
        if case .setAccess(let rules) = command {
            let limits = configuration.limits
            guard rules.infoHashes.count <= limits.listedInfoHashes else {
                return decline("the list holds more than \(limits.listedInfoHashes) info hashes", &effects)
            }
            guard rules.users.count <= limits.users else {
                return decline("there are more than \(limits.users) users", &effects)
            }
            overtake { $0.isAboutAccess }
        }
        if case .setFileAccounts = command { overtake { $0.isAboutFileAccounts } }
        if case .setFileTorrents = command { overtake { $0.isAboutFileTorrents } }
        guard commands.count < Limits.waitingCommands else {
            return turnAway(command, "\(Limits.waitingCommands) commands are waiting already", &effects)
        }
        commands.append(command)
    }

    /// A later word takes the place of those that wait, or are under way.
    private mutating func overtake(_ isEarlier: (OperatorCommand) -> Bool) {
        commands.removeAll(where: isEarlier)
        if let commandUnderWay, isEarlier(commandUnderWay) {
            self.commandUnderWay = nil
            backlog = []
        }
    }

    /// Whether any is on its way.
    @inline(__always)
    var hasCommands: Bool { commandUnderWay != nil || !commands.isEmpty }

    /// Whether access rules are on their way into force.
    @inline(__always)
    var isAccessChanging: Bool {
        commandUnderWay?.isAboutAccess == true || commands.contains(where: { $0.isAboutAccess })
    }

    /// Ends the command whose updates are all applied, and begins the next: for whoever has nothing on its way into the
    /// log.
    mutating func beginNextCommand(_ now: ClockReading, _ effects: inout Effects) {
        if let due = commandsResumeAt {
            guard due <= now.monotonic else { return }
            commandsResumeAt = nil
        }
        while backlog.isEmpty {
            if let done = commandUnderWay { effects.observations.append(outcome(of: done)) }
            commandUnderWay = nil
            guard !commands.isEmpty else { return }
            let command = commands.removeFirst()
            if case .change(let number, let change) = command {
                begin(change, number, &effects)
                continue
            }
            switch updates(of: command) {
            case .success(let updates):
                commandUnderWay = command
                backlog = updates.reversed()
            case .failure(let impossible):
                decline(impossible.reason, &effects)
            }
        }
    }

    private mutating func handOver(to id: UInt32, _ now: ClockReading, _ effects: inout Effects) {
        guard phase == .master, let neighbour = neighbours[id: id], mayTakeOver(neighbour) else {
            return decline("tracker \(id) cannot take over: it is no voter, or not in sync", &effects)
        }
        beginHandover(to: neighbour.life, now)
    }

    /// The operator wants an election: this master is one among all others from now on, and may be elected again.
    private mutating func resign(_ now: ClockReading, _ effects: inout Effects) {
        guard policy.hasBus else { return decline("this tracker is alone: there is nobody to elect", &effects) }
        guard phase == .master else {
            return decline("there is no master now: an election is under way already", &effects)
        }
        guard !handover.isUnderWay else {
            return decline("the master is handing its role over: wait until that is done", &effects)
        }
        stepDown(.asked, now, &effects)
    }

    /// An entry was not stored: what it held of a command is lost, and worked out again in a while.
    mutating func postponeCommand(_ now: ClockReading) {
        guard let command = commandUnderWay else { return }
        commandUnderWay = nil
        backlog = []
        commands.insert(command, at: 0)
        commandsResumeAt = now.monotonic + .seconds(1)
    }

    /// Drops what waits and what is under way.
    ///
    /// With `keepsEmptying` the emptying of the swarms stays: no operator has asked for it, and until it is done a
    /// master opens its doors to nobody.
    mutating func dropCommands(_ reason: String, keepsEmptying: Bool = false, _ effects: inout Effects) {
        let keepsUnderWay = keepsEmptying && commandUnderWay == .emptySwarms
        let keepsFirst = keepsEmptying && !keepsUnderWay && commands.first == .emptySwarms
        if keepsFirst { commands.removeFirst() }
        if !keepsUnderWay, let commandUnderWay { commands.insert(commandUnderWay, at: 0) }
        // Of changes each asker is told, of the others all at once.
        if let other = commands.first(where: { !$0.isChange }) { drop(other, reason, &effects) }
        for command in commands where command.isChange { drop(command, reason, &effects) }
        commands = keepsFirst ? [.emptySwarms] : []
        guard !keepsUnderWay else { return }
        commandUnderWay = nil
        backlog = []
    }

    /// Why a command cannot be carried out, in a sentence.
    struct Impossible: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// What a command changes in the state as it is.
    private func updates(of command: OperatorCommand) -> Result<[Update], Impossible> {
        switch command {
        case .setAccess(let rules):
            return .success(state.access.updates(towards: rules))
        case .setFileTorrents(let torrents):
            return state.judge(fileTorrents: torrents, configuration.limits).mapError { Impossible($0.reason) }
        case .addMember(let id): return memberUpdates(MemberChange(added: id))
        case .removeMember(let id): return memberUpdates(MemberChange(removed: id))
        case .replaceMember(let id, let other): return memberUpdates(MemberChange(added: other, removed: id))
        case .emptySwarms: return .success(emptyingUpdates)
        case .setFileAccounts(let accounts):
            return state.judge(fileAccounts: accounts).map { $0.updates }.mapError { Impossible($0.reason) }
        // A change is judged, and has an outcome of its own (`begin`).
        case .drain, .handOver, .elect, .stopCluster, .change: return .success([])
        }
    }

    private func outcome(of command: OperatorCommand) -> Observation {
        switch command {
        case .setAccess:
            .accessChanged(
                state.access.mode, infoHashes: state.access.infoHashCount, users: state.access.userCount)
        case .addMember, .removeMember, .replaceMember: .membersChanged(state.members)
        case .emptySwarms: .swarmsEmptied
        case .change(let number, let change):
            .changeEnded(number: number, state.outcome(of: change))
        case .setFileAccounts(let accounts): .fileAccountsSet(accounts: accounts.count, leftOut: leftOut(of: accounts))
        case .setFileTorrents, .handOver, .elect, .drain, .stopCluster:
            .registryChanged(torrents: state.registry.count)
        }
    }

    private func decline(_ reason: String, _ effects: inout Effects) {
        effects.observations.append(.commandRefused(reason))
    }

    /// Accounts of files that the console has others in the place of.
    private func leftOut(of accounts: [Account]) -> Int {
        accounts.count { state.accounts.find($0.name)?.account.origin == .console }
    }

    /// A command is not taken.
    private func turnAway(_ command: OperatorCommand, _ reason: String, _ effects: inout Effects) {
        if command.isChange { drop(command, reason, &effects) } else { decline(reason, &effects) }
    }

    private func drop(_ command: OperatorCommand, _ reason: String, _ effects: inout Effects) {
        if case .change(let number, _) = command {
            effects.observations.append(.changeEnded(number: number, .dropped(reason)))
        } else {
            effects.observations.append(.commandDropped(reason))
        }
    }

    mutating func drain(_ now: ClockReading, _ effects: inout Effects) {
        // The operator's rules are dropped with the rest, and what they forbid is not to slip in for the stop.
        if !isServing, isAccessChanging { departure.keepDoorsShut() }
        // A master that has begun to empty the swarms goes on with that: the next one may not know that it has to.
        dropCommands("the tracker stopped before it was carried out", keepsEmptying: phase == .master, &effects)
        switch phase {
        case .candidate, .master, .following:
            if !departure.isLeaving { leave(now, &effects) }
        case .restoring:
            office.stop()
            effects.observations.append(.drained)
        case .failed:
            // Nobody waits, and nothing more can be written.
            effects.observations.append(.drained)
        case .draining, .stopped:
            break
        }
    }
}

extension OperatorCommand {
    fileprivate var isAboutAccess: Bool { if case .setAccess = self { true } else { false } }
    fileprivate var isAboutFileAccounts: Bool { if case .setFileAccounts = self { true } else { false } }
    fileprivate var isAboutFileTorrents: Bool { if case .setFileTorrents = self { true } else { false } }
    fileprivate var isChange: Bool { if case .change = self { true } else { false } }
}
