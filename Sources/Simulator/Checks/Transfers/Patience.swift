// For how long a connection is kept, and why it is closed.

import PeerLogic
import Primitives
import Wire

/// For how long a connection is kept, and why it is closed: each reason has its time, and when that has come it is
/// closed; meanwhile it is kept alive ("generally 2 minutes", BEP 3).
struct Patience: Sendable {
    private static let dialling = Duration.seconds(10)
    private static let greeting = Duration.seconds(15)
    private static let silence = Duration.seconds(240)
    private static let uselessness = Duration.seconds(120)
    private static let snubbing = Duration.seconds(30)
    private static let arrival = Duration.seconds(20)
    private static let standing = Duration.seconds(60)
    /// What is looked after each second may be late by so much.
    private static let lateness = Duration.milliseconds(1_200)
    /// Signs of life are given by then, and not much sooner.
    private static let longestRest = Duration.seconds(112)
    private static let shortestRest = Duration.seconds(100)

    // MARK: - Signs of life

    func says(_ end: Int, _ message: PeerMessage, at now: Instant, _ scene: inout TransferScene) {
        let rest = scene.local(end) - scene.ends[end].saidAt
        if message == .keepAlive, rest < Self.shortestRest {
            blame(end, "says that it lives, \(rest.wholeSeconds) s after it has said something", at: now, &scene)
        }
        scene.ends[end].saidAt = scene.local(end)
    }

    func gives(_ end: Int, _ scene: inout TransferScene) { scene.ends[end].saidAt = scene.local(end) }

    /// A block is asked for, before the request counts.
    func asks(_ end: Int, _ scene: inout TransferScene) {
        guard scene.ends[end].asked.isEmpty else { return }
        scene.ends[end].askedAnewAt = scene.local(end)
        // Who is taken for silent is not asked, so it was taken for that later.
        guard !scene.ends[end].mayBeGivenUp, !scene.ends[end].isAskedUncertain else { return }
        scene.ends[end].askedFirstAt = scene.local(end)
    }

    /// Whether a message is such that the connection has to be closed.
    func isBreach(_ end: Int, _ message: PeerMessage, _ scene: TransferScene) -> Bool {
        let record = scene.ends[end]
        let count = scene.peers[record.peer].hasMetadata ? scene.layout.pieceCount : Int.max
        switch message {
        case .have(let piece): return piece >= count
        case .suggest(let piece), .allowedFast(let piece): return !record.hasFast || piece >= count
        case .haveAll, .haveNone, .reject: return !record.hasFast
        case .bitfield(let bytes):
            return count != Int.max && PlainLayout.pieces(ofWire: bytes, count: count) == nil
        case .request(let block): return count == Int.max || !scene.layout.holds(block)
        case .extended: return !record.hasExtensions
        case .keepAlive, .choke, .unchoke, .interested, .notInterested, .piece, .cancel, .port: return false
        }
    }

    /// At the end of the step in which it was said.
    func checkBreach(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        guard scene.ends[end].isOpen else { return }
        blame(end, "goes on with what the protocol does not allow", at: now, &scene)
    }

    // MARK: - The time for it has come

    /// What should be over is over.
    ///
    /// `isSnubbing` is what the session says of the connection.
    func look(_ end: Int, isSnubbing: Bool, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.ends[end]
        let local = scene.local(end)
        if local - record.saidAt > Self.longestRest {
            blame(end, "has said nothing for \((local - record.saidAt).wholeSeconds) s", at: now, &scene)
        }
        if local - record.heardAt > Self.silence + Self.lateness {
            blame(
                end, "keeps a connection that has been silent for \((local - record.heardAt).wholeSeconds) s", at: now,
                &scene)
        }
        if local - record.greetedAt > Self.lateness, scene.peers[record.peer].disk.isFull, record.has.isFull,
            !record.isHasUncertain, scene.peers[record.peer].hasMetadata
        {
            blame(end, "keeps a connection of which neither has any use", at: now, &scene)
        }
        let isArriving = record.arriving >= 0
        if isArriving, local - max(record.arrivingSince, record.heardAt) > Self.arrival + Self.lateness {
            blame(end, "waits for the rest of a block for too long", at: now, &scene)
        }
        let useful = max(record.usefulAt, record.askedAnewAt, record.greetedAt)
        if isSnubbing, !record.isChoked, record.saysInterested,
            local - useful > Self.uselessness + Self.lateness + Self.lateness
        {
            blame(end, "keeps a connection that has been of no use for too long", at: now, &scene)
        }
        let isAsked = !record.asked.isEmpty && !record.mayBeGivenUp
        if isAsked, !isSnubbing, local - useful > Self.snubbing + Self.lateness {
            blame(end, "has asked, and takes no notice that nothing comes", at: now, &scene)
        }
        if isSnubbing, local - max(record.usefulAt, record.greetedAt, record.askedFirstAt) < Self.snubbing {
            blame(end, "takes it for silent too soon", at: now, &scene)
        }
    }

