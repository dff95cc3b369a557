/// A state of the whole cluster: a number for each node's state, one for the history, what was spent of the bounds, and
/// the letters under way, which come in any order.

import TrackerLogic

struct ExplorerWorld {
    /// One for each node, then history, then budget, then letters in rising order.
    var words: [UInt32]
    let nodes: Int

    init(nodes: Int) {
        self.nodes = nodes
        words = Array(repeating: 0, count: nodes + 2)
    }

    var history: UInt32 {
        get { words[nodes] }
        set { words[nodes] = newValue }
    }

    var firstLetter: Int { nodes + 2 }
    var letterCount: Int { words.count - firstLetter }

    // MARK: - Bounds

    /// What may happen only so often.
    enum Bound: Int {
        case elections, requests, scrapes, restarts, losses, repeats, waits, failures
    }

    func spent(_ bound: Bound) -> Int { Int(words[nodes + 1] >> UInt32(bound.rawValue * 4) & 15) }

    mutating func spend(_ bound: Bound, _ count: Int = 1) {
        words[nodes + 1] += UInt32(count) << UInt32(bound.rawValue * 4)
    }

    // MARK: - Letters

    /// A letter that is under way already is not put there again: a second copy lost is a schedule, too.
    mutating func put(_ letter: UInt32) {
        var place = words.count
        while place > firstLetter, words[place - 1] >= letter {
            if words[place - 1] == letter { return }
            place -= 1
        }
        words.insert(letter, at: place)
    }

    mutating func remove(letterAt place: Int) { words.remove(at: place) }

    var fingerprint: Fingerprint {
        var print = Fingerprint()
        var place = 0
        while place + 1 < words.count {
            print.absorb(UInt64(words[place]) << 32 | UInt64(words[place + 1]))
            place += 2
        }
        if place < words.count { print.absorb(UInt64(words[place]) << 32 | 0xFFFF_FFFF) }
        return print
    }
}
