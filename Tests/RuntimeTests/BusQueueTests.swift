// What waits for the bus, how it is cut into frames, and how it becomes whole again.

import Bus
import Primitives
import Testing
import Wire

@Suite("Bus queue")
struct BusQueueTests {
    private func message(_ bytes: [UInt8], to incarnation: UInt64? = nil) -> BusMessage {
        BusMessage(destination: incarnation.map { Life(id: 1, incarnation: $0) }, bytes: bytes)
    }

    /// A frame's worth: its kind, whom it is for, and its messages or its part.
    private struct Taken: Equatable {
        var destination: UInt64
        var messages: [[UInt8]] = []
        var part: BusPart?
    }

    private func take(_ queue: inout OutgoingQueue, limit: Int) throws -> (taken: Taken, frame: [UInt8])? {
        var frame: [UInt8] = []
        BusFrameHead(kind: .messages, cluster: 0, session: 1, sequence: 1).encode(into: &frame)
        guard let next = queue.nextBody(limit: limit, into: &frame) else { return nil }
        #expect(frame.count - BusFrameHead.byteCount <= limit)
        frame += [UInt8](repeating: 0, count: BusFrameHead.macByteCount)
        switch try BusBody(next.kind, of: frame) {
        case .messages(let items):
            #expect(items.allSatisfy { $0.destination == next.destination })
            return (Taken(destination: next.destination, messages: items.map { Array(frame[$0.range]) }), frame)
        case .part(let part): return (Taken(destination: next.destination, part: part), frame)
        default: throw BusFrameError.damaged
        }
    }

    @Test func `several short messages share a frame, in order, as many as fit`() throws {
        var queue = OutgoingQueue()
        for number in 1...5 { queue.append(message([UInt8](repeating: UInt8(number), count: 10))) }
        // Each takes 12 bytes beside its own.
        #expect(try take(&queue, limit: 68)?.taken.messages.map { $0[0] } == [1, 2, 3])
        #expect(try take(&queue, limit: 68)?.taken.messages.map { $0[0] } == [4, 5])
        #expect(try take(&queue, limit: 68) == nil)
        #expect(queue.sent == 5 && queue.byteCount == 0 && queue.isEmpty)
    }

    @Test func `a long message for one does not hold up those for others`() throws {
        var queue = OutgoingQueue()
        queue.append(message([UInt8](repeating: 1, count: 1000), to: 7))
        queue.append(message([2]))
        queue.append(message([3], to: 8))
        var order: [UInt64] = []
        while let next = try take(&queue, limit: 124) { order.append(next.taken.destination) }
        // Ten parts of a hundred bytes; the others come between the first of them.
        #expect(order == [7, 0, 8] + Array(repeating: 7, count: 9))
    }

    @Test func `over the bound the oldest messages go, whomever they are for`() throws {
        var queue = OutgoingQueue(maxByteCount: 1000)
        // 36 bytes and 64 of overhead each: ten fit.
        for number in 0..<15 {
            queue.append(message([UInt8](repeating: UInt8(number), count: 36), to: number % 2 == 0 ? nil : 7))
        }
        #expect(queue.dropped == 5 && queue.byteCount == 1000)
        var kept: [UInt8] = []
        while let next = try take(&queue, limit: 1000) { kept += next.taken.messages.map { $0[0] } }
        #expect(kept.sorted() == Array(5...14))
        // One alone may be longer than the bound: nobody would ever get it else.
        queue.append(message([UInt8](repeating: 9, count: 5000)))
        #expect(queue.dropped == 5 && !queue.isEmpty)
        queue.append(message([1]))
        #expect(queue.dropped == 6)
        #expect(try take(&queue, limit: 1000)?.taken.messages == [[1]])
        queue.append(message([1]))
        queue.append(message([2], to: 3))
        queue.dropAll()
        #expect(queue.dropped == 8 && queue.isEmpty && queue.byteCount == 0)
    }

    @Test func `a message of which a part was sent is sent to its end, whatever else comes`() throws {
        var queue = OutgoingQueue(maxByteCount: 1000)
        queue.append(message([UInt8](repeating: 1, count: 3000), to: 7))
        var parts: [BusPart] = []
        while let next = try take(&queue, limit: 524) {
            if let part = next.taken.part { parts.append(part) }
            for _ in 0..<20 where parts.count < 6 { queue.append(message([UInt8](repeating: 2, count: 36))) }
        }
        #expect(parts.map(\.index) == [0, 1, 2, 3, 4, 5])
        #expect(queue.dropped > 0 && queue.isEmpty && queue.byteCount == 0)
        queue.append(message([UInt8](repeating: 1, count: 3000), to: 7))
        _ = try take(&queue, limit: 524)
        let before = queue.dropped
        queue.dropAll()
        #expect(queue.dropped == before + 1 && queue.isEmpty)
    }

