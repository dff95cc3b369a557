// When somebody is called again.

import PeerLogic
import Primitives
import Wire

/// When somebody is called again: not before its time, and not later where there is room for another connection.
///
/// Who could not be reached or was of no use is called after 30 seconds, and after twice as long each time, until it
/// answers; who was of use, or was left for no fault of its own, after 30 seconds.
///
/// Who has all pieces does not call who has all of them, too. And nobody is called with whom there is a connection.
///
/// A connection stands for an address that was called, or that whoever has called says it listens at, unless another
/// connection stands for that address already.
struct Recalls: Sendable {
    /// How a connection has ended.
    private enum Ending: Sendable {
        /// It was of use, or it has ended for no fault of the other side.
        case left
        case failed
        /// All that is known of the other side is forgotten.
        case forgotten
    }

    /// What one peer knows of an address.
    private struct Known: Sendable {
        let address: SocketAddress
        let other: Int
        var failures = 0
        /// Before it answered on the connection that stands for it now.
        var earlierFailures = 0
        var nextTry = Instant(nanoseconds: 0)
        /// The connection that stands for it; -1 for none.
        var end = -1
        /// It had all pieces when it was left; or it may have had.
        var isSeed = false
        var mayBeSeed = false
    }

    private static let firstWait = Duration.seconds(15)
    private static let longestWait = Duration.seconds(3_600)
    private static let politeWait = Duration.seconds(30)
    private static let lateness = Duration.milliseconds(1_300)
    /// A session that knows of more forgets some of them (docs/bounds.md).
    private static let maxKnownCount = 700

    /// By peer.
    private var known: [[Known]]
    private var mayForget: [Bool]

    init(peerCount: Int) {
        known = Array(repeating: [], count: peerCount)
        mayForget = Array(repeating: false, count: peerCount)
    }

    /// A life begins: nothing is known.
    mutating func began(_ peer: Int) {
        known[peer].removeAll()
        mayForget[peer] = false
    }

    private func place(_ peer: Int, _ address: SocketAddress) -> Int? {
        known[peer].firstIndex { $0.address == address }
    }

    private func isWhole(_ peer: Int, _ scene: TransferScene) -> Bool {
        scene.peers[peer].hasMetadata && scene.peers[peer].disk.isFull
    }

    // MARK: - Called

    mutating func dials(
        _ end: Int, _ peer: Int, _ address: SocketAddress, at now: Instant, _ scene: inout TransferScene
    ) {
        let place: Int
        if let found = self.place(peer, address) {
            place = found
            judge(end, known[peer][found], at: now, &scene)
        } else {
            place = known[peer].count
            known[peer].append(Known(address: address, other: scene.ends[end].other))
        }
        known[peer][place].end = end
        let isConnected = scene.ends(of: peer).contains {
            $0 != end && scene.ends[$0].isGreeted && scene.ends[$0].listens == address
        }
        if isConnected { blame(peer, "calls \(address), with which it is connected", at: now, &scene) }
    }

    private func judge(_ end: Int, _ entry: Known, at now: Instant, _ scene: inout TransferScene) {
        let peer = scene.ends[end].peer
        let early = entry.nextTry - scene.peers[peer].local
        if early > .zero, !mayForget[peer] {
            blame(
                peer, "calls \(entry.address) \(early.wholeMilliseconds) ms too soon, after \(entry.failures) failures",
                at: now, &scene)
        }
        if entry.isSeed, !entry.mayBeSeed, !mayForget[peer], isWhole(peer, scene) {
            blame(peer, "has all pieces, and calls \(entry.address), which has them, too", at: now, &scene)
        }
    }

    /// Both handshakes are through.
    mutating func greeted(_ end: Int, _ scene: TransferScene) {
        let peer = scene.ends[end].peer
        guard let place = known[peer].firstIndex(where: { $0.end == end }) else { return }
        known[peer][place].earlierFailures = known[peer][place].failures
        known[peer][place].failures = 0
    }

    /// Who has called says where it listens.
    mutating func listens(_ end: Int, at address: SocketAddress, _ scene: TransferScene) {
        let peer = scene.ends[end].peer
        var entry = Known(address: address, other: scene.ends[end].other)
        entry.end = end
        if let place = place(peer, address) {
            if known[peer][place].end < 0 { known[peer][place] = entry }
        } else {
            known[peer].append(entry)
        }
    }

    // MARK: - Ended

