// When a tracker is to be woken, and for what.

import Primitives

/// What a tracker waits for, each with the machine that knows when it is due.
///
/// Time is an argument of every step; a tracker keeps no clock. It is woken at the first of these that is due, looks at
/// all of them, and a spurious waking does nothing.
package enum Timer: Sendable, Hashable, CaseIterable {
    /// A quarter of a keepalive: what may have been lost is said again, what has become stale is dropped (`Timers`).
    case retry
    /// To say KEEPALIVE (`Timers`).
    case keepalive
    /// A neighbour has been silent for the detection time (`Neighbours`).
    case silence
    /// The master has (`FailureDetector`).
    case masterSilence
    /// It is this tracker's turn to stand (`FailureDetector`).
    case turn
    /// A candidate gives up (`Candidate`).
    case election
    /// The successor has not taken the role (`Handover`).
    case handover
    /// An orderly stop has taken too long (`Departure`).
    case departure
    /// After a write that failed, the next is tried (`EntryLog`).
    case write
    /// Requests of clients go on to the master (`RequestRouter`).
    case forward
    /// A shard is to be looked through for silent peers (`ExpirySweep`).
    case sweep
    /// A chunk of the snapshot is to be written (`Snapshotter`).
    case snapshot
}

/// The timers that are nobody's but the node's.
package struct Timers: Sendable, Hashable {
    /// Nil while there is no bus.
    package private(set) var retryAt: Instant?
    package private(set) var keepaliveAt = Instant(nanoseconds: 0)

    package init() {}

    /// The bus is there: everything is due at once.
    package mutating func begin(now: Instant) {
        retryAt = now
        keepaliveAt = now
    }

    package mutating func end() { retryAt = nil }

    /// Whether a quarter of a keepalive has gone by; the next one begins, then.
    package mutating func takeRetry(now: Instant, pause: Duration) -> Bool {
        guard let due = retryAt, due <= now else { return false }
        retryAt = now + pause
        return true
    }

    /// How late this process is with what it had to do last.
    package func lateness(now: Instant) -> Duration { retryAt.map { now - $0 } ?? .zero }

    /// Whether a keepalive is due; the next one is due an interval later, then.
    package mutating func takeKeepalive(now: Instant, interval: Duration) -> Bool {
        guard keepaliveAt <= now else { return false }
        keepaliveAt = now + interval
        return true
    }

    /// Something was said to all, which is a sign of life: the next keepalive is due an interval later.
    package mutating func postponeKeepalive(now: Instant, interval: Duration) { keepaliveAt = now + interval }

    /// The others are to know of something soon.
    package mutating func hurryKeepalive(now: Instant) { keepaliveAt = min(keepaliveAt, now) }
}

extension Timers {
    mutating func walk(_ archive: inout Archive) {
        retryAt.walk(&archive)
        keepaliveAt.walk(&archive)
    }
}
