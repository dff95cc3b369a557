/// The checkers: they watch every transition from outside and compare it with what was promised.
///
/// They know the logic by its effects, its record and its public state. What the swarms should hold they work out for
/// themselves (`SwarmModel`), from the entries as they stand on the simulated disk; what peers may rely on they take
/// from requests and replies (`Ledger`).

import Primitives
import TrackerLogic
import Wire

struct Checks: Sendable {
    /// A run ends at its first violations; what comes after them is only their consequence.
    static let maxViolations = 4
    /// Writes that a node may have under way: an entry, a helping of chunks, and a few single ones.
    static let maxPendingWrites = 16

    let configuration: NodeConfiguration
    private(set) var violations: [Violation] = []
    var model = SwarmModel()
    var ledger: Ledger
    var correspondents: [Correspondent] = []
    var visits: [Visit] = []
    /// Checksums of the entries that are decided, from index 1 on.
    private var decided: [UInt64] = []
    /// Checksums of the entries that were refused.
    private var aborted: [UInt64] = []
    /// The entry that a node has under way, for each node.
    var proposed: [[UInt8]?]
    /// The highest epoch that was durably promised.
    private var promised = Epoch.zero
    /// How late a clock has shown it to be, and when.
    private var latestWall = WallTime(milliseconds: 0)
    private var latestWallAt = Instant(nanoseconds: 0)
    /// For finding repeats among the peers of a reply.
    var marks: [UInt32] = []
    var lastMark: UInt32 = 0
    /// Announces that were answered, and peers that were taken out.
    var answeredCount = 0
    private(set) var expiredCount = 0

    init(configuration: NodeConfiguration, nodeCount: Int, addresses: [SocketAddress]) {
        self.configuration = configuration
        ledger = Ledger(peerCount: addresses.count)
        correspondents = addresses.map(Correspondent.init(address:))
        proposed = Array(repeating: nil, count: nodeCount)
    }

    mutating func violate(_ invariant: Invariant, at time: Instant, _ detail: String) {
        guard violations.count < Checks.maxViolations else { return }
        violations.append(Violation(invariant, at: time, detail))
    }

    // MARK: - A step

    /// What a step was about.
    struct Step {
        var node: Int
        var time: Instant
        var reading: ClockReading
        /// The state's index before.
        var indexBefore: UInt64
        /// Whether the node has said that it serves, and not been asked to stop.
        var isServing: Bool
        var cause: Cause

        enum Cause {
            case heard
            case told
            /// A write has failed; nil for a failure whose extent nobody knows.
            case failed(isCertain: Bool, isEntry: Bool)
            case other
        }
    }

    /// A node has taken a step.
    ///
    /// - Parameters:
    ///   - machine: as it is after the step.
    ///   - record: what is on its disk now.
    mutating func stepped(_ step: Step, _ machine: TrackerNode, _ record: DiskRecord, _ effects: Effects) {
        noteClock(step)
        let status = machine.status
        var replies = ReplyCursor(effects)
        if step.indexBefore < machine.state.index {
            for index in (step.indexBefore + 1)...machine.state.index {
                applied(index, step, machine.state, record, &replies)
            }
            proposed[step.node] = nil
        }
        if case .failed(let isCertain, let isEntry) = step.cause, isEntry {
            refused(step, isCertain: isCertain, effects)
        }
        checkSilence(step, status, record, effects)
        checkOtherReplies(step, status, effects, &replies)
        for persist in effects.persists { submitted(persist.change, step, record) }
        checkBounds(step, status, effects)
    }

    private mutating func noteClock(_ step: Step) {
        let allowed = highestTime(step.time)
        if step.reading.wall > allowed {
            latestWall = step.reading.wall
            latestWallAt = step.time
        }
    }

    /// What no honest clock can have passed by now: the latest that any has shown, and what has gone by since on the
    /// fastest.
    private func highestTime(_ now: Instant) -> WallTime {
        let elapsed = (now - latestWallAt).wholeMilliseconds
        return WallTime(milliseconds: latestWall.milliseconds + elapsed + elapsed / 8 + 1000)
    }

    /// An entry has been applied by a node.
    private mutating func applied(
        _ index: UInt64, _ step: Step, _ state: ReplicatedState, _ record: DiskRecord, _ replies: inout ReplyCursor
    ) {
        guard let bytes = record.entry(index), let header = try? EntryHeader(bytes), header.index == index else {
            return violate(.appliedIsDurable, at: step.time, "entry \(index) is applied and not on the disk")
        }
        decide(header, bytes, at: step.time)
        guard model.index + 1 == index else { return }
        advance(header, bytes, state.table, at: step.time) { checks, update, outcome in
            checks.answered(update, outcome, step, &replies)
        }
        if replies.nextAnnounce(where: { _ in true }) != nil {
            violate(.answeredOnce, at: step.time, "more announces are answered than entry \(index) holds")
        }
    }

    /// Carries an entry over to the model.
    mutating func advance(
        _ header: EntryHeader, _ bytes: [UInt8], _ table: SwarmTable, at time: Instant,
        _ visit: (inout Checks, Update, SwarmModel.Outcome) -> Void
    ) {
        model.begin(header)
        var cursor = UpdateCursor(header)
        do throws(EntryDamaged) {
            while let update = try cursor.next(bytes) {
                let outcome = model.apply(update, table)
                if case .expired(let peers) = outcome { checkPatience(peers, header, at: time) }
                visit(&self, update, outcome)
            }
        } catch {
            violate(.recordIsReadable, at: time, "entry \(header.index) cannot be read")
        }
    }

