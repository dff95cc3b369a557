// Magnet links, read (BEP 9, "magnet URI format"; BEP 53).

import Primitives

/// Why a text is no magnet link, in words for people.
public enum MagnetLinkError: Error, Sendable, Hashable, CustomStringConvertible {
    /// It does not begin with `magnet:?`.
    case otherScheme
    /// It is longer than `MagnetLink.maxTextByteCount`.
    case tooLong
    /// It names no torrent: no `xt=urn:btih:` and no `xt=urn:btmh:`.
    case noInfoHash
    /// What stands behind `xt=` is no info hash.
    case badInfoHash(String)
    /// What stands behind `so=` names no files.
    case badSelection(String)

    /// What is wrong, and what would be right.
    public var description: String {
        switch self {
        case .otherScheme: "a magnet link begins with magnet:?"
        case .tooLong: "a magnet link of more than \(MagnetLink.maxTextByteCount) bytes is not read"
        case .noInfoHash: "the magnet link names no torrent; it needs xt=urn:btih: with an info hash"
        case .badInfoHash(let text):
            "\"\(text)\" is no info hash; it has 40 hexadecimal digits or 32 letters and digits in base 32"
        case .badSelection(let text):
            "\"\(text)\" names no files, or more than a torrent has; a magnet link's so= is written as in so=0,2,4-6"
        }
    }
}

extension MagnetLink {
    /// Longer texts are not read: fifty trackers take some 5,000 bytes.
    public static let maxTextByteCount = 65_536

    /// Reads a magnet link, as people paste it: keys in any order, unknown ones passed over.
    ///
    /// - Throws: `MagnetLinkError`.
    /// - SeeAlso: BEP 9; RFC 4648 for base 32.
    public init(parsing text: String) throws(MagnetLinkError) {
        guard text.utf8.count <= Self.maxTextByteCount else { throw .tooLong }
        let bytes = Array(text.utf8)
        let scheme = Array("magnet:".utf8)
        guard bytes.count > scheme.count, zip(bytes, scheme).allSatisfy({ $0 | 0x20 == $1 | 0x20 }) else {
            throw .otherScheme
        }
        var rest = bytes[scheme.count...]
        while rest.first == UInt8(ascii: "/") { rest.removeFirst() }
        guard rest.first == UInt8(ascii: "?") else { throw .otherScheme }
        var v1: InfoHash?
        var v2: Bytes32?
        var name: [UInt8] = []
        var trackers: [String] = []
        var webSeeds: [String] = []
        var peers: [Peer] = []
        var selection: [ClosedRange<Int>] = []
        for part in rest.dropFirst().split(separator: UInt8(ascii: "&")) {
            guard let equals = part.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let key = String(decoding: part[..<equals], as: UTF8.self).lowercased()
            // A plus is a blank in names, as browsers write them; in URLs it is itself.
            let value = Self.decoded(part[(equals + 1)...], hasBlanks: key == "dn")
            // Several of a kind are numbered by some: `tr.1`.
            switch key == "x.pe" ? key : key.split(separator: ".").first.map({ String($0) }) ?? key {
            case "xt": try Self.readTopic(value, &v1, &v2)
            case "dn": if name.isEmpty { name = Array(value.prefix(255)) }
            case "tr": Self.append(value, to: &trackers, atMost: Self.maxTrackerCount)
            case "ws": Self.append(value, to: &webSeeds, atMost: Self.maxPeerCount)
            case "x.pe":
                if peers.count < Self.maxPeerCount, let peer = Self.peer(value), !peers.contains(peer) {
                    peers.append(peer)
                }
            case "so": selection += try Self.readSelection(value, room: Self.maxSelectionCount - selection.count)
            default: break
            }
        }
        guard v1 != nil || v2 != nil else { throw .noInfoHash }
        self.init(infoHash: v1, infoHashV2: v2, displayName: name, trackers: trackers)
        self.webSeeds = webSeeds
        self.peers = peers
        self.selection = selection
    }

    /// Takes a URL, unless it cannot be one, is there already, or there are as many as may be.
    private static func append(_ value: [UInt8], to urls: inout [String], atMost limit: Int) {
        guard urls.count < limit, !value.isEmpty, value.count <= Metainfo.maxURLByteCount,
            value.allSatisfy({ $0 > 0x20 && $0 != 0x7F }), let url = String(validating: value, as: UTF8.self),
            !urls.contains(url)
        else { return }
        urls.append(url)
    }

