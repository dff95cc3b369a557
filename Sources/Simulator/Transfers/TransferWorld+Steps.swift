// Steps of sessions, and what is to be done after them.

import PeerLogic
import Primitives
import Wire

extension TransferWorld {
    /// Tells a peer's session what has happened, and carries out what it wants.
    mutating func step(_ peer: Int, _ event: TorrentSession.Event) {
        let local = readClock(peer)
        checks.stepBegins(peer, event)
        guard let deadline = peers[peer].session?.advance(event, now: local, into: &actions) else { return }
        tally.steps += 1
        hash.absorb(
            UInt64(bitPattern: now.nanoseconds) ^ UInt64(peer) << 48 ^ event.tag << 56 ^ UInt64(actions.count) << 40)
        if isRecording { tell(peer, event) }
        finish(peer)
        if peers[peer].isLeaving, let session = peers[peer].session {
            checks.isStopped(peer, session.isStopped, at: now)
        }
        wakes(peer, deadline.time)
    }

    /// What is in a peer's memory that nobody finishes.
    private mutating func lookForHeld(_ peer: Int) {
        for buffer in peers[peer].buffers where buffer.piece >= 0 {
            let isWhole = buffer.isVerifying || buffer.isVerified || buffer.isStoring
            if !isWhole, buffer.arriving == 0 { checks.holds(peer, buffer.piece, at: now) }
        }
    }

    /// Carries out what the session of a peer wants.
    mutating func finish(_ peer: Int) {
        var index = 0
        while index < actions.count {
            carryOut(peer, actions[index])
            index += 1
        }
        actions.removeAll(keepingCapacity: true)
        let mayLeaveIdle = checks.mayLeaveIdle
        if checks.endsWork { lookForHeld(peer) }
        if checks.wantsCandidates(peer) {
            let views = views(peer)
            checks.judgeTurns(peer, views, at: now)
        }
        checks.stepEnded(peer, buffered: peers[peer].bufferedByteCount, at: now)
        // What is wrong stays so, so now and then is enough.
        let isAudited = tally.steps & 15 == 0
        if isAudited || mayLeaveIdle {
            let (fault, buffered) = peers[peer].session?.looked(isAudited) ?? (nil, 0)
            if let fault { checks.audited(peer, fault, at: now) }
            checks.looksForIdle(peer, buffered: buffered, at: now)
        }
        serve(peer)
    }

    /// The checkers know what a peer's clock shows.
    @discardableResult
    mutating func readClock(_ peer: Int) -> Instant {
        let local = peers[peer].clock.reading(at: now).monotonic
        checks.scene.peers[peer].local = local
        return local
    }

    private mutating func views(_ peer: Int) -> [(end: Int, view: TorrentSession.LinkView)] {
        let local = checks.scene.peers[peer].local
        let views = peers[peer].session?.views(local) ?? []
        return views.compactMap { view in
            let slot = Int(view.id.slot)
            guard slot < peers[peer].endOf.count, peers[peer].endOf[slot] >= 0 else { return nil }
            return (end: Int(peers[peer].endOf[slot]), view: view)
        }
    }

    /// All that only time can break, and all that people are shown.
    mutating func lookAtPeers() {
        for peer in peers.indices where peers[peer].isUp && peers[peer].isHonest && peers[peer].session != nil {
            readClock(peer)
            var said = Shown.Session()
            said.links = views(peer)
            if let session = peers[peer].session {
                said.have = session.have
                said.availability = session.availability
                said.missingByteCount = session.missingByteCount
                said.knownPeerCount = session.knownPeerCount
                said.bufferedByteCount = session.bufferedByteCount
                (said.received, said.sent, said.wasted) = (session.received, session.sent, session.wasted)
                said.waitsForDisk = session.waitsForDisk
            }
            checks.look(peer, said, at: now)
        }
    }

    private mutating func wakes(_ peer: Int, _ deadline: Instant?) {
        guard let deadline else { return }
        let due = max(peers[peer].clock.worldTime(of: deadline), now)
        if let wakeAt = peers[peer].wakeAt, wakeAt <= due { return }
        peers[peer].wakeAt = due
        queue.put(.wakes(peer, life: peers[peer].life), at: due)
    }

    mutating func wake(_ peer: Int) {
        guard peers[peer].wakeAt == now else { return }
        peers[peer].wakeAt = nil
        step(peer, .deadlineReached)
    }

    /// The end that a session calls so; nil, and a violation, where there is none.
    private mutating func end(_ peer: Int, _ name: LinkID, _ what: String) -> Int? {
        let slot = Int(name.slot)
        if slot < peers[peer].endOf.count, peers[peer].endOf[slot] >= 0 {
            let end = Int(peers[peer].endOf[slot])
            if table.ends[end].name == name { return end }
        }
        checks.breaks(peer, "wants to \(what) on a connection that is over", at: now)
        return nil
    }

