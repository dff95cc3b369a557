// The few moments at which several machines change together.
//
// Everywhere else an event goes to one machine, and what that says is carried out. Here is what a change of the part
// that a tracker plays means for all of them: a machine that is new has to be thought of in this file, and in no other.

import Primitives
import Wire

extension TrackerNode {
    // MARK: - The bus

    mutating func connectBus(_ now: ClockReading, _ effects: inout Effects) {
        guard !office.isBusUp else { return }
        office.busConnected()
        detector.expectMaster(from: now.monotonic)
        timers.begin(now: now.monotonic)
    }

    /// Without its bus a node is blind: it answers nobody until it is back and caught up, for else a dead broker would
    /// make every node a master.
    mutating func loseBus(_ now: ClockReading, _ effects: inout Effects) {
        guard policy.hasBus, office.isBusUp else { return }
        if phase == .master { stepDown(.busLost, now, &effects) }
        if phase == .candidate { abandonElection(now) }
        office.busLost()
        cancelTransfer()
        neighbours.forgetAll()
        detector.stopSuspecting()
        timers.end()
        effects.observations.append(.fenced)
    }

    // MARK: - Standing

    mutating func stand(_ now: ClockReading, _ effects: inout Effects) {
        var round = candidate.nextRound(above: has(.epochFromMemory) ? 0 : promise.epoch.round)
        // Who has no memory may have stood in an earlier life, and who took a number by itself may share it, and there
        // is nobody to ask in survivor mode: the dice see to it that no epoch is used twice where others heard of it.
        if policy.hasBus, !isQuorumMode, admission.wasBlank || configuration.id == 0 {
            round += UInt64(pauses.below(1 << 20))
        }
        guard round <= NumberBounds.round else {
            // What nobody could read, this node could not read back either.
            detector.stopSuspecting()
            return detector.expectMaster(from: now.monotonic)
        }
        let epoch = Epoch(round: round, id: has(.epochShared) ? 1 : admission.id)
        detector.stopSuspecting()
        office.stand()
        acceptor.stand(for: epoch)
        // The disk may be slow, where nobody else could be elected meanwhile.
        candidate.stand(epoch, electionDeadline: policy.hasBus ? now.monotonic + policy.detectionTime : nil)
        persist(.promise(promise), .promise(epoch), &effects)
        if has(.electionBeforeDurable) { broadcast(.election, &effects) }
        tellOfCluster(.stands(epoch), &effects)
    }

    mutating func abandonElection(_ now: ClockReading) {
        candidate.giveUp()
        office.giveUp()
        // A random pause, so that two who stood at once do not do so again.
        let pause = pauses.between(.zero, policy.keepalive)
        detector.expectMaster(by: now.monotonic + policy.keepalive / 2 + pause)
    }

    // MARK: - Coming into office

    mutating func takeOffice(_ now: ClockReading, _ effects: inout Effects) {
        let inherited = planted(
            inherited: candidate.inherited(
                behind: state.position, own: log.pending, keepsOwn: !isQuorumMode && !has(.voteForgotten)))
        let voters = candidate.answers
        office.lead()
        candidate.lead()
        proposer.begin(sentAt: candidate.askedAt)
        clock.start(from: state.time, now: now)
        sweep.start(now: now.monotonic)
        snapshotter.start(now: now.monotonic, hasEntries: state.index > 0)
        candidate.note(master: admission.id)
        detector.noteFollowed(now: now.monotonic)
        handover.cancel()
        reads.removeAll()
        office.serve(from: state.index + (inherited == nil ? 0 : 1))
        neighbours.beginEpoch()
        beginEmptyWhenAllHadLeft(voters)
        broadcast(.coordinator(at: state.position), &effects)
        for voter in voters where voter.life != life { welcomeVoter(voter, now, &effects) }
        // An inherited entry may name the voters, and this tracker may have been told of others: it names them only
        // where that one is decided and has not (`proposeNext`).
        if isForming, inherited == nil { gathering.append(.setMembers(policy.members)) }
        intervalUnderWay = 0
        if let inherited {
            intervalUnderWay = inherited.interval ?? 0
            clock.start(from: max(state.time, inherited.header.time), now: now)
            propose(again: inherited, as: .inherited, now, &effects)
        }
    }

    // MARK: - Leaving it

    mutating func stepDown(_ reason: StepDownReason, _ now: ClockReading, _ effects: inout Effects) {
        tellOfCluster(.steppedDown(candidate.epoch, reason), &effects)
        if has(.deposedAnswers) { answerReads(now, by: Electorate(voters: [admission.id]), &effects) }
        office.depose()
        candidate.giveUp()
        proposer.reset()
        // Those who wait are still in the books of who heard them.
        gathering = Gathering()
        backlog = []
        reads.removeAll()
        router.leaveOffice()
        handover.cancel()
        merging.cancel()
        detector.expectMaster(from: now.monotonic)
        dropCommands("this tracker is no longer master: ask again", &effects)
        timers.hurryKeepalive(now: now.monotonic)
    }

    /// A higher master wants a chunk of this one's state: it hears us, and is followed.
    mutating func yieldMastership(for sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects) {
        stepDown(.superseded(epoch), now, &effects)
        office.follow(sender, epoch, since: now.monotonic)
        candidate.note(master: sender.id)
    }

