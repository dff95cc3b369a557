// The checkers of swarms, called in turn.

import PeerLogic
import Primitives
import Wire

/// The checkers of swarms, called in turn.
///
/// They see what goes into sessions, what comes out, and what is on the disks; they
/// know nothing of how a session comes to what it does.
struct TransferChecks: Sendable {
    var scene: TransferScene
    var requests = BlockRequests()
    var slots = UploadSlots()
    var claims = Claims()
    var answers = Answers()
    var order = MessageOrder()
    var calls: Calls
    var recalls: Recalls
    var bans = Bans()
    var culprits: Culprits
    var lone: LonePieces
    var limits: TransferLimits
    var trackers: TrackerManners
    var datagrams: DatagramManners
    var turns: Turns
    let knowledge = Knowledge()
    let patience = Patience()
    var exchanges = Exchanges()
    var metadata: MetadataManners
    var idleness: Idleness
    var shown: Shown
    var disks: DiskManners
    /// Ends that were choked in the step under way.
    var chokedEnds: [Int] = []
    /// Whether the connection that is being closed gives way to another.
    var isFull = false
    /// The end whose handshakes are through in the step under way, and the one that has broken the protocol.
    var greetedEnd: Int?
    var breachedEnd: Int?
    /// In the step under way somebody chokes its peer, so that others are to be asked.
    var isRearranged = false
    /// The end that was asked for metadata in the step under way.
    var askedForMetadata: Int?

    /// `trackerTiers` are those of simple trackers.
    init(_ options: TransferOptions, metadata: [UInt8], trackerTiers: [Int], firstPlace: Int) {
        let peerCount = options.peerCount
        scene = TransferScene(layout: PlainLayout(options), peerCount: peerCount, firstPlace: firstPlace)
        calls = Calls(peerCount: peerCount)
        recalls = Recalls(peerCount: peerCount)
        culprits = Culprits(peerCount: peerCount)
        lone = LonePieces(peerCount: peerCount)
        limits = TransferLimits(peerCount: peerCount)
        trackers = TrackerManners(tiers: trackerTiers, peerCount: peerCount)
        datagrams = DatagramManners(
            trackerCount: options.isOverUDP ? trackerTiers.reduce(0, +) : 0, peerCount: peerCount)
        turns = Turns(peerCount: peerCount)
        self.metadata = MetadataManners(metadata: metadata, peerCount: peerCount)
        idleness = Idleness(peerCount: peerCount)
        shown = Shown(peerCount: peerCount)
        disks = DiskManners(peerCount: peerCount)
    }

    var violations: [Violation] { scene.violations }

    // MARK: - Lives

    mutating func began(
        _ peer: Int, disk: Bitfield, settings: SessionSettings, isPrivate: Bool, isHonest: Bool, hasMetadata: Bool,
        seedCount: Int, at now: Instant
    ) {
        let layout = scene.layout
        scene.peers[peer].isUp = true
        scene.peers[peer].isHonest = isHonest
        scene.peers[peer].settings = settings
        scene.peers[peer].isPrivate = isPrivate
        scene.peers[peer].disk = disk
        scene.peers[peer].unchokedCount = 0
        scene.peers[peer].interestedCount = 0
        scene.peers[peer].mostInterested = 0
        scene.peers[peer].openCount = 0
        scene.peers[peer].ends.removeAll()
        scene.peers[peer].banned.removeAll()
        scene.peers[peer].guilty.removeAll()
        scene.peers[peer].mustBan.removeAll()
        scene.peers[peer].lyingSeeds.removeAll()
        scene.peers[peer].ratioIsReached = false
        scene.peers[peer].sentByteCount = 0
        scene.peers[peer].receivedByteCount = 0
        scene.peers[peer].beganComplete = hasMetadata && disk.isFull
        scene.peers[peer].isRunning = false
        scene.peers[peer].hasMetadata = hasMetadata
        scene.peers[peer].wanted = Bitfield(count: layout.pieceCount, isFull: true)
        scene.peers[peer].availability = Array(repeating: 0, count: layout.pieceCount)
        scene.peers[peer].gainedAt = Array(repeating: nil, count: layout.pieceCount)
        scene.peers[peer].lost = Bitfield(count: layout.pieceCount)
        scene.peers[peer].readyCount = 0
        scene.peers[peer].wrongByteCount = 0
        scene.peers[peer].wastedByteCount = 0
        scene.peers[peer].rank = mixed(UInt64(peer) &+ 77)
        scene.peers[peer].goneAt.removeAll()
        requests.began(peer, &scene)
        calls.began(peer)
        recalls.began(peer)
        culprits.began(peer)
        lone.began(peer)
        trackers.began(peer)
        datagrams.began(peer)
        limits.began(peer)
        metadata.began(peer)
        idleness.began(peer, seedCount: seedCount)
        shown.began(peer)
        disks.began(peer)
    }

