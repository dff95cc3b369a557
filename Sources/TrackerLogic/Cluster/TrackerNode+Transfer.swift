// Fetching the whole state, and sending chunks of it to others.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Sending

    /// Anybody may have a chunk: it is as it is now, and says at which index.
    mutating func chunkWanted(
        _ number: UInt32, _ sender: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        if phase == .master, let neighbour = neighbours[id: sender.id], neighbour.epoch > candidate.epoch {
            // It answers a probe: whoever is above and hears us is followed.
            yieldMastership(for: sender, neighbour.epoch, now, &effects)
        }
        if phase == .following, office.following?.isWelcomed != true { _ = adoptOwnVoteAsDecided() }
        guard number < state.chunkCount else {
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
        if !promise.hasFullState {
            acceptor.loseState()
            acceptor.adopt(welcome.secret, shardCount: welcome.shardCount)
            persistPromise(&effects)
        }
        acceptor.expectState(through: fullStateFrom(welcome))
        transfer.begin(from: sender, chunkCount: ReplicatedState.chunkCount(shardCount: welcome.shardCount))
        effects.observations.append(.transferBegan(from: sender.id))
        continueTransfer(now, &effects)
    }

    mutating func continueTransfer(_ now: ClockReading, _ effects: inout Effects) {
        if !promise.hasFullState { confirmFullStateWhenComplete(now, &effects) }
        guard let source = transfer.source else { return }
        guard office.follows(source) else { return cancelTransfer() }
        if has(.transferWithoutTail), transfer.hasAllChunks { return buildState(now, &effects) }
        ask(source, for: transfer.wanted(now: now.monotonic, retryAfter: policy.keepalive), &effects)
    }

    /// What is being fetched comes to nothing.
    ///
    /// What this node holds is then no more than it was: a master has to name anew up to where it has to go.
    mutating func cancelTransfer() {
        if transfer.isFetching, !promise.hasFullState, !has(.wholeTooEarly) { acceptor.expectNothing() }
        transfer.cancel()
    }

    private mutating func ask(_ source: Life, for step: StateTransfer.NextRequest, _ effects: inout Effects) {
        switch step {
        case .chunks(let numbers): for number in numbers { send(.fetchChunk(number), to: source, &effects) }
        case .entries(let index):
            send(.fetch(after: Position(index: index, chain: Position.anyChain)), to: source, &effects)
        }
    }

    /// Requests that this node has heard may be decided in entries that it will never see.
    private mutating func forgetRequests(_ effects: inout Effects) {
        for request in router.removeAll() {
            guard let id = request.waiting.clientRequest else { continue }
            effects.answers.append(Answer(id: id, content: .failure(.notServing)))
        }
    }

    /// From which index on a newcomer may vote: what was decided before its welcome is there, and what it voted for
    /// itself, or void.
    ///
    /// In survivor mode it voted in another history, and that was merged.
    func fullStateFrom(_ welcome: Welcome) -> UInt64 {
        // Who has a vote keeps it meanwhile, and is not to wait for a decision that may need it.
        if isQuorumMode, promise.hasFullState { return acceptor.votedThrough }
        let from = max(welcome.servesFrom, welcome.position.index)
        return isQuorumMode ? max(from, acceptor.votedThrough) : from
    }

    mutating func chunkReceived(
        _ chunk: SnapshotChunk, _ sender: Life, _ now: ClockReading, _ effects: inout Effects
    ) {
        if phase == .master { return mergeChunk(chunk, sender, now, &effects) }
        if transfer.chunkReceived(chunk, from: sender) { continueTransfer(now, &effects) }
    }

    /// The log behind the chunks.
    mutating func transferEntries(_ entries: [Entry], _ now: ClockReading, _ effects: inout Effects) {
        guard let source = transfer.source else { return }
        switch transfer.entriesReceived(entries, toReach: acceptor.fullStateFrom ?? 0) {
        case .nothing: break
        case .isCut: continueTransfer(now, &effects)
        case .wantsMore: ask(source, for: transfer.wantedTail, &effects)
        case .isComplete: buildState(now, &effects)
        }
    }

    /// Everything is here: one state out of chunks of several indices and the log behind them.
    private mutating func buildState(_ now: ClockReading, _ effects: inout Effects) {
        let fetched = transfer
        guard let fresh = assembled(fetched) else {
            // Something in it was damaged on its way: all anew.
            office.revokeWelcome()
            return cancelTransfer()
        }
        let oldCount = state.chunkCount
        state = fresh
        router.remember(state.settled, through: state.index, now: now.monotonic)
        deriveKeys()
        if oldCount != state.chunkCount { sweep = ExpirySweep(shardCount: promise.shardCount) }
        log.reset(to: Position(index: fetched.completeThrough, chain: 0))
        for entry in fetched.tail { log.append(decided: entry) }
        transfer.taken()
        // In a group, the master has heard the same all the while.
        if isGroup { forgetRequests(&effects) }
        snapshotter.restart(now: now.monotonic)
        writeEverything(&effects)
        fetch(now, &effects)
    }

    /// The state that chunks and entries come to.
    ///
    /// - Parameter fetched: all chunks, and the log behind them.
    /// - Returns: nil where some of it is damaged, or not of one history.
    private func assembled(_ fetched: StateTransfer) -> ReplicatedState? {
        guard fetched.isOfOneHistory || has(.transferMixed) || has(.transferWithoutTail) else { return nil }
        var fresh = emptyState
        do throws(ChunkDamaged) {
            for case let chunk? in fetched.chunks {
                try fresh.restore(has(.transferMixed) && chunk.number == 1 && state.index > 0 ? state.chunk(1) : chunk)
            }
        } catch {
            return nil
        }
        do throws(EntryDamaged) {
            for entry in fetched.tail {
                fresh.begin(entry.header, chain: entry.chain)
                if isGroup, entry.header.index > fetched.heldThrough(0),
                    let tickets = try? Tickets(entry.bytes, entry.header)
                {
                    fresh.note(tickets)
                }
                var cursor = UpdateCursor(entry.header)
                while let update = try cursor.next(entry.bytes) {
                    let chunk = fresh.chunk(of: update)
                    guard chunk < fetched.chunks.count else { throw EntryDamaged() }
                    let isNew = entry.header.index > fetched.heldThrough(chunk)
                    if isNew || has(.chunkAppliedTwice) { fresh.apply(update) }
                }
            }
        } catch {
            return nil
        }
        return fresh
    }

    /// Writes all of the state in the place of what the record held.
    private mutating func writeEverything(_ effects: inout Effects) {
        log.beginWritingEverything()
        let chunks = (0..<state.chunkCount).map { state.takeChunk($0) }
        persist(.replaceAll(chunks: chunks), .everything(index: state.index), &effects)
    }

    mutating func everythingWritten(through index: UInt64, _ now: ClockReading, _ effects: inout Effects) {
        guard log.wroteEverything(through: index) else { return }
        if transfer.isWriting, promise.hasFullState { sendWelcomeDone(&effects) }
        transfer.writeEnded()
        confirmFullStateWhenComplete(now, &effects)
    }

    /// Tells the master that this node holds everything.
    func sendWelcomeDone(_ effects: inout Effects) {
        guard let following = office.following, following.isWelcomed, office.isBusUp else { return }
        send(.welcomeDone(at: state.position, digest: state.digest), to: following.life, &effects)
        effects.observations.append(.transferEnded(state.position))
    }

    mutating func everythingNotWritten(_ now: ClockReading) {
        guard log.everythingNotWritten(retryAt: now.monotonic + .seconds(1)) else { return }
        transfer.writeEnded()
        for number in 0..<state.chunkCount { state.markChanged(chunk: number) }
    }

    // MARK: - Proof

    /// A newcomer says that it has everything; the digest has to agree.
    mutating func welcomeDone(
        _ place: Int, _ position: Position, _ digest: UInt64, _ epoch: Epoch, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard phase == .master, epoch == candidate.epoch else { return }
        let newcomer = neighbours[place].life
        if position == state.position, digest != state.digest {
            neighbours[place].hasFullState = false
            return welcome(newcomer, answering: position, needsTransfer: true, &effects)
        }
        neighbours[place].note(position, whileAt: state.index)
        neighbours[place].hasFullState = true
        neighbours[place].memory.isForgetful = false
        neighbours[place].follower.welcomedIn = candidate.epoch
    }

    /// Two who have applied the same hold the same, or one of them is wrong: the slave fetches all anew.
    mutating func compareDigest(
        _ keepalive: Keepalive, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard office.isWelcomed(by: sender, in: epoch), !transfer.isFetching, promise.hasFullState,
            keepalive.position == state.position,
            keepalive.digest != state.digest
        else { return }
        diverged(from: sender, now, &effects)
    }

}
