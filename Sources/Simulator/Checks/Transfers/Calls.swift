// Who is called.

import PeerLogic
import Primitives
import Wire

/// Who is called: nobody whose back-off is not over, nobody who is banned, and of a private torrent nobody of whom
/// other peers have told, nor of any torrent where it is to exchange no peers.
struct Calls: Sendable {
    /// What one peer knows of an address.
    private struct Known: Sendable {
        var peer: Int
        var address: SocketAddress
        var failures = 0
        var failedAt = Instant(nanoseconds: 0)
        /// Whether a tracker, a person or the peer itself has told of it.
        var isProper = false
        /// Since when it might be called, by the peer's clock; nil where it may not, or was.
        var freshAt: Instant?
        var other: Int?
        var wasCalled = false
        /// It is the peer itself, as it has found out by calling.
        var isOurselves = false
    }

    /// "The peer is left alone for 15 · 2ⁿ seconds": of clocks that differ by a thousandth at most.
    private static let firstWait = Duration.milliseconds(14_900)
    private static let longestWait = Duration.milliseconds(3_590_000)

    /// Calls at one time.
    private static let maxCallCount = 10
    private static let lateness = Duration.milliseconds(1_300)
    /// A session that knows of so many may have no room for more.
    private static let maxKnownCount = 990

    /// By peer.
    private var known: [[Known]]
    /// By peer: when room was made last.
    private var roomSince: [Instant]
    /// By peer: when somebody was called last.
    private var dialledAt: [Instant]

    init(peerCount: Int) {
        known = Array(repeating: [], count: peerCount)
        roomSince = Array(repeating: Instant(nanoseconds: 0), count: peerCount)
        dialledAt = roomSince
    }

    private mutating func place(_ peer: Int, _ address: SocketAddress) -> Int {
        if let place = known[peer].firstIndex(where: { $0.address == address }) { return place }
        known[peer].append(Known(peer: peer, address: address))
        return known[peer].count - 1
    }

    /// A life begins: nothing is known.
    mutating func began(_ peer: Int) { known[peer].removeAll() }

    /// Somebody tells of an address; it is news where the session takes notice of it.
    mutating func found(
        _ peer: Int, _ address: SocketAddress, other: Int?, isProper: Bool, isNews: Bool, _ scene: TransferScene
    ) {
        // Nobody listens at such a port.
        guard address.port != 0 else { return }
        let place = place(peer, address)
        if isProper { known[peer][place].isProper = true }
        known[peer][place].other = other
        if isNews, !known[peer][place].wasCalled, known[peer][place].freshAt == nil {
            known[peer][place].freshAt = scene.peers[peer].local
        }
    }

    /// A connection has ended, or is through its handshakes, so that there is room for another call.
    mutating func makesRoom(_ peer: Int, _ scene: TransferScene) { roomSince[peer] = scene.peers[peer].local }

    /// It has called, or is called.
    mutating func meets(_ peer: Int, _ address: SocketAddress) {
        let place = place(peer, address)
        known[peer][place].wasCalled = true
        known[peer][place].freshAt = nil
    }

    /// Whoever can be called is called; `knownCount` is how many its session knows of.
    func look(_ peer: Int, knownCount: Int, at now: Instant, _ scene: inout TransferScene) {
        guard knownCount < Self.maxKnownCount, hasRoom(peer, scene), let fresh = fresh(peer, scene) else { return }
        scene.violate(
            .nothingWaits, at: now, "\(TransferScene.name(peer)) knows of \(fresh.address), and does not call it")
    }

    private func fresh(_ peer: Int, _ scene: TransferScene) -> Known? {
        let local = scene.peers[peer].local
        return known[peer].first { entry in
            entry.freshAt.map { local - $0 > Self.lateness } ?? false && isFree(entry, peer, scene)
        }
    }

    /// Whether somebody who is new might be called, if there were room.
    func isAnybodyFresh(_ peer: Int, _ scene: TransferScene) -> Bool { fresh(peer, scene) != nil }

    /// Whether there has been room for a call for a while.
    func hasRoom(_ peer: Int, _ scene: TransferScene) -> Bool {
        isAsBefore(peer, roomSince[peer], scene) && mayCall(peer, scene)
    }

    /// Whether nobody was called, and no connection was made or has ended, for a while.
    func isSettled(_ peer: Int, _ scene: TransferScene) -> Bool {
        isAsBefore(peer, max(roomSince[peer], dialledAt[peer]), scene)
    }

