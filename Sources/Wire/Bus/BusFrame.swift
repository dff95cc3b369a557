// What travels on a bus between trackers (docs/bus.md).

import Primitives

/// Bytes that are no frame of this version.
public enum BusFrameError: Error, Hashable {
    /// Too short, or without the magic: something else uses this bus.
    case notAFrame
    /// A frame of another version: this one.
    case otherVersion(UInt8)
    /// A kind that is unknown, or a body that is not of its kind.
    case damaged
}

/// What a frame carries; the numbers are the wire's.
public enum BusFrameKind: UInt8, Sendable, Hashable {
    /// One or more whole messages.
    case messages = 1
    /// A piece of a message that is longer than a frame.
    case part = 2
    /// Whom the sender hears.
    case greeting = 3
    /// Which frames of another the sender has missed.
    case wanted = 4
    /// How far the sender has come: the last words of a burst.
    case mark = 5

    /// Whether it has a number of its own, and can be repeated: `messages` and `part`.
    @inlinable
    public var isData: Bool { self == .messages || self == .part }
}

/// The first 25 bytes of a frame.
///
/// A frame carries many cluster messages, or one part of a long one, or the few words by which trackers repair losses
/// and prove that they live now.
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
/// Whether the MAC is right is not judged here: it is 16 bytes. A long message is cut by its sender; all its parts but
/// the last have one length, and are told apart by the message's number in the sender's session.
public struct BusFrameHead: Sendable, Hashable {
    /// What the body is to be read as.
    public var kind: BusFrameKind
    /// A tag of the cluster's name.
    public var cluster: UInt32
    /// The sender's: random, drawn each time that it comes on the bus; not 0.
    public var session: UInt64
    /// The number of a data frame, from 1; any other frame has the number of the next data frame.
    public var sequence: UInt64

    /// The length of a head in bytes.
    public static let byteCount = 25
    /// The length of the MAC at the end of each frame: HMAC-SHA256, cut.
    public static let macByteCount = 16
    /// Where the kind stands, for a sender that learns it after it has written the head.
    public static let kindOffset = 4
    static let magic = Array("SKB".utf8)
    /// The version of the frames that this program speaks.
    public static let version: UInt8 = 1

    /// Takes the fields as they are.
    public init(kind: BusFrameKind, cluster: UInt32, session: UInt64, sequence: UInt64) {
        self.kind = kind
        self.cluster = cluster
        self.session = session
        self.sequence = sequence
    }

    /// Reads the head of a frame; what follows is not looked at, but it is long enough for a MAC.
    ///
    /// - Parameter frame: the whole frame.
    /// - Throws: `BusFrameError`; a head of another version is not read.
    public init(_ frame: [UInt8]) throws(BusFrameError) {
        guard frame.count >= BusFrameHead.byteCount + BusFrameHead.macByteCount,
            frame.starts(with: BusFrameHead.magic)
        else { throw .notAFrame }
        let bytes = frame.span.bytes
        guard bytes.u8(at: 3) == BusFrameHead.version else { throw .otherVersion(bytes.u8(at: 3)) }
        guard let kind = BusFrameKind(rawValue: bytes.u8(at: 4)) else { throw .damaged }
        self.init(kind: kind, cluster: bytes.u32(at: 5), session: bytes.u64(at: 9), sequence: bytes.u64(at: 17))
    }

    /// Appends the 25 bytes of the head.
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
    /// The version that the frame is written in.
    public var version: UInt8
    /// A tag of the cluster's name.
    public var cluster: UInt32
    /// The sender's session.
    public var session: UInt64

    /// Reads those bytes that stand in the same places in all versions; nil where it is no frame at all.
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
    /// The message's bytes, by their offsets in the frame.
    public var range: Range<Int>

    /// Takes the fields as they are.
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
    /// How many parts the message has; at least 2.
    public var count: UInt32
    /// Where its bytes lie in the frame.
    public var range: Range<Int>

    /// Takes the fields as they are.
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
/// A session that finds itself in a greeting knows that its sender lives now.
public struct BusGreeting: Sendable, Hashable {
    /// A session that the sender hears.
    public struct Acquaintance: Sendable, Hashable {
        /// The session's random number.
        public var session: UInt64
        /// Whether the sender knows that this one lives; if not, it wants a greeting.
        public var isProven: Bool

        /// Takes the fields as they are.
        public init(session: UInt64, isProven: Bool) {
            self.session = session
            self.isProven = isProven
        }
    }

    /// The first data frame that the sender can still repeat.
    public var oldest: UInt64
    /// At most `BusBody.Limits.acquaintances`.
    public var acquaintances: [Acquaintance]

    /// Takes the fields as they are; `encode` checks how many there are.
    public init(oldest: UInt64, acquaintances: [Acquaintance]) {
        self.oldest = oldest
        self.acquaintances = acquaintances
    }
}

/// Data frames that were lost on the way.
public struct BusWanted: Sendable, Hashable {
    /// Whose frames.
    public var session: UInt64
    /// The numbers of the lost frames, in rising order and without overlap; 1…`BusBody.Limits.ranges`.
    public var ranges: [ClosedRange<UInt64>]

    /// Takes the fields as they are; `encode` checks how many ranges there are.
    public init(session: UInt64, ranges: [ClosedRange<UInt64>]) {
        self.session = session
        self.ranges = ranges
    }
}

/// The body of a frame, read.
public enum BusBody: Sendable, Hashable {
    /// Where the messages lie in the frame; at least one.
    case messages([BusItem])
    /// Where the piece of a long message lies in the frame.
    case part(BusPart)
    /// Whom the sender hears.
    case greeting(BusGreeting)
    /// What the sender asks to be repeated.
    case wanted(BusWanted)
    /// The first data frame that the sender can still repeat.
    case mark(oldest: UInt64)
}
