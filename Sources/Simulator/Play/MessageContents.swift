// What is in a message between trackers, field by field, for people who look at one.

import Primitives
import TrackerLogic
import Wire

extension ClusterMessage {
    /// All that it says, a line a field.
    var content: [String] {
        var lines = [
            "from \(sender.words)",
            destinationInWords, "epoch \(epoch) (round \(epoch.round), stood for by \(epoch.id))",
        ]
        lines += body.content
        return lines
    }

    private var destinationInWords: String {
        switch destination {
        case .all: "for everybody on the bus"
        case .one(let life): "for \(life.words) only"
        }
    }
}

extension Life {
    fileprivate var words: String {
        (id == 0 ? "one without a number" : "tracker \(id)") + ", incarnation \(Datagrams.hex(incarnation))"
    }
}

extension Position {
    fileprivate var words: String { "entry \(index), whose chain is \(Datagrams.hex(chain))" }
}

extension ClusterMessage.Body {
    /// What it says beside who says it to whom.
    fileprivate var content: [String] {
        switch self {
        case .keepalive(let keepalive):
            return [
                "I am alive", "role \(keepalive.role)", "applied through \(keepalive.position.words)",
                "digest of the state \(Datagrams.hex(keepalive.digest))",
                keepalive.hasFullState ? "holds the whole state" : "does not hold the whole state",
            ]
        case .suspect(let position): return ["I miss the master of this epoch", "I have \(position.words)"]
        case .election: return ["I stand for master in this epoch"]
        case .answer(let answer):
            let left = answer.leftInOrder ? ["my last life ended in good order"] : []
            return ["I follow you in this epoch, and none before it", "I have \(answer.position.words)"] + left
                + (answer.pending.map { ["I have accepted, and do not know decided:"] + $0.content } ?? [])
        case .coordinator(let position): return ["I am master in this epoch", "decided is \(position.words)"]
        case .prepare(let entry, let position):
            return ["store this entry", "decided is \(position.words)"] + entry.content
        case .ok(let ballot): return ["it is on my disk: \(ballot.words)"]
        case .error(let ballot, let reason):
            return ["it is not on my disk, and will not be: \(ballot.words)", "why: \(reason.words)"]
        case .commit(let position): return ["decided is \(position.words)"]
        case .confirm(let round): return ["am I still your master?", "round \(round)"]
        case .confirmed(let round): return ["you were my master when I heard round \(round)"]
        case .fetch(let position): return ["I want what follows \(position.words)"]
        case .entries(let entries, let position):
            return ["decided entries, in order", "decided is \(position.words)"] + entries.flatMap { $0.content }
        case .hello(let hello):
            return [
                "I want to be part of the cluster, or of its new epoch", "I have \(hello.position.words)",
                hello.hasFullState ? "I hold the whole state" : "I do not hold the whole state",
            ]
        case .welcome(let welcome):
            return [
                "you are part of the cluster from here on, as \(welcome.id)", "decided is \(welcome.position.words)",
                "serves from entry \(welcome.servesFrom)",
                welcome.needsTransfer ? "take the whole state first" : "take the log from where you are",
            ]
        case .refused(let refusal): return ["you are not part of the cluster", "why: \(refusal.words)"]
        case .fetchChunk(let number): return ["I want chunk \(number) of your state"]
        case .chunk(let number, let index, let bytes):
            return ["chunk \(number) of my state, as of entry \(index)", "\(bytes.count) bytes"]
        case .welcomeDone(let position, let digest):
            return ["I hold the whole state, at \(position.words)", "its digest is \(Datagrams.hex(digest))"]
        case .forward(let requests, let floor, let index):
            return [
                "requests of my clients; none below \(floor) waits any more",
                index == 0 ? "" : "none of them was settled up to entry \(index)",
            ].filter { !$0.isEmpty } + requests.prefix(20).map { $0.words }
        case .answered(let answers):
            return ["replies to requests that are in no entry"] + answers.prefix(20).map { $0.words }
        case .handover: return ["stand for master now: I make way"]
        case .leave: return ["I am gone"]
        case .stop: return ["the operator wants the whole cluster to stop: stop in good order, as I do"]
        case .report: return ["how I fare, for people"]
        case .order(let number, let order):
            return ["an operator wants this of the master: \(order)", "order \(number)"]
        case .ordered(let number, let outcome): return ["what came of order \(number): \(outcome)"]
        }
    }
}

