/// One tracker: the state machine behind every port.
///
///     datagrams ─► requests ─► gathering ─► proposal ─► disk (and other trackers) ─► commit ─► apply ─► replies
///
/// A node alone is a cluster of one. Its announces take the same path as a cluster's: gathered into an entry, written
/// to the log, voted for (by itself), committed, applied, and only then answered. There is no second path.
///
///     restoring ── started ──► candidate ── own promise durable, elected ──► master ── drain ──► draining ──► stopped
///                                                                              │
///                                                                 disk broken ─┴──────────────────────► failed
///
/// Invariants: a reply to an announce belongs to an update that is durable and applied; one entry is under way at a
/// time; effects depend on nothing that is not durable; all queues are bounded by `Limits`.
///
/// - SeeAlso: design 2 for the step, 3.4 for the rules.

import Primitives
import Wire

public struct TrackerNode: Sendable, Equatable {
    enum Phase: Sendable, Hashable {
        /// Reads its record back. Can transition to: candidate.
        case restoring
        /// Waits for its election. Can transition to: master, draining, failed.
        case candidate
        /// Serves. Can transition to: draining, failed.
        case master
        /// Answers those that wait and takes nothing new. Can transition to: stopped, failed.
        case draining
        /// Has lost its disk: what was asked of it may or may not be written. Stays so.
        case failed
        /// Stays so.
        case stopped
    }

    public let configuration: NodeConfiguration
    public internal(set) var state: ReplicatedState
    public internal(set) var counters = Counters()

    var phase = Phase.restoring
    /// Whether requests are heard: from the moment on when a master has the access rules that it was given.
    var isServing = false
    var promise: Promise
    var mastership: Mastership
    var replication: Replication
    var gathering = Gathering()
    var proposal: Proposal?
    /// Room for waiting requests, to be used again.
    var spareWaiting: [WaitingRequest] = []
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
    var intervals: IntervalPolicy
    var snapshotter: Snapshotter
    var clock = ClusterClock()
    var sweep: ExpirySweep
    var random: RandomStream

    /// Writes under way, oldest first.
    var writes: [Write] = []
    private var lastToken: UInt64 = 0
    private var isStorageFailing = false
    /// When to stand again after a promise could not be written.
    private var standAgainAt: Instant?
    /// While reading back: for each chunk, the last entry that it holds.
    private var restoredThrough: [UInt64]
    /// While reading back: the last entry of the log so far.
    private var lastRestored: UInt64?

    struct Write: Sendable, Hashable {
        var token: PersistToken
        var kind: Kind

        enum Kind: Sendable, Hashable {
            case promise(Epoch)
            case entry(Epoch, index: UInt64)
            case chunk(Int)
            case trim
            case final
        }
    }

    /// - Parameters:
    ///   - incarnation: random, drawn anew for each life.
    ///   - secret: random; used where the record holds none yet.
    ///   - record: what an earlier life has promised, if there was one.
    ///   - seed: of the choices among peers, which are nobody's business but need no secrecy.
    public init(
        configuration: NodeConfiguration, incarnation: UInt64, secret: ClusterSecret, record: Promise?, seed: UInt64
    ) {
        self.configuration = configuration
        let secret = record?.secret ?? secret
        let shardCount = record?.shardCount ?? configuration.shardCount
        promise = Promise(
            epoch: record?.epoch ?? .zero, incarnation: incarnation, secret: secret, shardCount: shardCount)
        state = ReplicatedState(secret: secret, shardCount: shardCount)
        mastership = Mastership(id: configuration.id, voters: [configuration.id], promised: promise.epoch)
        replication = Replication(voters: [configuration.id])
        let keys = SipHash(key0: secret.w2, key1: secret.w3)
        connectionIDs = ConnectionIDs(
            key0: keys.mac(Array("connection 0".utf8)), key1: keys.mac(Array("connection 1".utf8)))
        errorLimiter = ErrorLimiter(
            key: keys.mac(Array("errors".utf8)), perSecond: configuration.limits.errorsPerSecond)
        intervals = IntervalPolicy(
            base: configuration.interval, jitter: configuration.intervalJitter, targetRate: configuration.targetRate,
            maxPeers: configuration.limits.peers)
        snapshotter = Snapshotter(
            maxAge: configuration.snapshotAge, minLogByteCount: configuration.snapshotLogByteCount)
        sweep = ExpirySweep(shardCount: shardCount)
        random = RandomStream(seed: seed, stream: 1)
        restoredThrough = Array(repeating: 0, count: Int(shardCount) + 1)
    }

