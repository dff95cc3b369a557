// Missing the master, and when it is whose turn to stand.

import Primitives
import Wire

/// The failure detector over the master, and over a master's quorum.
///
///     master heard ── silent for the detection time ──► suspects ── a quorum suspects, own turn ──► stands
///         ▲                                                │
///         └─────────────── a master is heard ──────────────┘
///
/// It decides nothing but when to ask: a tracker that can send and not receive suspects alone, for ever, and harms
/// nobody (rules 1 and 7).
///
/// Invariant: a turn is taken only while it suspects.
package struct FailureDetector: Sendable, Hashable {
    private let detectionTime: Duration
    /// When the master will have been silent for too long, or was.
    package private(set) var silentAt = Instant(nanoseconds: 0)
    /// Since when the master is missed.
    package private(set) var suspectingSince: Instant?
    /// When SUSPECT was last sent; nil where it is due at once.
    private var noticeSentAt: Instant?
    /// When to stand, unless somebody else does.
    package private(set) var standsAt: Instant?
    /// A life that claims to be master and never answers, and until when it is ignored.
    package private(set) var ignored: Ignored?
    /// Since when a quorum has been following this master.
    private var followedAt = Instant(nanoseconds: 0)

    package struct Ignored: Sendable, Hashable {
        package var life: Life
        package var until: Instant
    }

    package init(detectionTime: Duration) { self.detectionTime = detectionTime }

    // MARK: - The master

    /// A master was heard, or there is time until one has to be.
    package mutating func expectMaster(from now: Instant) { silentAt = now + detectionTime }

    /// The master is gone for certain, or it is to be looked for after a pause of a candidate that has given up.
    package mutating func expectMaster(by time: Instant) { silentAt = time }

    /// Whether the master has been silent for too long.
    package func isSilent(now: Instant) -> Bool { now >= silentAt }

    /// When the master's silence is to be noticed; nil where it was noticed.
    @inline(__always)
    package var deadline: Instant? { suspectingSince == nil ? silentAt : nil }

    // MARK: - Suspicion

    package var isSuspecting: Bool { suspectingSince != nil }

    /// Begins to suspect the master.
    ///
    /// - Returns: whether it did not before.
    package mutating func suspect(now: Instant) -> Bool {
        guard suspectingSince == nil else { return false }
        suspectingSince = now
        noticeSentAt = nil
        return true
    }

    package mutating func stopSuspecting() {
        suspectingSince = nil
        standsAt = nil
    }

    /// Whether SUSPECT is due; it counts as sent, then.
    package mutating func takeSuspicionNotice(now: Instant, pause: Duration) -> Bool {
        if let noticeSentAt, now - noticeSentAt < pause { return false }
        noticeSentAt = now
        return true
    }

    /// Whether it has missed the master for so long that in survivor mode the last one left goes on alone.
    package func isLost(now: Instant) -> Bool { suspectingSince.map { now - $0 >= detectionTime } ?? false }

    // MARK: - Whose turn it is

    /// No quorum misses the master, or this tracker may not stand.
    package mutating func loseTurn() { standsAt = nil }

    /// A quorum misses the master.
    ///
    /// - Parameters:
    ///   - now: the monotonic clock.
    ///   - pause: until it is this tracker's turn; of no account where that is known already.
    /// - Returns: whether to stand now.
    package mutating func takeTurn(now: Instant, after pause: Duration) -> Bool {
        let due = standsAt ?? now + pause
        standsAt = due
        return due <= now
    }

    // MARK: - Masters that do not answer

    /// Ignores for a while a master that was heard and never answered.
    package mutating func ignore(_ life: Life, now: Instant) {
        ignored = Ignored(life: life, until: now + detectionTime * 10)
        silentAt = now
    }

    /// A life that sends to this tracker by name hears it, and is ignored no more.
    package mutating func noteAnswer(of life: Life) { if ignored?.life == life { ignored = nil } }

    package func ignores(_ life: Life, now: Instant) -> Bool { ignoredLife(now: now) == life }

    /// The life that is ignored now.
    package func ignoredLife(now: Instant) -> Life? { ignored.flatMap { now < $0.until ? $0.life : nil } }

    // MARK: - A master's quorum

    /// A quorum follows this master.
    package mutating func noteFollowed(now: Instant) { followedAt = now }

    /// Whether a quorum has followed this master within the detection time.
    package func wasFollowed(now: Instant) -> Bool { now - followedAt < detectionTime }
}

extension FailureDetector {
    /// Takes in all state on which later steps depend.
    ///
    /// - Parameters:
    ///   - print: the node's fingerprint so far.
    ///   - now: the monotonic clock; each pause is looked at in one phase only, and begins anew with it.
    ///   - isFollowing: whether the tracker looks for a master, or follows one.
    ///   - isLeading: whether it is master.
    func absorb(into print: inout Fingerprint, now: Instant, isFollowing: Bool, isLeading: Bool) {
        print.absorb(isFollowing && isSilent(now: now))
        if isLeading { print.absorb(!wasFollowed(now: now)) }
        print.absorb(isSuspecting)
        print.absorb(standsAt != nil)
        print.absorb(ignoredLife(now: now)) { $0.absorb($1) }
    }
}

extension FailureDetector {
    mutating func walk(_ archive: inout Archive) {
        silentAt.walk(&archive)
        suspectingSince.walk(&archive)
        noticeSentAt.walk(&archive)
        standsAt.walk(&archive)
        ignored.walk(&archive)
        followedAt.walk(&archive)
    }
}

extension FailureDetector.Ignored: Archived {
    static var blank: FailureDetector.Ignored { FailureDetector.Ignored(life: .blank, until: .blank) }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        until.walk(&archive)
    }
}
