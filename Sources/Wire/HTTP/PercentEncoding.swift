// Percent-encoding of raw bytes (RFC 3986, 2.1).

import Primitives

/// Percent-encoding of raw bytes (RFC 3986, 2.1).
enum PercentEncoding {
    private static let percent = UInt8(ascii: "%")
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Letters, digits, `-`, `.`, `_` and `~` stay (RFC 3986, 2.3, "unreserved"); the rest becomes `%XX`.
    static func encoded(_ bytes: some Sequence<UInt8>) -> String {
        var result: [UInt8] = []
        append(bytes, to: &result)
        return String(decoding: result, as: UTF8.self)
    }

    static func append(_ bytes: some Sequence<UInt8>, to result: inout [UInt8]) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.append(byte)
            default:
                result.append(percent)
                result.append(digits[Int(byte >> 4)])
                result.append(digits[Int(byte & 15)])
            }
        }
    }

    /// The bytes that a text stands for.
    ///
    /// Whatever is no `%` stands for itself, `+` and raw bytes included.
    ///
    /// - Returns: nil where a `%` is not followed by two hexadecimal digits of either case.
    static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            guard byte == percent else {
                result.append(byte)
                index += 1
                continue
            }
            guard text.endIndex - index > 2, let high = digit(text[index + 1]), let low = digit(text[index + 2])
            else { return nil }
            result.append(high << 4 | low)
            index += 3
        }
        return result
    }

    private static func digit(_ character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
