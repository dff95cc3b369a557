/// What an operator asks: checked here, brought into the log as updates, a few with each entry.

import Primitives
import Wire

extension TrackerNode {
    mutating func obey(_ command: OperatorCommand, _ now: ClockReading, _ effects: inout Effects) {
        switch command {
        case .setAccess(let rules):
            guard rules.infoHashes.count <= configuration.limits.listedInfoHashes else {
                return decline("the list holds more than \(configuration.limits.listedInfoHashes) info hashes", &effects)
            }
            guard rules.users.count <= configuration.limits.users else {
                return decline("there are more than \(configuration.limits.users) users", &effects)
            }
            // A command that is still on its way in is overtaken by this one: the difference is to what will be.
            enqueue(state.access.updates(towards: rules), isAccess: true)
        case .registerTorrents(let torrents):
            guard state.registry.count + torrents.count <= configuration.limits.registeredTorrents else {
                return decline(
                    "the registry would hold more than \(configuration.limits.registeredTorrents) torrents", &effects)
            }
            let changed = torrents.filter { state.registry.find($0.infoHash) != $0 }
            enqueue(
                changed.map {
                    .registerTorrent(
                        $0.infoHash, byteCount: $0.byteCount, name: Array($0.name.utf8.prefix(Limits.nameBytes)))
                }, isAccess: false)
        case .unregisterTorrents(let infoHashes):
            enqueue(
                infoHashes.filter { state.registry.find($0) != nil }.map(Update.unregisterTorrent), isAccess: false)
        case .drain:
            drain(&effects)
        }
    }

    /// Puts updates behind those that wait already; rules that wait are replaced by later ones.
    private mutating func enqueue(_ updates: [Update], isAccess: Bool) {
        var waiting = backlog
        if isAccess { waiting.removeAll(where: \.isAccessUpdate) }
        backlog = updates.reversed() + waiting
    }

    private func decline(_ reason: String, _ effects: inout Effects) {
        effects.observations.append(.commandRefused(reason))
    }

    private mutating func drain(_ effects: inout Effects) {
        backlog = []
        switch phase {
        case .candidate, .master:
            phase = .draining
        case .restoring:
            phase = .stopped
            effects.observations.append(.drained)
        case .draining, .stopped, .failed:
            break
        }
    }
}

extension Update {
    fileprivate var isAccessUpdate: Bool {
        switch self {
        case .setAccessMode, .listInfoHash, .unlistInfoHash, .putUser, .removeUser: true
        case .announceIPv4, .announceIPv6, .expire, .registerTorrent, .unregisterTorrent: false
        }
    }
}
