// BEP 15 requests: what a client sends.

import Primitives

/// A "connect request": 16 bytes.
public struct ConnectRequest: Sendable, Hashable {
    /// BEP 15's "protocol_id, magic constant", which stands in place of a connection id.
    public static let magic: UInt64 = 0x417_2710_1980
    /// The length of the datagram.
    public static let byteCount = 16

    /// Drawn by the client.
    public var transactionID: TransactionID

    /// A request under this transaction id.
    @inlinable
    public init(transactionID: TransactionID) { self.transactionID = transactionID }

    /// Appends the 16 bytes of the request.
    public func encode(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: ConnectRequest.magic)
        bytes.append(bigEndian: UInt32(0))
        bytes.append(bigEndian: transactionID.rawValue)
    }
}

/// An "IPv4 announce request" (and BEP 15's IPv6 form, which is the same): 98 bytes, and whatever follows.
///
/// Datagrams are rarely of just that length: aria2 sends 100 bytes, libtorrent appends BEP 41 options.
@frozen
public struct AnnounceRequest: Sendable, Hashable {
    /// The length of the fixed part; options follow it.
    public static let byteCount = 98

    /// As the tracker gave it; not proven by having been read.
    public var connectionID: ConnectionID
    /// Drawn by the client.
    public var transactionID: TransactionID
    /// Of the swarm that is announced to.
    public var infoHash: InfoHash
    /// The same in all announces of one download.
    public var peerID: PeerID
    /// Bytes downloaded since the client sent `started`.
    public var downloaded: UInt64
    /// Bytes still to be downloaded; 0 makes a seeder.
    public var left: UInt64
    /// Bytes uploaded since the client sent `started`.
    public var uploaded: UInt64
    /// What has happened; an unknown number is read as `none`.
    public var event: AnnounceEvent
    /// IPv4 address that the client claims; 0 for the sender's.
    ///
    /// Believed only from trusted senders.
    public var ip: UInt32
    /// Random, the same in all announces of one client: tells it from others after its address has changed.
    public var key: UInt32
    /// Peers wanted; negative for the default.
    public var numWant: Int32
    /// The port on which the peer listens.
    public var port: UInt16

    /// Takes the fields as they are; for clients and tests.
    public init(
        connectionID: ConnectionID, transactionID: TransactionID, infoHash: InfoHash, peerID: PeerID,
        downloaded: UInt64 = 0, left: UInt64, uploaded: UInt64 = 0, event: AnnounceEvent = .none, ip: UInt32 = 0,
        key: UInt32 = 0, numWant: Int32 = -1, port: UInt16
    ) {
        self.connectionID = connectionID
        self.transactionID = transactionID
        self.infoHash = infoHash
        self.peerID = peerID
        self.downloaded = downloaded
        self.left = left
        self.uploaded = uploaded
        self.event = event
        self.ip = ip
        self.key = key
        self.numWant = numWant
        self.port = port
    }

    /// Reads the fixed part; the caller has checked that there are 98 bytes.
    @inlinable
    init(_ bytes: RawSpan) {
        connectionID = ConnectionID(bytes.u64(at: 0))
        transactionID = TransactionID(bytes.u32(at: 12))
        infoHash = InfoHash(Bytes20(bytes, at: 16))
        peerID = PeerID(Bytes20(bytes, at: 36))
        downloaded = bytes.u64(at: 56)
        left = bytes.u64(at: 64)
        uploaded = bytes.u64(at: 72)
        event = AnnounceEvent(rawValue: bytes.u32(at: 80)) ?? .none
        ip = bytes.u32(at: 84)
        key = bytes.u32(at: 88)
        numWant = Int32(bitPattern: bytes.u32(at: 92))
        port = bytes.u16(at: 96)
    }

    /// Appends the request.
    ///
    /// - Parameters:
    ///   - bytes: the datagram, which is empty but in tests.
    ///   - urlData: path and query of the announce URL, sent as BEP 41 options where not empty.
    public func encode(into bytes: inout [UInt8], urlData: [UInt8] = []) {
        bytes.append(bigEndian: connectionID.rawValue)
        bytes.append(bigEndian: UInt32(1))
        bytes.append(bigEndian: transactionID.rawValue)
        bytes.append(infoHash.bytes)
        bytes.append(peerID.bytes)
        bytes.append(bigEndian: downloaded)
        bytes.append(bigEndian: left)
        bytes.append(bigEndian: uploaded)
        bytes.append(bigEndian: event.rawValue)
        bytes.append(bigEndian: ip)
        bytes.append(bigEndian: key)
        bytes.append(bigEndian: numWant)
        bytes.append(bigEndian: port)
        AnnounceOptions.encode(urlData: urlData, into: &bytes)
    }
}