    private mutating func carryOut(_ peer: Int, _ action: TorrentSession.Action) {
        if isRecording { tell(peer, action) }
        switch action {
        case .dial(let name, let address): dial(peer, name, address)
        case .sendHandshake(let name):
            guard let end = end(peer, name, "send a handshake") else { return }
            checks.saysHandshake(end, at: now)
            enqueue(end, .handshake)
        case .send(let name, let message):
            guard let end = end(peer, name, "send") else { return }
            checks.says(end, message, at: now)
            tally.messages += 1
            enqueue(end, .message(renumbered(message, from: peer)))
            if message == .choke { checks.checkAnswersLater(end) }
        case .sendBlock(let name, let block):
            guard let end = end(peer, name, "give a block") else { return }
            checks.gives(end, block, at: now)
            if block.piece < UInt32(layout.pieceCount), peers[peer].disk[Int(block.piece)] {
                enqueue(end, .block(block, salt: 0))
            } else {
                queue.put(.blockUnread(end: end, epoch: table.epoch(of: end), block), at: now + .milliseconds(1))
            }
        case .dropBlock(let name, let block):
            guard let end = end(peer, name, "drop a block") else { return }
            checks.drops(end, block)
            if table.ends[end].out.drop(block) {
                queue.put(.blockDropped(end: end, epoch: table.epoch(of: end), block), at: now)
            }
        case .close(let name, let reason):
            guard let end = end(peer, name, "close") else { return }
            closedBySession(end, reason)
        case .verify(let piece, let wantsDigests): verify(peer, piece, wantsDigests)
        case .store(let piece): store(peer, piece)
        case .releaseBuffer(let piece): release(peer, piece)
        case .checkMetadata(let bytes):
            checks.checksMetadata(peer)
            queue.put(
                .metadataChecked(peer, life: peers[peer].life, isRight: bytes == metadata), at: now + .milliseconds(3))
        case .sendToTracker(let tracker, let bytes):
            if clusterCount > 0 { outbox.append((peer, tracker, bytes)) } else { datagram(peer, tracker, bytes) }
        case .announceOverHTTP(let tracker, let request): announce(peer, tracker, request)
        case .fetchFromWeb(let seed, let piece): fetchFromWeb(peer, seed, piece)
        case .announceLocally:
            if options.isPrivate { checks.breaks(peer, "announces a private torrent locally", at: now) }
            checks.announcesLocally(peer, at: now)
            queue.put(.localNews(peer), at: now + .milliseconds(1))
        case .observe(let observation): observed(peer, observation)
        }
    }

    private mutating func observed(_ peer: Int, _ observation: TorrentSession.Observation) {
        checks.observes(peer, observation)
        switch observation {
        case .linkReady: tally.links += 1
        case .pieceGained: tally.pieces += 1
        case .pieceWasWrong: tally.wrongPieces += 1
        case .banned(let host):
            tally.bans += 1
            checks.banned(peer, number(at: host), at: now)
        case .completed:
            tally.completions += 1
            peers[peer].doneAt = now
            if peers[peer].traits.leavesWhenComplete {
                queue.put(.leaves(peer, life: peers[peer].life), at: now + .seconds(2))
            }
        case .ratioReached:
            tally.ratiosReached += 1
            checks.reachedRatio(peer)
            queue.put(.leaves(peer, life: peers[peer].life), at: now)
        case .diskTrouble: tally.diskTroubles += 1
        case .diskMended, .trackerAnswered: break
        case .trackerFailed: tally.trackerFailures += 1
        }
    }

    // MARK: - Lives

    /// A peer comes, for the first time or again.
    mutating func come(_ peer: Int) {
        guard !peers[peer].isUp, !peers[peer].isGone else { return }
        peers[peer].isUp = true
        peers[peer].life += 1
        peers[peer].isPaused = false
        peers[peer].wakeAt = nil
        peers[peer].endOf.removeAll()
        peers[peer].upFreeAt = now
        peers[peer].downFreeAt = now
        tell(peer, .lives, "comes")
        let settings = peers[peer].traits.settings
        checks.began(
            peer, disk: peers[peer].disk, settings: settings, isPrivate: options.isPrivate,
            isHonest: peers[peer].isHonest, hasMetadata: peers[peer].hasMetadata, seedCount: options.webSeedCount,
            at: now)
        guard peers[peer].isHonest else { return liarComes(peer) }
        var torrent = TorrentSession.Torrent(infoHash: infoHash)
        torrent.isPrivate = options.isPrivate
        torrent.webSeedCount = options.webSeedCount
        if peers[peer].hasMetadata {
            torrent.layout = layout
            torrent.metadata = metadata
        }
        if clusterCount > 0 {
            torrent.trackers = [Array(repeating: .udp(urlData: []), count: clusterCount)]
        } else {
            let kind: TrackerKind = options.isOverUDP ? .udp(urlData: []) : .http
            torrent.trackers = options.trackerTiers.map { Array(repeating: kind, count: $0) }
        }
        peers[peer].session = TorrentSession(
            torrent, peerID: peers[peer].peerID, settings: settings,
            random: RandomStream(seed, .peerLife, peer, peers[peer].life))
        step(peer, .started(have: peers[peer].hasMetadata ? peers[peer].disk : nil))
    }

