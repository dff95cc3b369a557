/// Fetching the whole state, and sending chunks of it to others.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Sending

    /// Anybody may have a chunk: it is as it is now, and says at which index.
    mutating func chunkWanted(
        _ number: UInt32, _ sender: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        if phase == .master, let neighbour = cluster.neighbours[id: sender.id], neighbour.epoch > election.epoch {
            // It answers a probe: whoever is above and hears us is followed.
            makeWay(for: sender, neighbour.epoch, now, &effects)
        }
        if phase == .following, cluster.following?.isInstalled != true { _ = keepsVote() }
        guard Int(number) < state.chunkCount else {
            // There are no more.
            return send(.chunk(number: number, index: state.index, bytes: []), to: sender, &effects)
        }
        let chunk = state.chunk(Int(number))
        send(.chunk(number: chunk.number, index: chunk.index, bytes: chunk.bytes), to: sender, &effects)
    }

    // MARK: - Fetching

    mutating func beginTransfer(
        _ welcome: Welcome, _ sender: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        forgetRequests(&effects)
        if !promise.isWhole {
            cluster.isBecomingWhole = false
            promise.secret = welcome.secret
            promise.shardCount = welcome.shardCount
            persistPromise(&effects)
        }
        cluster.wholeFrom = wholeFrom(welcome)
        cluster.transfer = StateTransfer(from: sender, chunkCount: Int(welcome.shardCount) + 1)
        cluster.transferChunks = Array(repeating: nil, count: Int(welcome.shardCount) + 1)
        cluster.transferTail = []
        effects.observations.append(.transferBegan(from: sender.id))
        continueTransfer(now, &effects)
    }

    mutating func continueTransfer(_ now: ClockReading, _ effects: inout Effects) {
        if !promise.isWhole { becomeWholeWhenDone(now, &effects) }
        guard let source = cluster.transfer?.source, cluster.following?.life == source else {
            return cancelTransfer()
        }
        if cluster.transfer?.hasAllChunks == true {
            return has(.transferWithoutTail) ? buildState(now, &effects) : fetchTransferTail(&effects)
        }
        let retryAfter = policy.keepalive
        let wanted = cluster.transfer?.wanted(now: now.monotonic, retryAfter: retryAfter) ?? []
        for number in wanted { send(.fetchChunk(number), to: source, &effects) }
    }

    /// What this node has heard may be decided in entries that it will never see.
    private mutating func forgetRequests(_ effects: inout Effects) {
        for request in cluster.book.removeAll() {
            guard let id = request.waiting.clientRequest else { continue }
            effects.answers.append(Answer(id: id, content: .failure(.notServing)))
        }
    }

    /// From which index on a newcomer may vote: what was decided before its welcome is there, and what it voted for
    /// itself, or void.
    ///
    /// In survivor mode it voted in another history, and that was merged.
    func wholeFrom(_ welcome: Welcome) -> UInt64 {
        // Who has a vote keeps it meanwhile, and is not to wait for a decision that may need it.
        if isQuorumMode, promise.isWhole { return cluster.votedThrough }
        let from = max(welcome.servesFrom, welcome.position.index)
        return isQuorumMode ? max(from, cluster.votedThrough) : from
    }

    /// Whoever had a whole state has it still, and its vote: the old one is kept until the new one is complete.
    mutating func cancelTransfer() {
        cluster.transfer = nil
        cluster.transferChunks = []
        cluster.transferTail = []
    }

    private func fetchTransferTail(_ effects: inout Effects) {
        guard let transfer = cluster.transfer else { return }
        let behind = transfer.completeThrough + UInt64(cluster.transferTail.count)
        send(.fetch(after: Position(index: behind, chain: Position.anyChain)), to: transfer.source, &effects)
    }

    mutating func chunkReceived(
        _ chunk: SnapshotChunk, _ sender: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        if phase == .master { return mergeChunk(chunk, sender, now, &effects) }
        guard cluster.transfer?.source == sender, !chunk.bytes.isEmpty, chunk.isSound,
            cluster.transfer?.received(chunk.number, index: chunk.index) == true
        else { return }
        cluster.transferChunks[Int(chunk.number)] = chunk
        continueTransfer(now, &effects)
    }

    /// The log behind the chunks.
    mutating func transferEntries(
        _ entries: [[UInt8]], _ position: Position, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard let transfer = cluster.transfer, transfer.hasAllChunks else { return }
        var next = transfer.completeThrough + UInt64(cluster.transferTail.count) + 1
        for bytes in entries {
            guard let header = try? EntryHeader(bytes), header.index >= next else { continue }
            guard header.index == next else {
                // The log was cut meanwhile: what is older than it is fetched again.
                for number in cluster.transfer?.forget(olderThan: header.index - 1) ?? [] {
                    cluster.transferChunks[number] = nil
                }
                cluster.transferTail = []
                return continueTransfer(now, &effects)
            }
            cluster.transferTail.append(bytes)
            next += 1
        }
        // What this node has voted for must not be lost: it is in what was decided by then, or void.
        let newest = transfer.heldThrough.reduce(cluster.wholeFrom ?? 0) { max($0, $1 ?? 0) }
        guard next > newest else {
            // Decided entries come with the next tick where there are none yet.
            if !entries.isEmpty { fetchTransferTail(&effects) }
            return
        }
        buildState(now, &effects)
    }

    /// Everything is here: one state out of chunks of several indices and the log behind them.
    private mutating func buildState(_ now: ClockReading, _ effects: inout Effects) {
        guard let transfer = cluster.transfer else { return }
        var fresh = emptyState
        var tail: [LoggedEntry] = []
        do {
            guard areOfOneHistory(transfer) || has(.transferMixed) || has(.transferWithoutTail) else {
                throw EntryDamaged()
            }
            for case let chunk? in cluster.transferChunks {
                try fresh.restore(has(.transferMixed) && chunk.number == 1 && state.index > 0 ? state.chunk(1) : chunk)
            }
            for bytes in cluster.transferTail {
                let entry = try LoggedEntry(bytes)
                tail.append(entry)
                fresh.begin(entry.header, chain: entry.chain)
                if isGroup, let tickets = try? Tickets(bytes, entry.header) { fresh.note(tickets) }
                var cursor = UpdateCursor(entry.header)
                while let update = try cursor.next(bytes) {
                    let chunk = fresh.chunk(of: update)
                    guard chunk < transfer.heldThrough.count else { throw EntryDamaged() }
                    let isNew = entry.header.index > transfer.heldThrough[chunk] ?? 0
                    if isNew || has(.chunkAppliedTwice) { fresh.apply(update) }
                }
            }
        } catch {
            // Something in it was damaged on its way: all anew.
            cluster.following?.isInstalled = false
            return cancelTransfer()
        }
        let oldCount = state.chunkCount
        state = fresh
        cluster.recentKeys.insert(state.settled, through: state.index, now: now.monotonic)
        deriveKeys()
        if oldCount != state.chunkCount { sweep = ExpirySweep(shardCount: promise.shardCount) }
        log.reset(to: Position(index: transfer.completeThrough, chain: 0))
        for entry in tail { log.append(decided: entry.bytes, at: entry.position) }
        cancelTransfer()
        // In a group, the master has heard the same all the while.
        if isGroup { forgetRequests(&effects) }
        snapshotter.restart(now: now.monotonic)
        writeEverything(&effects)
        fetch(now, &effects)
    }

    /// Whether the chunks that were fetched and the log behind them belong together: each chunk says which history it
    /// is of, and its sender may have gone over to another one meanwhile.
    private func areOfOneHistory(_ transfer: StateTransfer) -> Bool {
        let first = transfer.completeThrough
        var chains: [UInt64] = []
        for bytes in cluster.transferTail {
            guard let header = try? EntryHeader(bytes) else { return false }
            if chains.isEmpty { chains.append(header.previous) }
            guard header.previous == chains[chains.count - 1] else { return false }
            chains.append(EntryHeader.chain(bytes))
        }
        for case let chunk? in cluster.transferChunks {
            if chains.isEmpty { chains.append(chunk.chain) }
            // A chunk that is ahead of all entries fetched is never built upon.
            guard chunk.index >= first, chunk.index - first < UInt64(chains.count),
                chunk.chain == chains[Int(chunk.index - first)]
            else { return false }
        }
        return true
    }

    /// Writes all of the state in the place of what the record held.
    private mutating func writeEverything(_ effects: inout Effects) {
        cluster.isFinishingTransfer = true
        log.beginWritingEverything(claiming: has(.durableTooEarly) ? state.index : nil)
        let chunks = (0..<state.chunkCount).map { state.takeChunk($0) }
        persist(.replaceAll(chunks: chunks), .everything(index: state.index), &effects)
    }

    mutating func everythingWritten(through index: UInt64, _ now: ClockReading, _ effects: inout Effects) {
        guard log.wroteEverything(through: index) else { return }
        if cluster.isFinishingTransfer, promise.isWhole { tellTransferEnded(&effects) }
        cluster.isFinishingTransfer = false
        becomeWholeWhenDone(now, &effects)
    }

    /// Tells the master that this node holds everything.
    func tellTransferEnded(_ effects: inout Effects) {
        guard let following = cluster.following, following.isInstalled, cluster.isBusUp else { return }
        send(.welcomeDone(at: state.position, digest: state.digest), to: following.life, &effects)
        effects.observations.append(.transferEnded(state.position))
    }

    mutating func everythingNotWritten(_ now: ClockReading) {
        guard log.everythingNotWritten(retryAt: now.monotonic + .seconds(1)) else { return }
        cluster.isFinishingTransfer = false
        for number in 0..<state.chunkCount { state.markChanged(chunk: number) }
    }

    // MARK: - Proof

    /// A newcomer says that it has everything; the digest has to agree.
    mutating func welcomeDone(
        _ place: Int, _ position: Position, _ digest: UInt64, _ epoch: Epoch, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard phase == .master, epoch == election.epoch else { return }
        let newcomer = cluster.neighbours[place].life
        if position == state.position, digest != state.digest {
            cluster.neighbours[place].isWhole = false
            return welcome(newcomer, answering: position, needsTransfer: true, &effects)
        }
        cluster.neighbours[place].note(position, whileAt: state.index)
        cluster.neighbours[place].isWhole = true
        cluster.neighbours[place].isForgetful = false
        cluster.neighbours[place].installedIn = election.epoch
    }

    /// Two who have applied the same hold the same, or one of them is wrong: the slave fetches all anew.
    mutating func compareDigest(
        _ keepalive: Keepalive, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard let following = cluster.following, following.life == sender, following.epoch == epoch,
            following.isInstalled, cluster.transfer == nil, promise.isWhole, keepalive.position == state.position,
            keepalive.digest != state.digest
        else { return }
        diverged(from: sender, now, &effects)
    }

    /// What this node holds is not what its master does: it has neither a vote nor answers until it has fetched all
    /// anew, and its operator is told.
    mutating func diverged(from master: Life, _ now: ClockReading, _ effects: inout Effects) {
        guard promise.isWhole, case nil = cluster.transfer else { return }
        effects.observations.append(.diverged(state.position))
        promise.isWhole = false
        cluster.isBecomingWhole = false
        persistPromise(&effects)
        cluster.following?.isInstalled = false
        cluster.following?.since = now.monotonic
        sayHello(to: master, now, &effects)
    }
}
