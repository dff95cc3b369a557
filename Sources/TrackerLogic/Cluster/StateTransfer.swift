/// Fetching the whole state from a master, chunk by chunk (docs/protocol.md, Voters).
///
///     chunks 0 … n, each as it was at its own index ──► the log behind the least of them ──► digest compared ──► whole
///
/// The master keeps nothing about it: it sends any chunk as it is at the moment of asking. So a transfer of any length
/// holds up nobody, and no newcomer keeps the log from being cut. A chunk that became too old, for the log behind it
/// is no longer there, is fetched again; the rest stays.
///
/// Invariants: an entry's updates go into a chunk only where the chunk does not hold them yet; at most `window` chunks
/// are asked for at once.

import Primitives
import Wire

struct StateTransfer: Sendable, Hashable {
    /// Chunks asked for at once.
    static let window = 8

    /// Who sends.
    let source: Life
    let chunkCount: Int
    /// For each chunk, the last entry that it holds; nil until it is here.
    private(set) var heldThrough: [UInt64?]
    private var askedAt: [Instant?]

    init(from source: Life, chunkCount: Int) {
        self.source = source
        self.chunkCount = chunkCount
        heldThrough = Array(repeating: nil, count: chunkCount)
        askedAt = Array(repeating: nil, count: chunkCount)
    }

    var hasAllChunks: Bool { heldThrough.allSatisfy { $0 != nil } }
    /// Up to here, every chunk holds everything.
    var completeThrough: UInt64 { heldThrough.reduce(.max) { min($0, $1 ?? 0) } }

    /// The chunks to ask for now.
    mutating func wanted(now: Instant, retryAfter: Duration) -> [UInt32] {
        var underWay = 0
        for place in askedAt.indices where heldThrough[place] == nil {
            if let asked = askedAt[place], now - asked < retryAfter { underWay += 1 }
        }
        var wanted: [UInt32] = []
        for place in askedAt.indices where heldThrough[place] == nil && underWay < StateTransfer.window {
            if let asked = askedAt[place], now - asked < retryAfter { continue }
            askedAt[place] = now
            underWay += 1
            wanted.append(UInt32(place))
        }
        return wanted
    }

    /// A chunk has come.
    ///
    /// - Returns: whether it was wanted.
    mutating func received(_ number: UInt32, index: UInt64) -> Bool {
        guard Int(number) < chunkCount, heldThrough[Int(number)] == nil else { return false }
        heldThrough[Int(number)] = index
        return true
    }

    /// The log no longer goes back to an index: what is older has to be fetched again.
    ///
    /// - Returns: the chunks that are to be emptied.
    mutating func forget(olderThan index: UInt64) -> [Int] {
        var forgotten: [Int] = []
        for place in heldThrough.indices {
            guard let held = heldThrough[place], held < index else { continue }
            heldThrough[place] = nil
            askedAt[place] = nil
            forgotten.append(place)
        }
        return forgotten
    }
}
