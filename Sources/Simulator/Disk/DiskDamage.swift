// Damage to a simulated disk: what is found there is not what was written, and nobody was told.

import Primitives
import TrackerLogic
import Wire

/// A record with its seals, head and mark, as it lies on a disk.
struct SealedRecord: Sendable, Equatable {
    struct Entry: Sendable, Equatable {
        var index: UInt64
        var bytes: [UInt8]
        var seal: UInt64
    }

    struct Chunk: Sendable, Equatable {
        var chunk: SnapshotChunk
        var seal: UInt64
    }

    /// Of all simulated disks: what is of another disk shows by other things.
    static let salt: UInt64 = 0x5EA1

    /// nil where it cannot be read.
    var head: RecordHead?
    var promise: Promise?
    var chunks: [Chunk]
    var entries: [Entry]

    init(_ record: DiskRecord, turn: UInt64) {
        let salt = SealedRecord.salt
        promise = record.promise
        chunks = record.chunks.map { Chunk(chunk: $0, seal: RecordSeal.of($0, salt: salt)) }
        entries = record.entries.enumerated().map { offset, entry in
            let index = record.firstIndex + UInt64(offset)
            let seal = RecordSeal.of(entry: entry.bytes, index: index, salt: salt)
            return Entry(index: index, bytes: entry.bytes, seal: seal)
        }
        head = RecordHead()
        head?.turn = turn
        if let promise {
            head?.epoch = promise.epoch
            head?.promise = RecordSeal.of(promise, salt: salt)
        }
        head?.trimmedThrough = record.firstIndex - 1
        head?.lastIndex = record.lastIndex
        head?.lastEntry = entries.last?.seal ?? 0
        head?.snapshot = chunks.reduce(0) { $0 &+ $1.seal }
    }

    /// Reads the record back as the real storage does, and throws what is damaged; `mark` is nil where it cannot be
    /// read.
    func judge(_ mark: RecordMark?, _ configuration: NodeConfiguration) throws(RecordDamage) {
        guard let mark else { throw .markUnreadable }
        guard let head else { throw .headUnreadable }
        var audit = try RecordAudit(head, salt: SealedRecord.salt, mark: mark, planted: configuration)
        try audit.check(promise)
        for chunk in chunks { try audit.check(chunk.chunk, seal: chunk.seal) }
        try audit.checkSnapshot()
        for entry in entries { try audit.check(entry: entry.bytes, index: entry.index, seal: entry.seal) }
        try audit.checkLog()
    }

    /// Whether a tracker that reads both back would find the same: of an entry that another follows only its value
    /// counts, for it is decided, and by which ballot it was first written says nothing any more.
    func says(_ other: SealedRecord) -> Bool {
        head == other.head && promise == other.promise && chunks == other.chunks && entries.last == other.entries.last
            && entries.elementsEqual(other.entries) { own, other in
                own.index == other.index && EntryHeader.chain(own.bytes) == EntryHeader.chain(other.bytes)
            }
    }
}

/// What may become of a disk.
///
/// A tracker reads its disk when it starts, so damage at any moment is damage found at the next start. Whether it is
/// found, the judge of the real storage decides (`RecordAudit`). The world knows what was there before, so it knows
/// whether the judge was right.
enum DiskDamage: Int, Sendable, CaseIterable {
    /// The log ends earlier than it did: all is as it was some time ago.
    case lostSuffix
    /// One part is as it was some time ago.
    case stalePart
    case flippedBit
    /// One part lies where another should.
    case misdirected
    case lostPart
    case mark
}

