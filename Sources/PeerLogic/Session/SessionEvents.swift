// What can happen to a torrent session, and what it wants done.

import Primitives
import Wire

/// A connection to another peer, as the session and its owner name it.
///
/// The session gives the names out. A name is not used again before 65,536 others of its slot.
public struct LinkID: Sendable, Hashable {
    /// Place in the session's table: small, for owners that keep a table of their own.
    public var slot: UInt16
    /// Tells the connections that have had this place one after another.
    public var generation: UInt16
}

/// How a session has heard of a peer.
public enum PeerSource: UInt8, Sendable, Hashable {
    /// A person: `--peer`, or a magnet link's `x.pe`.
    case person
    /// A tracker.
    case tracker
    /// Another peer (BEP 11).
    case exchange
    /// Multicast on the local network (BEP 14).
    case local
    /// It has called.
    case incoming
}

extension TorrentSession {
    /// What can happen to a session.
    public enum Event: Sendable, Equatable {
        // The owner.
        /// Begins, or goes on: with the pieces that are on the disk and verified. Nil while the layout is not known.
        case started(have: Bitfield?)
        /// Somebody wants no traffic for now: all connections are closed, and trackers told.
        case paused
        /// As `paused`, for good. `isStopped` tells when the trackers have been told, or given up.
        case stopped
        /// The bytes of `Action.checkMetadata` have the info hash, and are a torrent's.
        case metadataAccepted(layout: PieceLayout, isPrivate: Bool, have: Bitfield)
        /// They have not, or are not.
        case metadataRejected
        /// Which pieces are wanted (file selection).
        case wantedChanged(Bitfield)
        /// Limits, slots or ratio.
        case settingsChanged(SessionSettings)
        /// Somebody does not want to wait for the next announce.
        case updateWanted

        // Connections.
        /// Addresses at which peers may listen.
        case peersFound([SocketAddress], PeerSource)
        /// A connection that the session has dialled is there; the owner sends our handshake and waits for theirs.
        case dialled(LinkID)
        /// The other side's handshake has come, on a connection that we dialled.
        case handshakeReceived(LinkID, PeerHandshake)
        /// Somebody has connected and said a handshake that names this torrent; `newLink` has named the connection.
        ///
        /// The session sends our own handshake (`Action.sendHandshake`), or closes.
        case accepted(LinkID, SocketAddress, PeerHandshake)
        /// A message; of `piece`, `blockReceived` tells instead.
        case messageReceived(LinkID, PeerMessage)
        /// All bytes of a block have come and lie in the piece's buffer: only after `blockBegins` has said `.keep`.
        case blockReceived(LinkID, Block)
        /// A block that was to be skipped has come and is gone.
        case blockSkipped(LinkID, Block)
        /// A block of `Action.sendBlock` has left; or it was still waiting when `Action.dropBlock` came, and has not.
        case blockSent(LinkID, Block, isSent: Bool)
        /// The connection is closed, could not be made, or said something that is no message.
        case linkClosed(LinkID, LinkEnd)

        // Pieces.
        /// The hash is right. `digests` has a number for each block, where `Action.verify` asked for them.
        case pieceVerified(piece: Int, digests: [UInt64])
        /// The hash is wrong; a digest of each block, by which the culprit is found.
        case pieceFailed(piece: Int, digests: [UInt64])
        /// The bytes are on the disk.
        case pieceStored(piece: Int)
        /// They could not be written; they stay in memory.
        case storeFailed(piece: Int, StoreProblem)
        /// Bytes that were on the disk cannot be read, or are not what they were.
        case pieceLost(piece: Int)

        // Trackers and web seeds.
        /// A datagram from a tracker's address; the tracker's place in `trackers`.
        case trackerDatagram(tracker: Int, [UInt8], isIPv6: Bool)
        /// The answer to `Action.announceOverHTTP`.
        case trackerAnswered(tracker: Int, TrackerAnswer)
        /// A whole piece has come from a web seed and lies in the piece's buffer.
        case webPieceReceived(seed: Int, piece: Int)
        /// It has not.
        case webPieceFailed(seed: Int, piece: Int, WebSeedProblem)

        /// `nextDeadline` has come. A spurious one does nothing.
        case deadlineReached
    }

    /// What a session wants done.
    ///
    /// The order counts for each connection, and for each piece.
    public enum Action: Sendable, Equatable {
        /// Connects over TCP; ends in `dialled` or `linkClosed`.
        case dial(LinkID, SocketAddress)
        /// Sends our handshake on a connection that has come in.
        case sendHandshake(LinkID)
        /// Sends a message, behind all that was to be sent there before.
        case send(LinkID, PeerMessage)
        /// Reads a block from the disk and sends it; ends in one `blockSent`, unless the connection ends before.
        case sendBlock(LinkID, Block)
        /// A block need not be sent if its first byte has not left yet; ends in the one `blockSent`, too.
        case dropBlock(LinkID, Block)
        /// Closes the connection; the name is void, nothing is told of it any more.
        case close(LinkID, CloseReason)

