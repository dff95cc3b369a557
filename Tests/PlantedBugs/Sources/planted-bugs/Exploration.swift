// Planted mistakes against the explorer: which bounds are enough for it to meet each.

import Foundation
import Simulator
import TrackerLogic

/// A mistake, who is to find it, and the cluster that is walked through.
struct Exploration: Sendable {
    var bug: PlantedBug
    /// What it may break.
    var checkers: [Invariant]
    var options: ExplorerOptions

    /// A mistake, the checkers of which one may find it, and how often each kind of move may happen.
    init(
        _ bug: PlantedBug, _ checkers: Invariant..., elections: Int = 0, requests: Int = 0, scrapes: Int = 0,
        restarts: Int = 0, waits: Int = 0, failures: Int = 0, disks: ExplorerOptions.Disks = .quick,
        from start: ExplorerOptions.Start = .led
    ) {
        self.bug = bug
        self.checkers = checkers
        options = ExplorerOptions()
        (options.start, options.disks) = (start, disks)
        // Each copy of a scrape begins a round of its own: with copies without end there is no end of them.
        if scrapes > 0 { options.network = .once }
        (options.elections, options.requests, options.scrapes) = (elections, requests, scrapes)
        (options.restarts, options.waits, options.failures) = (restarts, waits, failures)
        options.maxStates = Exploration.maxStates
    }

    /// Mistakes that harm only where messages overtake each other, come twice or not at all; and `learnedByIndex`, to
    /// which it is further than `maxStates` where they come in order.
    static let onlyInDisorder: [PlantedBug] = [
        .commitSentEarly, .learnedByIndex, .gapAccepted, .okBeforePromise, .redeliveredTwice,
    ]

    /// Each mistake is found within far fewer.
    static let maxStates = 3_000_000

    static func find(_ name: String) -> Exploration? { all.first { $0.bug.rawValue == name } }

    /// The bounds, in words.
    var bounds: String {
        let parts = [
            (options.elections, "election"), (options.requests, "request"), (options.scrapes, "scrape"),
            (options.restarts, "restart"), (options.waits, "wait"), (options.failures, "failed write"),
        ]
        let words = parts.filter { $0.0 > 0 }.map { count, name in "\(count) \(name)" + (count == 1 ? "" : "s") }
        return words.joined(separator: ", ") + (options.disks == .slow ? ", slow disks" : "")
            + (options.start == .formed ? ", from the start" : "")
    }

    /// Walks until the mistake is met; by a shortest schedule, unless states are joined.
    func walk(
        isPlanted: Bool, maxStates: Int? = nil, reduction: ExplorerOptions.Reduction = .covered,
        network: ExplorerOptions.Network? = nil
    ) -> Explorer {
        var options = options
        options.reduction = reduction
        if let network { options.network = network }
        if isPlanted { options.plantedBug = bug }
        if let maxStates { options.maxStates = maxStates }
        var explorer = Explorer(options)
        explorer.walk()
        return explorer
    }

    static let all: [Exploration] = [
        Exploration(.epochShared, .oneMasterPerEpoch, elections: 2, from: .formed),
        Exploration(.epochFromMemory, .oneMasterPerEpoch, .promiseIsKept, elections: 2, restarts: 1),
        Exploration(.electedByMinority, .decidedIsForEver, .voteIsKept, .quorumDecides, elections: 2, requests: 2),
        Exploration(.ownEntryInherited, .decidedIsForEver, elections: 2, requests: 1),
        Exploration(.inheritedNotProposed, .decidedIsForEver, elections: 1, requests: 2),
        Exploration(.recoverySkipped, .decidedIsForEver, elections: 1, requests: 2),
        Exploration(.answerWithoutPending, .voteIsKept, elections: 1, requests: 1),
        Exploration(.staleMasterAccepted, .promiseIsKept, elections: 1, requests: 1),
        Exploration(.prepareAfterPromise, .promiseIsKept, elections: 1, requests: 1),
        Exploration(.promiseForgotten, .oneMasterPerEpoch, .promiseIsKept, elections: 1, restarts: 1),
        Exploration(.answerBeforeDurable, .promiseIsKept, elections: 1, from: .formed),
        Exploration(.electionBeforeDurable, .promiseIsKept, elections: 1, from: .formed),
        Exploration(.commitBeforeQuorum, .quorumDecides, requests: 1),
        Exploration(.commitSentEarly, .decidedIsDecided, .quorumDecides, requests: 1, disks: .slow),
        Exploration(.ownVoteBeforeDurable, .quorumDecides, requests: 1, disks: .slow),
        Exploration(.appliedOnPrepare, .quorumDecides, requests: 1, disks: .slow),
        Exploration(.learnedByIndex, .quorumDecides, .decidedIsForEver, elections: 2, requests: 2),
        Exploration(.gapAccepted, .voteIsKept, requests: 2),
        Exploration(.okBeforeDurable, .voteIsKept, elections: 1, from: .formed),
        Exploration(.okBeforePromise, .promiseIsKept, elections: 1, requests: 1, disks: .slow),
        Exploration(.abortOnTimeout, .abortedStaysAborted, requests: 1, waits: 1),
        Exploration(
            .abortedRevived, .abortedStaysAborted, .voteIsKept, elections: 1, requests: 1, failures: 2, disks: .slow),
        Exploration(.scrapeUnconfirmed, .readsAreFresh, elections: 1, requests: 1, scrapes: 1),
        Exploration(.redeliveredTwice, .updateIsAsked, requests: 1),
        Exploration(.forwardedTooEarly, .updateIsAsked, elections: 1, requests: 1),
    ]
}