    // MARK: - Restoring

    /// Takes a chunk of the record back.
    ///
    /// All chunks come before the first entry.
    public mutating func restore(_ chunk: SnapshotChunk) throws(ChunkDamaged) {
        precondition(phase == .restoring, "a record is read back before the node starts")
        try state.restore(chunk)
        restoredThrough[Int(chunk.number)] = chunk.index
    }

    /// Takes an entry of the log back.
    ///
    /// Entries come in the order of their indices, without gaps, and the first no later
    /// than right behind the snapshot.
    ///
    /// - Throws: `EntryDamaged` also where one is missing. The node is of no use then.
    public mutating func restore(entry bytes: [UInt8]) throws(EntryDamaged) {
        precondition(phase == .restoring, "a record is read back before the node starts")
        let header = try EntryHeader(bytes)
        let isNext =
            if let lastRestored { header.index == lastRestored &+ 1 } else { header.index <= state.index &+ 1 }
        guard isNext, header.index > 0 else { throw EntryDamaged() }
        lastRestored = header.index
        state.begin(header, chain: EntryHeader.chain(bytes))
        var cursor = UpdateCursor(header)
        while let update = try cursor.next(bytes) {
            let chunk = state.chunk(of: update)
            guard chunk < restoredThrough.count else { throw EntryDamaged() }
            if header.index > restoredThrough[chunk] { state.apply(update) }
        }
    }

    // MARK: - The step

    /// One door in, one buffer out.
    ///
    /// - Parameters:
    ///   - now: both clocks, read just before.
    ///   - effects: appended to; the caller carries them out and empties the buffer.
    public mutating func step(_ event: Event, now: ClockReading, into effects: inout Effects) {
        switch event {
        case .started: start(now, &effects)
        case .datagramsReceived(let batch): receive(batch, now, &effects)
        case .requestReceived(let request): receive(request, now, &effects)
        case .persisted(let token): persisted(token, now, &effects)
        case .persistFailed(let token, let failure): persistFailed(token, failure, now, &effects)
        case .deadlineReached: break
        case .commandReceived(let command): obey(command, &effects)
        case .messageReceived, .busConnected, .busLost: break
        }
        attendToDeadlines(now, &effects)
        proposeWhatIsGathered(now, &effects)
        beginServing(&effects)
        finishDraining(&effects)
    }

    /// When the node wants `deadlineReached`, if it hears nothing before.
    public var nextDeadline: Instant? {
        switch phase {
        case .master:
            // While an entry is under way, its completion comes first.
            earliest(earliest(sweep.deadline, snapshotter.deadline), replication.isIdle ? commandsResumeAt : nil)
        case .candidate: standAgainAt
        case .restoring, .draining, .failed, .stopped: nil
        }
    }

    /// Whether the entry that is gathering has room for a batch.
    ///
    /// While it has not, the owner leaves datagrams in the
    /// kernel's buffers, where they wait for less than they would cost here.
    public var hasRoom: Bool { gathering.updateCount <= configuration.limits.updatesPerEntry / 2 }

    private mutating func start(_ now: ClockReading, _ effects: inout Effects) {
        precondition(phase == .restoring, "a node starts once")
        phase = .candidate
        restoredThrough = []
        replication.adopt(decidedThrough: state.index)
        stand(&effects)
    }

