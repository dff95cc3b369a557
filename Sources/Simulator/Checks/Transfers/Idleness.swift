// That nothing waits without a reason.

import PeerLogic
import Primitives
import Wire

/// That nothing waits without a reason: what a peer may give, and was asked for, goes; whoever may be asked for what is
/// missing is asked, and so are web servers; and limits are used.
struct Idleness: Sendable {
    private static let maxSendingCount = 16
    private static let maxFetchCount = 4
    private static let snubbing = Duration.seconds(29)
    /// A peer that may be asked for what another was asked for is, within this.
    private static let endgamePatience = Duration.seconds(5)
    private static let lateness = Duration.milliseconds(1_200)
    private static let firstWebWait = Duration.seconds(15)

    /// A web server, as one peer has known it.
    private struct Seed: Sendable {
        var fetching: [Int] = []
        var failures = 0
        var nextTry = Instant(nanoseconds: 0)
        var isUnusable = false
    }

    /// By peer, then by web server.
    private var seeds: [[Seed]]

    init(peerCount: Int) { seeds = Array(repeating: [], count: peerCount) }

    mutating func began(_ peer: Int, seedCount: Int) { seeds[peer] = Array(repeating: Seed(), count: seedCount) }

    // MARK: - Web servers

    mutating func fetches(_ peer: Int, _ piece: Int, _ seed: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = seeds[peer][seed]
        seeds[peer][seed].fetching.append(piece)
        var fault: String?
        if record.isUnusable { fault = "which is of no use" }
        if record.fetching.count >= Self.maxFetchCount { fault = "which gives it \(record.fetching.count) already" }
        if scene.peers[peer].local < record.nextTry { fault = "which has failed, too soon" }
        if !scene.isMissing(peer, piece) { fault = "and does not lack it" }
        guard let fault else { return }
        scene.violate(
            .backedOffAreLeftAlone, at: now,
            "\(TransferScene.name(peer)) fetches piece \(piece) from web seed \(seed), \(fault)")
    }

    mutating func webEnds(_ peer: Int, _ piece: Int, _ seed: Int, _ problem: WebSeedProblem?, _ scene: TransferScene) {
        seeds[peer][seed].fetching.removeAll { $0 == piece }
        switch problem {
        case nil: seeds[peer][seed].failures = 0
        case .unavailable:
            let failures = min(seeds[peer][seed].failures, 8)
            seeds[peer][seed].nextTry = scene.peers[peer].local + Self.firstWebWait * (1 << Int64(failures))
            seeds[peer][seed].failures += 1
        case .unusable: seeds[peer][seed].isUnusable = true
        }
    }

    mutating func lied(_ peer: Int, _ seed: Int) { seeds[peer][seed].isUnusable = true }

    func lookAtWeb(_ peer: Int, buffered: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.peers[peer]
        guard record.isRunning, record.hasMetadata, record.settings.maxDownloadRate == nil,
            record.local - record.freedAt > Self.lateness,
            buffered == 0 || buffered + scene.layout.pieceLength <= record.settings.maxBufferedByteCount / 2
        else { return }
        for (number, seed) in seeds[peer].enumerated() {
            guard !seed.isUnusable, seed.fetching.count < Self.maxFetchCount,
                record.local - seed.nextTry > Self.lateness,
                let piece = (0..<scene.layout.pieceCount).first(where: {
                    scene.isMissing(peer, $0) && !scene.isBegun(peer, $0)
                })
            else { continue }
            return blame(peer, "lacks piece \(piece), and does not fetch it from web seed \(number)", at: now, &scene)
        }
    }

    func isFetching(_ peer: Int, _ piece: Int) -> Bool { seeds[peer].contains { $0.fetching.contains(piece) } }

    // MARK: - Blocks

    /// Between two steps of a peer; `snubbed` are the ends that it takes for silent, nil where nobody has asked.
    func check(
        _ peer: Int, buffered: Int, snubbed: [Int]?, _ limits: inout TransferLimits, _ lone: LonePieces,
        at now: Instant, _ scene: inout TransferScene
    ) {
        guard scene.peers[peer].isRunning else { return }
        var waits = false
        for end in scene.ends(of: peer) where scene.ends[end].isGreeted {
            if waitsForUpload(end, scene) {
                waits = true
                if limits.mayGive(peer, scene) {
                    blame(
                        peer,
                        "could give \(scene.otherName(end)) block \(scene.ends[end].toAnswer[0].words), and waits",
                        at: now, &scene)
                }
            }
            // Who is silent is not asked until one of its blocks comes.
            let isSnubbed =
                snubbed?.contains(end) ?? (scene.local(end) - scene.ends[end].usefulAt > Self.snubbing)
            if !isSnubbed, mayAsk(end, scene), limits.mayAsk(peer, scene),
                let piece = askable(end, buffered: buffered, scene) ?? lone.askable(end, scene)
            {
                blame(
                    peer, "could ask \(scene.otherName(end)) for piece \(piece), and waits", at: now, &scene)
            }
            if !isSnubbed, snubbed != nil, mayAsk(end, scene), limits.mayAsk(peer, scene),
                let number = askableAgain(end, at: now, scene)
            {
                blame(
                    peer, "could ask \(scene.otherName(end)), too, for \(scene.name(number)), and waits", at: now,
                    &scene)
            }
        }
        if waits { limits.givesNothing(peer) }
    }

