// Metainfo files, also known as .torrent files: v1 (BEP 3), v2 and hybrid (BEP 52).

import Primitives

/// A validated metainfo file; only decoding makes one.
///
/// Deviations: what stands outside the info dictionary is advice, often written by hand or by old scripts, so an
/// unusable tracker, web seed, date or comment is left out rather than the torrent refused.
public struct Metainfo: Sendable, Hashable {
    /// Trackers, or web seeds; more are left out. (The longest public tracker lists hold a few hundred.)
    public static let maxURLCount = 1_024
    /// Longer ones are left out: no client sends a longer request line.
    public static let maxURLByteCount = 2_048
    /// Longer comments are cut: nobody reads on.
    public static let maxTextByteCount = 16_384

    /// The whole file as it came.
    public let bytes: [UInt8]
    /// Where the info dictionary stands in `bytes`.
    public let infoRange: Range<Int>
    /// Bytes that follow the torrent's end, which a lenient reader lets through; 0 in a strict one.
    public let trailingByteCount: Int
    /// What the torrent shares: the info dictionary, read.
    public let info: TorrentInfo
    /// The tracker of BEP 3; clients ignore it where there is an `announceList`.
    public let announce: String?
    /// Tiers of trackers (BEP 12), tried one after another; inside a tier in random order.
    public let announceList: [[String]]
    /// Web seeds (BEP 19).
    public let urlList: [String]
    /// When the file was made, as it says; nil where it does not, or the number is none.
    public let creationDate: WallTime?
    /// For people; may hold line feeds and tabs, no other control characters.
    public let comment: String?
    /// For people: the program that made the file.
    public let createdBy: String?
    /// BEP 52: sorted by root, one for each file longer than a piece; empty in v1.
    public let pieceLayers: [PieceLayer]

    /// The raw bytes of the info dictionary.
    ///
    /// Their SHA-1 is the info hash in v1, their SHA-256 in v2 (cut to 20 bytes for trackers); a hybrid has both.
    public var infoBytes: ArraySlice<UInt8> { bytes[infoRange] }

    /// The trackers as clients use them: `announceList`, and `announce` only where there is none (BEP 12).
    public var trackers: [[String]] {
        announceList.isEmpty ? announce.map { [[$0]] } ?? [] : announceList
    }

    /// Bytes of all files without padding.
    public var totalLength: Int { info.totalLength }

    /// Decodes and validates a .torrent file.
    ///
    /// - Parameters:
    ///   - bytes: at most 32 MiB (`BencodeLimits.metainfo`).
    ///   - strictness: lenient unless told, as clients are; see `BencodeStrictness`.
    /// - Throws: `MetainfoError`, whose description says to a person what is wrong.
    /// - Complexity: O(bytes + files log files).
    /// - SeeAlso: BEP 3, 12, 19, 27, 47, 52.
    public init(decoding bytes: [UInt8], strictness: BencodeStrictness = .lenient) throws(MetainfoError) {
        let document: BencodeDocument
        do throws(BencodeError) {
            document = try BencodeDocument(bytes, strictness: strictness, limits: .metainfo)
        } catch {
            throw MetainfoError(.notBencoded(error), key: "")
        }
        let file = MetainfoField(node: document.root, key: "the file")
        _ = try file.entries()
        let infoField = try file.require("info")
        self.bytes = bytes
        infoRange = infoField.node.range
        trailingByteCount = bytes.count - document.root.range.upperBound
        info = try TorrentInfo(infoField, strictness)
        pieceLayers = info.version == .v1 ? [] : try FileTree.layers(file, info)
        announce = Metainfo.url(file.field("announce")?.node.bytes)
        announceList = Metainfo.tiers(file.field("announce-list")?.node)
        urlList = Metainfo.urls(file.field("url-list")?.node, upTo: Metainfo.maxURLCount)
        creationDate = Metainfo.date(file.field("creation date")?.node.integer)
        comment = Metainfo.text(file, "comment")
        createdBy = Metainfo.text(file, "created by")
    }

    /// A list of URLs, or, as BEP 19 allows, a single one.
    private static func urls(_ node: BencodeNode?, upTo limit: Int) -> [String] {
        guard let node else { return [] }
        guard let elements = node.elements else { return url(node.bytes).map { [$0] } ?? [] }
        var result: [String] = []
        for element in elements {
            guard result.count < limit else { break }
            if let url = url(element.bytes) { result.append(url) }
        }
        return result
    }

    /// Tiers without a usable URL are left out.
    ///
    /// A URL where a tier should be is a tier of its own.
    private static func tiers(_ node: BencodeNode?) -> [[String]] {
        guard let elements = node?.elements else { return [] }
        var result: [[String]] = []
        var count = 0
        for element in elements {
            guard count < maxURLCount else { break }
            let tier = urls(element, upTo: maxURLCount - count)
            count += tier.count
            if !tier.isEmpty { result.append(tier) }
        }
        return result
    }

    /// - Returns: nil for what cannot be a URL: empty, too long, not UTF-8, with spaces or control characters inside.
    private static func url(_ bytes: ArraySlice<UInt8>?) -> String? {
        guard var bytes, bytes.count <= maxURLByteCount else { return nil }
        // Hand-made files have blanks and line ends around their URLs.
        while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
        while let first = bytes.first, first <= 0x20 { bytes.removeFirst() }
        guard !bytes.isEmpty, bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func date(_ seconds: Int64?) -> WallTime? {
        guard let seconds, seconds >= 0 else { return nil }
        let (milliseconds, overflows) = seconds.multipliedReportingOverflow(by: 1_000)
        return overflows ? nil : WallTime(milliseconds: milliseconds)
    }

    private static func text(_ file: MetainfoField, _ key: String) -> String? {
        file.textField(key)?.node.bytes.map {
            displayText($0.prefix(maxTextByteCount), keepsLines: true)
        }
    }
}
