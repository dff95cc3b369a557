// What all checkers of swarms look at.

import PeerLogic
import Primitives
import Wire

/// What is known of one side of a connection, from what goes in and out.
struct EndRecord: Sendable {
    /// A block that this side has asked for, and that has not come.
    struct Asked: Sendable {
        /// Counted through all pieces.
        var block: Int32
        var at: Instant
    }

    var isOpen = false
    /// Whose side it is, and who is at the other.
    var peer = 0
    var other = 0
    /// Whether the other side is a peer that keeps the protocol.
    var isAmongHonest = true
    /// Where the other side listens; nil before the handshakes.
    var address: SocketAddress?
    var since = Instant(nanoseconds: 0)
    /// Whether this side's session has been through the handshakes.
    var isGreeted = false
    var hasFast = false
    var hasExtensions = false

    // What this side has said.
    var saidCount = 0
    var saysChoke = true
    var saysInterested = false
    var choked = Instant(nanoseconds: 0)
    var allowed: [UInt32] = []
    /// Blocks given to the owner that have not left.
    var sending: [Block] = []

    // What it has heard.
    var isAskedFor = false
    var isChoked = true
    var interestedAt = Instant(nanoseconds: 0)
    /// What the other side calls extensions: exchange, metadata, don't-have; 0 for none.
    var theirExtensions: (metadata: UInt8, exchange: UInt8, dontHave: UInt8) = (0, 0, 0)
    /// Blocks that it was asked for and has not answered.
    var toAnswer: [Block] = []
    /// Blocks that it was asked for a second time while they were leaving.
    var doubled: [Block] = []

    // Blocks to it.
    var asked: [Asked] = []
    /// Blocks that it has cancelled, or has lost its patience for: with the fast extension they are still answered.
    var old: [Int32] = []
    /// Since when nothing has come though something was asked.
    var quietSince = Instant(nanoseconds: 0)
    /// The session's patience may be over, and nothing has come since.
    var mayBeGivenUp = false
    /// It may have been so once, and what is asked for may be otherwise.
    var isAskedUncertain = false
    /// Blocks that may be asked for at once, at most.
    var window = 8
    /// And at least, where there is enough to ask for.
    var leastWindow = 8
    var theirQueue = 250
    /// Blocks that it may still be given while it is choked.
    var allowanceLeft = 0
    /// Blocks that it was asked for and may refuse: it has been told to, or they have not left.
    var mayReject: [Block] = []
    /// Blocks that it was asked for while it chokes, and gives all the same.
    var granted: [Block] = []
    /// A block is arriving that is of no use.
    var isSkipping = false
    /// The block that is arriving, counted through all pieces; -1 for none.
    var arriving = -1

    // What either side has.
    /// What the other side has said that it has.
    var has = Bitfield(count: 0)
    /// What this side has said that it has, and has not taken back.
    var told = Bitfield(count: 0)
    /// What the other side has may be otherwise: it breaks the protocol, or nobody can tell which request it refused.
    var isHasUncertain = false
    /// The other side has said that it has lost a piece.
    var hasLost = false
    /// Pieces that the other side gives though it chokes.
    var allowedToUs: [UInt32] = []

    // By the clock of this side's peer.
    var openedAt = Instant(nanoseconds: 0)
    /// The other side has been reached; nil before it has, and for one that has called.
    var reachedAt: Instant?
    var greetedAt = Instant(nanoseconds: 0)
    var saidAt = Instant(nanoseconds: 0)
    var heardAt = Instant(nanoseconds: 0)
    /// A block began to come.
    var arrivingSince = Instant(nanoseconds: 0)
    /// A block came, or the other side unchoked.
    var usefulAt = Instant(nanoseconds: 0)
    /// Something was asked for, or interest said, when nothing was asked for before.
    var askedAnewAt = Instant(nanoseconds: 0)
    /// Something was asked for when certainly nothing was asked for before.
    var askedFirstAt = Instant(nanoseconds: 0)
    /// Since when it is unchoked; or since when it waits.
    var turnSince = Instant(nanoseconds: 0)
    var down = ByteLog()
    var up = ByteLog()

    // Extensions.
    /// What this side calls them.
    var ownExtensions: (metadata: UInt8, exchange: UInt8, dontHave: UInt8) = (0, 0, 0)
    var theirMetadataByteCount = 0
    /// This side has said that it has the metadata.
    var offersMetadata = false
    var extensionsAt: Instant?
    /// Where the other side listens, as far as this side can know.
    var listens: SocketAddress?
    var listensAt: Instant?
}

