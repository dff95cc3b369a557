// Becoming part of a cluster, or of its new epoch.

import Primitives
import Wire

/// Becoming part of a cluster, or of its new epoch: HELLO, WELCOME, numbers, and the forming of a cluster.
///
///     hello ──► master: is the number free? is its history a beginning of ours?
///                 ├─ yes, and the log goes back so far ──► welcome: the log suffices
///                 ├─ no memory, or too far behind ───────► welcome: fetch the state (`+Transfer`)
///                 └─ another history (survivor mode) ────► what it knows is merged first (`+Merging`)
///
/// A node that lost its memory does not know what it has promised, so it has no vote until it holds the whole state
/// (rule 9). Its master welcomes it only when a quorum without it has said, after its hello, that it still
/// follows: had a quorum promised a later master, this node's forgotten promise among them, one of the others
/// would be of both. Nor does it ask before any candidate that this node's last life has answered has counted that
/// answer or given up: it would be one of a quorum that is found only after those others have spoken. A cluster of
/// members that all have none is formed when each has heard all the others: had anything been decided, one of them
/// would remember.
extension TrackerNode {
    // MARK: - Asking

    /// HELLO: the position and the memory of this node, for a master.
    private var hello: ClusterMessage.Body {
        let isBlank = self.isBlank
        var heard: [Life] = []
        if isBlank {
            for neighbour in neighbours.all where neighbour.isUp && neighbour.memory.isBlank {
                heard.append(neighbour.life)
            }
        }
        return .hello(
            Hello(
                position: state.position, hasFullState: promise.hasFullState, isBlank: isBlank, heard: heard,
                leftInOrder: departure.wasInOrder, settings: self.settings))
    }

    /// Whether it remembers nothing: no promise, no entry.
    var isBlank: Bool { promise.epoch == .zero && state.index == 0 && log.pending == nil }

    mutating func sendHello(to life: Life, _ now: ClockReading, _ effects: inout Effects) {
        send(hello, to: life, &effects)
    }

    /// Asks again who has not been welcomed yet.
    mutating func askToJoin(_ now: ClockReading, _ effects: inout Effects) {
        // A cluster of one has nobody to hear from; and what could not be written is tried again.
        formCluster(now, &effects)
        if let following = office.following {
            if !following.isWelcomed { sendHello(to: following.life, now, &effects) }
        } else if let ignored = detector.ignoredLife(now: now.monotonic),
            neighbours[id: ignored.id]?.isUp == true
        {
            // A master that has never answered is not waited for, but may hear again by now.
            sendHello(to: ignored, now, &effects)
        } else if admission.id == 0 || isBlank || admission.refusal != nil {
            broadcast(hello, &effects)
        }
        if admission.id == 0, now.monotonic - detector.silentAt >= policy.detectionTime, office.following == nil {
            // Nobody is there to give it a number; others that wait as well may have taken theirs.
            admission.take(number: freeID ?? 1)
            effects.observations.append(.idAssigned(admission.id))
        }
    }

    // MARK: - Answering

    mutating func helloReceived(
        _ hello: Hello, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        if let place = neighbours.place(of: sender.id), neighbours[place].life == sender {
            neighbours[place].memory.isBlank = hello.isBlank && hello.settings.members == self.settings.members
            neighbours[place].memory.heardBlank = hello.heard
            neighbours[place].note(hello.position, whileAt: state.index)
            neighbours[place].hasFullState = hello.hasFullState
            neighbours[place].memory.isForgetful = !hello.hasFullState
            if !hello.hasFullState { candidate.forgetAnswer(of: sender.id) }
        }
        if hasOtherMembers(hello) {
            note(sender, differsIn: [.members], now, &effects)
            if phase == .master { send(.refused(.otherMembers), to: sender, &effects) }
            return
        }
        guard phase == .master else { return formCluster(now, &effects) }
        if sender.id == 0 {
            if !isQuorumMode, epoch > candidate.epoch { return standAgain(above: epoch, now, &effects) }
            guard let id = freeID else { return send(.refused(.clusterFull), to: sender, &effects) }
            return welcome(sender, as: id, answering: hello.position, needsTransfer: false, &effects)
        }
        guard epoch <= candidate.epoch else {
            // It cannot go back to an epoch below what it has promised.
            standAgain(above: epoch, now, &effects)
            return
        }
        admit(sender, hello.position, hasFullState: hello.hasFullState, leftInOrder: hello.leftInOrder, now, &effects)
    }

    private var freeID: UInt32? {
        (1...UInt32(Neighbours.maxCount + 1)).first {
            $0 != admission.id && (neighbours.place(of: $0) == nil || has(.idGivenTwice)) && !members.contains($0)
        }
    }

