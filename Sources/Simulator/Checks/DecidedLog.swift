// What has been decided at which index.

import Primitives
import Wire

/// What has been decided at which index: learned from those who apply it.
///
/// In quorum mode there is one value at each index. In survivor mode each history has its own; the chain tells which.
struct DecidedLog: Sendable {
    struct Branch: Sendable, Hashable {
        var chain: UInt64
        /// The state after the entry; nil while nobody has been seen there who holds it whole.
        var digest: UInt64?
        /// Who was the first to apply it.
        var node: Int
        var time: Instant
    }

    private struct Place: Sendable {
        var branch: Branch?
        var others: [Branch] = []
    }

    /// How what a tracker holds goes with what was known before.
    enum Finding: Sendable, Hashable {
        case known
        /// It is the first to apply this value.
        case new
        /// Others hold another state after the same history.
        case otherDigest(Branch)
    }

    private var places: [Place] = [
        Place(branch: Branch(chain: 0, digest: nil, node: 0, time: Instant(nanoseconds: 0)))
    ]

    /// The last index that anybody has applied.
    var lastIndex: UInt64 { UInt64(places.count) - 1 }

    /// The first value that was seen at an index.
    func branch(_ index: UInt64) -> Branch? { index <= lastIndex ? places[Int(index)].branch : nil }

    /// When an index was first applied in the history that was found last; nil where nobody has.
    func decidedAt(_ index: UInt64) -> Instant? {
        guard index <= lastIndex else { return nil }
        return places[Int(index)].others.last?.time ?? places[Int(index)].branch?.time
    }

    func contains(_ position: Position) -> Bool {
        guard position.index <= lastIndex else { return false }
        let place = places[Int(position.index)]
        return place.branch?.chain == position.chain || place.others.contains { $0.chain == position.chain }
    }

    /// The state after an entry of some history; nil where nobody has been seen there.
    func digest(at position: Position) -> UInt64? {
        guard position.index <= lastIndex else { return nil }
        let place = places[Int(position.index)]
        if let branch = place.branch, branch.chain == position.chain { return branch.digest }
        return place.others.first { $0.chain == position.chain }?.digest
    }

    /// What is held after an entry is something else from now on.
    mutating func forgetState(_ index: UInt64) { if index <= lastIndex { places[Int(index)].branch?.digest = nil } }

    /// A tracker has applied an entry; `digest` is nil where what it then held was not seen.
    mutating func observe(_ position: Position, digest: UInt64?, node: Int, at time: Instant) -> Finding {
        while position.index > lastIndex { places.append(Place()) }
        let new = Branch(chain: position.chain, digest: digest, node: node, time: time)
        let index = Int(position.index)
        guard let first = places[index].branch else {
            places[index].branch = new
            return .new
        }
        if first.chain == position.chain {
            guard let digest else { return .known }
            guard let known = first.digest else {
                places[index].branch?.digest = digest
                places[index].branch?.node = node
                return .known
            }
            return known == digest ? .known : .otherDigest(first)
        }
        guard let place = places[index].others.firstIndex(where: { $0.chain == position.chain }) else {
            places[index].others.append(new)
            return .new
        }
        guard let digest else { return .known }
        guard let known = places[index].others[place].digest else {
            places[index].others[place].digest = digest
            return .known
        }
        return known == digest ? .known : .otherDigest(places[index].others[place])
    }
}