extension ForwardedRequest {
    fileprivate var words: String {
        let what =
            switch content {
            case .datagram(let bytes): Datagrams.words(request: bytes)
            case .announce(let announce, _): "announces over HTTP, swarm \(announce.infoHash)"
            case .scrape(let infoHashes, _):
                "asks over HTTP for the counts of \(Words.counted(infoHashes.count, "swarm"))"
            }
        return "request \(number) of \(source): \(what)"
    }
}

extension AnsweredRequest {
    fileprivate var words: String {
        switch content {
        case .counts(let counts): "request \(number): counts of \(Words.counted(counts.count, "swarm"))"
        case .refusal(let reason): "request \(number): refused, for reason \(reason)"
        }
    }
}

extension Ballot {
    fileprivate var words: String { "entry \(index) of epoch \(epoch)" + (attempt > 0 ? ", attempt \(attempt)" : "") }
}

extension Entry {
    fileprivate var content: [String] {
        var lines = [
            "entry \(header.index): \(header.ballot.words), made by \(header.origin), cluster time "
                + "\(header.time.milliseconds) ms, \(Words.counted(bytes.count, "byte"))"
        ]
        var cursor = UpdateCursor(header)
        var rest = Int(clamping: header.updateCount)
        while rest > 0, lines.count <= 40, let update = try? cursor.next(bytes) {
            lines.append("  \(update.words)")
            rest -= 1
        }
        if header.updateCount == 0 { lines.append("  no update: it stands for one that the vote refused, or for none") }
        if rest > 0 { lines.append("  and \(Words.counted(rest, "more update"))") }
        return lines
    }
}

extension Update {
    /// What it does, in words.
    var words: String {
        switch self {
        case .announceIPv4(let announce):
            AnnounceWords.of(
                announce.endpoint.socketAddress, announce.infoHash, announce.event, left: announce.left)
        case .announceIPv6(let announce):
            AnnounceWords.of(
                announce.endpoint.socketAddress, announce.infoHash, announce.event, left: announce.left)
        case .expire(let shard, let seenBefore, let emptyBefore):
            "takes the silent out of shard \(shard): peers last seen before \(seenBefore), torrents empty before "
                + "\(emptyBefore)"
        case .registerTorrent(let infoHash, let byteCount, let name):
            "registers torrent \(infoHash), \(quoted(String(decoding: name, as: UTF8.self))), \(byteCount) bytes"
        case .unregisterTorrent(let infoHash): "no longer knows torrent \(infoHash) by name"
        case .setAccessMode(let mode): "access rule number \(mode)"
        case .listInfoHash(let infoHash): "lists \(infoHash)"
        case .unlistInfoHash(let infoHash): "unlists \(infoHash)"
        case .putUser(let name, _): "gives user \(quoted(String(decoding: name, as: UTF8.self))) a passkey"
        case .removeUser(let name): "takes the passkey of user \(quoted(String(decoding: name, as: UTF8.self)))"
        case .setMembers(let ids): "the voters are \(ids.inBrackets)"
        case .setInterval(let seconds): "clients are told an interval of \(seconds) s"
        case .emptyShard(let shard): "empties shard \(shard): the cluster had stopped in good order"
        case .mergePeer(let peer): "takes over peer \(peer.address) of \(peer.infoHash) from the other side"
        case .mergeStop(let infoHash, let address, let time):
            "peer \(address) of \(infoHash) had stopped on the other side, at \(time)"
        case .mergeCompleted(let infoHash, let origin, let count):
            "\(count) completed downloads of \(infoHash) counted by \(origin)"
        case .console: "a change at a console"
        }
    }
}

private enum AnnounceWords {
    static func of(_ address: SocketAddress, _ infoHash: InfoHash, _ event: AnnounceEvent, left: UInt64) -> String {
        "peer \(address) of \(infoHash): " + (event == .none ? "announces" : event.words) + ", \(left) bytes left"
    }
}
