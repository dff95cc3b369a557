// What is on a tracker's disk, as far as votes go.

import Primitives
import TrackerLogic
import Wire

/// What is on a tracker's disk, as far as votes go: the promise, and of each entry of the log which value it is.
///
/// Made from the writes as they become durable, so it is there while the tracker is down, and knows nothing of what the
/// tracker believes.
struct VoterRecord: Sendable {
    struct Written: Sendable, Hashable {
        var ballot: Ballot
        var chain: UInt64
        /// The epoch that was promised when it was written.
        var promised: Epoch
    }

    private(set) var promise: Promise?
    /// The highest epoch whose promise the tracker has been told is durable.
    var told = Epoch.zero
    /// Promises that the tracker has asked to be written and not been told of.
    private var asked: [(token: PersistToken, epoch: Epoch)] = []
    /// Entries that the tracker has asked to be written and not been told of.
    private var appends: [(token: PersistToken, ballot: Ballot)] = []
    private(set) var log: [Written] = []
    /// The index of the first of `log`.
    private(set) var firstIndex: UInt64 = 1
    /// The last entry of a disk that was lost: its vote counts on until the tracker votes again.
    private var lost: Written?

    /// Up to which entry the disk holds the whole state: a snapshot that was written as one, and the entries behind it.
    private(set) var fullStateThrough: UInt64 = 0

    var lastIndex: UInt64 { firstIndex + UInt64(log.count) - 1 }
    var promised: Epoch { promise?.epoch ?? .zero }
    var hasFullState: Bool { promise?.hasFullState ?? false }

    func written(_ index: UInt64) -> Written? {
        guard index >= firstIndex, index <= lastIndex else { return nil }
        return log[Int(index - firstIndex)]
    }

    /// Whether the value with this chain is there, as an entry or in the snapshot, or was before the disk was lost.
    func holds(_ index: UInt64, chain: UInt64) -> Bool {
        if let lost, lost.ballot.index == index, lost.chain == chain { return true }
        if let written = written(index) { return written.chain == chain }
        return hasFullState && index < firstIndex
    }

    /// Up to which entry the disk holds what a write puts there once more, in a cluster of one history; nil where the
    /// write adds to it.
    ///
    /// The last entry of a voter may have to be fetched with all that is before it, though it is on the disk: whether
    /// it is the decided one can only be told by who knows that. An orderly stop leaves the first chunk and those of
    /// torrent files, and none of swarms.
    func rewritten(by change: Persist.Change, isAlone: Bool) -> UInt64? {
        switch change {
        case .append(let entry):
            let index = entry.header.index
            return written(index)?.ballot == entry.header.ballot ? index : nil
        case .replaceAll(let chunks):
            let index = chunks.reduce(0) { max($0, $1.index) }
            let isHeld = fullStateThrough > index || isAlone && fullStateThrough == index
            return hasFullState && isHeld && chunks.contains { $0.number == 1 } ? fullStateThrough : nil
        case .promise, .saveChunk, .trim: return nil
        }
    }

    /// A write has become durable.
    ///
    /// `givesUpHistories` is whether the tracker may take over another history than it has voted in (survivor mode);
    /// its last vote counts on in the one that it leaves.
    mutating func apply(_ change: Persist.Change, givesUpHistories: Bool) {
        switch change {
        case .promise(let new): promise = new
        case .append(let entry):
            if givesUpHistories, let old = written(entry.header.index), old.chain != entry.chain { lost = old }
            append(entry)
        case .saveChunk: break
        case .trim(let through):
            guard through >= firstIndex else { return }
            log.removeFirst(Int(min(through, lastIndex) + 1 - firstIndex))
            firstIndex = through + 1
        case .replaceAll(let chunks):
            if givesUpHistories { lost = log.last ?? lost }
            firstIndex = lastIndex + 1
            log = []
            fullStateThrough = chunks.reduce(0) { max($0, $1.index) }
        }
    }

    private mutating func append(_ entry: Entry) {
        let index = entry.header.index
        if index <= fullStateThrough + 1 { fullStateThrough = max(fullStateThrough, index) }
        if log.isEmpty { firstIndex = index }
        guard index >= firstIndex, index <= lastIndex + 1 else { return }
        log.removeLast(Int(lastIndex + 1 - index))
        log.append(Written(ballot: entry.header.ballot, chain: entry.chain, promised: promised))
    }

    /// The disk as it is when a life begins.
    mutating func adopt(_ record: DiskRecord) {
        let epoch = promise?.epoch ?? .zero
        let fullStateThrough = fullStateThrough
        self = VoterRecord(lost: lost)
        self.fullStateThrough = fullStateThrough
        promise = record.promise
        told = promise?.epoch ?? .zero
        firstIndex = record.firstIndex
        for entry in record.entries {
            log.append(Written(ballot: entry.header.ballot, chain: entry.chain, promised: epoch))
        }
    }

    private init(lost: Written?) { self.lost = lost }

    init() {}

    /// The disk is lost.
    ///
    /// - Parameter remembersVote: whether the last vote counts on.
    mutating func lose(remembersVote: Bool) {
        self = VoterRecord(lost: remembersVote ? log.last : nil)
    }

    /// The tracker holds the whole state again, and votes: not for what it has forgotten.
    mutating func forgetLost() { lost = nil }

    // MARK: Promises under way

    mutating func ask(_ persist: Persist) {
        switch persist.change {
        case .promise(let promise): asked.append((persist.token, promise.epoch))
        case .append(let entry): appends.append((persist.token, entry.header.ballot))
        case .saveChunk, .trim, .replaceAll: break
        }
    }

    /// Whether what was proposed under a ballot is on the disk, or asked to be written.
    func stores(_ ballot: Ballot) -> Bool {
        written(ballot.index)?.ballot == ballot || appends.contains { $0.ballot == ballot }
    }

    /// The tracker has been told that a write is done, or was not made.
    mutating func noteCompletion(_ token: PersistToken, isWritten: Bool) {
        appends.removeAll { $0.token == token }
        guard !asked.isEmpty, let place = asked.firstIndex(where: { $0.token == token }) else { return }
        let epoch = asked.remove(at: place).epoch
        if isWritten { told = max(told, epoch) }
    }
}
