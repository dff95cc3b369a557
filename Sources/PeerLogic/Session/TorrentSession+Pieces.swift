// Whole pieces: hashed, written, told of, lost.

import Primitives
import Wire

extension TorrentSession {
    /// For the next try at a disk that does not take a piece; twice as long each time.
    static let firstStoreWait = Duration.seconds(2)
    static let longestStoreWait = Duration.seconds(60)
    /// New pieces are told of together: those whom we ask for blocks hear at once, the others after this.
    static let haveDelay = Duration.milliseconds(50)

    mutating func pieceVerified(_ piece: Int, _ digests: [UInt64], _ now: Instant, _ actions: inout [Action]) {
        guard picker?.verified(piece) != nil else { return }
        for peer in suspicions.convicted(piece, digests: digests) { ban(peer, now, &actions) }
        if has(.haveToldEarly) {
            for slot in links.indices where links[slot].isReady {
                say(slot, .have(piece: UInt32(piece)), now, &actions)
            }
        }
        actions.append(.store(piece: piece))
    }

    mutating func pieceFailed(_ piece: Int, _ digests: [UInt64], _ now: Instant, _ actions: inout [Action]) {
        if has(.wrongStored), picker?.verified(piece) != nil { return actions.append(.store(piece: piece)) }
        guard let wrong = picker?.failed(piece) else { return }
        received -= wrong.length
        wasted += wrong.length
        let senders = wrong.senders
        actions.append(.observe(.pieceWasWrong(piece, senders: senders.count)))
        if let seed = wrong.webSeed {
            webSeeds[seed].giveUp()
        } else if senders.count == 1 {
            ban(senders[0], now, &actions)
        } else if has(.companyBanned) {
            for sender in senders { ban(sender, now, &actions) }
        } else {
            suspicions.note(wrong, digests: digests)
        }
        // Where nobody is at work on it, its bytes are of no use to anybody.
        refillAll(now, &actions)
        fetchFromWeb(now, &actions)
    }

    /// Somebody has sent corrupt bytes.
    private mutating func ban(_ peer: UInt32, _ now: Instant, _ actions: inout [Action]) {
        guard let entry = book.entry(peer), !entry.isBanned, !has(.poisonForgiven) else { return }
        if has(.bannedCalled) { book.banAlone(peer) } else { book.ban(peer) }
        actions.append(.observe(.banned(entry.host)))
        for slot in links.indices
        where links[slot].phase != .free && (links[slot].peer == peer || book.isBanned(links[slot].address)) {
            close(slot, .banned, now, &actions)
        }
        connect(now, &actions)
    }

    // MARK: - The disk

    mutating func pieceStored(_ piece: Int, _ now: Instant, _ actions: inout [Action]) {
        guard picker?.stored(piece) ?? false else { return }
        if has(.storedForgotten) { _ = picker?.gone(piece) }
        actions.append(.releaseBuffer(piece: piece))
        actions.append(.observe(.pieceGained(piece)))
        gained.append(UInt32(piece))
        if haveDeadline == nil, !links.isEmpty { haveDeadline = now + Self.haveDelay }
        if storeFailures > 0 {
            storeFailures = 0
            storeRetryAt = nil
            actions.append(.observe(.diskMended))
            for held in picker?.retried() ?? [] { actions.append(.store(piece: held)) }
        }
        guard phase == .running else { return }
        for slot in links.indices where links[slot].isReady && links[slot].has[piece] {
            // Of a piece that is not wanted any more nothing was counted.
            if picker?.wanted[piece] ?? false, links[slot].interestingCount > 0 {
                links[slot].interestingCount -= 1
                expressInterest(slot, now, &actions)
            }
        }
        if picker?.isComplete ?? false, !hasCompleted {
            completed(now, &actions)
        } else if isWholly {
            // By a piece that was wanted no more when it came.
            becameWhole(now, &actions)
        }
        refillAll(now, &actions)
        fetchFromWeb(now, &actions)
    }

    private mutating func completed(_ now: Instant, _ actions: inout [Action]) {
        hasCompleted = true
        actions.append(.observe(.completed))
        tellAllHaves(now, &actions)
        if isWholly { becameWhole(now, &actions) }
        rechoke(now, &actions)
        // It may have been reached while pieces were missing.
        checkRatio(&actions)
    }

    private mutating func becameWhole(_ now: Instant, _ actions: inout [Action]) {
        if !wasWhole { trackers.completed(progress, now: now, &actions) }
        // What is lost afterwards, and had again, is no second download.
        wasWhole = true
        for slot in links.indices where links[slot].isReady { closeIfBothComplete(slot, now, &actions) }
    }

    mutating func storeFailed(_ piece: Int, _ problem: StoreProblem, _ now: Instant, _ actions: inout [Action]) {
        picker?.held(piece)
        if storeFailures == 0 { actions.append(.observe(.diskTrouble(problem))) }
        if has(.diskTriedOnce) { return }
        // One try is under way for all that is held.
        guard storeRetryAt == nil else { return }
        storeRetryAt = now + min(Self.firstStoreWait * (1 << Int64(min(storeFailures, 5))), Self.longestStoreWait)
        storeFailures += 1
    }

    mutating func retryStoring(_ now: Instant, _ actions: inout [Action]) {
        storeRetryAt = nil
        for piece in picker?.retried() ?? [] { actions.append(.store(piece: piece)) }
    }

    /// Bytes that were on the disk are gone: nobody is given them, and all who can be told are (BEP 54).
    mutating func pieceLost(_ piece: Int, _ now: Instant, _ actions: inout [Action]) {
        guard !has(.lossIgnored), let layout = torrent.layout, piece >= 0, piece < layout.pieceCount,
            picker?.gone(piece) ?? false
        else {
            return
        }
        tellAllHaves(now, &actions)
        gained.removeAll { $0 == UInt32(piece) }
        for slot in links.indices { links[slot].toldCount = gained.count }
        hasCompleted = picker?.isComplete ?? false
        for slot in links.indices where links[slot].isReady {
            let void = links[slot].uploads.removeWaiting { $0.piece == UInt32(piece) }
            for block in void where links[slot].hasFast { say(slot, .reject(block), now, &actions) }
            for block in links[slot].uploads.sending where block.piece == UInt32(piece) && !has(.lostStillSent) {
                actions.append(.dropBlock(name(slot), block))
            }
            links[slot].allowedToPeer.removeAll { $0 == UInt32(piece) }
            tellLoss(slot, piece, now, &actions)
            interestChanged(slot, now, &actions)
        }
        connect(now, &actions)
        fetchFromWeb(now, &actions)
    }

    // MARK: - Have

    /// Tells a peer of the pieces that were gained since it was told last, but for those that it has.
    mutating func tellHaves(_ slot: Int, _ now: Instant, _ actions: inout [Action]) {
        guard links[slot].isReady, links[slot].toldCount < gained.count else { return }
        for index in links[slot].toldCount..<gained.count
        where !links[slot].has[Int(gained[index])] && picker?.have[Int(gained[index])] ?? false {
            say(slot, .have(piece: gained[index]), now, &actions)
        }
        links[slot].toldCount = gained.count
    }

    mutating func tellAllHaves(_ now: Instant, _ actions: inout [Action]) {
        haveDeadline = nil
        for slot in links.indices { tellHaves(slot, now, &actions) }
    }
}
