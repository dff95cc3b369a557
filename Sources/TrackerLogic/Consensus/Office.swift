// Which part a tracker plays, whom it follows, and whether it may speak.

import Primitives
import Wire

/// The master that a tracker has heard of last.
package struct Following: Sendable, Hashable {
    package fileprivate(set) var life: Life
    package fileprivate(set) var epoch: Epoch
    /// When this tracker began to ask for its welcome, or last heard that it is heard.
    package fileprivate(set) var since: Instant
    /// Whether it was welcomed in this epoch.
    package fileprivate(set) var isWelcomed = false
    /// Earlier attempts at the next entry are void.
    package fileprivate(set) var attempt: UInt32 = 0
    /// The last entry that was decided when its master welcomed this tracker.
    package fileprivate(set) var decidedThrough: UInt64 = 0
    /// The position that its master was told because its welcome answered another one.
    fileprivate var toldPosition: Position?
    /// When this tracker last asked for entries.
    fileprivate var fetchedAt: Instant?
    /// Keepalives that found this tracker with a vote of an earlier epoch, and nothing new to vote on; 0 or 1.
    fileprivate var idleCount: UInt8 = 0
}

/// The part that a tracker plays.
///
///     restoring ── started ──► following ── stands ──► candidate ── own promise durable, elected ──► master
///                                  ▲                       │ given up                                   │
///                                  └───────────────────────┴───────────────────────────────── deposed ──┘
///     any of the last three ── stops ──► draining ── last word on the disk ──► stopped
///     any ── disk broken ──► failed
///
///     following: nobody ── a master is heard ──► asks ── WELCOME ──► installed ── dismissed, or strayed ──► asks
///
/// A client is answered by a tracker that may still speak, and by no other: `maySpeak` is the only question (rules 3, 7
/// and 8). A master of the past cannot know that it is one; so its quorum, its bus and its welcome are looked at before
/// every step, and it is asked in the same step.
///
/// Invariants: only a master serves as master; whoever follows is no master; without a bus nobody is followed.
package struct Office: Sendable, Hashable {
    package enum Phase: UInt8, Sendable, Hashable {
        /// Reads its record back. Can transition to: following, stopped, failed.
        case restoring
        /// Looks for a master, or follows one. Can transition to: candidate, draining, stopped, failed.
        case following
        /// Waits for its election. Can transition to: master, following, draining, failed.
        case candidate
        /// Serves. Can transition to: following, draining, stopped, failed.
        case master
        /// Has answered those that waited, and writes its last word. Can transition to: stopped, failed.
        case draining
        /// Has lost its disk: what was asked of it may or may not be written. Stays so.
        case failed
        /// Stays so.
        case stopped
    }

    package private(set) var phase = Phase.restoring
    /// Whether a master has opened its doors: not before the access rules that it was given are in force.
    package private(set) var isServing = false
    /// Clients are answered by who has applied entries up to here: what earlier masters decided is known then.
    package private(set) var servesFrom: UInt64 = 0
    package private(set) var following: Following?
    package private(set) var isBusUp = false

    package init() {}

    // MARK: - May it speak?

    /// What else it depends on whether clients may be answered.
    package struct ServiceConditions: Sendable, Hashable {
        /// The last entry that is applied.
        package var applied: UInt64
        /// The highest epoch promised.
        package var promised: Epoch
        /// Whether it holds the whole state, and fetches no other.
        package var holdsState: Bool
        /// Whether it misses its master.
        package var isSuspecting: Bool

        package init(applied: UInt64, promised: Epoch, holdsState: Bool, isSuspecting: Bool) {
            self.applied = applied
            self.promised = promised
            self.holdsState = holdsState
            self.isSuspecting = isSuspecting
        }
    }

    /// Whether clients may be answered here: by a master that serves, or by a slave that hears its master and has
    /// caught up.
    @inline(__always)
    package func maySpeak(_ standing: ServiceConditions) -> Bool {
        if phase == .master { return isServing }
        guard phase == .following, isBusUp, let following, following.isWelcomed else { return false }
        return following.epoch == standing.promised && standing.holdsState && !standing.isSuspecting
            && standing.applied >= servesFrom
    }

    /// Whether it takes part: it hears and is heard.
    @inline(__always)
    package var takesPart: Bool { phase == .following || phase == .candidate || phase == .master }

    // MARK: - Phases

    package mutating func begin() {
        precondition(phase == .restoring, "a node starts once")
        phase = .following
    }

    package mutating func stand() {
        following = nil
        phase = .candidate
    }

    package mutating func giveUp() { phase = .following }

    package mutating func lead() { phase = .master }

    /// - Parameter index: up to which all has to be applied before anybody is answered.
    package mutating func serve(from index: UInt64) { servesFrom = index }

    /// Opens the doors of a new master.
    package mutating func openDoors() {
        precondition(phase == .master, "only a master serves")
        isServing = true
    }

    package mutating func depose() {
        precondition(phase == .master, "who steps down was master")
        phase = .following
        isServing = false
        following = nil
        servesFrom = .max
    }

    package mutating func drain() {
        phase = .draining
        following = nil
    }

    package mutating func stop() { phase = .stopped }

    /// The disk is broken.
    package mutating func fail() { phase = .failed }

    // MARK: - The bus

    package mutating func busConnected() { isBusUp = true }

    package mutating func busLost() {
        isBusUp = false
        following = nil
    }

    // MARK: - Following

    /// Whether this life is the master that is followed, welcomed by it or not.
    @inline(__always)
    package func follows(_ life: Life) -> Bool { following?.life == life }

    @inline(__always)
    package func follows(_ life: Life, in epoch: Epoch) -> Bool {
        guard let following else { return false }
        return following.life == life && following.epoch == epoch
    }

    /// Whether a life that says that it is no master has been the one that is followed.
    ///
    /// What it said before it was elected may come late: it had promised less then, or was standing in that very epoch,
    /// which it never does again.
    package func isResignation(of life: Life, as role: ClusterRole, in epoch: Epoch) -> Bool {
        follows(life) && !isLate(epoch, of: life) && !(role == .candidate && follows(life, in: epoch))
    }

    /// Whether a master has welcomed this tracker.
    @inline(__always)
    package var isWelcomed: Bool { following?.isWelcomed == true }

    @inline(__always)
    package func isWelcomed(by life: Life, in epoch: Epoch) -> Bool { follows(life, in: epoch) && isWelcomed }

    /// Whether the master that is followed has said something before it came to lead.
    ///
    /// The epochs of a life only rise: what it says of an earlier one comes late, and tells nothing of what it is now.
    @inline(__always)
    package func isLate(_ epoch: Epoch, of life: Life) -> Bool {
        guard let following else { return false }
        return following.life == life && epoch < following.epoch
    }

    /// A master is heard: its welcome is asked for.
    package mutating func follow(_ life: Life, _ epoch: Epoch, since: Instant) {
        following = Following(life: life, epoch: epoch, since: since)
    }

    package mutating func unfollow() { following = nil }

    /// The master speaks to this tracker by name, so it hears it.
    package mutating func noteHeard(by life: Life, now: Instant) {
        if following?.life == life { following?.since = now }
    }

    /// Its master has welcomed it.
    ///
    /// - Parameters:
    ///   - index: the last entry that was decided then.
    ///   - attempt: earlier ones are void; nil where the next entry is not the one that the master meant.
    package mutating func welcomed(at index: UInt64, attempt: UInt32?) {
        following?.isWelcomed = true
        following?.decidedThrough = index
        if let attempt { raiseAttempt(to: attempt) }
    }

    /// It is to ask for its welcome anew, from now on.
    package mutating func dismissed(now: Instant) {
        following?.isWelcomed = false
        following?.since = now
    }

    /// Whether its master is still to be told that this tracker is elsewhere than its welcome says.
    ///
    /// Once, though many such welcomes may be on the way. What is lost is said again after the pause between two
    /// questions.
    package mutating func takeCorrection(_ position: Position) -> Bool {
        guard following?.toldPosition != position else { return false }
        following?.toldPosition = position
        return true
    }

    /// The state that its master was sending is void: this tracker asks for its welcome again.
    package mutating func revokeWelcome() { following?.isWelcomed = false }

    // MARK: - The next entry

    /// Attempts below this one are void.
    package mutating func raiseAttempt(to attempt: UInt32) {
        if let known = following?.attempt { following?.attempt = max(known, attempt) }
    }

    /// Its master is heard, and has nothing to take the place of an old vote.
    ///
    /// - Returns: whether it was so before: what it proposes it says again faster than that.
    package mutating func takeIdleKeepalive() -> Bool {
        guard let count = following?.idleCount, count == 0 else { return true }
        following?.idleCount = 1
        return false
    }

    /// An entry is decided: attempts are counted for one index.
    package mutating func entryDecided() { following?.attempt = 0 }

    /// Whether to ask the master for entries now; not more often than answers can come.
    package mutating func takeFetch(now: Instant, pause: Duration) -> Bool {
        guard let following, following.isWelcomed else { return false }
        if let asked = following.fetchedAt, now - asked < pause { return false }
        self.following?.fetchedAt = now
        return true
    }

    /// Entries have come.
    package mutating func entriesReceived() { following?.fetchedAt = nil }
}

