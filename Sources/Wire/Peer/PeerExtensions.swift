// Extensions of the peer protocol: their handshake (BEP 10), metadata (BEP 9), peer exchange (BEP 11), don't-have (BEP
// 54).

import Primitives

/// An extension's message is none.
public struct MalformedExtension: Error, Sendable, Hashable {}

/// What a peer says of itself and of the extensions that it has (BEP 10, "handshake message"); each part may be absent.
public struct ExtensionHandshake: Sendable, Hashable {
    /// The longest that is read: the known keys take some 200 bytes.
    public static let maxByteCount = 65_536

    /// The sender's number for metadata messages (BEP 9); 0 switches them off.
    public var metadataID: UInt8?
    /// The sender's number for peer exchange (BEP 11).
    public var peerExchangeID: UInt8?
    /// The sender's number for don't-have (BEP 54).
    public var dontHaveID: UInt8?
    /// What the sender is, for people.
    public var client: String?
    /// Where the sender listens.
    public var listenPort: UInt16?
    /// How many requests it keeps (`reqq`).
    public var requestQueue: Int?
    /// Of the info dictionary.
    public var metadataByteCount: Int?
    /// The receiver as the sender sees it.
    public var yourAddress: SocketAddress?
    /// It wants nothing, though it may not have all (BEP 21).
    public var isUploadOnly: Bool?

    /// Says nothing.
    public init() {}

    private static let limits = BencodeLimits(byteCount: maxByteCount, depth: 8, valueCount: 1_024)

    /// Reads the payload of an extended message 0; what is unknown or absurd is passed over.
    public init(decoding bytes: [UInt8]) throws(MalformedExtension) {
        guard let said = try? BencodeValue(decoding: bytes, strictness: .lenient, limits: Self.limits),
            said.entries != nil
        else { throw MalformedExtension() }
        if let names = said["m"] {
            func number(_ name: String) -> UInt8? { names[name]?.integer.flatMap { UInt8(exactly: $0) } }
            metadataID = number("ut_metadata")
            peerExchangeID = number("ut_pex")
            dontHaveID = number("lt_donthave")
        }
        client = said["v"]?.bytes.map { displayText($0.prefix(128)) }
        listenPort = said["p"]?.integer.flatMap { UInt16(exactly: $0) }
        requestQueue = said["reqq"]?.integer.map { Int(min(max($0, 0), 1_000_000)) }
        metadataByteCount = said["metadata_size"]?.integer.map { Int(min(max($0, 0), 1 << 30)) }
        isUploadOnly = said["upload_only"]?.integer.map { $0 != 0 }
        yourAddress = said["yourip"]?.bytes.flatMap { bytes in
            switch bytes.count {
            case 4: CompactIPv4((bytes + [0, 0]).span.bytes, at: 0).socketAddress
            case 16: CompactIPv6((bytes + [0, 0]).span.bytes, at: 0).socketAddress
            default: nil
            }
        }
    }

    /// The payload of an extended message 0.
    public func encoded() -> [UInt8] {
        var names: [BencodeValue.Entry] = []
        if let id = metadataID { names.append(.init("ut_metadata", .integer(Int64(id)))) }
        if let id = peerExchangeID { names.append(.init("ut_pex", .integer(Int64(id)))) }
        if let id = dontHaveID { names.append(.init("lt_donthave", .integer(Int64(id)))) }
        var entries: [BencodeValue.Entry] = [.init("m", .dictionary(names))]
        if let client { entries.append(.init("v", .text(client))) }
        if let listenPort { entries.append(.init("p", .integer(Int64(listenPort)))) }
        if let requestQueue { entries.append(.init("reqq", .integer(Int64(requestQueue)))) }
        if let count = metadataByteCount { entries.append(.init("metadata_size", .integer(Int64(count)))) }
        if let isUploadOnly { entries.append(.init("upload_only", .integer(isUploadOnly ? 1 : 0))) }
        if let yourAddress { entries.append(.init("yourip", .bytes(Array(yourAddress.compact.dropLast(2))))) }
        return BencodeValue.dictionary(entries).encoded()
    }
}

/// A message about the info dictionary (BEP 9).
public enum MetadataMessage: Sendable, Hashable {
    /// A part of 16 KiB is wanted, from 0.
    case request(part: Int)
    /// A part, and the length of the whole.
    case data(part: Int, totalByteCount: Int, bytes: [UInt8])
    /// A part is not to be had.
    case reject(part: Int)
    /// "Unrecognized message IDs … must be ignored" (BEP 9).
    case unknown

    private static let limits = BencodeLimits(byteCount: 1 << 20, depth: 4, valueCount: 64)

