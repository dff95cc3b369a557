// One page out of a long list: the lines after a cursor, in an order, without sorting all of it.

import Primitives
import TrackerLogic
import Web
import Wire

/// The least of all that are offered, in an order, a bounded number of them.
///
/// Most of a long list is turned down by one comparison: O(n + k log k) expected.
struct LeastElements<Element> {
    private(set) var elements: [Element] = []
    /// How many were offered.
    private(set) var offered = 0
    private let limit: Int
    private let precedes: (Element, Element) -> Bool

    init(atMost limit: Int, by precedes: @escaping (Element, Element) -> Bool) {
        self.limit = limit
        self.precedes = precedes
    }

    mutating func offer(_ element: Element) {
        offered += 1
        if elements.count == limit {
            guard let last = elements.last, precedes(element, last) else { return }
            elements.removeLast()
        }
        var (low, high) = (0, elements.count)
        while low < high {
            let middle = (low + high) / 2
            if precedes(element, elements[middle]) { high = middle } else { low = middle + 1 }
        }
        elements.insert(element, at: low)
    }
}

/// Makes a page of swarms.
package struct SwarmPageMaker {
    /// What a line is sorted by: text or a number, then its info hash.
    private struct Key {
        var number: UInt64 = 0
        var name = ""
        var hash: (UInt64, UInt64, UInt32)
    }

    private struct Line {
        var key: Key
        var summary: SwarmSummary
        var registered: RegisteredTorrent?
    }

    private let query: SwarmQuery
    private let torrents: [InfoHash: RegisteredTorrent]
    private let files: [InfoHash: AccountOrigin]
    private let text: String
    /// Digits of an info hash that are searched for; nil where the text is none.
    private let prefix: [UInt8]?

    package init(
        _ query: SwarmQuery, _ torrents: [InfoHash: RegisteredTorrent], files: [InfoHash: AccountOrigin] = [:]
    ) {
        self.query = query
        self.files = files
        self.torrents = torrents
        text = query.text.lowercased()
        let isHexadecimal = text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
        prefix = isHexadecimal && !text.isEmpty && text.utf8.count <= 40 ? Array(text.utf8) : nil
    }

    package func page(of swarms: [SwarmSummary], asOf: WallTime) -> SwarmsPage {
        let isDescending = query.isDescending
        // Strictly, either way: the line of a cursor does not come after itself.
        func precedes(_ one: Key, _ other: Key) -> Bool {
            let (left, right) = isDescending ? (other, one) : (one, other)
            if left.number != right.number { return left.number < right.number }
            if left.name != right.name { return left.name < right.name }
            return left.hash < right.hash
        }
        let after = query.after.map { Key(number: $0.number, name: $0.name, hash: Self.order($0.infoHash)) }
        // One more than the page has tells whether there is another.
        var least = LeastElements<Line>(atMost: query.count + 1) { precedes($0.key, $1.key) }
        var total = 0
        // Number and first bytes of the last line that has a place, once all are taken: of a long list most lines come
        // behind it, and need no further look.
        var worst: (UInt64, UInt64)?
        func consider(_ summary: SwarmSummary, _ torrent: RegisteredTorrent?) {
            guard matches(summary.infoHash, torrent) else { return }
            total += 1
            if let worst {
                let own = (number(summary, torrent), Self.order(summary.infoHash).0)
                if isDescending ? own < worst : own > worst { return }
            }
            let key = key(summary, torrent)
            if let after, !precedes(after, key) { return }
            least.offer(Line(key: key, summary: summary, registered: torrent))
            if query.order != .name, least.elements.count > query.count, let last = least.elements.last {
                worst = (last.key.number, last.key.hash.0)
            }
        }
        if query.isRegisteredOnly {
            var counts: [InfoHash: SwarmCounts] = [:]
            for swarm in swarms where torrents[swarm.infoHash] != nil { counts[swarm.infoHash] = swarm.counts }
            for torrent in torrents.values {
                let summary = SwarmSummary(
                    infoHash: torrent.infoHash, counts: counts[torrent.infoHash] ?? SwarmCounts())
                consider(summary, torrent)
            }
        } else {
            let needsNames = query.order == .name || query.order == .size || !text.isEmpty
            for swarm in swarms { consider(swarm, needsNames ? torrents[swarm.infoHash] : nil) }
        }
        let lines = least.elements.prefix(query.count)
        var next: SwarmQuery.Cursor?
        if least.elements.count > query.count, let last = lines.last {
            next = SwarmQuery.Cursor(
                number: last.key.number, name: last.key.name, infoHash: last.summary.infoHash)
        }
        return SwarmsPage(
            rows: lines.map {
                SwarmRow(
                    infoHash: $0.summary.infoHash, counts: $0.summary.counts,
                    registered: $0.registered ?? torrents[$0.summary.infoHash],
                    file: files[$0.summary.infoHash])
            }, next: next, total: total, asOf: asOf)
    }

    private func key(_ summary: SwarmSummary, _ torrent: RegisteredTorrent?) -> Key {
        Key(
            number: number(summary, torrent), name: query.order == .name ? torrent?.name ?? "" : "",
            hash: Self.order(summary.infoHash))
    }

    private func number(_ summary: SwarmSummary, _ torrent: RegisteredTorrent?) -> UInt64 {
        switch query.order {
        case .hash: 0
        // Those without a name come last, one way and the other.
        case .name: (torrent == nil) != query.isDescending ? 1 : 0
        case .size: torrent.map { $0.byteCount &+ 1 } ?? 0
        case .seeders: UInt64(summary.counts.seeders)
        case .leechers: UInt64(summary.counts.leechers)
        case .completed: UInt64(summary.counts.completed)
        }
    }

    private func matches(_ infoHash: InfoHash, _ torrent: RegisteredTorrent?) -> Bool {
        if text.isEmpty { return true }
        if let prefix, Self.begins(infoHash, with: prefix) { return true }
        return torrent.map { $0.name.lowercased().contains(text) } ?? false
    }

    private static func begins(_ infoHash: InfoHash, with digits: [UInt8]) -> Bool {
        for (place, digit) in digits.enumerated() {
            let byte = infoHash.bytes[place / 2]
            let nibble = place.isMultiple(of: 2) ? byte >> 4 : byte & 15
            guard digit == (nibble < 10 ? 48 + nibble : 87 + nibble) else { return false }
        }
        return true
    }

    /// The bytes as numbers, the first the greatest.
    private static func order(_ infoHash: InfoHash) -> (UInt64, UInt64, UInt32) {
        withUnsafeBytes(of: infoHash.bytes) { bytes in
            (
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self))
            )
        }
    }
}

