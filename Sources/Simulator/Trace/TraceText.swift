// What trackers hear, do and say of themselves, in words for the lines of a trace.

import PeerLogic
import Primitives
import TrackerLogic
import Wire

/// How the lines of a trace call clients, and what people keep at consoles.
enum TraceNames: Sendable {
    /// Simulated clients, by their places; whoever sends from a later place than so many is a stranger.
    case places(Int)
    /// Real ones, by their addresses.
    case addresses
    /// Real ones, by numbers of which nobody can make addresses without the key. What people keep is not named.
    case pseudonyms(SipHash)

    func name(_ address: SocketAddress) -> String {
        switch self {
        case .places(let count):
            let place = AddressPlan.place(of: address)
            return (0..<count).contains(place) ? "client \(place)" : "a stranger"
        case .addresses: return "\(address)"
        case .pseudonyms(let key):
            let number = key.mac(address.high, address.low, UInt64(address.port) << 32 | UInt64(address.scope))
            return "client \(String(number >> 32, radix: 16))"
        }
    }

    var areReal: Bool { if case .pseudonyms = self { false } else { true } }
}

/// What trackers hear, do and say of themselves, in words for the lines of a trace: sentences without their subject.
enum TraceText {
    /// What a tracker hears; `write` says what was written, where the event tells of a write.
    static func describe(_ event: Event, names: TraceNames = .places(.max), write: String? = nil) -> String {
        switch event {
        case .started: "starts"
        case .datagramsReceived(let batch): "hears \(datagrams(batch, names, isReply: false))"
        case .requestReceived(let request): "hears visit \(request.id)"
        case .persisted(let token): "knows durable: \(write ?? "write \(token.rawValue)")"
        case .persistFailed(let token, let failure): "could not write \(write ?? "\(token.rawValue)"): \(failure.words)"
        case .deadlineReached: "wakes"
        case .commandReceived(let command): "is commanded: \(describe(command, names))"
        case .messageReceived(let message):
            "hears \(message.sender.id == 0 ? "one without a number" : "\(message.sender.id)"): "
                + describe(message, names)
        case .busConnected: "has its bus"
        case .busLost: "notices that it has no bus"
        case .reportMade: "reports how it fares"
        }
    }

    static func describe(_ effects: Effects, names: TraceNames = .places(.max)) -> String {
        var text = ""
        if !effects.replies.isEmpty { text += "; answers \(datagrams(effects.replies, names, isReply: true))" }
        for message in effects.messages {
            switch message.destination {
            case .all: text += "; tells all: \(describe(message, names))"
            case .one(let life):
                text += "; tells \(life.id == 0 ? "the newcomer" : "\(life.id)"): \(describe(message, names))"
            }
        }
        for persist in effects.persists { text += "; writes \(persist.change.name)" }
        for observation in effects.observations {
            // The reason of a refusal names accounts.
            if case .changeEnded(let number, let outcome) = observation, !names.areReal {
                text += "; tells what became of \(number): \(isRefusal(outcome) ? "refused" : "\(outcome)")"
            } else {
                text += "; \(describe(observation))"
            }
        }
        return text
    }

    /// `client 3 (announce), a stranger (junk)`.
    private static func datagrams(_ batch: DatagramBatch, _ names: TraceNames, isReply: Bool) -> String {
        let limit = 6
        var items: [String] = []
        for number in batch.datagrams.indices.prefix(limit) {
            let who = names.name(batch.datagrams[number].remote)
            items.append("\(who) (\(action(batch.payload(number), isReply: isReply)))")
        }
        let rest = batch.datagrams.count - limit
        return items.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
    }

    /// What a datagram of BEP 15 is about.
    static func action(_ bytes: [UInt8], isReply: Bool) -> String {
        let offset = isReply ? 0 : 8
        guard bytes.count >= offset + 8 else { return "junk" }
        let number = bytes.span.bytes.u32(at: offset)
        switch number {
        case 0: return "connect"
        case 1: return "announce"
        case 2: return "scrape"
        case 3 where isReply: return "error"
        default: return "junk"
        }
    }

