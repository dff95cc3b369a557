// Standing for master, answering those who stand, and coming into the role or out of it.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Standing

    /// A promise is on the disk: what depends on it may go out.
    mutating func promisePersisted(_ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects) {
        guard epoch == promise.epoch, office.isBusUp else { return }
        if phase == .candidate, candidate.promisePersisted(epoch) {
            candidate.answerReceived(
                life, voterAnswer(log.pending), epoch: epoch)
            candidate.noteAsked(now: now.monotonic)
            broadcast(.election, &effects)
            checkElected(now, &effects)
        } else if let candidate = acceptor.takeCandidate() {
            if mayAnswer { sendAnswer(to: candidate, &effects) }
        }
    }

    /// A promise could not be written: nothing that depends on it goes out.
    mutating func promiseNotPersisted(_ now: ClockReading, _ effects: inout Effects) {
        acceptor.promiseNotWritten()
        if phase == .candidate, !candidate.isLeading { abandonElection(now) }
    }

    private func sendAnswer(to candidate: Life, _ effects: inout Effects) {
        send(.answer(voterAnswer(has(.answerWithoutPending) ? nil : log.pending)), to: candidate, &effects)
    }

    private func voterAnswer(_ pending: Entry?) -> VoterAnswer {
        VoterAnswer(position: state.position, pending: pending, leftInOrder: departure.wasInOrder)
    }

    mutating func driveElection(_ now: ClockReading, _ effects: inout Effects) {
        if let due = candidate.electionDeadline, due <= now.monotonic {
            if candidate.phase == .recovering, !isQuorumMode { return takeOffice(now, &effects) }
            return abandonElection(now)
        }
        guard candidate.phase == .asking || candidate.phase == .recovering else { return }
        guard now.monotonic - candidate.askedAt >= retryPause else { return }
        candidate.noteAsked(now: now.monotonic)
        if candidate.phase == .asking {
            broadcast(.election, &effects)
            // In survivor mode those who voted may have gone since.
            checkElected(now, &effects)
        } else {
            recover(now, &effects)
        }
    }

    // MARK: - Voting

    mutating func electionReceived(_ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects) {
        guard mayAnswer else { return }
        guard epoch.id == sender.id || has(.epochShared) else { return send(keepalive, to: sender, &effects) }
        switch acceptor.verdict(on: epoch) {
        case .isStale: return send(keepalive, to: sender, &effects)
        case .isPromised(let isDurable):
            if isDurable { sendAnswer(to: sender, &effects) }
            return
        case .isNew: break
        }
        if !isQuorumMode, hasLiveMaster(now), handover.successor != sender, !office.follows(sender) { return }
        switch phase {
        case .master: stepDown(.superseded(epoch), now, &effects)
        case .candidate: abandonElection(now)
        case .following: break
        case .restoring, .draining, .failed, .stopped: return
        }
        if !has(.prepareAfterPromise) { office.unfollow() }
        cancelTransfer()
        detector.stopSuspecting()
        if office.following == nil { detector.expectMaster(from: now.monotonic) }
        acceptor.promise(epoch, to: sender)
        persist(.promise(promise), .promise(epoch), &effects)
        if has(.answerBeforeDurable) { sendAnswer(to: sender, &effects) }
    }

    /// Whether this node is a master, or follows one that it hears.
    private func hasLiveMaster(_ now: ClockReading) -> Bool {
        if phase == .master { return true }
        guard office.isWelcomed else { return false }
        return !detector.isSilent(now: now.monotonic)
    }

    mutating func answerReceived(
        _ answer: VoterAnswer, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        // Whoever was held up may hear an answer only when its giver has lost its memory, and its place (`admit`).
        if let due = candidate.electionDeadline, due <= now.monotonic { return }
        candidate.answerReceived(sender, answer, epoch: epoch)
        if phase == .candidate { checkElected(now, &effects) }
    }

    // MARK: - Coming into office

    /// Whether a quorum of the voters, as they are now, has promised to follow.
    @inline(__always)
    var isElected: Bool {
        electorate.isQuorum(candidate.answers.lazy.map { $0.life.id })
            || has(.electedByMinority) && candidate.answers.count * 2 + 1 >= electorate.voters.count
    }

    private mutating func checkElected(_ now: ClockReading, _ effects: inout Effects) {
        guard isElected else { return }
        if candidate.phase == .asking {
            candidate.beginRecovery(electionDeadline: now.monotonic + policy.detectionTime)
        }
        recover(now, &effects)
    }

    /// Fetches what a voter knows to be decided and this node does not; then leads.
    mutating func recover(_ now: ClockReading, _ effects: inout Effects) {
        guard candidate.phase == .recovering, isElected else { return }
        if let most = candidate.mostAdvanced, most.position.index > state.index, !has(.recoverySkipped) {
            if let pending = log.pending, pending.position == most.position, pending.header.previous == state.chain {
                // It was accepted here, too; the voter that knows it decided may have cut it from its log.
                applyDecided(pending, now, &effects)
                return recover(now, &effects)
            }
            return send(.fetch(after: state.position), to: most.life, &effects)
        }
        // Nobody can send what it lacks: one of them has to lead.
        if isQuorumMode, candidate.isAnyOutOfReach(ahead: state.index) { return abandonElection(now) }
        takeOffice(now, &effects)
    }

    // MARK: - Leaving office

    /// A voter has promised more than this master has, and will not hear it again.
    mutating func voterPromisedHigher(_ place: Int, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects) {
        guard isQuorumMode, neighbours[place].role == .slave, !has(.candidateOutbid) else {
            return standAgain(above: epoch, now, &effects)
        }
        // Somebody leads that epoch whom this master may not hear, nor be heard by: they would outbid each other by
        // what the voter tells them, for as long as that lasts.
        stepDown(.superseded(epoch), now, &effects)
    }

    /// A voter has promised an epoch that nobody leads: this master needs a higher one to be heard by it.
    mutating func standAgain(above epoch: Epoch, _ now: ClockReading, _ effects: inout Effects) {
        guard !isClaimed(epoch) || has(.candidateOutbid) else { return }
        candidate.note(epoch.round)
        stepDown(.superseded(epoch), now, &effects)
        let mayStand = candidate.mayStandAgain(now: now.monotonic, pause: policy.detectionTime)
        guard mayVote, mayStand || has(.candidateOutbid) else { return }
        candidate.noteStoodAgain(now: now.monotonic)
        stand(now, &effects)
    }

    /// Whether the tracker that an epoch belongs to is there, and stands or leads.
    ///
    /// It is not to be outbid, for it would do the same, and so on: it gets the votes or gives up, and of two masters
    /// one makes way for the other. Whoever is being handed the role stands, though its voters may be heard first.
    private func isClaimed(_ epoch: Epoch) -> Bool {
        guard let other = neighbours[id: epoch.id], other.isUp else { return false }
        return other.role == .candidate || other.role == .master || handover.successor == other.life
    }
}
