// Judges a record as it is read back.

import Primitives
import Wire

/// Judges a record as it is read back: whole, or damaged, and then in what.
///
/// A crash may take back what was under way, and nothing else; a record that lacks more than that is *damaged*, however
/// well its parts fit together. SQLite does not tell: its log ends at the first page that is not what was written, and
/// what follows is silently gone, though it was answered. So three things stand beside the entries and chunks:
///
/// - each part has a *seal*: a checksum of its bytes, of what it is (kind and number) and of the salt of its record, so
///   that a part of another place, or of another record, shows;
/// - the *head* tells how far the log goes and what the seals of the parts add up to, and is written in one transaction
///   with every change of them, so that a part which is older than the others shows;
/// - the *mark* is a copy of the head outside of the record, written after a change is durable and before anybody hears
///   of it, so that a record which is older than what was answered shows.
///
/// ```
/// mark ≤ head ── the parts are what the head says ──► whole
///   │                 └── one is not, or is missing ──► damaged
///   └── the head is older, or cannot be read ──────────► damaged
/// ```
///
/// A damaged record has no vote (rule 20): its tracker begins anew as one that has lost its memory, and not as one that
/// never had any. A head that is *ahead* of its mark comes from a crash: between the two nobody was told.
///
/// Deviation from Protocol-Aware Recovery (Alagappan et al., FAST 2018): single entries are not repaired from other
/// trackers; the whole state is fetched. A tracker's state is small, and one way to be repaired is one to be tested.
///
/// Used by the storage of the real tracker and by the simulator's disk alike.
public struct RecordAudit: Sendable {
    private let head: RecordHead
    private let salt: UInt64
    private var snapshot: UInt64 = 0
    private var last: UInt64
    /// The running hash of the log up to and including the last entry, where the entries tell.
    private var chain: UInt64?

    /// Entries up to this one do not count.
    public var trimmedThrough: UInt64 { head.trimmedThrough }

    /// Compares a head with its mark.
    ///
    /// - Parameters:
    ///   - head: as it was read, its seal found right.
    ///   - salt: of the record that the head was read from.
    ///   - mark: nil where a loss of power may have taken it back, so that it says nothing.
    ///   - configuration: for planted bugs in tests; nil elsewhere.
    /// - Throws: `RecordDamage`; also where a number in the head is beyond its bound, whatever its seal says.
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

    /// Compares the promise with what the head says of it.
    ///
    /// - Parameter promise: nil where the record holds none.
    /// - Throws: `RecordDamage.promise`, or `beyondBounds`.
    public mutating func check(_ promise: Promise?) throws(RecordDamage) {
        let seal = promise.map { RecordSeal.of($0, salt: salt) } ?? 0
        guard seal == head.promise, promise?.epoch ?? .zero == head.epoch else { throw .promise }
        if let excess = promise?.excess { throw .beyondBounds(excess) }
    }

    /// Checks a chunk of the snapshot; chunks come in any order.
    ///
    /// - Parameters:
    ///   - chunk: as it was read.
    ///   - seal: that was written with it.
    /// - Throws: `RecordDamage.chunk`, or `beyondBounds`.
    public mutating func check(_ chunk: SnapshotChunk, seal: UInt64) throws(RecordDamage) {
        guard seal == RecordSeal.of(chunk, salt: salt) else { throw .chunk(chunk.number) }
        if let excess = chunk.excess { throw .beyondBounds(excess) }
        snapshot &+= seal
    }

    /// Compares the chunks with what the head says of them; all have come.
    ///
    /// - Throws: `RecordDamage.snapshot` where chunks are missing, or older than the head.
    public mutating func checkSnapshot() throws(RecordDamage) {
        guard snapshot == head.snapshot else { throw .snapshot }
    }

    /// Checks an entry of the log.
    ///
    /// - Parameters:
    ///   - bytes: as they were read.
    ///   - index: entries come in the order of their indices; those that were trimmed do not count.
    ///   - seal: that was written with it.
    /// - Throws: `RecordDamage.entry`, `entryMissing` or `chain`.
    public mutating func check(entry bytes: [UInt8], index: UInt64, seal: UInt64) throws(RecordDamage) {
        guard index > head.trimmedThrough else { return }
        guard index == last &+ 1 else { throw index > last ? .entryMissing(last &+ 1) : .entry(index) }
        guard seal == RecordSeal.of(entry: bytes, index: index, salt: salt) else { throw .entry(index) }
        // What lies behind the end was taken back, and is there again.
        guard index <= head.lastIndex, index < head.lastIndex || seal == head.lastEntry else { throw .entry(index) }
        if let entry = try? Entry(bytes) {
            if let chain, entry.header.previous != chain { throw .chain(index) }
            chain = entry.chain
        }
        last = index
    }

    /// Compares the last entry with what the head says of it; all have come.
    ///
    /// - Throws: `RecordDamage.entryMissing` where the log ends too early.
    public mutating func checkLog() throws(RecordDamage) {
        guard last >= head.lastIndex else { throw .entryMissing(last &+ 1) }
    }
}

/// How far a record has come, and what the seals of its parts add up to: 60 bytes.
public struct RecordHead: Sendable, Hashable {
    /// Counts the transactions that have changed the record.
    public var turn: UInt64 = 0
    /// The highest epoch that the tracker has promised.
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

