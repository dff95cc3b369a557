// A swarm's run in words.

import PeerLogic
import Primitives
import Wire

extension TransferWorld {
    /// Adds a line that concerns everybody.
    mutating func line(_ text: String) {
        lines.append(TraceLine(time: now, trackers: 0, kinds: [], columns: [""], text: text))
    }

    /// Adds a line about a peer.
    mutating func tell(_ peer: Int, _ kinds: TraceKinds, _ what: String) {
        guard isRecording else { return }
        lines.append(
            TraceLine(
                time: now, trackers: peer < 32 ? 1 << UInt32(peer) : 0, kinds: kinds, columns: [standing(peer)],
                text: "peer \(peer) \(what)"))
    }

    /// `3 12/40`: the peer, and its pieces.
    private func standing(_ peer: Int) -> String { "\(peer) \(peers[peer].disk.setCount)/\(layout.pieceCount)" }

    private func other(_ peer: Int, _ link: LinkID) -> String {
        guard Int(link.slot) < peers[peer].endOf.count, peers[peer].endOf[Int(link.slot)] >= 0 else {
            return "somebody"
        }
        return "peer \(table.ends[Int(peers[peer].endOf[Int(link.slot)]) ^ 1].peer)"
    }

    /// What a session is told.
    mutating func tell(_ peer: Int, _ event: TorrentSession.Event) {
        switch event {
        case .messageReceived(let link, let message):
            tell(peer, .messages, "hears \(other(peer, link)): \(message.words)")
        case .blockReceived(let link, let block): tell(peer, .messages, "has \(block.words) of \(other(peer, link))")
        case .blockSkipped(let link, let block):
            tell(peer, .messages, "has no use for \(block.words) of \(other(peer, link))")
        case .blockSent(_, let block, let isSent):
            tell(peer, .messages, "\(isSent ? "has sent" : "has not sent") \(block.words)")
        case .linkClosed(_, let end): tell(peer, .messages, "a connection is over: \(end)")
        case .pieceVerified(let piece, _): tell(peer, .disk, "finds piece \(piece) right")
        case .pieceFailed(let piece, _): tell(peer, .disk, "finds piece \(piece) wrong")
        case .pieceStored(let piece): tell(peer, .disk, "has piece \(piece) on its disk")
        case .storeFailed(let piece, let problem): tell(peer, .disk, "cannot write piece \(piece): \(problem)")
        case .pieceLost(let piece): tell(peer, .disk, "finds that piece \(piece) is gone")
        case .trackerAnswered(let tracker, .announced(let interval, let seeders, let leechers, let addresses)):
            let peers = addresses.map { address in number(at: address).map { "\($0)" } ?? "\(address)" }
            let named = peers.isEmpty ? "none" : peers.joined(separator: " ")
            let counts = "seeders \(seeders), leechers \(leechers), peers \(named)"
            tell(peer, .clients, "hears of tracker \(tracker): \(counts); again in \(interval) s")
        case .trackerAnswered(let tracker, .failed(let words)):
            tell(peer, .clients, "hears of tracker \(tracker): \(words)")
        case .trackerDatagram(let tracker, let bytes, _):
            let action = bytes.count >= 4 ? bytes.span.bytes.u32(at: 0) : 9
            tell(peer, .clients, "hears of tracker \(tracker): \(bytes.count) bytes, action \(action)")
        case .wantedChanged(let wanted): tell(peer, .commands, "wants \(wanted.setCount) pieces")
        case .webPieceReceived(let seed, let piece): tell(peer, .messages, "has piece \(piece) of web seed \(seed)")
        case .webPieceFailed(let seed, let piece, let problem):
            tell(peer, .messages, "does not get piece \(piece) of web seed \(seed): \(problem)")
        case .updateWanted: tell(peer, .commands, "is to announce")
        case .metadataRejected: tell(peer, .disk, "finds that the metadata is wrong")
        case .deadlineReached, .started, .paused, .stopped, .metadataAccepted, .settingsChanged, .peersFound, .dialled,
            .handshakeReceived, .accepted:
            break
        }
    }

    /// What a session wants done.
    mutating func tell(_ peer: Int, _ action: TorrentSession.Action) {
        switch action {
        case .dial(_, let address): tell(peer, .messages, "calls \(address)")
        case .send(let link, let message): tell(peer, .messages, "tells \(other(peer, link)): \(message.words)")
        case .sendBlock(let link, let block): tell(peer, .messages, "gives \(other(peer, link)) \(block.words)")
        case .close(let link, let reason):
            tell(peer, .messages, "closes its connection with \(other(peer, link)): \(reason)")
        case .observe(let observation): tell(peer, observation)
        case .announceOverHTTP(let tracker, let request):
            tell(peer, .clients, "announces to tracker \(tracker): \(request.event), \(request.left) bytes left")
        case .fetchFromWeb(let seed, let piece): tell(peer, .messages, "fetches piece \(piece) from web seed \(seed)")
        case .releaseBuffer(let piece): tell(peer, .disk, "needs the buffer of piece \(piece) no more")
        case .sendToTracker(let tracker, let bytes):
            let action = bytes.count >= 12 ? bytes.span.bytes.u32(at: 8) : 9
            tell(peer, .clients, "asks tracker \(tracker): \(bytes.count) bytes, action \(action)")
        case .verify, .store, .checkMetadata, .announceLocally, .dropBlock, .sendHandshake: break
        }
    }
}

extension TransferWorld {
    /// What a session says for people.
    private mutating func tell(_ peer: Int, _ observation: TorrentSession.Observation) {
        switch observation {
        case .linkReady(let link, _, _): tell(peer, .lives, "is connected with \(other(peer, link))")
        case .pieceWasWrong(let piece, let count):
            tell(peer, .disk, "has had piece \(piece) wrong, of \(count) \(count == 1 ? "peer" : "peers")")
        case .banned(let host): tell(peer, .lives, "bans \(number(at: host).map { "peer \($0)" } ?? "\(host)")")
        case .completed: tell(peer, .lives, "has all that it wants")
        case .ratioReached: tell(peer, .lives, "has given as much as it was to give")
        case .diskTrouble(let problem): tell(peer, .disk, "cannot write: \(problem)")
        case .diskMended: tell(peer, .disk, "can write again")
        // What has led to these has a line of its own.
        case .pieceGained, .trackerAnswered, .trackerFailed: break
        }
    }
}

extension Block {
    /// As people read it.
    var words: String { "block \(offset / UInt32(Block.maxByteCount)) of piece \(piece)" }
}

extension PeerMessage {
    /// As people read it.
    var words: String {
        switch self {
        case .keepAlive: "keep-alive"
        case .choke: "choke"
        case .unchoke: "unchoke"
        case .interested: "interested"
        case .notInterested: "not interested"
        case .have(let piece): "have \(piece)"
        case .bitfield(let bytes): "bitfield of \(bytes.count) bytes"
        case .request(let block): "request \(block.words)"
        case .piece(let block): "piece \(block.words)"
        case .cancel(let block): "cancel \(block.words)"
        case .port(let port): "port \(port)"
        case .suggest(let piece): "suggest \(piece)"
        case .haveAll: "have all"
        case .haveNone: "have none"
        case .reject(let block): "reject \(block.words)"
        case .allowedFast(let piece): "allowed fast \(piece)"
        case .extended(let id, let payload): "extension \(id), \(payload.count) bytes"
        }
    }
}
