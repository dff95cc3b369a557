// A cluster as one of its trackers sees it.

import Primitives
import Wire

/// A cluster as one of its trackers sees it, for `tracker status`, the console and the metrics.
///
/// Nothing decides by it: another tracker's place is as of its last word, so it may be an interval old. How far behind
/// it is, is counted from what this tracker had applied at that moment, and not from what it has applied since.
public struct ClusterStatus: Sendable, Equatable {
    /// This tracker, in this life.
    public var life: Life
    /// What makes a quorum; nil for a tracker without a bus, which is a cluster of one.
    public var mode: ClusterConfiguration.Mode?
    /// The highest epoch that it has promised.
    public var epoch: Epoch
    /// Whom it follows, or itself where it is master; nil while it knows of none, or misses the one it knew.
    public var master: UInt32?
    /// Whether it answers clients.
    public var isServing: Bool
    /// Whether it is cut off from the others, or has not been welcomed since.
    public var isFenced: Bool
    /// The ids that vote, as far as it knows.
    public var voters: [UInt32]
    /// What it has applied.
    public var position: Position
    /// The state's fingerprint there.
    public var digest: UInt64
    /// All that it has heard of and itself, by id.
    public var trackers: [TrackerView]
    /// Why it may not join, where somebody has said so.
    public var refusal: JoinRefusal?
    /// Others that were told something else.
    public var mismatched: [MismatchedTracker] = []
    /// Whether it waits for all members to be there for the first time.
    public var isForming = false
    /// Members that have never been heard since the process began.
    public var neverHeard: [UInt32] = []
    /// Whether it fetches the whole state.
    public var isFetching = false

    /// Takes the fields as they are; what is seldom there is set afterwards.
    public init(
        life: Life, mode: ClusterConfiguration.Mode?, epoch: Epoch, master: UInt32?, isServing: Bool, isFenced: Bool,
        voters: [UInt32], position: Position, digest: UInt64, trackers: [TrackerView]
    ) {
        self.life = life
        self.mode = mode
        self.epoch = epoch
        self.master = master
        self.isServing = isServing
        self.isFenced = isFenced
        self.voters = voters
        self.position = position
        self.digest = digest
        self.trackers = trackers
    }
}

/// One tracker of a cluster as another one, or itself, sees it.
public struct TrackerView: Sendable, Equatable {
    /// Which life of which tracker it is.
    public var life: Life
    /// Nil where it is down.
    public var role: ClusterRole?
    /// The epoch of its last message.
    public var epoch: Epoch
    /// Since its last message; zero for the tracker that is asked.
    public var silence: Duration
    /// What it had applied when it last said so: with a keepalive, a PREPARE, an OK or a COMMIT.
    public var position: Position
    /// Entries that it was behind the tracker that is asked when it last said where it is; 0 where it was ahead.
    ///
    /// Of the tracker that is asked itself: entries that it is behind its master, as far as that one has said.
    public var lag: UInt64
    /// How its history compares with that of the tracker that is asked.
    public var agreement: Agreement
    /// Whether it holds the whole state, as far as it says.
    public var hasFullState: Bool
    /// Whether its OK counts, as far as the tracker that is asked knows.
    public var hasVote: Bool
    /// What it last said of itself.
    public var report: HeardReport?
    /// How old that is; zero where there is none.
    public var reportAge = Duration.zero

    /// Takes the fields as they are.
    public init(
        life: Life, role: ClusterRole?, epoch: Epoch, silence: Duration, position: Position, lag: UInt64 = 0,
        agreement: Agreement, hasFullState: Bool, hasVote: Bool
    ) {
        self.life = life
        self.role = role
        self.epoch = epoch
        self.silence = silence
        self.position = position
        self.lag = lag
        self.agreement = agreement
        self.hasFullState = hasFullState
        self.hasVote = hasVote
    }

    /// How another's history compares with one's own.
    public enum Agreement: String, Sendable, Hashable, CaseIterable {
        /// It is the same, or the beginning of it.
        case same
        /// It is longer, so that only time can tell.
        case ahead
        /// It is another one.
        case different
        /// It ends so far back that nobody can tell any more.
        case unknown
    }
}

extension TrackerNode {
    /// The cluster as this node sees it.
    ///
    /// - Parameter now: to say how long each of the others has been silent.
    /// - Returns: all trackers that it has heard of, and itself.
    /// - Complexity: O(trackers).
    public func clusterStatus(now: Instant) -> ClusterStatus {
        let voters = electorate.voters
        let master: UInt32? =
            switch phase {
            case .master: admission.id
            case .following:
                !detector.isSuspecting ? office.following.flatMap { $0.isWelcomed ? $0.life.id : nil } : nil
            case .restoring, .candidate, .draining, .failed, .stopped: nil
            }
        var trackers = neighbours.all.map { view(of: $0, master, voters, now) }
        let own = TrackerView(
            life: life, role: clusterRole, epoch: max(candidate.epoch, promise.epoch), silence: .zero,
            position: state.position, lag: ownLag, agreement: .same, hasFullState: promise.hasFullState,
            hasVote: promise.hasFullState && voters.contains(admission.id))
        trackers.insert(own, at: trackers.firstIndex { $0.life.id > admission.id } ?? trackers.count)
        let isWelcomed = phase != .following || office.following?.isWelcomed == true
        let isInside = !policy.hasBus || office.isBusUp && isWelcomed
        var status = ClusterStatus(
            life: life, mode: policy.hasBus ? policy.mode : nil, epoch: own.epoch, master: master,
            isServing: isInService, isFenced: !isInside, voters: voters,
            position: state.position, digest: state.digest, trackers: trackers)
        status.refusal = admission.refusal
        status.mismatched = reports.mismatched
        status.isFetching = transfer.isFetching || transfer.isWriting
        if isQuorumMode {
            status.isForming = isBlank && !promise.hasFullState && office.following == nil
            status.neverHeard = voters.filter { $0 != admission.id && !reports.everHeard.contains($0) }
        }
        return status
    }

    /// Entries that this node is behind the master that it follows, whether it was welcomed there or not yet; 0 where
    /// it follows nobody.
    private var ownLag: UInt64 {
        guard phase != .master, let master = office.following?.life,
            let neighbour = neighbours[id: master.id], neighbour.life == master
        else { return 0 }
        let index = neighbour.position.index
        return index > state.index ? index - state.index : 0
    }

    private func view(
        of neighbour: Neighbour, _ master: UInt32?, _ voters: [UInt32], _ now: Instant
    ) -> TrackerView {
        let position = neighbour.position
        let agreement: TrackerView.Agreement =
            if position.index > state.index {
                .ahead
            } else {
                switch log.contains(position, applied: state.position) {
                case true?: .same
                case false?: .different
                case nil: .unknown
                }
            }
        // Whom this one follows is known before its next keepalive says so.
        let role = neighbour.life.id == master ? .master : neighbour.role
        var view = TrackerView(
            life: neighbour.life, role: neighbour.isUp ? role : nil, epoch: neighbour.epoch,
            silence: max(now - neighbour.heardAt, .zero), position: position, lag: neighbour.lag, agreement: agreement,
            hasFullState: neighbour.hasFullState, hasVote: voters.contains(neighbour.life.id))
        view.report = has(.reportOfAnother) ? reports.all.last : reports.report(of: neighbour.life)
        view.reportAge = view.report.map { max(now - $0.heardAt, .zero) } ?? .zero
        return view
    }
}