/// Bytes by second of a clock: what rates are made of, kept plainly.
struct ByteLog: Sendable {
    private static let span: Int64 = 8
    private var seconds: [(second: Int64, byteCount: Int)] = []
    private var first: Int64?
    private(set) var total = 0

    mutating func add(_ byteCount: Int, at now: Instant) {
        let second = now.nanoseconds / 1_000_000_000
        if first == nil { first = second }
        total += byteCount
        if let last = seconds.last, last.second == second {
            seconds[seconds.count - 1].byteCount += byteCount
        } else {
            seconds.removeAll { second - $0.second >= ByteLog.span }
            seconds.append((second, byteCount))
        }
    }

    /// Bytes a second over the last eight seconds, the one under way among them.
    func rate(at now: Instant) -> Int {
        guard let first else { return 0 }
        let second = now.nanoseconds / 1_000_000_000
        let sum = seconds.reduce(0) { $0 + (second - $1.second < ByteLog.span ? $1.byteCount : 0) }
        return sum / Int(min(ByteLog.span, second - first + 1))
    }
}

/// Why a session makes a step, as far as checkers ask.
enum StepCause: Sendable, Equatable {
    case other
    case started
    case ended
    case deadline
    case settings
    case update
    /// Other pieces are wanted.
    case selection
    /// The other side of a connection is interested, and was not; or is no more.
    case interested(Int)
    case notInterested(Int)
    case stored(Int)
    case storeFailed
}

/// What is known of one peer.
struct PeerRecord: Sendable {
    var isUp = false
    var isHonest = true
    var settings = SessionSettings()
    var isPrivate = false
    /// Pieces that its owner has written, and has not found gone.
    var disk: Bitfield
    /// Of each block, counted through all pieces: of how many peers it is asked (low bits), and whether it is here.
    var blocks: [UInt8]
    /// Pieces that have been wrong, and what is known of each: such a one may be begun anew at another peer.
    var wrong: Bitfield
    /// Pieces that are whole: being hashed, being written, or on the disk.
    var whole: Bitfield
    /// Blocks that are neither here nor asked for.
    var freeCount: Int
    /// Since when there are none.
    var isAllAskedSince = Instant(nanoseconds: 0)
    /// Connections that are given blocks and want them.
    var unchokedCount = 0
    var openCount = 0
    /// The most that were interested at once since they were last few.
    var interestedCount = 0
    var mostInterested = 0
    /// Those that have sent it corrupt bytes.
    var guilty: [Int] = []
    var banned: [Int] = []
    /// Peers that are known to have sent corrupt bytes: each has to be banned in this step.
    var mustBan: [Int] = []
    /// Web seeds that have given a wrong piece.
    var lyingSeeds: [Int] = []
    var ratioIsReached = false
    var sentByteCount = 0
    var receivedByteCount = 0
    /// All pieces that are wanted were here at the start.
    var beganComplete = false
    /// What its clock shows.
    var local = Instant(nanoseconds: 0)
    var isRunning = false
    var wanted: Bitfield
    var hasMetadata = false
    /// By piece: blocks that are here or asked for.
    var busy: [Int] = []
    /// By piece: connections whose other side has it.
    var availability: [Int]
    /// Its sides of connections, that are open.
    var ends: [Int] = []
    /// Connections that are through their handshakes.
    var readyCount = 0
    /// Pieces that came onto the disk in this life, when the last did; and those that were ever lost.
    var gainedAt: [Instant?]
    var lost: Bitfield
    var wrongByteCount = 0
    /// Orders peers by their ids.
    var rank: UInt64 = 0
    /// Addresses of connections that have ended, and when the last did.
    var goneAt: [(address: SocketAddress, at: Instant)] = []
    var wastedByteCount = 0
    /// When a piece last became one that nobody is asked for.
    var freedAt = Instant(nanoseconds: 0)

    static let here: UInt8 = 0x80
    /// Nobody was asked, or nobody who may still answer: that is the session's to know.
    static let perhaps: UInt8 = 0x40
    static let countMask: UInt8 = 0x3F

    init(pieceCount: Int) {
        disk = Bitfield(count: pieceCount)
        wrong = disk
        whole = disk
        wanted = disk
        lost = disk
        availability = Array(repeating: 0, count: pieceCount)
        gainedAt = Array(repeating: nil, count: pieceCount)
        blocks = []
        freeCount = 0
    }
}

