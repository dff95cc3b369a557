// A node on a bus: the door for messages, what time brings, and what goes out.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - Itself

    @inline(__always)
    var life: Life { Life(id: admission.id, incarnation: promise.incarnation) }

    @inline(__always)
    var policy: ClusterConfiguration { configuration.cluster }

    /// A pause between two tries of the same.
    @inline(__always)
    var retryPause: Duration { policy.keepalive / 4 }

    // MARK: - The bus

    func send(_ body: ClusterMessage.Body, to life: Life, epoch: Epoch? = nil, _ effects: inout Effects) {
        guard policy.hasBus else { return }
        effects.messages.append(
            ClusterMessage(sender: self.life, destination: .one(life), epoch: epoch ?? promise.epoch, body: body))
    }

    func broadcast(_ body: ClusterMessage.Body, epoch: Epoch? = nil, _ effects: inout Effects) {
        guard policy.hasBus else { return }
        effects.messages.append(
            ClusterMessage(sender: self.life, destination: .all, epoch: epoch ?? promise.epoch, body: body))
    }

    /// Tells the operator what has come to pass among trackers; of one that is alone there is no more to tell than
    /// that it serves, or cannot.
    func tellOfCluster(_ observation: Observation, _ effects: inout Effects) {
        if policy.hasBus { effects.observations.append(observation) }
    }

    @inline(__always)
    var keepalive: ClusterMessage.Body {
        .keepalive(
            Keepalive(
                role: clusterRole, position: state.position, digest: state.digest,
                hasFullState: holdsWholeState, settings: self.settings))
    }

    @inline(__always)
    var clusterRole: ClusterRole {
        switch phase {
        case .master: return .master
        case .candidate: return .candidate
        case .restoring, .following, .draining, .failed, .stopped:
            guard office.isWelcomed, holdsWholeState else {
                return .newcomer
            }
            return .slave
        }
    }

    // MARK: - Hearing

    mutating func hear(_ message: ClusterMessage, _ now: ClockReading, _ effects: inout Effects) {
        guard policy.hasBus, office.isBusUp, office.takesPart else {
            return
        }
        if case .one(let addressee) = message.destination, addressee != life { return }
        let sender = message.sender
        guard sender.incarnation != promise.incarnation, !isExcluded(message, now, &effects) else { return }
        guard
            candidate.admitRound(
                message.epoch.round, promised: promise.epoch.round, now: now.monotonic, pause: policy.detectionTime)
        else {
            counters.implausible += 1
            return
        }
        if sender.id == 0 {
            // It has no number yet, and wants one.
            if case .hello(let hello) = message.body { helloReceived(hello, sender, message.epoch, now, &effects) }
            return
        }
        if sender.id == admission.id { return duplicateIDHeard(message, now, &effects) }
        let place: Int
        switch neighbours.heard(sender, now: now.monotonic, detectionTime: policy.detectionTime) {
        case .known(let known): place = known
        case .appeared(let appeared):
            place = appeared
            effects.observations.append(.trackerUp(sender.id))
            reports.note(sender.id)
            proposer.forgetVotes(of: sender.id)
            // Others are to know of this one soon.
            timers.hurryKeepalive(now: now.monotonic)
        case .taken:
            refuseDuplicateID(message, &effects)
            return
        case .noRoom:
            if case .hello = message.body, phase == .master { send(.refused(.clusterFull), to: sender, &effects) }
            return
        }
        candidate.note(message.epoch.round)
        neighbours[place].epoch = message.epoch
        neighbours[place].promised = max(neighbours[place].promised, message.epoch)
        if has(.lowerMasterStays), phase == .master, message.epoch > candidate.epoch { return }
        if message.destination != .all {
            // It hears this node.
            office.noteHeard(by: sender, now: now.monotonic)
            detector.noteAnswer(of: sender)
        }
        dispatch(message, place, now, &effects)
    }

    /// Two lives with one number: the one that this master has heard first stays.
    ///
    /// Both may have been given it by masters on the two sides of a partition, and follow this one by now.
    private func refuseDuplicateID(_ message: ClusterMessage, _ effects: inout Effects) {
        guard phase == .master else { return }
        switch message.body {
        case .hello, .keepalive: send(.refused(.idTaken), to: message.sender, &effects)
        default: break
        }
    }

    private mutating func dispatch(
        _ message: ClusterMessage, _ place: Int, _ now: ClockReading, _ effects: inout Effects
    ) {
        let sender = message.sender
        let epoch = message.epoch
        switch message.body {
        case .keepalive(let keepalive): keepaliveReceived(keepalive, place, epoch, now, &effects)
        case .suspect(let position): suspectReceived(position, place, epoch, now, &effects)
        case .election: electionReceived(sender, epoch, now, &effects)
        case .answer(let answer): answerReceived(answer, sender, epoch, now, &effects)
        case .coordinator(let position): masterHeard(sender, epoch, position, now, &effects)
        case .prepare(let entry, let position): prepareReceived(entry, sender, epoch, position, now, &effects)
        case .ok(let ballot): okReceived(ballot, place, now, &effects)
        case .error(let ballot, let reason): errorReceived(ballot, reason, place, epoch, now, &effects)
        case .commit(let position): masterHeard(sender, epoch, position, now, &effects)
        case .confirm(let round): confirmReceived(round, sender, epoch, now, &effects)
        case .confirmed(let round): confirmedReceived(round, place, epoch, now, &effects)
        case .fetch(let position): fetchReceived(position, place, &effects)
        case .entries(let entries, let position): entriesReceived(entries, sender, epoch, position, now, &effects)
        case .hello(let hello): helloReceived(hello, sender, epoch, now, &effects)
        case .welcome(let welcome): welcomeReceived(welcome, sender, epoch, now, &effects)
        case .refused(let refusal): refusalReceived(refusal, sender, epoch, now, &effects)
        case .fetchChunk(let number): chunkWanted(number, sender, now, &effects)
        case .chunk(let number, let index, let bytes):
            chunkReceived(SnapshotChunk(number: number, index: index, bytes: bytes), sender, now, &effects)
        case .welcomeDone(let position, let digest): welcomeDone(place, position, digest, epoch, now, &effects)
        case .forward(let requests, let floor, let index):
            forwardReceived(requests, floor: floor, index: index, place, epoch, now, &effects)
        case .answered(let answers): answeredReceived(answers, sender, epoch, now, &effects)
        case .handover: handoverReceived(sender, epoch, now, &effects)
        case .leave: leaveReceived(place, now, &effects)
        case .stop: stopReceived(sender, now, &effects)
        case .report(let report): reports.take(report, of: sender, now)
        // Of the runtime's, which has seen to it.
        case .order, .ordered: break
        }
    }

    private mutating func keepaliveReceived(
        _ keepalive: Keepalive, _ place: Int, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        neighbours[place].role = keepalive.role
        neighbours[place].note(keepalive.position, whileAt: state.index)
        neighbours[place].hasFullState = keepalive.hasFullState
        if keepalive.hasFullState { neighbours[place].memory.isForgetful = false }
        let sender = neighbours[place].life
        if phase == .master, !isQuorumMode, keepalive.role == .slave || keepalive.role == .master,
            neighbours[place].promised < candidate.epoch
        {
            // It follows another master, or is one: what it was let in for was an old word, and it does not vote here.
            neighbours[place].follower.welcomedIn = .zero
        }
        if keepalive.role == .master {
            masterHeard(sender, epoch, keepalive.position, now, &effects)
            settleOldVote(keepalive.position, sender, epoch, now, &effects)
            compareDigest(keepalive, sender, epoch, now, &effects)
        } else {
            noteStep(of: place, epoch, now)
            if keepalive.role == .slave, epoch > neighbours[place].suspicion.epoch {
                // It misses that master no more: it follows a later one, whom this node may not hear.
                neighbours[place].suspicion.at = nil
            }
            if phase == .master, epoch == candidate.epoch, neighbours[place].follower.welcomedIn != epoch {
                // It was dropped for its silence, or its welcome was forgotten: it follows, and is heard again.
                admit(sender, keepalive.position, hasFullState: keepalive.hasFullState, now, &effects)
            }
            if office.isResignation(of: sender, as: keepalive.role, in: epoch) { masterResigned(now) }
            if phase == .master, epoch > candidate.epoch, keepalive.hasFullState {
                voterPromisedHigher(place, epoch, now, &effects)
            }
        }
    }

    // MARK: - Time

    /// What is due, and what the step has made possible.
    mutating func driveCluster(_ now: ClockReading, _ effects: inout Effects) {
        guard office.takesPart, office.isBusUp else {
            // Who has left writes nothing behind its last word, and who has not begun does not know yet what its disk
            // holds.
            if office.takesPart || phase == .restoring && has(.writtenBeforeStart) { writeLog(now, &effects) }
            leaveWhenDone(now, &effects)
            return
        }
        let gone = neighbours.markSilent(now: now.monotonic, detectionTime: policy.detectionTime)
        for id in gone { effects.observations.append(.trackerDown(id)) }
        driveMasterProbe(now, &effects)
        if retries, timers.takeRetry(now: now.monotonic, pause: retryPause) { tick(now, &effects) }
        if phase == .following { pumpRequests(now, &effects) }
        switch phase {
        case .master: lead(now, &effects)
        case .candidate: driveElection(now, &effects)
        case .following: driveSuspicion(now, &effects)
        case .restoring, .draining, .failed, .stopped: break
        }
        writeLog(now, &effects)
        sendSettled(&effects)
        sendOutbox(&effects)
        sendKeepalive(now, &effects)
        leaveWhenDone(now, &effects)
    }

    private mutating func tick(_ now: ClockReading, _ effects: inout Effects) {
        if !acceptor.isDurable, !writes.hasPromise, phase == .following {
            // It could not be written when it was made; without, there is no vote.
            persistPromise(&effects)
        }
        recallStopAgain(&effects)
        sendStop(&effects)
        dropStaleRequests(now, &effects)
        reports.forgetSilent(since: now.monotonic + .zero - policy.detectionTime * 4)
        admission.forgetRefusal(now: now.monotonic, after: policy.detectionTime * 2)
        switch phase {
        case .following:
            askToJoin(now, &effects)
            continueTransfer(now, &effects)
            if let following = office.following, following.isWelcomed {
                router.returnForwarded(sentBefore: now.monotonic + .zero - policy.keepalive, epoch: following.epoch)
            }
        case .master, .candidate, .restoring, .draining, .failed, .stopped: break
        }
    }

    /// Forgets requests whose clients have asked again by now.
    mutating func dropStaleRequests(_ now: ClockReading, _ effects: inout Effects) {
        let leading = phase == .master ? candidate.epoch : nil
        let keepsReads = has(.staleReadsKept)
        for request in router.removeStale(now: now.monotonic, leading: leading, keepsReads: keepsReads) {
            // Whoever is no master of a group cannot tell what its master has answered.
            if !isGroup || phase == .master { counters.timedOut += 1 }
            if let id = request.waiting.clientRequest {
                effects.answers.append(Answer(id: id, content: .failure(.notServing)))
            }
        }
    }

    /// Tells the others how this tracker fares, and whom it hears.
    mutating func sendReport(_ report: TrackerReport, _ now: Instant, _ effects: inout Effects) {
        guard office.isBusUp, office.takesPart, admission.id != 0 else { return }
        var report = report
        report.heard = neighbours.heard(now: now)
        broadcast(.report(report), &effects)
    }

    private mutating func sendKeepalive(_ now: ClockReading, _ effects: inout Effects) {
        guard policy.hasBus, timers.takeKeepalive(now: now.monotonic, interval: policy.keepalive) else { return }
        if admission.id != 0 { broadcast(keepalive, &effects) }
    }

}