    /// As `check`, of what a limit has let go alone.
    func checkUploads(_ peer: Int, _ limits: TransferLimits, at now: Instant, _ scene: inout TransferScene) {
        guard scene.peers[peer].isRunning, scene.peers[peer].settings.maxUploadRate != nil, limits.mayGive(peer, scene)
        else { return }
        for end in scene.ends(of: peer) where scene.ends[end].isGreeted && waitsForUpload(end, scene) {
            blame(
                peer, "could give \(scene.otherName(end)) block \(scene.ends[end].toAnswer[0].words), and waits",
                at: now, &scene)
        }
    }

    private func waitsForUpload(_ end: Int, _ scene: TransferScene) -> Bool {
        let record = scene.ends[end]
        guard record.hasFast, record.isAmongHonest, record.sending.count < Self.maxSendingCount,
            let block = record.toAnswer.first
        else { return false }
        return scene.peers[record.peer].disk[Int(block.piece)]
    }

    /// Whether nothing keeps a peer from asking another.
    private func mayAsk(_ end: Int, _ scene: TransferScene) -> Bool {
        let record = scene.ends[end]
        return (!record.isChoked || !record.allowedToUs.isEmpty) && record.saysInterested
            && record.asked.count < record.leastWindow && !record.mayBeGivenUp && !record.isAskedUncertain
            && record.arriving < 0 && !record.isSkipping && !record.isHasUncertain
            && scene.peers[record.peer].hasMetadata
    }

    /// In the endgame: a block that one other was asked for a while ago, and that may be asked for here, too.
    private func askableAgain(_ end: Int, at now: Instant, _ scene: TransferScene) -> Int? {
        let peer = scene.ends[end].peer
        // Without the fast extension nobody can tell which requests of old it remembers.
        guard scene.ends[end].asked.isEmpty, !scene.ends[end].isChoked, scene.ends[end].hasFast,
            scene.peers[peer].freeCount == 0, scene.peers[peer].wanted.isFull,
            scene.peers[peer].local - scene.peers[peer].isAllAskedSince > Self.lateness,
            // Of those that were given up some may be free.
            !scene.peers[peer].blocks.contains(where: { $0 & PeerRecord.perhaps != 0 }),
            !(0..<scene.layout.pieceCount).contains(where: {
                scene.peers[peer].wrong[$0] && scene.isMissing(peer, $0)
            })
        else { return nil }
        for other in scene.ends(of: peer) where other != end {
            for asked in scene.ends[other].asked where now - asked.at > Self.endgamePatience {
                let number = Int(asked.block)
                if scene.peers[peer].blocks[number] == 1, scene.ends[end].has[number / scene.blocksPerPiece],
                    !scene.ends[end].old.contains(asked.block)
                {
                    return number
                }
            }
        }
        return nil
    }

    /// A piece of which something is free that the other side has.
    private func askable(_ end: Int, buffered: Int, _ scene: TransferScene) -> Int? {
        let peer = scene.ends[end].peer
        let record = scene.peers[peer]
        guard record.freeCount > 0 else { return nil }
        let hasRoom =
            buffered == 0 || buffered + scene.layout.pieceLength <= record.settings.maxBufferedByteCount
        return (0..<scene.layout.pieceCount).first { piece in
            guard scene.ends[end].has[piece], scene.isMissing(peer, piece), !record.wrong[piece],
                !scene.ends[end].isChoked || scene.ends[end].allowedToUs.contains(UInt32(piece))
            else { return false }
            let busy = record.busy[piece]
            return busy == 0 ? hasRoom : busy < scene.layout.blockCount(ofPiece: piece)
        }
    }

    private func blame(_ peer: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.nothingWaits, at: now, "\(TransferScene.name(peer)) \(what)")
    }
}
