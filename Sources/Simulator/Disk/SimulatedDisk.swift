// A node's disk.

import Primitives
import TrackerLogic

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
package struct SimulatedDisk: Sendable {
    var options: DiskOptions
    /// What is durable.
    package private(set) var record = DiskRecord()
    /// With what every group fails now.
    package var failure: StorageFailure?
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
        /// How many of the writes, from the first on, are durable.
        package var durableCount = 0
        /// A write that did not fit what is on the disk.
        package var misfit: Persist.Change?
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
        }
        end.misfit = apply(end.writes[..<end.durableCount])
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
            survivors = Array(someFirst(of: underWay))
            _ = apply(survivors[...])
        }
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
        memory?.begin(record)
    }

    private mutating func apply(_ writes: ArraySlice<Persist>) -> Persist.Change? {
        var misfit: Persist.Change?
        if !writes.isEmpty { memory?.wrote() }
        for write in writes where !isSwallowed(write.change) {
            if !record.apply(spoiled(write.change)) { misfit = misfit ?? write.change }
        }
        return misfit
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
