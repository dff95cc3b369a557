// Which block is asked for next.

import Primitives
import Wire

/// Which block is asked for next: pieces that are begun before others, of the others the rarest, the first few at
/// random.
///
/// "Rarest first … random first piece … strict priority … endgame" (Cohen, *Incentives Build Robustness in BitTorrent*,
/// 2003, sections 2.4.1 to 2.4.4). Each block is asked of one peer, until every wanted block is asked for or here; then
/// a second peer may be asked, too (endgame).
///
/// Deviation: pieces that are begun are bounded by their bytes, for they lie in memory until they are verified and
/// written.
struct PiecePicker: Sendable, Equatable {
    /// So many pieces are picked at random, so that a newcomer soon has something to give.
    static let randomFirstCount = 4
    /// In the endgame a block is asked of at most so many peers.
    static let maxEndgameCount: UInt8 = 2

    let layout: PieceLayout
    /// Verified, and on the disk.
    private(set) var have: Bitfield
    private(set) var wanted: Bitfield
    /// Between the first request and the disk.
    private(set) var begun: Bitfield
    /// How many peers have each piece.
    private(set) var availability: [UInt16]
    /// Begun pieces; a slot without one is free.
    private(set) var active: [ActivePiece?] = []
    /// The slot of each begun piece; -1 where it is not begun.
    private(set) var slots: [Int32]
    private(set) var freeSlots: [Int] = []
    /// Slots of pieces with free blocks, the oldest first.
    private(set) var open: [Int] = []
    /// Bytes of begun pieces.
    private(set) var bufferedByteCount = 0
    /// Wanted, not here, not begun.
    private(set) var unbegunCount: Int

    init(layout: PieceLayout, have: Bitfield, wanted: Bitfield) {
        self.layout = layout
        self.have = have
        self.wanted = wanted
        let count = layout.pieceCount
        begun = Bitfield(count: count)
        availability = Array(repeating: 0, count: count)
        slots = Array(repeating: -1, count: count)
        unbegunCount = wanted.count(of: wanted, without: have)
    }

    /// Whether all wanted pieces are on the disk.
    var isComplete: Bool { unbegunCount == 0 && wanted.count(of: begun, without: have) == 0 }

    /// Whether every wanted block is here or asked for.
    var isEndgame: Bool { unbegunCount == 0 && open.isEmpty }

    /// Whether the piece is wanted and not on the disk.
    func isMissing(_ piece: Int) -> Bool { wanted[piece] && !have[piece] }

    func slot(of piece: Int) -> Int? { slots[piece] < 0 ? nil : Int(slots[piece]) }

    /// After a rest: the disk may hold other pieces than it did.
    ///
    /// What is being hashed, written or fetched stays begun.
    mutating func resume(have onDisk: Bitfield) {
        for piece in 0..<layout.pieceCount where onDisk[piece] != have[piece] && !begun[piece] {
            if onDisk[piece] { have.insert(piece) } else { have.remove(piece) }
            if wanted[piece] { unbegunCount += onDisk[piece] ? -1 : 1 }
        }
    }

    // MARK: - What peers have

    mutating func gained(_ piece: Int) { availability[piece] = availability[piece] &+ 1 }

    mutating func lost(_ piece: Int) { availability[piece] = max(availability[piece], 1) - 1 }

    mutating func joined(_ has: Bitfield) { has.forEach { availability[$0] = availability[$0] &+ 1 } }

    mutating func left(_ has: Bitfield) { has.forEach { availability[$0] = max(availability[$0], 1) - 1 } }

    /// How many wanted pieces a peer has that are not here.
    func interest(in has: Bitfield) -> Int { has.count(of: wanted, without: have) }

    // MARK: - Picking

