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
    /// The block that is arriving, counted through all pieces; -1 for none.
    var arriving = -1
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
    /// Connections that are given blocks and want them.
    var unchokedCount = 0
    var openCount = 0
    /// The most that were interested at once since they were last few.
    var interestedCount = 0
    var mostInterested = 0
    /// Those that have sent it corrupt bytes.
    var guilty: [Int] = []
    var banned: [Int] = []
    /// A peer that alone has sent a piece that was wrong: it has to be banned in this step.
    var mustBan: Int?
    /// Web seeds that have given a wrong piece.
    var lyingSeeds: [Int] = []
    var ratioIsReached = false
    var sentByteCount = 0
    var receivedByteCount = 0
    var beganComplete = false
    /// It has had all pieces in this life.
    var wasComplete = false

    static let here: UInt8 = 0x80
    /// Nobody was asked, or nobody who may still answer: that is the session's to know.
    static let perhaps: UInt8 = 0x40
    static let countMask: UInt8 = 0x3F

    init(layout: PieceLayout) {
        disk = Bitfield(count: layout.pieceCount)
        wrong = disk
        whole = disk
        blocks = []
        freeCount = 0
    }
}

/// What all checkers of swarms look at, and where they say what is wrong.
struct TransferScene: Sendable {
    private static let maxViolations = 4

    let layout: PieceLayout
    /// Blocks of each piece but the last.
    let blocksPerPiece: Int
    let blockCount: Int
    var peers: [PeerRecord]
    var ends: [EndRecord] = []
    private(set) var violations: [Violation] = []
    /// How often a block was asked for again, by reason.
    var again = SecondRequests()

    init(layout: PieceLayout, peerCount: Int) {
        self.layout = layout
        blocksPerPiece = layout.blockCount(ofPiece: 0)
        let last = layout.pieceCount - 1
        blockCount = last * blocksPerPiece + layout.blockCount(ofPiece: last)
        peers = Array(repeating: PeerRecord(layout: layout), count: peerCount)
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

    /// The open ends of a peer.
    func ends(of peer: Int) -> [Int] { ends.indices.filter { ends[$0].isOpen && ends[$0].peer == peer } }

    /// How a peer is called.
    static func name(_ peer: Int) -> String { "peer \(peer)" }

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
