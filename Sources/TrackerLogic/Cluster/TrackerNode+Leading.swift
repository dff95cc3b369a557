// The master's side of an entry: proposed, voted on, decided, told.

import Primitives
import Wire

extension TrackerNode {
    /// Those whose OK counts now: the voters, and with the policy `all` everybody among them who is in step.
    @inline(__always)
    private var votingElectorate: Electorate {
        var electorate = electorate
        switch policy.vote {
        case .majority: break
        case .allDropped, .allAskedAgain:
            electorate.needed = electorate.voters.filter { id in
                id == admission.id
                    || neighbours[id: id].map {
                        $0.isUp && $0.follower.welcomedIn == candidate.epoch && !$0.follower.isDropped
                    } == true
            }
        }
        return electorate
    }

    /// Whether this master decides all by itself: in survivor mode, where nobody else is left.
    ///
    /// Its entries say so. It answers as soon as one is on its disk, and after a restart has to know that it may have.
    @inline(__always)
    var decidesAlone: Bool { !policy.hasBus || !isQuorumMode && votingElectorate.voters == [admission.id] }

    /// What a master does in every step.
    mutating func lead(_ now: ClockReading, _ effects: inout Effects) {
        guard hasQuorum(now) else { return stepDown(.quorumLost, now, &effects) }
        countVotes(now, &effects)
        guard phase == .master else { return }
        if has(.membersBySight) { dropSilentMember() }
        continueMerge(now, &effects)
        pumpRequests(now, &effects)
        if has(.membersBySight) { dropSilentMember() }
        driveHandover(now, &effects)
        proposeNext(now, &effects)
        if proposer.takeCommit() { broadcast(.commit(at: state.position), epoch: candidate.epoch, &effects) }
        if retries, proposer.takeResend(now: now.monotonic, pause: retryPause) { sendAgain(now, &effects) }
        confirmAgain(now, &effects)
        driveReads(now, &effects)
    }

    /// Whether a quorum follows this master, as far as it has heard within the detection time.
    ///
    /// In survivor mode the voters are those that it hears, so it always does.
    private mutating func hasQuorum(_ now: ClockReading) -> Bool {
        guard isQuorumMode, !has(.minorityStays) else { return true }
        let isFollowed = electorate.isQuorum { id in id == admission.id || neighbours.follows(id, candidate.epoch)
        }
        if isFollowed { detector.noteFollowed(now: now.monotonic) }
        return detector.wasFollowed(now: now.monotonic)
    }

    /// Whether phase 1 holds for the voters as they are now: they may have changed since the candidate.
    @inline(__always)
    private var hasPhaseOne: Bool { !isQuorumMode || isElected }

    // MARK: - Proposing

    private mutating func proposeNext(_ now: ClockReading, _ effects: inout Effects) {
        guard proposer.isIdle, case nil = log.pending, !handover.isUnderWay || isBeginningEmpty else { return }
        guard hasPhaseOne else {
            if proposer.takeResend(now: now.monotonic, pause: retryPause) {
                broadcast(.election, epoch: candidate.epoch, &effects)
            }
            return
        }
        if isForming, gathering.updateCount < configuration.limits.updatesPerEntry {
            gathering.append(.setMembers(policy.members))
        }
        if let sealed = sealGathering(now, &effects) { propose(sealed, now, &effects) }
    }

    /// Proposes an entry that is there already: one that an earlier master left undecided, or this one's by a further
    /// attempt.
    mutating func propose(
        again entry: Entry, as kind: Proposer.Kind, _ now: ClockReading, _ effects: inout Effects
    ) {
        let ballot = proposer.propose(kind, candidate.epoch, index: entry.header.index, now: now.monotonic)
        propose(entry.proposed(ballot, isAlone: decidesAlone), now, &effects)
    }

