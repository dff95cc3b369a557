// BEP 15 replies: written in place by the tracker, read by clients.

import Primitives

/// Writes replies into caller-owned room.
///
/// Each returns the number of bytes written; the room must hold that many.
public enum ReplyWriter {
    /// The longest reply: what fits the smallest path that IPv6 promises, less headers.
    public static let maxByteCount = 1400
    /// Bytes before the compact peers of an "announce response".
    public static let announceHeaderByteCount = 20
    /// Peers over IPv6 that fit an announce reply; over IPv4 there is room for 230.
    public static let maxIPv6Peers = (maxByteCount - announceHeaderByteCount) / CompactIPv6.byteCount

    /// Writes a "connect response".
    ///
    /// - Parameters:
    ///   - transactionID: of the request.
    ///   - connectionID: which the client is to use for a minute.
    ///   - room: at least 16 bytes.
    /// - Returns: 16.
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

    /// Writes the first 20 bytes of an "announce response"; compact peers follow.
    ///
    /// - Parameters:
    ///   - transactionID: of the request.
    ///   - interval: seconds until the next announce.
    ///   - leechers: peers of the swarm that lack something.
    ///   - seeders: peers of the swarm that have everything.
    ///   - room: at least 20 bytes.
    /// - Returns: 20.
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

    /// Writes the first 8 bytes of a "scrape response"; 12 bytes for each info hash follow (`scrapeCounts`).
    ///
    /// - Parameters:
    ///   - transactionID: of the request.
    ///   - room: at least 8 bytes.
    /// - Returns: 8.
    @inlinable
    public static func scrapeHeader(
        _ transactionID: TransactionID, into room: UnsafeMutableRawBufferPointer
    ) -> Int {
        precondition(room.count >= 8, "a scrape reply has at least 8 bytes")
        room.storeBytes(of: UInt32(2).bigEndian, toByteOffset: 0, as: UInt32.self)
        room.storeBytes(of: transactionID.rawValue.bigEndian, toByteOffset: 4, as: UInt32.self)
        return 8
    }

    /// The length of a "scrape response" about so many info hashes.
    @inlinable
    public static func scrapeByteCount(_ hashCount: Int) -> Int { 8 + 12 * hashCount }

    /// Writes the counts of one scraped info hash: 12 bytes.
    ///
    /// - Parameters:
    ///   - seeders: peers that have everything.
    ///   - completed: how often the torrent has been completed.
    ///   - leechers: all other peers.
    ///   - offset: 8 for the first info hash, 12 more for each further one.
    ///   - room: of the whole reply.
    @inlinable
    public static func scrapeCounts(
        seeders: UInt32, completed: UInt32, leechers: UInt32, at offset: Int, into room: UnsafeMutableRawBufferPointer
    ) {
        precondition(room.count >= offset + 12, "each scraped info hash takes 12 bytes")
        room.storeBytes(of: seeders.bigEndian, toByteOffset: offset, as: UInt32.self)
        room.storeBytes(of: completed.bigEndian, toByteOffset: offset + 4, as: UInt32.self)
        room.storeBytes(of: leechers.bigEndian, toByteOffset: offset + 8, as: UInt32.self)
    }

    /// Writes an "error response": 8 bytes and a text.
    ///
    /// - Parameters:
    ///   - transactionID: of the request.
    ///   - text: for the person behind the client; cut where the room does not hold it.
    ///   - room: at least 8 bytes.
    /// - Returns: how many bytes were written.
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
    /// The tracker gives a connection id.
    case connect(TransactionID, ConnectionID)
    /// The tracker names peers.
    case announce(TransactionID, Announce)
    /// The counts of the swarms in the order asked.
    case scrape(TransactionID, [Scrape])
    /// The tracker has refused the request, in its own words: bytes, which need not be text.
    case error(TransactionID, message: [UInt8])

    /// What a tracker answers an announce.
    public struct Announce: Sendable, Hashable {
        /// Seconds until the next announce.
        public var interval: UInt32
        /// Peers of the swarm that lack something, as the tracker says.
        public var leechers: UInt32
        /// Peers of the swarm that have everything, as the tracker says.
        public var seeders: UInt32
        /// In the tracker's order; those with port 0 are not left out.
        public var peers: [SocketAddress]

        /// Takes the fields as they are.
        public init(interval: UInt32, leechers: UInt32, seeders: UInt32, peers: [SocketAddress]) {
            self.interval = interval
            self.leechers = leechers
            self.seeders = seeders
            self.peers = peers
        }
    }

    /// The counts of one swarm.
    public struct Scrape: Sendable, Hashable {
        /// Peers that have everything.
        public var seeders: UInt32
        /// How often the torrent has been completed.
        public var completed: UInt32
        /// All other peers.
        public var leechers: UInt32

        /// Takes the fields as they are.
        public init(seeders: UInt32, completed: UInt32, leechers: UInt32) {
            self.seeders = seeders
            self.completed = completed
            self.leechers = leechers
        }
    }

    /// Why a datagram is no reply.
    public enum Malformed: Error, Hashable {
        /// Shorter than its action demands.
        case short
        /// Peers or counts that do not divide evenly.
        case ragged
        /// An action beyond BEP 15's four.
        case unknownAction(UInt32)
    }

    /// Reads a reply.
    ///
    /// - Parameters:
    ///   - bytes: the whole datagram.
    ///   - isIPv6: whether it came over IPv6, which decides the size of a peer: 18 bytes, or 6.
    /// - Throws: `Malformed`; whether the transaction id is the caller's is not checked.
    /// - SeeAlso: BEP 15.
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