    /// Takes the next block to be asked of a peer, which its entry in the book names.
    ///
    /// `only` are the pieces that it gives though it chokes us; nil for all that it has. `budget` is in bytes that
    /// begun pieces may have in all; one may be begun in any case.
    mutating func next(
        for peer: UInt32, has: Bitfield, only: [UInt32]?, budget: Int, random: inout RandomStream
    ) -> Block? {
        for slot in open {
            guard let piece = active[slot], has[piece.piece], only?.contains(UInt32(piece.piece)) ?? true else {
                continue
            }
            // A piece that was wrong is had of one peer, and not of the one that others wait for.
            if let chosen = piece.onlyFrom, chosen != peer { continue }
            return take(slot, for: peer)
        }
        guard mayBegin(budget), let piece = pick(has: has, only: only, &random) else { return nil }
        return take(begin(piece), for: peer)
    }

    /// Whether there is a piece left to begin, and room for it.
    private func mayBegin(_ budget: Int) -> Bool {
        unbegunCount > 0 && (bufferedByteCount == 0 || bufferedByteCount + layout.pieceLength <= budget)
    }

    private mutating func take(_ slot: Int, for peer: UInt32) -> Block? {
        guard let index = active[slot]?.takeFree(), let piece = active[slot] else { return nil }
        if piece.isSuspicious { active[slot]?.onlyFrom = peer }
        if piece.freeCount == 0 { open.removeAll { $0 == slot } }
        return layout.block(index, ofPiece: piece.piece)
    }

    /// The rarest piece of those that a peer has and nobody was asked for yet; at first any.
    func pick(has: Bitfield, only: [UInt32]?, _ random: inout RandomStream) -> Int? {
        let isRandom = have.setCount + active.count - freeSlots.count < Self.randomFirstCount
        var best: Int?
        var rarest = UInt16.max
        var equals = 0
        for word in has.words.indices {
            var rest = has.words[word] & wanted.words[word] & ~have.words[word] & ~begun.words[word]
            while rest != 0 {
                let piece = word * 64 + rest.trailingZeroBitCount
                rest &= rest - 1
                if let only, !only.contains(UInt32(piece)) { continue }
                let count = isRandom ? rarest : availability[piece]
                if count > rarest { continue }
                if count < rarest { (rarest, equals) = (count, 0) }
                // Each of the equals is as likely, in one walk (reservoir sampling).
                equals += 1
                if equals == 1 || random.below(equals) == 0 { best = piece }
            }
        }
        return best
    }