    mutating func ended(_ peer: Int) {
        scene.peers[peer].isUp = false
        scene.peers[peer].isRunning = false
    }

    /// A session is told something.
    mutating func stepBegins(_ peer: Int, _ event: TorrentSession.Event) {
        switch event {
        case .started: scene.cause = .started
        case .paused, .stopped: scene.cause = .ended
        case .deadlineReached: scene.cause = .deadline
        case .settingsChanged: scene.cause = .settings
        case .updateWanted: scene.cause = .update
        case .wantedChanged: scene.cause = .selection
        case .pieceStored(let piece): scene.cause = .stored(piece)
        case .storeFailed(let piece, _):
            scene.cause = .storeFailed
            disks.failed(peer, piece, scene)
        // `hears` knows.
        case .messageReceived: break
        case .metadataAccepted, .metadataRejected, .peersFound, .dialled, .handshakeReceived, .accepted, .blockReceived,
            .blockSkipped, .blockSent, .linkClosed, .pieceVerified, .pieceFailed, .pieceLost, .trackerDatagram,
            .trackerAnswered, .webPieceReceived, .webPieceFailed:
            scene.cause = .other
        }
        turns.stepBegins(peer, scene)
        trackers.stepBegins(peer, scene)
        datagrams.stepBegins(peer, scene)
        disks.stepBegins(peer, scene)
        switch scene.cause {
        case .started:
            scene.peers[peer].isRunning = true
            limits.changed(peer, scene)
        case .ended: scene.peers[peer].isRunning = false
        case .settings: limits.changed(peer, scene)
        case .deadline: timeOut(peer)
        case .stored: disks.stored(peer)
        default: break
        }
    }

    /// Somebody who was paused goes on, with what is on the disk.
    mutating func wentOn(_ peer: Int, disk: Bitfield, at now: Instant) {
        for piece in 0..<scene.layout.pieceCount where !disk[piece] { pieceLost(peer, piece) }
        scene.peers[peer].beganComplete = scene.isComplete(peer)
    }

    mutating func changed(_ peer: Int, settings: SessionSettings, at now: Instant) {
        scene.peers[peer].settings = settings
        scene.peers[peer].ratioIsReached = false
    }

    mutating func selects(_ peer: Int, _ wanted: Bitfield) { scene.peers[peer].wanted = wanted }

    func wantsAll(_ peer: Int) -> Bool { scene.peers[peer].wanted.isFull }

    /// Somebody calls, and its session is asked for a name.
    mutating func isCalled() { scene.cause = .other }

    /// Whether `judgeTurns` is to be called before the step ends.
    func wantsCandidates(_ peer: Int) -> Bool { turns.isContested(peer, scene) }

    mutating func judgeTurns(
        _ peer: Int, _ views: [(end: Int, view: TorrentSession.LinkView)], at now: Instant
    ) {
        var candidates: [Turns.Candidate] = []
        for (end, view) in views where scene.ends[end].isOpen && scene.ends[end].isAskedFor {
            candidates.append(
                Turns.Candidate(
                    end: end, isSnubbing: view.isSnubbing, rate: scene.ends[end].down.rate(at: scene.peers[peer].local),
                    wasUnchoked: !scene.ends[end].saysChoke, isUnchoked: !scene.ends[end].saysChoke,
                    since: scene.ends[end].turnSince))
        }
        turns.judge(peer, candidates, at: now, &scene)
    }

    /// Whether the step under way is one after which `looksForIdle` is called in any case.
    var mayLeaveIdle: Bool { isRearranged || scene.cause == .settings || scene.cause == .selection }

    /// Between two steps: whether anything waits that need not.
    mutating func looksForIdle(_ peer: Int, buffered: Int, at now: Instant) {
        idleness.check(peer, buffered: buffered, snubbed: nil, &limits, lone, at: now, &scene)
    }

