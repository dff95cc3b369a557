// BEP 41: options behind the 98 bytes of an announce.

import Primitives

/// The options behind the 98 bytes of an announce (BEP 41).
///
/// "Option-Type 0x0 EndOfOptions … 0x1 NOP … 0x2 URLData: <Option-Type 0x2>, <Length Byte>, <Variable-Length URL
/// Data>"; several URLData options are concatenated. Unknown options are skipped by their length byte.
public enum AnnounceOptions {
    /// Bytes of URL data that are kept, of all that a client sends: no sensible path is longer.
    public static let maxURLData = 1024

    /// Path and query of the announce URL, as the client was given it.
    ///
    /// Options that end before their length says are ignored, as is whatever follows them.
    ///
    /// - Parameters:
    ///   - bytes: the whole datagram.
    ///   - start: where the options begin.
    /// - Returns: at most `maxURLData` bytes; empty where there are none.
    public static func urlData(_ bytes: RawSpan, from start: Int = AnnounceRequest.byteCount) -> [UInt8] {
        var data: [UInt8] = []
        var offset = start
        while offset < bytes.byteCount {
            let type = bytes.u8(at: offset)
            offset += 1
            if type == 0 { break }
            if type == 1 { continue }
            guard offset < bytes.byteCount else { break }
            let count = Int(bytes.u8(at: offset))
            offset += 1
            guard offset + count <= bytes.byteCount else { break }
            if type == 2 {
                for index in offset..<offset + count where data.count < maxURLData { data.append(bytes.u8(at: index)) }
            }
            offset += count
        }
        return data
    }

    /// Writes URL data in options of up to 255 bytes, and the end mark; nothing at all for no data.
    public static func encode(urlData: [UInt8], into bytes: inout [UInt8]) {
        guard !urlData.isEmpty else { return }
        var rest = urlData[...]
        while !rest.isEmpty {
            let part = rest.prefix(255)
            bytes.append(2)
            bytes.append(UInt8(part.count))
            bytes.append(contentsOf: part)
            rest = rest.dropFirst(part.count)
        }
        bytes.append(0)
    }
}