    /// One that is not through its handshakes.
    func lookAtCall(_ end: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.ends[end]
        let local = scene.local(end)
        let waited = local - (record.reachedAt ?? record.openedAt)
        if waited > (record.reachedAt == nil ? Self.dialling : Self.greeting) + Self.lateness {
            blame(end, "waits for a handshake for \(waited.wholeSeconds) s", at: now, &scene)
        }
    }

    // MARK: - Reasons

    /// A session closes a connection.
    func closes(_ end: Int, _ reason: CloseReason, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.ends[end]
        let local = scene.local(end)
        let peer = record.peer
        let stood = local - record.greetedAt
        let isRight: Bool
        switch reason {
        case .ended: isRight = scene.cause == .ended
        case .ourselves: isRight = record.other == peer
        case .otherTorrent: isRight = false
        case .duplicate: isRight = isDouble(end, scene)
        case .bothComplete:
            isRight = scene.peers[peer].disk.isFull && (record.has.isFull || record.isHasUncertain)
        case .handshakeTimedOut:
            let waited = local - (record.reachedAt ?? record.openedAt)
            isRight = !record.isGreeted && waited >= (record.reachedAt == nil ? Self.dialling : Self.greeting)
        case .idle:
            let isSilent = local - record.heardAt >= Self.silence
            isRight =
                isSilent
                || !record.isChoked && record.saysInterested
                    && local - max(record.usefulAt, record.greetedAt) >= Self.uselessness
        case .stalled:
            isRight = record.arriving >= 0 && local - max(record.arrivingSince, record.heardAt) >= Self.arrival
        case .full:
            isRight =
                record.openedAt == local
                || stood >= Self.standing && record.isGreeted && mayGiveWay(end, scene)
        // Of these others keep watch.
        case .breach, .banned: isRight = true
        }
        if !isRight {
            let has = record.has.setCount
            blame(
                end, "closes the connection without reason (\(words(reason)); it has \(has) pieces)", at: now, &scene)
        }
    }

    /// Whoever gives way has no use for us, nor we for it; or has not got the metadata, which is lacked.
    private func mayGiveWay(_ end: Int, _ scene: TransferScene) -> Bool {
        let record = scene.ends[end]
        let isCrowded = scene.peers[record.peer].openCount >= scene.peers[record.peer].settings.maxLinks
        if isCrowded, !record.saysInterested, !record.isAskedFor { return true }
        return areTaken(end, scene) && mayGiveWayForMetadata(end, scene)
    }

    /// Whether all places are taken: those of an end that was called, or all.
    private func areTaken(_ end: Int, _ scene: TransferScene) -> Bool {
        let peer = scene.ends[end].peer
        let maxLinks = scene.peers[peer].settings.maxLinks
        let called = scene.ends(of: peer).count { $0 & 1 == 0 }
        return called >= max(1, maxLinks * 3 / 5) ? end & 1 == 0 : scene.peers[peer].openCount >= maxLinks
    }

    private func mayGiveWayForMetadata(_ end: Int, _ scene: TransferScene) -> Bool {
        let record = scene.ends[end]
        return !scene.peers[record.peer].hasMetadata
            && (record.theirMetadataByteCount == 0 || record.theirExtensions.metadata == 0)
    }

    /// Somebody might be called who may have the metadata, and no connection was made or has ended for a while.
    func lookForMetadata(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        guard !scene.peers[peer].hasMetadata else { return }
        let useless = scene.ends(of: peer).first { end in
            scene.ends[end].isGreeted && scene.local(end) - scene.ends[end].greetedAt > Self.standing + Self.lateness
                && areTaken(end, scene) && mayGiveWayForMetadata(end, scene)
        }
        guard let useless else { return }
        blame(useless, "lacks the metadata, and keeps a connection that does not give it", at: now, &scene)
    }

    /// Of two connections to one peer, that one is closed which was made by the one with the lower id; of two that the
    /// same one made, the second.
    private func isDouble(_ end: Int, _ scene: TransferScene) -> Bool {
        let record = scene.ends[end]
        return scene.ends(of: record.peer).contains { other in
            guard other != end, scene.ends[other].other == record.other, scene.ends[other].isGreeted else {
                return false
            }
            if other & 1 == end & 1 { return record.greetedAt >= scene.ends[other].greetedAt }
            let maker = end & 1 == 0 ? record.peer : record.other
            return scene.peers[maker].rank < scene.peers[maker == record.peer ? record.other : record.peer].rank
        }
    }

    private func words(_ reason: CloseReason) -> String {
        switch reason {
        case .ended: "ended"
        case .ourselves: "ourselves"
        case .duplicate: "duplicate"
        case .bothComplete: "both complete"
        case .otherTorrent: "other torrent"
        case .handshakeTimedOut: "no handshake"
        case .idle: "idle"
        case .full: "full"
        case .breach: "breach"
        case .banned: "banned"
        case .stalled: "stalled"
        }
    }

    private func blame(_ end: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(
            .linksEndInTime, at: now,
            "\(TransferScene.name(scene.ends[end].peer)) \(what), with \(scene.otherName(end))")
    }
}
