// One torrent at one peer: what is asked of whom, what is given to whom, and who is spoken to.

import Primitives
import Wire

/// How a tracker of a torrent is asked; its URL is the owner's to know.
public enum TrackerKind: Sendable, Hashable {
    /// BEP 15. `urlData` is path and query of the URL (BEP 41).
    case udp(urlData: [UInt8])
    /// BEP 3.
    case http
}

/// One torrent at one peer.
public struct TorrentSession: Sendable, Equatable {
    /// What a session knows of its torrent when it begins.
    public struct Torrent: Sendable, Equatable {
        /// What the swarm is named by.
        public var infoHash: InfoHash
        /// How the bytes are cut; nil where there is only a magnet link yet.
        public var layout: PieceLayout?
        /// The raw info dictionary, to be given to peers (BEP 9); nil where there is none yet.
        public var metadata: [UInt8]?
        /// BEP 27: peers come from trackers only.
        public var isPrivate = false
        /// Tiers (BEP 12); a tracker's number counts through all of them, in this order.
        public var trackers: [[TrackerKind]] = []
        /// How many web seeds there are (BEP 19).
        public var webSeedCount = 0

        /// A torrent of which nothing else is known.
        public init(infoHash: InfoHash) { self.infoHash = infoHash }
    }

    /// - Parameters:
    ///   - random: for picks, ties and transaction ids: seeded by a secret where strangers could gain by guessing.
    public init(_ torrent: Torrent, peerID: PeerID, settings: SessionSettings, random: RandomStream) { fatalSkeleton() }

    /// Takes one event, and says what is to be done about it.
    ///
    /// - Parameters:
    ///   - now: the monotonic clock, read just before.
    ///   - actions: appended to; the caller carries them out in order and empties the buffer.
    public mutating func step(_ event: Event, now: Instant, into actions: inout [Action]) {}

    /// When the session wants `deadlineReached`; nil when it waits for nothing.
    public var nextDeadline: Instant? { nil }

    /// A name for a connection that has come in, to be used with `accepted`; nil where there are as many as may be.
    public mutating func newLink() -> LinkID? { nil }

    /// Where the payload of a `piece` message goes, whose 13 bytes of head have come. `blockReceived`, `blockSkipped` or
    /// `linkClosed` follows.
    public mutating func blockBegins(_ block: Block, on link: LinkID) -> BlockPlace { .skip }

    /// What we say first on every connection.
    public var handshake: PeerHandshake { fatalSkeleton() }

    /// The pieces that are verified and on the disk; nil while the layout is not known.
    public var have: Bitfield? { nil }
    /// The pieces that are wanted; nil while the layout is not known.
    public var wanted: Bitfield? { nil }
    /// Whether all wanted pieces are on the disk.
    public var isComplete: Bool { false }
    /// Whether `stopped` has come and all is told that was to be told.
    public var isStopped: Bool { false }
    /// Bytes of payload since the session was made: received and kept, and sent.
    public var received: Int { 0 }
    public var sent: Int { 0 }

    /// A connection, for people.
    public struct LinkView: Sendable, Equatable {
        public var id: LinkID
        public var address: SocketAddress
        public var peerID: PeerID
        /// What the peer says it is (`v` of BEP 10), or nothing.
        public var client: String
        public var isIncoming: Bool
        public var isChoked: Bool          // by us
        public var isInterested: Bool      // the peer in us
        public var chokesUs: Bool
        public var interestsUs: Bool
        /// Pieces it has.
        public var pieceCount: Int
        /// Bytes a second.
        public var downloadRate: Int
        public var uploadRate: Int
        public var received: Int
        public var sent: Int
        public var pendingRequests: Int
    }

    /// All connections that are through their handshakes.
    public var links: [LinkView] { [] }
}
func fatalSkeleton() -> Never { preconditionFailure("not yet") }