    /// The end of a step of an honest peer.
    mutating func stepEnded(_ peer: Int, buffered: Int, at now: Instant) {
        slots.check(peer, at: now, &scene)
        claims.stepEnds(peer, at: now, &scene)
        bans.check(peer, at: now, &scene)
        limits.check(peer, buffered: buffered, at: now, &scene)
        turns.stepEnds(peer, at: now, &scene)
        trackers.stepEnds(peer, at: now, &scene)
        datagrams.stepEnds(peer, at: now, &scene)
        shown.stepEnds(peer, greeted: greetedEnd, at: now, &scene)
        greetedEnd = nil
        answers.checkCancelled(at: now, &scene)
        if let end = breachedEnd { patience.checkBreach(end, at: now, &scene) }
        breachedEnd = nil
        disks.stepEnds(peer, at: now, &scene)
        if scene.cause == .deadline || limits.hasTakenBack {
            limits.hasTakenBack = false
            idleness.checkUploads(peer, limits, at: now, &scene)
        }
        isRearranged = false
        if let end = askedForMetadata { metadata.check(end, at: now, &scene) }
        askedForMetadata = nil
        scene.cause = .other
        guard !chokedEnds.isEmpty else { return }
        for end in chokedEnds { answers.check(end, at: now, &scene) }
        chokedEnds.removeAll(keepingCapacity: true)
    }

    /// The end of a step of a peer that leaves for good, which says whether it has.
    mutating func isStopped(_ peer: Int, _ isStopped: Bool, at now: Instant) {
        trackers.isStopped(peer, isStopped, at: now, &scene)
    }

    /// All that only time can break, and all that people are shown.
    mutating func look(_ peer: Int, _ said: Shown.Session, at now: Instant) {
        shown.look(peer, said, at: now, &scene)
        trackers.look(peer, at: now, &scene)
        datagrams.look(peer, at: now, &scene)
        metadata.look(peer, at: now, &scene)
        disks.look(peer, at: now, &scene)
        calls.look(peer, knownCount: said.knownPeerCount, at: now, &scene)
        let hasRoom = calls.hasRoom(peer, scene)
        recalls.look(peer, knownCount: said.knownPeerCount, hasRoom: hasRoom, at: now, &scene)
        if calls.isSettled(peer, scene), calls.isAnybodyFresh(peer, scene) || recalls.isAnybodyDue(peer, scene) {
            patience.lookForMetadata(peer, at: now, &scene)
        }
        idleness.lookAtWeb(peer, buffered: said.bufferedByteCount, at: now, &scene)
        let snubbed = said.links.filter { $0.view.isSnubbing }.map { $0.end }
        idleness.check(
            peer, buffered: said.bufferedByteCount, snubbed: snubbed, &limits, lone, at: now, &scene)
        for (end, view) in said.links {
            slots.look(end, at: now, &scene)
            knowledge.look(end, at: now, &scene)
            patience.look(end, isSnubbing: view.isSnubbing, at: now, &scene)
            exchanges.look(end, at: now, &scene)
        }
        for end in scene.ends(of: peer) where !scene.ends[end].isGreeted { patience.lookAtCall(end, at: now, &scene) }
    }

    // MARK: - Connections

    mutating func found(_ peer: Int, _ address: SocketAddress, isProper: Bool, isNews: Bool = false) {
        calls.found(
            peer, address, other: scene.peer(at: address), isProper: isProper, isNews: isNews, scene)
    }

    mutating func dials(_ end: Int, _ peer: Int, _ address: SocketAddress, other: Int?, at now: Instant) {
        rests(peer, "calls somebody", at: now)
        opened(end, peer, other ?? TransferScene.nobody, at: now)
        scene.ends[end].listens = address
        scene.ends[end].listensAt = scene.peers[peer].local
        calls.dials(peer, address, other: other, at: now, &scene)
        calls.meets(peer, address)
        recalls.dials(end, peer, address, at: now, &scene)
    }

    /// A connection that was dialled is there.
    mutating func reached(_ end: Int) { scene.ends[end].reachedAt = scene.local(end) }