    /// A quorum without a newcomer has said, after its hello, that it follows this master.
    mutating func admitNewcomer(_ newcomer: Life, _ now: ClockReading, _ effects: inout Effects) {
        guard let place = neighbours.place(of: newcomer.id), neighbours[place].life == newcomer else {
            return
        }
        neighbours[place].memory.confirmedIn = candidate.epoch
        let neighbour = neighbours[place]
        admit(newcomer, neighbour.position, hasFullState: neighbour.hasFullState, now, &effects)
    }

    /// A voter that has answered this master's candidate.
    mutating func welcomeVoter(_ voter: VoterPromise, _ now: ClockReading, _ effects: inout Effects) {
        admit(
            voter.life, voter.answer.position, hasFullState: true, leftInOrder: voter.answer.leftInOrder, now, &effects)
    }

    mutating func admit(
        _ sender: Life, _ position: Position, hasFullState: Bool, leftInOrder: Bool = false, _ now: ClockReading,
        _ effects: inout Effects
    ) {
        guard let place = neighbours.place(of: sender.id), neighbours[place].life == sender else {
            return
        }
        if isQuorumMode, !hasFullState, neighbours[place].memory.confirmedIn != candidate.epoch {
            let age = now.monotonic - neighbours[place].appearedAt
            guard age >= policy.answerLifetime else { return }
            return reads.add(newcomer: sender)
        }
        let isOfOurHistory = isBeginning(position)
        if !isQuorumMode, hasFullState, position.index > 0, isOfOurHistory != true,
            !merging.hasMerged(position)
        {
            // It has no vote in this history.
            neighbours[place].follower.welcomedIn = .zero
            // What a cluster that has stopped in good order knew of swarms went with it, whoever knew most of it.
            let hasSwarms = !(leftInOrder && departure.hasBegunEmpty)
            return beginMerge(sender, position, hasSwarms: hasSwarms, now, &effects)
        }
        let needsTransfer =
            !hasFullState && position.index > 0 || isOfOurHistory != true
            || position.index + 1 < log.tailStart
        neighbours[place].follower.welcomedIn = candidate.epoch
        neighbours[place].follower.isDropped = false
        neighbours[place].hasFullState = hasFullState && !needsTransfer
        welcome(sender, answering: position, needsTransfer: needsTransfer, &effects)
    }

    /// Whether a log that ends at a position is a prefix of this master's; nil where the log no longer reaches it.
    private func isBeginning(_ position: Position) -> Bool? {
        if position.index > state.index {
            if let pending = log.pending, pending.position == position { return true }
            // A voter may know of a decision that this master is still to find out; nobody else can be ahead.
            return isQuorumMode
        }
        return log.contains(position, applied: state.position)
    }

    /// Lets a newcomer in, as part of this master's epoch.
    ///
    /// - Parameters:
    ///   - life: the newcomer.
    ///   - id: the number that it is given; nil for its own.
    ///   - position: where the newcomer says it is.
    ///   - needsTransfer: whether it has to fetch the state; else the log suffices.
    ///   - effects: get the WELCOME.
    func welcome(
        _ life: Life, as id: UInt32? = nil, answering position: Position, needsTransfer: Bool,
        _ effects: inout Effects
    ) {
        send(
            .welcome(
                Welcome(
                    id: id ?? life.id, position: state.position, answered: isQuorumMode ? .start : position,
                    servesFrom: office.servesFrom, attempt: proposer.attempt, needsTransfer: needsTransfer,
                    beginsEmpty: isBeginningEmpty, secret: promise.secret, shardCount: promise.shardCount)),
            to: life, epoch: candidate.epoch, &effects)
    }

    // MARK: - Being welcomed

    mutating func welcomeReceived(
        _ welcome: Welcome, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard epoch >= promise.epoch, epoch.id == sender.id || has(.epochShared), !office.isLate(epoch, of: sender)
        else { return }
        switch phase {
        case .master:
            guard epoch > candidate.epoch else { return }
            stepDown(.superseded(epoch), now, &effects)
        case .candidate: abandonElection(now)
        case .following: break
        case .restoring, .draining, .failed, .stopped: return
        }
        if welcome.id != admission.id {
            guard configuration.id == 0, admission.id == 0 else { return }
            admission.take(number: welcome.id)
            effects.observations.append(.idAssigned(welcome.id))
            return sendHello(to: sender, now, &effects)
        }
        acceptWelcome(welcome, sender, epoch, now, &effects)
    }

    /// Takes the cluster's secret: the keys of connection ids and of the swarm table derive from it.
    mutating func adopt(_ secret: ClusterSecret, shardCount: UInt32, _ effects: inout Effects) {
        acceptor.adopt(secret, shardCount: shardCount)
        state = emptyState
        deriveKeys()
        sweep = ExpirySweep(shardCount: shardCount)
        persistPromise(&effects)
    }

