/// Events, effects and outcomes in a few words, for the lines of a trace.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

extension Event {
    /// A number for the trace's hash.
    var tag: UInt64 {
        switch self {
        case .started: 1
        case .datagramsReceived: 2
        case .requestReceived: 3
        case .persisted: 4
        case .persistFailed: 5
        case .deadlineReached: 6
        case .commandReceived: 7
        case .messageReceived: 8
        case .busConnected: 9
        case .busLost: 10
        case .reportMade: 11
        }
    }
}

extension StorageFailure {
    var tag: UInt64 {
        switch self {
        case .full: 1
        case .locked: 2
        case .readOnly: 3
        case .broken: 4
        }
    }
}

extension Persist.Change {
    var name: String {
        switch self {
        case .promise(let promise): "promise \(promise.epoch)"
        case .append(let index, let entry): "entry \(index) of \(entry.count) bytes"
        case .truncate(let from): "truncation from \(from)"
        case .saveChunk(let chunk): "chunk \(chunk.number) at \(chunk.index)"
        case .trim(let through): "trim through \(through)"
        case .replaceAll: "replacement of all"
        }
    }
}

extension World {
    static func describe(_ event: Event, _ machine: TrackerNode, _ effects: Effects) -> String {
        var text =
            switch event {
            case .started: "starts"
            case .datagramsReceived(let batch): "hears \(batch.datagrams.count) datagrams"
            case .requestReceived(let request): "hears visit \(request.id)"
            case .persisted(let token): "is told that write \(token.rawValue) is durable"
            case .persistFailed(let token, let failure): "is told that write \(token.rawValue) failed: \(failure)"
            case .deadlineReached: "wakes"
            case .commandReceived(let command): describe(command)
            case .messageReceived(let message): "hears tracker \(message.sender.id)"
            case .busConnected: "has its bus"
            case .busLost: "loses its bus"
            case .reportMade: "reports"
            }
        if !effects.replies.isEmpty { text += ", replies \(effects.replies.datagrams.count)" }
        if !effects.answers.isEmpty { text += ", answers \(effects.answers.count)" }
        for persist in effects.persists { text += ", writes \(persist.token.rawValue): \(persist.change.name)" }
        for observation in effects.observations { text += ", \(ClusterText.describe(observation))" }
        let counts = machine.state.table.counts
        return text + " · entry \(machine.state.index), \(counts.torrents) swarms, \(counts.peers) peers"
    }

    private static func describe(_ command: OperatorCommand) -> String {
        switch command {
        case .setAccess(let rules): "is commanded: access \(rules.mode)"
        case .registerTorrents(let torrents): "is commanded: register \(torrents.count) torrents"
        case .unregisterTorrents(let torrents): "is commanded: unregister \(torrents.count) torrents"
        case .addMember(let id): "is commanded: make \(id) a voter"
        case .removeMember(let id): "is commanded: take the vote of \(id)"
        case .replaceMember(let id, let other): "is commanded: give the vote of \(id) to \(other)"
        case .handOver(let id): "is commanded: hand over to \(id)"
        case .drain, .stopCluster: "is commanded: stop"
        case .emptySwarms: "is commanded: empty the swarms"
        }
    }

    static func describe(_ outcome: Announcer.Outcome) -> String {
        switch outcome {
        case .announced(let announce):
            "is answered: \(announce.peers.count) peers, \(announce.seeders) seeders, \(announce.leechers) leechers"
        case .scraped(let counts): "is told of \(counts.count) swarms"
        case .refused(let message): "is refused: \(String(decoding: message, as: UTF8.self))"
        case .malformed: "cannot read the answer"
        case .timedOut: "gives up"
        }
    }
}
