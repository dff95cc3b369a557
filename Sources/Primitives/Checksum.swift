// A fast 64-bit checksum against decay.

/// A fast 64-bit checksum against decay, not against malice: eight bytes a multiplication.
///
/// - Parameters:
///   - bytes: any number of bytes; their count is part of the sum.
///   - hole: bytes that are left out, because the checksum itself stands there.
/// - Returns: the same number on every machine; it is written to disks and sent between trackers.
public func checksum(_ bytes: RawSpan, skipping hole: Range<Int> = 0..<0) -> UInt64 {
    let head = partialChecksum(0x2D35_8DCC_AA6C_78A5, bytes, 0..<hole.lowerBound)
    return partialChecksum(head, bytes, hole.upperBound..<bytes.byteCount) ^ UInt64(bytes.byteCount)
}

private func partialChecksum(_ start: UInt64, _ bytes: RawSpan, _ range: Range<Int>) -> UInt64 {
    var sum = start
    var offset = range.lowerBound
    while offset + 8 <= range.upperBound {
        let word = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
        sum = folded(sum ^ UInt64(littleEndian: word), 0x9E37_79B9_7F4A_7C15)
        offset += 8
    }
    var rest: UInt64 = 0
    while offset < range.upperBound {
        rest = rest << 8 | UInt64(bytes.u8(at: offset))
        offset += 1
    }
    return folded(sum ^ rest, 0xD1B5_4A32_D192_ED03)
}
