/// Sets of letters under way to one node, each kept once and named by a number: a state of the cluster is then a few
/// numbers, and what a change makes of a set is looked up. Number 0 is the empty set.

import TrackerLogic

struct LetterSets {
    /// Where each set begins in `letters`; one more for the end of the last.
    private var starts: [UInt32] = [0, 0]
    /// The letters of all sets, each set in rising order.
    private var letters: [UInt32] = []
    private var known = PrintTable()
    private var insertions = PrintTable()

    init() { _ = known.insert(LetterSets.fingerprint([]), number: 0) }

    var count: Int { starts.count - 1 }

    /// The letters of a set, in rising order.
    subscript(set: UInt32) -> ArraySlice<UInt32> { letters[Int(starts[Int(set)])..<Int(starts[Int(set) + 1])] }

    private static func fingerprint(_ letters: [UInt32]) -> Fingerprint {
        var print = Fingerprint()
        for letter in letters { print.absorb(letter) }
        return print
    }

    /// - Parameter sorted: distinct letters in rising order.
    mutating func intern(_ sorted: [UInt32]) -> UInt32 {
        let number = UInt32(count)
        if let old = known.insert(LetterSets.fingerprint(sorted), number: number) { return old }
        letters.append(contentsOf: sorted)
        starts.append(UInt32(letters.count))
        return number
    }

    func contains(_ set: UInt32, _ letter: UInt32) -> Bool { self[set].contains(letter) }

    mutating func inserting(_ letter: UInt32, into set: UInt32) -> UInt32 {
        if contains(set, letter) { return set }
        var print = Fingerprint()
        print.absorb(UInt64(set) << 32 | UInt64(letter))
        if let known = insertions.find(print) { return known }
        var larger = Array(self[set])
        larger.insert(letter, at: larger.firstIndex { $0 > letter } ?? larger.count)
        let number = intern(larger)
        _ = insertions.insert(print, number: number)
        return number
    }

    mutating func removing(_ letter: UInt32, from set: UInt32) -> UInt32 { intern(self[set].filter { $0 != letter }) }

    mutating func union(_ set: UInt32, _ other: UInt32) -> UInt32 {
        if isSubset(set, of: other) { return other }
        if isSubset(other, of: set) { return set }
        var all = Array(self[set])
        for letter in self[other] where !contains(set, letter) { all.append(letter) }
        all.sort()
        return intern(all)
    }

    /// Whether all letters of a set are in another.
    func isSubset(_ set: UInt32, of other: UInt32) -> Bool {
        if set == other || set == 0 { return true }
        let (small, large) = (self[set], self[other])
        guard small.count < large.count else { return false }
        var place = large.startIndex
        for letter in small {
            while place < large.endIndex, large[place] < letter { place += 1 }
            guard place < large.endIndex, large[place] == letter else { return false }
            place += 1
        }
        return true
    }
}
