// What a step is like, as far as checkers are chosen by it.

import Primitives
import TrackerLogic
import Wire

/// What has happened to a tracker, without what came with it.
///
/// It is found out once a step: most checkers want one kind only, and there are many of them.
enum EventKind: Sendable {
    case started, datagrams, request, persisted, persistFailed, busConnected, busLost, report, deadline, command
    /// A message of those that checkers want to know of, or any other.
    case keepalive, suspect, answer, confirmed, fetch, entries, hello, refused, fetchChunk, welcomeDone, forward
    case answered, leave, message

    @inline(__always)
    init(_ event: Event) {
        switch event {
        case .started: self = .started
        case .datagramsReceived: self = .datagrams
        case .requestReceived: self = .request
        case .persisted: self = .persisted
        case .persistFailed: self = .persistFailed
        case .messageReceived(let message):
            switch message.body {
            case .keepalive: self = .keepalive
            case .suspect: self = .suspect
            case .answer: self = .answer
            case .confirmed: self = .confirmed
            case .fetch: self = .fetch
            case .entries: self = .entries
            case .hello: self = .hello
            case .refused: self = .refused
            case .fetchChunk: self = .fetchChunk
            case .welcomeDone: self = .welcomeDone
            case .forward: self = .forward
            case .answered: self = .answered
            case .leave: self = .leave
            case .election, .coordinator, .prepare, .ok, .error, .commit, .confirm, .welcome, .chunk, .handover,
                .report, .order, .ordered, .stop:
                self = .message
            }
        case .busConnected: self = .busConnected
        case .busLost: self = .busLost
        case .reportMade: self = .report
        case .deadlineReached: self = .deadline
        case .commandReceived: self = .command
        }
    }

    /// Whether another tracker has said something.
    @inline(__always)
    var isMessage: Bool {
        switch self {
        case .started, .datagrams, .request, .persisted, .persistFailed, .busConnected, .busLost, .report, .deadline,
            .command:
            false
        case .keepalive, .suspect, .answer, .confirmed, .fetch, .entries, .hello, .refused, .fetchChunk, .welcomeDone,
            .forward, .answered, .leave, .message:
            true
        }
    }
}

extension Checks {
    /// Whether wall clocks differ so little that no connection id goes bad before its time, and none was set.
    var hasGoodClocks: Bool {
        get { scene.hasGoodClocks }
        set { scene.hasGoodClocks = newValue }
    }

    /// A tracker takes a step that has died, and has not begun anew.
    mutating func noteDead(_ node: Int, at time: Instant) {
        scene.violate(.timeGoesOn, at: time, "\(scene.name(node)) takes a step and is not alive")
    }

    /// Whether a tracker has heard that another lives, or looked at its clock, and has done nothing.
    ///
    /// Where it is as it was, too, there is nothing to check. Most steps are so.
    @inline(__always)
    static func isQuiet(_ kind: EventKind, _ event: Event, _ effects: borrowing Effects, of id: UInt32) -> Bool {
        switch kind {
        case .deadline: return effects.isNothing
        case .keepalive:
            // What another one of its number says may be a reason to do something.
            guard effects.isNothing, case .messageReceived(let message) = event else { return false }
            return message.sender.id != id
        default: return false
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

    /// Whether a tracker leaves in good order: it writes the last of its record, or ends at once.
    ///
    /// What it says does not tell: without a bus nobody hears its LEAVE, so it does not say it. Where it has no bus at
    /// all (`isAlone`), its last write is all of its record.
    static func leaves(_ effects: borrowing Effects, isAlone: Bool) -> Bool {
        if effects.observations.contains(.drained) { return true }
        return effects.persists.contains { write in
            switch write.change {
            case .promise(let promise): promise.leftInOrder
            case .replaceAll: isAlone
            case .append, .saveChunk, .trim: false
            }
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
