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
    private var requests = BlockRequests()
    private var slots = UploadSlots()
    private var claims = Claims()
    private var answers = Answers()
    var order = MessageOrder()
    var calls: Calls
    var bans = Bans()
    private var limits: TransferLimits
    var trackers: TrackerManners
    var datagrams: DatagramManners
    private var turns: Turns
    private let knowledge = Knowledge()
    private let patience = Patience()
    var exchanges = Exchanges()
    var metadata: MetadataManners
    private var idleness: Idleness
    var shown: Shown
    private var disks: DiskManners
    /// Ends that were choked in the step under way.
    private var chokedEnds: [Int] = []
    /// Whether the connection that is being closed gives way to another.
    private var isFull = false
    /// The end that was asked for metadata in the step under way.
    var askedForMetadata: Int?

    /// `trackerTiers` are those of simple trackers.
    init(_ options: TransferOptions, metadata: [UInt8], trackerTiers: [Int], firstPlace: Int) {
        let peerCount = options.peerCount
        scene = TransferScene(layout: options.layout, peerCount: peerCount, firstPlace: firstPlace)
        calls = Calls(peerCount: peerCount)
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
        scene.peers[peer].banned.removeAll()
        scene.peers[peer].guilty.removeAll()
        scene.peers[peer].mustBan = nil
        scene.peers[peer].lyingSeeds.removeAll()
        scene.peers[peer].ratioIsReached = false
        scene.peers[peer].sentByteCount = 0
        scene.peers[peer].receivedByteCount = 0
        scene.peers[peer].beganComplete = disk.isFull
        scene.peers[peer].wasComplete = disk.isFull
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
        askedForMetadata = nil
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
        scene.peers[peer].beganComplete = disk.isFull
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

    /// Between two steps: whether anything waits that need not.
    mutating func looksForIdle(_ peer: Int, buffered: Int, at now: Instant) {
        idleness.check(peer, buffered: buffered, snubbed: nil, &limits, at: now, &scene)
    }

    /// The end of a step of an honest peer.
    mutating func stepEnded(_ peer: Int, buffered: Int, at now: Instant) {
        slots.check(peer, at: now, &scene)
        bans.check(peer, at: now, &scene)
        limits.check(peer, buffered: buffered, at: now, &scene)
        turns.stepEnds(peer, at: now, &scene)
        trackers.stepEnds(peer, at: now, &scene)
        datagrams.stepEnds(peer, at: now, &scene)
        shown.stepEnds(peer, at: now, &scene)
        disks.stepEnds(peer, at: now, &scene)
        if let end = askedForMetadata { metadata.check(end, at: now, &scene) }
        scene.cause = .other
        guard !chokedEnds.isEmpty else { return }
        for end in chokedEnds { answers.check(end, at: now, &scene) }
        chokedEnds.removeAll(keepingCapacity: true)
    }

    /// All that only time can break, and all that people are shown.
    mutating func look(_ peer: Int, _ said: Shown.Session, at now: Instant) {
        shown.look(peer, said, at: now, &scene)
        trackers.look(peer, at: now, &scene)
        datagrams.look(peer, at: now, &scene)
        metadata.look(peer, at: now, &scene)
        disks.look(peer, at: now, &scene)
        calls.look(peer, knownCount: said.knownPeerCount, at: now, &scene)
        idleness.lookAtWeb(peer, buffered: said.bufferedByteCount, at: now, &scene)
        let snubbed = said.links.filter { $0.view.isSnubbing }.map { $0.end }
        idleness.check(peer, buffered: said.bufferedByteCount, snubbed: snubbed, &limits, at: now, &scene)
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
        opened(end, peer, other ?? TransferScene.nobody, at: now)
        scene.ends[end].listens = address
        scene.ends[end].listensAt = scene.peers[peer].local
        calls.dials(peer, address, other: other, at: now, &scene)
        calls.meets(peer, address)
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
        let local = scene.local(end)
        scene.ends[end].greetedAt = local
        scene.ends[end].heardAt = local
        scene.ends[end].saidAt = local
        scene.peers[scene.ends[end].peer].readyCount += 1
        calls.makesRoom(scene.ends[end].peer, scene)
        if let address { calls.succeeded(scene.ends[end].peer, address) }
    }

    /// A call has come to nothing, by nobody's wish.
    mutating func callFailed(_ peer: Int, _ address: SocketAddress, at now: Instant) {
        calls.failed(peer, address, at: now)
    }

    /// This side has ended.
    mutating func closed(_ end: Int) {
        guard scene.ends[end].isOpen else { return }
        requests.closed(end, &scene)
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
        trackers.linkEnded(peer, scene)
        calls.makesRoom(peer, scene)
    }

    /// A session closes a connection; `closed` follows.
    mutating func closes(_ end: Int, _ reason: CloseReason, at now: Instant) {
        isFull = reason == .full
        patience.closes(end, reason, at: now, &scene)
    }

    // MARK: - Said and heard

    mutating func saysHandshake(_ end: Int, at now: Instant) { bans.says(end, at: now, &scene) }

    mutating func says(_ end: Int, _ message: PeerMessage, at now: Instant) {
        order.says(end, message, at: now, &scene)
        bans.says(end, at: now, &scene)
        patience.says(end, message, at: now, &scene)
        knowledge.says(end, message, at: now, &scene)
        switch message {
        case .have, .haveAll, .bitfield, .allowedFast: claims.says(end, message, at: now, &scene)
        case .choke:
            slots.says(end, isChoke: true, at: now, &scene)
            turns.says(end, isChoke: true, &scene)
            answers.choked(end, &scene)
        case .unchoke:
            slots.says(end, isChoke: false, at: now, &scene)
            turns.says(end, isChoke: false, &scene)
        case .request(let block):
            knowledge.asks(end, block, at: now, &scene)
            if scene.ends[end].asked.isEmpty { scene.ends[end].askedAnewAt = scene.local(end) }
            requests.asks(end, block, at: now, &scene)
            limits.asks(scene.ends[end].peer, Block.maxByteCount, at: now, &scene)
            limits.asked(end, at: now, &scene)
        case .cancel(let block):
            if let number = scene.number(block) { requests.cancels(end, number, &scene) }
        case .reject(let block): answers.answers(end, block, "rejects", at: now, &scene)
        case .interested: scene.ends[end].askedAnewAt = scene.local(end)
        case .extended(let id, let payload): saysExtended(end, id, payload, at: now)
        case .keepAlive, .notInterested, .haveNone, .piece, .port, .suggest: break
        }
    }

    mutating func hears(_ end: Int, _ message: PeerMessage, at now: Instant) {
        scene.cause = .other
        scene.ends[end].heardAt = scene.local(end)
        knowledge.hears(end, message, &scene)
        switch message {
        case .choke:
            scene.ends[end].isChoked = true
            if !scene.ends[end].hasFast, !scene.ends[end].asked.isEmpty {
                scene.again.choked += 1
                requests.dropAll(of: end, &scene)
            }
        case .unchoke:
            // Only the first counts as a sign of life.
            if scene.ends[end].isChoked {
                requests.heard(end, at: now, &scene)
                scene.ends[end].usefulAt = scene.local(end)
            }
            scene.ends[end].isChoked = false
        case .interested:
            guard !scene.ends[end].isAskedFor else { return }
            scene.cause = .interested(end)
            scene.ends[end].turnSince = scene.local(end)
            slots.hears(end, isInterested: true, at: now, &scene)
        case .notInterested:
            guard scene.ends[end].isAskedFor else { return }
            scene.cause = .notInterested(end)
            slots.hears(end, isInterested: false, at: now, &scene)
        case .request(let block): answers.hears(end, block, &scene)
        case .reject(let block):
            guard scene.ends[end].hasFast, let number = scene.number(block) else { return }
            let isCertain = !scene.ends[end].mayBeGivenUp && scene.ends[end].old.isEmpty
            if requests.rejected(end, number, &scene) {
                scene.again.rejected += 1
                limits.refused(scene.ends[end].peer, Int(block.length))
                knowledge.refused(end, block, isCertain: isCertain, &scene)
            } else if !isCertain {
                scene.ends[end].isHasUncertain = true
            }
        case .extended(let id, let payload): hearsExtended(end, id, payload)
        case .keepAlive, .have, .bitfield, .piece, .cancel, .port, .suggest, .haveAll, .haveNone, .allowedFast: break
        }
    }

    /// A side chokes the other: at the end of the step its requests are looked at.
    mutating func checkAnswersLater(_ end: Int) { chokedEnds.append(end) }

    // MARK: - Blocks

    mutating func gives(_ end: Int, _ block: Block, at now: Instant) {
        claims.gives(end, block, at: now, &scene)
        slots.gives(end, block, at: now, &scene)
        bans.says(end, at: now, &scene)
        answers.answers(end, block, "gives", at: now, &scene)
        limits.gives(end, block, at: now, &scene)
        patience.gives(end, &scene)
    }

    mutating func sent(_ end: Int, _ block: Block, isSent: Bool) {
        if let index = scene.ends[end].sending.firstIndex(of: block) { scene.ends[end].sending.remove(at: index) }
        if isSent {
            scene.peers[scene.ends[end].peer].sentByteCount += Int(block.length)
            scene.ends[end].up.add(Int(block.length), at: scene.local(end))
        } else {
            limits.takesBack(end, block, &scene)
            if scene.ends[end].hasFast { answers.takesBack(end, block, &scene) }
        }
    }

    mutating func blockBegins(_ end: Int, _ block: Block, isKept: Bool, at now: Instant) {
        if isKept {
            scene.ends[end].heardAt = scene.local(end)
            scene.ends[end].arrivingSince = scene.local(end)
        }
        guard let number = scene.number(block) else {
            if isKept {
                scene.violate(.contractIsKept, at: now, "\(TransferScene.name(scene.ends[end].peer)) keeps no block")
            }
            return
        }
        if let old = scene.ends[end].old.firstIndex(of: Int32(number)) { scene.ends[end].old.remove(at: old) }
        if isKept { requests.begins(end, number, at: now, &scene) } else { requests.ends(end, number, &scene) }
    }

    mutating func blockArrived(_ end: Int, _ block: Block, isCorrupt: Bool, at now: Instant) {
        requests.arrived(end, at: now, &scene)
        let peer = scene.ends[end].peer
        scene.peers[peer].receivedByteCount += Int(block.length)
        scene.ends[end].down.add(Int(block.length), at: scene.local(end))
        scene.ends[end].heardAt = scene.local(end)
        scene.ends[end].usefulAt = scene.local(end)
        if isCorrupt { bans.poisoned(peer, by: scene.ends[end].other, &scene) }
    }

    /// A block that was of no use has come.
    mutating func skipped(_ end: Int, _ block: Block) {
        scene.ends[end].heardAt = scene.local(end)
        scene.peers[scene.ends[end].peer].wastedByteCount += Int(block.length)
    }

    // MARK: - Pieces

    mutating func fetches(_ peer: Int, _ piece: Int, fromSeed seed: Int, at now: Instant) {
        bans.fetches(peer, fromSeed: seed, at: now, &scene)
        idleness.fetches(peer, piece, seed, at: now, &scene)
        requests.fetches(peer, piece, at: now, &scene)
        limits.asks(peer, scene.layout.pieceLength, at: now, &scene)
    }

    /// A piece is whole, and is hashed.
    mutating func pieceIsWhole(_ peer: Int, _ piece: Int) { scene.peers[peer].whole.insert(piece) }

    mutating func webPieceArrived(_ peer: Int, byteCount: Int) { scene.peers[peer].receivedByteCount += byteCount }

    /// A web server has given a piece, or not.
    mutating func webEnds(_ peer: Int, _ piece: Int, _ seed: Int, _ problem: WebSeedProblem?) {
        idleness.webEnds(peer, piece, seed, problem, scene)
    }

    mutating func webLied(_ peer: Int, _ seed: Int) { idleness.lied(peer, seed) }

    mutating func stores(_ peer: Int, _ piece: Int, at now: Instant) { disks.stores(peer, piece, at: now, &scene) }

    mutating func announcesLocally(_ peer: Int, at now: Instant) { disks.tellsLocally(peer, at: now, &scene) }

    mutating func pieceIsRight(_ peer: Int, _ piece: Int, digested: Bool) {}

    mutating func pieceFailed(_ peer: Int, _ piece: Int, senders: [Int]) {
        scene.peers[peer].wrongByteCount += scene.layout.length(ofPiece: piece)
        scene.peers[peer].wastedByteCount += scene.layout.length(ofPiece: piece)
        requests.restarts(peer, piece, &scene)
        scene.peers[peer].wrong.insert(piece)
        bans.failed(peer, senders: senders, &scene)
    }

    /// A buffer is given up whose piece is not on the disk.
    mutating func pieceGivenUp(_ peer: Int, _ piece: Int) { requests.givesUp(peer, piece, &scene) }

    mutating func pieceStored(_ peer: Int, _ piece: Int, isRight: Bool, at now: Instant) {
        if !isRight {
            scene.violate(
                .onlyVerifiedIsStored, at: now,
                "\(TransferScene.name(peer)) writes piece \(piece), which is not verified or is wrong")
        }
        scene.peers[peer].disk.insert(piece)
        scene.peers[peer].gainedAt[piece] = scene.peers[peer].local
        requests.stored(peer, piece, &scene)
        if scene.peers[peer].disk.isFull { scene.peers[peer].wasComplete = true }
    }

    mutating func pieceLost(_ peer: Int, _ piece: Int) {
        guard scene.peers[peer].disk.remove(piece) else { return }
        scene.peers[peer].lost.insert(piece)
        requests.restarts(peer, piece, &scene)
        shown.changed(peer, scene)
    }

    /// Whether a piece has been wrong at a peer.
    func wasWrong(_ peer: Int, _ piece: Int) -> Bool { scene.peers[peer].wrong[piece] }

    /// What the contract does not allow.
    mutating func breaks(_ peer: Int, _ what: String, at now: Instant) {
        scene.violate(.contractIsKept, at: now, "\(TransferScene.name(peer)) \(what)")
    }

    /// What a peer keeps for speed is not what it stands for.
    mutating func audited(_ peer: Int, _ fault: String, at now: Instant) {
        scene.violate(.bookkeepingAgrees, at: now, "\(TransferScene.name(peer)): \(fault)")
    }

    // MARK: - Observations

    mutating func banned(_ peer: Int, _ other: Int?, at now: Instant) { bans.banned(peer, other, at: now, &scene) }

    mutating func poisoned(_ peer: Int, by other: Int) { bans.poisoned(peer, by: other, &scene) }

    mutating func reachedRatio(_ peer: Int) { scene.peers[peer].ratioIsReached = true }

    mutating func observes(_ peer: Int, _ observation: TorrentSession.Observation) {
        shown.observes(peer, observation)
        guard observation == .completed else { return }
        turns.completed(peer)
        if scene.peers[peer].disk.isFull, !scene.peers[peer].beganComplete { trackers.completed(peer) }
    }

    /// What is not finished when the time for it is over.
    mutating func unfinished(_ peer: Int, _ why: String, at now: Instant) {
        scene.violate(.leechersFinish, at: now, "\(TransferScene.name(peer)) \(why)")
    }
}
