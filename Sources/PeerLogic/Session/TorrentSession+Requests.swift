// Blocks to us: asked for, come, given up.

import Primitives
import Wire

extension TorrentSession {
    /// A peer that was asked and gives nothing for so long is snubbing: its requests are given to others.
    static let blockPatience = Duration.seconds(30)
    /// A block that has begun, and holds its piece up, is to end within this: 16 KiB, at 820 bytes a second.
    static let arrivalPatience = Duration.seconds(20)
    /// Given-up requests that are remembered, for they may be answered all the same.
    static let maxGivenUpCount = 500
    /// Blocks that nobody asked for: more end the connection, as endgame and choke make some.
    static let maxUnaskedCount = 1_000

    /// Asks all peers for what they have and may give; after something has become free.
    mutating func refillAll(_ now: Instant, _ actions: inout [Action]) {
        guard phase == .running, !links.isEmpty, torrent.layout != nil else { return }
        turn = (turn + 1) % links.count
        for offset in links.indices { refill((turn + offset) % links.count, now, &actions) }
    }

    /// Asks a peer for blocks, until its window is full.
    mutating func refill(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard phase == .running, links[slot].isReady, links[slot].weAreInterested, !links[slot].isSnubbed,
            torrent.layout != nil
        else { return }
        let isChoked = links[slot].peerChokes
        if isChoked, links[slot].allowedToUs.isEmpty { return }
        let peer = links[slot].peer
        let only = isChoked ? links[slot].allowedToUs : nil
        while links[slot].requests.activeCount < links[slot].window.size {
            guard downloadLimit.take(Block.maxByteCount, now: now) || has(.downloadUnlimited) else { return }
            guard let block = nextBlock(slot, peer, only) else {
                downloadLimit.giveBack(Block.maxByteCount)
                return
            }
            tellHaves(slot, now, &actions)
            if links[slot].requests.activeCount == 0 { links[slot].blockAt = now }
            links[slot].requests.append(block, at: now)
            say(slot, .request(block), now, &actions)
        }
    }

    private mutating func nextBlock(_ slot: Int, _ peer: UInt32, _ only: [UInt32]?) -> Block? {
        let budget = has(.buffersUnbounded) ? .max : settings.maxBufferedByteCount
        let block = picker?.next(for: peer, has: links[slot].has, only: only, budget: budget, random: &random)
        if block != nil { return block }
        // Nobody is asked twice by whoever has much to do yet.
        guard links[slot].requests.activeCount < RequestWindow.floor else { return nil }
        let requests = links[slot].requests
        let limit = has(.endgameUnbounded) ? .max : PiecePicker.maxEndgameCount
        let isAnytime = has(.endgameAlways)
        return picker?.endgameBlock(has: links[slot].has, only: only, limit: limit, isAnytime: isAnytime) {
            requests.index(of: $0) != nil
        }
    }

    // MARK: - Come

    /// Where the payload of a `piece` message goes, whose 13 bytes of head have come.
    ///
    /// `blockReceived`, `blockSkipped` or `linkClosed` follows.
    ///
    /// - Complexity: O(1) where blocks come in the order in which they were asked for.
    public mutating func blockBegins(_ block: Block, on link: LinkID, now: Instant) -> BlockPlace {
        guard let slot = slot(link), links[slot].isReady, links[slot].arriving == nil,
            let index = links[slot].requests.index(of: block)
        else { return .skip }
        links[slot].heardAt = now
        let request = links[slot].requests.remove(at: index)
        if !request.isGivenUp {
            picker?.answered(block)
        } else if let again = links[slot].requests.activeIndex(of: block) {
            // It was asked for again meanwhile: who had the first request waiting answers both with this block.
            links[slot].requests.remove(at: again)
            picker?.answered(block)
        }
        guard picker?.begins(block, from: links[slot].peer) ?? false else { return .skip }
        links[slot].arriving = block
        links[slot].arrivingSince = now
        return .keep
    }

