// Missing the master.

import Primitives
import Wire

/// Missing the master: the pre-vote before an election, and who stands.
///
///     master heard ── silent for the detection time ──► suspects, says so ── a quorum suspects ──► the preferred one
///         ▲                                                  │                  stands at once, the others by and by
///         └────────────── a master is heard ─────────────────┘
///
/// A node that can send but not receive suspects alone, for ever, and harms nobody (rule 7).
extension TrackerNode {
    /// The voters as this node sees them.
    ///
    /// In quorum mode: the members that are in the log, or were configured while there is none. In survivor mode: this
    /// node and those it has heard within the detection time that hold the whole state; of a master, those that it has
    /// welcomed, for who comes from another history cannot vote in this one.
    @inline(__always)
    var electorate: Electorate { Electorate(voters: voters(knowing: [])) }

    /// The ids of the electorate.
    ///
    /// - Parameter known: what they were at an earlier look; given back where they are the same still.
    /// - Returns: in rising order.
    @inline(__always)
    func voters(knowing known: [UInt32]) -> [UInt32] {
        if isQuorumMode, !has(.quorumOfTheLive) { return members }
        return neighbours.voters(
            with: admission.id, welcomedIn: phase == .master ? candidate.epoch : nil, knowing: known)
    }

    /// The ids that vote in quorum mode.
    @inline(__always)
    var members: [UInt32] { state.members.isEmpty ? policy.members : state.members }

    /// Whether this node may vote: a member that holds the whole state.
    @inline(__always)
    var mayVote: Bool { mayAnswer && (!isQuorumMode || members.contains(admission.id)) }

    /// Whether it may tell a candidate what it has, and that it misses the master.
    ///
    /// Who counts as a voter is for the candidate to say: one that was removed may be the only one to know it yet, and
    /// what it knows lets the others go on.
    @inline(__always)
    var mayAnswer: Bool {
        promise.hasFullState && admission.id != 0 && admission.refusal == nil && !acceptor.hasNote
    }

    // MARK: - The master

    /// A node says that it is master in an epoch, at a position.
    mutating func masterHeard(
        _ sender: Life, _ epoch: Epoch, _ position: Position, _ now: ClockReading, _ effects: inout Effects
    ) {
        if has(.staleMasterAccepted), epoch < promise.epoch, phase == .following {
            acceptor.stand(for: epoch)
            persistPromise(&effects)
        }
        if epoch < promise.epoch {
            // It is master no more, or of another part of what was one cluster: it is to hear of us.
            if phase == .master, let place = neighbours.place(of: sender.id) {
                return proposeMerge(place, now, &effects)
            }
            return send(keepalive, to: sender, &effects)
        }
        switch phase {
        case .master:
            guard epoch > candidate.epoch else { return }
            // In quorum mode a quorum has promised to follow it. In survivor mode it may be deaf: it has to answer.
            if isQuorumMode {
                stepDown(.superseded(epoch), now, &effects)
            } else if let place = neighbours.place(of: sender.id) {
                return probe(place, now, &effects)
            }
        case .candidate:
            abandonElection(now)
        case .following: break
        case .restoring, .draining, .failed, .stopped: return
        }
        if let place = neighbours.place(of: sender.id) { notePosition(position, of: place) }
        follow(sender, epoch, now, &effects)
        guard office.follows(sender, in: epoch) else { return }
        learn(position, now, &effects)
    }

    private mutating func follow(_ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects) {
        if office.follows(sender, in: epoch) {
            detector.expectMaster(from: now.monotonic)
            if office.isWelcomed { detector.stopSuspecting() }
            return
        }
        if office.isLate(epoch, of: sender) || detector.ignores(sender, now: now.monotonic) { return }
        if has(.preferredStandsAtOnce), mayVote, policy.election.prefers(admission.id, to: sender.id) {
            return stand(now, &effects)
        }
        if let known = office.following, known.isWelcomed, !isQuorumMode, known.life != sender,
            !detector.isSilent(now: now.monotonic)
        {
            // Two masters after a partition settle it between them; who follows one goes with it.
            return
        }
        let since = office.following.map { $0.isWelcomed ? now.monotonic : $0.since } ?? now.monotonic
        if has(.requestsDropped) { _ = router.removeAll() }
        office.follow(sender, epoch, since: since)
        detector.expectMaster(from: now.monotonic)
        candidate.note(master: sender.id)
        sendHello(to: sender, now, &effects)
    }

    mutating func leaveReceived(_ place: Int, _ now: ClockReading, _ effects: inout Effects) {
        let life = neighbours[place].life
        neighbours.markDown(place)
        effects.observations.append(.trackerDown(life.id))
        guard office.follows(life) else { return }
        masterResigned(now)
        // It said so itself: there is nothing to wait for.
        detector.expectMaster(by: now.monotonic)
    }

    // MARK: - Suspicion

