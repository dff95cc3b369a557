// Numbers of a record that are beyond their bounds (`NumberBounds`), though their seals are right.

import Wire

/// A number of a record that is beyond its bound (`NumberBounds`), though its seal is right.
///
/// A record is written by a tracker, which refuses such numbers from others; so one that is there was put there by
/// hand, or by a program that is wrong. To go on from it would trap at the first sum.
public struct NumberExcess: Sendable, Hashable {
    /// Which number it is, in words that follow "its record's".
    public var name: String
    /// The number that the record holds.
    public var found: UInt64
    /// The greatest that it may be.
    public var bound: UInt64

    /// Compares a number with its bound.
    ///
    /// - Parameters:
    ///   - name: which number it is.
    ///   - found: as the record has it.
    ///   - bound: the greatest that it may be.
    /// - Returns: nil where the number is within its bound.
    static func of(_ name: String, _ found: UInt64, atMost bound: UInt64) -> NumberExcess? {
        found <= bound ? nil : NumberExcess(name: name, found: found, bound: bound)
    }
}

extension NumberExcess: CustomStringConvertible {
    /// The end of a sentence about a record.
    public var description: String { "its \(name) is \(found), and no tracker comes beyond \(bound)" }
}

extension Promise {
    /// What of it no tracker can go on from; nil where it can.
    public var excess: NumberExcess? {
        if !NumberBounds.isShardCount(shardCount) {
            return NumberExcess(
                name: "number of shards, a power of two,", found: UInt64(shardCount),
                bound: UInt64(NumberBounds.shardCount)
            )
        }
        return NumberExcess.of("promised round", epoch.round, atMost: NumberBounds.round)
    }
}

extension SnapshotChunk {
    /// What of it no tracker can go on from; nil where it can.
    public var excess: NumberExcess? {
        NumberExcess.of("index of chunk \(number)", index, atMost: NumberBounds.index)
            ?? NumberExcess.of(
                "number of a chunk", UInt64(number),
                atMost: UInt64(NumberBounds.shardCount) + UInt64(NumberBounds.fileChunkCount))
    }
}

extension RecordHead {
    /// What of it no tracker can go on from; nil where it can.
    ///
    /// Transactions are more than entries, and have the same bound.
    public var excess: NumberExcess? {
        NumberExcess.of("promised round", epoch.round, atMost: NumberBounds.round)
            ?? NumberExcess.of("last trimmed entry", trimmedThrough, atMost: NumberBounds.index)
            ?? NumberExcess.of("last entry", lastIndex, atMost: NumberBounds.index)
            ?? NumberExcess.of("number of transactions", turn, atMost: NumberBounds.index)
    }
}
