// What peers say (BEP 3, BEP 6).

import Primitives
import Wire

extension TorrentSession {
    /// Pieces that a peer may allow us fast; more are passed over (BEP 6 has 10).
    static let maxAllowedFastCount = 64

    mutating func messageReceived(_ slot: Int, _ message: PeerMessage, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].isReady else { return }
        links[slot].heardAt = now
        switch message {
        case .keepAlive, .port: break
        case .choke: choked(slot, now, &actions)
        case .unchoke: unchoked(slot, now, &actions)
        case .interested: interested(slot, now, &actions)
        case .notInterested: notInterested(slot, now, &actions)
        case .have(let piece): hasPiece(slot, piece, now, &actions)
        case .bitfield(let bytes): hasBitfield(slot, bytes, now, &actions)
        case .request(let block): requested(slot, block, now, &actions)
        // Its payload is told of by `blockReceived`.
        case .piece: break
        case .cancel(let block): cancelled(slot, block, now, &actions)
        case .suggest(let piece):
            // A hint that we do not take: rarest first knows better.
            if !links[slot].hasFast {
                breach(slot, "suggest without the fast extension", now, &actions)
            } else {
                _ = checked(slot, piece, now, &actions)
            }
        case .haveAll, .haveNone: hasAllOrNone(slot, message == .haveAll, now, &actions)
        case .reject(let block): rejected(slot, block, now, &actions)
        case .allowedFast(let piece): allowedFast(slot, piece, now, &actions)
        case .extended(let id, let payload): extended(slot, id, payload, now, &actions)
        }
    }

    /// A peer has said what the protocol does not allow.
    mutating func breach(_ slot: Int, _ words: String, _ now: Instant, _ actions: inout [Action]) {
        close(slot, .breach(words), now, &actions)
        connect(now, &actions)
    }

    /// Whether the torrent has such a piece, which is also said while we cannot know; closes the connection where not.
    private mutating func checked(_ slot: Int, _ piece: UInt32, _ now: Instant, _ actions: inout [Action]) -> Bool {
        if let layout = torrent.layout, piece >= layout.pieceCount {
            breach(slot, "piece \(piece) of \(layout.pieceCount)", now, &actions)
            return false
        }
        return true
    }

    // MARK: - What it has

    private mutating func hasPiece(_ slot: Int, _ piece: UInt32, _ now: Instant, _ actions: inout [Action]) {
        guard checked(slot, piece, now, &actions) else { return }
        guard torrent.layout != nil else {
            if links[slot].early.haves.count < EarlyPieces.maxHaveCount { links[slot].early.haves.append(piece) }
            links[slot].early.losses.removeAll { $0 == piece }
            return
        }
        let piece = Int(piece)
        guard links[slot].has.insert(piece) else { return }
        picker?.gained(piece)
        if picker?.isMissing(piece) ?? false {
            links[slot].interestingCount += 1
            if links[slot].interestingCount == 1 { expressInterest(slot, now, &actions) }
            if links[slot].weAreInterested { refill(slot, now, &actions) }
        }
        closeIfBothComplete(slot, now, &actions)
    }

    private mutating func hasBitfield(_ slot: Int, _ bytes: [UInt8], _ now: Instant, _ actions: inout [Action]) {
        guard let layout = torrent.layout else {
            guard bytes.count <= EarlyPieces.maxBitfieldByteCount else {
                return breach(slot, "a bitfield of \(bytes.count) bytes", now, &actions)
            }
            links[slot].early.bitfield = bytes
            return
        }
        guard let has = Bitfield(wire: bytes, count: layout.pieceCount) else {
            let count = layout.pieceCount
            return breach(slot, "a bitfield of \(bytes.count) bytes for \(count) pieces, or spare bits", now, &actions)
        }
        setHas(slot, has, now, &actions)
    }

    private mutating func hasAllOrNone(_ slot: Int, _ hasAll: Bool, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].hasFast else {
            return breach(slot, "have all or none without the fast extension", now, &actions)
        }
        guard let layout = torrent.layout else {
            links[slot].early = EarlyPieces()
            links[slot].early.hasAll = hasAll
            return
        }
        setHas(slot, Bitfield(count: layout.pieceCount, isFull: hasAll), now, &actions)
    }

    /// All that a peer has, anew.
    mutating func setHas(_ slot: Int, _ has: Bitfield, _ now: Instant, _ actions: inout [Action]) {
        picker?.left(links[slot].has)
        links[slot].has = has
        picker?.joined(has)
        interestChanged(slot, now, &actions)
        closeIfBothComplete(slot, now, &actions)
    }

    /// The pieces are known now: what the peer has said before is read.
    mutating func readEarly(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard let layout = torrent.layout else { return }
        let early = links[slot].early
        links[slot].early = EarlyPieces()
        var has = Bitfield(count: layout.pieceCount, isFull: early.hasAll)
        if let bytes = early.bitfield {
            guard let read = Bitfield(wire: bytes, count: layout.pieceCount) else {
                return breach(slot, "a bitfield of another torrent", now, &actions)
            }
            has = read
        }
        for piece in early.haves {
            guard piece < layout.pieceCount else {
                return breach(slot, "piece \(piece) of \(layout.pieceCount)", now, &actions)
            }
            has.insert(Int(piece))
        }
        for piece in early.losses where piece < layout.pieceCount { has.remove(Int(piece)) }
        setHas(slot, has, now, &actions)
    }

    /// A peer has lost a piece (BEP 54).
    mutating func lacksPiece(_ slot: Int, _ piece: UInt32, _ now: Instant, _ actions: inout [Action]) {
        guard checked(slot, piece, now, &actions) else { return }
        guard torrent.layout != nil else {
            if links[slot].early.losses.count < EarlyPieces.maxHaveCount { links[slot].early.losses.append(piece) }
            return
        }
        guard links[slot].has.remove(Int(piece)) else { return }
        picker?.lost(Int(piece))
        // While it had the piece itself, it was not told that it is here.
        if picker?.have[Int(piece)] ?? false, !gained[links[slot].toldCount...].contains(piece) {
            say(slot, .have(piece: piece), now, &actions)
        }
        let isFree = picker?.abandoned(by: links[slot].peer, only: Int(piece)) ?? false
        interestChanged(slot, now, &actions)
        if isFree { refillAll(now, &actions) }
    }

    // MARK: - Interest, ours

    /// Counts anew what a peer has that we want.
    mutating func interestChanged(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        links[slot].interestingCount = picker?.interest(in: links[slot].has) ?? 0
        expressInterest(slot, now, &actions)
        if links[slot].weAreInterested { refill(slot, now, &actions) }
    }

    mutating func expressInterest(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        let isInterested = links[slot].interestingCount > 0 && !(has(.interestForgotten) && links[slot].isSeed)
        guard isInterested != links[slot].weAreInterested else { return }
        links[slot].weAreInterested = isInterested
        if isInterested { links[slot].blockAt = now }
        say(slot, isInterested ? .interested : .notInterested, now, &actions)
    }

    /// Neither has anything for the other, now or later.
    mutating func closeIfBothComplete(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].isReady, isWholly, links[slot].isSeed else { return }
        close(slot, .bothComplete, now, &actions)
    }

    // MARK: - Choke, theirs

    private mutating func choked(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard !links[slot].peerChokes else { return }
        links[slot].peerChokes = true
        // With the fast extension each request is rejected by itself (BEP 6); without, all are void.
        if !links[slot].hasFast {
            giveUpRequests(slot, &actions)
            refillAll(now, &actions)
        } else if !has(.onlyGiverAwaited), picker?.abandoned(by: links[slot].peer) ?? false {
            refillAll(now, &actions)
        }
    }

    private mutating func unchoked(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].peerChokes else { return }
        links[slot].peerChokes = false
        links[slot].isSnubbed = false
        links[slot].blockAt = now
        refill(slot, now, &actions)
    }

    private mutating func allowedFast(_ slot: Int, _ piece: UInt32, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].hasFast else {
            return breach(slot, "allowed fast without the fast extension", now, &actions)
        }
        guard checked(slot, piece, now, &actions), links[slot].allowedToUs.count < Self.maxAllowedFastCount,
            !links[slot].allowedToUs.contains(piece)
        else { return }
        links[slot].allowedToUs.append(piece)
        refill(slot, now, &actions)
    }
}
