// Records found by a key of their own.

/// A record with a key of its own, which is some of its fields.
public protocol FlatRecord: Sendable {
    /// The key's hash, equal for equal keys; the secret keeps strangers who choose keys from making them collide.
    func keyHash(_ secret: UInt64) -> UInt64
    /// Whether the other record has the same key.
    func hasSameKey(as other: Self) -> Bool
}

/// Records found by a key of their own: an array with a flat index beside it.
///
/// For tables that strangers or operators fill. The order of the records is the order of insertion with gaps closed
/// from the end; nothing may depend on it.
public struct FlatTable<Record: FlatRecord>: Sendable {
    /// All records, in an order that means nothing.
    public private(set) var records: [Record] = []
    private var index = SlotIndex()
    private let secret: UInt64

    /// An empty table that hashes its keys under `secret`.
    public init(secret: UInt64) { self.secret = secret }

    /// The number of records.
    public var count: Int { records.count }

    /// The number of bytes that records and index occupy.
    public var byteCount: Int { records.capacity * MemoryLayout<Record>.stride + index.byteCount }

    /// The record with the same key as this one; nil where there is none.
    public func find(_ record: Record) -> Record? { slot(record).map { records[$0] } }

    /// Finds a record by its key alone.
    ///
    /// - Parameters:
    ///   - keyHash: the key's, under the table's secret.
    ///   - hasKey: whether a record has that key.
    /// - Returns: the record; nil where there is none.
    public func find(keyHash: UInt64, where hasKey: (Record) -> Bool) -> Record? {
        index.find(UInt32(truncatingIfNeeded: keyHash)) { hasKey(records[$0]) }.map { records[$0] }
    }

    /// Whether there is a record with the same key as this one.
    public func contains(_ record: Record) -> Bool { slot(record) != nil }

    /// Adds a record, or replaces the one with its key.
    ///
    /// - Returns: the one replaced.
    @discardableResult
    public mutating func put(_ record: Record) -> Record? {
        if let slot = slot(record) {
            let old = records[slot]
            records[slot] = record
            return old
        }
        index.insert(hash(record), slot: records.count)
        records.append(record)
        return nil
    }

    /// Removes the record with the same key as this one.
    ///
    /// - Returns: the record removed; nil where there was none.
    @discardableResult
    public mutating func remove(_ record: Record) -> Record? {
        guard let slot = slot(record) else { return nil }
        let old = records[slot]
        index.remove(hash(old), slot: slot)
        let last = records.count - 1
        if slot != last {
            index.move(hash(records[last]), from: last, to: slot)
            records[slot] = records[last]
        }
        records.removeLast()
        return old
    }

    private func slot(_ record: Record) -> Int? {
        index.find(hash(record)) { records[$0].hasSameKey(as: record) }
    }

    private func hash(_ record: Record) -> UInt32 { UInt32(truncatingIfNeeded: record.keyHash(secret)) }
}

/// A hash of any bytes under a secret, one folded product a byte: for short strings such as names.
///
/// - Parameters:
///   - bytes: their number is no part of the hash.
///   - secret: whoever knows it can make hashes collide.
/// - Returns: the same in every process with that secret.
public func hash(_ bytes: some Sequence<UInt8>, secret: UInt64) -> UInt64 {
    var state = secret ^ 0xA076_1D64_78BD_642F
    for byte in bytes { state = folded(state ^ UInt64(byte), 0xE703_7ED1_A0B4_28DB) }
    return state
}
