/// Twenty bytes by value: what an info hash, a node id and a peer id are made of.
///
/// Kept as five 32-bit words, so that a record of the swarm table needs no padding around it (size 20, stride 20).
@frozen
public struct Bytes20: Sendable, Hashable {
    // The words hold the bytes in memory order; their numeric value means nothing.
    @usableFromInline var w0: UInt32
    @usableFromInline var w1: UInt32
    @usableFromInline var w2: UInt32
    @usableFromInline var w3: UInt32
    @usableFromInline var w4: UInt32

    /// The size in bytes, in memory and on the wire.
    public static let byteCount = 20
    /// Twenty zero bytes.
    public static let zero = Bytes20()

    /// Twenty zero bytes.
    @inlinable
    public init() { (w0, w1, w2, w3, w4) = (0, 0, 0, 0, 0) }

    /// Reads 20 bytes at an offset; the caller has checked the length, once for a whole message.
    @inlinable
    public init(_ bytes: RawSpan, at offset: Int) {
        w0 = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)
        w1 = bytes.unsafeLoadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        w2 = bytes.unsafeLoadUnaligned(fromByteOffset: offset + 8, as: UInt32.self)
        w3 = bytes.unsafeLoadUnaligned(fromByteOffset: offset + 12, as: UInt32.self)
        w4 = bytes.unsafeLoadUnaligned(fromByteOffset: offset + 16, as: UInt32.self)
    }

    /// - Returns: nil unless there are exactly 20 bytes.
    @inlinable
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 20 else { return nil }
        self.init()
        var offset = 0
        for byte in bytes {
            self[offset] = byte
            offset += 1
        }
    }

    /// The byte at 0…19; any other offset traps.
    @inlinable
    public subscript(offset: Int) -> UInt8 {
        get { withUnsafeBytes(of: self) { $0[offset] } }
        set { withUnsafeMutableBytes(of: &self) { $0[offset] = newValue } }
    }

    /// The bytes in order.
    public var bytes: [UInt8] { withUnsafeBytes(of: self) { Array($0) } }

    /// A hash under a secret key, well spread in all 64 bits: strangers choose info hashes.
    ///
    /// Two folded 64×64→128-bit products, as wyhash does.
    ///
    /// - Parameter key: whoever knows it can make hashes collide.
    /// - Returns: the same in every process with that key; so it may be compared between trackers, and stored.
    @inlinable
    public func hash(key: UInt64) -> UInt64 {
        let a = UInt64(w0) | UInt64(w1) &<< 32
        let b = UInt64(w2) | UInt64(w3) &<< 32
        return folded(folded(a ^ key, b ^ 0xE703_7ED1_A0B4_28DB) ^ key, UInt64(w4) ^ 0x8EBC_6AF0_9C88_C6E3)
    }

    /// Compares all five words at once, without a branch.
    @inlinable
    public static func == (left: Bytes20, right: Bytes20) -> Bool {
        (left.w0 ^ right.w0) | (left.w1 ^ right.w1) | (left.w2 ^ right.w2) | (left.w3 ^ right.w3)
            | (left.w4 ^ right.w4) == 0
    }
}

/// The high and low half of a 128-bit product, xored: a fast keyed mixer (wyhash's "mum").
@inlinable
public func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
}

extension Bytes20: CustomStringConvertible {
    /// Forty lower-case hexadecimal digits.
    public var description: String { hexadecimal(bytes) }
}

/// Lower-case hexadecimal digits, two a byte.
public func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
}

/// The bytes that hexadecimal digits of either case stand for.
///
/// - Returns: nil where the text has an odd length or another character.
public func bytes(hexadecimal text: some StringProtocol) -> [UInt8]? {
    func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
    let characters = Array(text.utf8)
    guard characters.count.isMultiple(of: 2) else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(characters.count / 2)
    var offset = 0
    while offset < characters.count {
        guard let high = digit(characters[offset]), let low = digit(characters[offset + 1]) else { return nil }
        result.append(high << 4 | low)
        offset += 2
    }
    return result
}