    private mutating func stand(_ effects: inout Effects) {
        promise.epoch = mastership.stand()
        persist(.promise(promise), .promise(promise.epoch), &effects)
    }

    private mutating func becomeMaster(_ now: ClockReading, _ effects: inout Effects) {
        phase = .master
        replication.lead(mastership.epoch)
        clock.start(from: state.time, now: now)
        sweep.start(now: now.monotonic)
        snapshotter.start(now: now.monotonic, hasEntries: state.index > 0)
    }

    /// Opens the doors of a new master: not before the access rules that its operator has given are in force, or what
    /// they forbid could slip in.
    private mutating func beginServing(_ effects: inout Effects) {
        guard phase == .master, !isServing, !isAccessChanging else { return }
        isServing = true
        effects.observations.append(.becameMaster(mastership.epoch))
    }

    // MARK: - Deadlines

    private mutating func attendToDeadlines(_ now: ClockReading, _ effects: inout Effects) {
        if phase == .candidate, let due = standAgainAt, due <= now.monotonic {
            standAgainAt = nil
            stand(&effects)
        }
        guard phase == .master else { return }
        if let due = sweep.deadline, due <= now.monotonic {
            let time = clock.read(now).seconds
            intervals.adapt(peers: state.table.counts.peers, time: time)
            let updates = sweep.step(
                state.table, now: now.monotonic, time: time, lifetime: intervals.lifetime,
                isNearlyFull: state.table.counts.torrents > configuration.limits.torrents / 4 * 3)
            // What finds no room is found again in the next round.
            for update in updates where gathering.updateCount < configuration.limits.updatesPerEntry {
                gathering.append(update)
            }
        }
        for chunk in snapshotter.helping(of: &state, now: now.monotonic) {
            persist(.saveChunk(chunk), .chunk(Int(chunk.number)), &effects)
        }
        if let index = snapshotter.endRound(state, now: now.monotonic) {
            persist(.trim(through: index), .trim, &effects)
        }
    }

    // MARK: - Agreement

    private mutating func proposeWhatIsGathered(_ now: ClockReading, _ effects: inout Effects) {
        guard phase == .master || phase == .draining, replication.isIdle else { return }
        takeUpCommands(now, &effects)
        while gathering.updateCount < configuration.limits.updatesPerEntry, let update = backlog.popLast() {
            gathering.append(update)
        }
        guard !gathering.isEmpty else { return }
        let index = replication.propose()
        let sealed = gathering.seal(
            index: index, epoch: mastership.epoch, time: clock.read(now), spare: &spareWaiting)
        persist(.append(index: index, entry: sealed.bytes), .entry(mastership.epoch, index: index), &effects)
        proposal = sealed
    }

    private mutating func settle(_ decision: Replication.Decision, _ now: ClockReading, _ effects: inout Effects) {
        switch decision {
        case .open:
            break
        case .committed:
            guard let proposal = takeProposal() else { return }
            // The next entry goes to the disk while this one is being answered.
            if !isCommandDue { proposeWhatIsGathered(now, &effects) }
            commit(proposal, &effects)
            snapshotter.entryApplied(byteCount: proposal.bytes.count, now: now.monotonic)
            spareWaiting = proposal.waiting
        case .aborted:
            guard let proposal = takeProposal() else { return }
            for request in proposal.waiting { refuse(request, .notStored, now, &effects) }
            postponeCommand(now)
        }
    }

    private mutating func takeProposal() -> Proposal? {
        defer { proposal = nil }
        return proposal
    }

    // MARK: - Writes

    mutating func persist(_ change: Persist.Change, _ kind: Write.Kind, _ effects: inout Effects) {
        lastToken += 1
        let token = PersistToken(lastToken)
        writes.append(Write(token: token, kind: kind))
        effects.persists.append(Persist(token: token, change: change))
    }

