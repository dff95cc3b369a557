/// Messages, events and effects of a cluster in a few words, for the lines of a trace.

import Primitives
import TrackerLogic
import Wire

extension ClusterMessage.Body {
    /// A number for the trace's hash.
    var tag: UInt64 {
        switch self {
        case .keepalive: 1
        case .suspect: 2
        case .election: 3
        case .answer: 4
        case .coordinator: 5
        case .prepare: 6
        case .ok: 7
        case .error: 8
        case .commit: 9
        case .confirm: 10
        case .confirmed: 11
        case .fetch: 12
        case .entries: 13
        case .hello: 14
        case .welcome: 15
        case .refused: 16
        case .fetchChunk: 17
        case .chunk: 18
        case .welcomeDone: 19
        case .forward: 20
        case .answered: 21
        case .handover: 22
        case .leave: 23
        }
    }

    /// In the words of the design.
    var name: String {
        switch self {
        case .keepalive: "KEEPALIVE"
        case .suspect: "SUSPECT"
        case .election: "ELECTION"
        case .answer: "ANSWER"
        case .coordinator: "COORDINATOR"
        case .prepare: "PREPARE"
        case .ok: "OK"
        case .error: "ERROR"
        case .commit: "COMMIT"
        case .confirm: "CONFIRM"
        case .confirmed: "CONFIRMED"
        case .fetch: "FETCH"
        case .entries: "ENTRIES"
        case .hello: "HELLO"
        case .welcome: "WELCOME"
        case .refused: "REFUSED"
        case .fetchChunk: "FETCH-CHUNK"
        case .chunk: "CHUNK"
        case .welcomeDone: "WELCOME-DONE"
        case .forward: "FORWARD"
        case .answered: "ANSWERED"
        case .handover: "HANDOVER"
        case .leave: "LEAVE"
        }
    }

    /// What a reader wants to know beside the name.
    fileprivate var details: String {
        switch self {
        case .keepalive(let keepalive):
            " \(keepalive.role) at \(keepalive.position.index)\(keepalive.isWhole ? "" : " not whole")"
        case .suspect(let position), .coordinator(let position), .commit(let position): " at \(position.index)"
        case .answer(let answer):
            " at \(answer.position.index)"
                + ((try? EntryHeader(answer.pending)).map { " pending \($0.ballot.text)" } ?? "")
        case .prepare(let entry, let position):
            " \((try? EntryHeader(entry)).map { "\($0.ballot.text) of \($0.updateCount)" } ?? "?") at \(position.index)"
        case .ok(let ballot): " \(ballot.text)"
        case .error(let ballot, let reason): " \(ballot.text) \(reason)"
        case .confirm(let round), .confirmed(let round): " \(round)"
        case .fetch(let position): " after \(position.index)"
        case .entries(let entries, let position): " \(entries.count) at \(position.index)"
        case .hello(let hello):
            " at \(hello.position.index)\(hello.isWhole ? " whole" : "")\(hello.isBlank ? " blank" : "") "
                + "heard \(hello.heard.count)"
        case .welcome(let welcome):
            " \(welcome.id) at \(welcome.position.index) serves from \(welcome.servesFrom)"
                + (welcome.needsTransfer ? " by transfer" : "")
        case .refused(let refusal): " \(refusal)"
        case .fetchChunk(let number): " \(number)"
        case .chunk(let number, let index, let bytes): " \(number) at \(index) of \(bytes.count)"
        case .welcomeDone(let position, _): " at \(position.index)"
        case .forward(let requests, let floor, _):
            " \(requests.map { String($0.number) }.joined(separator: ",")) floor \(floor)"
        case .answered(let answers): " \(answers.map { String($0.number) }.joined(separator: ","))"
        case .election, .handover, .leave: ""
        }
    }
}

extension Ballot {
    var text: String { "\(epoch)\(attempt > 0 ? "+\(attempt)" : "")/\(index)" }
}

extension ClusterMessage {
    var text: String { "\(body.name) [\(epoch)]\(body.details)" }
}

enum ClusterText {
    static func describe(_ event: Event) -> String {
        switch event {
        case .started: "starts"
        case .datagramsReceived(let batch): "hears \(batch.datagrams.count) datagrams"
        case .requestReceived(let request): "hears visit \(request.id)"
        case .persisted(let token): "write \(token.rawValue) is durable"
        case .persistFailed(let token, let failure): "write \(token.rawValue) failed: \(failure)"
        case .deadlineReached: "wakes"
        case .commandReceived(let command): "is commanded: \(describe(command))"
        case .messageReceived(let message): "‹ \(message.sender.id) \(message.text)"
        case .busConnected: "has its bus"
        case .busLost: "loses its bus"
        }
    }

    static func describe(_ effects: Effects) -> String {
        var text = ""
        if !effects.replies.isEmpty { text += ", replies \(effects.replies.datagrams.count)" }
        for message in effects.messages {
            switch message.destination {
            case .all: text += ", › all \(message.text)"
            case .one(let life): text += ", › \(life.id) \(message.text)"
            }
        }
        for persist in effects.persists { text += ", writes \(persist.token.rawValue): \(persist.change.name)" }
        for observation in effects.observations { text += ", \(observation)" }
        return text
    }

    static func describe(_ command: OperatorCommand) -> String {
        switch command {
        case .setAccess(let rules): "access \(rules.mode)"
        case .registerTorrents(let torrents): "register \(torrents.count) torrents"
        case .unregisterTorrents(let torrents): "unregister \(torrents.count) torrents"
        case .addMember(let id): "make \(id) a voter"
        case .removeMember(let id): "take the vote of \(id)"
        case .replaceMember(let id, let other): "give the vote of \(id) to \(other)"
        case .handOver(let id): "hand over to \(id)"
        case .drain: "stop"
        }
    }

    /// A column of the trace.
    static func column(_ inspection: Inspection) -> String {
        let letter =
            switch inspection.role {
            case .master: inspection.isServing ? "M" : "m"
            case .slave: inspection.isServing ? "S" : "s"
            case .candidate: "C"
            case .newcomer: "N"
            }
        let pending = inspection.pending == nil ? "" : "+"
        return "\(inspection.isFenced ? "F" : letter) \(inspection.promised) \(inspection.position.index)\(pending)"
    }
}