/// A "scrape request": 16 bytes and 1 to 74 info hashes.
public struct ScrapeRequest: Sendable, Hashable {
    /// "Up to about 74 torrents can be scraped at once" (BEP 15): the reply must fit a datagram.
    public static let maxInfoHashes = 74

    /// As the tracker gave it.
    public var connectionID: ConnectionID
    /// Drawn by the client.
    public var transactionID: TransactionID
    /// Counts are answered in this order; 1…`maxInfoHashes`.
    public var infoHashes: [InfoHash]

    /// Takes the fields as they are; a tracker refuses more hashes than `maxInfoHashes`.
    public init(connectionID: ConnectionID, transactionID: TransactionID, infoHashes: [InfoHash]) {
        self.connectionID = connectionID
        self.transactionID = transactionID
        self.infoHashes = infoHashes
    }

    /// Appends 16 bytes and 20 for each info hash.
    public func encode(into bytes: inout [UInt8]) {
        bytes.append(bigEndian: connectionID.rawValue)
        bytes.append(bigEndian: UInt32(2))
        bytes.append(bigEndian: transactionID.rawValue)
        for infoHash in infoHashes { bytes.append(infoHash.bytes) }
    }
}

/// A datagram from a client, read.
///
/// Decoding never traps and never allocates; it looks at the length once and then reads at fixed offsets. An error
/// says whether it is safe to answer: before a connection id is proven, a reply could go to a forged address.
@frozen
public enum TrackerRequest: Sendable, Hashable {
    /// A client asks for a connection id.
    case connect(TransactionID)
    /// Options, if any, begin at `AnnounceRequest.byteCount`.
    case announce(AnnounceRequest)
    /// The info hashes stand from byte 16 on, 20 bytes each.
    case scrape(ConnectionID, TransactionID, hashCount: Int)

    /// Reads one datagram.
    ///
    /// - Parameter bytes: the whole datagram; what a scrape asks for is not copied.
    /// - Throws: `TrackerRequestError`, which says whether a reply is safe.
    /// - SeeAlso: BEP 15; docs/architecture.md for what is accepted beyond it.
    @inlinable
    public init(_ bytes: RawSpan) throws(TrackerRequestError) {
        guard bytes.byteCount >= 16 else { throw .unsafe }
        let action = bytes.u32(at: 8)
        switch action {
        case 0:
            // A connect without the magic may be anything; its source is unproven.
            guard bytes.u64(at: 0) == ConnectRequest.magic else { throw .unsafe }
            self = .connect(TransactionID(bytes.u32(at: 12)))
        case 1:
            guard bytes.byteCount >= AnnounceRequest.byteCount else { throw .answerable(.init(bytes, .shortAnnounce)) }
            self = .announce(AnnounceRequest(bytes))
        case 2:
            let rest = bytes.byteCount - 16
            let hashCount = rest / 20
            guard rest == hashCount * 20, (1...ScrapeRequest.maxInfoHashes).contains(hashCount) else {
                throw .answerable(.init(bytes, .scrapeLength))
            }
            self = .scrape(
                ConnectionID(bytes.u64(at: 0)), TransactionID(bytes.u32(at: 12)), hashCount: hashCount)
        default:
            throw .answerable(.init(bytes, .unknownAction))
        }
    }
}

/// A datagram that is no request.
@frozen
public enum TrackerRequestError: Error, Hashable {
    /// Nothing in it proves its source: answer with silence.
    case unsafe
    /// An error may go out if, and only if, the connection id is valid for the source.
    case answerable(Complaint)

    /// What an error reply needs to know of the request.
    @frozen
    public struct Complaint: Sendable, Hashable {
        /// To be proven before anything is answered.
        public var connectionID: ConnectionID
        /// To be echoed.
        public var transactionID: TransactionID
        /// What is wrong.
        public var fault: Fault

        /// The caller has checked that there are 16 bytes.
        @usableFromInline
        init(_ bytes: RawSpan, _ fault: Fault) {
            connectionID = ConnectionID(bytes.u64(at: 0))
            transactionID = TransactionID(bytes.u32(at: 12))
            self.fault = fault
        }
    }

    /// What is wrong with a datagram that has a connection id.
    @frozen
    public enum Fault: Sendable, Hashable {
        /// An announce of fewer than 98 bytes.
        case shortAnnounce
        /// A scrape whose info hashes are none, more than 74, or cut.
        case scrapeLength
        /// An action that is no request of BEP 15.
        case unknownAction
    }
}
