// What the peer's API asks of the rest of the process.

import Primitives
import Wire

/// Why a peer does not do what it was asked for: what, why and the way out, in a sentence.
public struct PeerRefusal: Error, Sendable, Equatable {
    /// What kind of trouble it is.
    public enum Kind: Sendable {
        /// What was asked for makes no sense.
        case invalid
        /// There is no such thing.
        case unknown
        /// Not as things are now.
        case conflict
        /// There is as much of it as may be.
        case full
        /// The disk, or the record on it.
        case disk
        /// The peer ends.
        case stopped
    }

    /// What kind of trouble it is.
    public var kind: Kind
    /// A sentence for people.
    public var words: String

    /// Takes the fields as they are.
    public init(_ kind: Kind, _ words: String) { (self.kind, self.words) = (kind, words) }
}

/// A torrent that is to be transferred.
public struct PeerAddition: Sendable, Equatable {
    /// What names it.
    public enum Source: Sendable, Equatable {
        /// The bytes of a .torrent file.
        case file([UInt8])
        /// A magnet link.
        case magnet(String)
    }

    /// What names it.
    public var source: Source
    /// Whether it waits until somebody resumes it.
    public var isPaused: Bool
    /// Below the peer's directory; empty for the directory itself.
    public var directory: String

    /// Takes the fields as they are.
    public init(_ source: Source, isPaused: Bool, directory: String) {
        (self.source, self.isPaused, self.directory) = (source, isPaused, directory)
    }
}

/// A field of a change: left as it is, or set, perhaps to nothing.
public enum PeerChange<Value: Sendable & Equatable>: Sendable, Equatable {
    /// It stays as it is.
    case leave
    /// It becomes this; nil for `null`.
    case set(Value?)
}

/// What is to change of a transfer.
public struct PeerTransferChange: Sendable, Equatable {
    /// Places in the torrent; nothing for all.
    public var files = PeerChange<[Int]>.leave
    /// Bytes a second; nothing for no limit.
    public var maxDown = PeerChange<Int>.leave
    /// Bytes a second; nothing for no limit.
    public var maxUp = PeerChange<Int>.leave
    /// Connections; nothing for as many as usual.
    public var maxPeers = PeerChange<Int>.leave
    /// At which seeding ends; nothing to seed for ever.
    public var ratio = PeerChange<Double>.leave

    /// Nothing.
    public init() {}
}

/// What a transfer can be told to do.
public enum PeerAction: String, Sendable, CaseIterable {
    case pause
    case resume
    case recheck
    case announce
}

/// A torrent that is to be made.
public struct PeerCreationOrder: Sendable, Equatable {
    /// A cluster's console.
    public struct Console: Sendable, Equatable {
        /// `http://HOST:PORT`.
        public var url: String
        /// The bearer token, where it asks for one.
        public var token: String?

        /// Takes the fields as they are.
        public init(url: String, token: String?) { (self.url, self.token) = (url, token) }
    }

    /// Below the peer's directory: a file or a folder.
    public var path: String
    /// Tiers of URLs (BEP 12).
    public var trackers: [[String]] = []
    /// URLs of mirrors (BEP 19).
    public var webSeeds: [String] = []
    /// Nil to choose by size.
    public var pieceLength: Int?
    /// BEP 27.
    public var isPrivate = false
    /// For people; empty for none.
    public var comment = ""
    /// Where it is to be published; nil for nowhere.
    public var publish: Console?
    /// Whether it becomes a transfer here.
    public var seeds = true

    /// Of a path, with defaults for all else.
    public init(path: String) { self.path = path }
}

/// All that is told once a second.
public struct PeerState: Sendable {
    /// The oldest first.
    public var transfers: [PeerTransfer]
    /// The oldest first.
    public var creations: [PeerCreation]
    /// What holds for all.
    public var settings: PeerSettings

    /// Takes the fields as they are.
    public init(transfers: [PeerTransfer], creations: [PeerCreation], settings: PeerSettings) {
        (self.transfers, self.creations, self.settings) = (transfers, creations, settings)
    }
}

/// A peer with its transfers.
public protocol TransferProvider: Sendable {
    /// How all is.
    func state() async -> PeerState
    /// One transfer.
    func transfer(_ hash: InfoHash) async throws(PeerRefusal) -> PeerTransferDetail
    /// Adds a torrent; one that is there already stays as it is.
    func add(_ addition: PeerAddition) async throws(PeerRefusal) -> (transfer: PeerTransfer, isNew: Bool)
    /// Changes what holds for one transfer.
    func change(_ hash: InfoHash, _ change: PeerTransferChange) async throws(PeerRefusal) -> PeerTransferDetail
    /// Has a transfer do something.
    func order(_ hash: InfoHash, _ action: PeerAction) async throws(PeerRefusal) -> PeerTransfer
    /// Names a peer of a torrent.
    func addPeer(_ hash: InfoHash, _ address: SocketAddress) async throws(PeerRefusal) -> PeerTransfer
    /// Forgets a transfer, and deletes the torrent's own files where that is wanted.
    func remove(_ hash: InfoHash, deletingData: Bool) async throws(PeerRefusal)
    /// The .torrent file of a transfer.
    func file(_ hash: InfoHash) async throws(PeerRefusal) -> [UInt8]
    /// What is in a folder below the peer's directory.
    func folder(_ path: String) async throws(PeerRefusal) -> PeerFolder
    /// Begins to make a torrent.
    func create(_ order: PeerCreationOrder) async throws(PeerRefusal) -> PeerCreation
    /// Cancels a torrent that is being made, or forgets one that is done.
    func endCreation(_ id: String) async throws(PeerRefusal)
    /// The .torrent file that was made.
    func creationFile(_ id: String) async throws(PeerRefusal) -> [UInt8]
    /// Changes the limits for all transfers together.
    func change(maxDown: PeerChange<Int>, maxUp: PeerChange<Int>) async throws(PeerRefusal) -> PeerSettings
}
