// Puts the parts of long messages together again.

import Primitives
import Wire

/// Puts the parts of long messages together again, of one sender.
///
/// Parts come at most once each (the windows see to that), in any order, and some never. The bounds are on what came,
/// not on what a sender says will come: a part that announces gigabytes costs no more than itself. A part costs more
/// than its bytes, so that is counted, too, and parts are bounded in number: a Byzantine member's of one byte each come
/// to 51 MB.
///
/// Invariants: `byteCount` is the sum of all parts that are held, with what each takes beside its bytes; `partCount` is
/// their number.
package struct Reassembly: Sendable {
    package enum Limits {
        /// Of one sender: the longest cluster message (`ClusterMessage.Limits`), and something beside it.
        package static let byteCount = ClusterMessage.Limits.chunkByteCount + (64 << 20)
        /// Of all senders together: two newcomers' worth.
        package static let totalByteCount = 2 * byteCount
        /// What a part costs beside its bytes: an array of its own, and a place in a dictionary that has just grown.
        package static let overhead = 96
        /// Parts of one sender: those of the longest message over multicast, 402,000 of 1,335 bytes, and something
        /// beside it.
        package static let parts = OutgoingQueue.Limits.parts
        /// Long messages of one sender under way at once.
        ///
        /// Its lanes take turns; more than this many newcomers at a time get their state more slowly.
        package static let messages = 16
        /// A message whose parts stay away for so long never comes: its sender has nothing to repeat any more.
        package static let patience = Duration.seconds(15)
    }

    private struct Pending: Sendable {
        var message: UInt64
        /// Those that came, by their numbers.
        var parts: [UInt32: [UInt8]] = [:]
        let count: UInt32
        var byteCount: Int
        var touched: Instant

        /// With what the parts take beside their bytes.
        var cost: Int { byteCount + parts.count * Limits.overhead }
    }

    private var pending: [Pending] = []
    package private(set) var byteCount = 0
    package private(set) var partCount = 0

    package init() {}

    /// Parts that there is room for.
    package var slotCount: Int { pending.reduce(0) { $0 + $1.parts.capacity } }

    /// Takes a part.
    ///
    /// - Parameters:
    ///   - part: where it lies, and what it is a part of.
    ///   - frame: that it came in.
    ///   - now: the monotonic clock.
    ///   - room: bytes that may be held in all, as `byteCount` counts them; the oldest messages go first.
    /// - Returns: the message, where this was its last missing part.
    /// - Throws: `.damaged` where the part contradicts an earlier one.
    package mutating func receive(
        _ part: BusPart, of frame: [UInt8], now: Instant, room: Int = Limits.byteCount
    ) throws(BusFrameError) -> [UInt8]? {
        dropOld(now)
        guard part.count <= Limits.parts else { throw .damaged }
        let index: Int
        if let found = pending.firstIndex(where: { $0.message == part.message }) {
            index = found
        } else {
            if pending.count == Limits.messages { drop(leastRecent()) }
            pending.append(
                Pending(message: part.message, count: part.count, byteCount: 0, touched: now))
            index = pending.count - 1
        }
        guard pending[index].count == part.count, part.index < part.count, pending[index].parts[part.index] == nil
        else { throw .damaged }
        pending[index].parts[part.index] = Array(frame[part.range])
        pending[index].byteCount += part.range.count
        pending[index].touched = now
        byteCount += part.range.count + Limits.overhead
        partCount += 1
        if pending[index].parts.count == Int(part.count) {
            let whole = drop(index)
            var message: [UInt8] = []
            message.reserveCapacity(whole.byteCount)
            for number in 0..<whole.count { message.append(contentsOf: whole.parts[number] ?? []) }
            return message
        }
        while byteCount > room || partCount > Limits.parts { drop(leastRecent()) }
        return nil
    }

    private mutating func dropOld(_ now: Instant) {
        var index = 0
        while index < pending.count {
            if now - pending[index].touched > Limits.patience { drop(index) } else { index += 1 }
        }
    }

    private func leastRecent() -> Int {
        pending.indices.min { pending[$0].touched < pending[$1].touched } ?? 0
    }

    @discardableResult
    private mutating func drop(_ index: Int) -> Pending {
        let dropped = pending.remove(at: index)
        byteCount -= dropped.cost
        partCount -= dropped.parts.count
        return dropped
    }
}
