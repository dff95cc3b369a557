// Requests over HTTP, of which nothing is lost on the way.

import Primitives
import TrackerLogic
import Wire

/// A request over HTTP that has not been answered.
struct Visit: Sendable {
    var request: ClientRequest
    var node: Int
    /// The life of the tracker, as the world counts them.
    var life: Int
    var askedAt: Instant
    /// The last entry that was decided then.
    var decidedBefore: UInt64

    /// The info hashes that a scrape asks for, as many as are answered.
    var infoHashes: ArraySlice<InfoHash> {
        if case .scrape(let infoHashes) = request.content { infoHashes.prefix(Limits.scrapeHashes) } else { [] }
    }

    var announce: Announce? { if case .announce(let announce) = request.content { announce } else { nil } }

    /// Whether an update is just what is asked for.
    func asks(for announced: Announced) -> Bool {
        guard let announce else { return false }
        return announce.peerID == announced.peerID && announce.infoHash == announced.infoHash
            && announce.left == announced.left && announce.event == announced.event
            && announce.port == announced.address.port && request.source.low == announced.address.low
            && request.source.high == announced.address.high
    }
}

/// Requests over HTTP, of which nothing is lost on the way: each is answered once, by the tracker that it came to.
struct VisitBook: Sendable {
    /// Oldest first.
    private(set) var open: [Visit] = []

    mutating func add(_ visit: Visit) { open.append(visit) }

    /// An answer is given.
    ///
    /// - Returns: to whom; nil where nobody waits for it there.
    mutating func take(_ id: UInt64, from node: Int) -> Visit? {
        guard let place = open.firstIndex(where: { $0.request.id == id && $0.node == node }) else { return nil }
        return open.remove(at: place)
    }

    /// Those who waited at a tracker whose life is over have lost their connection.
    mutating func hangUp(where isOver: (Visit) -> Bool) { open.removeAll(where: isOver) }
}
