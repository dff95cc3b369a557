// The requests that wait for their answers.

import Primitives

package struct LoadFlight: Sendable, Equatable {
    package enum Kind: UInt8, Sendable {
        case connect
        case announce
        case scrape
    }

    var kind: Kind
    /// Whether it counts: warm-up does not.
    var isMeasured: Bool
    /// How often it was sent before; only a fill sends again.
    var attempts: UInt8
    /// The peer; of a connect, the source.
    package var number: UInt32
    /// When it left, or should have left.
    var start: Instant

    package init(kind: Kind, isMeasured: Bool, attempts: UInt8, number: UInt32, start: Instant) {
        (self.kind, self.isMeasured, self.attempts) = (kind, isMeasured, attempts)
        (self.number, self.start) = (number, start)
    }
}

/// The requests that wait for their answers.
///
/// A transaction id is the index of a request's slot and how often the slot was used, so that an answer finds its
/// request at once, and a late one does not take another's place.
package struct LoadFlights: Sendable {
    /// Slots are numbered by 16 bits.
    static let limit = 65_536

    private struct Slot {
        var flight: LoadFlight
        var uses: UInt16
        var isBusy: Bool
    }

    private var slots: [Slot]
    /// A stack of free slots: the warmest is used again first.
    private var free: [UInt16]
    private var cursor = 0

    /// - Parameter capacity: 1…65,536.
    package init(capacity: Int) {
        precondition((1...Self.limit).contains(capacity), "there are 1 to 65,536 slots")
        let idle = LoadFlight(
            kind: .connect, isMeasured: false, attempts: 0, number: 0, start: Instant(nanoseconds: 0))
        slots = Array(repeating: Slot(flight: idle, uses: 0, isBusy: false), count: capacity)
        free = (0..<capacity).reversed().map { UInt16($0) }
    }

    /// Requests under way.
    package var count: Int { slots.count - free.count }

    package var isFull: Bool { free.isEmpty }

    /// - Returns: the transaction id, which no other request has that is under way or was lately.
    package mutating func depart(_ flight: LoadFlight) -> UInt32 {
        guard let slot = free.popLast() else { preconditionFailure("no slot is free for another request") }
        let uses = slots[Int(slot)].uses &+ 1
        slots[Int(slot)] = Slot(flight: flight, uses: uses, isBusy: true)
        return UInt32(uses) << 16 | UInt32(slot)
    }

    package enum Arrival: Equatable {
        case expected(LoadFlight)
        /// Its request was given up, or answered before.
        case late
        /// No request had this transaction id.
        case unknown
    }

    /// An answer has come.
    package mutating func arrive(_ transaction: UInt32) -> Arrival {
        let index = Int(transaction & 0xFFFF)
        guard index < slots.count else { return .unknown }
        let slot = slots[index]
        let uses = UInt16(transaction >> 16)
        guard slot.isBusy, slot.uses == uses else {
            // Modulo 2¹⁶: half of all numbers lie in the past.
            return uses != 0 && Int16(bitPattern: slot.uses &- uses) >= 0 ? .late : .unknown
        }
        release(index)
        return .expected(slot.flight)
    }

    /// Looks for a request that left before a time, and gives it up.
    ///
    /// Goes on where the last call ended.
    ///
    /// - Parameters:
    ///   - time: requests that left before it are lost.
    ///   - budget: how many slots to look at; counted down, so that no sweep takes long.
    /// - Returns: nil where none was found within the budget.
    package mutating func expire(before time: Instant, budget: inout Int) -> LoadFlight? {
        while budget > 0 {
            budget -= 1
            let index = cursor
            cursor = cursor + 1 == slots.count ? 0 : cursor + 1
            if slots[index].isBusy, slots[index].flight.start < time {
                release(index)
                return slots[index].flight
            }
        }
        return nil
    }

    private mutating func release(_ index: Int) {
        slots[index].isBusy = false
        free.append(UInt16(index))
    }
}
