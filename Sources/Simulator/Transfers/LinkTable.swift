// Connections between simulated peers.

import PeerLogic
import Primitives
import Wire

/// What is on its way between two peers.
enum TransferItem: Sendable {
    case handshake
    /// Anything but `piece`.
    case message(PeerMessage)
    /// A block with its payload; another salt than 0 is that of corrupt bytes.
    case block(Block, salt: UInt32)

    /// On the wire.
    var byteCount: Int {
        switch self {
        case .handshake: PeerHandshake.byteCount
        case .block(let block, _): 13 + Int(block.length)
        case .message(let message): message.byteCount
        }
    }
}

extension PeerMessage {
    /// On the wire, with the length before it and without the payload of a block.
    var byteCount: Int {
        switch self {
        case .keepAlive: 4
        case .choke, .unchoke, .interested, .notInterested, .haveAll, .haveNone: 5
        case .have, .suggest, .allowedFast: 9
        case .bitfield(let bytes): 5 + bytes.count
        case .request, .cancel, .reject: 17
        case .piece: 13
        case .port: 7
        case .extended(_, let payload): 6 + payload.count
        }
    }
}

/// Items in the order in which they were said: some have left, the others wait.
struct ItemQueue: Sendable {
    private var items: [TransferItem] = []
    private var head = 0
    /// Of those that are here, the first so many are under way.
    private(set) var departedCount = 0

    var count: Int { items.count - head }
    var waitingCount: Int { count - departedCount }

    mutating func append(_ item: TransferItem) { items.append(item) }

    /// An item that waits, counted from the first that does.
    func waiting(_ index: Int) -> TransferItem { items[head + departedCount + index] }

    mutating func depart(_ count: Int) { departedCount += count }

    /// The next item that arrives.
    var first: TransferItem? { departedCount > 0 ? items[head] : nil }

    mutating func removeFirst() {
        head += 1
        departedCount -= 1
        if head >= 64, head * 2 >= items.count {
            items.removeFirst(head)
            head = 0
        }
    }

    /// Takes a block out that has not left yet.
    mutating func drop(_ block: Block) -> Bool {
        var index = head + departedCount
        while index < items.count {
            if case .block(let other, _) = items[index], other == block {
                items.remove(at: index)
                return true
            }
            index += 1
        }
        return false
    }

    mutating func dropWaiting() { items.removeLast(waitingCount) }

    mutating func removeAll() {
        items.removeAll(keepingCapacity: true)
        head = 0
        departedCount = 0
    }
}

/// One side of a connection.
struct TransferEnd: Sendable {
    enum Phase: UInt8, Sendable {
        /// Not there, or closed by this side. Can transition to: dialling, called.
        case none
        /// Can transition to: greeting, none.
        case dialling
        /// Is called, and has not heard the handshake yet. Can transition to: open, none.
        case called
        /// Has dialled, and waits for the other's handshake. Can transition to: open, none.
        case greeting
        /// Can transition to: none.
        case open
    }

    var phase = Phase.none
    /// Whose side it is.
    var peer = 0
    /// The peer's life that made it.
    var life = 0
    /// What the peer's session calls it; nil before it has a name, and for liars.
    var name: LinkID?
    /// What this side has said.
    var out = ItemQueue()
    /// Whether it stands in its peer's row for the line.
    var isInRow = false
    /// When the last item that has left arrives.
    var lastArrival = Instant(nanoseconds: 0)
    /// Where the payload goes that is arriving here from the other side.
    var place: TorrentSession.BlockPlace?
    /// When something was first said that cannot leave.
    var stuckSince: Instant?
}

/// All connections: connection `n` has the ends `2n`, which has dialled, and `2n + 1`.
struct LinkTable: Sendable {
    var ends: [TransferEnd] = []
    /// By connection: tells those that have had its place one after another.
    private(set) var epochs: [UInt32] = []
    /// By connection: what both sides say that they understand.
    var capabilities: [PeerHandshake.Capabilities] = []
    /// By connection: carries nothing, and nobody has noticed.
    var isFrozen: [Bool] = []
    private var free: [Int] = []

    mutating func make() -> Int {
        if let link = free.popLast() {
            epochs[link] &+= 1
            isFrozen[link] = false
            return link
        }
        ends.append(TransferEnd())
        ends.append(TransferEnd())
        epochs.append(0)
        capabilities.append([])
        isFrozen.append(false)
        return epochs.count - 1
    }

    func epoch(of end: Int) -> UInt32 { epochs[end >> 1] }

    /// Gives the place back once both sides have ended.
    mutating func release(_ link: Int) {
        guard ends[2 * link].phase == .none, ends[2 * link + 1].phase == .none else { return }
        for end in 2 * link...2 * link + 1 {
            var out = ItemQueue()
            swap(&out, &ends[end].out)
            out.removeAll()
            ends[end] = TransferEnd()
            // Its room is kept.
            swap(&out, &ends[end].out)
        }
        epochs[link] &+= 1
        free.append(link)
    }
}
