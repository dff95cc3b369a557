/// Missing the master: the pre-vote before an election, and who stands.
///
///     master heard ── silent for the detection time ──► suspects, says so ── a quorum suspects ──► the preferred one
///         ▲                                                  │                  stands at once, the others by and by
///         └────────────── a master is heard ─────────────────┘
///
/// A node that can send but not receive suspects alone, for ever, and harms nobody (rule 7).

import Primitives
import Wire

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
    @inline(__always)
    func voters(knowing known: [UInt32]) -> [UInt32] {
        if isQuorumMode, !has(.quorumOfTheLive) { return members }
        return cluster.neighbours.voters(
            with: cluster.id, welcomedIn: phase == .master ? election.epoch : nil, knowing: known)
    }

    /// The ids that vote in quorum mode.
    @inline(__always)
    var members: [UInt32] { state.members.isEmpty ? policy.members : state.members }

    /// Whether this node may vote: a member that holds the whole state.
    @inline(__always)
    var mayVote: Bool { mayAnswer && (!isQuorumMode || members.contains(cluster.id)) }

    /// Whether it may tell a candidate what it has, and that it misses the master.
    ///
    /// Who counts as a voter is for the candidate to say: one that was removed may be the only one to know it yet, and
    /// what it knows lets the others go on.
    @inline(__always)
    var mayAnswer: Bool {
        promise.isWhole && cluster.id != 0 && cluster.refusal == nil && cluster.lastStop != .recalling
    }

    // MARK: - The master

    /// A node says that it is master in an epoch, at a position.
    mutating func masterHeard(
        _ sender: Life, _ epoch: Epoch, _ position: Position, _ now: ClockReading, _ effects: inout Effects
    ) {
        if has(.staleMasterAccepted), epoch < promise.epoch, phase == .following {
            promise.epoch = epoch
            persistPromise(&effects)
        }
        if epoch < promise.epoch {
            // It is master no more, or of another part of what was one cluster: it is to hear of us.
            if phase == .master, let place = cluster.neighbours.place(of: sender.id) {
                return proposeMerge(place, now, &effects)
            }
            return send(keepalive, to: sender, &effects)
        }
        switch phase {
        case .master:
            guard epoch > election.epoch else { return }
            // In quorum mode a quorum has promised to follow it. In survivor mode it may be deaf: it has to answer.
            if isQuorumMode {
                stepDown(.superseded(epoch), now, &effects)
            } else if let place = cluster.neighbours.place(of: sender.id) {
                return probe(place, now, &effects)
            }
        case .candidate:
            abandonElection(now)
        case .following: break
        case .restoring, .draining, .failed, .stopped: return
        }
        if let place = cluster.neighbours.place(of: sender.id) { notePosition(position, of: place) }
        follow(sender, epoch, now, &effects)
        guard cluster.following?.life == sender, cluster.following?.epoch == epoch else { return }
        learn(position, now, &effects)
    }

    private mutating func follow(_ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects) {
        if let known = cluster.following, known.life == sender, known.epoch == epoch {
            cluster.following?.heardAt = now.monotonic
            if known.isInstalled { stopSuspecting() }
            return
        }
        if let ignored = cluster.ignored, ignored.life == sender, now.monotonic < ignored.until { return }
        if has(.preferredStandsAtOnce), mayVote, policy.election.prefers(cluster.id, to: sender.id) {
            return standInCluster(now, &effects)
        }
        if let known = cluster.following, known.isInstalled, !isQuorumMode, known.life != sender,
            now.monotonic - known.heardAt < policy.detectionTime
        {
            // Two masters after a partition settle it between them; who follows one goes with it.
            return
        }
        let since = cluster.following.map { $0.isInstalled ? now.monotonic : $0.since } ?? now.monotonic
        if has(.requestsDropped) { _ = cluster.book.removeAll() }
        cluster.following = Following(life: sender, epoch: epoch, heardAt: now.monotonic, since: since)
        cluster.lastMaster = sender.id
        sayHello(to: sender, now, &effects)
    }

    /// The master says that it is master no more: nobody waits for its silence.
    mutating func masterMadeWay(_ now: ClockReading) {
        cluster.following = nil
        cancelTransfer()
        cluster.aloneSince = now.monotonic
    }

    mutating func leaveReceived(_ place: Int, _ now: ClockReading, _ effects: inout Effects) {
        let life = cluster.neighbours[place].life
        cluster.neighbours.markDown(place)
        effects.observations.append(.trackerDown(life.id))
        guard cluster.following?.life == life else { return }
        masterMadeWay(now)
        // It said so itself: there is nothing to wait for.
        cluster.aloneSince = now.monotonic - policy.detectionTime
    }

    // MARK: - Suspicion

    /// A master that was heard and never answered is heeded no more for a while.
    mutating func attendToMaster(_ now: ClockReading, _ effects: inout Effects) {
        guard let following = cluster.following, !following.isInstalled, phase == .following,
            now.monotonic - following.since >= policy.detectionTime * 2
        else { return }
        cluster.ignored = ClusterState.Ignored(
            life: following.life, until: now.monotonic + policy.detectionTime * 10)
        cluster.following = nil
        cluster.aloneSince = now.monotonic - policy.detectionTime
    }

    /// Before anything else: whether the master, or this master's quorum, was silent for too long.
    mutating func noticeSilence(_ now: ClockReading, _ effects: inout Effects) {
        guard cluster.isBusUp else { return }
        if isGroup, let due = cluster.tickAt, now.monotonic - due >= policy.detectionTime {
            // This process was held up. What has piled up in its sockets the others have answered long ago.
            cluster.deafUntil = now.monotonic + retryPause
        }
        switch phase {
        case .following: attendToSuspicion(now, &effects)
        case .master:
            if isQuorumMode, now.monotonic - cluster.heardQuorumAt >= policy.detectionTime, electorate.voters.count > 1,
                !has(.minorityStays)
            {
                stepDown(.quorumLost, now, &effects)
            }
        case .candidate:
            // Answers that it heard before it was held up say nothing about now.
            if isQuorumMode, let due = election.givesUpAt, due <= now.monotonic { abandonElection(now) }
        case .restoring, .draining, .failed, .stopped: break
        }
    }

    mutating func attendToSuspicion(_ now: ClockReading, _ effects: inout Effects) {
        let heardAt = cluster.following?.heardAt ?? cluster.aloneSince
        guard now.monotonic - heardAt >= policy.detectionTime else { return stopSuspecting() }
        if cluster.suspectingSince == nil {
            cluster.suspectingSince = now.monotonic
            cluster.sentAt = now.monotonic - policy.keepalive
            if cluster.transfer != nil { cluster.following?.isInstalled = false }
            cancelTransfer()
            effects.observations.append(.suspects(promise.epoch))
        }
        guard mayAnswer else {
            cluster.standAt = nil
            return carryOnAlone(now, &effects)
        }
        if now.monotonic - cluster.sentAt >= policy.keepalive / 2 {
            cluster.sentAt = now.monotonic
            broadcast(.suspect(at: state.position), &effects)
        }
        considerStanding(now, &effects)
    }

    /// In survivor mode, the last one left makes do with what it has.
    private mutating func carryOnAlone(_ now: ClockReading, _ effects: inout Effects) {
        guard !isQuorumMode, !promise.isWhole, !cluster.isBecomingWhole, !log.isWriting, cluster.id != 0,
            let since = cluster.suspectingSince, now.monotonic - since >= policy.detectionTime,
            !cluster.neighbours.all.contains(where: { $0.isUp && $0.isWhole })
        else { return }
        becomeWhole(now, &effects)
    }

    mutating func stopSuspecting() {
        cluster.suspectingSince = nil
        cluster.standAt = nil
    }

    mutating func suspectReceived(
        _ position: Position, _ place: Int, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        cluster.neighbours[place].suspectedAt = now.monotonic
        cluster.neighbours[place].suspectedEpoch = epoch
        cluster.neighbours[place].note(position, whileAt: state.index)
        cluster.neighbours[place].isWhole = true
        // Who knows of a higher epoch says so.
        if promise.epoch > epoch { send(keepalive, to: cluster.neighbours[place].life, &effects) }
        if phase == .following, cluster.suspectingSince != nil { considerStanding(now, &effects) }
    }

    /// Stands when a quorum misses the master and it is this node's turn.
    private mutating func considerStanding(_ now: ClockReading, _ effects: inout Effects) {
        guard mayVote, phase == .following else {
            cluster.standAt = nil
            return
        }
        var suspecters = [cluster.id]
        for neighbour in cluster.neighbours.all where neighbour.isUp {
            if hasSuspected(neighbour, now) { suspecters.append(neighbour.life.id) }
        }
        guard electorate.isQuorum(suspecters) || has(.noPreVote) else {
            cluster.standAt = nil
            return
        }
        if cluster.standAt == nil {
            let rank = rank(now)
            var pause = policy.keepalive / 2 * rank
            if rank > 0 { pause = pause + cluster.random.between(.zero, policy.keepalive / 4) }
            cluster.standAt = now.monotonic + pause
        }
        if let due = cluster.standAt, due <= now.monotonic { standInCluster(now, &effects) }
    }

    /// Entries that one may be behind the furthest and still be in step: the others keep far more, to send it.
    public static let inStepCount: UInt64 = 8

    /// How many are to stand before this node: of those that are left, the policy's order, and last whoever is far
    /// behind.
    ///
    /// All voters that live count, not only those that have said already that they miss the master: the preferred one
    /// may be a few milliseconds later with it. An entry or two that one has applied and another has not yet are no
    /// reason to pass it over, for it fetches them. Who is far behind might not even get what it lacks: the others may
    /// have cut it from their logs. Whoever has found that out comes last, too, and at those who have cut it whoever
    /// lacks it: else the dice would decide between them, again and again. That is believed only of who has just said
    /// so: a keepalive may be old.
    private func rank(_ now: ClockReading) -> Int {
        let missed = cluster.following?.life.id
        var ids = [cluster.id]
        var behind: [UInt32] = []
        var newest = state.index
        for place in cluster.neighbours.all.indices {
            let neighbour = cluster.neighbours[place]
            let id = neighbour.life.id
            guard neighbour.isUp, neighbour.isWhole, id != missed, !isQuorumMode || members.contains(id) else {
                continue
            }
            ids.append(id)
            if hasSuspected(neighbour, now) { newest = max(newest, neighbour.position.index) }
        }
        #if PLANTED_BUGS
            if has(.rankOfSuspecters) { return rankOfSuspecters(now) }
        #endif
        for place in cluster.neighbours.all.indices {
            let neighbour = cluster.neighbours[place]
            let index = neighbour.position.index
            let isCut = isQuorumMode && index + 1 < log.tailStart && !has(.cutLogWaitedFor)
            if hasSuspected(neighbour, now), isCut || index + TrackerNode.inStepCount < newest {
                behind.append(neighbour.life.id)
            }
        }
        let isBehind = state.index + (cluster.couldNotRecover ? 0 : TrackerNode.inStepCount) < newest
        var rank = 0
        var isBefore = true
        for id in policy.election.order(ids, after: cluster.lastMaster) {
            if id == cluster.id {
                isBefore = false
            } else if behind.contains(id) == isBehind ? isBefore : isBehind {
                rank += 1
            }
        }
        return rank
    }

    func hasSuspected(_ neighbour: Neighbour, _ now: ClockReading) -> Bool {
        neighbour.suspectedAt.map { now.monotonic - $0 < policy.detectionTime } ?? false
    }
}
