// Bencoded values that own their bytes, and the one way to write them (BEP 3, "bencoding").

/// A bencoded value, for building messages and for reading small ones.
///
/// Large ones, and those whose raw bytes matter, are read through `BencodeDocument`, which copies nothing.
public enum BencodeValue: Sendable, Hashable {
    /// `i42e`. BEP 3 has no size limit; no field that we know needs more than 64 bits.
    case integer(Int64)
    /// `4:spam`: bytes, which need not be text.
    case bytes([UInt8])
    /// `l…e`
    case list([BencodeValue])
    /// `d…e`, in the order in which the entries were found or given; the encoder sorts them.
    case dictionary([Entry])

    /// A key of a dictionary with what it maps to.
    public struct Entry: Sendable, Hashable {
        /// Bytes, which need not be text; unique in the dictionary, as BEP 3 demands.
        public var key: [UInt8]
        /// What the key maps to.
        public var value: BencodeValue

        /// An entry whose key need not be text.
        public init(_ key: [UInt8], _ value: BencodeValue) {
            self.key = key
            self.value = value
        }

        /// An entry whose key is the UTF-8 bytes of a text.
        public init(_ key: String, _ value: BencodeValue) {
            self.init(Array(key.utf8), value)
        }
    }

    /// The UTF-8 bytes of a text.
    public static func text(_ text: String) -> BencodeValue { .bytes(Array(text.utf8)) }

    /// Decodes the one value that these bytes are.
    ///
    /// - Parameters:
    ///   - bytes: at most `limits.byteCount` of them.
    ///   - strictness: whether unsorted keys and trailing bytes are let through.
    ///   - limits: what the bytes may hold; beyond, they are an error.
    /// - Throws: `BencodeError`, with the offset of the first byte that is wrong.
    /// - Complexity: O(bytes); O(keys log keys) more for a dictionary that is not sorted.
    /// - SeeAlso: BEP 3, "bencoding".
    public init(
        decoding bytes: [UInt8], strictness: BencodeStrictness = .strict, limits: BencodeLimits = .metainfo
    ) throws(BencodeError) {
        self = try BencodeDocument(bytes, strictness: strictness, limits: limits).root.value
    }

    /// What a key maps to; nil where it is absent or this is no dictionary.
    ///
    /// - Complexity: O(keys).
    public subscript(key: String) -> BencodeValue? {
        guard case .dictionary(let entries) = self else { return nil }
        return entries.first { $0.key.elementsEqual(key.utf8) }?.value
    }

    /// The number; nil where this is no integer.
    public var integer: Int64? {
        guard case .integer(let value) = self else { return nil }
        return value
    }

    /// The string without its length; nil where this is none.
    public var bytes: [UInt8]? {
        guard case .bytes(let value) = self else { return nil }
        return value
    }

    /// The values in order; nil where this is no list.
    public var list: [BencodeValue]? {
        guard case .list(let values) = self else { return nil }
        return values
    }

    /// The keys and values in the order in which they were found or given; nil where this is no dictionary.
    public var entries: [Entry]? {
        guard case .dictionary(let entries) = self else { return nil }
        return entries
    }
}

// MARK: - Encoding

extension BencodeValue {
    /// The canonical bytes: keys sorted as raw bytes, numbers without needless zeros.
    ///
    /// Of entries with equal keys the first is written and the others are dropped, so that the result can always
    /// be decoded again.
    ///
    /// - Complexity: O(bytes), and O(keys log keys) for dictionaries that are not sorted.
    public func encoded() -> [UInt8] {
        var result: [UInt8] = []
        append(to: &result)
        return result
    }

    /// Appends the canonical bytes.
    public func append(to bytes: inout [UInt8]) {
        switch self {
        case .integer(let value):
            bytes.append(bencoded: value)
        case .bytes(let value):
            bytes.append(bencoded: value)
        case .list(let values):
            bytes.append(Bencode.list)
            for value in values { value.append(to: &bytes) }
            bytes.append(Bencode.end)
        case .dictionary(let entries):
            bytes.append(Bencode.dictionary)
            for entry in BencodeValue.canonical(entries) {
                bytes.append(bencoded: entry.key)
                entry.value.append(to: &bytes)
            }
            bytes.append(Bencode.end)
        }
    }

    /// The entries sorted by key, each key once.
    private static func canonical(_ entries: [Entry]) -> [Entry] {
        let isCanonical = zip(entries, entries.dropFirst()).allSatisfy { entry, next in
            entry.key.lexicographicallyPrecedes(next.key)
        }
        guard !isCanonical else { return entries }
        // The standard library's sort is stable in fact but not by contract: the position decides among equals.
        let sorted = entries.enumerated().sorted { left, right in
            if left.element.key == right.element.key { return left.offset < right.offset }
            return left.element.key.lexicographicallyPrecedes(right.element.key)
        }
        var result: [Entry] = []
        result.reserveCapacity(entries.count)
        for (_, entry) in sorted where result.last?.key != entry.key { result.append(entry) }
        return result
    }
}

/// The bytes that bencoding is made of.
enum Bencode {
    static let integer = UInt8(ascii: "i")
    static let list = UInt8(ascii: "l")
    static let dictionary = UInt8(ascii: "d")
    static let end = UInt8(ascii: "e")
    static let colon = UInt8(ascii: ":")
    static let minus = UInt8(ascii: "-")
    static let zero = UInt8(ascii: "0")
    static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
}

extension [UInt8] {
    /// Appends `i…e`.
    mutating func append(bencoded value: Int64) {
        append(Bencode.integer)
        append(contentsOf: String(value).utf8)
        append(Bencode.end)
    }

    /// Appends a string with its length before it.
    mutating func append(bencoded bytes: some Collection<UInt8>) {
        append(contentsOf: String(bytes.count).utf8)
        append(Bencode.colon)
        append(contentsOf: bytes)
    }

    /// Appends a text as UTF-8 with its length before it.
    mutating func append(bencoded text: String) { append(bencoded: text.utf8) }
}
