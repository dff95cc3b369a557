/// SipHash-2-4 (Aumasson and Bernstein, 2012): a 64-bit keyed MAC for short inputs, here of two words.
///
/// Serves connection ids (BEP 15), which a stranger must not be able to guess for an address that is not his.
@frozen
public struct SipHash: Sendable, Hashable {
    /// The first half of the secret key of 128 bits.
    public var key0: UInt64
    /// The second half.
    public var key1: UInt64

    /// Takes both halves of the key.
    @inlinable
    public init(key0: UInt64, key1: UInt64) {
        self.key0 = key0
        self.key1 = key1
    }

    /// The MAC of 24 bytes, given as three little-endian words.
    public func mac(_ m0: UInt64, _ m1: UInt64, _ m2: UInt64) -> UInt64 {
        var state = State(key0: key0, key1: key1)
        state.absorb(m0)
        state.absorb(m1)
        state.absorb(m2)
        return state.finish(byteCount: 24)
    }

    /// The MAC of any bytes.
    public func mac(_ bytes: [UInt8]) -> UInt64 {
        var state = State(key0: key0, key1: key1)
        let whole = bytes.count & ~7
        let span = bytes.span.bytes
        var offset = 0
        while offset < whole {
            state.absorb(UInt64(littleEndian: span.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        var last: UInt64 = 0
        while offset < bytes.count {
            last |= UInt64(bytes[offset]) << UInt64(8 * (offset & 7))
            offset += 1
        }
        return state.finish(byteCount: bytes.count, rest: last)
    }

    private struct State {
        var v0: UInt64
        var v1: UInt64
        var v2: UInt64
        var v3: UInt64

        init(key0: UInt64, key1: UInt64) {
            v0 = key0 ^ 0x736F_6D65_7073_6575
            v1 = key1 ^ 0x646F_7261_6E64_6F6D
            v2 = key0 ^ 0x6C79_6765_6E65_7261
            v3 = key1 ^ 0x7465_6462_7974_6573
        }

        mutating func absorb(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        mutating func finish(byteCount: Int, rest: UInt64 = 0) -> UInt64 {
            absorb(UInt64(truncatingIfNeeded: byteCount) << 56 | rest)
            v2 ^= 0xFF
            round()
            round()
            round()
            round()
            return v0 ^ v1 ^ v2 ^ v3
        }

        @inline(__always)
        mutating func round() {
            v0 = v0 &+ v1
            v1 = rotated(v1, by: 13) ^ v0
            v0 = rotated(v0, by: 32)
            v2 = v2 &+ v3
            v3 = rotated(v3, by: 16) ^ v2
            v0 = v0 &+ v3
            v3 = rotated(v3, by: 21) ^ v0
            v2 = v2 &+ v1
            v1 = rotated(v1, by: 17) ^ v2
            v2 = rotated(v2, by: 32)
        }
    }
}