    /// The end of the step writes it.
    private mutating func propose(_ entry: Entry, _ now: ClockReading, _ effects: inout Effects) {
        log.accept(entry)
        let decided = has(.commitSentEarly) ? entry.position : state.position
        broadcast(.prepare(entry: entry, at: decided), epoch: candidate.epoch, &effects)
        for place in neighbours.all.indices {
            neighbours[place].follower.voteAwaitedSince = now.monotonic
            neighbours[place].follower.voteAskedAt = now.monotonic
        }
        timers.postponeKeepalive(now: now.monotonic, interval: policy.keepalive)
        if has(.ownVoteBeforeDurable) { proposer.okReceived(from: admission.id, entry.header.ballot) }
    }

    /// Asks those again who have not voted.
    private mutating func sendAgain(_ now: ClockReading, _ effects: inout Effects) {
        if let pending = log.pending, proposer.proposed == pending.header.ballot {
            if proposer.mayRetryErrors(now: now.monotonic, pause: policy.keepalive) {
                // Not refused, and yet not decided: those who could not store it may now.
                return tryAgain(pending, now, &effects)
            }
            if has(.abortOnTimeout) { tellRefused(pending, now, &effects) }
            for place in neighbours.all.indices {
                let neighbour = neighbours[place]
                guard neighbour.isUp, neighbour.follower.welcomedIn == candidate.epoch,
                    !proposer.hasVoted(neighbour.life.id), !has(.proposalSentOnce)
                else { continue }
                if handleStraggler(place, now) { continue }
                neighbours[place].follower.voteAskedAt = now.monotonic
                send(
                    .prepare(entry: pending, at: state.position), to: neighbour.life, epoch: candidate.epoch, &effects)
            }
        }
    }

    /// Asks those again who have not confirmed.
    ///
    /// By a time of its own: each entry that is proposed sets back that of the proposals, and while announces kept
    /// coming no lost CONFIRM would be said again.
    private mutating func confirmAgain(_ now: ClockReading, _ effects: inout Effects) {
        guard reads.takeResend(now: now.monotonic, pause: retryPause) else { return }
        broadcast(.confirm(round: reads.round), epoch: candidate.epoch, &effects)
    }

    /// A tracker is up and does not vote.
    ///
    /// - Returns: whether it is not to be asked now.
    private mutating func handleStraggler(_ place: Int, _ now: ClockReading) -> Bool {
        guard let since = neighbours[place].follower.voteAwaitedSince else { return false }
        let waited = now.monotonic - since
        switch policy.vote {
        case .majority: return false
        case .allDropped(let after):
            if waited >= after {
                neighbours[place].follower.isDropped = true
                neighbours[place].follower.welcomedIn = .zero
                return true
            }
            return false
        case .allAskedAgain(let every):
            // The first seconds are for messages that were lost; then at the policy's pace.
            guard waited >= policy.detectionTime else { return false }
            return now.monotonic - neighbours[place].follower.voteAskedAt < every
        }
    }

    // MARK: - Votes

    mutating func okReceived(_ ballot: Ballot, _ place: Int, _ now: ClockReading, _ effects: inout Effects) {
        let isAnyTaken = has(.oksOfAnotherEpoch) && proposer.proposed?.index == ballot.index
        guard phase == .master, ballot.epoch == candidate.epoch || isAnyTaken,
            neighbours[place].follower.welcomedIn == candidate.epoch
        else { return }
        neighbours[place].follower.voteAwaitedSince = nil
        if let pending = log.pending, pending.header.ballot == ballot {
            // Whoever accepts an entry has applied all before it.
            notePosition(Position(index: ballot.index - 1, chain: pending.header.previous), of: place)
        }
        let counted = isAnyTaken ? proposer.proposed ?? ballot : ballot
        proposer.okReceived(from: neighbours[place].life.id, counted)
    }

    mutating func errorReceived(
        _ ballot: Ballot, _ reason: RefusalReason, _ place: Int, _ epoch: Epoch, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard phase == .master else { return }
        switch reason {
        case .staleEpoch:
            if epoch > candidate.epoch {
                standAgain(above: epoch, now, &effects)
            }
        case .cannotStore:
            guard ballot.epoch == candidate.epoch, neighbours[place].follower.welcomedIn == candidate.epoch else {
                return
            }
            neighbours[place].follower.voteAwaitedSince = nil
            proposer.errorReceived(from: neighbours[place].life.id, ballot)
        }
    }

