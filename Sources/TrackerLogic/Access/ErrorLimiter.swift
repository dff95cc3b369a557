// Limits the error replies that go to one address in a second.

import Primitives

/// Limits the error replies that go to one address in a second: a forger must not make us shout at his victim.
///
/// A fixed table of counters; addresses that share one by chance share its allowance, so that no flood of sources makes
/// it grow.
public struct ErrorLimiter: Sendable, Hashable {
    /// Counters; more than the clients that are in error in any one second, in all but an attack.
    static let slotCount = 16_384

    private struct Slot: Sendable, Hashable {
        var second: UInt32 = 0
        var count: UInt32 = 0
    }

    private var slots: [Slot]
    private var key: UInt64
    private let limit: UInt32

    /// A limiter that has counted nothing yet.
    ///
    /// - Parameters:
    ///   - key: secret, so that nobody can choose addresses that share a counter.
    ///   - limit: errors to one address in a second.
    public init(key: UInt64, perSecond limit: Int) {
        slots = Array(repeating: Slot(), count: ErrorLimiter.slotCount)
        self.key = key
        self.limit = UInt32(clamping: limit)
    }

    /// Counts an error that is to go to an address, if it may.
    ///
    /// - Parameters:
    ///   - address: of the client; its port does not count.
    ///   - now: the monotonic clock.
    /// - Returns: whether it may go.
    public mutating func allows(_ address: SocketAddress, at now: Instant) -> Bool {
        let second = UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000_000)
        let hash = folded(address.high ^ key, address.low ^ 0xE703_7ED1_A0B4_28DB)
        let slot = Int(hash % UInt64(ErrorLimiter.slotCount))
        if slots[slot].second != second { slots[slot] = Slot(second: second, count: 0) }
        guard slots[slot].count < limit else { return false }
        slots[slot].count += 1
        return true
    }
}

extension ErrorLimiter {
    /// Most counters are at rest, and are not written.
    mutating func walk(_ archive: inout Archive) {
        archive.number(&key)
        let count = archive.count(archive.isReading ? 0 : slots.count { $0 != Slot() })
        if archive.isReading { slots = Array(repeating: Slot(), count: ErrorLimiter.slotCount) }
        var place = 0
        for _ in 0..<count {
            while !archive.isReading, slots[place] == Slot() { place += 1 }
            var told = UInt32(place)
            archive.number(&told)
            guard !archive.isDamaged, told < ErrorLimiter.slotCount else { return archive.refuse() }
            archive.number(&slots[Int(told)].second)
            archive.number(&slots[Int(told)].count)
            place += 1
        }
    }
}