/// Makes a page of a swarm's peers.
package struct PeerPageMaker {
    private let query: PeerQuery

    package init(_ query: PeerQuery) { self.query = query }

    package func page(of peers: [PeerImage], total: Int, asOf: WallTime) -> PeersPage {
        let isDescending = query.isDescending
        func precedes(_ one: PeerQuery.Cursor, _ other: PeerQuery.Cursor) -> Bool {
            let (left, right) = isDescending ? (other, one) : (one, other)
            if left.number != right.number { return left.number < right.number }
            let (here, there) = (left.address, right.address)
            return (here.high, here.low, here.port) < (there.high, there.low, there.port)
        }
        var least = LeastElements<PeerImage>(atMost: query.count + 1) { precedes(cursor($0), cursor($1)) }
        // Slices of a swarm that changes meanwhile may show a peer twice.
        var seen: Set<SocketAddress> = []
        for peer in peers where seen.insert(peer.address).inserted {
            if let after = query.after, !precedes(after, cursor(peer)) { continue }
            least.offer(peer)
        }
        let page = least.elements.prefix(query.count)
        let next = least.elements.count > query.count ? page.last.map(cursor) : nil
        return PeersPage(peers: Array(page), next: next, total: total, asOf: asOf)
    }

    private func cursor(_ peer: PeerImage) -> PeerQuery.Cursor {
        let number: UInt64 =
            switch query.order {
            case .address: 0
            case .downloaded: peer.downloaded
            case .left: peer.left
            case .seen: UInt64(peer.lastSeen)
            }
        return PeerQuery.Cursor(number: number, address: peer.address)
    }
}