    /// A side of a connection begins.
    mutating func opened(_ end: Int, _ peer: Int, _ other: Int, at now: Instant) {
        while scene.ends.count <= end { scene.ends.append(EndRecord()) }
        var asked: [EndRecord.Asked] = []
        swap(&asked, &scene.ends[end].asked)
        asked.removeAll(keepingCapacity: true)
        scene.ends[end] = EndRecord()
        swap(&asked, &scene.ends[end].asked)
        scene.ends[end].isOpen = true
        scene.ends[end].peer = peer
        scene.ends[end].other = other
        scene.ends[end].isAmongHonest = other < 0 || scene.peers[other].isHonest
        scene.ends[end].since = now
        scene.ends[end].quietSince = now
        scene.ends[end].choked = now
        let local = scene.peers[peer].local
        scene.ends[end].openedAt = local
        scene.ends[end].greetedAt = local
        scene.ends[end].saidAt = local
        scene.ends[end].heardAt = local
        scene.ends[end].usefulAt = local
        scene.peers[peer].openCount += 1
        scene.peers[peer].ends.append(end)
        knowledge.opened(end, &scene)
        exchanges.opened(end)
        metadata.opened(end)
    }

    /// This side knows both handshakes.
    mutating func greeted(_ end: Int, _ capabilities: PeerHandshake.Capabilities, _ address: SocketAddress?) {
        scene.ends[end].isGreeted = true
        scene.ends[end].hasFast = capabilities.contains(.fast)
        scene.ends[end].hasExtensions = capabilities.contains(.extensions)
        scene.ends[end].address = address
        greetedEnd = end
        let local = scene.local(end)
        scene.ends[end].greetedAt = local
        scene.ends[end].heardAt = local
        scene.ends[end].saidAt = local
        scene.peers[scene.ends[end].peer].readyCount += 1
        calls.makesRoom(scene.ends[end].peer, scene)
        recalls.greeted(end, scene)
        if let address { calls.succeeded(scene.ends[end].peer, address) }
    }

    /// An owner is about to tell its session that a connection is over; `closed` follows.
    mutating func isOver(_ end: Int, _ how: LinkEnd) {
        guard scene.ends.indices.contains(end), scene.ends[end].isOpen else { return }
        recalls.isOver(end, how, scene)
    }

    /// A call has come to nothing, by nobody's wish.
    mutating func callFailed(_ peer: Int, _ address: SocketAddress, at now: Instant) {
        // Who is there on another connection, and has said that it listens there, has answered.
        let isThere = scene.ends(of: peer).contains { scene.ends[$0].isGreeted && scene.ends[$0].listens == address }
        if isThere { calls.succeeded(peer, address) } else { calls.failed(peer, address, at: now) }
    }

    /// This side has ended.
    mutating func closed(_ end: Int) {
        guard scene.ends[end].isOpen else { return }
        requests.closed(end, &scene)
        lone.closed(end, scene)
        // What was still to leave does not.
        for block in scene.ends[end].sending { limits.takesBack(end, block, &scene) }
        scene.ends[end].sending.removeAll()
        turns.closed(end, isFull: isFull, scene)
        isFull = false
        slots.closed(end, &scene)
        knowledge.closed(end, &scene)
        metadata.closed(end, scene)
        scene.noteGone(end)
        let peer = scene.ends[end].peer
        if scene.ends[end].isGreeted { scene.peers[peer].readyCount -= 1 }
        scene.ends[end].isOpen = false
        scene.peers[peer].openCount -= 1
        if let place = scene.peers[peer].ends.firstIndex(of: end) { scene.peers[peer].ends.remove(at: place) }
        trackers.linkEnded(peer, scene)
        calls.makesRoom(peer, scene)
    }

    /// A session closes a connection; `closed` follows.
    mutating func closes(_ end: Int, _ reason: CloseReason, at now: Instant) {
        isFull = reason == .full
        recalls.closes(end, reason, isGreeted: greetedEnd == end, scene)
        patience.closes(end, reason, at: now, &scene)
        if reason == .ourselves, end & 1 == 0, let address = scene.ends[end].listens {
            calls.isOurselves(scene.ends[end].peer, address)
        }
    }

    // MARK: - Observations

    mutating func banned(_ peer: Int, _ other: Int?, at now: Instant) { bans.banned(peer, other, at: now, &scene) }

    mutating func poisoned(_ peer: Int, by other: Int) { bans.poisoned(peer, by: other, &scene) }

    mutating func reachedRatio(_ peer: Int) { scene.peers[peer].ratioIsReached = true }

    mutating func observes(_ peer: Int, _ observation: TorrentSession.Observation) {
        shown.observes(peer, observation)
        if observation == .completed { turns.completed(peer) }
    }

    /// What is not finished when the time for it is over.
    mutating func unfinished(_ peer: Int, _ why: String, at now: Instant) {
        scene.violate(.leechersFinish, at: now, "\(TransferScene.name(peer)) \(why)")
    }
}
