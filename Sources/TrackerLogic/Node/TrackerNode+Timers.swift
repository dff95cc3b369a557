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
        case .write: isClustered ? log.writesResumeAt : nil
        case .departure: isClustered ? departure.leavesAt : nil
        case .retry: isOnBus ? timers.retryAt : nil
        case .keepalive: isOnBus ? timers.keepaliveAt : nil
        case .silence: isOnBus ? neighbours.silenceDeadline(policy.detectionTime) : nil
        case .masterSilence: isOnBus && phase == .following ? detector.deadline : nil
        case .turn: isOnBus && phase == .following ? detector.standsAt : nil
        case .handOn: isOnBus && phase == .following ? handOnDeadline : nil
        case .election: isOnBus && phase == .candidate ? candidate.givesUpAt : nil
        case .handover: isOnBus && phase == .master ? handover.deadline : nil
        case .promise: phase == .candidate ? standAgainAt : nil
        case .sweep: phase == .master ? sweep.deadline : nil
        // A snapshot must not run ahead of the log on the disk.
        case .snapshot: phase != .candidate && maySnapshot ? snapshotter.deadline : nil
        // On a bus, commands go on with the next quarter of a keepalive; and an entry under way comes first.
        case .command: phase == .master && !isClustered && proposer.isIdle ? commandsResumeAt : nil
        }
    }

    @inline(__always)
    private var isOnBus: Bool { isClustered && office.isBusUp }
}
