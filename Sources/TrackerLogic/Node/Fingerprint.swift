// What a node is, in 128 bits, for whoever walks over the states that it can reach (the explorer).

import Primitives
import Wire

/// A hash of 128 bits that is the same in every process.
///
/// Two nodes of one fingerprint behave alike from here on, but for *when*: of times only what they have come to is in
/// it (whether somebody is up, silent, suspected; whether a pause is over), never a reading of a clock. The explorer
/// lets time pass in leaps that make all of it stale at once, so that nothing more can be seen of it.
///
/// Left out, and why:
/// - counters, the room of buffers, the streams of random numbers: nothing that is agreed on depends on them;
/// - snapshots and expiry: they are due after seconds, and the explorer's time is over in a millisecond;
/// - the order of answers and votes, and what neighbours said of their role, epoch and position: this chooses only
///   whom a node asks first, how soon it stands, and whom a master makes way for (rule 1); who has answered
///   a master beyond a quorum;
/// - what is looked at in one phase only, and begins anew with it, in every other;
/// - the tail of the log: the chain stands for it.
public struct Fingerprint: Sendable, Hashable {
    /// The first half.
    public private(set) var high: UInt64 = 0x6A09_E667_F3BC_C908
    /// The second half.
    public private(set) var low: UInt64 = 0xBB67_AE85_84CA_A73B

    /// Of nothing at all.
    public init() {}

    /// Mixes in a number; the order in which things are absorbed counts.
    @inline(__always)
    public mutating func absorb(_ number: UInt64) {
        high = mixed(high ^ number)
        low = mixed((low &+ number) &* 0x9E37_79B9_7F4A_7C15)
    }

    /// Mixes in a number, as 64 bits.
    public mutating func absorb(_ number: Int) { absorb(UInt64(truncatingIfNeeded: number)) }
    /// Mixes in a number, as 64 bits.
    public mutating func absorb(_ number: UInt32) { absorb(UInt64(number)) }
    /// Mixes in 1 or 0.
    public mutating func absorb(_ flag: Bool) { absorb(flag ? 1 : 0 as UInt64) }

    /// Mixes in a string of bytes, with its length.
    public mutating func absorb(_ bytes: [UInt8]) {
        absorb(bytes.count)
        var offset = 0
        let span = bytes.span.bytes
        while offset + 8 <= bytes.count {
            absorb(span.u64(at: offset))
            offset += 8
        }
        while offset < bytes.count {
            absorb(UInt64(span.u8(at: offset)))
            offset += 1
        }
    }

    /// Mixes in id and incarnation.
    public mutating func absorb(_ life: Life) {
        absorb(life.id)
        absorb(life.incarnation)
    }

    /// Mixes in round and id.
    public mutating func absorb(_ epoch: Epoch) {
        absorb(epoch.round)
        absorb(epoch.id)
    }

    /// Mixes in epoch, attempt and index.
    public mutating func absorb(_ ballot: Ballot) {
        absorb(ballot.epoch)
        absorb(ballot.attempt)
        absorb(ballot.index)
    }

    /// Mixes in index and chain.
    public mutating func absorb(_ position: Position) {
        absorb(position.index)
        absorb(position.chain)
    }

    /// Something that may be missing.
    mutating func absorb<Value>(_ value: Value?, _ absorb: (inout Fingerprint, Value) -> Void) {
        self.absorb(value != nil)
        if let value { absorb(&self, value) }
    }

    /// Things whose order says nothing.
    mutating func absorb<Value>(unordered values: [Value], _ absorb: (inout Fingerprint, Value) -> Void) {
        var (highs, lows): (UInt64, UInt64) = (0, 0)
        for value in values {
            var part = Fingerprint()
            absorb(&part, value)
            highs &+= part.high
            lows &+= part.low
        }
        self.absorb(values.count)
        self.absorb(highs)
        self.absorb(lows)
    }
}

