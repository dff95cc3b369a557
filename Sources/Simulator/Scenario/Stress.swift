// Stress beyond what any seed draws: for looking where a sweep does not come.

import Primitives

/// Each but `damaged` has twenty clients, a minute of faults and one of them every few seconds, and trouble that is far
/// beyond what brokers and disks do.
public enum Stress: String, Sendable, Hashable, CaseIterable {
    /// Each message is under way for up to 300 ms.
    case slow
    /// Many messages come twice, or seconds late: perhaps to a later life of their receiver.
    case duplicates
    /// Messages are lost, and overtake each other; two trackers may be down at once.
    case lossy
    /// The opposite: nothing goes wrong but that the master dies, again and again.
    case deaths
    /// One write in four fails, trackers lose their disks, and those that lag behind have to take the whole state.
    case disks
    /// Disks are damaged, of three one at a time, of five two; the rest stays as the seed has drawn it.
    case damaged
}

extension ScenarioOptions {
    /// Takes the place of what the seed has drawn for clients, faults and bus; the rest stays.
    public mutating func harden(_ stress: Stress) {
        if stress == .damaged {
            faults.damageGap = .seconds(3)
            faults.maxOutages += 6
            return
        }
        clientCount = 20
        makeRoom()
        coreLength = .seconds(60)
        faults.meanGap = .seconds(3)
        faults.maxOutages = 40
        if faults.kinds.isEmpty { faults.kinds = [.crash, .pause, .partition, .deafLinks, .busLoss, .cleanStop] }
        switch stress {
        case .damaged: break
        case .slow:
            bus.maxDelay = .milliseconds(300)
        case .duplicates:
            faults.meanGap = .seconds(2)
            bus.maxDelay = .milliseconds(100)
            bus.stragglerPerMille = 20
            bus.repeatPerMille = 20
        case .lossy:
            faults.maxDown = 2
            bus.maxDelay = .milliseconds(300)
            bus.lossPerMille = 30
            bus.isReordering = true
        case .deaths:
            faults = FaultOptions()
            faults.kinds = [.crash]
            faults.killsMastersOnly = true
            faults.meanGap = .seconds(12)
            faults.maxOutages = 40
            coreLength = .seconds(120)
            latecomerDelay = .zero
            maxDrift = min(maxDrift, 2000)
            (disk.failPerMille, disk.stallPerMille) = (0, 0)
            (bus.lossPerMille, bus.stragglerPerMille, bus.redeliveredPerMille) = (0, 0, 0)
            bus.maxDelay = min(bus.maxDelay, .milliseconds(50))
        case .disks:
            tailCount = 1 + tailCount % 8
            disk.failPerMille = 250
            disk.maxDelay = .milliseconds(60)
            snapshotLogByteCount = min(snapshotLogByteCount, 1000)
            snapshotAge = min(snapshotAge, .seconds(2))
            for moment in [Moment.snapshotUnderWay, .trimSubmitted, .transferEnded, .writeFailed] {
                faults.injectOneIn[moment.rawValue] = 8
            }
            for kind in [Fault.Kind.memoryLoss, .memoryLoss, .diskFailure, .busLoss, .crash] {
                faults.kinds.append(kind)
            }
        }
    }
}
