// Fetching the whole state from a master, chunk by chunk (docs/protocol.md, "Voters").

import Primitives
import Wire

/// What a tracker has of the state that it is fetching.
///
///     idle ── begin ──► chunks 0 … n, each as of its own index ──► the log behind the least of them ──► complete
///      ▲                    ▲                                              │                              │
///      │                    └────── the log was cut: what is older ────────┘                              │
///      └── cancel                                                         written ◄── writing ◄── taken ──┘
///
/// The master keeps nothing about it: it sends any chunk as it is at the moment of asking. So a transfer of any length
/// holds up nobody, and no newcomer keeps the log from being cut. A chunk that became too old, for the log behind it
/// is no longer there, is fetched again; the rest stays. Whoever had a whole state has it still, and its vote: the old
/// one is kept until the new one is complete.
///
/// Invariants: at most `window` chunks are asked for at once; the entries of the tail follow each other, the first one
/// right behind what every chunk holds; what is taken is of one history (rule 17).
package struct StateTransfer: Sendable, Equatable {
    /// Chunks asked for at once.
    package static let window = 8

    /// Who sends; nil while nothing is fetched.
    package private(set) var source: Life?
    /// Nil until they are here.
    package private(set) var chunks: [SnapshotChunk?] = []
    private var askedAt: [Instant?] = []
    /// Entries behind the chunks, in order.
    package private(set) var tail: [Entry] = []
    /// Whether a state that was fetched is on its way to the disk.
    package private(set) var isWriting = false

    package init() {}

    @inline(__always)
    package var isFetching: Bool { if case nil = source { false } else { true } }

    package var hasAllChunks: Bool { !chunks.contains { $0 == nil } }

    /// Up to here, every chunk holds everything.
    package var completeThrough: UInt64 { chunks.reduce(.max) { min($0, $1?.index ?? 0) } }

    /// The last entry that a chunk holds; 0 where it is not here.
    package func heldThrough(_ chunk: Int) -> UInt64 { chunks[chunk]?.index ?? 0 }

    // MARK: - Events

    package mutating func begin(from source: Life, chunkCount: Int) {
        self.source = source
        chunks = Array(repeating: nil, count: chunkCount)
        askedAt = Array(repeating: nil, count: chunkCount)
        tail = []
    }

    package mutating func cancel() {
        guard isFetching || !chunks.isEmpty else { return }
        source = nil
        chunks = []
        askedAt = []
        tail = []
    }

    /// What to ask of the source next.
    package enum NextRequest: Sendable, Equatable {
        /// Chunks; none while all that are missing are under way.
        case chunks([UInt32])
        /// The entries behind this index.
        case entries(after: UInt64)
    }

    /// What is to be asked for now.
    package mutating func wanted(now: Instant, retryAfter: Duration) -> NextRequest {
        if hasAllChunks { return wantedTail }
        var underWay = 0
        for place in chunks.indices where chunks[place] == nil {
            if let asked = askedAt[place], now - asked < retryAfter { underWay += 1 }
        }
        var wanted: [UInt32] = []
        for place in chunks.indices where chunks[place] == nil && underWay < StateTransfer.window {
            if let asked = askedAt[place], now - asked < retryAfter { continue }
            askedAt[place] = now
            underWay += 1
            wanted.append(UInt32(place))
        }
        return .chunks(wanted)
    }

    /// The entries that come next.
    package var wantedTail: NextRequest { .entries(after: completeThrough + UInt64(tail.count)) }

    /// A chunk has come.
    ///
    /// - Returns: whether it is one that was missing, from the source, and sound.
    package mutating func chunkReceived(_ chunk: SnapshotChunk, from sender: Life) -> Bool {
        guard source == sender, !chunk.bytes.isEmpty, chunk.isSound, chunk.number < chunks.count,
            chunks[Int(chunk.number)] == nil
        else { return false }
        chunks[Int(chunk.number)] = chunk
        return true
    }

    /// What is to be done after entries of the log have come.
    package enum Progress: Sendable, Equatable {
        /// They are asked for again, with the next tick.
        case nothing
        /// The log no longer goes back to all chunks: those that are older are missing again.
        case isCut
        /// More of the log is needed.
        case wantsMore
        /// All is here.
        case isComplete
    }

    /// Entries of the log have come.
    ///
    /// - Parameters:
    ///   - entries: in order, as the source sent them; some may be here already.
    ///   - index: what the state has to hold at least: what this tracker has voted for is in what was decided by then,
    ///     or
    ///     void.
    /// - Returns: what is to be done next.
    package mutating func entriesReceived(_ entries: [Entry], toReach index: UInt64) -> Progress {
        guard isFetching, hasAllChunks else { return .nothing }
        var next = completeThrough + UInt64(tail.count) + 1
        for entry in entries where entry.header.index >= next {
            guard entry.header.index == next else {
                forget(olderThan: entry.header.index - 1)
                return .isCut
            }
            tail.append(entry)
            next += 1
        }
        let newest = chunks.reduce(index) { max($0, $1?.index ?? 0) }
        guard next <= newest else { return .isComplete }
        return entries.isEmpty ? .nothing : .wantsMore
    }

    private mutating func forget(olderThan index: UInt64) {
        for place in chunks.indices {
            guard let chunk = chunks[place], chunk.index < index else { continue }
            chunks[place] = nil
            askedAt[place] = nil
        }
        tail = []
    }

    /// Whether the chunks and the log behind them belong together: each chunk says which history it is of, and its
    /// sender may have gone over to another one meanwhile.
    package var isOfOneHistory: Bool {
        let first = completeThrough
        var chains: [UInt64] = []
        for entry in tail {
            if chains.isEmpty { chains.append(entry.header.previous) }
            guard entry.header.previous == chains[chains.count - 1] else { return false }
            chains.append(entry.chain)
        }
        for case let chunk? in chunks {
            if chains.isEmpty { chains.append(chunk.chain) }
            // A chunk that is ahead of all entries fetched is never built upon.
            guard chunk.index >= first, chunk.index - first < UInt64(chains.count),
                chunk.chain == chains[Int(chunk.index - first)]
            else { return false }
        }
        return true
    }

    /// The state was built of it, and is to be written.
    package mutating func taken() {
        cancel()
        isWriting = true
    }

    /// That state is on the disk, or is not and has to be written again with all that came since.
    package mutating func writeEnded() { isWriting = false }
}

extension StateTransfer {
    mutating func walk(_ archive: inout Archive) {
        source.walk(&archive)
        chunks.walk(&archive)
        askedAt.walk(&archive)
        tail.walk(&archive)
        isWriting.walk(&archive)
    }
}
