/// BEP 15 replies: written in place by the tracker, read by clients.

import Primitives

/// Writes replies into caller-owned room.
///
/// Each returns the number of bytes written; the room must hold that many.
public enum ReplyWriter {
    /// The longest reply: what fits the smallest path that IPv6 promises, less headers.
    public static let maxByteCount = 1400
    public static let announceHeaderByteCount = 20
    /// Peers over IPv6 that fit an announce reply; over IPv4 there is room for 230.
    public static let maxIPv6Peers = (maxByteCount - announceHeaderByteCount) / CompactIPv6.byteCount

    /// "connect response": 16 bytes.
    @inlinable
    public static func connect(
        _ transactionID: TransactionID, _ connectionID: ConnectionID, into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        precondition(room.count >= 16, "a connect reply has 16 bytes")
        room.storeBytes(of: UInt32(0).bigEndian, toByteOffset: 0, as: UInt32.self)
        room.storeBytes(of: transactionID.rawValue.bigEndian, toByteOffset: 4, as: UInt32.self)
        room.storeBytes(of: connectionID.rawValue.bigEndian, toByteOffset: 8, as: UInt64.self)
        return 16
    }

    /// The first 20 bytes of an "announce response"; compact peers follow.
    @inlinable
    public static func announceHeader(
        _ transactionID: TransactionID, interval: UInt32, leechers: UInt32, seeders: UInt32,
        into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        precondition(room.count >= 20, "an announce reply has at least 20 bytes")
        room.storeBytes(of: UInt32(1).bigEndian, toByteOffset: 0, as: UInt32.self)
        room.storeBytes(of: transactionID.rawValue.bigEndian, toByteOffset: 4, as: UInt32.self)
        room.storeBytes(of: interval.bigEndian, toByteOffset: 8, as: UInt32.self)
        room.storeBytes(of: leechers.bigEndian, toByteOffset: 12, as: UInt32.self)
        room.storeBytes(of: seeders.bigEndian, toByteOffset: 16, as: UInt32.self)
        return 20
    }

    /// The first 8 bytes of a "scrape response".
    @inlinable
    public static func scrapeHeader(
        _ transactionID: TransactionID, into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        precondition(room.count >= 8, "a scrape reply has at least 8 bytes")
        room.storeBytes(of: UInt32(2).bigEndian, toByteOffset: 0, as: UInt32.self)
        room.storeBytes(of: transactionID.rawValue.bigEndian, toByteOffset: 4, as: UInt32.self)
        return 8
    }

    /// The counts of one scraped info hash, 12 bytes at an offset.
    @inlinable
    public static func scrapeCounts(
        seeders: UInt32, completed: UInt32, leechers: UInt32, at offset: Int, into room: UnsafeMutableRawBufferPointer
    ) {
        precondition(room.count >= offset + 12, "each scraped info hash takes 12 bytes")
        room.storeBytes(of: seeders.bigEndian, toByteOffset: offset, as: UInt32.self)
        room.storeBytes(of: completed.bigEndian, toByteOffset: offset + 4, as: UInt32.self)
        room.storeBytes(of: leechers.bigEndian, toByteOffset: offset + 8, as: UInt32.self)
    }

    /// "error response": 8 bytes and a text.
    ///
    /// A text that the room does not hold is cut.
    public static func error(
        _ transactionID: TransactionID, _ text: StaticString, into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        precondition(room.count >= 8, "an error reply has at least 8 bytes")
        room.storeBytes(of: UInt32(3).bigEndian, toByteOffset: 0, as: UInt32.self)
        room.storeBytes(of: transactionID.rawValue.bigEndian, toByteOffset: 4, as: UInt32.self)
        return text.withUTF8Buffer { characters in
            let count = min(characters.count, room.count - 8)
            for index in 0..<count { room[8 + index] = characters[index] }
            return 8 + count
        }
    }
}

/// A reply, as a client reads it.
public enum TrackerReply: Sendable, Hashable {
    case connect(TransactionID, ConnectionID)
    case announce(TransactionID, Announce)
    case scrape(TransactionID, [Scrape])
    case error(TransactionID, message: [UInt8])

    public struct Announce: Sendable, Hashable {
        /// Seconds.
        public var interval: UInt32
        public var leechers: UInt32
        public var seeders: UInt32
        public var peers: [SocketAddress]

        public init(interval: UInt32, leechers: UInt32, seeders: UInt32, peers: [SocketAddress]) {
            self.interval = interval
            self.leechers = leechers
            self.seeders = seeders
            self.peers = peers
        }
    }

    public struct Scrape: Sendable, Hashable {
        public var seeders: UInt32
        public var completed: UInt32
        public var leechers: UInt32

        public init(seeders: UInt32, completed: UInt32, leechers: UInt32) {
            self.seeders = seeders
            self.completed = completed
            self.leechers = leechers
        }
    }

    public enum Malformed: Error, Hashable {
        /// Shorter than its action demands.
        case short
        /// Peers or counts that do not divide evenly.
        case ragged
        case unknownAction(UInt32)
    }

    /// Reads a reply.
    ///
    /// - Parameter isIPv6: whether it came over IPv6, which decides the size of a peer: 18 bytes, or 6.
    public init(_ bytes: [UInt8], isIPv6: Bool) throws(Malformed) {
        let span = bytes.span.bytes
        guard bytes.count >= 8 else { throw .short }
        let transactionID = TransactionID(span.u32(at: 4))
        switch span.u32(at: 0) {
        case 0:
            guard bytes.count >= 16 else { throw .short }
            self = .connect(transactionID, ConnectionID(span.u64(at: 8)))
        case 1:
            guard bytes.count >= 20 else { throw .short }
            let width = isIPv6 ? CompactIPv6.byteCount : CompactIPv4.byteCount
            guard (bytes.count - 20).isMultiple(of: width) else { throw .ragged }
            let peers = stride(from: 20, to: bytes.count, by: width).map { offset in
                isIPv6 ? CompactIPv6(span, at: offset).socketAddress : CompactIPv4(span, at: offset).socketAddress
            }
            self = .announce(
                transactionID,
                Announce(
                    interval: span.u32(at: 8), leechers: span.u32(at: 12), seeders: span.u32(at: 16), peers: peers))
        case 2:
            guard (bytes.count - 8).isMultiple(of: 12) else { throw .ragged }
            let counts = stride(from: 8, to: bytes.count, by: 12).map { offset in
                Scrape(
                    seeders: span.u32(at: offset), completed: span.u32(at: offset + 4),
                    leechers: span.u32(at: offset + 8))
            }
            self = .scrape(transactionID, counts)
        case 3:
            self = .error(transactionID, message: Array(bytes[8...]))
        case let action:
            throw .unknownAction(action)
        }
    }
}
