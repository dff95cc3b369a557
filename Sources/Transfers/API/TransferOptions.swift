// What is transferred, from where, to where, and within which limits.

import PeerLogic
import Primitives
import Wire

/// What names a torrent.
public enum TorrentSource: Sendable {
    /// The bytes of a .torrent file.
    case metainfo([UInt8])
    /// A magnet link, read.
    case magnet(MagnetLink)
    /// An info hash and the URLs of trackers, tier by tier (BEP 12).
    case infoHash(InfoHash, trackers: [[String]])
}

/// How one torrent is transferred.
public struct TransferOptions: Sendable {
    /// Where the torrent's file or directory is, or is to be made.
    public var directory: String
    /// What the torrent was made of, where that does not lie in `directory` under the torrent's name: one path that is
    /// all of it, or several that are the entries of its directory.
    public var sources: [String] = []
    /// When the one who made the torrent began to hash: files that have not been written since are not hashed again.
    public var hashedAt: WallTime?
    /// Where what is verified is noted; nil for a hidden file `.NAME.resume` in `directory`.
    public var stateDirectory: String?
    /// The files that are wanted, by their place in the torrent; nil for all.
    public var wantedFiles: Set<Int>?
    /// Whether it waits for `resume`.
    public var isPaused = false
    /// Peers that somebody has named.
    public var peers: [SocketAddress] = []
    /// Whether trackers are asked, those of the torrent and the further ones.
    public var asksTrackers = true
    /// URLs of further trackers, each a tier of its own behind those of the torrent.
    public var extraTrackers: [String] = []
    /// Nothing is asked for and nothing written: what is missing stays missing.
    public var isSeedOnly = false
    /// Whether all pieces are hashed, whatever was noted before.
    public var rechecks = false
    /// Whether files get their room at once (`posix_fallocate`).
    public var preallocates = true
    /// Whether each file is read back and checked at the end of a download.
    public var verifiesAtEnd = true
    /// Limits, slots and ratio; port and local announces are the engine's.
    public var settings = SessionSettings()

    /// All files, into a directory.
    public init(directory: String) { self.directory = directory }
}

/// What holds for all torrents of an engine.
public struct EngineOptions: Sendable {
    /// Where peers may call; each once.
    ///
    /// The port 0 lets the kernel choose; trackers are told the first one's.
    /// Without any, trackers have no port to give to others, and most refuse the announce.
    public var listenAddresses: [SocketAddress] = []
    /// Bytes a second for all torrents together; nil for no limit.
    public var maxDownloadRate: Int?
    /// Bytes a second for all torrents together; nil for no limit.
    public var maxUploadRate: Int?
    /// Whether the local network is told of torrents, and asked for peers (BEP 14).
    public var announcesLocally = false
    /// Threads that hash; nil for as many as there are cores.
    public var hashThreadCount: Int?
    /// Torrents at most.
    public var maxTransferCount = 1_000
    /// Connections of all torrents together, those that are being made among them.
    public var maxConnectionCount = 2_000
    /// Files that one torrent keeps open.
    public var maxOpenFileCount = 64
    /// Bytes that pieces of all torrents together may have in memory; each that runs has a share, of a megabyte at
    /// least.
    public var maxBufferedByteCount = 256 << 20
    /// What trackers and web seeds are told that we are.
    public var userAgent = "Swarmkeeper"

    /// No listening, no limits.
    public init() {}
}

/// A torrent of an engine, as its owner names it.
///
/// No name is used again.
public struct TransferID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// From 1.
    public let number: Int

    package init(number: Int) { self.number = number }

    /// The older one is less.
    public static func < (left: TransferID, right: TransferID) -> Bool { left.number < right.number }

    /// The number.
    public var description: String { "\(number)" }
}

/// What was wanted cannot be done: what, why, and the way out, in words for people.
public struct TransferError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of trouble it is.
    public enum Kind: Sendable, Hashable {
        /// The torrent, or what is asked of it, makes no sense.
        case usage
        /// It is there already.
        case duplicate
        /// No such transfer.
        case unknown
        /// Files or directories.
        case disk
        /// Sockets.
        case network
        /// The engine has been stopped.
        case stopped
    }

    /// What kind of trouble it is.
    public var kind: Kind
    /// A sentence for people.
    public var description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}