    /// The disk is broken: nobody hears of this node again.
    mutating func vanish(_ now: ClockReading, _ effects: inout Effects) {
        if candidate.isLeading { tellOfCluster(.steppedDown(candidate.epoch, .diskBroken), &effects) }
        candidate.giveUp()
        gathering = Gathering()
        for request in router.removeAll() { turnDown(request.waiting, .storageFailed, now, &effects) }
        if office.isBusUp { broadcast(.leave, &effects) }
        office.unfollow()
        reads.removeAll()
    }

    // MARK: - Following

    /// The master says that it is master no more: nobody waits for its silence.
    mutating func masterResigned(_ now: ClockReading) {
        office.unfollow()
        cancelTransfer()
        detector.expectMaster(from: now.monotonic)
    }

    mutating func acceptWelcome(
        _ welcome: Welcome, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        // What another master was sending is of no use any more, nor is the place at which it would be done.
        if let source = transfer.source, source != sender { cancelTransfer() }
        let isKnown = office.follows(sender, in: epoch)
        if !isKnown { office.follow(sender, epoch, since: now.monotonic) }
        let wasFollower = office.isWelcomed
        // What it voted for last may have been decided and answered, and nobody else be left who knows: that is merged
        // before its state goes, though all before it was merged with another's.
        if welcome.needsTransfer, !wasFollower, welcome.answered == state.position, promise.hasFullState,
            !transfer.isFetching
        {
            _ = adoptOwnVoteAsDecided()
        }
        if !isQuorumMode, !wasFollower, welcome.answered != state.position, !transfer.isFetching {
            // It has decided more on its own since it said hello: the master has to know that.
            if !isKnown { detector.expectMaster(from: now.monotonic) }
            if office.takeCorrection(state.position) { sendHello(to: sender, now, &effects) }
            return
        }
        office.welcomed(
            at: welcome.position.index, attempt: welcome.position.index == state.index ? welcome.attempt : nil)
        if welcome.beginsEmpty {
            departure.welcomed(servesFrom: welcome.servesFrom)
        } else {
            departure.forget()
        }
        detector.expectMaster(from: now.monotonic)
        candidate.note(master: sender.id)
        candidate.noteWelcome()
        admission.welcomed()
        detector.stopSuspecting()
        if acceptor.follow(epoch) { persistPromise(&effects) }
        if !wasFollower {
            office.serve(from: welcome.servesFrom)
            effects.observations.append(.follows(master: sender.id, epoch))
            // Commands are for the master.
            dropCommands("another tracker has become master: that one has to be asked", &effects)
        }
        let isOtherTable = welcome.secret != promise.secret || welcome.shardCount != promise.shardCount
        if isOtherTable, state.index == 0 { adopt(welcome.secret, shardCount: welcome.shardCount, &effects) }
        let isNeeded = welcome.needsTransfer || (isOtherTable && state.index > 0)
        if isNeeded, !transfer.isFetching {
            // An old copy of this message may come when all is long done. In survivor mode a place in the master's
            // history says nothing about another one's.
            let isPast = isQuorumMode && welcome.position.index < state.index
            if promise.hasFullState, wasFollower,
                isPast || log.contains(welcome.position, applied: state.position) == true
            {
                return
            }
            // Its own table would be of no use under another secret, nor its vote in another history.
            if isOtherTable || !isQuorumMode { acceptor.loseState() }
            return beginTransfer(welcome, sender, now, &effects)
        }
        guard !transfer.isFetching else { return }
        if !promise.hasFullState {
            acceptor.expectState(through: fullStateFrom(welcome))
            confirmFullStateWhenComplete(now, &effects)
        }
        learn(welcome.position, now, &effects)
    }

    /// What this node holds is not what its master does: it has neither a vote nor answers until it has fetched all
    /// anew, and its operator is told.
    mutating func diverged(from master: Life, _ now: ClockReading, _ effects: inout Effects) {
        guard holdsWholeState else { return }
        effects.observations.append(.diverged(state.position))
        acceptor.loseState()
        persistPromise(&effects)
        office.dismissed(now: now.monotonic)
        sendHello(to: master, now, &effects)
    }

    // MARK: - Stopping

    /// Ends the stop when nobody waits, or it has taken too long.
    mutating func leaveWhenDone(_ now: ClockReading, _ effects: inout Effects) {
        guard let due = departure.leavesAt, office.takesPart else { return }
        var isDone: Bool
        switch phase {
        case .master: isDone = !handover.isUnderWay && proposer.isIdle && gathering.isEmpty && !isBeginningEmpty
        default: isDone = router.isEmpty && !log.isWriting
        }
        if departure.stopsAll, neighbours.all.contains(where: { $0.isUp }) { isDone = false }
        // Not in the step that answers the last of them, where others watch who may answer.
        guard isDone || due <= now.monotonic, effects.replies.isEmpty || departure.isLast else { return }
        if phase == .master { stepDown(.stopping, now, &effects) }
        if phase == .candidate { abandonElection(now) }
        for request in router.removeAll() {
            guard let id = request.waiting.clientRequest else { continue }
            effects.answers.append(Answer(id: id, content: .failure(.notServing)))
        }
        if office.isBusUp { broadcast(.leave, &effects) }
        departure.left()
        dropCommands("the tracker stopped before it was carried out", &effects)
        guard !configuration.keepsSwarms else { return stop(&effects) }
        office.drain()
        acceptor.promiseNotWritten()
        if policy.hasBus {
            persist(.promise(acceptor.stopRecord), .final, &effects)
        } else {
            // Whether others stay need not be asked: the swarms go at once.
            persist(.replaceAll(chunks: chunksWithoutSwarms), .final, &effects)
        }
    }
}