    @Test func `destinations are bounded`() {
        var queue = OutgoingQueue()
        for incarnation in 1...300 { queue.append(message([1], to: UInt64(incarnation))) }
        #expect(queue.dropped == 44)
    }

    @Test(arguments: 1...20)
    func `what goes in comes out, whatever the lengths`(_ seed: UInt64) throws {
        var random = RandomStream(seed: seed)
        var queue = OutgoingQueue()
        var reassembly = Reassembly()
        let limit = 25 + random.below(300)
        var sent: [UInt64: [[UInt8]]] = [:]
        var received: [UInt64: [[UInt8]]] = [:]
        func drain(_ count: Int) throws {
            for _ in 0..<count {
                guard let (taken, frame) = try take(&queue, limit: limit) else { return }
                received[taken.destination, default: []] += taken.messages
                guard let part = taken.part else { continue }
                if let whole = try reassembly.receive(part, of: frame, now: Instant(nanoseconds: 0)) {
                    received[taken.destination, default: []].append(whole)
                }
            }
        }
        for number in 0..<200 {
            let destination = UInt64(random.below(4))
            let count = random.oneIn(5) ? random.below(5000) : random.below(60)
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) }
            queue.append(message(bytes, to: destination == 0 ? nil : destination))
            sent[destination, default: []].append(bytes)
            try drain(random.below(3))
        }
        try drain(.max)
        #expect(received == sent)
        #expect(reassembly.byteCount == 0 && queue.sent == 200 && queue.dropped == 0)
    }

    // MARK: Reassembly

    private let now = Instant(nanoseconds: 0)

    private func part(_ message: UInt64, _ index: UInt32, of count: UInt32, _ bytes: [UInt8]) -> (BusPart, [UInt8]) {
        (BusPart(destination: 0, message: message, index: index, count: count, range: 0..<bytes.count), bytes)
    }

    @Test func `parts come in any order, of several messages at a time`() throws {
        var reassembly = Reassembly()
        func put(_ message: UInt64, _ index: UInt32, _ byte: UInt8) throws -> [UInt8]? {
            let (part, frame) = part(message, index, of: 3, [byte])
            return try reassembly.receive(part, of: frame, now: now)
        }
        #expect(try put(1, 2, 13) == nil)
        #expect(try put(2, 0, 21) == nil)
        #expect(try put(1, 0, 11) == nil)
        #expect(try put(2, 1, 22) == nil)
        #expect(try put(1, 1, 12) == [11, 12, 13])
        #expect(try put(2, 2, 23) == [21, 22, 23])
    }

    @Test func `parts that contradict each other are damaged`() throws {
        var reassembly = Reassembly()
        let (first, frame) = part(1, 0, of: 3, [1])
        #expect(try reassembly.receive(first, of: frame, now: now) == nil)
        #expect(throws: BusFrameError.damaged) { try reassembly.receive(first, of: frame, now: now) }
        let (other, _) = part(1, 1, of: 4, [1])
        #expect(throws: BusFrameError.damaged) { try reassembly.receive(other, of: frame, now: now) }
        let (huge, _) = part(2, 0, of: .max, [1])
        #expect(throws: BusFrameError.damaged) { try reassembly.receive(huge, of: frame, now: now) }
    }

    @Test func `what is held is bounded in bytes, in messages, and in time`() throws {
        var reassembly = Reassembly()
        for message in 1...40 as ClosedRange<UInt64> {
            let (part, frame) = part(message, 0, of: 2, [UInt8](repeating: 1, count: 100))
            let time = Instant(nanoseconds: Int64(message))
            #expect(try reassembly.receive(part, of: frame, now: time, room: 1800) == nil)
            #expect(reassembly.byteCount <= 1800)
        }
        // The last nine are there, and so one of them can be completed; one before cannot.
        let late = Instant(nanoseconds: 50)
        let (known, frame) = part(40, 1, of: 2, [2])
        #expect(try reassembly.receive(known, of: frame, now: late, room: 1800)?.count == 101)
        let (forgotten, _) = part(31, 1, of: 2, [2])
        #expect(try reassembly.receive(forgotten, of: frame, now: late, room: 1800) == nil)
        for message in 100..<200 as Range<UInt64> {
            let (part, frame) = part(message, 0, of: 2, [1])
            #expect(try reassembly.receive(part, of: frame, now: late) == nil)
        }
        #expect(reassembly.byteCount <= 16 * (100 + Reassembly.Limits.overhead))
        let (new, _) = part(500, 0, of: 2, [1])
        #expect(try reassembly.receive(new, of: frame, now: late + .seconds(16)) == nil)
        #expect(reassembly.byteCount == 1 + Reassembly.Limits.overhead)
    }
}
