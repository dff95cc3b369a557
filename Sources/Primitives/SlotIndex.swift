/// A flat hash index: finds the slot of a record that lives in somebody else's array.
///
/// Open addressing with linear probing in hash order, eight bytes a place (32 bits of hash beside the slot), so that
/// a miss is decided without touching a record. Capacity is any number, not only powers of two, so that growth by a
/// quarter wastes little. The caller brings a hash under a secret key; the order of the places never shows.
@frozen
public struct SlotIndex: Sendable, Equatable {
    @frozen
    @usableFromInline
    struct Place: Sendable, Equatable {
        @usableFromInline var hash: UInt32
        /// The slot, or `SlotIndex.vacant`.
        @usableFromInline var slot: UInt32

        @inlinable
        init(hash: UInt32, slot: UInt32) {
            self.hash = hash
            self.slot = slot
        }
    }

    @usableFromInline static let vacant = UInt32.max
    @usableFromInline var places: [Place]
    /// How many slots are held.
    public internal(set) var count = 0

    /// An empty index without room.
    public init() { places = [] }

    /// The number of bytes that the index occupies.
    public var byteCount: Int { places.capacity * MemoryLayout<Place>.stride }

    @inlinable
    func home(_ hash: UInt32) -> Int {
        Int((UInt64(hash) &* UInt64(truncatingIfNeeded: places.count)) &>> 32)
    }

    /// Finds the slot with this hash that `isMatch` accepts.
    ///
    /// - Parameters:
    ///   - hash: the record's, under a secret key.
    ///   - isMatch: whether the record in a slot is the one that is looked for; asked only where all 32 bits of hash
    ///     agree.
    /// - Returns: the slot; nil where no record matches.
    /// - Complexity: O(1) expected.
    @inlinable
    public func find(_ hash: UInt32, where isMatch: (Int) -> Bool) -> Int? {
        guard count > 0 else { return nil }
        return places.withUnsafeBufferPointer { places in
            var place = Int((UInt64(hash) &* UInt64(truncatingIfNeeded: places.count)) &>> 32)
            while true {
                let held = places[place]
                if held.slot == SlotIndex.vacant { return nil }
                if held.hash == hash, isMatch(Int(held.slot)) { return Int(held.slot) }
                place += 1
                if place == places.count { place = 0 }
            }
        }
    }

    /// Adds a slot that is not yet held, under the hash of its record; a slot is below 2³² − 1.
    public mutating func insert(_ hash: UInt32, slot: Int) {
        if (count + 1) * 5 > places.count * 4 { grow() }
        place(Place(hash: hash, slot: UInt32(slot)))
        count += 1
    }

    /// Removes a slot that is held under this hash; one that is not held traps.
    public mutating func remove(_ hash: UInt32, slot: Int) {
        var hole = find(hash, place: slot)
        places[hole].slot = SlotIndex.vacant
        count -= 1
        // Close the gap, so that no search ends too early (Knuth, vol. 3, algorithm 6.4R).
        var next = hole
        while true {
            next += 1
            if next == places.count { next = 0 }
            let held = places[next]
            if held.slot == SlotIndex.vacant { return shrinkWhenSparse() }
            let wanted = home(held.hash)
            let isBetween = hole <= next ? (hole < wanted && wanted <= next) : (hole < wanted || wanted <= next)
            if !isBetween {
                places[hole] = held
                places[next].slot = SlotIndex.vacant
                hole = next
            }
        }
    }

    /// Tells the index that a record has moved to another slot, which is not held; a slot that is not held traps.
    public mutating func move(_ hash: UInt32, from slot: Int, to newSlot: Int) {
        let place = find(hash, place: slot)
        places[place].slot = UInt32(newSlot)
    }

    /// Forgets all slots and gives their room back.
    public mutating func removeAll() {
        places = []
        count = 0
    }

    private func find(_ hash: UInt32, place slot: Int) -> Int {
        var place = home(hash)
        while places[place].slot != UInt32(slot) {
            precondition(places[place].slot != SlotIndex.vacant, "the index does not hold this slot")
            place += 1
            if place == places.count { place = 0 }
        }
        return place
    }

    private mutating func place(_ newPlace: Place) {
        var place = home(newPlace.hash)
        while places[place].slot != SlotIndex.vacant {
            place += 1
            if place == places.count { place = 0 }
        }
        places[place] = newPlace
    }

    private mutating func grow() { rebuild(max(8, places.count + places.count / 4)) }

    /// Gives room back when four fifths of it are vacant: at the earliest when as many have gone as it then has places.
    private mutating func shrinkWhenSparse() {
        if places.count >= 64, count * 5 < places.count { rebuild(places.count / 2) }
    }

    private mutating func rebuild(_ placeCount: Int) {
        let old = places
        places = Array(repeating: Place(hash: 0, slot: SlotIndex.vacant), count: placeCount)
        for held in old where held.slot != SlotIndex.vacant { place(held) }
    }
}