    /// Notes how far another tracker is, by whatever it says; an old message takes nothing back.
    mutating func notePosition(_ position: Position, of place: Int) {
        guard position.index >= neighbours[place].position.index else { return }
        neighbours[place].note(position, whileAt: state.index)
    }

    private mutating func countVotes(_ now: ClockReading, _ effects: inout Effects) {
        guard proposer.hasVotes else { return }
        // In a group the others have heard what it holds, and bring it in anew where nothing is decided in its place.
        if !isGroup { proposer.countRefusers(votingElectorate) }
        let isLone = !policy.hasBus && !isQuorumMode || has(.commitBeforeQuorum)
        switch isLone ? proposer.decision(of: admission.id) : proposer.decision(votingElectorate) {
        case .open: break
        case .committed:
            guard let entry = log.pending else { preconditionFailure("what is voted on is in the log") }
            if decidesAlone, !entry.header.isAlone {
                // The others have gone since: that nobody else has to agree must be on the disk.
                let kind = proposer.kind == .void ? Proposer.Kind.void : .inherited
                proposer.refused(.again)
                return propose(again: entry, as: kind, now, &effects)
            }
            proposer.committed()
            applyDecided(entry, now, &effects)
        case .refused: entryRefused(isNowhere: false, now, &effects)
        case .refusedByAll: entryRefused(isNowhere: true, now, &effects)
        }
    }

    /// The vote has refused the entry under way (rule 15).
    private mutating func entryRefused(isNowhere: Bool, _ now: ClockReading, _ effects: inout Effects) {
        guard let entry = log.pending else { preconditionFailure("what is voted on is in the log") }
        var consequence = proposer.consequence(
            isNowhere: isNowhere && !isGroup && log.durablePending == nil || has(.abortedRevived),
            now: now.monotonic, pause: policy.keepalive)
        if has(.inheritedGivenUp), proposer.kind == .inherited { consequence = isNowhere && !isGroup ? .drop : .void }
        switch consequence {
        case .wait: return
        case .again: return tryAgain(entry, now, &effects)
        case .void, .drop: break
        }
        // What this master has on its own disk somebody may find there.
        if proposer.kind == .void, consequence == .drop, log.durablePending != nil || has(.emptyEntryKept) {
            return tryAgain(entry, now, &effects)
        }
        if consequence == .void, !log.stores(entry) {
            proposer.errorReceived(from: admission.id, entry.header.ballot)
        }
        let tickets = gathering.tickets(of: entry)
        proposer.refused(consequence)
        postponeCommand(now)
        merging.beginAnew()
        if has(.abortToldEarly) { tellRefused(entry, now, &effects) }
        if consequence == .drop {
            log.dropPending()
            tellOfCluster(.aborted(index: entry.header.index, refused: tickets.count), &effects)
            for ticket in tickets.tickets {
                refuse(number: ticket.number, of: tickets.life(of: ticket), .notStored, now, &effects)
            }
            return
        }
        // Some may have it, or in a group want it anew: an empty entry is decided in its place before anybody is told.
        let ballot = proposer.propose(.void, candidate.epoch, index: entry.header.index, now: now.monotonic)
        var bytes: [UInt8] = []
        EntryHeader.reserve(in: &bytes)
        tickets.encode(into: &bytes)
        let header = EntryHeader(
            index: ballot.index, epoch: ballot.epoch, attempt: ballot.attempt, isAlone: decidesAlone,
            time: entry.header.time, updateCount: 0, ticketsOffset: UInt32(EntryHeader.byteCount), previous: state.chain
        )
        let chain = header.seal(&bytes)
        propose(Entry(sealed: bytes, header, chain: chain), now, &effects)
    }