    /// The head of a record that holds nothing.
    public init() {}

    /// The length of `bytes`.
    public static let byteCount = 60

    /// The head as it is written: big-endian, in the order of the fields.
    public var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(RecordHead.byteCount)
        bytes.append(bigEndian: turn)
        bytes.append(bigEndian: epoch.round)
        bytes.append(bigEndian: epoch.id)
        for number in [promise, trimmedThrough, lastIndex, lastEntry, snapshot] { bytes.append(bigEndian: number) }
        return bytes
    }

    /// Reads a head; nil where these are too few bytes, or too many.
    ///
    /// Its numbers are not judged here (`excess`).
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
    /// Of the record that the mark belongs to.
    public var salt: UInt64
    /// The record's head as it was then.
    public var head: RecordHead

    /// Takes the fields as they are.
    public init(salt: UInt64, head: RecordHead) {
        self.salt = salt
        self.head = head
    }

    /// Whether nothing has been written into its record yet.
    public var isBeginning: Bool { head.turn == 0 }
}

/// Checksums that show accidental damage, not a forger's.
public enum RecordSeal {
    /// The seal of an entry at its place in the log of the record with this salt.
    public static func of(entry bytes: [UInt8], index: UInt64, salt: UInt64) -> UInt64 {
        seal(bytes, kind: 1, number: index, salt: salt)
    }

    /// The seal of a chunk of the snapshot; its number and index are part of it.
    public static func of(_ chunk: SnapshotChunk, salt: UInt64) -> UInt64 {
        seal(chunk.bytes, kind: 2 + UInt64(chunk.number) << 8, number: chunk.index, salt: salt)
    }

    /// The seal of a promise; never 0, which stands for none.
    public static func of(_ promise: Promise, salt: UInt64) -> UInt64 {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: promise.epoch.round)
        bytes.append(bigEndian: promise.epoch.id)
        bytes.append(bigEndian: promise.incarnation)
        let secret = promise.secret
        for word in [secret.w0, secret.w1, secret.w2, secret.w3] { bytes.append(bigEndian: word) }
        bytes.append(bigEndian: promise.shardCount)
        bytes.append((promise.hasFullState ? 1 : 0) | (promise.leftInOrder ? 2 : 0))
        // 0 stands for none.
        return seal(bytes, kind: 3, number: 0, salt: salt) | 1
    }

    /// The seal of a head, which is written right behind it.
    public static func of(_ head: RecordHead, salt: UInt64) -> UInt64 {
        seal(head.bytes, kind: 4, number: 0, salt: salt)
    }

    private static func seal(_ bytes: [UInt8], kind: UInt64, number: UInt64, salt: UInt64) -> UInt64 {
        mixed(checksum(bytes.span.bytes) ^ mixed(salt ^ mixed(number ^ mixed(kind))))
    }
}

/// What is wrong with a damaged record.
public enum RecordDamage: Error, Sendable, Hashable {
    /// The record ends before what was answered: its last entry, and the one of the mark.
    case olderThanMark(found: UInt64, marked: UInt64)
    /// There is a record without a mark.
    case markMissing
    /// The mark's seal is wrong, or it is cut.
    case markUnreadable
    /// The mark has another salt than the record.
    case markOfAnother
    /// The mark is there, and its record is not.
    case recordMissing
    /// The head's seal is wrong, or it is cut.
    case headUnreadable
    /// Head and mark are of one transaction, and differ.
    case headDiffers
    /// The promise has another seal or epoch than the head says.
    case promise
    /// A chunk with this number has another seal than was written with it.
    case chunk(UInt32)
    /// The seals of all chunks do not add up to what the head says.
    case snapshot
    /// The entry at this index has another seal than was written with it, is there twice, or lies behind the end.
    case entry(UInt64)
    /// The log has a gap at this index, or ends before it.
    case entryMissing(UInt64)
    /// The entry at this index does not follow the one before it.
    case chain(UInt64)
    /// A number beyond its bound: a sum with it could overflow later.
    case beyondBounds(NumberExcess)
}

extension RecordDamage: CustomStringConvertible {
    /// The end of a sentence about a record, in words for an operator.
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
    /// What a tracker goes on with whose record is damaged.
    ///
    /// It has no vote until it holds the whole state, and no part in the forming of a cluster, for it has promised
    /// *something*.
    ///
    /// - Parameters:
    ///   - epoch: the highest that it is known to have promised.
    ///   - secret: the cluster's.
    ///   - shardCount: shards of the swarm table.
    ///   - configuration: for planted bugs in tests; nil elsewhere.
    /// - Returns: a promise without incarnation, of at least the epoch `something`.
    public static func afterLoss(
        epoch: Epoch, secret: ClusterSecret, shardCount: UInt32, planted configuration: NodeConfiguration? = nil
    ) -> Promise {
        Promise(
            epoch: max(epoch, Promise.something), incarnation: 0, secret: secret, shardCount: shardCount,
            hasFullState: configuration?.has(.damagedVotes) == true)
    }

    /// Less than any epoch that a tracker can stand for, and more than none.
    public static let something = Epoch(round: 0, id: 1)
}
