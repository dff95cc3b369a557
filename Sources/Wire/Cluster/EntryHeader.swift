// The header of an entry of the log.

import Primitives

/// An entry of the log: a batch of updates with its place, its history, its time, the tickets of those who wait for it,
/// and a checksum.
///
///     0   magic and version, "SKE" 2
///     4   index
///     12  cluster time, milliseconds since 1970
///     20  origin: the id of the master that made it
///     24  number of updates
///     28  offset of the tickets; the entry's length where there are none
///     32  previous: the running hash of the log up to and including the entry before
///     40  ballot: epoch (round, then id), attempt; its highest bit tells that its master decides alone
///     56  checksum of everything else
///     64  updates, then tickets
///
/// The same bytes go to the disk and to the other trackers. All but ballot and checksum is the *value*: it stays the
/// same when a later master proposes the entry again. The next entry carries the running hash up to and including this
/// one (`chain`), so that two logs that agree on one entry agree on all before it.
public struct EntryHeader: Sendable, Hashable {
    /// The length of a header, and so the offset of the first update.
    public static let byteCount = 64
    static let magic: UInt32 = 0x534B_4502
    /// Ballot and checksum: what is no part of the value.
    private static let hole = 40..<64

    /// The entry's place in the log, 1…`NumberBounds.index`.
    public var index: UInt64
    /// Stamped by the master; never less than in the entry before (rule 4).
    public var time: WallTime
    /// The id of the master that made the entry, which may be another than the one that proposes it now.
    public var origin: UInt32
    /// How many updates follow the header; 0 in the place of an entry that the vote refused.
    public var updateCount: UInt32
    /// Where the tickets begin, in bytes from the start of the entry; the entry's length where there are none.
    public var ticketsOffset: UInt32
    /// The running hash of the log up to and including the entry before; 0 for the first.
    public var previous: UInt64
    /// The epoch in which it was last proposed.
    public var epoch: Epoch
    /// Which proposal of that epoch at this index it is, from 0.
    public var attempt: UInt32
    /// Whether its master was the only voter (survivor mode): the entry is decided once it is on that one disk.
    public var isAlone: Bool

    /// A header to be sealed.
    ///
    /// - Parameters:
    ///   - index: the entry's place in the log.
    ///   - epoch: in which it is proposed.
    ///   - attempt: counts the proposals of that epoch at this index, from 0.
    ///   - isAlone: whether its master is the only voter.
    ///   - time: cluster time; not before that of the entry before.
    ///   - origin: the id of the master that made it; nil for the one that stood for `epoch`.
    ///   - updateCount: how many updates follow the header.
    ///   - ticketsOffset: where the tickets begin; 0 for none.
    ///   - previous: the running hash of the log up to and including the entry before.
    public init(
        index: UInt64, epoch: Epoch, attempt: UInt32 = 0, isAlone: Bool = false, time: WallTime, origin: UInt32? = nil,
        updateCount: UInt32, ticketsOffset: UInt32 = 0, previous: UInt64 = 0
    ) {
        self.index = index
        self.epoch = epoch
        self.attempt = attempt
        self.isAlone = isAlone
        self.time = time
        self.origin = origin ?? epoch.id
        self.updateCount = updateCount
        self.ticketsOffset = ticketsOffset
        self.previous = previous
    }

    /// Which proposal of the entry this is: what voters answer to.
    public var ballot: Ballot { Ballot(epoch: epoch, attempt: attempt, index: index) }