    private mutating func checkPatience(_ peers: [SwarmModel.Peer], _ header: EntryHeader, at time: Instant) {
        expiredCount += peers.count
        for peer in peers {
            let silence = header.time.seconds - min(peer.lastSeen, header.time.seconds)
            // Whole seconds on both sides, so one of them may be lost.
            if silence + 1 < peer.told + peer.told / 5 {
                violate(
                    .expiryIsPatient, at: time,
                    "peer \(peer.address) was told \(peer.told) s and is taken out after \(silence) s")
            }
        }
    }

    /// An entry is decided: applied by somebody, or found in the record of the only voter.
    mutating func decide(_ header: EntryHeader, _ bytes: [UInt8], at time: Instant) {
        let sum = checksum(bytes.span.bytes)
        if aborted.contains(sum) {
            violate(.abortedStaysAborted, at: time, "entry \(header.index) was refused, and is applied")
        }
        if header.index <= UInt64(decided.count) {
            if decided[Int(header.index) - 1] != sum {
                violate(.decidedIsForEver, at: time, "entry \(header.index) is not the one that was decided")
            }
        } else if header.index == UInt64(decided.count) + 1 {
            decided.append(sum)
        } else {
            violate(.logHasNoGap, at: time, "entry \(header.index) follows entry \(decided.count)")
        }
    }

    // MARK: - Writes

    /// A node wants something written.
    private mutating func submitted(_ change: Persist.Change, _ step: Step, _ record: DiskRecord) {
        guard case .append(let index, let bytes) = change else { return }
        guard let header = try? EntryHeader(bytes), header.index == index else {
            return violate(.recordIsReadable, at: step.time, "entry \(index) is damaged when it is submitted")
        }
        if index != model.index + 1 {
            violate(.logHasNoGap, at: step.time, "entry \(index) is proposed after entry \(model.index)")
        }
        if header.time < model.time {
            violate(
                .timeNeverRunsBack, at: step.time,
                "entry \(index) is \(model.time.milliseconds - header.time.milliseconds) ms before the one before it")
        }
        if header.time > max(highestTime(step.time), model.time) {
            violate(.timeIsReal, at: step.time, "entry \(index) is ahead of every clock")
        }
        if header.epoch != record.promise?.epoch {
            violate(.epochsRise, at: step.time, "entry \(index) is of epoch \(header.epoch), which is not promised")
        }
        if header.updateCount > UInt32(configuration.limits.updatesPerEntry) {
            violate(.queuesAreBounded, at: step.time, "entry \(index) holds \(header.updateCount) updates")
        }
        let sum = checksum(bytes.span.bytes)
        // What is proposed anew is no ghost.
        aborted.removeAll { $0 == sum }
        proposed[step.node] = bytes
    }

    /// A node has been told that its entry is not written.
    private mutating func refused(_ step: Step, isCertain: Bool, _ effects: Effects) {
        guard let bytes = proposed[step.node] else { return }
        proposed[step.node] = nil
        guard isCertain else { return }
        aborted.append(checksum(bytes.span.bytes))
        var waiting = 0
        guard let header = try? EntryHeader(bytes) else { return }
        var cursor = UpdateCursor(header)
        while let update = try? cursor.next(bytes) {
            switch update {
            case .announceIPv4, .announceIPv6: waiting += 1
            case .expire, .registerTorrent, .unregisterTorrent, .setAccessMode, .listInfoHash, .unlistInfoHash,
                .putUser, .removeUser, .setMembers, .mergePeer, .mergeStop, .mergeCompleted, .setInterval,
                .emptyShard:
                break
            }
        }
        let told = effects.replies.datagrams.count + effects.answers.count
        if told != waiting {
            violate(.answeredOnce, at: step.time, "\(waiting) requests were refused, \(told) were told")
        }
    }

    /// A write has become durable.
    mutating func wrote(_ change: Persist.Change, at time: Instant) {
        switch change {
        case .promise(let promise):
            if promise.epoch <= promised {
                violate(.epochsRise, at: time, "epoch \(promise.epoch) is promised after \(promised)")
            }
            promised = max(promised, promise.epoch)
        case .replaceAll:
            model.removeAllSwarms()
            ledger.close()
        case .append, .truncate, .saveChunk, .trim: break
        }
    }

    // MARK: - Bounds

    private mutating func checkBounds(_ step: Step, _ status: NodeStatus, _ effects: Effects) {
        if status.waitingRequests > 2 * configuration.limits.updatesPerEntry {
            violate(.queuesAreBounded, at: step.time, "\(status.waitingRequests) requests wait")
        }
    }

    private mutating func checkSilence(
        _ step: Step, _ status: NodeStatus, _ record: DiskRecord, _ effects: Effects
    ) {
        guard !effects.replies.isEmpty else { return }
        switch status.role {
        case .master, .draining:
            if record.promise?.epoch != status.epoch {
                violate(.silentUnlessMaster, at: step.time, "a reply before the promise of \(status.epoch) is durable")
            }
        case .failed:
            if case .failed = step.cause { break }
            violate(.silentUnlessMaster, at: step.time, "a reply from a node without a disk")
        case .stopped:
            // Its last step may have been to answer the last who waited.
            if case .told = step.cause { break }
            if case .failed = step.cause { break }
            violate(.silentUnlessMaster, at: step.time, "a reply from a node that has stopped")
        case .restoring, .candidate, .newcomer, .slave:
            violate(.silentUnlessMaster, at: step.time, "a reply from a node that is \(status.role.rawValue)")
        }
    }
}