extension TrackerNode {
    /// Walks over all of a node that its further behaviour depends on.
    ///
    /// - Parameters:
    ///   - print: what the node is mixed into.
    ///   - now: the node's monotonic clock.
    public func absorb(into print: inout Fingerprint, now: Instant) {
        office.absorb(into: &print, applied: state.index, now: now, retryPause: retryPause)
        print.absorb(promise.epoch)
        print.absorb(promise.incarnation)
        print.absorb(promise.secret.w0)
        print.absorb(promise.hasFullState)
        departure.absorb(into: &print)
        print.absorb(acceptor.durableEpoch)
        print.absorb(state.position)
        print.absorb(state.digest)
        print.absorb(writes.failure != nil)
        print.absorb(commands.count)
        print.absorb(backlog.count)
        absorbElection(&print)
        absorbLog(&print)
        absorbGathering(&print)
        absorbCluster(&print, now)
        absorbTransfer(&print)
        absorbNeighbours(&print, now)
        absorbBook(&print, now)
        absorbReads(&print)
        print.absorb(writes.count)
        for kind in writes.kinds { absorb(kind, &print) }
    }

    private func absorbElection(_ print: inout Fingerprint) {
        switch candidate.phase {
        case .idle: print.absorb(0)
        case .promising: print.absorb(1)
        case .asking: print.absorb(2)
        case .recovering: print.absorb(3)
        case .leading: print.absorb(4)
        }
        // Who does not stand needs to know only above which round to stand: `highestRound`.
        print.absorb(candidate.phase == .idle ? .zero : candidate.epoch)
        if candidate.isLeading, electorate.isQuorum(candidate.answeredIDs) {
            // Who else answers makes no difference while the voters stay the same.
            print.absorb(1)
        } else {
            print.absorb(unordered: candidate.answers) { print, ballots in
                print.absorb(ballots.life)
                print.absorb(ballots.answer.position)
                print.absorb(ballots.answer.pending?.bytes ?? [])
                print.absorb(ballots.isOutOfReach)
            }
        }
        proposer.absorb(into: &print, voters: neighbours.all.map { $0.life.id } + [admission.id])
    }

    private func absorbLog(_ print: inout Fingerprint) {
        for entry in [log.pending, log.durablePending] {
            print.absorb(entry) { print, entry in
                print.absorb(entry.header.ballot)
                print.absorb(entry.chain)
            }
        }
        print.absorb(log.durableThrough)
        print.absorb(log.tailStart)
        print.absorb(log.tailCount)
        print.absorb(log.isWriting)
        print.absorb(log.writesResumeAt != nil)
    }

    private func absorbGathering(_ print: inout Fingerprint) {
        print.absorb(gathering.updateCount)
        print.absorb(gathering.bytes)
        for ticket in gathering.tickets.tickets {
            print.absorb(gathering.tickets.life(of: ticket))
            print.absorb(ticket.ordinal)
            print.absorb(ticket.number)
        }
    }

    private func absorbCluster(_ print: inout Fingerprint, _ now: Instant) {
        print.absorb(admission.id)
        print.absorb(admission.wasBlank)
        print.absorb(candidate.nextRound(above: promise.epoch.round))
        if policy.election == .next { print.absorb(candidate.lastMaster) }
        print.absorb(acceptor.fullStateFrom) { $0.absorb($1) }
        print.absorb(acceptor.awaitedBy) { $0.absorb($1) }
        detector.absorb(
            into: &print, now: now, isFollowing: phase == .following, isLeading: phase == .master)
        if phase == .master {
            proposer.absorbPauses(into: &print, now: now, retryPause: retryPause, keepalive: policy.keepalive)
            print.absorb(reads.isDue(now: now, pause: retryPause))
        }
        print.absorb(acceptor.votedThrough)
        print.absorb(transfer.isWriting)
        print.absorb(acceptor.isConfirming)
        print.absorb(acceptor.hasNote)
        print.absorb(admission.refusal) { $0.absorb(UInt64($1.rawValue)) }
        handover.absorb(into: &print)
        print.absorb(router.outboxCount)
        merging.absorb(into: &print)
    }