    /// A master that was heard and never answered is heeded no more for a while.
    mutating func driveMasterProbe(_ now: ClockReading, _ effects: inout Effects) {
        guard let following = office.following, !following.isWelcomed, phase == .following,
            now.monotonic - following.since >= policy.detectionTime * 2
        else { return }
        office.unfollow()
        detector.ignore(following.life, now: now.monotonic)
    }

    /// Before anything else: whether the master, or this master's quorum, was silent for too long.
    mutating func noticeSilence(_ now: ClockReading, _ effects: inout Effects) {
        guard office.isBusUp else { return }
        if isGroup, timers.lateness(now: now.monotonic) >= policy.detectionTime {
            // This process was held up. What has piled up in its sockets the others have answered long ago.
            router.ignoreSockets(until: now.monotonic + retryPause)
        }
        switch phase {
        case .following: driveSuspicion(now, &effects)
        case .master:
            if isQuorumMode, !detector.wasFollowed(now: now.monotonic), electorate.voters.count > 1,
                !has(.minorityStays)
            {
                stepDown(.quorumLost, now, &effects)
            }
        case .candidate:
            // Answers that it heard before it was held up say nothing about now.
            if isQuorumMode, let due = candidate.electionDeadline, due <= now.monotonic { abandonElection(now) }
        case .restoring, .draining, .failed, .stopped: break
        }
    }

    mutating func driveSuspicion(_ now: ClockReading, _ effects: inout Effects) {
        guard detector.isSilent(now: now.monotonic) else { return detector.stopSuspecting() }
        if detector.suspect(now: now.monotonic) {
            if transfer.isFetching { office.revokeWelcome() }
            cancelTransfer()
            tellOfCluster(.suspects(promise.epoch), &effects)
        }
        guard mayAnswer else {
            detector.loseTurn()
            return continueAsLastSurvivor(now, &effects)
        }
        if detector.takeSuspicionNotice(now: now.monotonic, pause: policy.keepalive / 2) {
            broadcast(.suspect(at: state.position), &effects)
        }
        considerStanding(now, &effects)
    }

    /// In survivor mode, the last one left makes do with what it has.
    private mutating func continueAsLastSurvivor(_ now: ClockReading, _ effects: inout Effects) {
        guard !isQuorumMode, !promise.hasFullState, !acceptor.isConfirming, !log.isWriting, admission.id != 0,
            detector.isLost(now: now.monotonic),
            !neighbours.all.contains(where: { $0.isUp && $0.hasFullState })
        else { return }
        confirmFullState(now, &effects)
    }

    mutating func suspectReceived(
        _ position: Position, _ place: Int, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        neighbours[place].suspicion.at = now.monotonic
        neighbours[place].suspicion.epoch = epoch
        neighbours[place].note(position, whileAt: state.index)
        neighbours[place].hasFullState = true
        // Who knows of a higher epoch says so.
        if promise.epoch > epoch { send(keepalive, to: neighbours[place].life, &effects) }
        if phase == .following, detector.isSuspecting { considerStanding(now, &effects) }
    }

    /// Stands when a quorum misses the master and it is this node's turn.
    private mutating func considerStanding(_ now: ClockReading, _ effects: inout Effects) {
        guard mayVote, phase == .following else { return detector.loseTurn() }
        var suspecters = [admission.id]
        for neighbour in neighbours.all where neighbour.isUp {
            if hasSuspected(neighbour, now) { suspecters.append(neighbour.life.id) }
        }
        guard electorate.isQuorum(suspecters) || has(.noPreVote) else { return detector.loseTurn() }
        var pause = Duration.zero
        if detector.standsAt == nil {
            let rank = rank(now)
            pause = policy.keepalive / 2 * rank
            if rank > 0 { pause = pause + pauses.between(.zero, policy.keepalive / 4) }
        }
        if detector.takeTurn(now: now.monotonic, after: pause) { stand(now, &effects) }
    }

    /// How many of those that are left are to stand before this node.
    private func rank(_ now: ClockReading) -> Int {
        #if PLANTED_BUGS
            if has(.rankOfSuspecters) { return rankOfSuspecters(now) }
        #endif
        let missed = office.following?.life.id
        var others: [Succession.Candidate] = []
        for place in neighbours.all.indices {
            let neighbour = neighbours[place]
            let id = neighbour.life.id
            guard neighbour.isUp, neighbour.hasFullState, id != missed, !isQuorumMode || members.contains(id) else {
                continue
            }
            let index = hasSuspected(neighbour, now) ? neighbour.position.index : nil
            others.append(Succession.Candidate(id: id, index: index))
        }
        let succession = Succession(
            own: Succession.Candidate(id: admission.id, index: state.index), couldNotRecover: candidate.couldNotRecover,
            cutThrough: isQuorumMode && !has(.cutLogWaitedFor) ? log.tailStart - 1 : nil)
        return succession.rank(among: others, by: policy.election, after: candidate.lastMaster)
    }

    func hasSuspected(_ neighbour: Neighbour, _ now: ClockReading) -> Bool {
        neighbour.suspicion.at.map { now.monotonic - $0 < policy.detectionTime } ?? false
    }
}
