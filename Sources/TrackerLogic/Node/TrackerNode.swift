// One tracker: the state machine behind every port.

import Primitives
import Wire

/// A tracker: a step for each event, and the effects that it wants.
///
///     datagrams ─► requests ─► gathering ─► proposal ─► disk (and other trackers) ─► commit ─► apply ─► replies
///
/// A tracker without a bus is a cluster of one, and takes this path and no other: what it is spared, `policy.hasBus`
/// says where it matters.
///
/// The machines that decide lie in `Consensus/`, each with its rules, its state and its events; they know nothing of
/// announces. What binds them is in the extensions of `Cluster/`: `+Cluster` (the door for messages, and time),
/// `+Suspicion` and `+Election` (who is master), `+Leading` and `+Following` (entries), `+Joining` and `+Transfer`
/// (newcomers), `+Merging` (after a partition), `+Members`, and `+Clients` (what is asked, and of whom). `+Office` has
/// the few moments at which several machines change together, `+Timers` the table of when it wants to be woken.
///
/// Invariants: a reply to an announce belongs to an update that is durable and applied; one entry is under way at a
/// time; effects depend on nothing that is not durable; all queues are bounded (docs/bounds.md).
public struct TrackerNode: Sendable, Equatable {
    /// What the operator has chosen; it does not change in one life.
    public let configuration: NodeConfiguration
    /// What this tracker was told that all have to be told alike.
    let settings: SettingsPrint
    /// Whether a majority of named members decides; asked several times a step.
    let isQuorumMode: Bool

    // What is agreed on, and the log of it.
    /// What the trackers of a cluster agree on, as far as this one has applied the log.
    public internal(set) var state: ReplicatedState
    var log: EntryLog
    var writes = WriteQueue()
    var snapshotter: Snapshotter

    // Consensus: a machine a rule.
    var office = Office()
    var acceptor: Acceptor
    var candidate = Candidate()
    var detector: FailureDetector
    var proposer = Proposer()
    var reads = ReadConfirmation()
    var admission: Admission
    var transfer = StateTransfer()
    var merging = Merging()
    var handover = Handover()
    var departure = Departure()
    var timers = Timers()
    var neighbours = Neighbours()
    /// What the others say of themselves.
    var reports = Reports()
    /// Draws pauses.
    var pauses: RandomStream

    // What clients and operators ask for.
    var router: RequestRouter
    var gathering = Gathering()
    /// Commands that wait for their turn, the next one first.
    var commands: [OperatorCommand] = []
    /// The command whose updates are on their way into the log.
    var commandUnderWay: OperatorCommand?
    /// Updates that it still has to bring there, the next one last.
    var backlog: [Update] = []
    /// When to go on with commands after an entry could not be stored.
    var commandsResumeAt: Instant?
    var connectionIDs: ConnectionIDs
    var errorLimiter: ErrorLimiter

    // Time, and chance.
    var clock = ClusterClock()
    var sweep: ExpirySweep
    var intervals: IntervalPolicy
    /// The interval in an entry that this master proposes, which clients are told as soon as it is decided.
    var intervalUnderWay: UInt32 = 0
    /// Draws peers, and the spread of intervals.
    var random: RandomStream

    // While the record is read back.
    /// For each chunk, the last entry that it holds.
    var restoredThrough: [UInt64]
    /// The last entry of the log so far.
    var lastRestored: UInt64?
    /// That entry, where others vote as well: it may not have been decided.
    var restoredEntry: Entry?

    /// Totals since the process started.
    public internal(set) var counters = Counters()

