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
    private var order = MessageOrder()
    private var calls: Calls
    private var bans = Bans()
    private var limits: TransferLimits
    private var trackers: TrackerManners
    /// Ends that were choked in the step under way.
    private var chokedEnds: [Int] = []

    init(layout: PieceLayout, peerCount: Int) {
        scene = TransferScene(layout: layout, peerCount: peerCount)
        calls = Calls(peerCount: peerCount)
        limits = TransferLimits(peerCount: peerCount)
        trackers = TrackerManners(peerCount: peerCount)
    }

    var violations: [Violation] { scene.violations }

    // MARK: - Lives

    mutating func began(
        _ peer: Int, disk: Bitfield, settings: SessionSettings, isPrivate: Bool, isHonest: Bool, at now: Instant
    ) {
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
        requests.began(peer, &scene)
        calls.began(peer)
        trackers.began(peer)
        limits.changed(peer, at: now)
    }

    mutating func ended(_ peer: Int) { scene.peers[peer].isUp = false }

    /// Somebody who was paused goes on, with what is on the disk.
    mutating func wentOn(_ peer: Int, disk: Bitfield, at now: Instant) {
        for piece in 0..<scene.layout.pieceCount where !disk[piece] { pieceLost(peer, piece) }
        scene.peers[peer].beganComplete = disk.isFull
        limits.changed(peer, at: now)
    }

    mutating func changed(_ peer: Int, settings: SessionSettings, at now: Instant) {
        scene.peers[peer].settings = settings
        scene.peers[peer].ratioIsReached = false
        limits.changed(peer, at: now)
    }

    /// The end of a step of an honest peer.
    mutating func stepEnded(_ peer: Int, buffered: Int, at now: Instant) {
        slots.check(peer, at: now, &scene)
        bans.check(peer, at: now, &scene)
        limits.check(peer, buffered: buffered, at: now, &scene)
        guard !chokedEnds.isEmpty else { return }
        for end in chokedEnds { answers.check(end, at: now, &scene) }
        chokedEnds.removeAll(keepingCapacity: true)
    }

    /// All that only time can break.
    mutating func look(at now: Instant) { slots.checkAll(at: now, &scene) }

    // MARK: - Connections

    mutating func found(_ peer: Int, _ address: SocketAddress, isProper: Bool) {
        calls.found(peer, address, isProper: isProper)
    }

    mutating func dials(_ end: Int, _ peer: Int, _ address: SocketAddress, other: Int?, at now: Instant) {
        opened(end, peer, other ?? peer, at: now)
        calls.dials(peer, address, other: other, at: now, &scene)
    }

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
        scene.ends[end].isAmongHonest = scene.peers[other].isHonest
        scene.ends[end].since = now
        scene.ends[end].quietSince = now
        scene.ends[end].choked = now
        scene.peers[peer].openCount += 1
    }

    /// This side knows both handshakes.
    mutating func greeted(_ end: Int, _ capabilities: PeerHandshake.Capabilities, _ address: SocketAddress?) {
        scene.ends[end].isGreeted = true
        scene.ends[end].hasFast = capabilities.contains(.fast)
        scene.ends[end].hasExtensions = capabilities.contains(.extensions)
        scene.ends[end].address = address
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
        slots.closed(end, &scene)
        scene.ends[end].isOpen = false
        scene.peers[scene.ends[end].peer].openCount -= 1
    }

    // MARK: - Said and heard

    mutating func saysHandshake(_ end: Int, at now: Instant) { bans.says(end, at: now, &scene) }

    mutating func says(_ end: Int, _ message: PeerMessage, at now: Instant) {
        order.says(end, message, at: now, &scene)
        bans.says(end, at: now, &scene)
        switch message {
        case .have, .haveAll, .bitfield, .allowedFast: claims.says(end, message, at: now, &scene)
        case .choke:
            slots.says(end, isChoke: true, at: now, &scene)
            answers.choked(end, &scene)
        case .unchoke: slots.says(end, isChoke: false, at: now, &scene)
        case .request(let block):
            requests.asks(end, block, at: now, &scene)
            limits.asks(scene.ends[end].peer, Int(block.length), at: now, &scene)
            limits.asked(end, at: now, &scene)
        case .cancel(let block):
            if let number = scene.number(block) { requests.cancels(end, number, &scene) }
        case .reject(let block): answers.answers(end, block, "rejects", at: now, &scene)
        case .keepAlive, .interested, .notInterested, .haveNone, .piece, .port, .suggest, .extended: break
        }
    }

    mutating func hears(_ end: Int, _ message: PeerMessage, at now: Instant) {
        switch message {
        case .choke:
            scene.ends[end].isChoked = true
            if !scene.ends[end].hasFast, !scene.ends[end].asked.isEmpty {
                scene.again.choked += 1
                requests.dropAll(of: end, &scene)
            }
        case .unchoke:
            // Only the first counts as a sign of life.
            if scene.ends[end].isChoked { requests.heard(end, at: now, &scene) }
            scene.ends[end].isChoked = false
        case .interested: slots.hears(end, isInterested: true, at: now, &scene)
        case .notInterested: slots.hears(end, isInterested: false, at: now, &scene)
        case .request(let block): answers.hears(end, block, &scene)
        case .reject(let block):
            guard scene.ends[end].hasFast, let number = scene.number(block) else { return }
            if requests.rejected(end, number, &scene) {
                scene.again.rejected += 1
                limits.refused(scene.ends[end].peer, Int(block.length))
            }
        case .extended(let id, let payload): if id == 0 { hearsExtensions(end, payload) }
        case .keepAlive, .have, .bitfield, .piece, .cancel, .port, .suggest, .haveAll, .haveNone, .allowedFast: break
        }
    }

    /// An extension handshake has come, which says where the other side listens (BEP 10).
    private mutating func hearsExtensions(_ end: Int, _ payload: [UInt8]) {
        order.hears(end, payload, &scene)
        guard scene.ends[end].isAmongHonest, let address = scene.ends[end].address else { return }
        calls.succeeded(scene.ends[end].peer, address)
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
    }

    mutating func sent(_ end: Int, _ block: Block, isSent: Bool) {
        if let index = scene.ends[end].sending.firstIndex(of: block) { scene.ends[end].sending.remove(at: index) }
        if isSent {
            scene.peers[scene.ends[end].peer].sentByteCount += Int(block.length)
        } else {
            limits.takesBack(end, block, &scene)
            if scene.ends[end].hasFast { answers.takesBack(end, block, &scene) }
        }
    }

    mutating func blockBegins(_ end: Int, _ block: Block, isKept: Bool, at now: Instant) {
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
        if isCorrupt { bans.poisoned(peer, by: scene.ends[end].other, &scene) }
    }

    // MARK: - Pieces

    mutating func fetches(_ peer: Int, _ piece: Int, fromSeed seed: Int, at now: Instant) {
        bans.fetches(peer, fromSeed: seed, at: now, &scene)
        requests.fetches(peer, piece, at: now, &scene)
        limits.asks(peer, scene.layout.pieceLength, at: now, &scene)
    }

    /// A piece is whole, and is hashed.
    mutating func pieceIsWhole(_ peer: Int, _ piece: Int) { scene.peers[peer].whole.insert(piece) }

    mutating func webPieceArrived(_ peer: Int, byteCount: Int) { scene.peers[peer].receivedByteCount += byteCount }

    mutating func pieceFailed(_ peer: Int, _ piece: Int, senders: [Int]) {
        requests.restarts(peer, piece, &scene)
        scene.peers[peer].wrong.insert(piece)
        bans.failed(peer, senders: senders, &scene)
    }

    /// A buffer is given up whose piece is not on the disk.
    mutating func pieceGivenUp(_ peer: Int, _ piece: Int) { requests.restarts(peer, piece, &scene) }

    mutating func pieceStored(_ peer: Int, _ piece: Int, isRight: Bool, at now: Instant) {
        if !isRight {
            scene.violate(
                .onlyVerifiedIsStored, at: now,
                "\(TransferScene.name(peer)) writes piece \(piece), which is not verified or is wrong")
        }
        scene.peers[peer].disk.insert(piece)
        requests.stored(peer, piece, &scene)
        if scene.peers[peer].disk.isFull { scene.peers[peer].wasComplete = true }
    }

    mutating func pieceLost(_ peer: Int, _ piece: Int) {
        if scene.peers[peer].disk.remove(piece) { requests.restarts(peer, piece, &scene) }
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

    // MARK: - Observations, and trackers

    mutating func banned(_ peer: Int, _ other: Int?, at now: Instant) { bans.banned(peer, other, at: now, &scene) }

    mutating func poisoned(_ peer: Int, by other: Int) { bans.poisoned(peer, by: other, &scene) }

    mutating func reachedRatio(_ peer: Int) { scene.peers[peer].ratioIsReached = true }

    mutating func announces(_ peer: Int, _ tracker: Int, _ event: AnnounceEvent, at now: Instant) {
        trackers.announces(peer, tracker, event, at: now, &scene)
    }

    mutating func trackerAnswered(_ peer: Int, _ tracker: Int, isGood: Bool, at now: Instant) {
        trackers.answered(peer, tracker, isGood: isGood, at: now)
    }

    /// What is not finished when the time for it is over.
    mutating func unfinished(_ peer: Int, _ why: String, at now: Instant) {
        scene.violate(.leechersFinish, at: now, "\(TransferScene.name(peer)) \(why)")
    }
}
