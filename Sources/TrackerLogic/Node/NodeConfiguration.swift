// What an operator may choose about a node's logic.

import Primitives

/// What an operator may choose about a node's logic, with the defaults, and the bounds that he may move.
public struct NodeConfiguration: Sendable, Equatable {
    /// This tracker's number, unique among the active ones; at least 1, or 0 to be given one by the master (survivor
    /// mode).
    public var id: UInt32 = 1
    /// How it acts with others; a tracker without a bus is a cluster of one.
    public var cluster = ClusterConfiguration.alone
    /// How often clients are asked to announce, in seconds, when the tracker is not busy.
    public var interval: UInt32 = 1800
    /// How often at most they may, in seconds.
    public var minInterval: UInt32 = 900
    /// Each client's interval is moved by up to this many seconds either way, so that they spread out.
    public var intervalJitter: UInt32 = 60
    /// Announces a second that the tracker wants to see at most; with more peers than that allows, the interval
    /// stretches, up to four times.
    public var targetRate: UInt32 = 100_000
    /// How long a silent peer is believed to be there, in per cent of the longest interval that it may have been told.
    public var peerLifetime: UInt32 = 120
    /// Peers in a reply to a client that names no number.
    public var numWant: Int = 50
    /// Peers in a reply at most: 200 over IPv4; over IPv6 never more than fit 1,400 bytes.
    public var maxNumWant: Int = 200
    /// Bounds on what strangers can make the tracker hold.
    public var limits = Limits()
    /// Senders whose word on the address of a peer is taken (BEP 15's `ip` field, HTTP's `ip` and
    /// `X-Forwarded-For`): reverse proxies and test rigs.
    public var trusted: [AddressPrefix] = []
    /// Whether an orderly stop keeps the swarms.
    public var keepsSwarms = false
    /// Into how many shards the swarm table is cut: a power of two.
    ///
    /// Fixed for the life of a record.
    public var shardCount: UInt32 = 1024
    /// A snapshot is begun at the latest this long after the last, if anything has changed.
    public var snapshotAge = Duration.seconds(600)
    /// A snapshot is begun when the log has grown by this many bytes, or by as many as the last snapshot wrote.
    public var snapshotLogByteCount = 32 << 20

    /// Seconds of the cluster's time after which an upload that has had no further part is forgotten.
    public var uploadPatience: UInt32 = 60

    /// Entries that are kept in memory for trackers that lag behind; who lags further fetches the state.
    public var tailCount = 4096

    #if PLANTED_BUGS
        /// A mistake in the logic that is to be found.
        public var plantedBug: PlantedBug?
    #endif

    /// The defaults of a tracker without a bus.
    public init() {}

    /// Whether a merge with another repository may come, for which something has to be remembered.
    var keepsMergeData: Bool { cluster.hasBus && cluster.mode == .survivor }
}

