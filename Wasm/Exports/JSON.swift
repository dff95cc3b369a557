// Writes JSON, without Foundation.

import Primitives

/// Writes JSON (RFC 8259), piece by piece, into bytes.
///
/// Commas stand where they must; that objects have keys, and that all is closed, is the writer's affair.
struct JSON {
    private(set) var bytes: [UInt8] = []

    // MARK: - Values

    mutating func object(_ write: (inout JSON) -> Void) { enclose("{", "}", write) }

    mutating func array(_ write: (inout JSON) -> Void) { enclose("[", "]", write) }

    private mutating func enclose(_ open: Unicode.Scalar, _ close: Unicode.Scalar, _ write: (inout JSON) -> Void) {
        separate()
        bytes.append(UInt8(ascii: open))
        write(&self)
        bytes.append(UInt8(ascii: close))
    }

    mutating func string(_ text: String) {
        separate()
        append(text)
    }

    mutating func number(_ number: Int64) {
        separate()
        append(digitsOf: number)
    }

    mutating func number(_ number: Int) { self.number(Int64(number)) }

    mutating func bool(_ value: Bool) {
        separate()
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    mutating func null() {
        separate()
        bytes.append(contentsOf: "null".utf8)
    }

    /// A time of the world as microseconds with up to three digits behind the point.
    mutating func time(_ time: Instant) {
        separate()
        append(digitsOf: time.nanoseconds / 1000)
        var rest = Int(time.nanoseconds % 1000)
        guard rest > 0 else { return }
        bytes.append(UInt8(ascii: "."))
        var unit = 100
        while rest > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(rest / unit))
            rest %= unit
            unit /= 10
        }
    }

    mutating func time(_ time: Instant?) { if let time { self.time(time) } else { null() } }

    mutating func number(_ number: Int?) { if let number { self.number(Int64(number)) } else { null() } }

    // MARK: - Members of an object

    mutating func key(_ key: String) {
        separate()
        append(key)
        bytes.append(UInt8(ascii: ":"))
    }

    mutating func member(_ key: String, _ text: String) {
        self.key(key)
        string(text)
    }

    mutating func member(_ key: String, _ number: Int) {
        self.key(key)
        self.number(number)
    }

    mutating func member(_ key: String, _ value: Bool) {
        self.key(key)
        bool(value)
    }

    mutating func member(_ key: String, _ texts: [String]) {
        self.key(key)
        array { json in for text in texts { json.string(text) } }
    }

    mutating func member(_ key: String, _ write: (inout JSON) -> Void) {
        self.key(key)
        write(&self)
    }

    // MARK: - Bytes

    /// A comma, where something stands before.
    private mutating func separate() {
        switch bytes.last {
        case nil, UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ":"): break
        default: bytes.append(UInt8(ascii: ","))
        }
    }

    private mutating func append(digitsOf number: Int64) {
        if number < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = number.magnitude
        let start = bytes.count
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
    }

    private mutating func append(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { utf8 in
            for byte in utf8 { append(character: byte) }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func append(character byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            bytes.append(UInt8(ascii: "\\"))
            bytes.append(byte)
        case 0..<0x20:
            bytes.append(contentsOf: "\\u00".utf8)
            bytes.append(UInt8(ascii: "0") + byte >> 4)
            bytes.append((byte & 15) + (byte & 15 < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10))
        default: bytes.append(byte)
        }
    }
}