    private mutating func begin(_ piece: Int) -> Int {
        let length = layout.length(ofPiece: piece)
        let new = ActivePiece(piece: piece, length: length, blockCount: layout.blockCount(ofPiece: piece))
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            active[slot] = new
        } else {
            slot = active.count
            active.append(new)
        }
        slots[piece] = Int32(slot)
        begun.insert(piece)
        bufferedByteCount += length
        if wanted[piece] { unbegunCount -= 1 }
        open.append(slot)
        return slot
    }

    /// A second peer's block in the endgame: of those that it has and was not asked for, one that the fewest were.
    ///
    /// `isAsked` tells whether the peer has been asked for a block already.
    mutating func endgameBlock(
        has: Bitfield, only: [UInt32]?, limit: UInt8 = maxEndgameCount, isAnytime: Bool = false,
        isAsked: (Block) -> Bool
    ) -> Block? {
        guard isEndgame || isAnytime else { return nil }
        for slot in active.indices {
            guard let piece = active[slot], piece.phase == .fetching, has[piece.piece], piece.onlyFrom == nil,
                piece.webSeed == nil, only?.contains(UInt32(piece.piece)) ?? true
            else { continue }
            for index in piece.blocks.indices
            where piece.blocks[index].phase == .requested
                && piece.blocks[index].requestCount < limit
            {
                let block = layout.block(index, ofPiece: piece.piece)
                guard !isAsked(block) else { continue }
                active[slot]?.blocks[index].requestCount += 1
                return block
            }
        }
        return nil
    }

    /// Begins a whole piece for a web seed; nil where there is none that it may begin.
    mutating func beginForWeb(_ seed: Int, budget: Int, random: inout RandomStream) -> Int? {
        guard mayBegin(budget), let piece = pick(has: wanted, only: nil, &random) else { return nil }
        let slot = begin(piece)
        while let index = active[slot]?.takeFree() { active[slot]?.blocks[index].phase = .arriving }
        active[slot]?.webSeed = seed
        open.removeAll { $0 == slot }
        return piece
    }

    // MARK: - What becomes of blocks

    /// A peer will not give a block that it was asked for, or not in time.
    ///
    /// - Returns: the piece, where nothing of it is here or asked for any more, so that it is not begun.
    mutating func released(_ block: Block) -> Int? {
        guard let slot = slot(of: Int(block.piece)), let index = layout.index(of: block),
            active[slot]?.released(index) == true
        else { return nil }
        return reopen(slot)
    }

    /// A begun piece has a free block again.
    private mutating func reopen(_ slot: Int) -> Int? {
        guard let piece = active[slot] else { return nil }
        if piece.freeCount == piece.blocks.count, !piece.isSuspicious {
            end(slot)
            return piece.piece
        }
        // The one peer does not go on: another is to give all of it.
        if piece.isOwedNothing { active[slot]?.restart() }
        if !open.contains(slot) { open.append(slot) }
        return nil
    }

    /// A peer gives nothing more for now, or not this piece: what it alone was to give is to be had of others, once it
    /// owes nothing of it.
    ///
    /// - Returns: whether there is any that is to be had of others now.
    @discardableResult
    mutating func abandoned(by peer: UInt32, only piece: Int? = nil) -> Bool {
        var isAny = false
        for slot in active.indices where isAwaited(slot, peer) && (piece == nil || piece == active[slot]?.piece) {
            if active[slot]?.isOwedNothing ?? false { isAny = true }
            _ = reopen(slot)
        }
        return isAny
    }

    /// A peer answers a request: it is no longer one that might not be answered.
    mutating func answered(_ block: Block) {
        guard let slot = slot(of: Int(block.piece)), let index = layout.index(of: block),
            let count = active[slot]?.blocks[index].requestCount, count > 0
        else { return }
        active[slot]?.blocks[index].requestCount = count - 1
    }

    /// The head of a block has come: whether its bytes are to be kept.
    mutating func begins(_ block: Block, from peer: UInt32) -> Bool {
        guard let slot = slot(of: Int(block.piece)), let index = layout.index(of: block),
            let state = active[slot]?.blocks[index], active[slot]?.phase == .fetching,
            active[slot]?.onlyFrom ?? peer == peer
        else { return false }
        switch state.phase {
        case .received, .arriving: return false
        case .free:
            // It was given up and comes all the same.
            active[slot]?.freeCount -= 1
            if active[slot]?.freeCount == 0 { open.removeAll { $0 == slot } }
        case .requested: break
        }
        active[slot]?.blocks[index].phase = .arriving
        active[slot]?.blocks[index].sender = peer
        return true
    }

    /// Its bytes have ended before it did.
    ///
    /// - Returns: as `released`.
    mutating func arrivalBroken(_ block: Block) -> Int? {
        guard let slot = slot(of: Int(block.piece)), let index = layout.index(of: block) else { return nil }
        active[slot]?.arrivalBroken(index)
        guard let free = active[slot]?.freeCount, free > 0 else { return nil }
        return reopen(slot)
    }

    /// All bytes of a block are here.
    ///
    /// - Returns: whether the piece is whole now, and is to be verified.
    mutating func received(_ block: Block) -> Bool {
        guard let slot = slot(of: Int(block.piece)), let index = layout.index(of: block),
            active[slot]?.blocks[index].phase == .arriving
        else { return false }
        active[slot]?.blocks[index].phase = .received
        active[slot]?.blocks[index].requestCount = 0
        active[slot]?.missingCount -= 1
        guard active[slot]?.missingCount == 0 else { return false }
        active[slot]?.phase = .verifying
        return true
    }

    /// A web seed has given all of a piece, or not.
    mutating func webPiece(_ piece: Int, from sender: UInt32, isHere: Bool) -> Bool {
        guard let slot = slot(of: piece), active[slot]?.webSeed != nil, active[slot]?.phase == .fetching else {
            return false
        }
        guard isHere else {
            end(slot)
            return false
        }
        active[slot]?.phase = .verifying
        active[slot]?.missingCount = 0
        if let count = active[slot]?.blocks.count {
            for index in 0..<count {
                active[slot]?.blocks[index] = ActivePiece.BlockState(phase: .received, sender: sender)
            }
        }
        return true
    }

    // MARK: - What becomes of pieces

    /// The hash is wrong: the peers that gave it, and a new begin, of one peer alone.
    mutating func failed(_ piece: Int) -> ActivePiece? {
        guard let slot = slot(of: piece), let wrong = active[slot], wrong.phase == .verifying else { return nil }
        active[slot]?.restart()
        active[slot]?.isSuspicious = true
        if !open.contains(slot) { open.append(slot) }
        return wrong
    }

    /// The hash is right.
    mutating func verified(_ piece: Int) -> ActivePiece? {
        guard let slot = slot(of: piece), let right = active[slot], right.phase == .verifying else { return nil }
        active[slot]?.phase = .storing
        return right
    }

    mutating func held(_ piece: Int) {
        guard let slot = slot(of: piece), active[slot]?.phase == .storing else { return }
        active[slot]?.phase = .held
    }

    /// The pieces that wait for the disk, which are to be written again now.
    mutating func retried() -> [Int] {
        var result: [Int] = []
        for slot in active.indices where active[slot]?.phase == .held {
            active[slot]?.phase = .storing
            if let piece = active[slot]?.piece { result.append(piece) }
        }
        return result
    }

    /// It is on the disk.
    mutating func stored(_ piece: Int) -> Bool {
        guard let slot = slot(of: piece), active[slot]?.phase == .storing else { return false }
        have.insert(piece)
        end(slot)
        return true
    }

    /// It is on the disk no longer.
    mutating func gone(_ piece: Int) -> Bool {
        guard have.remove(piece) else { return false }
        if wanted[piece], !begun[piece] { unbegunCount += 1 }
        return true
    }

    /// Ends a begun piece: it is done, or it was given up.
    private mutating func end(_ slot: Int) {
        guard let piece = active[slot] else { return }
        active[slot] = nil
        freeSlots.append(slot)
        slots[piece.piece] = -1
        begun.remove(piece.piece)
        bufferedByteCount -= piece.length
        open.removeAll { $0 == slot }
        if isMissing(piece.piece) { unbegunCount += 1 }
    }

    /// Other pieces are wanted; what is begun and no longer wanted is given up, unless it is verified.
    ///
    /// - Returns: pieces whose buffers are not needed any more.
    mutating func setWanted(_ wanted: Bitfield) -> [Int] {
        self.wanted = wanted
        unbegunCount = 0
        wanted.walk(wanted, without: have) { piece in
            if !begun[piece] { unbegunCount += 1 }
            return true
        }
        return giveUp { !wanted[$0.piece] }
    }

    /// Gives begun pieces up, unless bytes are coming into them right now, or all are here.
    mutating func giveUp(where isMeant: (ActivePiece) -> Bool = { _ in true }) -> [Int] {
        var ended: [Int] = []
        for slot in active.indices {
            guard let piece = active[slot], piece.phase == .fetching, isMeant(piece),
                !piece.blocks.contains(where: { $0.phase == .arriving })
            else { continue }
            ended.append(piece.piece)
            end(slot)
        }
        return ended
    }
}