extension Office {
    /// Takes in all state on which later steps depend.
    ///
    /// - Parameters:
    ///   - print: the node's fingerprint so far.
    ///   - applied: the last entry that is applied: whoever has got there serves.
    ///   - now: the monotonic clock.
    ///   - retryPause: between two questions for entries.
    func absorb(into print: inout Fingerprint, applied: UInt64, now: Instant, retryPause: Duration) {
        let number: UInt64 =
            switch phase {
            case .restoring: 0
            case .following: 1
            case .candidate: 2
            case .master: 3
            case .draining: 4
            case .failed: 5
            case .stopped: 6
            }
        print.absorb(number)
        print.absorb(isServing)
        print.absorb(isBusUp)
        // Whoever is not welcomed yet is told anew.
        print.absorb(phase == .master || isWelcomed && applied < servesFrom ? servesFrom : 0)
        print.absorb(following) { print, following in
            print.absorb(following.life)
            print.absorb(following.epoch)
            print.absorb(following.isWelcomed)
            print.absorb(following.attempt)
            print.absorb(following.toldPosition?.index ?? 0)
            print.absorb(following.fetchedAt.map { now - $0 < retryPause } ?? false)
            print.absorb(UInt64(following.idleCount))
        }
    }
}

extension Office {
    mutating func walk(_ archive: inout Archive) {
        phase.walk(&archive)
        isServing.walk(&archive)
        servesFrom.walk(&archive)
        following.walk(&archive)
        isBusUp.walk(&archive)
    }
}

extension Office.Phase: Archived { static var blank: Office.Phase { .restoring } }

extension Following: Archived {
    static var blank: Following { Following(life: .blank, epoch: .zero, since: .blank) }

    mutating func walk(_ archive: inout Archive) {
        life.walk(&archive)
        epoch.walk(&archive)
        since.walk(&archive)
        isWelcomed.walk(&archive)
        attempt.walk(&archive)
        decidedThrough.walk(&archive)
        toldPosition.walk(&archive)
        fetchedAt.walk(&archive)
        idleCount.walk(&archive)
    }
}