extension SealedRecord {
    /// Does something to the record, or to its mark.
    ///
    /// `past` is what the record was like at earlier moments. `marks` are the last two; the older one counts where the
    /// other cannot be read.
    mutating func suffer(
        _ damage: DiskDamage, past: [SealedRecord], marks: inout [RecordMark], _ random: inout RandomStream
    ) {
        let old = past.isEmpty ? nil : past[random.below(past.count)]
        switch damage {
        case .lostSuffix: if let old { self = old }
        case .stalePart: if let old { takeStale(from: old, &random) }
        case .flippedBit: flip(&random)
        case .misdirected: misdirect(from: old, &random)
        case .lostPart: lose(&random)
        case .mark:
            // A slot, or both.
            if !marks.isEmpty { marks.removeLast() }
            if random.oneIn(2) { marks.removeAll() }
        }
    }

    private mutating func takeStale(from old: SealedRecord, _ random: inout RandomStream) {
        switch random.below(4) {
        case 0: head = old.head
        case 1: promise = old.promise
        case 2:
            guard !chunks.isEmpty else { return }
            let place = random.below(chunks.count)
            if let stale = old.chunks.first(where: { $0.chunk.number == chunks[place].chunk.number }) {
                chunks[place] = stale
            } else {
                chunks.remove(at: place)
            }
        default:
            // A page of the log, with what was there before, or nothing.
            guard !entries.isEmpty else { return }
            let first = entries[random.below(entries.count)].index
            let page = first..<first + 1 + UInt64(random.below(4))
            entries.removeAll { page.contains($0.index) }
            entries += old.entries.filter { page.contains($0.index) }
            entries.sort { $0.index < $1.index }
        }
    }

    private mutating func flip(_ random: inout RandomStream) {
        let bit = UInt64(1) << UInt64(random.below(64))
        func flipped(_ bytes: [UInt8]) -> [UInt8] {
            guard !bytes.isEmpty else { return bytes }
            var bytes = bytes
            bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
            return bytes
        }
        switch random.below(5) {
        // Its own seal shows it.
        case 0: head = nil
        case 1:
            switch random.below(4) {
            case 0: promise?.epoch.round ^= bit
            case 1: promise?.secret.w2 ^= bit
            case 2: promise?.hasFullState.toggle()
            default: promise?.incarnation ^= bit
            }
        case 2 where !chunks.isEmpty:
            let place = random.below(chunks.count)
            switch random.below(4) {
            case 0: chunks[place].seal ^= bit
            case 1: chunks[place].chunk.index ^= bit
            default: chunks[place].chunk.bytes = flipped(chunks[place].chunk.bytes)
            }
        default:
            guard !entries.isEmpty else { return head = nil }
            let place = random.below(entries.count)
            if random.oneIn(4) {
                entries[place].seal ^= bit
            } else {
                entries[place].bytes = flipped(entries[place].bytes)
            }
        }
    }

    private mutating func misdirect(from old: SealedRecord?, _ random: inout RandomStream) {
        if random.oneIn(4) { return misdirectRow(from: old, &random) }
        if random.oneIn(2), chunks.count > 1 {
            let from = random.below(chunks.count)
            let to = (from + 1 + random.below(chunks.count - 1)) % chunks.count
            chunks[to].chunk.bytes = chunks[from].chunk.bytes
            chunks[to].chunk.index = chunks[from].chunk.index
            chunks[to].seal = chunks[from].seal
        } else if entries.count > 1 {
            let from = random.below(entries.count)
            let to = (from + 1 + random.below(entries.count - 1)) % entries.count
            entries[to].bytes = entries[from].bytes
            entries[to].seal = entries[from].seal
        } else {
            head = nil
        }
    }

    /// The head or the promise has gone to another place: it is as it was before, and what was there is written over.
    private mutating func misdirectRow(from old: SealedRecord?, _ random: inout RandomStream) {
        let isHead = random.oneIn(2)
        // Any bytes will do: it is the seal that says what they are.
        let bytes = head?.bytes ?? []
        let seal =
            isHead
            ? head.map { RecordSeal.of($0, salt: SealedRecord.salt) } ?? 0
            : promise.map { RecordSeal.of($0, salt: SealedRecord.salt) } ?? 0
        if let old { if isHead { head = old.head } else { promise = old.promise } }
        switch random.below(3) {
        case 0 where !chunks.isEmpty:
            let place = random.below(chunks.count)
            chunks[place].chunk.bytes = bytes
            chunks[place].seal = seal
        case 1 where !entries.isEmpty:
            let place = random.below(entries.count)
            entries[place].bytes = bytes
            entries[place].seal = seal
        default:
            // Neither is what the other should be.
            if isHead { promise = nil } else { head = nil }
        }
    }

