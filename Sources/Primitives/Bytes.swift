// Big-endian numbers in byte buffers, both ways.

/// Big-endian loads at fixed offsets, for codecs on the hot path.
///
/// They check the length of a message once, and then load; a load beyond the span's end traps rather than read it.
extension RawSpan {
    /// The byte at an offset from the span's start.
    @inlinable
    public func u8(at offset: Int) -> UInt8 { unsafeLoadUnaligned(fromByteOffset: offset, as: UInt8.self) }

    /// The two bytes from an offset on, most significant first; they need not be aligned.
    @inlinable
    public func u16(at offset: Int) -> UInt16 {
        UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// The four bytes from an offset on, most significant first; they need not be aligned.
    @inlinable
    public func u32(at offset: Int) -> UInt32 {
        UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// The eight bytes from an offset on, most significant first; they need not be aligned.
    @inlinable
    public func u64(at offset: Int) -> UInt64 {
        UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}

extension [UInt8] {
    /// Appends the bytes of a number, the most significant first.
    @inlinable
    public mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }

    /// Appends the 20 bytes in their order.
    @inlinable
    public mutating func append(_ value: Bytes20) {
        Swift.withUnsafeBytes(of: value) { append(contentsOf: $0) }
    }

    /// Appends a string of bytes behind its 16-bit length; what exceeds 65,535 bytes is cut.
    public mutating func append(counted bytes: some Collection<UInt8>) {
        let kept = bytes.prefix(Int(UInt16.max))
        append(bigEndian: UInt16(kept.count))
        append(contentsOf: kept)
    }
}

/// The bytes ended before the value did.
@frozen
public struct OutOfBytes: Error, Equatable {
    /// The error says nothing but that.
    @inlinable
    public init() {}
}

/// A cursor over bytes, for codecs that are not on the hot path; numbers are big-endian.
///
/// A read past the end throws `OutOfBytes` and consumes nothing.
public struct ByteReader: Sendable {
    private let bytes: [UInt8]
    /// Where the next read begins, in bytes from the start of the buffer; never beyond its end.
    public private(set) var offset: Int

    /// Begins to read.
    ///
    /// - Parameters:
    ///   - bytes: kept as long as the cursor lives.
    ///   - offset: within the bytes or right behind them.
    public init(_ bytes: [UInt8], from offset: Int = 0) {
        self.bytes = bytes
        self.offset = offset
    }

    /// Bytes not yet read.
    public var remaining: Int { bytes.count - offset }

    /// Reads one byte.
    public mutating func u8() throws(OutOfBytes) -> UInt8 {
        guard remaining >= 1 else { throw OutOfBytes() }
        defer { offset += 1 }
        return bytes[offset]
    }

    /// Reads two bytes, most significant first.
    public mutating func u16() throws(OutOfBytes) -> UInt16 { try number() }
    /// Reads four bytes, most significant first.
    public mutating func u32() throws(OutOfBytes) -> UInt32 { try number() }
    /// Reads eight bytes, most significant first.
    public mutating func u64() throws(OutOfBytes) -> UInt64 { try number() }

    private mutating func number<Number: FixedWidthInteger & BitwiseCopyable>() throws(OutOfBytes) -> Number {
        let width = Number.bitWidth / 8
        guard remaining >= width else { throw OutOfBytes() }
        defer { offset += width }
        return Number(bigEndian: bytes.span.bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Number.self))
    }

    /// Reads 20 bytes in their order.
    public mutating func bytes20() throws(OutOfBytes) -> Bytes20 {
        guard remaining >= 20 else { throw OutOfBytes() }
        defer { offset += 20 }
        return Bytes20(bytes.span.bytes, at: offset)
    }

    /// Reads so many bytes as they are.
    ///
    /// - Parameter count: a negative one throws like one that is too large.
    /// - Returns: a slice that shares the buffer's storage; its indices do not begin at 0.
    /// - Throws: `OutOfBytes` where there are not so many left.
    public mutating func take(_ count: Int) throws(OutOfBytes) -> ArraySlice<UInt8> {
        guard count >= 0, remaining >= count else { throw OutOfBytes() }
        defer { offset += count }
        return bytes[offset..<offset + count]
    }

    /// Reads a byte string that follows its 16-bit length.
    ///
    /// - Returns: a slice that shares the buffer's storage, without the length.
    /// - Throws: `OutOfBytes` where not all of it is there; then nothing is consumed, the length neither.
    public mutating func counted() throws(OutOfBytes) -> ArraySlice<UInt8> {
        let start = offset
        let count = try Int(u16())
        guard remaining >= count else {
            offset = start
            throw OutOfBytes()
        }
        return try take(count)
    }
}