    /// A node that is to read its record back: `restore`, then `started`.
    ///
    /// - Parameters:
    ///   - configuration: what the operator has chosen.
    ///   - incarnation: random, drawn anew for each life.
    ///   - secret: random; used where the record holds none yet.
    ///   - record: what an earlier life has promised, if there was one.
    ///   - seed: of the choices among peers, which are nobody's business but need no secrecy.
    public init(
        configuration: NodeConfiguration, incarnation: UInt64, secret: ClusterSecret, record: Promise?, seed: UInt64
    ) {
        self.configuration = configuration
        isQuorumMode = configuration.cluster.mode == .quorum
        let secret = record?.secret ?? secret
        let shardCount = record?.shardCount ?? configuration.shardCount
        // A member without memory does not know what it has sworn: it has no vote until it has the whole state.
        let hasFullState =
            record?.hasFullState ?? (configuration.cluster.mode != .quorum || configuration.has(.amnesiacVotes))
        acceptor = Acceptor(
            Promise(
                epoch: configuration.has(.promiseForgotten) ? .zero : record?.epoch ?? .zero, incarnation: incarnation,
                secret: secret, shardCount: shardCount, hasFullState: hasFullState,
                leftInOrder: record?.leftInOrder ?? false))
        state = ReplicatedState(
            secret: secret, shardCount: shardCount, keepsMergeData: configuration.keepsMergeData)
        #if PLANTED_BUGS
            state = state.planted(configuration.plantedBug)
        #endif
        log = EntryLog(maxTailCount: configuration.cluster.hasBus ? configuration.tailCount : 0)
        settings = SettingsPrint(configuration)
        admission = Admission(id: configuration.id, wasBlank: record == nil)
        detector = FailureDetector(detectionTime: configuration.cluster.detectionTime)
        router = RequestRouter(
            isKeyed: configuration.cluster.entry == .group,
            maxCount: configuration.has(.unboundedBook) ? .max : configuration.limits.waitingRequests)
        pauses = RandomStream(seed: seed ^ incarnation, stream: 2)
        connectionIDs = ConnectionIDs(
            secret: configuration.has(.connectionIDOfOne) ? ClusterSecret(0, 0, 0, incarnation) : secret)
        errorLimiter = ErrorLimiter(secret: secret, perSecond: configuration.limits.errorsPerSecond)
        intervals = IntervalPolicy(
            base: configuration.interval, jitter: configuration.intervalJitter, targetRate: configuration.targetRate,
            lifetimePercent: configuration.peerLifetime)
        snapshotter = Snapshotter(
            maxAge: configuration.snapshotAge, minLogByteCount: configuration.snapshotLogByteCount)
        sweep = ExpirySweep(shardCount: shardCount)
        random = RandomStream(seed: seed, stream: 1)
        restoredThrough = Array(repeating: 0, count: state.chunkCount)
    }

    // MARK: - The step

    /// Takes one event, and says what is to be done about it: the only way in and out.
    ///
    /// - Parameters:
    ///   - event: what has happened.
    ///   - now: both clocks, read just before.
    ///   - effects: appended to; the caller carries them out and empties the buffer.
    public mutating func step(_ event: Event, now: ClockReading, into effects: inout Effects) {
        // A process that was held finds out how late it is before it listens to anybody.
        noticeSilence(now, &effects)
        switch event {
        case .started: start(now, &effects)
        case .datagramsReceived(let batch): receive(batch, now, &effects)
        case .requestReceived(let request): receive(request, now, &effects)
        case .persisted(let token): persisted(token, now, &effects)
        case .persistFailed(let token, let failure): persistFailed(token, failure, now, &effects)
        case .deadlineReached: break
        case .commandReceived(let command): obey(command, now, &effects)
        case .messageReceived(let message): hear(message, now, &effects)
        case .busConnected: connectBus(now, &effects)
        case .busLost: loseBus(now, &effects)
        case .reportMade(let report): sendReport(report, now.monotonic, &effects)
        }
        fireTimers(now, &effects)
        driveCluster(now, &effects)
        beginServing(now, &effects)
    }

    /// When the node wants `deadlineReached`, if it hears nothing before.
    public var nextDeadline: Instant? { deadline }

    @inline(__always)
    var maySnapshot: Bool {
        guard log.durableThrough >= state.index || has(.snapshotAheadOfLog), promise.hasFullState else { return false }
        return !transfer.isFetching
    }

    @inline(__always)
    var phase: Office.Phase { office.phase }

    /// Whether it holds the whole state, as far as its log goes, rather than a part of it.
    @inline(__always)
    var holdsWholeState: Bool { promise.hasFullState && !transfer.isFetching }

    /// Whether it knows all that is decided, as far as it can know: what it does not find then was not there.
    ///
    /// That is a master that serves and is followed, or a tracker that has applied all that its master has told of, and
    /// hears it. Whoever was held is neither before it has heard somebody.
    public func isAbreast(at now: ClockReading) -> Bool {
        switch phase {
        case .master: return isServing && (!isQuorumMode || detector.wasFollowed(now: now.monotonic))
        case .following:
            guard let following = office.following, following.isWelcomed, holdsWholeState,
                !detector.isSilent(now: now.monotonic)
            else { return false }
            let told = neighbours[id: following.life.id]?.position.index ?? 0
            return state.index >= max(following.decidedThrough, told)
        case .restoring, .candidate, .draining, .failed, .stopped: return false
        }
    }

