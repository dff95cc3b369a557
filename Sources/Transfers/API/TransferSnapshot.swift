// What people are shown of a transfer.

import PeerLogic
import Primitives
import Wire

/// A transfer as it is at one moment.
public struct TransferSnapshot: Sendable {
    /// What a transfer does, or waits for.
    public enum State: Sendable, Hashable {
        /// What lies on the disk is hashed, of 1000 so many.
        case checking(permille: Int)
        /// The info dictionary comes from peers.
        case metadata
        /// Blocks come, or may.
        case downloading
        /// All that was wanted is here.
        case seeding
        /// Somebody wants it to rest.
        case paused
        /// There is nobody to ask.
        case waitingForPeers
        /// The disk takes nothing; why, for people.
        case waitingForDisk(String)
        /// All files are read back, of 1000 so many.
        case verifying(permille: Int)
        /// It will not go on by itself; why, for people.
        case failed(String)
        /// It tells its trackers that it goes.
        case stopping
    }

    /// A tracker of the transfer.
    public struct Tracker: Sendable, Hashable {
        /// As written.
        public var url: String
        /// Which tier it stands in, from 0.
        public var tier: Int
        /// The address that has answered last.
        public var address: SocketAddress?
        /// When it has answered last.
        public var answeredAt: Instant?
        /// As it says.
        public var seeders: Int?
        /// As it says.
        public var leechers: Int?
        /// What went wrong last, for people; nil where the last announce went well.
        public var problem: String?
    }

    /// A web seed of the transfer.
    public struct WebSeed: Sendable, Hashable {
        /// As written.
        public var url: String
        /// Bytes that were kept.
        public var received: Int
        /// What went wrong last, for people.
        public var problem: String?
    }

    /// A file of the transfer; padding is left out.
    public struct File: Sendable, Hashable {
        /// The place in the torrent.
        public var index: Int
        /// Below the transfer's directory, for people.
        public var path: String
        /// Bytes.
        public var length: Int
        /// Bytes that are verified and on the disk.
        public var verified: Int
        /// Whether it is wanted.
        public var isWanted: Bool
    }

    /// Which transfer it is.
    public var id: TransferID
    /// What the swarm is named by.
    public var infoHash: InfoHash
    /// For people; the info hash where no name is known.
    public var name: String
    /// Where it lies.
    public var directory: String
    /// What it does.
    public var state: State
    /// Bytes of all files without padding; nil where the metadata is not known.
    public var totalLength: Int?
    /// Bytes of wanted pieces that are missing.
    public var missing: Int?
    /// Bytes of wanted pieces; nil where the metadata is not known.
    public var wantedLength: Int?
    /// Bytes of blocks that were received and kept.
    public var received: Int
    /// Bytes of blocks that were sent.
    public var sent: Int
    /// Bytes of blocks that were of no use.
    public var wasted: Int
    /// Bytes a second, smoothed.
    public var downloadRate: Int
    /// Bytes a second, smoothed.
    public var uploadRate: Int
    /// Seconds until all that is wanted is here, at this rate; nil where nobody can say.
    public var secondsLeft: Int?
    /// Sent for received; nil before anything was received.
    public var ratio: Double?
    /// Connections; empty in a summary.
    public var peers: [TorrentSession.LinkView]
    /// How many connections there are.
    public var peerCount: Int
    /// Peers that are known, connected or not.
    public var knownPeerCount: Int
    /// Bytes of each piece but the last; nil where the metadata is not known.
    public var pieceLength: Int?
    /// The pieces that are here.
    public var have: Bitfield?
    /// The pieces that are wanted.
    public var wanted: Bitfield?
    /// Tier by tier.
    public var trackers: [Tracker]
    /// In the torrent's order.
    public var webSeeds: [WebSeed]
    /// In the torrent's order; empty in a summary.
    public var files: [File]
    /// Whether peers may come from the trackers only (BEP 27).
    public var isPrivate: Bool
    /// Limits, slots and ratio.
    public var settings: SessionSettings
}

extension TransferSnapshot.State: CustomStringConvertible {
    /// The state in a few words.
    public var description: String {
        switch self {
        case .checking(let permille): "checking, \(permille / 10) %"
        case .metadata: "fetching metadata"
        case .downloading: "downloading"
        case .seeding: "seeding"
        case .paused: "paused"
        case .waitingForPeers: "waiting for peers"
        case .waitingForDisk(let reason): "waiting for the disk: \(reason)"
        case .verifying(let permille): "verifying, \(permille / 10) %"
        case .failed(let reason): "failed: \(reason)"
        case .stopping: "stopping"
        }
    }
}

/// What has come of reading all files back.
public struct Verification: Sendable, Hashable {
    /// Pieces that were read.
    public var pieceCount: Int
    /// Pieces that are not what they should be.
    public var wrongPieces: [Int]

    /// Whether every piece is right.
    public var isRight: Bool { wrongPieces.isEmpty }
}

/// What has happened to a transfer.
public enum TransferEvent: Sendable {
    /// Peers may call there: once for each address.
    case listening(SocketAddress)
    /// A transfer is there.
    case added(TransferID, InfoHash, name: String)
    /// A tracker or web seed of the torrent is not asked; why, for people: once, when the transfer is added.
    case unusable(TransferID, url: String, reason: String)
    /// So many pieces are here, after what was on the disk has been looked at.
    case checked(TransferID, have: Int, of: Int)
    /// The metadata has come from peers.
    case metadataReceived(TransferID, name: String, totalLength: Int)
    /// What the session has to say: connections, pieces, trackers, the end of the download.
    case observed(TransferID, TorrentSession.Observation)
    /// A connection has ended, for people.
    case peerLeft(TransferID, SocketAddress, reason: String)
    /// All files were read back at the end of the download.
    case verified(TransferID, Verification)
    /// Another program has written to a file, which is looked at again.
    case fileChanged(TransferID, path: String)
    /// It does not go on by itself; why, for people.
    case failed(TransferID, String)
    /// It is gone from the engine.
    case removed(TransferID)
}
