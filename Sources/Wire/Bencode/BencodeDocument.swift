// Reading bencoded bytes in place: every value knows its raw range, and nothing is copied.

/// How much of BEP 3 a reader insists on.
public enum BencodeStrictness: Sendable, Hashable {
    /// Every rule of BEP 3: keys sorted and unique, one spelling of each number, nothing after the value.
    case strict
    /// For .torrent files from the wild, which other clients open: keys may be unsorted (files whose `announce`
    /// comes last: btpd #30, intermodal #454), and bytes may follow the value (a newline, or the warning of a
    /// web script: anacrolix/torrent #963, pyrocore #9, torrentool #25). Neither touches the info hash, which is
    /// taken over the raw bytes. Repeated keys and second spellings of numbers stay forbidden: with them two
    /// readers see two different torrents.
    case lenient
}

/// Bounds on what a stranger can make us hold.
///
/// A string is bounded by the bytes there are, a list by the values.
public struct BencodeLimits: Sendable, Hashable {
    /// Bytes of the whole document; at most 2³¹ − 1, because positions are kept in 32 bits.
    public var byteCount: Int
    /// Lists and dictionaries inside one another.
    public var depth: Int
    /// Values and keys together; each costs 16 bytes while a document lives.
    public var valueCount: Int

    /// Takes the bounds; a `byteCount` beyond 2³¹ − 1 traps.
    public init(byteCount: Int, depth: Int, valueCount: Int) {
        precondition((0...Int(Int32.max)).contains(byteCount), "a bencoded document is bounded by 2³¹ − 1 bytes")
        self.byteCount = byteCount
        self.depth = depth
        self.valueCount = valueCount
    }

    /// For .torrent files: 32 MiB hold a million piece hashes of 20 bytes (a terabyte in pieces of 1 MiB) with room
    /// for names; 100 levels is what libtorrent allows, and a v2 file tree takes one a directory; two million
    /// values are 200,000 files, and cost 32 MB at most.
    public static let metainfo = BencodeLimits(byteCount: 32 << 20, depth: 100, valueCount: 2_000_000)

    /// For messages (DHT, extension protocol, tracker replies): 1 MiB is 50 times the longest reply of a tracker
    /// with 200 peers in dictionary form, and nothing known nests deeper than 5.
    public static let message = BencodeLimits(byteCount: 1 << 20, depth: 16, valueCount: 65_536)
}

/// One decoded value with its raw bytes.
///
/// The raw range matters because an info hash is the hash of the bytes *as found*: BEP 3 lets a reader either
/// refuse what is not canonical or take the substring, and never decode and encode again.
public struct BencodeDocument: Sendable {
    /// The bytes as they came, including any that follow the value.
    public let bytes: [UInt8]
    let tokens: [BencodeToken]

    /// Reads the one value that these bytes are.
    ///
    /// - Parameters:
    ///   - bytes: at most `limits.byteCount` of them.
    ///   - strictness: whether unsorted keys and trailing bytes are let through.
    ///   - limits: what the bytes may hold; beyond, they are an error.
    /// - Throws: `BencodeError`, with the offset of the first byte that is wrong.
    /// - Complexity: O(bytes) time, 16 bytes of memory a value; O(keys log keys) more for unsorted dictionaries.
    public init(
        _ bytes: [UInt8], strictness: BencodeStrictness = .strict, limits: BencodeLimits = .metainfo
    ) throws(BencodeError) {
        self = try BencodeDocument(prefixOf: bytes, strictness: strictness, limits: limits)
        guard strictness == .lenient || root.range.upperBound == bytes.count else {
            throw BencodeError(.trailingBytes, at: root.range.upperBound)
        }
    }

    /// Reads the value that these bytes begin with; `root.range.upperBound` is where the rest begins.
    ///
    /// For messages whose payload follows the value (BEP 9, "data").
    ///
    /// - Parameters:
    ///   - bytes: at most `limits.byteCount` of them, with what follows the value.
    ///   - strictness: whether unsorted keys are let through.
    ///   - limits: what the bytes may hold; beyond, they are an error.
    /// - Throws: `BencodeError`, with the offset of the first byte that is wrong.
    public init(
        prefixOf bytes: [UInt8], strictness: BencodeStrictness = .strict, limits: BencodeLimits = .message
    ) throws(BencodeError) {
        var scanner = BencodeScanner(bytes, strictness: strictness, limits: limits)
        try scanner.scan()
        self.bytes = bytes
        self.tokens = scanner.tokens
    }

