// Taking in what a tracker knows that was on the other side of a partition (rule 12; survivor mode).

import Primitives
import Wire

/// A master's merging of another tracker's history into its own.
///
///     none ── begin ──► a chunk is asked for ── it comes ──► its updates queue ──► they go into the log, a few with
///      ▲                   ▲                                                       each entry ──► next chunk
///      │                   └──────────── an entry was refused: all anew ◄───────────────────────┤
///      └──── all decided: the other fetches the state; or it is gone, or has gone on deciding ◄─┘
///
/// The other's history is not continued: what it knows is said again in this history, by updates that newer knowledge
/// overrules. So they may come in any order, twice, or from several trackers that know the same.
///
/// Invariant: one merge at a time; the updates of one chunk at a time.
package struct Merging: Sendable, Equatable {
    /// One that is under way.
    fileprivate struct Work: Sendable, Hashable {
        var source: Life
        /// Where its history ended.
        var position: Position
        /// Whether its swarms count; else only what is kept without them is taken in.
        var hasSwarms: Bool
        /// The chunk that is awaited.
        var chunk: UInt32 = 0
        /// When it was last asked for; nil where it is to be asked for at once.
        var askedAt: Instant?
        /// Updates that are not gathered yet, the next one last.
        var updates: [Update] = []
        /// Whether all chunks have come.
        var isComplete = false
        /// The entry with the last of the updates, at the latest.
        var lastIndex: UInt64 = 0
        var updateCount = 0
        /// Updates among them for which there was no room.
        var leftOutCount = 0
        /// The longest interval that the other side's clients may have been told, in seconds; 0 where they are waited
        /// for as it is.
        var toldInterval: UInt32 = 0
    }

    /// Histories that are remembered to be merged.
    package static let maxMergedCount = 63

    private var work: Work?
    /// Chains of repositories that were merged already, the latest last.
    private var mergedChains: [UInt64] = []

    package init() {}

    /// Who is merged; nil while nobody is.
    @inline(__always)
    package var source: Life? { work?.source }

    @inline(__always)
    package var isUnderWay: Bool { if case nil = work { false } else { true } }

    /// Whether all that a history knows is here already.
    package func hasMerged(_ position: Position) -> Bool { mergedChains.contains(position.chain) }

    // MARK: - Events

    /// Begins to take in another tracker's history.
    ///
    /// - Parameters:
    ///   - source: who sends its chunks.
    ///   - position: where its history ended.
    ///   - hasSwarms: whether more than access rules and registry is to be taken over.
    ///   - now: the monotonic clock.
    package mutating func begin(_ source: Life, _ position: Position, hasSwarms: Bool, now: Instant) {
        precondition(work == nil, "one merge at a time")
        work = Work(source: source, position: position, hasSwarms: hasSwarms, askedAt: now)
    }

    package mutating func cancel() { work = nil }

    /// What is to be done with a chunk that has come.
    package enum Reception: Sendable, Equatable {
        /// It is not the one that is awaited, or was damaged on its way.
        case ignored
        /// Its sender has gone on deciding, or over to another history: what was taken over is not all that it knows,
        /// or is no part of it. It says HELLO again.
        case cancelled
        /// There are no more.
        case complete
        /// Its updates are to be taken in.
        case wanted
    }

    package mutating func chunkReceived(_ chunk: SnapshotChunk, from sender: Life) -> Reception {
        // One that was asked for before an entry was refused may come while the one before it is being taken in.
        guard let work, work.source == sender, work.chunk == chunk.number, !work.isComplete, work.updates.isEmpty,
            chunk.bytes.isEmpty || chunk.isSound
        else { return .ignored }
        guard chunk.index == work.position.index, chunk.bytes.isEmpty || chunk.chain == work.position.chain else {
            cancel()
            return .cancelled
        }
        guard chunk.bytes.isEmpty else { return .wanted }
        self.work?.isComplete = true
        return .complete
    }

    /// Whether the other's swarms count.
    package var takesSwarms: Bool { work?.hasSwarms ?? true }

    /// The longest interval that the other side's clients may have been told, in seconds; 0 where nobody is merged, or
    /// they are waited for as it is.
    @inline(__always)
    package var toldInterval: UInt32 { work?.toldInterval ?? 0 }

    /// The other side's clients were told a longer interval than this side waits for.
    package mutating func note(toldInterval seconds: UInt32) { work?.toldInterval = seconds }

    /// The updates of the chunk that came.
    ///
    /// - Parameters:
    ///   - updates: none for a chunk of swarms that do not count.
    ///   - hasFiles: whether torrent files are kept, which lie behind the swarms and count in any case.
    package mutating func take(_ updates: [Update], hasFiles: Bool = false) {
        guard let hasSwarms = work?.hasSwarms else { return }
        work?.updates = updates.reversed()
        work?.updateCount += updates.count
        work?.chunk += 1
        work?.askedAt = nil
        if !hasSwarms, !hasFiles { work?.isComplete = true }
    }

    /// Takes the next update that is to go into the log.
    package mutating func nextUpdate() -> Update? { work?.updates.popLast() }

    /// It goes into an entry.
    ///
    /// - Parameter index: of that entry, at the latest.
    package mutating func gathered(by index: UInt64) { work?.lastIndex = index }

    /// There was no room for it.
    package mutating func leftOut() { work?.leftOutCount += 1 }

    /// An entry was refused, perhaps with some of the updates: what is still unknown here is found once more.
    package mutating func beginAnew() {
        work?.chunk = 0
        work?.updates = []
        work?.isComplete = false
        work?.lastIndex = 0
    }

    /// What is to be done next.
    package enum NextRequest: Sendable, Equatable {
        case nothing
        /// To ask for a chunk.
        case chunk(UInt32)
        /// All that it knew is decided here.
        case done(Outcome)
    }

    package struct Outcome: Sendable, Equatable {
        package var source: Life
        package var position: Position
        /// Updates that were taken in, and those for which there was no room.
        package var updates: Int
        package var leftOut: Int
    }

    /// What is to be done next for the merge.
    ///
    /// - Parameters:
    ///   - applied: the last entry that is applied.
    ///   - isIdle: whether nothing is gathered, and no entry is under way.
    ///   - isEmptying: whether this side's swarms are still to go: a merge without the other's does not end before. The
    ///     entry that empties them may never be decided, and the other would have given up what it knew.
    ///   - now: the monotonic clock.
    ///   - pause: between two questions for one chunk.
    /// - Returns: a chunk to ask for, or the outcome when all is decided here.
    package mutating func wanted(
        applied: UInt64, isIdle: Bool, isEmptying: Bool = false, now: Instant, pause: Duration
    ) -> NextRequest {
        guard let work, work.updates.isEmpty else { return .nothing }
        guard work.isComplete else {
            if let askedAt = work.askedAt, now - askedAt < pause { return .nothing }
            self.work?.askedAt = now
            return .chunk(work.chunk)
        }
        guard isIdle || applied >= work.lastIndex, work.hasSwarms || !isEmptying else { return .nothing }
        if mergedChains.count >= Merging.maxMergedCount { mergedChains.removeFirst() }
        mergedChains.append(work.position.chain)
        cancel()
        return .done(
            Outcome(
                source: work.source, position: work.position, updates: work.updateCount - work.leftOutCount,
                leftOut: work.leftOutCount))
    }
}

extension Merging {
    func absorb(into print: inout Fingerprint) {
        print.absorb(mergedChains.count)
        print.absorb(isUnderWay)
    }
}

extension Merging {
    mutating func walk(_ archive: inout Archive) {
        work.walk(&archive)
        mergedChains.walk(&archive)
    }
}

extension Merging.Work: Archived {
    static var blank: Merging.Work { Merging.Work(source: .blank, position: .start, hasSwarms: false) }

    mutating func walk(_ archive: inout Archive) {
        source.walk(&archive)
        position.walk(&archive)
        hasSwarms.walk(&archive)
        chunk.walk(&archive)
        askedAt.walk(&archive)
        updates.walk(&archive)
        isComplete.walk(&archive)
        lastIndex.walk(&archive)
        updateCount.walk(&archive)
        leftOutCount.walk(&archive)
        toldInterval.walk(&archive)
    }
}