    /// "hostname:port", "ipv4-literal:port" or "[ipv6-literal]:port" (BEP 9); nil for anything else.
    private static func peer(_ value: [UInt8]) -> Peer? {
        guard let colon = value.lastIndex(of: UInt8(ascii: ":")),
            let port = UInt16(String(decoding: value[(colon + 1)...], as: UTF8.self)), port > 0,
            value[colon + 1] != UInt8(ascii: "+")
        else { return nil }
        var host = value[..<colon]
        let isBracketed = host.first == UInt8(ascii: "[") && host.last == UInt8(ascii: "]")
        if isBracketed { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, host.count <= 255, isBracketed == host.contains(UInt8(ascii: ":")),
            host.allSatisfy({ (33...126).contains($0) && $0 != UInt8(ascii: "/") })
        else { return nil }
        return Peer(host: String(decoding: host, as: UTF8.self), port: port)
    }

    /// `0,2,4-6` (BEP 53).
    private static func readSelection(_ value: [UInt8], room: Int) throws(MagnetLinkError) -> [ClosedRange<Int>] {
        let wrong = MagnetLinkError.badSelection(displayText(value.prefix(80)))
        func number(_ digits: ArraySlice<UInt8>) throws(MagnetLinkError) -> Int {
            guard digits.count <= 7, !digits.isEmpty, digits.allSatisfy({ (48...57).contains($0) }),
                let number = Int(String(decoding: digits, as: UTF8.self)), number < TorrentInfo.maxFileCount
            else { throw wrong }
            return number
        }
        var ranges: [ClosedRange<Int>] = []
        var fileCount = 0
        for part in value.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            let ends = part.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
            let first = try number(ends[0])
            let last = ends.count == 1 ? first : try number(ends[1])
            fileCount += last - first + 1
            guard ends.count <= 2, first <= last, ranges.count < room, fileCount <= TorrentInfo.maxFileCount else {
                throw wrong
            }
            ranges.append(first...last)
        }
        return ranges
    }

    private static func readTopic(
        _ value: [UInt8], _ v1: inout InfoHash?, _ v2: inout Bytes32?
    ) throws(MagnetLinkError) {
        let text = String(decoding: value, as: UTF8.self)
        let lower = text.lowercased()
        let digits = text.dropFirst(9)
        if lower.hasPrefix("urn:btih:") {
            guard let hash = InfoHash(hexadecimal: digits) ?? base32(digits).map({ InfoHash($0) }) else {
                throw .badInfoHash(displayText(value.prefix(80)))
            }
            v1 = v1 ?? hash
        } else if lower.hasPrefix("urn:btmh:") {
            guard lower.hasPrefix("urn:btmh:1220"), let raw = bytes(hexadecimal: text.dropFirst(13)),
                let hash = Bytes32(raw)
            else { throw .badInfoHash(displayText(value.prefix(80))) }
            v2 = v2 ?? hash
        }
    }

    /// Thirty-two characters of five bits.
    private static func base32(_ text: Substring) -> Bytes20? {
        guard text.utf8.count == 32 else { return nil }
        var result: [UInt8] = []
        var buffer: UInt32 = 0
        var bitCount: UInt32 = 0
        for byte in text.utf8 {
            let value: UInt8
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = byte - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = byte - UInt8(ascii: "a")
            case UInt8(ascii: "2")...UInt8(ascii: "7"): value = byte - UInt8(ascii: "2") + 26
            default: return nil
            }
            buffer = buffer << 5 | UInt32(value)
            bitCount += 5
            if bitCount >= 8 {
                bitCount -= 8
                result.append(UInt8(truncatingIfNeeded: buffer >> bitCount))
                buffer &= (1 << bitCount) - 1
            }
        }
        return Bytes20(result)
    }

    /// Undoes percent-encoding; what is no code stays as it is.
    private static func decoded(_ text: ArraySlice<UInt8>, hasBlanks: Bool) -> [UInt8] {
        func digit(_ byte: UInt8) -> UInt8? {
            switch byte {
            case 48...57: byte - 48
            case 65...70: byte - 55
            case 97...102: byte - 87
            default: nil
            }
        }
        var result: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            if text[index] == UInt8(ascii: "%"), index + 2 < text.endIndex, let high = digit(text[index + 1]),
                let low = digit(text[index + 2])
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(hasBlanks && text[index] == UInt8(ascii: "+") ? 32 : text[index])
                index += 1
            }
        }
        return result
    }
}
