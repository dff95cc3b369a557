// Who is called.

import PeerLogic
import Primitives
import Wire

/// Who is called: nobody whose back-off is not over, nobody who is banned, and of a private torrent nobody of whom
/// other peers have told.
struct Calls: Sendable {
    /// What one peer knows of an address.
    private struct Known: Sendable {
        var peer: Int
        var address: SocketAddress
        var failures = 0
        var failedAt = Instant(nanoseconds: 0)
        /// Whether a tracker, a person or the peer itself has told of it.
        var isProper = false
    }

    /// "The peer is left alone for 15 · 2ⁿ seconds": of clocks that differ by a thousandth at most.
    private static let firstWait = Duration.milliseconds(14_900)
    private static let longestWait = Duration.milliseconds(3_590_000)

    /// By peer.
    private var known: [[Known]]

    init(peerCount: Int) { known = Array(repeating: [], count: peerCount) }

    private mutating func place(_ peer: Int, _ address: SocketAddress) -> Int {
        if let place = known[peer].firstIndex(where: { $0.address == address }) { return place }
        known[peer].append(Known(peer: peer, address: address))
        return known[peer].count - 1
    }

    /// A life begins: nothing is known.
    mutating func began(_ peer: Int) { known[peer].removeAll() }

    mutating func found(_ peer: Int, _ address: SocketAddress, isProper: Bool) {
        let place = place(peer, address)
        if isProper { known[peer][place].isProper = true }
    }

    mutating func dials(
        _ peer: Int, _ address: SocketAddress, other: Int?, at now: Instant, _ scene: inout TransferScene
    ) {
        let entry = known[peer][place(peer, address)]
        if entry.failures > 0 {
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