    /// A connection is about to end.
    private mutating func ends(_ end: Int, _ ending: Ending, _ scene: TransferScene) {
        let record = scene.ends[end]
        let peer = record.peer
        guard let place = known[peer].firstIndex(where: { $0.end == end }) else { return }
        known[peer][place].end = -1
        switch ending {
        case .left:
            known[peer][place].nextTry = scene.peers[peer].local + Self.politeWait
            known[peer][place].isSeed = scene.peers[peer].hasMetadata && record.isGreeted && record.has.isFull
            known[peer][place].mayBeSeed = record.isHasUncertain || !record.isAmongHonest
        case .failed:
            known[peer][place].failures = min(known[peer][place].failures + 1, 20)
            let wait = Self.firstWait * (1 << Int64(min(known[peer][place].failures, 8)))
            known[peer][place].nextTry = scene.peers[peer].local + min(wait, Self.longestWait)
        case .forgotten:
            known[peer].remove(at: place)
            return
        }
        // Another connection with whoever listens there stands for it from now on.
        let other = scene.ends(of: peer).first {
            $0 != end && scene.ends[$0].isGreeted && scene.ends[$0].listens == known[peer][place].address
        }
        guard let other else { return }
        known[peer][place] = Known(address: known[peer][place].address, other: record.other)
        known[peer][place].end = other
    }

    /// A session closes a connection; `isGreeted` says that its handshakes are through in this very step.
    mutating func closes(_ end: Int, _ reason: CloseReason, isGreeted: Bool, _ scene: TransferScene) {
        let peer = scene.ends[end].peer
        switch reason {
        case .duplicate:
            // One that is closed as soon as it stands is no answer.
            if isGreeted, let place = known[peer].firstIndex(where: { $0.end == end }) {
                known[peer][place].failures = known[peer][place].earlierFailures
            }
            ends(end, .left, scene)
        case .ended, .bothComplete, .full: ends(end, .left, scene)
        case .idle: ends(end, isOfUse(end, scene) ? .left : .failed, scene)
        case .stalled, .handshakeTimedOut, .otherTorrent, .breach: ends(end, .failed, scene)
        case .banned, .ourselves: ends(end, .forgotten, scene)
        }
    }

    /// An owner tells its session that a connection is over.
    mutating func isOver(_ end: Int, _ how: LinkEnd, _ scene: TransferScene) {
        ends(end, how == .closed && isOfUse(end, scene) ? .left : .failed, scene)
    }

    private func isOfUse(_ end: Int, _ scene: TransferScene) -> Bool {
        scene.ends[end].down.total > 0 || scene.ends[end].up.total > 0
    }

    // MARK: - The time has come

    /// The address that should have been called by now; nil for none.
    ///
    /// `hasRoom` says that there has been room for a call for a while.
    mutating func look(
        _ peer: Int, knownCount: Int, hasRoom: Bool, at now: Instant, _ scene: inout TransferScene
    ) {
        if knownCount > Self.maxKnownCount { mayForget[peer] = true }
        guard hasRoom, let entry = due(peer, scene) else { return }
        let late = (scene.peers[peer].local - entry.nextTry).wholeMilliseconds
        scene.violate(
            .nothingWaits, at: now,
            "\(TransferScene.name(peer)) could have called \(entry.address) again \(late) ms ago, "
                + "after \(entry.failures) failures")
    }

    /// Whether somebody might be called, if there were room.
    func isAnybodyDue(_ peer: Int, _ scene: TransferScene) -> Bool { due(peer, scene) != nil }

    private func due(_ peer: Int, _ scene: TransferScene) -> Known? {
        guard scene.peers[peer].isRunning, !mayForget[peer] else { return nil }
        let isWhole = isWhole(peer, scene)
        return known[peer].first { entry in
            guard entry.end < 0, scene.peers[peer].local - entry.nextTry > Self.lateness,
                !(isWhole && (entry.isSeed || entry.mayBeSeed))
            else { return false }
            guard entry.other >= 0 else { return true }
            return !scene.peers[peer].banned.contains(entry.other)
                && !scene.ends(of: peer).contains { scene.ends[$0].other == entry.other }
        }
    }

    private func blame(_ peer: Int, _ what: String, at now: Instant, _ scene: inout TransferScene) {
        scene.violate(.backedOffAreLeftAlone, at: now, "\(TransferScene.name(peer)) \(what)")
    }
}
