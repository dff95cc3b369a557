// A line of words in a cluster message: what one tracker says of itself so that others can show it to people.

/// At most 200 printable ASCII characters, so that no tracker can control another's terminal, or fill its memory.
public struct ShortText: Sendable, Hashable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// Bytes, and so characters, of the longest text; longer ones are cut.
    public static let maxByteCount = 200

    let bytes: [UInt8]

    /// Takes what can be said: other characters become question marks, and what is too long is cut.
    public init(_ text: String) {
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars.prefix(ShortText.maxByteCount) {
            let isPrintable = (0x20...0x7E).contains(scalar.value)
            bytes.append(isPrintable ? UInt8(scalar.value) : UInt8(ascii: "?"))
        }
        self.bytes = bytes
    }

    /// A literal, taken as any other text is.
    public init(stringLiteral text: String) { self.init(text) }

    /// The empty text, which stands for "nothing to say".
    public static let none = ShortText("")

    /// Whether there is nothing to say.
    public var isEmpty: Bool { bytes.isEmpty }

    /// The text itself, safe to be shown.
    public var description: String { String(decoding: bytes, as: UTF8.self) }

    init(_ reader: inout MessageReader) throws(ClusterMessageError) {
        let count = try reader.count(atMost: ShortText.maxByteCount)
        var bytes: [UInt8] = []
        for _ in 0..<count {
            let byte = try reader.u8()
            guard (0x20...0x7E).contains(byte) else { throw .damaged }
            bytes.append(byte)
        }
        self.bytes = bytes
    }

    func encode(into target: inout [UInt8]) {
        target.append(shortCount: bytes.count, atMost: ShortText.maxByteCount)
        target.append(contentsOf: bytes)
    }
}