    /// A change at a console names accounts and torrents, and so does what became of it.
    private static func describe(_ message: ClusterMessage, _ names: TraceNames) -> String {
        if names.areReal { return message.text }
        switch message.body {
        case .order(_, .change): return "a change at a console"
        case .ordered(_, .changed): return "what became of a change at a console"
        case .keepalive, .suspect, .election, .answer, .coordinator, .prepare, .ok, .error, .commit, .confirm,
            .confirmed, .fetch, .entries, .hello, .welcome, .refused, .fetchChunk, .chunk, .welcomeDone, .forward,
            .answered, .handover, .leave, .stop, .report, .order, .ordered:
            return message.text
        }
    }

    private static func isRefusal(_ outcome: ChangeOutcome) -> Bool {
        if case .refused = outcome { true } else { false }
    }

    static func describe(_ command: OperatorCommand, _ names: TraceNames = .places(.max)) -> String {
        switch command {
        case .setAccess(let rules): "access \(rules.mode)"
        case .setFileTorrents(let torrents): "register \(Words.counted(torrents.count, "torrent")) from files"
        case .addMember(let id): "make \(id) a voter"
        case .removeMember(let id): "take the vote of \(id)"
        case .replaceMember(let id, let other): "give the vote of \(id) to \(other)"
        case .handOver(let id): "hand over to \(id)"
        case .elect: "elect a master anew"
        case .drain: "stop"
        case .stopCluster: "stop the whole cluster"
        case .emptySwarms: "empty the swarms"
        case .change(let number, let change):
            names.areReal ? "\(change.words) (\(number))" : "a change at a console (\(number))"
        case .setFileAccounts(let accounts): "take \(Words.counted(accounts.count, "account")) from files"
        }
    }

    static func describe(_ observation: Observation) -> String {
        switch observation {
        case .becameMaster(let epoch): "becomes master of epoch \(epoch)"
        case .steppedDown(let epoch, let reason): "is no longer master of epoch \(epoch): \(reason.words)"
        case .follows(let master, let epoch): "follows \(master), master of epoch \(epoch)"
        case .suspects(let epoch): "misses the master of epoch \(epoch)"
        case .stands(let epoch): "stands for master in epoch \(epoch)"
        case .fenced: "answers nobody until the others have welcomed it (fenced)"
        case .joinRefused(let refusal): "may not join: \(refusal.words)"
        case .idAssigned(let id): "is given the number \(id)"
        case .trackerUp(let id): "finds tracker \(id) up"
        case .trackerDown(let id): "takes tracker \(id) for down"
        case .transferBegan(let source): "begins to fetch the whole state from \(source)"
        case .transferEnded(let position): "holds the whole state, at entry \(position.index)"
        case .merged(let source, let updates, let leftOut):
            "has merged what \(source) knew: \(Words.counted(updates, "update"))"
                + (leftOut > 0 ? ", and has left out \(leftOut)" : "")
        case .aborted(let index, let refused):
            "knows entry \(index) refused by vote" + (refused > 0 ? ", \(Words.counted(refused, "client")) told" : "")
        case .membersChanged(let ids): "has the voters \(ids.inBrackets)"
        case .diverged(let position): "holds another state than its master at entry \(position.index)"
        case .storageFailed(let failure, let refused):
            "cannot write: \(failure.words)" + (refused > 0 ? ", \(Words.counted(refused, "client")) told" : "")
        case .storageRecovered, .voteRecovered: "can write again"
        case .voteFailed(let failure): "cannot vote, for it cannot write: \(failure.words)"
        case .settingsDiffer(let tracker, _): "finds that \(tracker) was told other settings"
        case .commandDropped(let reason): "drops the command: \(reason)"
        case .stopsWithCluster(let master): "stops, for the operator has stopped the whole cluster at \(master)"
        case .swarmsEmptied: "begins without swarms, for all that elected it had left in good order"
        case .drained: "has answered all it had to, and may stop"
        case .accessChanged(let mode, _, let users): "has the access rules in force: \(mode), \(users) users"
        case .registryChanged(let torrents): "has \(Words.counted(torrents, "torrent")) registered"
        case .commandRefused(let reason): "refuses the command: \(reason)"
        case .changeEnded(let number, let outcome): "tells what became of \(number): \(outcome)"
        case .fileAccountsSet(let accounts, let leftOut):
            "has the accounts of its files in force: \(accounts), of which \(leftOut) are left out"
        }
    }