    private func absorbTransfer(_ print: inout Fingerprint) {
        print.absorb(transfer.source) { $0.absorb($1) }
        for chunk in transfer.chunks { print.absorb(chunk) { $0.absorb($1.bytes) } }
        for entry in transfer.tail { print.absorb(entry.bytes) }
    }

    private func absorbNeighbours(_ print: inout Fingerprint, _ now: Instant) {
        for neighbour in neighbours.all {
            print.absorb(neighbour.life)
            print.absorb(neighbour.isUp)
            print.absorb(neighbour.suspicion.at.map { now - $0 < policy.detectionTime } ?? false)
            if !promise.hasFullState {
                print.absorb(neighbour.memory.isBlank)
                print.absorb(unordered: neighbour.memory.heardBlank) { $0.absorb($1) }
            }
            if !isQuorumMode { print.absorb(neighbour.hasFullState) }
            // The rest is a master's, and begins anew with each.
            guard phase == .master else { continue }
            print.absorb(neighbour.follower.welcomedIn == candidate.epoch)
            if !isQuorumMode { print.absorb(neighbour.promised < candidate.epoch) }
            print.absorb(neighbour.memory.confirmedIn == candidate.epoch)
            print.absorb(neighbour.memory.isForgetful)
            print.absorb(neighbour.follower.isDropped)
            if neighbour.follower.seen != SeenWindow() { absorb(neighbour.follower.seen, &print) }
        }
        guard phase == .master else { return }
        print.absorb(UInt64(neighbours.displaced.count))
        for life in neighbours.displaced {
            print.absorb(life.life)
            absorb(life.follower.seen, &print)
        }
    }

    /// Only the first numbers of a life are ever used where states are walked over.
    private func absorb(_ seen: SeenWindow, _ print: inout Fingerprint) {
        var window = seen
        for number in 0..<(8 as UInt64) { print.absorb(window.insert(number)) }
    }

    private func absorbBook(_ print: inout Fingerprint, _ now: Instant) {
        let floor = router.floor
        var number = floor
        var left = router.count
        print.absorb(floor)
        while left > 0 {
            if let request = router[number] {
                left -= 1
                print.absorb(number)
                print.absorb(request.waiting.clientRequest) { $0.absorb($1) }
                print.absorb(UInt64(request.waiting.transactionID.rawValue))
                let isForwarded = request.forwardedIn == promise.epoch
                print.absorb(isForwarded)
                print.absorb(isForwarded && now - request.forwardedAt >= policy.keepalive)
            }
            number += 1
        }
        // The number that the next request gets.
        if number > floor, !router.isFull { print.absorb(router.nextNumber) }
    }

    private func absorbReads(_ print: inout Fingerprint) {
        print.absorb(reads.count)
        print.absorb(unordered: reads.waitingNewcomers) { $0.absorb($1) }
        guard reads.isRoundUnderWay || reads.count > 0 else {
            return print.absorb(reads.round)
        }
        print.absorb(reads.round)
        let others = neighbours.all.map { $0.life.id }
        for id in others + [admission.id] {
            var reads = self.reads
            for read in reads.take(Electorate(voters: [id])) {
                print.absorb(read.life)
                print.absorb(read.number)
            }
            print.absorb(unordered: reads.takeNewcomers(Electorate(voters: [id]))) { $0.absorb($1) }
            print.absorb(reads.count)
        }
    }

    private func absorb(_ kind: WriteQueue.Kind, _ print: inout Fingerprint) {
        switch kind {
        case .promise(let epoch):
            print.absorb(1)
            print.absorb(epoch)
        case .entry(let ballot):
            print.absorb(2)
            print.absorb(ballot)
        case .everything(let index):
            print.absorb(3)
            print.absorb(index)
        case .fullStateMark: print.absorb(4)
        case .chunk(let number):
            print.absorb(5)
            print.absorb(number)
        case .trim: print.absorb(6)
        case .final: print.absorb(7)
        case .stopRecalled: print.absorb(8)
        }
    }
}
