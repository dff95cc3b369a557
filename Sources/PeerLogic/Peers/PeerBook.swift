// The peers of a swarm that we know of, and when each may be tried.

import Primitives

/// The peers of a swarm that we know of: where they listen, how it went with them, and when each may be tried again.
///
/// A peer that could not be reached, or was silent, is left alone for 15 · 2ⁿ seconds, n counting its failures in a row
/// (an exponential back-off); no tracker is ever told of it. Peers that have sent corrupt bytes are banned for the
/// session's life.
struct PeerBook: Sendable, Equatable {
    /// More are not remembered: a tracker's answer has at most 200, and a hundred connections need no more.
    static let maxCount = 1_000
    static let firstWait = Duration.seconds(15)
    static let longestWait = Duration.seconds(3_600)
    /// A peer that was left in good order is not called again at once.
    static let politeWait = Duration.seconds(30)

    struct Entry: Sendable, Equatable {
        /// Names the entry for as long as the session lives.
        var id: UInt32
        /// Where the peer listens; nil for one that has called, as long as it has not said where.
        var address: SocketAddress?
        /// From where it has called, or where it was called.
        var host: SocketAddress
        var source: PeerSource
        var failures = 0
        var nextTry: Instant
        var isLinked = false
        var isBanned = false
        /// It had all pieces when last seen.
        var isSeed = false
    }

    private(set) var entries: [Entry] = []
    private(set) var nextID: UInt32 = 1
    /// Ourselves, as we have found out by calling.
    private var own: [SocketAddress] = []

    func entry(_ id: UInt32) -> Entry? { entries.first { $0.id == id } }

    private func index(_ id: UInt32) -> Int? { entries.firstIndex { $0.id == id } }

    /// Remembers where a peer listens; false where it is known, banned, ourselves, or no address to call.
    mutating func found(_ address: SocketAddress, _ source: PeerSource, now: Instant) -> Bool {
        guard address.port != 0, !address.isUnspecified, !own.contains(address), !isBanned(address) else {
            return false
        }
        if let known = entries.firstIndex(where: { $0.address == address }) {
            // A person knows better than our patience does.
            if source == .person { entries[known].nextTry = min(entries[known].nextTry, now) }
            return false
        }
        guard makeRoom() else { return false }
        entries.append(Entry(id: nextID, address: address, host: address, source: source, nextTry: now))
        nextID += 1
        return true
    }

    /// A peer has called: its entry.
    mutating func called(from address: SocketAddress, now: Instant, evenBanned: Bool = false) -> UInt32? {
        guard evenBanned || !isBanned(address), makeRoom() else { return nil }
        var entry = Entry(id: nextID, address: nil, host: address, source: .incoming, nextTry: now)
        entry.isLinked = true
        entries.append(entry)
        nextID += 1
        return entry.id
    }

    /// The worst entry gives way: one that has called and left, or the one that failed most.
    private mutating func makeRoom() -> Bool {
        guard entries.count >= Self.maxCount else { return true }
        var worst: Int?
        for index in entries.indices where !entries[index].isLinked && !entries[index].isBanned {
            guard let known = worst else {
                worst = index
                continue
            }
            if entries[index].failures > entries[known].failures { worst = index }
        }
        guard let worst, entries[worst].failures > 0 || entries[worst].address == nil else { return false }
        entries.remove(at: worst)
        return true
    }

    /// Whether nobody at this address is to be spoken to.
    ///
    /// A host is banned with all its ports, but for loopback addresses, which many share.
    func isBanned(_ address: SocketAddress) -> Bool {
        entries.contains { entry in
            guard entry.isBanned else { return false }
            if entry.host.isLoopback { return entry.host == address || entry.address == address }
            return entry.host.high == address.high && entry.host.low == address.low
        }
    }

    /// The next peer to be called: with the fewest failures, then the one that has waited longest.
    ///
    /// Without seeds: who has all pieces is not called by one of its kind, as neither has anything for the other.
    mutating func next(now: Instant, withoutSeeds: Bool) -> Entry? {
        var best: Int?
        for index in entries.indices {
            let entry = entries[index]
            guard entry.address != nil, !entry.isLinked, !entry.isBanned, entry.nextTry <= now,
                !(withoutSeeds && entry.isSeed)
            else { continue }
            guard let known = best else {
                best = index
                continue
            }
            let other = entries[known]
            if (entry.failures, entry.nextTry) < (other.failures, other.nextTry) { best = index }
        }
        guard let best else { return nil }
        entries[best].isLinked = true
        return entries[best]
    }

    /// When the next peer may be called; nil where there is none.
    var nextTry: Instant? {
        var result: Instant?
        for entry in entries where entry.address != nil && !entry.isLinked && !entry.isBanned {
            result = earliest(result, entry.nextTry)
        }
        return result
    }

    /// A connection has ended that was never of use: the peer is left alone for longer each time.
    mutating func failed(_ id: UInt32, now: Instant, isConstant: Bool = false) {
        guard let index = index(id) else { return }
        entries[index].isLinked = false
        guard entries[index].address != nil else { return drop(index) }
        entries[index].failures = min(entries[index].failures + 1, 20)
        let wait = Self.firstWait * (1 << Int64(isConstant ? 1 : min(entries[index].failures, 8)))
        entries[index].nextTry = now + min(wait, Self.longestWait)
    }

    /// A connection has ended that was of use, or for no fault of the peer.
    mutating func left(_ id: UInt32, isSeed: Bool, now: Instant) {
        guard let index = index(id) else { return }
        entries[index].isLinked = false
        entries[index].isSeed = isSeed
        guard entries[index].address != nil else { return drop(index) }
        entries[index].nextTry = now + Self.politeWait
    }

    private mutating func drop(_ index: Int) {
        if !entries[index].isBanned { entries.remove(at: index) }
    }

    /// It answers.
    mutating func succeeded(_ id: UInt32) {
        guard let index = index(id) else { return }
        entries[index].failures = 0
    }

    /// Somebody who has called says where it listens: another entry of that address is given up for this one, where
    /// nobody is connected by it, and it is not banned.
    mutating func listens(_ id: UInt32, at address: SocketAddress) {
        guard let index = index(id), entries[index].address == nil else { return }
        if let other = entries.firstIndex(where: { $0.address == address }) {
            guard !entries[other].isLinked, !entries[other].isBanned, other != index else { return }
            entries[index].address = address
            entries.remove(at: other)
        } else {
            entries[index].address = address
        }
    }

    /// It was ourselves.
    mutating func wasOurselves(_ id: UInt32) {
        guard let index = index(id) else { return }
        if let address = entries[index].address, own.count < 16 { own.append(address) }
        entries.remove(at: index)
    }

    /// As `ban`, of one entry alone: a mistake that may be planted.
    mutating func banAlone(_ id: UInt32) {
        guard let index = index(id) else { return }
        entries[index].isBanned = true
        entries[index].isLinked = false
    }

    mutating func ban(_ id: UInt32) {
        guard let index = index(id) else { return }
        entries[index].isBanned = true
        entries[index].isLinked = false
        // It may be known by another address of its host, too: as one that has called, and as one that listens.
        for other in entries.indices where !entries[other].isBanned && isBanned(entries[other].host) {
            entries[other].isBanned = true
        }
    }
}