    /// What a client came to know.
    static func describe(_ outcome: Announcer.Outcome) -> String {
        switch outcome {
        case .announced(let announce):
            "is answered: \(announce.peers.count) peers, \(announce.seeders) seeders, \(announce.leechers) leechers"
        case .scraped(let counts): "is told of \(counts.count) swarms"
        case .refused(let message): "is refused: \(quoted(String(decoding: message, as: UTF8.self)))"
        case .malformed: "cannot read the answer"
        case .timedOut: "gives up"
        }
    }

    /// What a client does.
    static func describe(_ act: SimulatedClient.Act, _ client: SimulatedClient) -> String {
        switch act {
        case .arrive: "comes"
        case .progress: "has downloaded more"
        case .complete: "has downloaded all of \(client.infoHash)"
        case .stop: "stops its download"
        case .vanish: "vanishes without a word"
        case .scrape: "asks for counts"
        }
    }

    /// A column of the trace, of this name; where the tracker has another number by now, that is told.
    static func column(_ inspection: Inspection, named name: String? = nil) -> String {
        let letter =
            switch inspection.role {
            case .master: inspection.isServing ? "M" : "m"
            case .slave: inspection.isServing ? "S" : "s"
            case .candidate: "C"
            case .newcomer: "N"
            }
        let pending = inspection.pending == nil ? "" : "+"
        let id = inspection.life.id
        let number = name == nil || name == "\(id)" || id == 0 ? "" : "#\(id) "
        return "\(number)\(inspection.isFenced ? "F" : letter) \(inspection.promised) "
            + "\(inspection.position.index)\(pending)"
    }
}

extension Event {
    /// What lines about the event are about.
    var kinds: TraceKinds {
        switch self {
        case .started, .busConnected, .busLost: .lives
        case .datagramsReceived, .requestReceived: .clients
        case .persisted, .persistFailed: .disk
        case .reportMade: .messages
        case .messageReceived(let message): message.body.kinds
        case .commandReceived: .commands
        // What comes of it tells.
        case .deadlineReached: TraceKinds.unnamed
        }
    }
}

extension TraceKinds {
    /// Of a line that is about nothing that has a name: it is not one that everybody wants to see.
    static let unnamed = TraceKinds(rawValue: 1 << 15)
}

extension Effects {
    var kinds: TraceKinds {
        var kinds: TraceKinds = replies.isEmpty && answers.isEmpty ? [] : .clients
        for message in messages { kinds.formUnion(message.body.kinds) }
        for persist in persists {
            kinds.insert(.disk)
            if case .promise = persist.change { kinds.insert(.elections) }
            if case .append = persist.change { kinds.insert(.votes) }
        }
        for observation in observations { kinds.formUnion(observation.kinds) }
        return kinds
    }
}

extension Observation {
    fileprivate var kinds: TraceKinds {
        switch self {
        case .becameMaster, .steppedDown, .follows, .suspects, .stands: .elections
        case .fenced, .trackerUp, .trackerDown, .drained, .stopsWithCluster, .swarmsEmptied: .lives
        case .joinRefused, .settingsDiffer, .idAssigned, .transferBegan, .transferEnded, .merged, .membersChanged:
            .joins
        case .aborted, .diverged: .votes
        case .storageFailed, .storageRecovered, .voteFailed, .voteRecovered: .disk
        case .accessChanged, .registryChanged, .commandRefused, .commandDropped, .changeEnded, .fileAccountsSet:
            .commands
        }
    }
}

extension StepDownReason {
    var words: String {
        switch self {
        case .superseded(let epoch): "epoch \(epoch) has come"
        case .quorumLost: "it hears no majority"
        case .busLost: "it has lost its bus"
        case .removed: "it has no vote any more"
        case .diskBroken: "its disk is broken"
        case .stopping: "it stops"
        case .asked: "the operator wants an election"
        case .otherSettings(let tracker): "tracker \(tracker), which was told other settings, leads a higher epoch"
        }
    }
}

extension JoinRefusal {
    var words: String {
        switch self {
        case .idTaken: "another life has this number"
        case .clusterFull: "there are as many trackers as there may be"
        case .otherMembers: "it was configured with other members"
        case .otherSettings: "it was told other timings or policies"
        }
    }
}

extension StorageFailure {
    var words: String {
        switch self {
        case .full: "the disk is full"
        case .locked: "the database is locked"
        case .readOnly: "the file is read-only"
        case .broken: "the disk is broken"
        }
    }
}
