// Which states were seen, and nothing else of them.

import TrackerLogic

/// Which states were seen, and nothing else of them: 64 bits each, of which an eighth or more are empty places.
///
/// Two states may share 64 bits, and the second is then taken for seen. Of n states, the odds that any is missed so are
/// below n² / 2⁶⁵: one in a hundred and fifty for 500 million, as TLC has them for the same reason.
struct PrintSet {
    /// 0 where nothing is.
    private var prints: [UInt64]
    private(set) var count = 0
    private var mask: Int

    init(capacity: Int = 1 << 16) {
        prints = Array(repeating: 0, count: capacity)
        mask = capacity - 1
    }

    /// - Returns: whether it is new.
    mutating func insert(_ print: Fingerprint) -> Bool {
        let wanted = max(print.high ^ print.low, 1)
        var place = Int(truncatingIfNeeded: wanted) & mask
        while prints[place] != 0 {
            if prints[place] == wanted { return false }
            place = (place + 1) & mask
        }
        prints[place] = wanted
        count += 1
        if count * 8 > prints.count * 7 { grow() }
        return true
    }

    private mutating func grow() {
        var larger = PrintSet(capacity: prints.count * 2)
        for print in prints where print != 0 {
            var place = Int(truncatingIfNeeded: print) & larger.mask
            while larger.prints[place] != 0 { place = (place + 1) & larger.mask }
            larger.prints[place] = print
        }
        larger.count = count
        self = larger
    }
}