/// Bounds on all that a stranger can grow.
public struct Limits: Sendable, Equatable {
    /// Torrents with peers or counts at once; further info hashes are refused.
    ///
    /// About 110 bytes each.
    public var torrents: Int = 4_000_000
    /// Peers of all swarms at once; further ones are refused.
    ///
    /// Some 60 bytes each, up to 122 over IPv6 in a table that has just grown, and 15 to 19 for each address
    /// (`AddressCounts`).
    public var peers: Int = 16_000_000
    /// Peers of all swarms at one IPv4 address, or in one IPv6 network of 64 bits; further ones are refused.
    ///
    /// A carrier's NAT has some thousand people behind an address, with some torrents each. An announce is held against
    /// what is applied, so what is on its way passes the bound, by two entries at most.
    public var peersPerAddress: Int = 20_000
    /// Peers of one swarm; further ones are refused.
    ///
    /// A swarm lies in one shard, and a shard goes to a newcomer in one message, and to the disk in one row: so many
    /// are 236 MB, of the 512 MiB that a message may have.
    public var peersPerSwarm: Int = 4_000_000
    /// Of the room for peers that is left, the part that one address may hold, in percent.
    ///
    /// With n addresses that take all they can get, a part of 1 / (1 + n · percent / 100) of the table stays free for
    /// all others: the dynamic threshold by which switches share a buffer (Choudhury and Hahne, 1998).
    public var addressSharePercent: Int = 10
    /// Error replies to one address in a second; further errors are silence, so that forged sources gain nothing.
    public var errorsPerSecond: Int = 10
    /// Updates in one entry: bounds the requests that wait, the work of one step and the size of one write (some 64
    /// bytes each, 76 over IPv6).
    ///
    /// More wait in the kernel's buffers; what comes past them is dropped, and UDP clients try again.
    public var updatesPerEntry: Int = 8_192
    /// Requests that a tracker of a cluster keeps until they are answered (some 350 bytes
    /// each; up to 2.3 KB, with all that a datagram may have behind its request).
    ///
    /// While there is no master, all that come meanwhile: two or three seconds' worth.
    public var waitingRequests: Int = 65_536
    /// Torrents in the registry.
    public var registeredTorrents: Int = 1_000_000
    /// Info hashes on the access list.
    public var listedInfoHashes: Int = 4_000_000
    /// Users of a private tracker.
    public var users: Int = 1_000_000
    /// Bytes of a torrent file that somebody uploads; no tracker takes one of more than `UploadPart.maxFileByteCount`.
    ///
    /// That of a film has some 100 KiB, of a collection with 100,000 files some MiB.
    public var torrentFileByteCount: Int = 8 << 20
    /// Bytes of all torrent files that were uploaded: they are kept in memory, too.
    public var torrentFilesByteCount: Int = 512 << 20
    /// Torrent files that were uploaded; some 200 bytes each, beside their own.
    public var torrentFiles: Int = 100_000
    /// Uploads of torrent files under way at once, of all people.
    public var uploads: Int = 8
    /// However full the table is, so many peers of one address are let in while there is room.
    public static let leastPeersPerAddress = 16

    /// How many peers one address may hold just now.
    ///
    /// - Parameter peers: of all addresses.
    /// - Returns: at least `leastPeersPerAddress`, at most `peersPerAddress`.
    public func peersPerAddress(among peers: Int) -> Int {
        let room = max(0, self.peers - peers)
        // Without overflow, whatever the operator has written.
        let share = room / 100 * addressSharePercent + room % 100 * addressSharePercent / 100
        return min(peersPerAddress, max(Limits.leastPeersPerAddress, share))
    }

    /// Info hashes in one scrape: what fits a datagram (BEP 15).
    public static let scrapeHashes = 74
    /// Operators' commands that wait for their turn.
    public static let waitingCommands = 64
    /// Bytes of a registered torrent's or a user's name.
    public static let maxNameByteCount = 512

    /// The bounds that a tracker has unless its operator says otherwise.
    public init() {}
}

/// A block of addresses: `192.0.2.0/24`, `2001:db8::/32`.
public struct AddressPrefix: Sendable, Hashable {
    /// The first address of the block; its port means nothing.
    public var address: SocketAddress
    /// Leading bits that count, of the 128 of the address; IPv4 prefixes have 96 more than written.
    public var bits: Int

    /// Takes the fields as they are.
    init(_ address: SocketAddress, bits: Int) { (self.address, self.bits) = (address, bits) }

    /// Reads `192.0.2.0/24`, `2001:db8::/32`, or a single address.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let address = SocketAddress(host: parts[0], port: 0) else { return nil }
        let width = address.isIPv4 ? 32 : 128
        var bits = width
        if parts.count == 2 {
            guard let given = Int(parts[1]), (0...width).contains(given) else { return nil }
            bits = given
        }
        self.address = address
        self.bits = bits + 128 - width
    }

    /// Whether an address lies in the block, whatever its port and zone.
    public func contains(_ other: SocketAddress) -> Bool {
        func mask(_ count: Int) -> UInt64 { count <= 0 ? 0 : count >= 64 ? .max : .max << UInt64(64 - count) }
        return (address.high ^ other.high) & mask(bits) == 0 && (address.low ^ other.low) & mask(bits - 64) == 0
    }
}
