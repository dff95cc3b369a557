// Compact peers.

import Primitives

/// Compact peers: an address and a port, in network byte order, without padding (BEP 23 for IPv4, BEP 7 for IPv6).
///
/// The types *are* the wire's bytes, so that a list of peers is copied, not encoded.
public protocol CompactEndpoint: Sendable, Hashable {
    /// 6 for IPv4, 18 for IPv6.
    static var byteCount: Int { get }

    /// The compact form of an address, whose zone is lost; nil where the address is of the other family.
    init?(_ address: SocketAddress)

    /// Reads `byteCount` bytes at an offset; the caller has checked the length.
    init(_ bytes: RawSpan, at offset: Int)

    /// The address and port that the bytes stand for, without a zone.
    var socketAddress: SocketAddress { get }

    /// A hash of all bytes under a secret key, well spread over all 64 bits: clients choose their addresses and ports.
    func hash(key: UInt64) -> UInt64
}

/// An IPv4 address and a port: six bytes (BEP 23).
@frozen
public struct CompactIPv4: CompactEndpoint {
    // In memory order; the numeric values mean nothing.
    @usableFromInline var w0: UInt16
    @usableFromInline var w1: UInt16
    @usableFromInline var w2: UInt16

    /// Six.
    @inlinable
    public static var byteCount: Int { 6 }

    /// The compact form of an IPv4 address; nil for an IPv6 one.
    @inlinable
    public init?(_ address: SocketAddress) {
        guard address.isIPv4 else { return nil }
        w0 = UInt16(truncatingIfNeeded: address.low &>> 16).bigEndian
        w1 = UInt16(truncatingIfNeeded: address.low).bigEndian
        w2 = address.port.bigEndian
    }

    /// Reads six bytes at an offset; the caller has checked the length.
    @inlinable
    public init(_ bytes: RawSpan, at offset: Int) {
        w0 = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self)
        w1 = bytes.unsafeLoadUnaligned(fromByteOffset: offset + 2, as: UInt16.self)
        w2 = bytes.unsafeLoadUnaligned(fromByteOffset: offset + 4, as: UInt16.self)
    }

    /// The IPv4 address and port that the bytes stand for.
    @inlinable
    public var socketAddress: SocketAddress {
        SocketAddress(
            ipv4: UInt32(UInt16(bigEndian: w0)) &<< 16 | UInt32(UInt16(bigEndian: w1)), port: UInt16(bigEndian: w2))
    }

    /// One folded product of the six bytes and the key.
    @inlinable
    public func hash(key: UInt64) -> UInt64 {
        let word = UInt64(w0) | UInt64(w1) &<< 16 | UInt64(w2) &<< 32
        return folded(word ^ key, 0xE703_7ED1_A0B4_28DB ^ rotatedKey(key))
    }
}

/// An IPv6 address and a port: eighteen bytes (BEP 7).
@frozen
public struct CompactIPv6: CompactEndpoint {
    // In memory order; the numeric values mean nothing. Nine halves, so that nothing pads.
    @usableFromInline var w0: UInt16
    @usableFromInline var w1: UInt16
    @usableFromInline var w2: UInt16
    @usableFromInline var w3: UInt16
    @usableFromInline var w4: UInt16
    @usableFromInline var w5: UInt16
    @usableFromInline var w6: UInt16
    @usableFromInline var w7: UInt16
    @usableFromInline var w8: UInt16

    /// Eighteen.
    @inlinable
    public static var byteCount: Int { 18 }

    /// The compact form of an IPv6 address, whose zone is lost; nil for an IPv4 one.
    @inlinable
    public init?(_ address: SocketAddress) {
        guard !address.isIPv4 else { return nil }
        w0 = UInt16(truncatingIfNeeded: address.high &>> 48).bigEndian
        w1 = UInt16(truncatingIfNeeded: address.high &>> 32).bigEndian
        w2 = UInt16(truncatingIfNeeded: address.high &>> 16).bigEndian
        w3 = UInt16(truncatingIfNeeded: address.high).bigEndian
        w4 = UInt16(truncatingIfNeeded: address.low &>> 48).bigEndian
        w5 = UInt16(truncatingIfNeeded: address.low &>> 32).bigEndian
        w6 = UInt16(truncatingIfNeeded: address.low &>> 16).bigEndian
        w7 = UInt16(truncatingIfNeeded: address.low).bigEndian
        w8 = address.port.bigEndian
    }

    /// Reads eighteen bytes at an offset; the caller has checked the length.
    @inlinable
    public init(_ bytes: RawSpan, at offset: Int) {
        func half(_ index: Int) -> UInt16 {
            bytes.unsafeLoadUnaligned(fromByteOffset: offset + 2 * index, as: UInt16.self)
        }
        (w0, w1, w2, w3) = (half(0), half(1), half(2), half(3))
        (w4, w5, w6, w7) = (half(4), half(5), half(6), half(7))
        w8 = half(8)
    }

    /// The IPv6 address and port that the bytes stand for, without a zone.
    @inlinable
    public var socketAddress: SocketAddress {
        func number(_ a: UInt16, _ b: UInt16, _ c: UInt16, _ d: UInt16) -> UInt64 {
            UInt64(UInt16(bigEndian: a)) &<< 48 | UInt64(UInt16(bigEndian: b)) &<< 32
                | UInt64(UInt16(bigEndian: c)) &<< 16 | UInt64(UInt16(bigEndian: d))
        }
        return SocketAddress(high: number(w0, w1, w2, w3), low: number(w4, w5, w6, w7), port: UInt16(bigEndian: w8))
    }

    /// Two folded products of the eighteen bytes and the key.
    @inlinable
    public func hash(key: UInt64) -> UInt64 {
        let address = socketAddress
        return folded(
            folded(address.high ^ key, address.low ^ 0xE703_7ED1_A0B4_28DB) ^ rotatedKey(key),
            UInt64(w8) ^ 0x8EBC_6AF0_9C88_C6E3)
    }
}

@inlinable
func rotatedKey(_ key: UInt64) -> UInt64 { key &<< 32 | key &>> 32 }
