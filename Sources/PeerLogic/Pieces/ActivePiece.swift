// A piece on its way to the disk.

import Wire

/// A piece between its first request and the disk: which of its blocks are asked for, coming, and here.
struct ActivePiece: Sendable, Equatable {
    enum Phase: Sendable, Hashable {
        /// Blocks are missing. Can transition to: verifying, or it is given up.
        case fetching
        /// All blocks are here; the owner hashes. Can transition to: storing, fetching.
        case verifying
        /// The hash is right; the owner writes. Can transition to: held, or it is done.
        case storing
        /// It could not be written and waits for the next try. Can transition to: storing.
        case held
    }

    /// What is known of one block.
    struct BlockState: Sendable, Hashable {
        enum Phase: UInt8, Sendable, Hashable {
            /// Not asked for by anybody who may still give it.
            case free
            /// Asked of one peer, in the endgame of several.
            case requested
            /// Its bytes are coming.
            case arriving
            /// It is here.
            case received
        }

        var phase = Phase.free
        /// How many peers it is asked of.
        var requestCount: UInt8 = 0
        /// The peer (its entry in the book) that it comes, or came, from.
        var sender: UInt32 = 0
    }

    let piece: Int
    let length: Int
    var phase = Phase.fetching
    var blocks: [BlockState]
    /// Blocks that are free.
    var freeCount: Int
    /// Blocks that are not here.
    var missingCount: Int
    /// No free block lies before this one.
    var firstFree = 0
    /// The only peer that may give it: the piece was wrong before, and the culprit is to be found.
    var onlyFrom: UInt32?
    /// The piece was wrong before.
    var isSuspicious = false
    /// The web seed that fetches it whole.
    var webSeed: Int?

    init(piece: Int, length: Int, blockCount: Int) {
        self.piece = piece
        self.length = length
        blocks = Array(repeating: BlockState(), count: blockCount)
        freeCount = blockCount
        missingCount = blockCount
    }

    /// The peers that the blocks here came from, each once.
    var senders: [UInt32] {
        var result: [UInt32] = []
        for block in blocks where block.phase == .received && !result.contains(block.sender) {
            result.append(block.sender)
        }
        return result
    }

    /// Takes the first free block.
    mutating func takeFree() -> Int? {
        guard freeCount > 0 else { return nil }
        var index = firstFree
        while blocks[index].phase != .free { index += 1 }
        firstFree = index + 1
        blocks[index].phase = .requested
        blocks[index].requestCount = 1
        freeCount -= 1
        return index
    }

    /// A peer will not give a block, or not in time.
    ///
    /// - Returns: whether the block is free now.
    mutating func released(_ index: Int) -> Bool {
        guard blocks[index].requestCount > 0 else { return false }
        blocks[index].requestCount -= 1
        guard blocks[index].phase == .requested, blocks[index].requestCount == 0 else { return false }
        becameFree(index)
        return true
    }

    /// The bytes have ended before the block did.
    mutating func arrivalBroken(_ index: Int) {
        guard blocks[index].phase == .arriving else { return }
        if blocks[index].requestCount > 0 {
            blocks[index].phase = .requested
        } else {
            becameFree(index)
        }
    }

    private mutating func becameFree(_ index: Int) {
        blocks[index].phase = .free
        freeCount += 1
        firstFree = min(firstFree, index)
    }

    /// Whether one peer alone was to give it, and owes nothing of it any more.
    var isOwedNothing: Bool {
        onlyFrom != nil && !blocks.contains { $0.requestCount > 0 || $0.phase == .arriving }
    }

    /// All blocks are to be had anew.
    mutating func restart() {
        phase = .fetching
        for index in blocks.indices { blocks[index] = BlockState() }
        freeCount = blocks.count
        missingCount = blocks.count
        firstFree = 0
        onlyFrom = nil
        webSeed = nil
    }
}
