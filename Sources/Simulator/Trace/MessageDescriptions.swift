// Messages between trackers in a few words, for the lines of a trace.

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
        case .report: 24
        case .order: 25
        case .ordered: 26
        case .stop: 27
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
        case .report: "REPORT"
        case .order: "ORDER"
        case .ordered: "ORDERED"
        case .stop: "STOP"
        }
    }
}

extension ClusterMessage.Body {
    /// What a reader wants to know beside the name.
    fileprivate func details(in epoch: Epoch) -> String {
        switch self {
        case .keepalive(let keepalive):
            " \(keepalive.role) at entry \(keepalive.position.index)\(keepalive.hasFullState ? "" : ", not whole")"
        case .suspect(let position), .coordinator(let position): " at entry \(position.index)"
        case .commit(let position): " through entry \(position.index)"
        case .answer(let answer):
            " at entry \(answer.position.index)"
                + (answer.pending.map { ", has accepted \($0.header.ballot.words(in: epoch))" } ?? "")
        case .prepare(let entry, let position):
            " \(entry.header.words(in: epoch)), decided is \(position.index)"
        case .ok(let ballot): " \(ballot.words(in: epoch))"
        case .error(let ballot, let reason): " \(ballot.words(in: epoch)): \(reason.words)"
        case .confirm(let round), .confirmed(let round): " round \(round)"
        case .fetch(let position): " after entry \(position.index)"
        case .entries(let entries, let position):
            " \(Words.counted(entries.count, "entry", "entries")), decided is \(position.index)"
        case .hello(let hello):
            " at entry \(hello.position.index)\(hello.hasFullState ? "" : ", not whole")"
                + (hello.isBlank ? ", blank, has heard \(Words.counted(hello.heard.count, "blank one"))" : "")
        case .welcome(let welcome):
            " as \(welcome.id), entry \(welcome.position.index), serves from \(welcome.servesFrom)"
                + (welcome.needsTransfer ? ", by transfer" : "")
        case .refused(let refusal): ": \(refusal.words)"
        case .fetchChunk(let number): " \(number)"
        case .chunk(let number, let index, let bytes): " \(number) as of entry \(index), \(bytes.count) bytes"
        case .welcomeDone(let position, _): " at entry \(position.index)"
        case .forward(let requests, let floor, _):
            " \(Words.list("request", requests.map { String($0.number) })), none below \(floor)"
        case .answered(let answers): " \(Words.list("request", answers.map { String($0.number) }))"
        case .order(let number, let order): " \(number) \(order)"
        case .ordered(let number, let outcome): " \(number) \(outcome)"
        case .election, .handover, .leave, .report, .stop: ""
        }
    }

    /// What lines with this message are about.
    var kinds: TraceKinds {
        switch self {
        case .keepalive: .messages
        case .suspect, .election, .answer, .coordinator, .handover: [.messages, .elections]
        case .prepare, .ok, .error, .commit, .fetch, .entries: [.messages, .votes]
        case .confirm, .confirmed, .forward, .answered: [.messages, .clients]
        case .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone: [.messages, .joins]
        case .leave, .stop: [.messages, .lives]
        case .report: .messages
        case .order, .ordered: [.messages, .commands]
        }
    }
}

extension RefusalReason {
    var words: String {
        switch self {
        case .cannotStore: "cannot store it"
        case .staleEpoch: "has promised a higher epoch"
        }
    }
}

extension Ballot {
    var text: String { "\(epoch)\(attempt > 0 ? "+\(attempt)" : "")/\(index)" }

    /// The ballot in words, without its epoch where that is `known`.
    func words(in known: Epoch) -> String {
        "entry \(index)" + (attempt > 0 ? ", attempt \(attempt)" : "") + (epoch == known ? "" : " of epoch \(epoch)")
    }
}

extension EntryHeader {
    fileprivate func words(in known: Epoch) -> String {
        let content = updateCount == 0 ? "empty" : Words.counted(Int(clamping: updateCount), "update")
        return "\(ballot.words(in: known)) (\(content))"
    }
}

extension ClusterMessage {
    /// Its name, its epoch, and what it says.
    var text: String { "\(body.name) [\(epoch)]\(body.details(in: epoch))" }
}

/// Numbers with their nouns.
///
/// `TraceText` has events and effects.
enum Words {
    static func counted(_ count: Int, _ one: String, _ many: String? = nil) -> String {
        "\(count) \(count == 1 ? one : many ?? one + "s")"
    }

    /// `request 3`, `requests 3, 4 and 12 more`.
    static func list(_ noun: String, _ items: [String], atMost limit: Int = 6) -> String {
        let rest = items.count > limit ? " and \(items.count - limit) more" : ""
        return "\(noun)\(items.count == 1 ? "" : "s") \(items.prefix(limit).joined(separator: ", "))\(rest)"
    }
}
