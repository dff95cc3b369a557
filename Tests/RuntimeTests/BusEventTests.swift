import Server
import Testing
import Wire

/// What waits for a tracker that does not keep up with its bus.
@Suite("Bus mail")
struct BusEventTests {
    private func message(_ round: UInt64) -> ClusterMessage {
        ClusterMessage(
            sender: Life(id: 1, incarnation: 1), destination: .all, epoch: Epoch(round: round, id: 1), body: .election)
    }

    private func rounds(_ queue: BusQueue) -> [UInt64] {
        queue.events.compactMap { if case .message(let message, _) = $0 { message.epoch.round } else { nil } }
    }

    @Test
    func `too many messages: the oldest go, are counted, and the news of the bus itself stay`() {
        var queue = BusQueue()
        queue.append(.lost)
        queue.append(.connected)
        let total = UInt64(BusQueue.maxMessages) * 3
        for round in 1...total { queue.append(.message(message(round), byteCount: 40)) }
        #expect(queue.messageCount <= BusQueue.maxMessages)
        #expect(queue.messageCount >= BusQueue.maxMessages / 2)
        #expect(UInt64(queue.messageCount) + queue.dropped == total)
        #expect(rounds(queue) == Array((total - UInt64(queue.messageCount) + 1)...total))
        guard case .lost = queue.events[0], case .connected = queue.events[1] else {
            Issue.record("that the bus was lost and found is forgotten")
            return
        }
    }

    @Test
    func `too many bytes: the same; one message may have any length`() {
        var queue = BusQueue()
        for round in 1...8 { queue.append(.message(message(UInt64(round)), byteCount: BusQueue.maxByteCount / 4)) }
        #expect(queue.byteCount <= BusQueue.maxByteCount)
        #expect(rounds(queue).last == 8)
        #expect(queue.dropped == UInt64(8 - queue.messageCount))
        queue.append(.message(message(9), byteCount: BusQueue.maxByteCount * 2))
        #expect(rounds(queue) == [9])
        queue.removeAll()
        #expect(queue.events.isEmpty && queue.messageCount == 0 && queue.byteCount == 0 && queue.dropped == 0)
    }
}
