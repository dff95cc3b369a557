// One peer of a simulated swarm.

import PeerLogic
import Primitives
import Wire

/// A piece in a peer's memory.
struct PieceBuffer: Sendable {
    var piece = -1
    /// Bits by block.
    var here: UInt64 = 0
    var arriving: UInt64 = 0
    /// Corrupt blocks, their salts, and over which connections they came.
    var corrupt: [(block: Int, salt: UInt32, sender: PieceSender)] = []
    /// Over which connections its blocks came.
    var senders: [PieceSender] = []
    /// What is being done with it.
    var isVerifying = false
    var wantsDigests = false
    var isVerified = false
    var isStoring = false

    mutating func clear() {
        piece = -1
        restart()
    }

    mutating func restart() {
        here = 0
        arriving = 0
        corrupt.removeAll(keepingCapacity: true)
        senders.removeAll(keepingCapacity: true)
        isVerifying = false
        isVerified = false
        isStoring = false
    }
}

/// What a peer is like, drawn from its stream.
struct PeerTraits: Sendable {
    var isSeeder = false
    var liar: LiarKind?
    var isReachable = true
    var isMagnet = false
    var leavesWhenComplete = false
    /// Bytes a second; 0 for a line that takes no time.
    var upRate = 0
    var downRate = 0
    var latency = Duration.zero
    /// What it calls the extensions that its session calls 1, 2 and 3.
    var extensionNumbers: [UInt8] = [1, 2, 3]
    var settings = SessionSettings()
}

/// One peer of a simulated swarm: a session, and all that an owner has to do for it.
struct SimulatedPeer: Sendable {
    let number: Int
    let traits: PeerTraits
    let address: SocketAddress
    let peerID: PeerID
    let clock: SimulatedClock
    var random: RandomStream
    /// Nil while it is down; liars have none.
    var session: TorrentSession?
    var isUp = false
    /// Lives so far.
    var life = 0
    var isPaused = false
    /// It has left, and comes back no more.
    var isGone = false
    /// It has been told to stop, and says good-bye to its trackers.
    var isLeaving = false
    var isOffline = false
    /// When it is to be woken.
    var wakeAt: Instant?

    /// Pieces on the disk, all of them right.
    var disk: Bitfield
    var diskProblem: StoreProblem?
    var writeTime = Duration.milliseconds(2)
    /// Whether the info dictionary is known.
    var hasMetadata: Bool

    /// Places in `buffers` by piece; -1 for none.
    var bufferOf: [Int32]
    var buffers: [PieceBuffer] = []
    var freeBuffers: [Int] = []
    var bufferedByteCount = 0

    /// By slot of the session: the end that has it, or -1.
    var endOf: [Int32] = []
    /// Ends that have something to send, in the order of their turns.
    var row: [Int32] = []
    var rowHead = 0
    /// The end whose block is leaving right now.
    var leaving: (end: Int, epoch: UInt32, block: Block)?
    var upFreeAt = Instant(nanoseconds: 0)
    var downFreeAt = Instant(nanoseconds: 0)
    /// Whether `completed` was observed in this life.
    var isDone = false
    var doneAt: Instant?
    /// By tracker: how often it was asked; the answer to an earlier question is not waited for.
    var questions: [Int] = []

    init(
        _ number: Int, _ traits: PeerTraits, address: SocketAddress, layout: PieceLayout, clock: SimulatedClock,
        random: RandomStream
    ) {
        self.number = number
        self.traits = traits
        self.clock = clock
        self.random = random
        self.address = address
        var id: [UInt8] = Array(PeerID.ownPrefix.utf8)
        id.append(bigEndian: mixed(UInt64(number) &+ 77))
        id.append(bigEndian: UInt32(number))
        peerID = PeerID(Bytes20(id) ?? .zero)
        disk = Bitfield(count: layout.pieceCount, isFull: traits.isSeeder)
        hasMetadata = !traits.isMagnet
        bufferOf = Array(repeating: -1, count: layout.pieceCount)
    }

    var isHonest: Bool { traits.liar == nil }

    /// Where others are told that it listens: at port 0, who listens nowhere.
    var toldAddress: SocketAddress {
        guard isHonest, traits.settings.listenPort == 0 else { return address }
        var told = address
        told.port = 0
        return told
    }

    /// Where a peer listens: as clients of clusters do (`AddressPlan`), each at a host of its own.
    static func address(_ place: Int) -> SocketAddress {
        SocketAddress(ipv4: 0x0A01_0001 + UInt32(place) << 4, port: 30_000 + UInt16(place))
    }

    /// The place of whoever is at a host of those; nil for any other.
    static func place(of address: SocketAddress) -> Int? {
        guard address.isIPv4, address.ipv4 >= 0x0A01_0001, address.ipv4 & 15 == 1 else { return nil }
        return Int((address.ipv4 - 0x0A01_0001) >> 4)
    }

    // MARK: - Buffers

    /// The place of a piece's buffer, which is made where there is none.
    mutating func buffer(_ piece: Int, byteCount: Int) -> Int {
        if bufferOf[piece] >= 0 { return Int(bufferOf[piece]) }
        let place: Int
        if let free = freeBuffers.popLast() {
            place = free
        } else {
            place = buffers.count
            buffers.append(PieceBuffer())
        }
        buffers[place].piece = piece
        bufferOf[piece] = Int32(place)
        bufferedByteCount += byteCount
        return place
    }

    mutating func releaseBuffer(_ piece: Int, byteCount: Int) {
        guard bufferOf[piece] >= 0 else { return }
        let place = Int(bufferOf[piece])
        buffers[place].clear()
        freeBuffers.append(place)
        bufferOf[piece] = -1
        bufferedByteCount -= byteCount
    }

    /// What stands for a digest of a block's bytes.
    static func digest(_ piece: Int, _ block: Int, salt: UInt32) -> UInt64 {
        mixed(UInt64(piece) << 32 ^ UInt64(block) << 16 ^ mixed(UInt64(salt)))
    }
}
