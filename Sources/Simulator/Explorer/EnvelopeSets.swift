// Sets of messages under way to one node, each kept once and named by a number.

import TrackerLogic

/// Sets of messages under way to one node, each kept once and named by a number: a state of the cluster is then a few
/// numbers, and what a change makes of a set is looked up.
///
/// Number 0 is the empty set.
struct EnvelopeSets {
    /// Where each set begins in `envelopes`; one more for the end of the last.
    private var starts: [UInt32] = [0, 0]
    /// The messages of all sets, each set in rising order; or, where messages come in order, of one sender after the
    /// other as each has sent them.
    private var envelopes: [UInt32] = []
    private var known = PrintTable()
    private var insertions = PairTable()
    private var removals = PairTable()
    private var firsts = PairTable()

    init() { _ = known.insert(EnvelopeSets.fingerprint([]), number: 0) }

    var count: Int { starts.count - 1 }

    /// The messages of a set, in rising order.
    subscript(set: UInt32) -> ArraySlice<UInt32> { envelopes[Int(starts[Int(set)])..<Int(starts[Int(set) + 1])] }

    /// How many messages a set has, and which is at a place of it.
    func count(of set: UInt32) -> Int { Int(starts[Int(set) + 1] - starts[Int(set)]) }
    func envelope(_ place: Int, of set: UInt32) -> UInt32 { envelopes[Int(starts[Int(set)]) + place] }

    private static func fingerprint(_ envelopes: [UInt32]) -> Fingerprint {
        var print = Fingerprint()
        for envelope in envelopes { print.absorb(envelope) }
        return print
    }

    /// The number of the set, a new one where it was never seen: distinct messages in rising order, or messages that
    /// come in order.
    mutating func intern(_ sorted: [UInt32]) -> UInt32 {
        let number = UInt32(count)
        if let old = known.insert(EnvelopeSets.fingerprint(sorted), number: number) { return old }
        envelopes.append(contentsOf: sorted)
        starts.append(UInt32(envelopes.count))
        return number
    }

    func contains(_ set: UInt32, _ envelope: UInt32) -> Bool { self[set].contains(envelope) }

    mutating func inserting(_ envelope: UInt32, into set: UInt32) -> UInt32 {
        if contains(set, envelope) { return set }
        let key = PairTable.key(set, envelope)
        if let known = insertions.find(key) { return known }
        var larger = Array(self[set])
        larger.insert(envelope, at: larger.firstIndex { $0 > envelope } ?? larger.count)
        let number = intern(larger)
        insertions.note(key, number)
        return number
    }

    mutating func removing(_ envelope: UInt32, from set: UInt32) -> UInt32 {
        let key = PairTable.key(set, envelope)
        if let known = removals.find(key) { return known }
        var smaller = Array(self[set])
        if let place = smaller.firstIndex(of: envelope) { smaller.remove(at: place) }
        let number = intern(smaller)
        removals.note(key, number)
        return number
    }

    mutating func union(_ set: UInt32, _ other: UInt32) -> UInt32 {
        if isSubset(set, of: other) { return other }
        if isSubset(other, of: set) { return set }
        var all = Array(self[set])
        for envelope in self[other] where !contains(set, envelope) { all.append(envelope) }
        all.sort()
        return intern(all)
    }

    /// Whether all messages of a set are in another.
    func isSubset(_ set: UInt32, of other: UInt32) -> Bool {
        if set == other || set == 0 { return true }
        let (small, large) = (self[set], self[other])
        guard small.count < large.count else { return false }
        var place = large.startIndex
        for envelope in small {
            while place < large.endIndex, large[place] < envelope { place += 1 }
            guard place < large.endIndex, large[place] == envelope else { return false }
            place += 1
        }
        return true
    }

    // MARK: - In order

    /// Of messages that come in order: puts one behind those of the same sender, before those of higher ones.
    mutating func appending(_ envelope: UInt32, to list: UInt32, _ sender: (UInt32) -> Int) -> UInt32 {
        let key = PairTable.key(list, envelope)
        if let known = insertions.find(key) { return known }
        var longer = Array(self[list])
        let own = sender(envelope)
        longer.insert(envelope, at: longer.firstIndex { sender($0) > own } ?? longer.count)
        let number = intern(longer)
        insertions.note(key, number)
        return number
    }

    /// Of messages that come in order: the next of each sender.
    mutating func next(of list: UInt32, _ sender: (UInt32) -> Int) -> UInt32 {
        if list == 0 { return 0 }
        let key = PairTable.key(list, 0)
        if let known = firsts.find(key) { return known }
        var next: [UInt32] = []
        for envelope in self[list] where next.last.map({ sender($0) != sender(envelope) }) ?? true {
            next.append(envelope)
        }
        let number = intern(next)
        firsts.note(key, number)
        return number
    }
}
