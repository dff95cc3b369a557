// Which pieces somebody has.

import Primitives

/// One bit a piece: which pieces a peer has, wants, or has verified.
///
/// Bits beyond `count` are zero at all times, so that whole words can be compared and counted.
public struct Bitfield: Sendable, Hashable {
    /// Pieces, set or not.
    public let count: Int
    /// How many are set.
    public private(set) var setCount: Int
    /// Piece `i` is bit `i & 63` of word `i / 64`.
    @usableFromInline private(set) var words: [UInt64]

    /// So many pieces, all set or none.
    public init(count: Int, isFull: Bool = false) {
        precondition(count >= 0, "a bitfield has no negative number of pieces")
        self.count = count
        setCount = isFull ? count : 0
        words = Array(repeating: isFull ? .max : 0, count: (count + 63) / 64)
        if isFull, count & 63 != 0 { words[words.count - 1] = (1 << UInt64(count & 63)) - 1 }
    }

    /// Reads a `bitfield` message: the first piece is the highest bit of the first byte (BEP 3).
    ///
    /// - Returns: nil where the length is not that of so many pieces, or a spare bit at the end is set.
    public init?(wire bytes: [UInt8], count: Int) {
        guard count >= 0, bytes.count == (count + 7) / 8 else { return nil }
        if count & 7 != 0, let last = bytes.last, last << UInt8(count & 7) != 0 { return nil }
        self.init(count: count)
        for (index, byte) in bytes.enumerated() where byte != 0 {
            words[index / 8] |= UInt64(Bitfield.mirrored(byte)) << UInt64(index & 7 * 8)
        }
        setCount = words.reduce(0) { $0 + $1.nonzeroBitCount }
    }

    /// The payload of a `bitfield` message, spare bits zero.
    public var wire: [UInt8] {
        (0..<(count + 7) / 8).map { index in
            Bitfield.mirrored(UInt8(truncatingIfNeeded: words[index / 8] >> UInt64(index & 7 * 8)))
        }
    }

    /// Whether every piece is set.
    public var isFull: Bool { setCount == count }
    /// Whether no piece is set.
    public var isEmpty: Bool { setCount == 0 }

    /// Whether a piece is set; beyond the last piece traps.
    public subscript(piece: Int) -> Bool {
        precondition(piece >= 0 && piece < count, "a bitfield is asked for a piece that it has")
        return words[piece / 64] >> UInt64(piece & 63) & 1 == 1
    }

    /// Sets a piece; false where it was set before.
    @discardableResult
    public mutating func insert(_ piece: Int) -> Bool {
        guard !self[piece] else { return false }
        words[piece / 64] |= 1 << UInt64(piece & 63)
        setCount += 1
        return true
    }

    /// Clears a piece; false where it was clear before.
    @discardableResult
    public mutating func remove(_ piece: Int) -> Bool {
        guard self[piece] else { return false }
        words[piece / 64] &= ~(1 << UInt64(piece & 63))
        setCount -= 1
        return true
    }

    /// The pieces that are set here, ascending, of those that are set there and not in a third.
    ///
    /// The body is told each, and ends the walk by saying false.
    func walk(_ wanted: Bitfield, without: Bitfield, _ body: (Int) -> Bool) {
        for index in words.indices {
            var rest = words[index] & wanted.words[index] & ~without.words[index]
            while rest != 0 {
                guard body(index * 64 + rest.trailingZeroBitCount) else { return }
                rest &= rest - 1
            }
        }
    }

    /// How many pieces are set here and there, and not in a third.
    func count(of wanted: Bitfield, without: Bitfield) -> Int {
        var result = 0
        for index in words.indices {
            result += (words[index] & wanted.words[index] & ~without.words[index]).nonzeroBitCount
        }
        return result
    }

    /// Calls back for each piece that is set, ascending.
    public func forEach(_ body: (Int) -> Void) {
        for index in words.indices {
            var rest = words[index]
            while rest != 0 {
                body(index * 64 + rest.trailingZeroBitCount)
                rest &= rest - 1
            }
        }
    }

    private static func mirrored(_ byte: UInt8) -> UInt8 {
        var value = byte >> 4 | byte << 4
        value = (value & 0xCC) >> 2 | (value & 0x33) << 2
        return (value & 0xAA) >> 1 | (value & 0x55) << 1
    }
}
