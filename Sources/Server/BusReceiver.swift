// Between a bus and the node's inbox.

import Bus
import Logging
import Synchronization
import TrackerLogic
import Web
import Wire

/// Between a bus and the node's inbox: reads what comes, on the bus's own threads, and leaves out what is not for
/// this tracker.
final class BusReceiver: BusInbox {
    /// Complaints in one life of the bus: as many as there may be trackers of another version; replays can make more
    /// than anybody wants to read.
    static let maxComplaints = 64

    private struct State {
        var tally = BusTally()
        /// Each is told once in each life of the bus: a kind of damage, or a sender of another version.
        var told: Set<String> = []

        /// - Returns: those that were not told before.
        mutating func news(_ complaints: [String]) -> [String] {
            complaints.filter { told.count < BusReceiver.maxComplaints && told.insert($0).inserted }
        }
    }

    private let state = Mutex(State())
    private let inbox: NodeInbox
    /// This tracker's, which it keeps until it ends.
    private let incarnation: UInt64
    private let logger: Logger
    /// Takes what is about operators' orders, which the node has no part in.
    private let takeOrder: @Sendable (ClusterMessage) -> Void

    init(
        inbox: NodeInbox, incarnation: UInt64, logger: Logger,
        takeOrder: @escaping @Sendable (ClusterMessage) -> Void = { _ in }
    ) {
        self.inbox = inbox
        self.incarnation = incarnation
        self.logger = logger
        self.takeOrder = takeOrder
    }

    var tally: BusTally { state.withLock { $0.tally } }

    func busReceived(_ messages: [[UInt8]]) {
        var events: [BusEvent] = []
        events.reserveCapacity(messages.count)
        var malformed: [ClusterMessageError] = []
        var orders: [ClusterMessage] = []
        for bytes in messages {
            do throws(ClusterMessageError) {
                let message = try ClusterMessage(bytes)
                guard isForMe(message) else { continue }
                switch message.body {
                case .order, .ordered: orders.append(message)
                default: events.append(.message(message, byteCount: bytes.count))
                }
            } catch {
                malformed.append(error)
            }
        }
        let untold = state.withLock { state in
            state.tally.messagesIn += UInt64(events.count)
            state.tally.malformed += UInt64(malformed.count)
            state.tally.otherVersion += UInt64(malformed.count { $0.isOtherVersion })
            return state.news(malformed.map(\.description))
        }
        for complaint in untold { logger.error("a message on the bus is left alone: \(complaint)") }
        if !events.isEmpty { inbox.put { input in for event in events { input.bus.append(event) } } }
        // What an order has come to stands in what came before: the node is to look at that first.
        for order in orders { takeOrder(order) }
    }

    /// Whether the node would look at it: not its own echo, and nothing that is for another life.
    private func isForMe(_ message: ClusterMessage) -> Bool {
        guard message.sender.incarnation != incarnation else { return false }
        guard case .one(let life) = message.destination else { return true }
        return life.incarnation == incarnation
    }

    func busRefused(_ foreigners: [BusFrameOrigin]) {
        let untold = state.withLock { state in
            state.tally.otherVersion += UInt64(foreigners.count)
            return state.news(
                foreigners.map { origin in
                    "tracker session \(String(origin.session, radix: 16)) speaks version \(origin.version) of the bus, "
                        + "this one version \(BusFrameHead.version); run the same release on all trackers of a cluster"
                })
        }
        for complaint in untold { logger.error("a tracker on the bus is not heard: \(complaint)") }
    }

    func busConnected() {
        logger.notice("the bus works")
        inbox.put { $0.bus.append(.connected) }
    }

    func busLost(reason: String) {
        logger.error("the bus is lost: \(reason)")
        state.withLock { $0.told = [] }
        inbox.put { $0.bus.append(.lost) }
    }

    func sent(_ count: Int) { state.withLock { $0.tally.messagesOut += UInt64(count) } }

    func dropped(_ count: UInt64) {
        let isFirst = state.withLock { state in
            defer { state.tally.dropped += count }
            return state.tally.dropped == 0
        }
        if isFirst { logger.warning("this tracker does not keep up with the bus: the oldest messages are dropped") }
    }
}

extension ClusterMessageError {
    fileprivate var isOtherVersion: Bool { if case .otherVersion = self { true } else { false } }
}
