// A table from a number of 64 bits, mostly two numbers side by side, to another number.

import Primitives

/// A table from a number of 64 bits, mostly two numbers side by side, to another number: what was worked out once is
/// looked up from then on.
///
/// Open addressing with linear probing, as `PrintTable`, but with the keys themselves: nothing is left to chance.
struct PairTable {
    /// Keys plus one; 0 where nothing is.
    private var keys: [UInt64]
    private var numbers: [UInt32]
    private var count = 0
    private var mask: Int

    init(capacity: Int = 1 << 10) {
        keys = Array(repeating: 0, count: capacity)
        numbers = Array(repeating: 0, count: capacity)
        mask = capacity - 1
    }

    @inline(__always)
    static func key(_ left: UInt32, _ right: UInt32) -> UInt64 { UInt64(left) << 32 | UInt64(right) }

    @inline(__always)
    func find(_ key: UInt64) -> UInt32? {
        let wanted = key &+ 1
        var place = Int(truncatingIfNeeded: mixed(key)) & mask
        while keys[place] != 0 {
            if keys[place] == wanted { return numbers[place] }
            place = (place + 1) & mask
        }
        return nil
    }

    /// Notes what was not known yet.
    mutating func note(_ key: UInt64, _ number: UInt32) {
        precondition(key != .max, "the greatest key stands for an empty place")
        if (count + 1) * 3 > keys.count * 2 { grow() }
        put(key &+ 1, number)
        count += 1
    }

    private mutating func put(_ word: UInt64, _ number: UInt32) {
        var place = Int(truncatingIfNeeded: mixed(word &- 1)) & mask
        while keys[place] != 0 { place = (place + 1) & mask }
        keys[place] = word
        numbers[place] = number
    }

    private mutating func grow() {
        var larger = PairTable(capacity: keys.count * 2)
        for place in keys.indices where keys[place] != 0 { larger.put(keys[place], numbers[place]) }
        larger.count = count
        self = larger
    }
}