    /// The one value that the document is.
    public var root: BencodeNode { BencodeNode(document: self, index: 0) }
}

/// Where a value stands; the first byte there says of what kind it is.
struct BencodeToken: Sendable {
    /// The first of the value's raw bytes.
    var start: UInt32
    /// The first byte of a string; elsewhere the byte after `start`.
    var contentStart: UInt32
    /// The byte after the value's last.
    var end: UInt32
    /// The index of the first token that does not belong to the value.
    var next: UInt32
}

/// A value of a document.
public struct BencodeNode: Sendable {
    /// The four kinds of values that BEP 3 has.
    public enum Kind: Sendable, Hashable {
        case integer
        case bytes
        case list
        case dictionary
    }

    let document: BencodeDocument
    let index: Int

    private var token: BencodeToken { document.tokens[index] }

    /// The value's raw bytes in `BencodeDocument.bytes`, with its markers.
    public var range: Range<Int> { Int(token.start)..<Int(token.end) }

    /// The value's raw bytes, with its markers: what an info hash is taken over.
    public var rawBytes: ArraySlice<UInt8> { document.bytes[range] }

    /// Read off the value's first byte.
    public var kind: Kind {
        switch document.bytes[Int(token.start)] {
        case Bencode.integer: .integer
        case Bencode.list: .list
        case Bencode.dictionary: .dictionary
        default: .bytes
        }
    }

    /// The number; nil where this is no integer.
    public var integer: Int64? {
        guard kind == .integer else { return nil }
        return Int64(Substring(decoding: document.bytes[Int(token.contentStart)..<Int(token.end) - 1], as: UTF8.self))
    }

    /// The string without its length, sharing the document's storage; nil where this is none.
    public var bytes: ArraySlice<UInt8>? {
        guard kind == .bytes else { return nil }
        return document.bytes[Int(token.contentStart)..<Int(token.end)]
    }

    /// The values of a list in order; nil where this is none.
    public var elements: Elements? {
        guard kind == .list else { return nil }
        return Elements(document: document, index: index + 1, end: Int(token.next))
    }

    /// The keys and values of a dictionary in the order found; nil where this is none.
    public var entries: Entries? {
        guard kind == .dictionary else { return nil }
        return Entries(document: document, index: index + 1, end: Int(token.next))
    }

    /// What a key maps to; nil where it is absent or this is no dictionary.
    ///
    /// - Complexity: O(keys).
    public subscript(key: String) -> BencodeNode? {
        guard let entries else { return nil }
        for (name, value) in entries where name.elementsEqual(key.utf8) { return value }
        return nil
    }

    /// A copy that owns its bytes.
    public var value: BencodeValue {
        switch kind {
        case .integer:
            return .integer(integer ?? 0)
        case .bytes:
            return .bytes(Array(document.bytes[Int(token.contentStart)..<Int(token.end)]))
        case .list:
            return .list(elements.map { elements in elements.map { $0.value } } ?? [])
        case .dictionary:
            return .dictionary(
                entries.map { entries in entries.map { BencodeValue.Entry(Array($0.key), $0.value.value) } } ?? [])
        }
    }

    /// The values of a list.
    public struct Elements: Sequence, IteratorProtocol, Sendable {
        let document: BencodeDocument
        var index: Int
        let end: Int

        /// The next value; nil after the last.
        public mutating func next() -> BencodeNode? {
            guard index < end else { return nil }
            defer { index = Int(document.tokens[index].next) }
            return BencodeNode(document: document, index: index)
        }
    }

    /// The keys and values of a dictionary.
    public struct Entries: Sequence, IteratorProtocol, Sendable {
        let document: BencodeDocument
        var index: Int
        let end: Int

        /// The next pair; nil after the last.
        ///
        /// The key shares the document's storage.
        public mutating func next() -> (key: ArraySlice<UInt8>, value: BencodeNode)? {
            guard index < end else { return nil }
            let key = document.tokens[index]
            let value = BencodeNode(document: document, index: index + 1)
            index = Int(document.tokens[index + 1].next)
            return (document.bytes[Int(key.contentStart)..<Int(key.end)], value)
        }
    }
}
