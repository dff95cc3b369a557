// What a step is like, as far as checkers are chosen by it.

import TrackerLogic
import Wire

extension Checks {
    /// Whether wall clocks differ so little that no connection id goes bad before its time, and none was set.
    var hasGoodClocks: Bool {
        get { scene.hasGoodClocks }
        set { scene.hasGoodClocks = newValue }
    }

    /// Whether a tracker has heard that another lives, or looked at its clock, and has done nothing.
    ///
    /// Where it is as it was, too, there is nothing to check. Most steps are so.
    @inline(__always)
    static func isQuiet(_ event: Event, _ effects: borrowing Effects, of id: UInt32) -> Bool {
        switch event {
        case .deadlineReached: effects.isNothing
        case .messageReceived(let message):
            // What another one of its number says may be a reason to do something.
            if case .keepalive = message.body { effects.isNothing && message.sender.id != id } else { false }
        case .started, .datagramsReceived, .requestReceived, .persisted, .persistFailed, .busConnected, .busLost,
            .commandReceived, .reportMade:
            false
        }
    }

    /// Whether a tracker says that it takes a state over, or has, or writes one down that it has fetched.
    static func isTransfer(_ effects: borrowing Effects) -> Bool {
        if effects.persists.contains(where: { if case .replaceAll = $0.change { true } else { false } }) { return true }
        return effects.observations.contains {
            if case .transferBegan = $0 { return true }
            if case .transferEnded = $0 { return true }
            return false
        }
    }

    /// Whether a tracker says that it has become master.
    static func isMaster(_ effects: borrowing Effects) -> Bool {
        effects.observations.contains { if case .becameMaster = $0 { true } else { false } }
    }
}

extension Entry {
    /// Whether it changes what people keep at the console, or which torrents are registered.
    var changesConsole: Bool {
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(bytes) {
            if case .console = update { return true }
            if case .unregisterTorrent = update { return true }
        }
        return false
    }
}
