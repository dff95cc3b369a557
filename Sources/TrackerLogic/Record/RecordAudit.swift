/// Judges a record as it is read back: whole, or damaged, and then in what.
///
/// A crash may take back what was under way, and nothing else; a record that lacks more than that is *damaged*, however
/// well its parts fit together. SQLite does not tell: its log ends at the first page that is not what was written, and
/// what follows is silently gone, though it was answered. So three things stand beside the entries and chunks:
///
/// - each part has a *seal*: a checksum of its bytes, of what it is (kind and number) and of the salt of its record, so
///   that a part of another place, or of another record, shows;
/// - the *head* says what all the parts come to, and is written in one piece with every change of them, so that a part
///   which is older than the others shows;
/// - the *mark* is a copy of the head outside of the record, written after a change is durable and before anybody hears
///   of it, so that a record which is older than what was answered shows.
///
/// ```
/// mark ≤ head ── the parts are what the head says ──► whole
///   │                 └── one is not, or is missing ──► damaged
///   └── the head is older, or cannot be read ──────────► damaged
/// ```
///
/// What is damaged has no vote (rule 20): its tracker begins anew as one that has lost its memory, and not
/// as one that never had any. A head that is *ahead* of its mark is a crash's: between the two nobody was told.
///
/// Deviation from Protocol-Aware Recovery (Alagappan et al., FAST 2018): single entries are not repaired from other
/// trackers; the whole state is fetched. A tracker's state is small, and one way to be repaired is one to be tested.
///
/// Used by the storage of the real tracker and by the simulator's disk alike.

import Primitives
import Wire

public struct RecordAudit: Sendable {
    private let head: RecordHead
    private let salt: UInt64
    private var snapshot: UInt64 = 0
    private var last: UInt64
    /// What the history through the last entry comes to, where the entries tell.
    private var chain: UInt64?

    /// Entries up to this one do not count.
    public var trimmedThrough: UInt64 { head.trimmedThrough }

    /// Compares a head with its mark.
    ///
    /// - Parameters:
    ///   - salt: of the record that the head was read from.
    ///   - mark: nil where a loss of power may have taken it back, so that it says nothing.
    /// - Throws: also where a number in the head is beyond its bound, whatever its seal says.
    public init(
        _ head: RecordHead, salt: UInt64, mark: RecordMark?, planted configuration: NodeConfiguration? = nil
    ) throws(RecordDamage) {
        self.head = head
        self.salt = salt
        last = head.trimmedThrough
        if let excess = head.excess { throw .beyondBounds(excess) }
        guard let mark, configuration?.has(.markIgnored) != true else { return }
        if let excess = mark.head.excess { throw .beyondBounds(excess) }
        guard mark.salt == salt else { throw .markOfAnother }
        guard head.turn >= mark.head.turn else {
            throw .olderThanMark(found: head.lastIndex, marked: mark.head.lastIndex)
        }
        guard head.turn > mark.head.turn || head == mark.head else { throw .headDiffers }
        guard head.epoch >= mark.head.epoch else { throw .promise }
    }

    /// - Parameter promise: nil where the record holds none.
    public mutating func check(_ promise: Promise?) throws(RecordDamage) {
        let seal = promise.map { RecordSeal.of($0, salt: salt) } ?? 0
        guard seal == head.promise, promise?.epoch ?? .zero == head.epoch else { throw .promise }
        if let excess = promise?.excess { throw .beyondBounds(excess) }
    }

    /// Chunks come in any order.
    ///
    /// - Parameter seal: that was written with it.
    public mutating func check(_ chunk: SnapshotChunk, seal: UInt64) throws(RecordDamage) {
        guard seal == RecordSeal.of(chunk, salt: salt) else { throw .chunk(chunk.number) }
        if let excess = chunk.excess { throw .beyondBounds(excess) }
        snapshot &+= seal
    }

    /// All chunks have come.
    public mutating func checkSnapshot() throws(RecordDamage) {
        guard snapshot == head.snapshot else { throw .snapshot }
    }

    /// Entries come in the order of their indices; those that were trimmed do not count.
    public mutating func check(entry bytes: [UInt8], index: UInt64, seal: UInt64) throws(RecordDamage) {
        guard index > head.trimmedThrough else { return }
        guard index == last &+ 1 else { throw index > last ? .entryMissing(last &+ 1) : .entry(index) }
        guard seal == RecordSeal.of(entry: bytes, index: index, salt: salt) else { throw .entry(index) }
        // What lies behind the end was taken back, and is there again.
        guard index <= head.lastIndex, index < head.lastIndex || seal == head.lastEntry else { throw .entry(index) }
        if let header = try? EntryHeader(bytes) {
            if let chain, header.previous != chain { throw .chain(index) }
            chain = EntryHeader.chain(bytes)
        }
        last = index
    }

    /// All entries have come.
    public mutating func checkLog() throws(RecordDamage) {
        guard last >= head.lastIndex else { throw .entryMissing(last &+ 1) }
    }
}

/// What the parts of a record come to.
public struct RecordHead: Sendable, Hashable {
    /// Counts the transactions that have changed the record.
    public var turn: UInt64 = 0
    /// The highest epoch that was promised.
    public var epoch = Epoch.zero
    /// The seal of the promise; 0 where there is none.
    public var promise: UInt64 = 0
    /// Entries up to this one are out of the log, even where they are still there.
    public var trimmedThrough: UInt64 = 0
    /// The last entry of the log; where that is empty, no more than `trimmedThrough`.
    public var lastIndex: UInt64 = 0
    /// Its seal; 0 where the log is empty.
    public var lastEntry: UInt64 = 0
    /// The sum of the seals of all chunks.
    public var snapshot: UInt64 = 0

