// Pages of the lists of swarms and of peers: what is asked for, and what comes.

import Primitives
import TrackerLogic
import Wire

/// A line of the list of swarms.
public struct SwarmRow: Sendable, Equatable {
    /// Of the swarm.
    public var infoHash: InfoHash
    /// As applied.
    public var counts: SwarmCounts
    /// Nil where nobody has registered it: then its name is unknown.
    public var registered: RegisteredTorrent?
    /// Where its torrent file comes from; nil where it is not here.
    public var file: AccountOrigin?

    /// Takes the fields as they are.
    public init(infoHash: InfoHash, counts: SwarmCounts, registered: RegisteredTorrent?, file: AccountOrigin? = nil) {
        self.infoHash = infoHash
        self.counts = counts
        self.registered = registered
        self.file = file
    }
}

/// Which swarms are wanted, and in which order.
public struct SwarmQuery: Sendable, Equatable {
    /// By what the list is sorted; ties by info hash.
    public enum Order: String, Sendable, Hashable, CaseIterable {
        case hash
        case name
        case size
        case seeders
        case leechers
        case completed
    }

    /// The last line of the page before.
    public struct Cursor: Sendable, Equatable {
        /// What it was sorted by; a name as text, all else as a number.
        public var number: UInt64
        /// Its name, where the list is sorted by name.
        public var name: String
        /// Of its swarm.
        public var infoHash: InfoHash

        /// Takes the fields as they are.
        public init(number: UInt64 = 0, name: String = "", infoHash: InfoHash) {
            self.number = number
            self.name = name
            self.infoHash = infoHash
        }

        /// As in the API: number, name in hexadecimal, info hash, with dots between.
        public var text: String { "\(number).\(hexadecimal(name.utf8)).\(infoHash)" }

        /// Reads one; nil where it is none.
        public init?(_ text: String) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 3, let number = UInt64(parts[0]), let name = Primitives.bytes(hexadecimal: parts[1]),
                let infoHash = InfoHash(hexadecimal: parts[2])
            else { return nil }
            self.init(number: number, name: String(decoding: name, as: UTF8.self), infoHash: infoHash)
        }
    }

    /// Lines of a page where nobody says how many.
    public static let defaultCount = 50
    /// Lines of a page at most.
    public static let maxCount = 500
    /// Bytes of a text that is searched for.
    public static let maxTextByteCount = 256

    /// Part of a name, or the beginning of an info hash, in either case; empty for all.
    public var text = ""
    /// Only those that are registered, whether they have peers or not.
    public var isRegisteredOnly = false
    /// By what the list is sorted.
    public var order = Order.hash
    /// Whether the greatest come first.
    public var isDescending = false
    /// Nil for the first page.
    public var after: Cursor?
    /// 1…`SwarmQuery.maxCount`.
    public var count = SwarmQuery.defaultCount

    /// All, by info hash.
    public init() {}
}

/// A page of the list of swarms.
public struct SwarmsPage: Sendable, Equatable {
    /// Those of this page.
    public var rows: [SwarmRow]
    /// Where the next page begins; nil where this is the last.
    public var next: SwarmQuery.Cursor?
    /// Swarms that match, on all pages.
    public var total: Int
    /// When they were read.
    public var asOf: WallTime

    /// Takes the fields as they are.
    public init(rows: [SwarmRow], next: SwarmQuery.Cursor?, total: Int, asOf: WallTime) {
        self.rows = rows
        self.next = next
        self.total = total
        self.asOf = asOf
    }
}

/// Which peers of a swarm are wanted, and in which order.
public struct PeerQuery: Sendable, Equatable {
    /// By what the list is sorted; ties by address.
    public enum Order: String, Sendable, Hashable, CaseIterable {
        case address
        case downloaded
        case left
        case seen
    }

    /// By what the list is sorted.
    public var order = Order.address
    /// Whether the greatest come first.
    public var isDescending = false
    /// The last line of the page before: what it was sorted by, and its address.
    public var after: Cursor?
    /// 1…`SwarmQuery.maxCount`.
    public var count = SwarmQuery.defaultCount

    /// The last line of the page before.
    public struct Cursor: Sendable, Equatable {
        /// What it was sorted by; 0 for addresses.
        public var number: UInt64
        /// Its address.
        public var address: SocketAddress

        /// Takes the fields as they are.
        public init(number: UInt64, address: SocketAddress) {
            self.number = number
            self.address = address
        }