/// What all checkers of swarms look at, and where they say what is wrong.
struct TransferScene: Sendable {
    private static let maxViolations = 4

    let layout: PlainLayout
    /// Blocks of each piece but the last.
    let blocksPerPiece: Int
    let blockCount: Int
    /// The place of the first peer among all who have addresses.
    let firstPlace: Int
    var peers: [PeerRecord]
    var ends: [EndRecord] = []
    private(set) var violations: [Violation] = []
    /// How often a block was asked for again, by reason.
    var again = SecondRequests()
    /// Of the step under way.
    var cause = StepCause.other

    init(layout: PlainLayout, peerCount: Int, firstPlace: Int) {
        self.firstPlace = firstPlace
        self.layout = layout
        blocksPerPiece = layout.blocksPerPiece
        let last = layout.pieceCount - 1
        blockCount = last * blocksPerPiece + layout.blockCount(ofPiece: last)
        peers = Array(repeating: PeerRecord(pieceCount: layout.pieceCount), count: peerCount)
    }

    mutating func violate(_ invariant: Invariant, at time: Instant, _ detail: String) {
        guard violations.count < TransferScene.maxViolations else { return }
        violations.append(Violation(invariant, at: time, detail))
    }

    /// A block's number through all pieces; nil for one that the torrent is not cut into.
    func number(_ block: Block) -> Int? {
        guard let index = layout.index(of: block) else { return nil }
        return Int(block.piece) * blocksPerPiece + index
    }

    func name(_ number: Int) -> String {
        "block \(number % blocksPerPiece) of piece \(number / blocksPerPiece)"
    }

    /// The peer at a host; nil where none is.
    func peer(at address: SocketAddress) -> Int? {
        SimulatedPeer.place(of: address).flatMap { peers.indices.contains($0 - firstPlace) ? $0 - firstPlace : nil }
    }

    /// What the clock of an end's peer shows.
    func local(_ end: Int) -> Instant { peers[ends[end].peer].local }

    /// Whether a peer has had no connection with an address for so long.
    func goneFor(_ peer: Int, _ address: SocketAddress, _ span: Duration) -> Bool {
        guard let gone = peers[peer].goneAt.first(where: { $0.address == address }) else { return false }
        return peers[peer].local - gone.at > span
    }

    mutating func noteGone(_ end: Int) {
        let peer = ends[end].peer
        guard ends[end].isGreeted, let address = ends[end].listens else { return }
        peers[peer].goneAt.removeAll { $0.address == address }
        peers[peer].goneAt.append((address, peers[peer].local))
    }

    /// Whether a piece is begun: between its first request and the disk, or wrong before.
    func isBegun(_ peer: Int, _ piece: Int) -> Bool {
        !peers[peer].disk[piece] && (peers[peer].busy[piece] > 0 || peers[peer].wrong[piece])
    }

    func isMissing(_ peer: Int, _ piece: Int) -> Bool { peers[peer].wanted[piece] && !peers[peer].disk[piece] }

    /// Whether all that is wanted is on the disk.
    func isComplete(_ peer: Int) -> Bool {
        peers[peer].hasMetadata && !(0..<layout.pieceCount).contains { isMissing(peer, $0) }
    }

    /// The open ends of a peer.
    func ends(of peer: Int) -> [Int] { peers[peer].ends }

    /// Stands for the other side where there is none.
    static let nobody = -1

    /// How a peer is called.
    static func name(_ peer: Int) -> String { peer < 0 ? "nobody" : "peer \(peer)" }

    /// Whom this end is connected with.
    func otherName(_ end: Int) -> String { Self.name(ends[end].other) }
}

/// How often a block was asked for a second time, by the reason for it.
public struct SecondRequests: Sendable, Hashable {
    /// None so far.
    public init() {}

    /// The peer has refused it.
    public var rejected = 0
    /// The peer has choked us.
    public var choked = 0
    /// The peer was silent.
    public var timedOut = 0
    /// The connection has ended.
    public var lost = 0
    /// The piece was wrong.
    public var wrong = 0
    /// All that was missing was asked for already.
    public var endgame = 0

    static func += (left: inout SecondRequests, right: SecondRequests) {
        left.rejected += right.rejected
        left.choked += right.choked
        left.timedOut += right.timedOut
        left.lost += right.lost
        left.wrong += right.wrong
        left.endgame += right.endgame
    }
}
