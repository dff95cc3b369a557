// What came over the bus and waits for the node's thread.

import Wire

package enum BusEvent: Sendable {
    case connected
    case lost
    /// With the bytes that it took on the bus.
    case message(ClusterMessage, byteCount: Int)
}

/// What came over the bus and waits for the node's thread, oldest first, within bounds.
///
/// The logic assumes of a bus that it may lose: so what is too much is lost here, the oldest first, and counted. That
/// the bus was found or lost is never too much.
package struct BusQueue: Sendable {
    /// Messages that wait at most: a second's worth at the rates that a busy cluster has.
    package static let maxMessages = 65_536
    /// Bytes of messages that wait at most, but for the last of them, which may be as long as it likes.
    package static let maxByteCount = 64 << 20

    package private(set) var events: [BusEvent] = []
    package private(set) var messageCount = 0
    package private(set) var byteCount = 0
    /// Messages that were dropped since the process began, or the queue was emptied.
    package private(set) var dropped: UInt64 = 0

    package init() {}

    package mutating func append(_ event: BusEvent) {
        events.append(event)
        guard case .message(_, let count) = event else { return }
        messageCount += 1
        byteCount += count
        guard messageCount > Self.maxMessages || byteCount > Self.maxByteCount else { return }
        // To three quarters at once, so that the rest is not moved for each message.
        shed(toMessages: Self.maxMessages / 4 * 3, toByteCount: Self.maxByteCount / 4 * 3)
    }

    /// Drops the oldest messages until so much is left, or one.
    private mutating func shed(toMessages: Int, toByteCount: Int) {
        events.removeAll { event in
            guard case .message(_, let count) = event, messageCount > 1,
                messageCount > toMessages || byteCount > toByteCount
            else { return false }
            messageCount -= 1
            byteCount -= count
            dropped += 1
            return true
        }
    }

    package mutating func removeAll() {
        events.removeAll(keepingCapacity: true)
        (messageCount, byteCount, dropped) = (0, 0, 0)
    }
}