    /// The state before the first entry.
    var emptyState: ReplicatedState {
        let state = ReplicatedState(
            secret: promise.secret, shardCount: promise.shardCount,
            keepsMergeData: configuration.keepsMergeData)
        #if PLANTED_BUGS
            return state.planted(configuration.plantedBug)
        #else
            return state
        #endif
    }

    /// Writes the promise down as it is in memory.
    mutating func persistPromise(_ effects: inout Effects) {
        persist(.promise(acceptor.record), .promise(promise.epoch), &effects)
    }

    mutating func refusalReceived(
        _ refusal: JoinRefusal, _ sender: Life, _ epoch: Epoch, _ now: ClockReading, _ effects: inout Effects
    ) {
        guard phase == .following else { return }
        if let following = office.following, following.isWelcomed {
            // Its own master's word counts: another has this number, and was there first.
            guard following.life == sender, following.epoch == epoch else { return }
            office.dismissed(now: now.monotonic)
            cancelTransfer()
        }
        if refusal == .idTaken, configuration.id == 0 {
            // It asks for another one before it takes one itself.
            admission.giveUpNumber()
            if office.following == nil { detector.expectMaster(from: now.monotonic) }
            return
        }
        noteJoinRefusal(refusal, now, &effects)
    }

    /// Another life says that it has this number.
    mutating func duplicateIDHeard(_ message: ClusterMessage, _ now: ClockReading, _ effects: inout Effects) {
        switch message.body {
        case .hello:
            if phase == .master { send(.refused(.idTaken), to: message.sender, &effects) }
        case .refused(let refusal):
            refusalReceived(refusal, message.sender, message.epoch, now, &effects)
        case .keepalive(let keepalive) where keepalive.role == .master && phase == .master:
            // Two that were alone have taken one number, or one was given twice: the lower epoch makes way.
            guard (candidate.epoch, promise.incarnation) < (message.epoch, message.sender.incarnation) else { return }
            stepDown(.superseded(message.epoch), now, &effects)
            if configuration.id == 0 {
                admission.giveUpNumber()
            } else {
                noteJoinRefusal(.idTaken, now, &effects)
            }
        case .keepalive(let keepalive)
        where configuration.id == 0 && phase == .master && keepalive.role == .slave:
            // That one was given the number by a master; this one took it when it was alone.
            stepDown(.superseded(message.epoch), now, &effects)
            admission.giveUpNumber()
        case .keepalive(let keepalive)
        where configuration.id == 0 && phase == .following && office.following?.isWelcomed != true:
            // The other one is part of the cluster, or as good as this one; or it is an old message of this tracker's
            // last life, and then another number does no harm.
            let isOlder = keepalive.role == .slave || keepalive.role == .master
            guard isOlder || promise.incarnation < message.sender.incarnation else { return }
            refusalReceived(.idTaken, message.sender, message.epoch, now, &effects)
        default: break
        }
    }

    // MARK: - Forming

    /// Gives a blank member its vote when all members are blank and have heard it.
    private mutating func formCluster(_ now: ClockReading, _ effects: inout Effects) {
        guard isQuorumMode, !promise.hasFullState, !acceptor.isConfirming, isBlank,
            policy.members.contains(admission.id)
        else { return }
        for member in policy.members where member != admission.id {
            guard let neighbour = neighbours[id: member], neighbour.isUp, neighbour.memory.isBlank,
                neighbour.memory.heardBlank.contains(life)
            else { return }
        }
        confirmFullState(now, &effects)
    }

    // MARK: - Being whole

    /// Marks the record whole, on the disk first.
    mutating func confirmFullState(_ now: ClockReading, _ effects: inout Effects) {
        acceptor.beginConfirming()
        persist(.promise(acceptor.record), .fullStateMark, &effects)
    }

    mutating func confirmFullStateWhenComplete(_ now: ClockReading, _ effects: inout Effects) {
        guard !promise.hasFullState, !acceptor.isConfirming, !transfer.isWriting, !transfer.isFetching,
            acceptor.holdsState(applied: state.index, durable: log.durableThrough)
                || has(.wholeTooEarly) && acceptor.fullStateFrom != nil
        else { return }
        confirmFullState(now, &effects)
    }

    mutating func fullStateMarkWritten(_ now: ClockReading, _ effects: inout Effects) {
        if acceptor.stateConfirmed() { sendWelcomeDone(&effects) }
    }

    mutating func fullStateMarkNotWritten(_ now: ClockReading) { acceptor.stateNotConfirmed() }
}
