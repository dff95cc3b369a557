// How a disk is tried again that takes nothing.

import PeerLogic
import Primitives

/// How a disk is tried again that takes nothing: after two seconds, then after twice as long each time, a minute at
/// most; all pieces that wait for it at once, and as soon as it has taken one.
///
/// Beside that, how the local network is
/// told of a peer: once in five minutes (BEP 14).
struct DiskManners: Sendable {
    private static let firstWait = Duration.seconds(2)
    private static let longestWait = Duration.seconds(60)
    private static let localInterval = Duration.seconds(300)
    private static let lateness = Duration.milliseconds(200)

    private struct Peer: Sendable {
        var held: [Int] = []
        var retryAt: Instant?
        var failures = 0
        var toldLocallyAt: Instant?
        var startedAt = Instant(nanoseconds: 0)
    }

    private var peers: [Peer]

    init(peerCount: Int) { peers = Array(repeating: Peer(), count: peerCount) }

    mutating func began(_ peer: Int) { peers[peer] = Peer() }

    mutating func stepBegins(_ peer: Int, _ scene: TransferScene) {
        if scene.cause == .started {
            peers[peer].startedAt = scene.peers[peer].local
            peers[peer].toldLocallyAt = nil
        }
    }

    mutating func failed(_ peer: Int, _ piece: Int, _ scene: TransferScene) {
        peers[peer].held.append(piece)
        guard peers[peer].retryAt == nil else { return }
        let wait = min(Self.firstWait * (1 << Int64(min(peers[peer].failures, 5))), Self.longestWait)
        peers[peer].retryAt = scene.peers[peer].local + wait
        peers[peer].failures += 1
    }

    mutating func stores(_ peer: Int, _ piece: Int, at now: Instant, _ scene: inout TransferScene) {
        guard let place = peers[peer].held.firstIndex(of: piece) else { return }
        peers[peer].held.remove(at: place)
        var isDue = peers[peer].retryAt.map { $0 <= scene.peers[peer].local } ?? true
        if case .stored = scene.cause { isDue = true }
        if !isDue { blame(peer, "writes piece \(piece) again too soon", at: now, &scene) }
    }

    mutating func stored(_ peer: Int) {
        peers[peer].failures = 0
        peers[peer].retryAt = nil
    }

    mutating func stepEnds(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        var isTried = false
        if case .stored = scene.cause { isTried = true }
        if scene.cause == .deadline, let due = peers[peer].retryAt, due <= scene.peers[peer].local,
            scene.peers[peer].isRunning
        {
            isTried = true
            peers[peer].retryAt = nil
        }
        guard isTried, let piece = peers[peer].held.first else { return }
        blame(peer, "does not write piece \(piece) again", at: now, &scene)
        peers[peer].held.removeAll()
    }

    mutating func tellsLocally(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        let local = scene.peers[peer].local
        if let before = peers[peer].toldLocallyAt, local - before < Self.localInterval {
            blame(peer, "tells its local network too often", at: now, &scene)
        }
        if !scene.peers[peer].settings.announcesLocally {
            blame(peer, "tells its local network, and was not to", at: now, &scene)
        }
        peers[peer].toldLocallyAt = local
    }

    func look(_ peer: Int, at now: Instant, _ scene: inout TransferScene) {
        let record = scene.peers[peer]
        guard record.isRunning else { return }
        if let due = peers[peer].retryAt, record.local - due > Self.lateness {
            blame(peer, "forgets what waits for its disk", at: now, &scene)
        }
        guard record.settings.announcesLocally, !record.isPrivate else { return }
        let due = peers[peer].toldLocallyAt.map { $0 + Self.localInterval } ?? peers[peer].startedAt
        if record.local - due > Self.lateness { blame(peer, "does not tell its local network", at: now, &scene) }
    }

    private func blame(_ peer: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.nothingWaits, at: now, "\(TransferScene.name(peer)) \(what)")
    }
}
