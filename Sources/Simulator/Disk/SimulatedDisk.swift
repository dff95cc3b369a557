// A node's disk.

import Primitives
import TrackerLogic
import Wire

/// How good a disk is.
public struct DiskOptions: Sendable, Hashable {
    /// The shortest that a group of writes takes.
    public var minDelay = Duration.microseconds(50)
    /// The longest, but for stalls.
    public var maxDelay = Duration.milliseconds(4)
    /// Groups in a thousand that take up to `maxStall`.
    public var stallPerMille = 0
    /// The longest that a stall takes.
    public var maxStall = Duration.seconds(8)
    /// Groups in a thousand that fail, certainly unwritten.
    public var failPerMille = 0
    /// Writes in one group at most.
    public var maxGroup = 64
    /// Between durable and told.
    public var maxReportDelay = Duration.milliseconds(2)

    /// A disk that never fails.
    public init() {}

    static let healed = DiskOptions()
}

/// A node's disk: takes writes, makes them durable some time later in groups, and tells some time after that.
///
///     submitted ─► waiting ── a group begins ─► under way ── durable ─► told
///
/// What was told to be durable is there after any crash. What is under way when the node crashes is there in part: some
/// first writes of the group, in order, for a group may be several transactions; what waits is not there at all.
///
/// After a write that failed it refuses what the real storage refuses (`RecordGuard`), even once it takes writes again.
package struct SimulatedDisk: Sendable {
    var options: DiskOptions
    /// What is durable.
    package private(set) var record = DiskRecord()
    /// With what every group fails now.
    package var failure: StorageFailure?
    /// Of this life of the node: which writes failed, and what builds on them.
    private var holes = RecordGuard(hasFullState: false)
    private var waiting: [Persist] = []
    private var underWay: [Persist] = []
    /// Whether writes have failed in an unknown way: nothing is written any more in this life of the node.
    private(set) var isBroken = false
    private(set) var random: RandomStream
    var sabotage: Sabotage?
    /// What it was like earlier; nil for a disk that is never damaged.
    var memory: DiskMemory?

    package init(options: DiskOptions, random: RandomStream) {
        self.options = options
        self.random = random
    }

    /// Writes that are neither durable nor failed.
    package var pendingCount: Int { waiting.count + underWay.count }

    /// Writes that are neither durable nor failed, in order.
    var writesUnderWay: [Persist.Change] { (underWay + waiting).map { $0.change } }

    /// Writes of the group under way, in words.
    var groupWords: String { underWay.map { $0.change.name }.joined(separator: ", ") }

    /// What is on it and on its way there, in words.
    var words: String {
        let entries = record.entries.count
        var parts = [
            entries == 0
                ? "no entry behind its snapshot"
                : "entries \(record.firstIndex) to \(record.firstIndex + UInt64(entries) - 1)",
            Words.counted(record.chunks.count, "chunk"),
        ]
        if !underWay.isEmpty { parts.append("writes \(groupWords)") }
        if !waiting.isEmpty { parts.append("\(Words.counted(waiting.count, "write")) behind that") }
        if let failure { parts.append("every write fails: \(failure.words)") }
        if isBroken { parts.append("nothing more is written in this life") }
        return parts.joined(separator: "; ")
    }

    package mutating func submit(_ persists: [Persist]) { waiting.append(contentsOf: persists) }

    /// Begins a group where none is under way and something waits.
    ///
    /// - Returns: how long it takes; nil where none was begun.
    package mutating func beginGroup() -> Duration? {
        guard underWay.isEmpty, !waiting.isEmpty else { return nil }
        let count = min(waiting.count, options.maxGroup)
        underWay.append(contentsOf: waiting[..<count])
        waiting.removeFirst(count)
        if options.stallPerMille > 0, random.below(1000) < options.stallPerMille {
            return random.between(options.maxDelay, options.maxStall)
        }
        return random.between(options.minDelay, options.maxDelay)
    }

    /// What has become of a group.
    package struct GroupEnd: Sendable {
        package var writes: [Persist]
        /// nil where all of it is durable.
        package var failure: StorageFailure?
        /// How many of the writes, from the first on, are durable, but for those that were refused.
        package var durableCount = 0
        /// Why each of these was refused, for an earlier one that failed (nil: it was not); empty where none was.
        package var refusals: [StorageFailure?] = []
        /// A write that did not fit what is on the disk.
        package var misfit: Persist.Change?

        /// Why a write was refused, by its place in the group.
        package func refusal(at place: Int) -> StorageFailure? { place < refusals.count ? refusals[place] : nil }
    }

    package mutating func endGroup() -> GroupEnd {
        var end = GroupEnd(writes: underWay, failure: failure)
        underWay.removeAll(keepingCapacity: true)
        if end.failure == nil, options.failPerMille > 0, random.below(1000) < options.failPerMille {
            end.failure = random.oneIn(2) ? .full : .locked
        }
        if isBroken { end.failure = .broken }
        switch end.failure {
        case nil:
            end.durableCount = end.writes.count
        case .broken:
            if !isBroken { end.durableCount = someFirst(of: end.writes).count }
            isBroken = true
        case .full, .locked, .readOnly:
            if sabotage == .saysFailedButWrites { end.durableCount = end.writes.count }
            if sabotage == .saysWrittenButFails { end.failure = nil }
            if let failure = end.failure, end.durableCount == 0 { note(end.writes, failure) }
        }
        (end.refusals, end.misfit) = apply(end.writes[..<end.durableCount])
        if end.durableCount > 0, end.failure == nil { memory?.marked(record) }
        return end
    }

    /// How long after being durable the node is told.
    mutating func reportDelay() -> Duration { random.between(.zero, options.maxReportDelay) }

    /// The node dies.
    ///
    /// - Returns: the writes that have become durable by chance.
    package mutating func crash() -> [Persist] {
        var survivors: [Persist] = []
        if !isBroken, failure == nil, !underWay.isEmpty {
            let chosen = someFirst(of: underWay)
            let refusals = apply(chosen).refusals
            survivors = refusals.isEmpty ? Array(chosen) : zip(chosen, refusals).filter { $1 == nil }.map { $0.0 }
        }
        // Whoever opens the record next has not met a failure.
        holes = RecordGuard(
            hasFullState: record.promise?.hasFullState == true, last: record.entries.last?.position)
        waiting.removeAll(keepingCapacity: true)
        underWay.removeAll(keepingCapacity: true)
        isBroken = false
        return survivors
    }

    /// None, all, or some first ones.
    private mutating func someFirst(of writes: [Persist]) -> ArraySlice<Persist> {
        switch random.below(3) {
        case 0: writes[..<0]
        case 1: writes[...]
        default: writes[..<random.below(writes.count + 1)]
        }
    }

    /// What a start finds; nil for a disk that is never damaged.
    mutating func readBack(_ configuration: NodeConfiguration) -> DiskMemory.Verdict? {
        memory?.readBack(record, configuration)
    }

    /// What was there is set aside.
    mutating func beginAnew(_ promise: Promise) {
        record = DiskRecord()
        record.promise = promise
        holes = RecordGuard(hasFullState: promise.hasFullState)
        memory?.begin(record)
    }

    private mutating func apply(
        _ writes: ArraySlice<Persist>
    ) -> (refusals: [StorageFailure?], misfit: Persist.Change?) {
        var refusals: [StorageFailure?] = []
        var misfit: Persist.Change?
        if !writes.isEmpty { memory?.wrote() }
        for (place, write) in writes.enumerated() {
            if let refusal = holes.refusal(of: write.change) {
                if refusals.isEmpty { refusals = Array(repeating: nil, count: writes.count) }
                refusals[place] = refusal
                continue
            }
            holes.succeeded(write.change)
            if !isSwallowed(write.change), !record.apply(spoiled(write.change)) { misfit = misfit ?? write.change }
        }
        return (refusals, misfit)
    }

    /// None of some writes was made: what builds on them will be refused.
    private mutating func note(_ writes: [Persist], _ failure: StorageFailure) {
        for write in writes where holes.refusal(of: write.change) == nil { holes.failed(write.change, failure) }
    }

    private mutating func isSwallowed(_ change: Persist.Change) -> Bool {
        switch (sabotage, change) {
        case (.losesEntries, .append): random.oneIn(20)
        case (.losesChunks, .saveChunk): random.oneIn(3)
        case (.keepsSwarmsOnStop, .replaceAll): true
        default: false
        }
    }

    /// Under sabotage, a chunk may keep its old contents under its new index.
    private func spoiled(_ change: Persist.Change) -> Persist.Change {
        guard sabotage == .stalesChunks, case .saveChunk(var chunk) = change,
            let old = record.chunks.first(where: { $0.number == chunk.number })
        else { return change }
        chunk.bytes = old.bytes
        return .saveChunk(chunk)
    }
}