    /// Whether it is a master that has opened its doors.
    @inline(__always)
    var isServing: Bool { office.isServing }

    /// What this node has sworn.
    @inline(__always)
    var promise: Promise { acceptor.promise }

    /// Whether the entry that is gathering has room for a batch.
    ///
    /// While it has not, the owner leaves datagrams in the kernel's buffers, where they wait for less than they would
    /// cost here.
    public var hasRoom: Bool { gathering.updateCount <= configuration.limits.updatesPerEntry / 2 }

    private mutating func start(_ now: ClockReading, _ effects: inout Effects) {
        // Whoever was told to stop before it has begun does not begin.
        guard phase == .restoring else { return }
        office.begin()
        settleLastRestored()
        restoredThrough = []
        snapshotter.start(now: now.monotonic, hasEntries: state.index > 0)
        router.remember(state.settled, through: state.index, now: now.monotonic)
        if policy.hasBus {
            effects.observations.append(.fenced)
        } else {
            // There is no bus to wait for, and no master to listen for.
            connectBus(now, &effects)
            detector.expectMaster(by: now.monotonic)
        }
        recallStop(&effects)
    }

    /// Opens the doors of a new master: not before the access rules that its operator has given are in force, or what
    /// they forbid could slip in.
    private mutating func beginServing(_ now: ClockReading, _ effects: inout Effects) {
        guard phase == .master, !isServing, !isAccessChanging, !isBeginningEmpty, !departure.keepsDoorsShut else {
            return
        }
        guard state.index >= office.servesFrom || has(.forwardedTooEarly) else { return }
        office.openDoors()
        departure.forget()
        effects.observations.append(.becameMaster(candidate.epoch))
        // Those who have been waiting for a master are heard at once.
        driveCluster(now, &effects)
    }

    // MARK: - Deadlines

    private mutating func fireTimers(_ now: ClockReading, _ effects: inout Effects) {
        if phase == .master, !departure.isLast { sweepWhenDue(now) }
        if has(.localExpiry), phase == .following { expireAlone(now) }
        guard phase == .master || phase == .following, maySnapshot else { return }
        for chunk in snapshotter.nextChunks(of: &state, now: now.monotonic) {
            persist(.saveChunk(chunk), .chunk(Int(chunk.number)), &effects)
        }
        if let index = snapshotter.endRound(state.chunkCount, now: now.monotonic) {
            persist(.trim(through: index), .trim, &effects)
        }
    }

    // MARK: - Agreement

    /// Whether the members are still to come into the log.
    @inline(__always)
    var isForming: Bool { isQuorumMode && state.members.isEmpty }

    /// Makes the next entry of what was gathered, where none is under way.
    mutating func sealGathering(_ now: ClockReading, _ effects: inout Effects) -> Entry? {
        guard proposer.isIdle else { return nil }
        if !isForming { beginNextCommand(now, &effects) }
        while gathering.updateCount < configuration.limits.updatesPerEntry, !gathering.hasUploadPart,
            let update = backlog.popLast()
        {
            gathering.append(update)
            // The voters change by one with an entry, so that majorities always overlap.
            if case .setMembers = update { break }
        }
        guard !gathering.isEmpty else { return nil }
        let ballot = proposer.propose(.fresh, candidate.epoch, index: state.index + 1, now: now.monotonic)
        return gathering.seal(
            ballot, isAlone: decidesAlone, time: has(.wallClockStamps) ? now.wall : clock.read(now),
            previous: state.chain, bearsTickets: policy.hasBus)
    }

    // MARK: - Stopping

    mutating func stop(_ effects: inout Effects) {
        office.stop()
        effects.observations.append(.drained)
    }
}

extension ErrorLimiter {
    init(secret: ClusterSecret, perSecond: Int) {
        let keys = SipHash(key0: secret.w2, key1: secret.w3)
        self.init(key: keys.mac(Array("errors".utf8)), perSecond: perSecond)
    }
}

extension TrackerNode {
    /// The cluster's secret has come with its welcome.
    mutating func deriveKeys() {
        if !has(.connectionIDOfOne) { connectionIDs = ConnectionIDs(secret: promise.secret) }
    }
}
