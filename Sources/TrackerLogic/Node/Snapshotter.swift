// Decides when the state is written down.

import Primitives
import Wire

/// Decides when the state is written down, chunk by chunk, so that the log can be cut.
///
/// A round visits every chunk once and takes those that have changed, a few at a time, so that neither the node nor its
/// disk is held up. When all are durable, the entries from before the round are of no use any more.
struct Snapshotter: Sendable, Hashable {
    /// Between two batchs of a round.
    static let pace = Duration.milliseconds(10)
    /// Chunks in one batch, at most.
    static let maxChunksPerBatch = 8
    /// Bytes in one batch after which no further chunk is added.
    static let maxBatchByteCount = 1 << 20

    /// A round begins when the log has grown by this much, or by as much as the last round wrote.
    private let minLogByteCount: Int
    /// A round begins at the latest this long after the last, if anything has changed.
    private let maxAge: Duration

    private var logByteCount = 0
    private var lastRoundByteCount = 0
    /// The next chunk of the round under way.
    private var nextChunk: Int?
    /// What the state's index was when the round began.
    private var roundIndex: UInt64 = 0
    private var roundByteCount = 0
    private var hasEntries = false
    /// Chunks that were handed over and are not yet known to be durable.
    private var awaited = 0
    /// Whether a chunk of this round could not be saved: the log must not be cut then.
    private var hasFailed = false
    private(set) var deadline: Instant?

    init(maxAge: Duration, minLogByteCount: Int) {
        self.maxAge = maxAge
        self.minLogByteCount = minLogByteCount
    }

    /// Whether a round is under way.
    var isRunning: Bool { nextChunk != nil || awaited > 0 }

    mutating func start(now: Instant, hasEntries: Bool) {
        self.hasEntries = hasEntries
        deadline = now + maxAge
    }

    /// All of the state was written in another way: the round under way is void.
    mutating func restart(now: Instant) {
        nextChunk = nil
        logByteCount = 0
        hasEntries = true
        deadline = awaited > 0 ? nil : now + maxAge
    }

    mutating func entryApplied(byteCount: Int, now: Instant) {
        logByteCount += byteCount
        hasEntries = true
        if !isRunning, logByteCount >= max(minLogByteCount, lastRoundByteCount) { deadline = now }
    }

    /// Takes the next batch of chunks from a state, when it is time and the last batch is durable.
    mutating func nextChunks(of state: inout ReplicatedState, now: Instant) -> [SnapshotChunk] {
        guard let due = deadline, due <= now, awaited == 0 else { return [] }
        guard hasEntries || isRunning else {
            deadline = now + maxAge
            return []
        }
        if nextChunk == nil { beginRound(&state) }
        var chunk = nextChunk ?? 0
        var chunks: [SnapshotChunk] = []
        var byteCount = 0
        while chunk < state.chunkCount, chunks.count < Snapshotter.maxChunksPerBatch,
            byteCount < Snapshotter.maxBatchByteCount
        {
            if state.hasChanged(chunk: chunk) {
                let taken = state.takeChunk(chunk)
                byteCount += taken.bytes.count
                chunks.append(taken)
            }
            chunk += 1
        }
        roundByteCount += byteCount
        nextChunk = chunk
        awaited = chunks.count
        // The next batch waits for this one; a round that found nothing to save ends here and now.
        deadline = awaited > 0 ? nil : now
        return chunks
    }

    /// A chunk is durable, or could not be saved.
    mutating func chunkCompleted(isSaved: Bool, now: Instant) {
        awaited -= 1
        if !isSaved { hasFailed = true }
        if awaited == 0 { deadline = now + Snapshotter.pace }
    }

    /// Ends a round whose last chunk is durable.
    ///
    /// - Parameters:
    ///   - chunkCount: chunks of the state.
    ///   - now: the monotonic clock.
    /// - Returns: the index through which the log may be cut; nil where the round is not over, or has failed.
    mutating func endRound(_ chunkCount: Int, now: Instant) -> UInt64? {
        guard let nextChunk, nextChunk == chunkCount, awaited == 0 else { return nil }
        self.nextChunk = nil
        lastRoundByteCount = roundByteCount
        deadline = now + maxAge
        if hasFailed { hasEntries = true }
        return hasFailed ? nil : roundIndex
    }

    private mutating func beginRound(_ state: inout ReplicatedState) {
        // One chunk at least says how far the state was, for the last entries may have changed none.
        state.markChanged(chunk: state.firstFileChunk - 1)
        roundIndex = state.index
        roundByteCount = 0
        logByteCount = 0
        hasEntries = false
        hasFailed = false
        nextChunk = 0
    }
}

extension Snapshotter {
    mutating func walk(_ archive: inout Archive) {
        logByteCount.walk(&archive)
        lastRoundByteCount.walk(&archive)
        nextChunk.walk(&archive)
        roundIndex.walk(&archive)
        roundByteCount.walk(&archive)
        hasEntries.walk(&archive)
        awaited.walk(&archive)
        hasFailed.walk(&archive)
        deadline.walk(&archive)
    }
}