    public init() {}

    public static let byteCount = 60

    public var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(RecordHead.byteCount)
        bytes.append(bigEndian: turn)
        bytes.append(bigEndian: epoch.round)
        bytes.append(bigEndian: epoch.id)
        for number in [promise, trimmedThrough, lastIndex, lastEntry, snapshot] { bytes.append(bigEndian: number) }
        return bytes
    }

    /// - Returns: nil where these are too few or too many.
    public init?(bytes: [UInt8]) {
        guard bytes.count == RecordHead.byteCount else { return nil }
        let span = bytes.span.bytes
        turn = span.u64(at: 0)
        epoch = Epoch(round: span.u64(at: 8), id: span.u32(at: 16))
        promise = span.u64(at: 20)
        trimmedThrough = span.u64(at: 28)
        lastIndex = span.u64(at: 36)
        lastEntry = span.u64(at: 44)
        snapshot = span.u64(at: 52)
    }
}

/// How far a record had come when somebody was last told so: a copy of its head, kept outside of it.
public struct RecordMark: Sendable, Hashable {
    /// Of the record that it belongs to.
    public var salt: UInt64
    public var head: RecordHead

    public init(salt: UInt64, head: RecordHead) {
        self.salt = salt
        self.head = head
    }

    /// Whether nothing has been written into its record yet.
    public var isBeginning: Bool { head.turn == 0 }
}

/// Checksums that show accidental damage, not a forger's.
public enum RecordSeal {
    public static func of(entry bytes: [UInt8], index: UInt64, salt: UInt64) -> UInt64 {
        seal(bytes, kind: 1, number: index, salt: salt)
    }

    public static func of(_ chunk: SnapshotChunk, salt: UInt64) -> UInt64 {
        seal(chunk.bytes, kind: 2 + UInt64(chunk.number) << 8, number: chunk.index, salt: salt)
    }

    public static func of(_ promise: Promise, salt: UInt64) -> UInt64 {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: promise.epoch.round)
        bytes.append(bigEndian: promise.epoch.id)
        bytes.append(bigEndian: promise.incarnation)
        let secret = promise.secret
        for word in [secret.w0, secret.w1, secret.w2, secret.w3] { bytes.append(bigEndian: word) }
        bytes.append(bigEndian: promise.shardCount)
        bytes.append((promise.isWhole ? 1 : 0) | (promise.leftInOrder ? 2 : 0))
        // 0 stands for none.
        return seal(bytes, kind: 3, number: 0, salt: salt) | 1
    }

    public static func of(_ head: RecordHead, salt: UInt64) -> UInt64 {
        seal(head.bytes, kind: 4, number: 0, salt: salt)
    }

    private static func seal(_ bytes: [UInt8], kind: UInt64, number: UInt64, salt: UInt64) -> UInt64 {
        mixed(checksum(bytes.span.bytes) ^ mixed(salt ^ mixed(number ^ mixed(kind))))
    }
}

/// In what a record is damaged.
public enum RecordDamage: Error, Sendable, Hashable {
    /// The record ends before what was answered.
    case olderThanMark(found: UInt64, marked: UInt64)
    case markMissing
    case markUnreadable
    case markOfAnother
    /// The mark is there, and what it belongs to is not.
    case recordMissing
    case headUnreadable
    case headDiffers
    case promise
    case chunk(UInt32)
    case snapshot
    case entry(UInt64)
    case entryMissing(UInt64)
    case chain(UInt64)
    /// A number that no tracker comes to: everything that is added to it later could overflow.
    case beyondBounds(NumberExcess)
}

extension RecordDamage: CustomStringConvertible {
    public var description: String {
        switch self {
        case .olderThanMark(let found, let marked) where found < marked:
            "it ends at entry \(found), and entries up to \(marked) were written and answered: the last part is lost"
        case .olderThanMark: "it lacks what was written last, though that was told: the last part is lost"
        case .markMissing: "its mark, which tells how far it had come, is missing"
        case .markUnreadable: "its mark, which tells how far it had come, is not what was written"
        case .markOfAnother: "its mark, which tells how far it had come, is that of another database"
        case .recordMissing: "it is missing, though its mark is there"
        case .headUnreadable: "its head is not what was written"
        case .headDiffers: "its head is not the one that was marked"
        case .promise: "the promise is not what was written"
        case .chunk(let number): "chunk \(number) of the snapshot is not what was written"
        case .snapshot: "chunks of the snapshot are missing, or are older than the log"
        case .entry(let index): "entry \(index) of the log is not what was written"
        case .entryMissing(let index): "entry \(index) is missing from the log"
        case .chain(let index): "entry \(index) of the log does not follow the one before it"
        case .beyondBounds(let excess): "\(excess)"
        }
    }
}

extension Promise {
    /// What a tracker goes on with whose record is damaged: it has no vote until it holds the whole state, and no part
    /// in the forming of a cluster, for it has promised *something*.
    ///
    /// - Parameter epoch: the highest that it is known to have promised.
    public static func afterLoss(
        epoch: Epoch, secret: ClusterSecret, shardCount: UInt32, planted configuration: NodeConfiguration? = nil
    ) -> Promise {
        Promise(
            epoch: max(epoch, Promise.something), incarnation: 0, secret: secret, shardCount: shardCount,
            isWhole: configuration?.has(.damagedVotes) == true)
    }

    /// Less than any epoch that a tracker can stand for, and more than none.
    public static let something = Epoch(round: 0, id: 1)
}
