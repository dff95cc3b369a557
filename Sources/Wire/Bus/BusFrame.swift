/// What travels on a bus between trackers (docs/bus.md): many cluster messages in one frame, or one part of a long one,
/// and the few words by which trackers repair losses and prove that they live now.
///
///     0   magic "SKB", version
///     4   kind
///     5   cluster: a tag of its name, so that strangers' frames are known at once
///     9   session of the sender: random, drawn each time that it comes on the bus
///     17  sequence: data frames are numbered from 1; any other frame has the number of the next data frame
///     25  body, to be read by kind
///     -16 MAC under the key of the bus, over all before
///
///     messages  (destination incarnation or 0 for all · 32-bit length · bytes)+
///     part      destination · number of the message · index · count · bytes
///     greeting  oldest · 16-bit count · (session · whether it has proved to live)*
///     wanted    session whose frames are wanted · 16-bit count · (first · last)+
///     mark      oldest
///
/// Magic, version, cluster, session and MAC have these places in every version: so a tracker can tell, and prove, who
/// speaks another one.
///
/// Numbers are big-endian; each frame has one spelling. `oldest` is the first data frame that its sender can repeat.
/// MACs are another's affair: here they are 16 bytes. A long message is cut by its sender; all its parts but the last
/// have one length, and are told apart by the message's number in the sender's session.

import Primitives

/// Bytes that are no frame of this version.
public enum BusFrameError: Error, Hashable {
    case notAFrame
    case otherVersion(UInt8)
    case damaged
}

public enum BusFrameKind: UInt8, Sendable, Hashable {
    case messages = 1
    case part = 2
    case greeting = 3
    case wanted = 4
    case mark = 5

    /// Whether it has a number of its own, and can be repeated.
    @inlinable
    public var isData: Bool { self == .messages || self == .part }
}

/// The first 25 bytes.
public struct BusFrameHead: Sendable, Hashable {
    public var kind: BusFrameKind
    public var cluster: UInt32
    public var session: UInt64
    public var sequence: UInt64

    public static let byteCount = 25
    public static let macByteCount = 16
    /// Where the kind stands, for whoever learns it after the head was written.
    public static let kindOffset = 4
    static let magic = Array("SKB".utf8)
    public static let version: UInt8 = 1

    public init(kind: BusFrameKind, cluster: UInt32, session: UInt64, sequence: UInt64) {
        self.kind = kind
        self.cluster = cluster
        self.session = session
        self.sequence = sequence
    }

    /// Reads the head of a frame; what follows is not looked at, but it is long enough for a MAC.
    public init(_ frame: [UInt8]) throws(BusFrameError) {
        guard frame.count >= BusFrameHead.byteCount + BusFrameHead.macByteCount,
            frame.starts(with: BusFrameHead.magic)
        else { throw .notAFrame }
        let bytes = frame.span.bytes
        guard bytes.u8(at: 3) == BusFrameHead.version else { throw .otherVersion(bytes.u8(at: 3)) }
        guard let kind = BusFrameKind(rawValue: bytes.u8(at: 4)) else { throw .damaged }
        self.init(kind: kind, cluster: bytes.u32(at: 5), session: bytes.u64(at: 9), sequence: bytes.u64(at: 17))
    }

    public func encode(into bytes: inout [UInt8]) {
        bytes.append(contentsOf: BusFrameHead.magic)
        bytes.append(BusFrameHead.version)
        bytes.append(kind.rawValue)
        bytes.append(bigEndian: cluster)
        bytes.append(bigEndian: session)
        bytes.append(bigEndian: sequence)
    }
}

/// What can be said of a frame in whatever version: which one it is, and whose.
public struct BusFrameOrigin: Sendable, Hashable {
    public var version: UInt8
    public var cluster: UInt32
    public var session: UInt64

    /// - Returns: nil where it is no frame at all.
    public init?(_ frame: [UInt8]) {
        guard frame.count >= BusFrameHead.byteCount + BusFrameHead.macByteCount,
            frame.starts(with: BusFrameHead.magic)
        else { return nil }
        let bytes = frame.span.bytes
        (version, cluster, session) = (bytes.u8(at: 3), bytes.u32(at: 5), bytes.u64(at: 9))
    }
}

/// Where a message lies in its frame, and whom it is for.
public struct BusItem: Sendable, Hashable {
    /// The incarnation that it is for; 0 for all.
    public var destination: UInt64
    public var range: Range<Int>

    public init(destination: UInt64, range: Range<Int>) {
        self.destination = destination
        self.range = range
    }
}

/// One part of a long message.
public struct BusPart: Sendable, Hashable {
    /// The incarnation that the message is for; 0 for all.
    public var destination: UInt64
    /// Counts the long messages of a session.
    public var message: UInt64
    /// 0..<count.
    public var index: UInt32
    public var count: UInt32
    /// Where its bytes lie in the frame.
    public var range: Range<Int>

    public init(destination: UInt64, message: UInt64, index: UInt32, count: UInt32, range: Range<Int>) {
        self.destination = destination
        self.message = message
        self.index = index
        self.count = count
        self.range = range
    }
}

/// Whom the sender has heard.
///
/// A session that finds itself in a frame knows that its sender lives now.
public struct BusGreeting: Sendable, Hashable {
    public struct Acquaintance: Sendable, Hashable {
        public var session: UInt64
        /// Whether the sender knows that this one lives; if not, it wants a greeting.
        public var isProven: Bool

        public init(session: UInt64, isProven: Bool) {
            self.session = session
            self.isProven = isProven
        }
    }

    public var oldest: UInt64
    public var acquaintances: [Acquaintance]

    public init(oldest: UInt64, acquaintances: [Acquaintance]) {
        self.oldest = oldest
        self.acquaintances = acquaintances
    }
}

/// Data frames that were lost on the way.
public struct BusWanted: Sendable, Hashable {
    /// Whose frames.
    public var session: UInt64
    /// Rising.
    public var ranges: [ClosedRange<UInt64>]

    public init(session: UInt64, ranges: [ClosedRange<UInt64>]) {
        self.session = session
        self.ranges = ranges
    }
}

public enum BusBody: Sendable, Hashable {
    case messages([BusItem])
    case part(BusPart)
    case greeting(BusGreeting)
    case wanted(BusWanted)
    case mark(oldest: UInt64)
}
