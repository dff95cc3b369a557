// A swarm of more than a few peers.

import Primitives
import Wire

/// A swarm of more than a few peers: endpoints apart from the rest, so that a reply is gathered from a few cache lines,
/// and an index, so that an announce finds its peer in O(1).
struct LargeSwarm<Endpoint: CompactEndpoint>: Sendable {
    /// What a reply does not need.
    struct Details: Sendable {
        var downloaded: UInt64
        var left: UInt64
        var peerID: PeerID
        var lastSeen: UInt32
        var isCounted: Bool
    }

    private(set) var endpoints: [Endpoint] = []
    private(set) var details: [Details] = []
    private var index = SlotIndex()

    var count: Int { endpoints.count }

    private static func hash(_ endpoint: Endpoint, _ key: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: endpoint.hash(key: key) &>> 32)
    }

    func position(of endpoint: Endpoint, key: UInt64) -> Int? {
        index.find(LargeSwarm.hash(endpoint, key)) { endpoints[$0] == endpoint }
    }

    func peer(at position: Int) -> Peer<Endpoint> {
        let rest = details[position]
        return Peer(
            downloaded: rest.downloaded, left: rest.left, peerID: rest.peerID, lastSeen: rest.lastSeen,
            endpoint: endpoints[position], isCounted: rest.isCounted)
    }

    /// Replaces a peer by a later state of itself.
    mutating func update(_ peer: Peer<Endpoint>, at position: Int) {
        details[position] = Details(
            downloaded: peer.downloaded, left: peer.left, peerID: peer.peerID, lastSeen: peer.lastSeen,
            isCounted: peer.isCounted)
    }

    /// Adds a peer behind all others.
    ///
    /// - Parameters:
    ///   - peer: whose endpoint is not yet in the swarm.
    ///   - key: the table's.
    mutating func append(_ peer: Peer<Endpoint>, key: UInt64) {
        let position = endpoints.count
        if position == endpoints.capacity {
            endpoints.reserveCapacity(position + position / 4 + 8)
            details.reserveCapacity(position + position / 4 + 8)
        }
        endpoints.append(peer.endpoint)
        details.append(
            Details(
                downloaded: peer.downloaded, left: peer.left, peerID: peer.peerID, lastSeen: peer.lastSeen,
                isCounted: peer.isCounted))
        index.insert(LargeSwarm.hash(peer.endpoint, key), slot: position)
    }

    mutating func swapAt(_ left: Int, _ right: Int, key: UInt64) {
        guard left != right else { return }
        let leftHash = LargeSwarm.hash(endpoints[left], key)
        let rightHash = LargeSwarm.hash(endpoints[right], key)
        // By way of a slot that no peer has, so that the two are never mistaken for each other. `Int` may have 32 bits.
        let nowhere = Int(Int32.max)
        index.move(leftHash, from: left, to: nowhere)
        index.move(rightHash, from: right, to: left)
        index.move(leftHash, from: nowhere, to: right)
        endpoints.swapAt(left, right)
        details.swapAt(left, right)
    }

    mutating func removeLast(key: UInt64) {
        let last = endpoints.count - 1
        index.remove(LargeSwarm.hash(endpoints[last], key), slot: last)
        endpoints.removeLast()
        details.removeLast()
        if endpoints.capacity > 2 * endpoints.count + 32 { giveBackRoom() }
    }

    /// Keeps as much room as growth would have made, so that a swarm that was filled and emptied leaves none behind.
    private mutating func giveBackRoom() {
        func fitted<Element>(_ old: [Element]) -> [Element] {
            var new: [Element] = []
            new.reserveCapacity(old.count + old.count / 4 + 8)
            new.append(contentsOf: old)
            return new
        }
        endpoints = fitted(endpoints)
        details = fitted(details)
    }

    var byteCount: Int {
        endpoints.capacity * MemoryLayout<Endpoint>.stride + details.capacity * MemoryLayout<Details>.stride
            + index.byteCount
    }
}

extension LargeSwarm where Endpoint: Archived {
    /// Walks over the swarm; `key` is the table's.
    mutating func walk(_ archive: inout Archive, key: UInt64) {
        endpoints.walk(&archive)
        let count = archive.count(details.count)
        if archive.isReading { details = [] }
        for place in 0..<count {
            var details =
                archive.isReading
                ? Details(downloaded: 0, left: 0, peerID: .blank, lastSeen: 0, isCounted: false) : details[place]
            details.downloaded.walk(&archive)
            details.left.walk(&archive)
            details.peerID.walk(&archive)
            details.lastSeen.walk(&archive)
            details.isCounted.walk(&archive)
            if archive.isDamaged { return }
            if archive.isReading { self.details.append(details) }
        }
        guard archive.isReading else { return }
        guard count == endpoints.count else { return archive.refuse() }
        index = SlotIndex()
        for place in endpoints.indices { index.insert(LargeSwarm.hash(endpoints[place], key), slot: place) }
    }
}