    mutating func blockReceived(_ slot: Int, _ block: Block, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].arriving == block else { return }
        links[slot].arriving = nil
        links[slot].heardAt = now
        links[slot].blockAt = now
        links[slot].isSnubbed = false
        received += Int(block.length)
        links[slot].down.add(Int(block.length), at: now)
        let rate = links[slot].down.rate(at: now)
        links[slot].window.blockArrived(bytesPerSecond: rate)
        let isDuplicated = picker?.isAskedOfOthers(block) ?? false
        let isWhole = picker?.received(block) ?? false
        if isDuplicated { cancelElsewhere(block, now, &actions) }
        let piece = Int(block.piece)
        if isWhole {
            if has(.storedUnverified) { actions.append(.store(piece: piece)) }
            actions.append(.verify(piece: piece, wantsDigests: suspicions.concern(piece)))
        } else if !givesMore(slot, of: piece), !has(.onlyGiverAwaited),
            picker?.abandoned(by: links[slot].peer, only: piece) ?? false
        {
            // It alone was to give that piece, and this was the last that it owed of it.
            refillAll(now, &actions)
        }
        refill(slot, now, &actions)
    }

    /// Whether a peer would give more of a piece, if it were asked.
    private func givesMore(_ slot: Int, of piece: Int) -> Bool {
        links[slot].has[piece] && (!links[slot].peerChokes || links[slot].allowedToUs.contains(UInt32(piece)))
    }

    /// A block that was of no use has come.
    mutating func blockSkipped(_ slot: Int, _ block: Block, _ now: Instant, _ actions: inout [Action]) {
        links[slot].heardAt = now
        wasted += Int(block.length)
        links[slot].unaskedCount += 1
        guard links[slot].unaskedCount <= Self.maxUnaskedCount else {
            return breach(slot, "\(Self.maxUnaskedCount) blocks that were not asked for", now, &actions)
        }
        refill(slot, now, &actions)
    }

    /// In the endgame: those who were asked for a block that is here are told.
    private mutating func cancelElsewhere(_ block: Block, _ now: Instant, _ actions: inout [Action]) {
        for other in links.indices {
            guard let index = links[other].requests.activeIndex(of: block) else { continue }
            links[other].requests.giveUp(at: index)
            say(other, .cancel(block), now, &actions)
            refill(other, now, &actions)
        }
    }

    // MARK: - Given up

    mutating func rejected(_ slot: Int, _ block: Block, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].hasFast else { return breach(slot, "reject without the fast extension", now, &actions) }
        guard let index = links[slot].requests.index(of: block) else { return }
        if has(.rejectIgnored) { return }
        let request = links[slot].requests.remove(at: index)
        guard !request.isGivenUp else { return }
        downloadLimit.giveBack(Int(block.length))
        release(block, &actions)
        // What it rejects while it chokes us is not its to give; else it has lost the piece, or is full.
        if links[slot].peerChokes {
            links[slot].allowedToUs.removeAll { $0 == block.piece }
        } else {
            links[slot].window.shrink()
            if links[slot].has.remove(Int(block.piece)) {
                picker?.lost(Int(block.piece))
                links[slot].interestingCount = picker?.interest(in: links[slot].has) ?? 0
                expressInterest(slot, now, &actions)
            }
        }
        refillAll(now, &actions)
    }

    /// Pieces are not wanted any more: those who were asked for some of them are told.
    mutating func cancelRequests(of pieces: [Int], _ now: Instant, _ actions: inout [Action]) {
        for slot in links.indices where links[slot].isReady {
            for index in links[slot].requests.indices where !links[slot].requests[index].isGivenUp {
                let block = links[slot].requests[index].block
                guard pieces.contains(Int(block.piece)) else { continue }
                links[slot].requests.giveUp(at: index)
                say(slot, .cancel(block), now, &actions)
            }
            links[slot].requests.trimGivenUp(to: Self.maxGivenUpCount)
        }
    }

    mutating func release(_ block: Block, _ actions: inout [Action]) {
        if let piece = picker?.released(block) { actions.append(.releaseBuffer(piece: piece)) }
    }

    /// Gives all requests of a connection to others, but remembers them.
    mutating func giveUpRequests(_ slot: Int, _ actions: inout [Action]) {
        for index in links[slot].requests.indices where !links[slot].requests[index].isGivenUp {
            let block = links[slot].requests[index].block
            links[slot].requests.giveUp(at: index)
            release(block, &actions)
        }
        links[slot].requests.trimGivenUp(to: Self.maxGivenUpCount)
        if !has(.onlyGiverAwaited) { picker?.abandoned(by: links[slot].peer) }
    }

    /// The connection is over: what it was asked for is free, and what was coming is broken.
    mutating func releaseAllRequests(_ slot: Int, _ actions: inout [Action]) {
        if let block = links[slot].arriving {
            links[slot].arriving = nil
            if let piece = picker?.arrivalBroken(block) { actions.append(.releaseBuffer(piece: piece)) }
        }
        if !has(.lossOfLinkForgotten) { giveUpRequests(slot, &actions) }
        links[slot].requests.removeAll()
    }
}
