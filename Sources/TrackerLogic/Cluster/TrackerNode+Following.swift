// The slave's side of an entry: accepted, written, OK'd, and applied when it is known to be decided.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Accepting

    mutating func prepareReceived(
        _ entry: Entry, _ sender: Life, _ epoch: Epoch, _ position: Position, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard entry.header.epoch == epoch else { return }
        let ballot = entry.header.ballot
        if epoch < promise.epoch, !has(.prepareAfterPromise) {
            return send(.error(ballot, .staleEpoch), to: sender, &effects)
        }
        if epoch >= promise.epoch { masterHeard(sender, epoch, position, now, &effects) }
        guard let following = office.following, following.life == sender, following.epoch == epoch,
            following.isWelcomed, promise.epoch == epoch || has(.prepareAfterPromise), !transfer.isFetching
        else { return }
        let index = entry.header.index
        if index <= state.index {
            let before = Position(index: index - 1, chain: entry.header.previous)
            if isDivergent(before) || isDivergent(entry.position) && isNoOldAttempt(index, in: epoch) {
                return historyDiverged(now, &effects)
            }
            // Decided here already: a new master has still to find out.
            if log.durableThrough >= index, log.chain(at: index, applied: state.position) == entry.chain,
                mayAcknowledge(epoch)
            {
                sendOK(entry, to: sender, &effects)
            }
            return
        }
        if isQuorumMode, promise.hasFullState, index == state.index + 1, entry.header.previous != state.chain {
            return historyDiverged(now, &effects)
        }
        guard index == state.index + 1, entry.header.previous == state.chain else {
            if has(.gapAccepted), mayAcknowledge(epoch) { sendOK(entry, to: sender, &effects) }
            return fetch(now, &effects)
        }
        guard entry.header.attempt >= following.attempt || has(.attemptIgnored) else {
            // It has said no to this one, or to all of its time; that may have been lost. What is being written may
            // come to be stored.
            if mayRefuse(entry), mayAcknowledge(epoch) {
                send(.error(ballot, .cannotStore), to: sender, &effects)
            }
            return
        }
        office.raiseAttempt(to: entry.header.attempt)
        if log.pending?.header.ballot == ballot {
            if log.durablePending?.header.ballot == ballot, mayAcknowledge(epoch), !has(.voteSaidOnce) {
                sendOK(entry, to: sender, &effects)
            }
            return
        }
        if adoptOwnVoteAsDecided(against: entry) { return historyDiverged(now, &effects) }
        if let old = log.pending, old.header.index == index, old.header.epoch == epoch, mayRefuse(old),
            mayAcknowledge(epoch)
        {
            // It has waited for the disk, and another attempt takes its place: it never will be there.
            send(.error(old.header.ballot, .cannotStore), to: sender, &effects)
        }
        // Its master is not alone any more.
        log.accept(entry.header.isAlone ? entry.proposed(ballot, isAlone: false) : entry)
        if has(.okBeforeDurable), mayAcknowledge(epoch) { sendOK(entry, to: sender, &effects) }
        if has(.appliedOnPrepare) { applyDecided(entry, now, &effects) }
        writeLog(now, &effects)
    }

    /// An OK counts for the epoch that is promised on the disk, and no other.
    @inline(__always)
    private func mayAcknowledge(_ epoch: Epoch) -> Bool {
        (acceptor.durableEpoch >= epoch || has(.okBeforePromise))
            && (promise.epoch == epoch || has(.prepareAfterPromise)) && mayVote
    }

    /// Whether a voter may say that it has nothing where an entry was to be: what all say so of is given up.
    ///
    /// What it has stored of an earlier attempt may yet be decided; so may what an earlier master has left in the same
    /// place (quorum mode), which may be the same requests.
    private func mayRefuse(_ entry: Entry) -> Bool {
        !log.stores(entry) && !(isQuorumMode && log.storesOlder(than: entry))
    }

    // MARK: - Writing

    /// Writes the next entry that the disk lacks.
    mutating func writeLog(_ now: ClockReading, _ effects: inout Effects) {
        log.resume(now: now.monotonic)
        guard log.mayWrite, !transfer.isFetching, !transfer.isWriting, let next = log.nextWrite else {
            return
        }
        switch next {
        case .entry(let entry):
            log.beginWrite(entry)
            if phase == .master { proposer.forgetErrors(of: admission.id) }
            persist(.append(entry), .entry(entry.header.ballot), &effects)
        case .everything:
            log.beginWritingEverything()
            let chunks = (0..<state.chunkCount).map { state.takeChunk($0) }
            persist(.replaceAll(chunks: chunks), .everything(index: state.index), &effects)
        }
    }

    mutating func entryWritten(_ now: ClockReading, _ effects: inout Effects) {
        guard let entry = log.writeSucceeded() else { return }
        let ballot = entry.header.ballot
        acceptor.entryWritten(ballot.index)
        if phase == .master {
            if ballot.epoch == candidate.epoch { proposer.okReceived(from: admission.id, ballot) }
        } else if let following = office.following, following.isWelcomed, following.epoch == ballot.epoch,
            mayAcknowledge(ballot.epoch), office.isBusUp, ballot.index > state.index
        {
            sendOK(entry, to: following.life, &effects)
        }
    }

    private mutating func sendOK(_ entry: Entry, to master: Life, _ effects: inout Effects) {
        // To empty what was there before the stop is not to go on: should this master fail, the next one still has to.
        if departure.wasInOrder, !entry.emptiesSwarms { departure.votes(for: entry.header.index) }
        send(.ok(entry.header.ballot), to: master, &effects)
    }

    mutating func entryNotWritten(_ now: ClockReading, _ effects: inout Effects) {
        // Whoever is alone gives up what could not be stored, and tries with the next.
        let pause = policy.hasBus ? EntryLog.writePause : .zero
        guard let entry = log.writeFailed(retryAt: now.monotonic + pause) else { return }
        let ballot = entry.header.ballot
        if phase == .master {
            if ballot.epoch == candidate.epoch { ownWriteFailed(entry, now, &effects) }
        } else if let following = office.following, following.isWelcomed, following.epoch == ballot.epoch,
            mayAcknowledge(ballot.epoch), office.isBusUp, ballot.index > state.index, mayRefuse(entry)
        {
            // It said that it will not have this one: so it does not take it if it comes again.
            office.raiseAttempt(to: ballot.attempt + 1)
            send(.error(ballot, .cannotStore), to: following.life, &effects)
        }
    }

    /// The master itself cannot store what it proposes: the others may still, and then it is decided.
    private mutating func ownWriteFailed(_ entry: Entry, _ now: ClockReading, _ effects: inout Effects) {
        // It stays what is voted on; or an empty one is under way in its place.
        if proposer.proposed == entry.header.ballot { log.accept(entry) }
        // What it has stored of an earlier attempt, perhaps late, it has.
        if !log.stores(entry) || has(.inheritedGivenUp) {
            proposer.errorReceived(from: admission.id, entry.header.ballot)
        }
    }

    // MARK: - Applying

    /// The master has decided all up to a position.
    mutating func learn(_ position: Position, _ now: ClockReading, _ effects: inout Effects) {
        guard let following = office.following, following.isWelcomed, !transfer.isFetching else { return }
        guard position.index > state.index else {
            if isDivergent(position) || isAhead(of: position) { historyDiverged(now, &effects) }
            return
        }
        if let pending = log.pending, pending.header.previous == state.chain,
            pending.position == position || has(.learnedByIndex) && pending.header.index == position.index
        {
            applyDecided(pending, now, &effects)
        } else {
            fetch(now, &effects)
        }
    }

    /// Whether a place in the master's history is not in this node's, though that goes further: in survivor mode it may
    /// have come from the other side of a partition, and have been welcomed before anybody could tell; in quorum mode
    /// the disk of one of them has lied.
    @inline(__always)
    private func isDivergent(_ position: Position) -> Bool {
        log.contains(position, applied: state.position) == false
    }

    /// In quorum mode: whether a master lacks what was decided before it was elected.
    ///
    /// A quorum has elected it, and somebody of that has accepted the last entry that was decided, and applied the one
    /// before it; the master has fetched what that one had. So it is behind by one entry at most, unless a disk has
    /// forgotten. Where this node has decided something in the master's own epoch, the word may be an old one.
    @inline(__always)
    private func isAhead(of position: Position) -> Bool {
        guard isQuorumMode, position.index + 1 < state.index, let epoch = office.following?.epoch,
            let last = log.entry(state.index)?.header
        else { return false }
        return last.epoch < epoch
    }

    /// Whether another entry of an epoch than was decided here is no old attempt, as it is where the epoch itself has
    /// decided.
    ///
    /// In quorum mode it has to be certain: what is known only from a transfer may be of any epoch.
    @inline(__always)
    private func isNoOldAttempt(_ index: UInt64, in epoch: Epoch) -> Bool {
        guard let decided = log.entry(index)?.header else { return !isQuorumMode }
        return isQuorumMode ? decided.epoch < epoch : decided.epoch != epoch
    }

    /// This tracker's history is not a prefix of its master's.
    ///
    /// It says HELLO, and is told what to do: its own history may have to be merged first.
    mutating func historyDiverged(_ now: ClockReading, _ effects: inout Effects) {
        guard let master = office.following?.life else { return }
        if isQuorumMode, promise.hasFullState {
            // What it has voted for is of that other history.
            acceptor.forgetVotes()
            return diverged(from: master, now, &effects)
        }
        office.dismissed(now: now.monotonic)
        sendHello(to: master, now, &effects)
    }

    /// Asks the master for the entries that are missing, not more often than answers can come.
    mutating func fetch(_ now: ClockReading, _ effects: inout Effects) {
        guard !has(.gapsNotFetched), office.takeFetch(now: now.monotonic, pause: retryPause),
            let following = office.following
        else { return }
        send(.fetch(after: state.position), to: following.life, &effects)
    }

    /// Bytes of entries in one message.
    private var entriesByteCount: Int { 256 << 10 }

    mutating func fetchReceived(_ position: Position, _ place: Int, _ effects: inout Effects) {
        let sender = neighbours[place].life
        // A transfer asks for what follows its chunks, whatever the history before.
        let isKnown = position.chain == Position.anyChain || log.contains(position, applied: state.position) == true
        var start = position.index + 1
        if position.chain == Position.anyChain, start < log.tailStart { start = log.tailStart }
        guard isKnown, start >= log.tailStart, position.index <= state.index else {
            // Who has not been welcomed has to say hello first: what it knows may have to be merged.
            if phase == .master, neighbours[place].follower.welcomedIn == candidate.epoch {
                welcome(sender, answering: position, needsTransfer: true, &effects)
            } else if position.index < state.index || !isQuorumMode {
                // A candidate need not wait for what does not follow its own history, or was cut from this log.
                send(.entries([], at: state.position), to: sender, &effects)
            }
            return
        }
        var entries: [Entry] = []
        var byteCount = 0
        var index = start
        while byteCount < entriesByteCount, let entry = log.entry(index) {
            entries.append(entry)
            byteCount += entry.bytes.count
            index += 1
        }
        send(.entries(entries, at: state.position), to: sender, &effects)
    }

    mutating func entriesReceived(
        _ entries: [Entry], _ sender: Life, _ epoch: Epoch, _ position: Position, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        if transfer.source == sender { return transferEntries(entries, now, &effects) }
        let isOfMaster = office.follows(sender) && office.isWelcomed
        let isRecovering = phase == .candidate && candidate.phase == .recovering
        guard isOfMaster || isRecovering, !transfer.isFetching else { return }
        let before = state.index
        for entry in entries where entry.header.index == state.index + 1 {
            guard entry.header.previous == state.chain else {
                if isQuorumMode, promise.hasFullState, isOfMaster { return historyDiverged(now, &effects) }
                break
            }
            if adoptOwnVoteAsDecided(against: entry) {
                guard isRecovering else { return historyDiverged(now, &effects) }
                candidate.markOutOfReach(sender)
                return recover(now, &effects)
            }
            applyDecided(entry, now, &effects)
        }
        office.entriesReceived()
        if isRecovering, entries.isEmpty, position.index > state.index,
            !isQuorumMode || epoch == candidate.epoch && !has(.cutLogWaitedFor)
        {
            candidate.markOutOfReach(sender)
            return recover(now, &effects)
        }
        // Where nothing fits, it is asked for again with the next tick, not at once.
        if isRecovering, state.index > before {
            // Whose log did not go back so far may have what comes now.
            if isQuorumMode { candidate.clearOutOfReach() }
            return recover(now, &effects)
        }
        if state.index > before, position.index > state.index { fetch(now, &effects) }
    }

    /// Applies a decided entry, and answers those of its requests that were heard here.
    mutating func applyDecided(_ entry: Entry, _ now: ClockReading, _ effects: inout Effects) {
        precondition(entry.header.index == state.index + 1, "entries are applied one after another")
        state.begin(planted(applied: entry.header, now), chain: entry.chain)
        counters.entries += 1
        counters.updates += UInt64(entry.header.updateCount)
        let tickets = gathering.tickets(of: entry)
        if isGroup { state.note(tickets) }
        // Read once: they are another module's.
        let (waiting, lives) = (tickets.tickets, tickets.lives)
        var cursor = UpdateCursor(entry.header)
        var ordinal: UInt32 = 0
        var next = 0
        while let update = try? cursor.next(entry.bytes) {
            #if PLANTED_BUGS
                if has(.completedCountedTwice), let anew = update.begunAnew { state.apply(anew) }
            #endif
            let outcome = state.apply(update)
            count(outcome)
            if case .emptyShard = update { noteEmptied(&effects) }
            if case .membersChanged = outcome { effects.observations.append(.membersChanged(state.members)) }
            if next < waiting.count, waiting[next].ordinal == ordinal {
                let ticket = waiting[next]
                settle(ticket, of: lives[Int(ticket.life)], update, outcome, now, &effects)
                next += 1
            }
            ordinal &+= 1
        }
        if entry.header.updateCount == 0, !tickets.isEmpty {
            // It stands in the place of one that the vote refused.
            effects.observations.append(.aborted(index: entry.header.index, refused: tickets.count))
            for ticket in tickets.tickets {
                settleRefused(ticket, of: tickets.life(of: ticket), now, &effects)
            }
        }
        let isHeldUp = has(.newcomerBlocksTrimming) && neighbours.all.contains { !$0.hasFullState }
        log.append(decided: entry, isCut: !isHeldUp)
        office.entryDecided()
        snapshotter.entryApplied(byteCount: entry.bytes.count, now: now.monotonic)
        confirmFullStateWhenComplete(now, &effects)
        stepDownWhenRemoved(now, &effects)
    }
}