    private func isAsBefore(_ peer: Int, _ moment: Instant, _ scene: TransferScene) -> Bool {
        scene.peers[peer].isRunning && scene.peers[peer].local - moment > Self.lateness
    }

    private func isFree(_ entry: Known, _ peer: Int, _ scene: TransferScene) -> Bool {
        guard !scene.peers[peer].isPrivate || entry.isProper, entry.other != peer else { return false }
        if let other = entry.other, scene.peers[peer].banned.contains(other) { return false }
        return !scene.ends(of: peer).contains { scene.ends[$0].other == entry.other }
    }

    private func mayCall(_ peer: Int, _ scene: TransferScene) -> Bool {
        let ends = scene.ends(of: peer)
        let maxLinks = scene.peers[peer].settings.maxLinks
        let called = ends.filter { $0 & 1 == 0 }
        return ends.count < maxLinks && called.count < max(1, maxLinks * 3 / 5)
            && called.filter { !scene.ends[$0].isGreeted }.count < Self.maxCallCount
    }

    mutating func dials(
        _ peer: Int, _ address: SocketAddress, other: Int?, at now: Instant, _ scene: inout TransferScene
    ) {
        let entry = known[peer][place(peer, address)]
        dialledAt[peer] = scene.peers[peer].local
        let ends = scene.ends(of: peer)
        let called = ends.filter { $0 & 1 == 0 }
        // The call itself is among them.
        if called.count > max(1, scene.peers[peer].settings.maxLinks * 3 / 5)
            || called.filter({ !scene.ends[$0].isGreeted }).count > Self.maxCallCount
        {
            scene.violate(
                .buffersAreBounded, at: now, "\(TransferScene.name(peer)) makes \(called.count) calls")
        }
        if address.port == 0 || address.isUnspecified {
            scene.violate(
                .backedOffAreLeftAlone, at: now,
                "\(TransferScene.name(peer)) calls \(address), at which nobody can listen")
        }
        if !scene.peers[peer].settings.exchangesPeers, !entry.isProper {
            scene.violate(
                .extensionsAreKept, at: now,
                "\(TransferScene.name(peer)) calls \(address), of which only peers have told, and is to exchange none")
        }
        if entry.isOurselves {
            scene.violate(
                .backedOffAreLeftAlone, at: now, "\(TransferScene.name(peer)) calls itself, which it has found out")
        }
        if entry.failures > 0 {
            if let better = known[peer].first(where: { other in
                other.freshAt.map { $0 < scene.peers[peer].local } ?? false && isFree(other, peer, scene)
            }), scene.peers[peer].openCount < 10 {
                scene.violate(
                    .backedOffAreLeftAlone, at: now,
                    "\(TransferScene.name(peer)) calls \(address), which has failed, before \(better.address)")
            }
            let wait = min(Self.firstWait * (1 << Int64(min(entry.failures, 8))), Self.longestWait)
            if now - entry.failedAt < wait {
                scene.violate(
                    .backedOffAreLeftAlone, at: now,
                    "\(TransferScene.name(peer)) calls \(address) \((now - entry.failedAt).wholeMilliseconds) ms after "
                        + "\(entry.failures) failures")
            }
        }
        if let other, scene.peers[peer].banned.contains(other) {
            scene.violate(
                .bannedAreLeftAlone, at: now,
                "\(TransferScene.name(peer)) calls \(TransferScene.name(other)), which it banned")
        }
        if scene.peers[peer].isPrivate, !entry.isProper {
            scene.violate(
                .privateStaysPrivate, at: now,
                "\(TransferScene.name(peer)) calls \(address), of which no tracker has told")
        }
    }

    mutating func isOurselves(_ peer: Int, _ address: SocketAddress) {
        known[peer][place(peer, address)].isOurselves = true
    }

    /// A call has come to nothing.
    mutating func failed(_ peer: Int, _ address: SocketAddress, at now: Instant) {
        let place = place(peer, address)
        known[peer][place].failures += 1
        known[peer][place].failedAt = now
    }

    /// It has answered: both handshakes are through, or it says on a connection that stands where it listens.
    ///
    /// Whoever has called is known by its address only then: a call to it that came to nothing in between was a second
    /// one to somebody who was there, and the row of failures ends with its answer as it does with a handshake.
    mutating func succeeded(_ peer: Int, _ address: SocketAddress) { known[peer][place(peer, address)].failures = 0 }
}
