// Blocks to others: asked of us, given, refused.

import Primitives
import Wire

extension TorrentSession {
    /// Pieces that a peer may have of us though we choke it, so that it soon has something to give (BEP 6).
    static let allowedFastCount = 5

    // MARK: - Asked of us

    mutating func requested(_ slot: Int, _ block: Block, _ now: Instant, _ actions: inout [Action]) {
        guard torrent.layout?.holds(block) ?? false else {
            let words = "a request for \(block.length) bytes at \(block.offset) of piece \(block.piece)"
            return breach(slot, words, now, &actions)
        }
        let isHere = picker?.have[Int(block.piece)] ?? false
        guard isHere, mayHave(slot, block), links[slot].uploads.count < UploadQueue.maxCount else {
            return refuse(slot, block, now, &actions)
        }
        guard !links[slot].uploads.contains(block) else { return }
        if links[slot].weChoke { links[slot].allowedBlocksLeft -= 1 }
        links[slot].uploads.append(block)
        upload(slot, now, &actions)
    }

    private func mayHave(_ slot: Int, _ block: Block) -> Bool {
        if !links[slot].weChoke || has(.chokedServed) { return true }
        return links[slot].allowedBlocksLeft > 0 && links[slot].allowedToPeer.contains(block.piece)
    }

    /// With the fast extension each request that is not answered is rejected; without, nothing is said (BEP 6).
    private mutating func refuse(_ slot: Int, _ block: Block, _ now: Instant, _ actions: inout [Action]) {
        if links[slot].hasFast || has(.fastWithoutBit) { say(slot, .reject(block), now, &actions) }
    }

    mutating func cancelled(_ slot: Int, _ block: Block, _ now: Instant, _ actions: inout [Action]) {
        if links[slot].uploads.remove(block) {
            refuse(slot, block, now, &actions)
        } else if links[slot].uploads.sending.contains(block) {
            actions.append(.dropBlock(name(slot), block))
        }
    }

    // MARK: - Given

    /// Hands blocks to the owner: a few ahead for each connection, no more than the limit allows.
    mutating func upload(_ now: Instant, _ actions: inout [Action]) {
        guard !links.isEmpty else { return }
        turn = (turn + 1) % links.count
        // One block each in turn, so that a limit is shared.
        var isGoing = true
        while isGoing {
            isGoing = false
            for offset in links.indices {
                let slot = (turn + offset) % links.count
                if uploadOne(slot, now, &actions) { isGoing = true }
            }
        }
    }

    mutating func upload(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        while uploadOne(slot, now, &actions) {}
    }

    private mutating func uploadOne(_ slot: Int, _ now: Instant, _ actions: inout [Action]) -> Bool {
        guard links[slot].isReady,
            links[slot].uploads.sending.count < (has(.sendingUnbounded) ? .max : UploadQueue.maxSendingCount),
            let block = links[slot].uploads.next, uploadLimit.take(Int(block.length), now: now) || has(.uploadUnlimited)
        else { return false }
        links[slot].uploads.removeNext()
        links[slot].uploads.sending.append(block)
        links[slot].saidAt = now
        actions.append(.sendBlock(name(slot), block))
        return true
    }

    mutating func blockSent(
        _ slot: Int, _ block: Block, _ isSent: Bool, _ now: Instant, _ actions: inout [Action]
    ) {
        guard let index = links[slot].uploads.sending.firstIndex(of: block) else { return }
        links[slot].uploads.sending.remove(at: index)
        if isSent {
            sent += Int(block.length)
            links[slot].up.add(Int(block.length), at: now)
            checkRatio(&actions)
        } else {
            uploadLimit.giveBack(Int(block.length))
            refuse(slot, block, now, &actions)
            // What the limit was to let go here, may go elsewhere.
            return upload(now, &actions)
        }
        upload(slot, now, &actions)
    }

