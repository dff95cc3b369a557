/// An entry of the log: a batch of updates with its place, its epoch, its time and a checksum.
///
///     0   magic and version, "SKE" 1
///     4   index
///     12  epoch: round, then id
///     24  cluster time, milliseconds since 1970
///     32  number of updates
///     36  checksum of everything else
///     44  updates
///
/// The same bytes go to the disk and to the other trackers.

import Primitives

public struct EntryHeader: Sendable, Hashable {
    public static let byteCount = 44
    static let magic: UInt32 = 0x534B_4501

    public var index: UInt64
    public var epoch: Epoch
    /// Stamped by the master; never less than in the entry before (design 3.4, rule 4).
    public var time: WallTime
    public var updateCount: UInt32

    public init(index: UInt64, epoch: Epoch, time: WallTime, updateCount: UInt32) {
        self.index = index
        self.epoch = epoch
        self.time = time
        self.updateCount = updateCount
    }

    /// Bytes to begin an entry with; `seal` fills them in.
    public static func reserve(in bytes: inout [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(contentsOf: repeatElement(0, count: byteCount))
    }

    /// Writes the header into its place before the updates.
    public func seal(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { room in
            func put<Number: FixedWidthInteger>(_ value: Number, at offset: Int) {
                room.storeBytes(of: value.bigEndian, toByteOffset: offset, as: Number.self)
            }
            put(EntryHeader.magic, at: 0)
            put(index, at: 4)
            put(epoch.round, at: 12)
            put(epoch.id, at: 20)
            put(time.milliseconds, at: 24)
            put(updateCount, at: 32)
        }
        let sum = EntryHeader.checksum(bytes)
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: sum.bigEndian, toByteOffset: 36, as: UInt64.self) }
    }

    /// Reads the header of an entry and checks all of its bytes.
    public init(_ bytes: [UInt8]) throws(EntryDamaged) {
        guard bytes.count >= EntryHeader.byteCount else { throw EntryDamaged() }
        let span = bytes.span.bytes
        guard span.u32(at: 0) == EntryHeader.magic, span.u64(at: 36) == EntryHeader.checksum(bytes) else {
            throw EntryDamaged()
        }
        index = span.u64(at: 4)
        epoch = Epoch(round: span.u64(at: 12), id: span.u32(at: 20))
        time = WallTime(milliseconds: Int64(bitPattern: span.u64(at: 24)))
        updateCount = span.u32(at: 32)
    }

    /// All bytes but the checksum's own.
    private static func checksum(_ bytes: [UInt8]) -> UInt64 {
        Primitives.checksum(bytes.span.bytes, skipping: 36..<44)
    }
}

/// Bytes that are no entry, or no longer the one that was written.
public struct EntryDamaged: Error, Equatable {
    public init() {}
}
