// Who is elected when nothing has happened but that the master has died.

import Primitives
import TrackerLogic
import Wire

/// Who is elected when nothing has happened but that the master has died, and after how many tries.
///
///     calm ── the master dies ──► awaited ── the preferred one is master ──► settling ── two detection times ──► calm
///       ▲                            │                                          │
///       └── all is well again ◄── troubled ◄──── anything else that goes wrong ─┘
///
/// The policy says who is preferred: of the voters that are left and in step, the highest id, the lowest, or the next
/// one after the last master, wrapping round. Promised is that this one becomes master, in one election, in time; not
/// that it does where messages are lost, disks fail, or trackers come and go meanwhile. So the world says when there is
/// trouble, and a death counts only where there has been none for a while.
///
/// Where a tracker lacks entries that another has cut from its log, two may take their turn at once, and the one that
/// lacks them gives up: then it is open who is elected, and after how many tries. But whoever stands comes to an end
/// soon: it leads, or gives up.
///
/// The order is worked out anew here, not asked of the logic.
package struct ElectionWatch: Sendable {
    /// A tracker that may be elected.
    package struct Candidate: Sendable, Hashable {
        package var id: UInt32
        package var index: UInt64

        package init(id: UInt32, index: UInt64) {
            self.id = id
            self.index = index
        }
    }

    private struct Awaited: Sendable {
        var dead: UInt32
        /// nil where two may stand.
        var preferred: UInt32?
        var diedAt: Instant
        /// When the preferred one became master.
        var electedAt: Instant?
        var standings = 0
        /// How much later than the first the last of the candidates had heard it.
        var heardWithin: Duration
        /// Who stands now, and since when.
        var standing: [(epoch: Epoch, since: Instant)] = []
    }

    /// So many entries may one who is in step be behind.
    static let inStep: UInt64 = 8

    private let policy: ClusterConfiguration.ElectionPolicy
    private let detectionTime: Duration
    private let keepalive: Duration
    /// The end of the last trouble that is known of.
    private var troubledUntil = Instant(nanoseconds: 0)
    private var awaited: Awaited?
    /// Deaths that were followed to their end: a sweep that sees none proves nothing.
    private(set) var settledCount = 0

    package init(_ configuration: ClusterConfiguration?) {
        policy = configuration?.election ?? .highest
        keepalive = configuration?.keepalive ?? .seconds(1)
        detectionTime = configuration?.detectionTime ?? .seconds(2)
    }

    /// How long all must have been well before a death counts.
    private var calm: Duration { detectionTime * 2 }

    /// By when the next master is to be there: the detection time, and half a second and a half of a keepalive for the
    /// votes and the disks.
    private var patience: Duration { detectionTime + electionTime }
    /// For the votes and the disks.
    private var electionTime: Duration { keepalive / 2 + .milliseconds(500) }

    /// Whether somebody is to be elected, or was just now.
    var isWatching: Bool { if case .some = awaited { true } else { false } }

    /// Whether all has been well for so long that it is plain what is to follow.
    func isCalm(at time: Instant) -> Bool { time - troubledUntil >= calm }

    /// Something goes wrong, or changes, until a time.
    package mutating func trouble(until time: Instant) {
        troubledUntil = max(troubledUntil, time)
        awaited = nil
    }

    /// The master dies; `candidates` are the voters that are left, all of them well.
    ///
    /// `isPlain` is whether each of them can be sent what it lacks by any other, is in step or not whatever comes of
    /// what is under way, and has missed no keepalive of another; `heardWithin` is how much later than the first the
    /// last of them had heard the dead one.
    package mutating func masterDied(
        _ dead: UInt32, candidates: [Candidate], isPlain: Bool = true, heardWithin: Duration = .zero, at time: Instant
    ) {
        let wasCalm = isCalm(at: time)
        trouble(until: time)
        let newest = candidates.reduce(0) { max($0, $1.index) }
        let ids = candidates.filter { $0.index + ElectionWatch.inStep >= newest }.map { $0.id }.sorted()
        guard wasCalm, let preferred = ElectionWatch.preferred(of: ids, after: dead, by: policy) else { return }
        awaited = Awaited(dead: dead, preferred: isPlain ? preferred : nil, diedAt: time, heardWithin: heardWithin)
    }

    /// Whose turn it is of some, in rising order, after a master; nil where there is none.
    static func preferred(
        of ids: [UInt32], after last: UInt32, by policy: ClusterConfiguration.ElectionPolicy
    ) -> UInt32? {
        switch policy {
        case .highest: ids.last
        case .lowest: ids.first
        case .next: ids.first { $0 > last } ?? ids.first
        }
    }

    /// Somebody stands for an epoch.
    ///
    /// - Returns: what is wrong with that.
    mutating func sees(candidateFor epoch: Epoch, at time: Instant) -> String? {
        guard let awaited else { return nil }
        guard let place = awaited.standing.firstIndex(where: { $0.epoch == epoch }) else {
            self.awaited?.standing.append((epoch, time))
            return nil
        }
        let since = awaited.standing[place].since
        // The others may miss the master later.
        guard time - since > electionTime + awaited.heardWithin else { return nil }
        self.awaited = nil
        return "tracker \(epoch.id) has stood for \((time - since).wholeMilliseconds) ms, and neither leads nor gives "
            + "up"
    }

    /// A tracker stands for master.
    ///
    /// - Returns: what is wrong with that.
    package mutating func stands(_ id: UInt32, at time: Instant) -> String? {
        guard awaited != nil else { return nil }
        awaited?.standings += 1
        guard let awaited, awaited.standings > 1, awaited.preferred != nil else { return nil }
        self.awaited = nil
        return "tracker \(id) stands for master after the death of tracker \(awaited.dead), and is not the first to"
    }

    /// A tracker serves as master.
    ///
    /// - Returns: what is wrong with that.
    package mutating func serves(_ id: UInt32, at time: Instant) -> String? {
        guard let awaited else {
            troubledUntil = max(troubledUntil, time)
            return nil
        }
        if awaited.electedAt == nil, id == awaited.preferred ?? id {
            self.awaited?.electedAt = time
            return nil
        }
        self.awaited = nil
        guard let preferred = awaited.preferred else {
            // Who is preferred to it has caught up, and is handed the role.
            troubledUntil = max(troubledUntil, time)
            return nil
        }
        return "tracker \(id) is master after tracker \(awaited.dead); it was the turn of tracker \(preferred)"
    }

    /// Looks at the time.
    ///
    /// - Returns: what is wrong.
    package mutating func pass(_ time: Instant) -> String? {
        guard let awaited else { return nil }
        if let elected = awaited.electedAt {
            guard time - elected >= detectionTime * 2 else { return nil }
            settledCount += 1
            troubledUntil = max(troubledUntil, elected)
            self.awaited = nil
            return nil
        }
        guard time - awaited.diedAt > patience else { return nil }
        guard let preferred = awaited.preferred else {
            // Who has promised the one that gave up waits for it to be missed.
            guard time - awaited.diedAt > patience + detectionTime * 3 else { return nil }
            self.awaited = nil
            return "nobody is master \((time - awaited.diedAt).wholeMilliseconds) ms after the death of tracker "
                + "\(awaited.dead)"
        }
        self.awaited = nil
        return "tracker \(preferred) is not master \((time - awaited.diedAt).wholeMilliseconds) ms after the "
            + "death of tracker \(awaited.dead)"
    }
}
