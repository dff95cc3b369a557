/// Grounds that are harsher than any that a seed draws: for looking where a sweep does not come.

import Primitives

/// Each has twenty clients, a minute of faults and one of them every few seconds, and trouble on the bus that is far
/// beyond what brokers do.
public enum ClusterGround: String, Sendable, Hashable, CaseIterable {
    /// Each message is under way for up to 300 ms.
    case slow
    /// Many messages come twice, or seconds late: perhaps to a later life of their receiver.
    case stray
    /// Messages are lost, and overtake each other; two trackers may be down at once.
    case lossy
}

extension ClusterOptions {
    /// Takes the place of what the seed has drawn for clients, faults and bus; the rest stays.
    public mutating func harden(_ ground: ClusterGround) {
        clientCount = 20
        coreLength = .seconds(60)
        faults.meanGap = .seconds(3)
        faults.maxBlows = 40
        if faults.kinds.isEmpty { faults.kinds = [.crash, .pause, .partition, .deafLinks, .busLoss, .cleanStop] }
        switch ground {
        case .slow:
            bus.maxDelay = .milliseconds(300)
        case .stray:
            faults.meanGap = .seconds(2)
            bus.maxDelay = .milliseconds(100)
            bus.stragglerPerMille = 20
            bus.repeatPerMille = 20
        case .lossy:
            faults.maxDown = 2
            bus.maxDelay = .milliseconds(300)
            bus.lossPerMille = 30
            bus.isReordering = true
        }
    }
}
