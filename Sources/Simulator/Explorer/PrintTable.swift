// A table from fingerprints to numbers, in the order in which they came.

import TrackerLogic

/// A table from fingerprints to numbers, in the order in which they came: the memory of the explorer.
///
/// Open addressing with linear probing; a fingerprint is taken for what it is the print of. With 2¹²⁸ of them, the odds
/// that two of a thousand million states share one are below 10⁻²⁰.
struct PrintTable {
    private struct Place {
        var high: UInt64
        var low: UInt64
    }

    /// Both words 0 where nothing is.
    private var places: [Place]
    private var numbers: [UInt32]
    private(set) var count = 0
    private var mask: Int

    init(capacity: Int = 1 << 10) {
        places = Array(repeating: Place(high: 0, low: 0), count: capacity)
        numbers = Array(repeating: 0, count: capacity)
        mask = capacity - 1
    }

    var byteCount: Int { places.count * (MemoryLayout<Place>.stride + MemoryLayout<UInt32>.stride) }

    private static func sound(_ print: Fingerprint) -> Place {
        Place(high: print.high, low: print.low | 1)
    }

    func find(_ print: Fingerprint) -> UInt32? {
        let wanted = PrintTable.sound(print)
        var place = Int(truncatingIfNeeded: wanted.high) & mask
        while places[place].low != 0 {
            if places[place].high == wanted.high, places[place].low == wanted.low { return numbers[place] }
            place = (place + 1) & mask
        }
        return nil
    }

    /// The number of a fingerprint; a new one gets `number`.
    ///
    /// - Returns: nil where it is new.
    mutating func insert(_ print: Fingerprint, number: UInt32) -> UInt32? {
        let wanted = PrintTable.sound(print)
        var place = Int(truncatingIfNeeded: wanted.high) & mask
        while places[place].low != 0 {
            if places[place].high == wanted.high, places[place].low == wanted.low { return numbers[place] }
            place = (place + 1) & mask
        }
        places[place] = wanted
        numbers[place] = number
        count += 1
        if count * 3 > places.count * 2 { grow() }
        return nil
    }

    /// Gives another number to a fingerprint that is known.
    mutating func replace(_ print: Fingerprint, number: UInt32) {
        let wanted = PrintTable.sound(print)
        var place = Int(truncatingIfNeeded: wanted.high) & mask
        while places[place].high != wanted.high || places[place].low != wanted.low {
            precondition(places[place].low != 0, "only what is known gets another number")
            place = (place + 1) & mask
        }
        numbers[place] = number
    }

    private mutating func grow() {
        var larger = PrintTable(capacity: places.count * 2)
        for place in places.indices where places[place].low != 0 {
            var home = Int(truncatingIfNeeded: places[place].high) & larger.mask
            while larger.places[home].low != 0 { home = (home + 1) & larger.mask }
            larger.places[home] = places[place]
            larger.numbers[home] = numbers[place]
        }
        larger.count = count
        self = larger
    }
}
