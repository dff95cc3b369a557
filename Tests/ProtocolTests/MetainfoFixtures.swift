// Torrents to take apart in tests.

import Primitives
import Testing
import Wire

extension [BencodeValue.Entry] {
    /// With a key set, or, for nil, without it.
    func with(_ key: String, _ value: BencodeValue?) -> [BencodeValue.Entry] {
        filter { !$0.key.elementsEqual(key.utf8) } + (value.map { [.init(key, $0)] } ?? [])
    }
}

/// Keeps the names of test cases short.
extension BencodeValue: CustomDebugStringConvertible {
    /// The value as it is encoded, cut to 60 characters.
    public var debugDescription: String { String(printable(encoded()).prefix(60)) }
}

extension BencodeValue.Entry: CustomDebugStringConvertible {
    /// The key and the value.
    public var debugDescription: String { "\(printable(key)): \(value.debugDescription)" }
}

/// Builds info dictionaries, good ones and bad.
enum Sample {
    /// Dictionaries that are changed one key at a time.
    typealias Entries = [BencodeValue.Entry]

    static func hashes(_ count: Int, byteCount: Int = 20) -> BencodeValue {
        .bytes((0..<count).flatMap { [UInt8](repeating: UInt8(truncatingIfNeeded: $0 + 1), count: byteCount) })
    }

    static func texts(_ texts: String...) -> BencodeValue { .list(texts.map { .text($0) }) }

    static func file(_ length: Int64, _ path: String..., attr: String? = nil) -> BencodeValue {
        let entries: Entries = [.init("length", .integer(length)), .init("path", .list(path.map { .text($0) }))]
        return .dictionary(entries.with("attr", attr.map { .text($0) }))
    }

    /// 50,000 bytes in two pieces of 32 KiB.
    static let singleInfo: Entries = [
        .init("length", .integer(50_000)), .init("name", .text("a.bin")), .init("piece length", .integer(32_768)),
        .init("pieces", hashes(2)),
    ]

    /// Three files, 50,000 bytes.
    static let multiInfo = singleInfo.with("length", nil).with("name", .text("dir")).with(
        "files", .list([file(40_000, "a"), file(0, "b", "empty"), file(10_000, "b", "c.txt", attr: "xh")]))

    static let root1 = [UInt8](repeating: 0xA1, count: 32)
    static let root2 = [UInt8](repeating: 0xB2, count: 32)

    static func leaf(_ length: Int64, _ root: [UInt8]?) -> BencodeValue {
        let properties: Entries = [.init("length", .integer(length))]
        return .dictionary([.init("", .dictionary(properties.with("pieces root", root.map { .bytes($0) })))])
    }

    /// `big` (40,000 bytes, three pieces) and `dir/small` (5 bytes) with an empty file between them.
    static let v2Info: Entries = [
        .init(
            "file tree",
            .dictionary([
                .init("big", leaf(40_000, root1)),
                .init("dir", .dictionary([.init("empty", leaf(0, nil)), .init("small", leaf(5, root2))])),
            ])),
        .init("meta version", .integer(2)), .init("name", .text("two")), .init("piece length", .integer(16_384)),
    ]

    static let layers = BencodeValue.dictionary([.init(root1, hashes(3, byteCount: 32))])

    static let hybridInfo = v2Info.with("pieces", hashes(4)).with(
        "files",
        .list([
            file(40_000, "big"), file(9_152, ".pad", "9152", attr: "p"), file(0, "dir", "empty"),
            file(5, "dir", "small"),
        ]))

    static func encoded(_ info: Entries, _ rest: Entries = []) -> [UInt8] {
        BencodeValue.dictionary([.init("info", .dictionary(info))] + rest).encoded()
    }

    static func decoded(_ info: Entries, _ rest: Entries = []) throws -> Metainfo {
        try Metainfo(decoding: encoded(info, rest), strictness: .strict)
    }

    static func refusal(_ info: Entries, _ rest: Entries = []) -> MetainfoError? {
        #expect(throws: MetainfoError.self) { try decoded(info, rest) }
    }

    static func paths(_ info: TorrentInfo) -> [String] {
        info.files.map { $0.path.map(\.description).joined(separator: "/") }
    }
}
