// One connection to another peer, as the session sees it.

import Primitives
import Wire

/// One connection to another peer: who wants what of whom, and how well it goes.
///
///     dialling ── dialled ──► greeting ── handshake ──► ready
///     (one that came in begins as ready: its handshake came with it)
///
/// Each phase can end the link; the slot is then free for another.
struct PeerLink: Sendable, Equatable {
    enum Phase: Sendable, Hashable {
        /// The slot is free. Can transition to: dialling, ready.
        case free
        /// Can transition to: greeting, free.
        case dialling
        /// Our handshake is on its way, theirs is awaited. Can transition to: ready, free.
        case greeting
        /// Can transition to: free.
        case ready
    }

    /// What the peer's extension handshake has said; 0 where it does not have the extension (BEP 10).
    struct Extensions: Sendable, Equatable {
        var metadata: UInt8 = 0
        var exchange: UInt8 = 0
        var dontHave: UInt8 = 0
        var metadataSize = 0
        var client = ""
        var isUploadOnly = false
    }

    var phase = Phase.free
    var generation: UInt16 = 0
    var address = SocketAddress.unspecified
    /// The peer's entry in the book.
    var peer: UInt32 = 0
    var peerID = PeerID.zero
    var capabilities = PeerHandshake.Capabilities()
    var isIncoming = false
    /// Since when it is in its phase.
    var since: Instant

    // What the peer has.
    var has = Bitfield(count: 0)
    /// What it has said of its pieces while we did not know how many there are.
    var early = EarlyPieces()
    /// Pieces that it has, and we want and lack.
    var interestingCount = 0

    // Choke and interest, both ways.
    var weChoke = true
    var peerIsInterested = false
    var peerChokes = true
    var weAreInterested = false
    var unchokedAt: Instant?
    var interestedSince: Instant?
    /// Pieces that the peer gives us though it chokes us (BEP 6).
    var allowedToUs: [UInt32] = []
    /// Pieces that we give it though we choke it.
    var allowedToPeer: [UInt32] = []
    var allowedBlocksLeft = 0

    // Blocks to us.
    var requests = RequestQueue()
    var window = RequestWindow()
    /// The block whose bytes are coming right now.
    var arriving: Block?
    var arrivingSince: Instant
    /// Nothing has come for long though it was asked: its requests are given to others.
    var isSnubbed = false
    var down = RateMeter()
    var unaskedCount = 0

    // Blocks to the peer.
    var uploads = UploadQueue()
    var up = RateMeter()
    /// How many of `gained` the peer has been told.
    var toldCount = 0

    // Extensions.
    var theirs = Extensions()
    var hasExtensionHandshake = false
    var listenAddress: SocketAddress?
    /// Parts of the metadata that it was given.
    var metadataRequestCount = 0
    var toldPeers: [SocketAddress] = []
    var exchangeAt: Instant?
    var exchangedAddressesLeft = TorrentSession.maxExchangedPerMinute

    // Signs of life.
    var heardAt: Instant
    var saidAt: Instant
    var blockAt: Instant

    /// A slot that nobody has yet.
    init(at now: Instant) {
        since = now
        arrivingSince = now
        heardAt = now
        saidAt = now
        blockAt = now
    }

    var isReady: Bool { phase == .ready }
    var hasFast: Bool { capabilities.contains(.fast) }
    var hasExtensions: Bool { capabilities.contains(.extensions) }
    var isSeed: Bool { has.count > 0 && has.isFull }
}

/// What a peer has said of its pieces before the number of pieces was known (BEP 9).
struct EarlyPieces: Sendable, Equatable {
    /// A bitfield of a million pieces; the longest that metadata of 32 MiB can need is about as long.
    static let maxBitfieldByteCount = 1 << 18
    static let maxHaveCount = 4_096

    var bitfield: [UInt8]?
    var hasAll = false
    var haves: [UInt32] = []
    /// Pieces that it has lost (BEP 54), and has not had again.
    var losses: [UInt32] = []
}

/// How many blocks are asked of a peer ahead: as many as come within a second, and one more with each that comes.
///
/// Slow start as in TCP: a window that grows by one with each block doubles each round trip. The ceiling is what comes
/// in a second, so that a slow peer holds few blocks, and not more than the peer says that it keeps (`reqq`, BEP 10).
struct RequestWindow: Sendable, Hashable {
    static let floor = 4
    static let initial = 8
    /// 16 MiB under way: 160 MiB a second over 100 ms.
    static let maximum = 1_000
    /// What those keep who say nothing: libtorrent's and Transmission's default.
    static let defaultQueue = 250

    private(set) var size = initial
    var peerQueue = defaultQueue {
        didSet { size = min(size, max(peerQueue, 1)) }
    }

    mutating func blockArrived(bytesPerSecond rate: Int) {
        let ceiling = min(peerQueue, Self.maximum, max(Self.initial * 2, rate / Block.maxByteCount + Self.initial))
        if size < ceiling { size += 1 } else { size = max(ceiling, Self.floor) }
        size = max(1, min(size, peerQueue))
    }

    mutating func shrink() { size = 1 }
}

/// What a peer has asked of us.
struct UploadQueue: Sendable, Equatable {
    /// As we say in `reqq`.
    static let maxCount = 1_000
    /// So many are given to the owner ahead: 256 KiB, more than a socket takes at once.
    static let maxSendingCount = 16

    private var waiting = Queue<Block>()
    /// Those that the owner has.
    var sending: [Block] = []

    var waitingCount: Int { waiting.count }
    var count: Int { waitingCount + sending.count }
    var next: Block? { waiting.first }

    mutating func append(_ block: Block) { waiting.append(block) }

    mutating func removeNext() { waiting.removeFirst() }

    func contains(_ block: Block) -> Bool { waiting.contains(block) || sending.contains(block) }

    /// Whether it was waiting.
    mutating func remove(_ block: Block) -> Bool {
        guard let index = waiting.firstIndex(of: block) else { return false }
        waiting.remove(at: index)
        return true
    }

    /// Takes out what waits, and fits.
    mutating func removeWaiting(where isMeant: (Block) -> Bool) -> [Block] {
        let meant = waiting.filter(isMeant)
        waiting.removeAll(where: isMeant)
        return meant
    }
}