    private mutating func takeWrite(_ token: PersistToken) -> Write.Kind {
        precondition(!writes.isEmpty && writes[0].token == token, "writes complete in the order they were asked for")
        return writes.removeFirst().kind
    }

    private mutating func persisted(_ token: PersistToken, _ now: ClockReading, _ effects: inout Effects) {
        let kind = takeWrite(token)
        if isStorageFailing {
            isStorageFailing = false
            effects.observations.append(.storageRecovered)
        }
        switch kind {
        case .promise(let epoch):
            if phase == .candidate, mastership.promiseKept(epoch) { becomeMaster(now, &effects) }
        case .entry(let epoch, let index):
            settle(
                replication.okReceived(from: configuration.id, epoch: epoch, index: index), now, &effects)
        case .chunk: snapshotter.chunkCompleted(isSaved: true, now: now.monotonic)
        case .trim: break
        case .final: stop(&effects)
        }
    }

    private mutating func persistFailed(
        _ token: PersistToken, _ failure: StorageFailure, _ now: ClockReading, _ effects: inout Effects
    ) {
        let kind = takeWrite(token)
        if failure == .broken { return fail(now, &effects) }
        if !isStorageFailing {
            isStorageFailing = true
            let refused = if case .entry = kind { proposal?.waiting.count ?? 0 } else { 0 }
            effects.observations.append(.storageFailed(failure, refused: refused))
        }
        switch kind {
        case .promise:
            // Without its promise it may not vote: it tries again, in an epoch that it has not named yet.
            mastership = Mastership(id: configuration.id, voters: [configuration.id], promised: promise.epoch)
            standAgainAt = now.monotonic + .seconds(1)
        case .entry(let epoch, let index):
            settle(
                replication.errorReceived(from: configuration.id, epoch: epoch, index: index), now, &effects)
        case .chunk(let number):
            state.markChanged(chunk: number)
            snapshotter.chunkCompleted(isSaved: false, now: now.monotonic)
        case .trim: break
        case .final: stop(&effects)
        }
    }

    /// The disk is broken: nobody can say what is on it.
    ///
    /// The node falls silent rather than vote with holes.
    private mutating func fail(_ now: ClockReading, _ effects: inout Effects) {
        guard phase != .failed else { return }
        let wasDraining = phase == .draining
        phase = .failed
        let waiting = (proposal?.waiting ?? []) + gathering.waiting
        effects.observations.append(.storageFailed(.broken, refused: waiting.count))
        for request in waiting { refuse(request, .storageFailed, now, &effects) }
        proposal = nil
        gathering = Gathering()
        dropCommands(&effects)
        if wasDraining { effects.observations.append(.drained) }
    }

    // MARK: - Stopping

    /// When all that waits is answered, writes the last of the record.
    private mutating func finishDraining(_ effects: inout Effects) {
        guard phase == .draining, proposal == nil, gathering.isEmpty, backlog.isEmpty, writes.isEmpty else { return }
        if configuration.keepsSwarms {
            stop(&effects)
        } else {
            // Swarms are soft state: an orderly stop empties them (requirements, Storage).
            persist(.replaceAll(chunks: [state.chunk(0)]), .final, &effects)
        }
    }

    private mutating func stop(_ effects: inout Effects) {
        phase = .stopped
        effects.observations.append(.drained)
    }

    // MARK: - Telling

    public var status: NodeStatus {
        let role: Role =
            switch phase {
            case .restoring: .restoring
            case .candidate: .candidate
            case .master: .master
            case .draining: .draining
            case .failed: .failed
            case .stopped: .stopped
            }
        return NodeStatus(
            id: configuration.id, role: role, epoch: mastership.epoch, commitIndex: replication.commitIndex,
            lastIndex: replication.lastIndex, digest: state.digest, accessMode: state.access.mode,
            table: state.table.counts, registeredTorrents: state.registry.count, interval: intervals.interval,
            waitingRequests: gathering.waiting.count + (proposal?.waiting.count ?? 0), counters: counters)
    }
}
