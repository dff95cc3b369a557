// A state of the whole cluster.

import TrackerLogic

/// A state of the whole cluster: a number for each node's state, one for the history, what was spent of the bounds, and
/// for each node the set of messages under way to it, which come in any order.
struct ExplorerWorld {
    /// One for each node, then history, then budget, then a set of messages for each node; the rest is 0.
    var words = SIMD16<UInt32>()
    let nodes: Int

    init(nodes: Int) {
        self.nodes = nodes
        precondition(wordCount <= words.scalarCount, "a world of \(nodes) nodes has no room")
    }

    var wordCount: Int { 2 * nodes + 2 }

    var history: UInt32 {
        get { words[nodes] }
        set { words[nodes] = newValue }
    }

    /// The place of the set of messages under way to a node.
    func setPlace(_ node: Int) -> Int { nodes + 2 + node }

    // MARK: - Bounds

    /// What may happen only so often.
    enum Bound: Int {
        case elections, requests, scrapes, restarts, waits, failures
    }

    func spent(_ bound: Bound) -> Int { Int(words[nodes + 1] >> UInt32(bound.rawValue * 4) & 15) }

    mutating func spend(_ bound: Bound, _ count: Int = 1) {
        words[nodes + 1] += UInt32(count) << UInt32(bound.rawValue * 4)
    }

    // MARK: - Fingerprints

    /// What of the state is told by all but the messages.
    var kernel: Fingerprint { fingerprint(of: nodes + 2) }

    var fingerprint: Fingerprint { fingerprint(of: wordCount) }

    private func fingerprint(of count: Int) -> Fingerprint {
        var print = Fingerprint()
        var place = 0
        while place + 1 < count {
            print.absorb(UInt64(words[place]) << 32 | UInt64(words[place + 1]))
            place += 2
        }
        if place < count { print.absorb(UInt64(words[place]) << 32 | 0xFFFF_FFFF) }
        return print
    }
}
