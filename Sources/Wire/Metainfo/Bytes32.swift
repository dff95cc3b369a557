// Thirty-two bytes by value.

import Primitives

/// Thirty-two bytes by value: a SHA-256 (BEP 52; of torrent files and of the ids of sessions, too).
@frozen
public struct Bytes32: Sendable, Hashable, Comparable {
    // Most significant byte first, so that numbers compare as the bytes do.
    @usableFromInline var w0: UInt64 = 0
    @usableFromInline var w1: UInt64 = 0
    @usableFromInline var w2: UInt64 = 0
    @usableFromInline var w3: UInt64 = 0

    /// The size in bytes, in memory and in a metainfo file.
    public static let byteCount = 32
    /// Thirty-two zero bytes: what stands for an absent leaf of a Merkle tree (BEP 52).
    public static let zero = Bytes32()

    private init() {}

    /// - Returns: nil unless there are exactly 32 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Bytes32.byteCount else { return nil }
        for byte in bytes {
            w0 = w0 &<< 8 | w1 &>> 56
            w1 = w1 &<< 8 | w2 &>> 56
            w2 = w2 &<< 8 | w3 &>> 56
            w3 = w3 &<< 8 | UInt64(byte)
        }
    }

    /// The bytes in order.
    public var bytes: [UInt8] {
        [w0, w1, w2, w3].flatMap { word in
            stride(from: UInt64(56), through: 0, by: -8).map { UInt8(truncatingIfNeeded: word &>> $0) }
        }
    }

    /// As the bytes compare, the first being the most significant.
    public static func < (left: Bytes32, right: Bytes32) -> Bool {
        (left.w0, left.w1, left.w2, left.w3) < (right.w0, right.w1, right.w2, right.w3)
    }
}

extension Bytes32: CustomStringConvertible {
    /// Sixty-four lower-case hexadecimal digits.
    public var description: String { hexadecimal(bytes) }
}

extension Bytes32 {
    /// A hash under a secret key, well spread in all 64 bits.
    public func hash(key: UInt64) -> UInt64 { folded(folded(w0 ^ key, w1 ^ 0xE703_7ED1_A0B4_28DB) ^ w2 ^ key, ~w3) }
}

extension [UInt8] {
    /// Appends 32 bytes in their order.
    mutating func append(_ value: Bytes32) {
        for word in [value.w0, value.w1, value.w2, value.w3] { append(bigEndian: word) }
    }
}

extension ByteReader {
    /// Reads 32 bytes in their order.
    mutating func bytes32() throws(OutOfBytes) -> Bytes32 {
        guard let value = Bytes32(try take(Bytes32.byteCount)) else { throw OutOfBytes() }
        return value
    }
}
