// Faults of the house itself.

/// Faults of the house itself, planted around the logic to see whether the checkers notice.
///
/// For tests only: nothing outside of this package can ask for them.
package enum Sabotage: String, Sendable, CaseIterable {
    // The disk lies.
    case reportsBeforeDurable
    case losesEntries
    case losesChunks
    case stalesChunks
    case saysFailedButWrites
    case saysWrittenButFails
    case keepsSwarmsOnStop
    // The record is read back wrongly.
    case forgetsLastEntry
    case forgetsChunk
    case forgetsPromise
    // Replies are not what the node said.
    case repliesTwice
    case swallowsReplies
    case namesAnnouncer
    case repeatsPeer
    case dropsPeer
    case miscountsSeeders
    case miscountsScrapes
    case promisesLongInterval
    case repliesToWrongClient
    case repliesFromWrongAddress
    case refusesWithoutReason
    case refusesGoodIDs
    // Answers over HTTP are not.
    case answersTwice
    case swallowsAnswers
    case miscountsAnswers
    case namesStrangers
    case sendsVisitorsAway
    // Entries are not what the node meant.
    case stampsBackwards
    case stampsAhead
    // Messages are not what the node said.
    case losesProposals
    // The owner does not do its part.
    case forgetsCommands
    case fallsSilentAfterFaults
    case neverStops
}
