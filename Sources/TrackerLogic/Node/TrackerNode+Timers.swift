// When this node wants to be woken: one table of its timers.

import Primitives
import Wire

extension TrackerNode {
    /// The first timer that is due.
    @inline(__always)
    var deadline: Instant? {
        switch phase {
        case .restoring, .draining, .failed, .stopped: return nil
        case .following, .candidate, .master: break
        }
        var first: Instant?
        for timer in Timer.allCases { first = earliest(first, due(timer)) }
        return first
    }

    /// When a timer is due; nil where it does not run.
    @inline(__always)
    private func due(_ timer: Timer) -> Instant? {
        switch timer {
        case .write: log.writesResumeAt
        case .departure: departure.leavesAt
        case .retry: retries ? timers.retryAt : nil
        case .keepalive: isOnBus ? timers.keepaliveAt : nil
        case .silence: isOnBus ? neighbours.silenceDeadline(policy.detectionTime) : nil
        case .masterSilence: office.isBusUp && phase == .following ? detector.deadline : nil
        case .turn: office.isBusUp && phase == .following ? detector.standsAt : nil
        // Only whoever follows a master forwards, and only a master hands its role over.
        case .forward: forwardDeadline
        case .election: office.isBusUp && phase == .candidate ? candidate.electionDeadline : nil
        case .handover: handover.deadline
        case .sweep: phase == .master && !departure.isLast ? sweep.deadline : nil
        // A snapshot must not run ahead of the log on the disk.
        case .snapshot: phase != .candidate && maySnapshot ? snapshotter.deadline : nil
        }
    }

    @inline(__always)
    private var isOnBus: Bool { policy.hasBus && office.isBusUp }

    /// Whether something may have to be done again: a tracker that serves, and has no bus, else sleeps.
    @inline(__always)
    var retries: Bool { policy.hasBus || !isServing || hasCommands || departure.isLeaving }
}