    private mutating func lose(_ random: inout RandomStream) {
        switch random.below(4) {
        case 0: head = nil
        case 1: promise = nil
        case 2 where !chunks.isEmpty: chunks.remove(at: random.below(chunks.count))
        default: if !entries.isEmpty { entries.removeLast(1 + random.below(entries.count)) } else { head = nil }
        }
    }
}

/// What a disk that may be damaged remembers of itself.
struct DiskMemory: Sendable {
    /// Earlier moments that are remembered.
    private static let pastCount = 8

    /// Groups of writes that have become durable.
    private(set) var turn: UInt64 = 0
    /// As the record was at earlier marks, oldest first.
    private var past: [(turn: UInt64, record: DiskRecord)] = []
    /// The slots of the mark, the newer one last.
    private(set) var marks = [RecordMark(salt: SealedRecord.salt, head: RecordHead())]
    private var random: RandomStream
    /// Whether the disk is damaged, and nobody has looked.
    private(set) var isDamaged = false

    init(random: RandomStream) { self.random = random }

    /// Writes have become durable; their owner is told once the mark says so.
    mutating func wrote() { turn += 1 }

    mutating func marked(_ record: DiskRecord) {
        let head = SealedRecord(record, turn: turn).head ?? RecordHead()
        guard head != marks.last?.head else { return }
        if marks.count > 1 { marks.removeFirst() }
        marks.append(RecordMark(salt: SealedRecord.salt, head: head))
        guard random.oneIn(3) else { return }
        if past.count == DiskMemory.pastCount { past.remove(at: random.below(past.count)) }
        past.append((turn, record))
    }

    mutating func damage() { isDamaged = true }

    /// What a start finds.
    enum Verdict: Sendable {
        case whole
        /// It is damaged, and its judge says so; what was promised there, as far as its mark tells.
        case damaged(RecordDamage, promised: Epoch)
        /// It is damaged, and its judge says that it is whole.
        case unnoticed(String)
        /// It is whole, and its judge says that it is damaged.
        case falseAlarm(RecordDamage)
    }

    mutating func readBack(_ record: DiskRecord, _ configuration: NodeConfiguration) -> Verdict {
        let truth = SealedRecord(record, turn: turn)
        var found = truth
        var slots = marks
        var name = "nothing"
        if isDamaged {
            // Of what was told, else it is a crash's doing.
            let marked = marks.last?.head.turn ?? 0
            var older = past.filter { $0.turn < marked }.map { SealedRecord($0.record, turn: $0.turn) }
            if older.isEmpty, marked > 0 { older = [SealedRecord(DiskRecord(), turn: 0)] }
            let kinds = DiskDamage.allCases
            let kind = kinds[random.below(kinds.count)]
            name = "\(kind)"
            found.suffer(kind, past: older, marks: &slots, &random)
        }
        let isStruck = isDamaged
        isDamaged = false
        do throws(RecordDamage) {
            try found.judge(slots.last, configuration)
        } catch {
            let promised = slots.last?.head.epoch ?? .zero
            return isStruck ? .damaged(error, promised: promised) : .falseAlarm(error)
        }
        guard found.says(truth) else { return .unnoticed(name) }
        return .whole
    }

    /// The record begins anew.
    mutating func begin(_ record: DiskRecord) {
        turn = 0
        past = []
        marks = [RecordMark(salt: SealedRecord.salt, head: SealedRecord(record, turn: 0).head ?? RecordHead())]
    }
}