    /// A peer is gone at once: what was in memory is lost.
    ///
    /// Where its whole host is gone, nobody is told.
    mutating func die(_ peer: Int, isHost: Bool, for downtime: Duration) {
        guard peers[peer].isUp else { return }
        tell(peer, .lives, isHost ? "dies with its host" : "dies")
        tally.deaths += 1
        for end in table.ends.indices where table.ends[end].phase != .none && table.ends[end].peer == peer {
            if isHost { table.isFrozen[end >> 1] = true }
            endHere(end, tellsOther: !isHost)
        }
        endLife(peer)
        queue.put(.returns(peer, life: peers[peer].life), at: now + downtime)
    }

    private mutating func endLife(_ peer: Int) {
        checks.ended(peer)
        peers[peer].session = nil
        peers[peer].isUp = false
        peers[peer].isLeaving = false
        peers[peer].leaving = nil
        peers[peer].row.removeAll()
        peers[peer].rowHead = 0
        for piece in 0..<layout.pieceCount where peers[peer].bufferOf[piece] >= 0 {
            peers[peer].releaseBuffer(piece, byteCount: layout.length(ofPiece: piece))
        }
    }

    /// A peer leaves in good order; first it is told, and a while later it is gone.
    mutating func leave(_ peer: Int) {
        guard !peers[peer].isLeaving else { return }
        tell(peer, .lives, "leaves")
        peers[peer].isLeaving = true
        if let session = peers[peer].session, !session.isStopped { quieten(peer) }
        queue.put(.hasLeft(peer, life: peers[peer].life), at: now + .seconds(8))
        step(peer, .stopped)
    }

    /// By now everything is to be over.
    mutating func hasLeft(_ peer: Int) {
        if let session = peers[peer].session, !session.isStopped {
            checks.breaks(peer, "has not stopped within its time", at: now)
        }
        peers[peer].isGone = true
        for end in table.ends.indices where table.ends[end].phase != .none && table.ends[end].peer == peer {
            if table.ends[end].phase != .called { checks.breaks(peer, "has stopped, and keeps a connection", at: now) }
            endHere(end, tellsOther: true)
        }
        endLife(peer)
    }

    /// Somebody who was paused goes on.
    mutating func goOn(_ peer: Int) {
        guard peers[peer].isPaused, !peers[peer].isLeaving else { return }
        peers[peer].isPaused = false
        tell(peer, .lives, "goes on")
        checks.wentOn(peer, disk: peers[peer].disk, at: now)
        step(peer, .started(have: peers[peer].hasMetadata ? peers[peer].disk : nil))
    }

    mutating func pause(_ peer: Int, for span: Duration) {
        guard peers[peer].isUp, peers[peer].session != nil, !peers[peer].isPaused, !peers[peer].isLeaving else {
            return
        }
        peers[peer].isPaused = true
        tell(peer, .lives, "is paused")
        quieten(peer)
        step(peer, .paused)
        queue.put(.goesOn(peer, life: peers[peer].life), at: now + span)
    }
}

/// When a session wants to be woken.
private struct Deadline {
    var time: Instant?
}

extension TorrentSession {
    /// A step, and the next deadline: in one call, for to look into an optional session copies it.
    fileprivate mutating func advance(_ event: Event, now: Instant, into actions: inout [Action]) -> Deadline {
        step(event, now: now, into: &actions)
        return Deadline(time: nextDeadline)
    }

    // Nothing is changed: so that nothing is copied, as above.

    fileprivate mutating func looked(_ isAudited: Bool) -> (fault: String?, buffered: Int) {
        (isAudited ? audit() : nil, bufferedByteCount)
    }

    fileprivate mutating func views(_ now: Instant) -> [LinkView] { links(now: now) }
}

extension TorrentSession.Event {
    /// For the hash of a run.
    var tag: UInt64 {
        switch self {
        case .started: 1
        case .paused: 2
        case .stopped: 3
        case .metadataAccepted: 4
        case .metadataRejected: 5
        case .wantedChanged: 6
        case .settingsChanged: 7
        case .updateWanted: 8
        case .peersFound: 9
        case .dialled: 10
        case .handshakeReceived: 11
        case .accepted: 12
        case .messageReceived: 13
        case .blockReceived: 14
        case .blockSkipped: 15
        case .blockSent: 16
        case .linkClosed: 17
        case .pieceVerified: 18
        case .pieceFailed: 19
        case .pieceStored: 20
        case .storeFailed: 21
        case .pieceLost: 22
        case .trackerDatagram: 23
        case .trackerAnswered: 24
        case .webPieceReceived: 25
        case .webPieceFailed: 26
        case .deadlineReached: 27
        }
    }
}
