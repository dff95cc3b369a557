// What is under way between trackers.

import Primitives
import Wire

/// A message on its way; what reaches many is kept once.
final class MessageInTransit: Sendable {
    let message: ClusterMessage
    let from: Int
    let sentAt: Instant
    /// Its place in the history, where one is kept.
    let number: Int

    init(_ message: ClusterMessage, from: Int, sentAt: Instant, number: Int) {
        self.message = message
        self.from = from
        self.sentAt = sentAt
        self.number = number
    }
}
