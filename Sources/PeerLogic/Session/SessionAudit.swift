// What a session keeps twice, looked at: counts and orders that save a search must be what the search would find.

import Primitives
import Wire

extension TorrentSession {
    /// Looks whether all that is kept for speed is what it stands for: for simulated worlds and tests.
    ///
    /// - Returns: the first thing that is not, in words; nil where all is right.
    /// - Complexity: O(connections · pieces).
    public func audit() -> String? {
        if let fault = picker?.audit() { return fault }
        for slot in links.indices where links[slot].phase != .free {
            if let fault = auditLink(slot) { return "connection \(slot): \(fault)" }
        }
        return auditAvailability() ?? auditRequests() ?? auditBook()
    }

    private func auditLink(_ slot: Int) -> String? {
        let link = links[slot]
        let active = link.requests.indices.reduce(0) { $0 + (link.requests[$1].isGivenUp ? 0 : 1) }
        guard link.requests.activeCount == active else {
            return "\(link.requests.activeCount) requests count, \(active) do"
        }
        guard link.uploads.sending.count <= UploadQueue.maxSendingCount, link.uploads.count <= UploadQueue.maxCount
        else {
            return "\(link.uploads.count) blocks are to be given"
        }
        guard link.isReady else { return nil }
        guard link.toldCount <= gained.count else {
            return "it was told of \(link.toldCount) of \(gained.count) pieces"
        }
        let interesting = picker?.interest(in: link.has) ?? 0
        guard link.interestingCount == interesting else {
            return "\(link.interestingCount) of its pieces are said to be wanted, \(interesting) are"
        }
        guard has(.interestForgotten) || link.weAreInterested == (interesting > 0) else {
            return "we are \(link.weAreInterested ? "" : "not ")interested in \(interesting) pieces"
        }
        guard link.window.size >= 1, link.window.size <= RequestWindow.maximum else {
            return "\(link.window.size) blocks may be asked of it"
        }
        return nil
    }

    /// How many peers have a piece is what their connections say.
    private func auditAvailability() -> String? {
        guard let picker else { return nil }
        var counts = Array(repeating: UInt16(0), count: picker.layout.pieceCount)
        for slot in links.indices where links[slot].isReady { links[slot].has.forEach { counts[$0] += 1 } }
        for piece in counts.indices where counts[piece] != picker.availability[piece] {
            return "piece \(piece) is at \(counts[piece]) peers, and counted \(picker.availability[piece]) times"
        }
        return nil
    }

    /// A block is asked of as many peers as have a request for it that counts.
    private func auditRequests() -> String? {
        guard let picker else { return nil }
        let perPiece = picker.layout.blockCount(ofPiece: 0)
        var counts = Array(repeating: UInt16(0), count: perPiece * picker.layout.pieceCount)
        for slot in links.indices {
            for index in links[slot].requests.indices where !links[slot].requests[index].isGivenUp {
                let block = links[slot].requests[index].block
                guard let index = picker.layout.index(of: block) else { return "it is asked for no block" }
                counts[Int(block.piece) * perPiece + index] += 1
            }
        }
        for piece in picker.active {
            guard let piece, piece.phase == .fetching, piece.webSeed == nil else { continue }
            for index in piece.blocks.indices where piece.blocks[index].phase != .received {
                let count = counts[piece.piece * perPiece + index]
                guard UInt16(piece.blocks[index].requestCount) == count else {
                    return "block \(index) of piece \(piece.piece) is asked of \(count), and counted "
                        + "\(piece.blocks[index].requestCount) times"
                }
            }
        }
        return nil
    }

    private func auditBook() -> String? {
        for entry in book.entries where entry.isLinked && !entry.isBanned {
            guard links.contains(where: { $0.phase != .free && $0.peer == entry.id }) else {
                return "entry \(entry.id) of the book is said to be connected"
            }
        }
        for link in links where link.phase != .free && link.peer != 0 {
            guard book.entry(link.peer).map({ $0.isLinked || $0.isBanned }) ?? false else {
                return "a connection is to entry \(link.peer) of the book, which is not connected"
            }
        }
        return nil
    }
}

extension PiecePicker {
    /// As `TorrentSession.audit`, of pieces and their blocks.
    func audit() -> String? {
        for (piece, slot) in slots.enumerated() where begun[piece] != (slot >= 0) {
            return "piece \(piece) is \(begun[piece] ? "" : "not ")begun, and in slot \(slot)"
        }
        var (length, count) = (0, 0)
        for (slot, piece) in active.enumerated() {
            guard let piece else {
                if freeSlots.reduce(0, { $0 + ($1 == slot ? 1 : 0) }) != 1 { return "slot \(slot) is lost" }
                continue
            }
            (length, count) = (length + piece.length, count + 1)
            guard slots[piece.piece] == Int32(slot) else {
                return "slot \(slot) has piece \(piece.piece), which is elsewhere"
            }
            if let fault = piece.audit() { return "piece \(piece.piece): \(fault)" }
            let isOpen = piece.phase == .fetching && piece.freeCount > 0
            guard open.reduce(0, { $0 + ($1 == slot ? 1 : 0) }) == (isOpen ? 1 : 0) else {
                return "piece \(piece.piece) has \(piece.freeCount) free blocks, and is \(isOpen ? "not " : "")open"
            }
        }
        guard freeSlots.count + count == active.count, begun.setCount == count else {
            return "\(begun.setCount) pieces are begun, \(count) are"
        }
        guard bufferedByteCount == length else { return "\(bufferedByteCount) bytes are begun, \(length) are" }
        let unbegun = wanted.count(of: wanted, without: have) - begun.count(of: wanted, without: have)
        return unbegunCount == unbegun ? nil : "\(unbegunCount) pieces are to be begun, \(unbegun) are"
    }
}

extension ActivePiece {
    /// As `TorrentSession.audit`, of the blocks of a piece.
    fileprivate func audit() -> String? {
        let free = blocks.indices.filter { blocks[$0].phase == .free }
        let missing = blocks.reduce(0) { $0 + ($1.phase == .received ? 0 : 1) }
        guard freeCount == free.count else { return "\(freeCount) blocks are free, \(free.count) are" }
        guard free.first ?? firstFree >= firstFree else { return "block \(free[0]) is free, before the first" }
        guard missingCount == missing else { return "\(missingCount) blocks are missing, \(missing) are" }
        guard (phase == .fetching) == (missing > 0) else {
            return "\(missing) blocks are missing of a piece that is in the wrong phase"
        }
        for index in blocks.indices where blocks[index].phase == .free && blocks[index].requestCount > 0 {
            return "block \(index) is free, and asked of \(blocks[index].requestCount)"
        }
        return nil
    }
}