    /// Bytes to begin an entry with; `seal` fills them in.
    public static func reserve(in bytes: inout [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(contentsOf: repeatElement(0, count: byteCount))
    }

    /// Writes the header into its place before the updates.
    ///
    /// A `ticketsOffset` of 0 becomes the entry's length: no tickets.
    ///
    /// - Parameter bytes: an entry that `reserve` began, with its updates and tickets.
    /// - Returns: the running hash of the log up to and including this entry, as `chain` tells.
    @discardableResult
    public func seal(_ bytes: inout [UInt8]) -> UInt64 {
        let length = UInt32(bytes.count)
        bytes.withUnsafeMutableBytes { room in
            func put<Number: FixedWidthInteger>(_ value: Number, at offset: Int) {
                room.storeBytes(of: value.bigEndian, toByteOffset: offset, as: Number.self)
            }
            put(EntryHeader.magic, at: 0)
            put(index, at: 4)
            put(time.milliseconds, at: 12)
            put(origin, at: 20)
            put(updateCount, at: 24)
            put(ticketsOffset == 0 ? length : ticketsOffset, at: 28)
            put(previous, at: 32)
            put(epoch.round, at: 40)
            put(epoch.id, at: 48)
            put(attemptWord, at: 52)
        }
        let value = Primitives.checksum(bytes.span.bytes, skipping: EntryHeader.hole)
        let sum = EntryHeader.checksum(ofValue: value, epoch, attemptWord)
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: sum.bigEndian, toByteOffset: 56, as: UInt64.self) }
        return EntryHeader.chain(ofValue: value)
    }

    /// Makes a sealed entry a proposal of another ballot; its value, and so its `chain`, stays.
    ///
    /// - Parameters:
    ///   - bytes: a sealed entry.
    ///   - epoch: in which it is proposed now.
    ///   - attempt: counts the proposals of that epoch at its index, from 0.
    ///   - isAlone: whether the proposing master is the only voter.
    public static func restamp(_ bytes: inout [UInt8], epoch: Epoch, attempt: UInt32, isAlone: Bool = false) {
        let attemptWord = word(attempt, isAlone)
        bytes.withUnsafeMutableBytes { room in
            room.storeBytes(of: epoch.round.bigEndian, toByteOffset: 40, as: UInt64.self)
            room.storeBytes(of: epoch.id.bigEndian, toByteOffset: 48, as: UInt32.self)
            room.storeBytes(of: attemptWord.bigEndian, toByteOffset: 52, as: UInt32.self)
        }
        let sum = checksum(bytes, epoch, attemptWord)
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: sum.bigEndian, toByteOffset: 56, as: UInt64.self) }
    }

    /// Reads the header of an entry and checks all of its bytes.
    ///
    /// - Parameter bytes: the whole entry.
    /// - Throws: `EntryDamaged` where the checksum is wrong, a number is beyond its bound, or the entry is cut.
    public init(_ bytes: [UInt8]) throws(EntryDamaged) {
        var chain: UInt64 = 0
        try self.init(bytes, chain: &chain)
    }

    /// Reads the header, checks all bytes, and tells the running hash: in one pass over them.
    init(_ bytes: [UInt8], chain: inout UInt64) throws(EntryDamaged) {
        guard bytes.count >= EntryHeader.byteCount else { throw EntryDamaged() }
        let span = bytes.span.bytes
        let value = Primitives.checksum(span, skipping: EntryHeader.hole)
        chain = EntryHeader.chain(ofValue: value)
        epoch = Epoch(round: span.u64(at: 40), id: span.u32(at: 48))
        let attemptWord = span.u32(at: 52)
        attempt = attemptWord & ~EntryHeader.aloneBit
        isAlone = attemptWord & EntryHeader.aloneBit != 0
        guard span.u32(at: 0) == EntryHeader.magic,
            span.u64(at: 56) == EntryHeader.checksum(ofValue: value, epoch, attemptWord)
        else { throw EntryDamaged() }
        index = span.u64(at: 4)
        time = WallTime(milliseconds: Int64(bitPattern: span.u64(at: 12)))
        origin = span.u32(at: 20)
        updateCount = span.u32(at: 24)
        ticketsOffset = span.u32(at: 28)
        previous = span.u64(at: 32)
        guard ticketsOffset >= EntryHeader.byteCount, ticketsOffset <= bytes.count,
            (1...NumberBounds.index).contains(index), epoch.round <= NumberBounds.round,
            attempt <= NumberBounds.attempt, (0...NumberBounds.time).contains(time.milliseconds)
        else {
            throw EntryDamaged()
        }
    }

    /// The running hash of the log up to and including a sealed entry; never 0.
    public static func chain(_ bytes: [UInt8]) -> UInt64 {
        chain(ofValue: Primitives.checksum(bytes.span.bytes, skipping: hole))
    }

    private static func chain(ofValue value: UInt64) -> UInt64 { mixed(value) | 1 }

    /// All bytes but the checksum's own.
    private static func checksum(_ bytes: [UInt8], _ epoch: Epoch, _ attemptWord: UInt32) -> UInt64 {
        checksum(ofValue: Primitives.checksum(bytes.span.bytes, skipping: hole), epoch, attemptWord)
    }

    private static func checksum(ofValue value: UInt64, _ epoch: Epoch, _ attemptWord: UInt32) -> UInt64 {
        mixed(value ^ mixed(epoch.round ^ mixed(UInt64(epoch.id) << 32 | UInt64(attemptWord))))
    }

    private static let aloneBit: UInt32 = 1 << 31

    private var attemptWord: UInt32 { EntryHeader.word(attempt, isAlone) }

    private static func word(_ attempt: UInt32, _ isAlone: Bool) -> UInt32 {
        attempt & ~aloneBit | (isAlone ? aloneBit : 0)
    }
}

/// Bytes that are no entry, or no longer the one that was written.
public struct EntryDamaged: Error, Equatable {
    /// The error says nothing but that.
    public init() {}
}