    /// Reads a payload: a dictionary, and behind it, of `data`, the bytes.
    public init(decoding bytes: [UInt8]) throws(MalformedExtension) {
        guard let document = try? BencodeDocument(bytes, strictness: .lenient, limits: Self.limits) else {
            throw MalformedExtension()
        }
        let head = document.root.value
        guard let type = head["msg_type"]?.integer, let number = head["piece"]?.integer,
            let part = Int(exactly: number), part >= 0
        else { throw MalformedExtension() }
        switch type {
        case 0: self = .request(part: part)
        case 1:
            let total = head["total_size"]?.integer.map { Int(min(max($0, 0), 1 << 30)) } ?? 0
            self = .data(part: part, totalByteCount: total, bytes: Array(bytes[document.root.range.upperBound...]))
        case 2: self = .reject(part: part)
        default: self = .unknown
        }
    }

    /// The payload.
    public func encoded() -> [UInt8] {
        func head(_ type: Int64, _ part: Int, _ more: [BencodeValue.Entry] = []) -> [UInt8] {
            BencodeValue.dictionary(
                [.init("msg_type", .integer(type)), .init("piece", .integer(Int64(part)))] + more
            ).encoded()
        }
        switch self {
        case .request(let part): return head(0, part)
        case .data(let part, let total, let bytes):
            return head(1, part, [.init("total_size", .integer(Int64(total)))]) + bytes
        case .reject(let part): return head(2, part)
        case .unknown: return head(255, 0)
        }
    }
}

/// Peers that a peer knows of (BEP 11): those that have come and those that have gone since it said so last.
public struct PeerExchange: Sendable, Hashable {
    /// More than the 50 that BEP 11 allows are taken of each kind, as some send all at first; what is beyond is left
    /// out.
    public static let maxCount = 200

    /// Have come.
    public var added: [SocketAddress]
    /// Have gone.
    public var dropped: [SocketAddress]

    /// Takes the lists as they are.
    public init(added: [SocketAddress], dropped: [SocketAddress]) {
        self.added = added
        self.dropped = dropped
    }

    /// As long as a message may be: who floods is heard, and cut.
    private static let limits = BencodeLimits(byteCount: 1 << 20, depth: 4, valueCount: 64)

    /// Reads a payload; lists whose length is no whole number of peers are passed over.
    public init(decoding bytes: [UInt8]) throws(MalformedExtension) {
        guard let said = try? BencodeValue(decoding: bytes, strictness: .lenient, limits: Self.limits),
            said.entries != nil
        else { throw MalformedExtension() }
        func list(_ name: String) -> [SocketAddress] {
            var result: [SocketAddress] = []
            if let bytes = said[name]?.bytes, bytes.count.isMultiple(of: CompactIPv4.byteCount) {
                for start in stride(from: 0, to: bytes.count, by: CompactIPv4.byteCount).prefix(Self.maxCount) {
                    result.append(CompactIPv4(bytes.span.bytes, at: start).socketAddress)
                }
            }
            if let bytes = said[name + "6"]?.bytes, bytes.count.isMultiple(of: CompactIPv6.byteCount) {
                for start in stride(from: 0, to: bytes.count, by: CompactIPv6.byteCount).prefix(Self.maxCount) {
                    result.append(CompactIPv6(bytes.span.bytes, at: start).socketAddress)
                }
            }
            return result
        }
        added = list("added")
        dropped = list("dropped")
    }

    /// The payload; flags are left 0 (BEP 11, "added.f").
    public func encoded() -> [UInt8] {
        var entries: [BencodeValue.Entry] = []
        func append(_ name: String, _ addresses: [SocketAddress], hasFlags: Bool) {
            for isIPv4 in [true, false] {
                let some = addresses.filter { $0.isIPv4 == isIPv4 }
                let name = isIPv4 ? name : name + "6"
                entries.append(.init(name, .bytes(some.flatMap { $0.compact })))
                if hasFlags { entries.append(.init(name + ".f", .bytes(Array(repeating: 0, count: some.count)))) }
            }
        }
        append("added", added, hasFlags: true)
        append("dropped", dropped, hasFlags: false)
        return BencodeValue.dictionary(entries).encoded()
    }
}

/// A peer has lost a piece (BEP 54).
public struct DontHave: Sendable, Hashable {
    /// Index of the piece, from 0.
    public var piece: UInt32

    /// Names a piece.
    public init(piece: UInt32) { self.piece = piece }

    /// Reads a payload of four bytes.
    public init(decoding bytes: [UInt8]) throws(MalformedExtension) {
        guard bytes.count == 4 else { throw MalformedExtension() }
        piece = bytes.span.bytes.u32(at: 0)
    }

    /// The payload.
    public func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: piece)
        return bytes
    }
}

extension SocketAddress {
    /// Six bytes, or eighteen (BEP 23, BEP 7).
    fileprivate var compact: [UInt8] {
        var bytes: [UInt8] = []
        if isIPv4 {
            bytes.append(bigEndian: ipv4)
        } else {
            bytes.append(bigEndian: high)
            bytes.append(bigEndian: low)
        }
        bytes.append(bigEndian: port)
        return bytes
    }
}
