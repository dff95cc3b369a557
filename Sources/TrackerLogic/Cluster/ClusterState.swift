/// What a node keeps in order to act with others: whom it has heard, whom it follows, and when to do what.

import Primitives
import Wire

struct ClusterState: Sendable, Equatable {
    var admission: Admission
    var neighbours = Neighbours()
    /// What this tracker was told that all have to be told alike.
    let settings: SettingsPrint
    /// What the others say of themselves.
    var reports = Reports()
    var requests: RequestRouter
    var reads = ReadConfirmation()
    var transfer = StateTransfer()
    var merging = Merging()
    /// Draws pauses.
    var random: RandomStream

    /// Whether the master is there, or this master's quorum.
    var detector: FailureDetector

    var timers = Timers()
    var handover = Handover()
    var departure = Departure()


    /// While reading back: the last entry so far, which may not have been decided.
    var lastRestored: LoggedEntry?

    init(_ configuration: NodeConfiguration, isKeyed: Bool, maxRequests: Int, isBlank: Bool, seed: UInt64) {
        admission = Admission(id: configuration.id, wasBlank: isBlank)
        settings = SettingsPrint(configuration)
        requests = RequestRouter(isKeyed: isKeyed, maxCount: maxRequests)
        random = RandomStream(seed: seed, stream: 2)
        detector = FailureDetector(detectionTime: configuration.cluster?.detectionTime ?? .zero)
    }
}
