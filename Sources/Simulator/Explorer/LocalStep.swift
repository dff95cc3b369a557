// Messages, moves, what a move makes of a node, and what is asked of its state.

import TrackerLogic
import Wire

/// A message on its way to one node.
struct Envelope: Sendable {
    var message: ClusterMessage
    var sender: Int
    var receiver: Int
}

/// What a node does, or what happens to it.
struct Move: Sendable, Hashable {
    enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        /// A message comes.
        case deliver
        /// The oldest write is durable.
        case write
        /// The oldest write has failed.
        case failWrite
        /// The node misses its master until it stands.
        case stand
        /// The node waits until it asks again.
        case wait
        /// A client's request comes.
        case request
        /// The node dies and comes back.
        case restart
    }

    var kind: Kind
    var node: Int
    /// Of a message, a request, a set of suspecters, or how many writes survive.
    var argument: UInt32
    /// Where between its writes the node dies, and comes back, counted from 1; 0 where it does not.
    var cut: UInt8

    var packed: UInt64 {
        UInt64(cut) << 48 | UInt64(kind.rawValue) << 40 | UInt64(node) << 32 | UInt64(argument)
    }

    /// Whether the node dies.
    var isDeath: Bool { kind == .restart || cut > 0 }

    init(_ kind: Kind, _ node: Int, _ argument: UInt32 = 0, cut: UInt8 = 0) {
        self.kind = kind
        self.node = node
        self.argument = argument
        self.cut = cut
    }

    init(packed: UInt64) {
        kind = Kind(rawValue: UInt8(truncatingIfNeeded: packed >> 40)) ?? .deliver
        node = Int(packed >> 32 & 0xFF)
        argument = UInt32(truncatingIfNeeded: packed)
        cut = UInt8(truncatingIfNeeded: packed >> 48)
    }
}

/// What a move makes of a node.
struct LocalStep: Sendable {
    var next: UInt32
    /// Messages that go out: places in `LocalSpace.outgoing`.
    var envelopesStart: UInt32 = 0
    var envelopeCount: UInt32 = 0
    var stood = 0
    /// Where between its writes the node may die.
    var cuts = 0
    /// A place in `LocalSpace.facts`; 0 for none.
    var facts = 0
    /// What happened before the node died; a place in `LocalSpace.facts`.
    var factsBefore = 0
    /// A place in `LocalSpace.faults`; 0 for none.
    var fault = 0
    /// Whether something is not on the node's disk any more that was.
    var loses = false

    /// Whether the node is as before, and nobody has noticed anything.
    func isNothing(to local: UInt32) -> Bool {
        next == local && envelopeCount == 0 && stood == 0 && facts == 0 && fault == 0
    }

    /// Whether messages go out, and nothing else comes of it.
    func isUtterance(to local: UInt32) -> Bool {
        next == local && envelopeCount > 0 && stood == 0 && facts == 0 && fault == 0
    }
}

/// What is asked of a node's state again and again.
struct LocalView: Sendable {
    var life: Life
    var promised: Epoch
    var index: UInt64
    var queueCount: Int
    /// The running hashes of the log at the entries on its disk, from `durableFrom` on.
    var durableFrom: UInt64
    var durable: [UInt64]

    init(_ state: LocalState) {
        let inspection = state.machine.inspection
        life = inspection.life
        promised = inspection.promised
        index = inspection.position.index
        queueCount = state.queue.count
        durableFrom = state.record.firstIndex
        durable = state.record.entries.map { $0.chain }
    }

    /// Whether its disk holds a decided entry, or the state behind it.
    func holds(_ index: UInt64, _ chain: UInt64) -> Bool {
        guard index >= durableFrom else { return true }
        let place = Int(index - durableFrom)
        return place < durable.count && durable[place] == chain
    }

    /// Whether it holds whatever an earlier state of its node held.
    func holdsAll(of earlier: LocalView) -> Bool {
        guard earlier.durableFrom <= durableFrom else { return false }
        for (place, chain) in earlier.durable.enumerated()
        where !holds(earlier.durableFrom + UInt64(place), chain) {
            return false
        }
        return true
    }
}