        /// As in the API.
        public var text: String {
            "\(number).\(hexadecimal(address.high)).\(hexadecimal(address.low)).\(address.port)"
        }

        /// Reads one; nil where it is none.
        public init?(_ text: String) {
            let parts = text.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 4, let number = UInt64(parts[0]), let high = UInt64(parts[1], radix: 16),
                let low = UInt64(parts[2], radix: 16), let port = UInt16(parts[3])
            else { return nil }
            self.init(number: number, address: SocketAddress(high: high, low: low, port: port))
        }
    }

    /// All, by address.
    public init() {}
}

/// A page of a swarm's peers.
public struct PeersPage: Sendable, Equatable {
    /// Those of this page.
    public var peers: [PeerImage]
    /// Where the next page begins; nil where this is the last.
    public var next: PeerQuery.Cursor?
    /// Peers of the swarm, on all pages.
    public var total: Int
    /// When they were read.
    public var asOf: WallTime

    /// Takes the fields as they are.
    public init(peers: [PeerImage], next: PeerQuery.Cursor?, total: Int, asOf: WallTime) {
        self.peers = peers
        self.next = next
        self.total = total
        self.asOf = asOf
    }
}

struct SwarmsDocument: Encodable {
    struct Swarm: Encodable {
        var infoHash: String
        /// Null where it is unknown.
        var name: String?
        /// Null where it is unknown.
        var byteCount: UInt64?
        var seeders: UInt32
        var leechers: UInt32
        var completed: UInt32
        /// Left out in a list, which has one for all.
        var asOf: String?

        enum CodingKeys: CodingKey { case infoHash, name, byteCount, seeders, leechers, completed, asOf }

        init(_ row: SwarmRow, asOf: WallTime? = nil) {
            infoHash = "\(row.infoHash)"
            name = row.registered?.name
            byteCount = row.registered?.byteCount
            seeders = row.counts.seeders
            leechers = row.counts.leechers
            completed = row.counts.completed
            self.asOf = asOf.map(instantText)
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(infoHash, forKey: .infoHash)
            try container.encode(name, forKey: .name)
            try container.encode(byteCount, forKey: .byteCount)
            try container.encode(seeders, forKey: .seeders)
            try container.encode(leechers, forKey: .leechers)
            try container.encode(completed, forKey: .completed)
            try container.encodeIfPresent(asOf, forKey: .asOf)
        }
    }

    var swarms: [Swarm]
    /// Left out on the last page.
    var next: String?
    var total: Int
    var asOf: String

    init(_ page: SwarmsPage) {
        swarms = page.rows.map { Swarm($0) }
        next = page.next?.text
        total = page.total
        asOf = instantText(page.asOf)
    }
}

struct TorrentsDocument: Encodable {
    struct Torrent: Encodable {
        var infoHash: String
        var name: String
        var byteCount: UInt64
        var seeders: UInt32
        var leechers: UInt32
        var completed: UInt32
        var origin: String
        var hasFile: Bool
    }

    var torrents: [Torrent]
    /// Left out on the last page.
    var next: String?
    var total: Int
    var asOf: String

    init(_ page: SwarmsPage) {
        torrents = page.rows.compactMap { row in
            row.registered.map { registered in
                Torrent(
                    infoHash: "\(row.infoHash)", name: registered.name, byteCount: registered.byteCount,
                    seeders: row.counts.seeders, leechers: row.counts.leechers, completed: row.counts.completed,
                    origin: (row.file ?? .file).word, hasFile: row.file != nil)
            }
        }
        next = page.next?.text
        total = page.total
        asOf = instantText(page.asOf)
    }
}

struct PeersDocument: Encodable {
    struct Peer: Encodable {
        var peerID: String
        /// Left out where it is unknown.
        var client: String?
        var address: String
        var downloaded: UInt64
        var left: UInt64
        var lastSeen: String

        init(_ peer: PeerImage) {
            peerID = "\(peer.peerID)"
            client = ClientName.of(peer.peerID)
            address = "\(peer.address)"
            downloaded = peer.downloaded
            left = peer.left
            lastSeen = instantText(WallTime(milliseconds: Int64(peer.lastSeen) * 1000))
        }
    }

    var peers: [Peer]
    /// Left out on the last page.
    var next: String?
    var total: Int
    var asOf: String

    init(_ page: PeersPage) {
        peers = page.peers.map(Peer.init)
        next = page.next?.text
        total = page.total
        asOf = instantText(page.asOf)
    }
}
