// Messages that wait to be sent, by destination, within a bound.

import Primitives
import Wire

/// Messages that wait to be sent, by destination, within a bound; and how they become frames.
///
/// One lane a destination. Short messages go in the order in which they came, whatever lane they are in: a voter that
/// hears a proposal before it is welcomed has to be asked again. While a long message is on its way (a chunk of state
/// for a newcomer), the lanes take turns frame by frame, so that it does not hold up the keepalives to all; then the
/// order is kept within a lane. Over the bound the oldest message of all goes:
/// the logic repeats what matters, and what is old matters least. What was begun is finished: its beginning would be in
/// vain else.
///
/// Invariants: `byteCount` is the sum of all messages that wait and were not begun, with what each takes beside its
/// bytes; no lane is empty.
package struct OutgoingQueue: Sendable {
    package enum Limits {
        /// Bytes that wait: some seconds of a busy master at a broker that has stopped.
        ///
        /// A single message may be longer.
        package static let byteCount = 64 << 20
        /// Destinations: more than a cluster has trackers.
        ///
        /// Beyond that, the oldest message makes room.
        static let lanes = 256
        /// What a message costs beside its bytes, for many short ones must not escape the bound.
        static let overhead = 64
        /// Parts of one message: over multicast 700 MB, more than any message of ours has; those that hear it hold no
        /// more parts of one sender.
        static let parts = 1 << 19
    }

    private struct Waiting: Sendable {
        /// Counts the messages of the queue.
        var stamp: UInt64
        var bytes: [UInt8]
    }

    /// A long message, of which a part was sent.
    private struct Begun: Sendable {
        var bytes: [UInt8]
        var message: UInt64
        var index: UInt32
        var count: UInt32
    }

    private struct Lane: Sendable {
        /// An incarnation, or 0 for all.
        var destination: UInt64
        var waiting: [Waiting] = []
        /// Index in `waiting` of the first that still waits; those before are spent.
        var first = 0
        /// Goes before all that waits.
        var begun: Begun?

        var hasWaiting: Bool { first < waiting.count }

        mutating func removeFirst() -> [UInt8] {
            let bytes = waiting[first].bytes
            waiting[first].bytes = []
            first += 1
            // Spent places are given back once they are the greater part, so that each costs a constant time.
            if first == waiting.count {
                waiting.removeAll(keepingCapacity: true)
                first = 0
            } else if first >= 1024, first > waiting.count / 2 {
                waiting.removeFirst(first)
                first = 0
            }
            return bytes
        }
    }

    private let maxByteCount: Int
    private var lanes: [Lane] = []
    /// The lane whose turn it is.
    private var turn = 0
    private var stamp: UInt64 = 0
    private var longMessages: UInt64 = 0
    /// Messages that wait and were not begun.
    private var waitingCount = 0
    package private(set) var byteCount = 0
    /// Messages that were given up, in all.
    package private(set) var dropped: UInt64 = 0
    /// Messages that were put into frames to their end, in all.
    package private(set) var sent: UInt64 = 0

    package init(maxByteCount: Int = Limits.byteCount) { self.maxByteCount = maxByteCount }

    package var isEmpty: Bool { lanes.isEmpty }

    /// Puts a message behind all others for its destination.
    package mutating func append(_ message: BusMessage) {
        let destination = message.destination?.incarnation ?? 0
        stamp += 1
        let waiting = Waiting(stamp: stamp, bytes: message.bytes)
        if let lane = lanes.firstIndex(where: { $0.destination == destination }) {
            lanes[lane].waiting.append(waiting)
        } else {
            if lanes.count == Limits.lanes { dropOldest() }
            if lanes.count == Limits.lanes {
                // All of them are within a long message: then this one is too much.
                dropped += 1
                return
            }
            lanes.append(Lane(destination: destination, waiting: [waiting]))
        }
        waitingCount += 1
        byteCount += message.bytes.count + Limits.overhead
        while byteCount > maxByteCount, waitingCount > 1 { dropOldest() }
    }

    /// Gives up everything that waits, for example when the bus is lost: what a broker gets late helps nobody.
    package mutating func dropAll() {
        dropped += UInt64(waitingCount + lanes.count { $0.begun != nil })
        lanes.removeAll()
        (byteCount, waitingCount, turn) = (0, 0, 0)
    }

    private mutating func dropOldest() {
        var oldest: (lane: Int, stamp: UInt64)?
        for (index, lane) in lanes.enumerated() where lane.hasWaiting {
            let stamp = lane.waiting[lane.first].stamp
            if stamp < oldest?.stamp ?? .max { oldest = (index, stamp) }
        }
        guard let oldest else { return }
        dropped += 1
        _ = takeFirst(of: oldest.lane)
        removeIfEmpty(oldest.lane)
    }

    private mutating func takeFirst(of lane: Int) -> [UInt8] {
        let bytes = lanes[lane].removeFirst()
        byteCount -= bytes.count + Limits.overhead
        waitingCount -= 1
        return bytes
    }

    private mutating func removeIfEmpty(_ lane: Int) {
        guard !lanes[lane].hasWaiting, lanes[lane].begun == nil else { return }
        lanes.remove(at: lane)
        if turn > lane { turn -= 1 }
        // A lane that is opened next goes behind those that are there, and has its turn after them.
        if turn >= lanes.count { turn = 0 }
    }

    /// Takes the next frame's worth: as many messages of one lane as fit, or one part of a long one.
    ///
    /// - Parameters:
    ///   - limit: bytes of the body at most; more than `BusBody.partOverhead`.
    ///   - frame: holds a head of 25 bytes, which is patched where the kind is known; gets the body.
    /// - Returns: what kind of frame it is, and for whom; nil where nothing waits.
    package mutating func nextBody(
        limit: Int, into frame: inout [UInt8]
    ) -> (kind: BusFrameKind, destination: UInt64)? {
        precondition(limit > BusBody.partOverhead, "a frame has room for more than its own fields")
        guard !lanes.isEmpty else { return nil }
        let keepsOrder = lanes.allSatisfy { $0.begun == nil }
        let lane = keepsOrder ? oldestLane : turn % lanes.count
        let end = keepsOrder ? oldestStamp(butOf: lane) : .max
        turn = lane + 1
        let destination = lanes[lane].destination
        if lanes[lane].begun == nil {
            let next = lanes[lane].waiting[lanes[lane].first].bytes.count
            if next + BusBody.itemOverhead > limit { begin(lane, limit) }
        }
        if lanes[lane].begun != nil {
            appendPart(of: lane, limit, &frame)
            return (.part, destination)
        }
        var room = limit
        while lanes[lane].hasWaiting {
            let needed = lanes[lane].waiting[lanes[lane].first].bytes.count + BusBody.itemOverhead
            guard needed <= room, lanes[lane].waiting[lanes[lane].first].stamp < end else { break }
            BusBody.appendItem(destination: destination, takeFirst(of: lane), to: &frame)
            sent += 1
            room -= needed
        }
        removeIfEmpty(lane)
        return (.messages, destination)
    }

    /// The lane whose first message waits for longest; all of them have one.
    private var oldestLane: Int {
        var oldest = 0
        for lane in lanes.indices.dropFirst() where firstStamp(of: lane) < firstStamp(of: oldest) { oldest = lane }
        return oldest
    }

    private func oldestStamp(butOf lane: Int) -> UInt64 {
        var oldest = UInt64.max
        for other in lanes.indices where other != lane { oldest = min(oldest, firstStamp(of: other)) }
        return oldest
    }

    private func firstStamp(of lane: Int) -> UInt64 { lanes[lane].waiting[lanes[lane].first].stamp }

    /// Takes a long message out of those that wait: once a part of it has gone, the rest is not given up.
    private mutating func begin(_ lane: Int, _ limit: Int) {
        let bytes = takeFirst(of: lane)
        let size = limit - BusBody.partOverhead
        let count = (bytes.count + size - 1) / size
        precondition(
            count <= Limits.parts, "a cluster message of \(bytes.count) bytes is longer than any that there is")
        longMessages += 1
        lanes[lane].begun = Begun(bytes: bytes, message: longMessages, index: 0, count: UInt32(count))
    }

    private mutating func appendPart(of lane: Int, _ limit: Int, _ frame: inout [UInt8]) {
        guard let begun = lanes[lane].begun else { preconditionFailure("a part is of a message that was begun") }
        let total = begun.bytes.count
        let size = limit - BusBody.partOverhead
        let start = Int(begun.index) * size
        precondition(start < total, "the limit of a queue's frames stays the same")
        BusBody.appendPart(
            destination: lanes[lane].destination, message: begun.message, index: begun.index, count: begun.count,
            begun.bytes[start..<min(total, start + size)], to: &frame)
        lanes[lane].begun?.index += 1
        guard begun.index + 1 == begun.count else { return }
        lanes[lane].begun = nil
        sent += 1
        removeIfEmpty(lane)
    }
}