    /// Proposes the same entry by a further attempt: who could not store it once is asked again.
    private mutating func tryAgain(_ entry: Entry, _ now: ClockReading, _ effects: inout Effects) {
        let kind = proposer.kind
        proposer.refused(.again)
        propose(again: entry, as: kind, now, &effects)
    }

    // MARK: - Handing over

    /// Makes way for a tracker that the policy prefers, when that has been in step for some keepalives
    /// (rule 6).
    private mutating func driveHandover(_ now: ClockReading, _ effects: inout Effects) {
        if let successor = handover.takeRefusal(now: now.monotonic) {
            // It has not taken the role: this node keeps it, and does not offer it again for a while.
            if let place = neighbours.place(of: successor.id) {
                neighbours[place].follower.inStepSince = now.monotonic
            }
            return
        }
        if let successor = handover.successor { return announceHandover(to: successor, now, &effects) }
        guard !neighbours.all.isEmpty, isServing, !merging.isUnderWay, !departure.isLeaving, !hasCommands,
            let successor = preferredInStep, let since = successor.follower.inStepSince,
            now.monotonic - since >= policy.keepalive * 4
        else { return }
        beginHandover(to: successor.life, now)
    }

    /// Tells the successor to stand, when it knows all that is decided, and the swarms of before a stop are gone.
    private mutating func announceHandover(to successor: Life, _ now: ClockReading, _ effects: inout Effects) {
        guard handover.isDue(now: now.monotonic, pause: retryPause), proposer.isIdle, log.pending == nil,
            !isBeginningEmpty
        else { return }
        let wasAnnounced = handover.announce(now: now.monotonic)
        if proposer.takeCommit() {
            broadcast(.commit(at: state.position), epoch: candidate.epoch, &effects)
        } else if wasAnnounced {
            send(.commit(at: state.position), to: successor, epoch: candidate.epoch, &effects)
        }
        send(.handover, to: successor, epoch: candidate.epoch, &effects)
    }

    /// Of those in step whom the policy prefers to this master, the one that it prefers to all.
    ///
    /// Where several come back together, the role is not handed from one to the next: it waits for that one.
    @inline(__always)
    private var preferredInStep: Neighbour? {
        var best: Int?
        for place in neighbours.all.indices where neighbours[place].follower.inStepSince != nil {
            let rival = best.map { neighbours[$0].life.id } ?? admission.id
            guard policy.election.prefers(neighbours[place].life.id, to: rival),
                mayTakeOver(neighbours[place])
            else { continue }
            best = place
        }
        return best.map { neighbours[$0] }
    }

    func mayTakeOver(_ neighbour: Neighbour) -> Bool {
        neighbour.isUp && neighbour.hasFullState && neighbour.follower.welcomedIn == candidate.epoch
            && !neighbour.follower.isDropped
            && electorate.includes(neighbour.life.id)
    }

    mutating func beginHandover(to life: Life, _ now: ClockReading) {
        handover.begin(to: life, until: now.monotonic + policy.detectionTime)
    }

    mutating func handoverReceived(_ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects) {
        guard phase == .following, mayVote, let following = office.following, following.life == sender,
            following.epoch == epoch, following.isWelcomed
        else { return }
        // What this master proposed last may be decided, and its COMMIT on the way. An entry of an earlier master waits
        // for nothing: while nobody asks for anything, no entry comes to take its place.
        if let pending = log.pending, pending.header.epoch == epoch { return }
        stand(now, &effects)
    }

    /// Notes whether a slave is in step with this master.
    mutating func noteStep(of place: Int, _ epoch: Epoch, _ now: ClockReading) {
        guard phase == .master else { return }
        let neighbour = neighbours[place]
        let isInStep =
            neighbour.follower.welcomedIn == candidate.epoch && epoch == candidate.epoch && neighbour.hasFullState
            && neighbour.position.index + Succession.inStepCount >= state.index
        if !isInStep {
            neighbours[place].follower.inStepSince = nil
        } else if neighbour.follower.inStepSince == nil {
            neighbours[place].follower.inStepSince = now.monotonic
        }
    }
}