    /// Says so once the ratio is reached that was wanted.
    mutating func checkRatio(_ actions: inout [Action]) {
        guard !hasReachedRatio, !has(.ratioIgnored), let ratio = settings.targetRatio, let layout = torrent.layout,
            isComplete
        else { return }
        let base = beganComplete ? layout.totalLength : max(received, 1)
        guard Double(sent) >= ratio * Double(base) else { return }
        hasReachedRatio = true
        actions.append(.observe(.ratioReached))
    }

    // MARK: - Choke, ours

    mutating func interested(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard !links[slot].peerIsInterested else { return }
        links[slot].peerIsInterested = true
        links[slot].interestedSince = now
        // A free slot is given at once.
        let taken = links.reduce(0) { $0 + ($1.isReady && $1.peerIsInterested && !$1.weChoke ? 1 : 0) }
        if links[slot].weChoke, taken < settings.uploadSlots || has(.everybodyUnchoked) {
            setChoke(slot, false, now, &actions)
        }
    }

    mutating func notInterested(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].peerIsInterested else { return }
        links[slot].peerIsInterested = false
        links[slot].interestedSince = nil
        choker.forget(slot)
        if !links[slot].weChoke { setChoke(slot, true, now, &actions) }
        rechoke(now, &actions)
    }

    /// Chooses anew who is given blocks.
    mutating func rechoke(_ now: Instant, _ actions: inout [Action]) {
        var candidates: [Choker.Candidate] = []
        for slot in links.indices where links[slot].isReady && links[slot].peerIsInterested {
            let since = (links[slot].weChoke ? links[slot].interestedSince : links[slot].unchokedAt) ?? now
            candidates.append(
                Choker.Candidate(
                    slot: slot, rate: links[slot].down.rate(at: now), isUnchoked: !links[slot].weChoke, since: since,
                    isSnubbing: links[slot].isSnubbed))
        }
        var chosen = choker.chosen(candidates, slots: settings.uploadSlots, isSeeding: isComplete, now: now)
        if has(.slotsKept) {
            let kept = candidates.filter { $0.isUnchoked }.map { $0.slot }
            chosen = Array((kept + chosen.filter { !kept.contains($0) }).prefix(settings.uploadSlots))
        }
        for candidate in candidates where !chosen.contains(candidate.slot) {
            if !links[candidate.slot].weChoke { setChoke(candidate.slot, true, now, &actions) }
        }
        for slot in chosen where links[slot].weChoke { setChoke(slot, false, now, &actions) }
    }

    private mutating func setChoke(_ slot: Int, _ isChoked: Bool, _ now: Instant, _ actions: inout [Action]) {
        links[slot].weChoke = isChoked
        if isChoked {
            links[slot].unchokedAt = nil
            links[slot].interestedSince = links[slot].peerIsInterested ? now : nil
            say(slot, .choke, now, &actions)
            let allowed = links[slot].allowedToPeer
            let hasFast = links[slot].hasFast
            let void = links[slot].uploads.removeWaiting { !(hasFast && allowed.contains($0.piece)) }
            for block in void where !has(.chokeWithoutReject) { refuse(slot, block, now, &actions) }
        } else {
            links[slot].unchokedAt = now
            say(slot, .unchoke, now, &actions)
        }
    }

    /// Allows a newcomer a few pieces: the same for each of its connections, by its address.
    mutating func allowFast(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].hasFast, let picker, !picker.have.isEmpty else { return }
        let address = links[slot].address
        let count = picker.layout.pieceCount
        var number = mixed(address.high ^ mixed(address.low ^ UInt64(count)))
        for _ in 0..<Self.allowedFastCount {
            number = mixed(number &+ 0x9E37_79B9_7F4A_7C15)
            let piece = Int(number % UInt64(count))
            guard picker.have[piece], !links[slot].allowedToPeer.contains(UInt32(piece)) else { continue }
            links[slot].allowedToPeer.append(UInt32(piece))
            links[slot].allowedBlocksLeft += 2 * picker.layout.blockCount(ofPiece: piece)
            say(slot, .allowedFast(piece: UInt32(piece)), now, &actions)
        }
    }
}
