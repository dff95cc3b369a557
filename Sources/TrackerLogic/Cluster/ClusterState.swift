/// What a node keeps in order to act with others: whom it has heard, whom it follows, and when to do what.

import Primitives
import Wire

struct ClusterState: Sendable, Equatable {
    /// This tracker's number; 0 until it has one.
    var id: UInt32
    var neighbours = Neighbours()
    /// What this tracker was told that all have to be told alike.
    let settings: SettingsPrint
    /// What the others say of themselves.
    var reports = Reports()
    var requests: RequestRouter
    var reads = ReadConfirmation()
    var transfer = StateTransfer()
    var merge: MergeWork?
    /// Chains of repositories that were merged already, the latest last.
    var mergedChains: [UInt64] = []
    /// Draws pauses.
    var random: RandomStream

    /// Whether the node had no memory when it started.
    var isBlank: Bool
    /// Whether the master is there, or this master's quorum.
    var detector: FailureDetector

    var timers = Timers()
    var handover = Handover()
    var departure = Departure()
    /// Whether it was refused, and has said so.
    var refusal: JoinRefusal?
    var refusedAt = Instant(nanoseconds: 0)


    /// While reading back: the last entry so far, which may not have been decided.
    var lastRestored: LoggedEntry?

    init(_ configuration: NodeConfiguration, isKeyed: Bool, maxRequests: Int, isBlank: Bool, seed: UInt64) {
        id = configuration.id
        settings = SettingsPrint(configuration)
        self.isBlank = isBlank
        requests = RequestRouter(isKeyed: isKeyed, maxCount: maxRequests)
        random = RandomStream(seed: seed, stream: 2)
        detector = FailureDetector(detectionTime: configuration.cluster?.detectionTime ?? .zero)
    }
}