        /// All blocks of the piece are in its buffer: hash it, off the loop.
        case verify(piece: Int, wantsDigests: Bool)
        /// Write the piece to its files; ends in `pieceStored` or `storeFailed`.
        case store(piece: Int)
        /// The buffer of the piece is not needed any more.
        case releaseBuffer(piece: Int)
        /// The metadata is whole: hash and read it, off the loop.
        case checkMetadata([UInt8])

        /// Sends a datagram to a tracker.
        case sendToTracker(tracker: Int, [UInt8])
        /// Asks an HTTP tracker.
        case announceOverHTTP(tracker: Int, HTTPAnnounceRequest)
        /// Fetches a whole piece from a web seed (BEP 19), of as many files as it touches.
        case fetchFromWeb(seed: Int, piece: Int)
        /// Says over multicast that we are here (BEP 14).
        case announceLocally

        /// For people, logs and checkers.
        case observe(Observation)
    }

    /// What `blockBegins` says of a block whose head has come.
    public enum BlockPlace: Sendable, Hashable {
        /// Into the piece's buffer; the owner makes one where there is none.
        case keep
        /// Nowhere: it was not asked for, or is here already.
        case skip
    }

    /// What people, logs and checkers may want to know.
    public enum Observation: Sendable, Equatable {
        /// A connection is through its handshake.
        case linkReady(LinkID, SocketAddress, PeerID)
        /// A piece is verified and on the disk.
        case pieceGained(Int)
        /// A piece was wrong; how many peers had a part in it.
        case pieceWasWrong(Int, senders: Int)
        /// A peer has sent corrupt bytes and is not spoken to any more.
        case banned(SocketAddress)
        /// All wanted pieces are here.
        case completed
        /// The share ratio that was wanted is reached.
        case ratioReached
        /// The disk does not take a piece, which waits in memory.
        case diskTrouble(StoreProblem)
        /// The disk takes pieces again.
        case diskMended
        /// A tracker has answered.
        case trackerAnswered(tracker: Int, seeders: Int, leechers: Int, peers: Int)
        /// A tracker has not, or with an error, in words for people.
        case trackerFailed(tracker: Int, String)
    }
}

/// Why a connection has ended, as its owner saw it.
public enum LinkEnd: Sendable, Hashable {
    /// Could not be made.
    case unreachable
    /// The other side has closed it, or the network.
    case closed
    /// The other side has said something that is no message, or no handshake.
    case malformed
    /// Nothing could be sent for too long.
    case stuck
}

/// Why the session closes a connection.
public enum CloseReason: Sendable, Hashable {
    /// The session is paused or stopped.
    case ended
    /// It is ourselves.
    case ourselves
    /// There is another connection to the same peer.
    case duplicate
    /// Neither side has anything that the other wants.
    case bothComplete
    /// It is another torrent's.
    case otherTorrent
    /// No handshake within its time.
    case handshakeTimedOut
    /// Nothing was heard, or nothing useful, for too long.
    case idle
    /// As many connections as may be.
    case full
    /// A message that the protocol does not allow; in words for the log.
    case breach(String)
    /// It has sent corrupt bytes.
    case banned
    /// A block was begun and did not end.
    case stalled
}

/// Why a piece could not be written.
public enum StoreProblem: Sendable, Hashable {
    /// No room: no space on the device, or a quota.
    case full
    /// The file system is read-only, or the files may not be written.
    case readOnly
    /// Anything else, in words for people.
    case other(String)
}

/// What a tracker over HTTP has answered.
public enum TrackerAnswer: Sendable, Equatable {
    /// Peers, and when to ask again.
    case announced(interval: UInt32, seeders: Int, leechers: Int, peers: [SocketAddress])
    /// It has said no, or cannot be reached; in words for people.
    case failed(String)
}

/// Why a web seed has not given a piece.
public enum WebSeedProblem: Sendable, Hashable {
    /// Not reachable, or an answer of 5xx: it is asked again later.
    case unavailable
    /// The file is not there, or is another: the seed is given up.
    case unusable
}

/// What people set for a session.
public struct SessionSettings: Sendable, Hashable {
    /// Connections at most.
    public var maxLinks = 50
    /// Peers that are given blocks at the same time, the optimistic one among them.
    public var uploadSlots = 14
    /// Bytes a second; nil for no limit.
    public var maxDownloadRate: Int?
    /// Bytes a second; nil for no limit.
    public var maxUploadRate: Int?
    /// Uploaded for downloaded, at which seeding ends; nil to seed for ever.
    ///
    /// Of a seeder from the start: of the size.
    public var targetRatio: Double?
    /// Bytes that pieces may have in memory, unverified or unwritten.
    public var maxBufferedByteCount = 64 << 20
    /// Whether peers are told of one another (BEP 11); never in private torrents.
    public var exchangesPeers = true
    /// Whether we say on the local network that we are here (BEP 14); never in private torrents.
    public var announcesLocally = false
    /// Where we listen, for trackers and peers; 0 for nowhere.
    public var listenPort: UInt16 = 0
    /// What we call ourselves in extension handshakes.
    public var clientName = "Swarmkeeper"
    /// Trackers are asked for so many peers.
    public var numWant: Int32 = 80

    #if PLANTED_BUGS
        /// A mistake that is planted, to see whether it is found.
        public var plantedBug: PlantedPeerBug?
    #endif

    /// The defaults.
    public init() {}
}
