// More values of the peer's API: torrents that are made, folders, totals and settings.

/// A torrent that is being made, or was.
public struct PeerCreation: Encodable, Sendable, Equatable {
    /// How far it is.
    public enum State: String, Encodable, Sendable {
        case hashing
        case publishing
        case done
        case failed
        case cancelled

        /// Whether nothing will come of it any more.
        public var isEnd: Bool {
            switch self {
            case .hashing, .publishing: false
            case .done, .failed, .cancelled: true
            }
        }
    }

    /// What the API calls it.
    public var id: String
    /// Below the peer's directory.
    public var path: String
    /// The last part of the path.
    public var name: String
    /// How far it is.
    public var state = State.hashing
    /// From 0 to 1, of the hashing.
    public var progress = 0.0
    /// Bytes that are hashed in all; 0 while nobody has counted them.
    public var byteCount = 0
    /// Bytes a second that are hashed.
    public var rate = 0
    /// Until all is hashed.
    @OrNull public var secondsLeft: Int?
    /// Why it has failed.
    @OrNull public var reason: String?
    /// Of the torrent that was made.
    @OrNull public var hash: String?
    /// Of the torrent that was made; with the cluster's trackers where it was published.
    @OrNull public var magnet: String?
    /// The console that has taken it.
    @OrNull public var published: String?
    /// Whether it is a transfer here.
    public var isSeeding = false

    /// One that begins.
    public init(id: String, path: String, name: String) { (self.id, self.path, self.name) = (id, path, name) }
}

/// What is in a folder.
public struct PeerFolder: Encodable, Sendable, Equatable {
    /// Entries that are listed.
    public static let maxEntries = 1_000

    /// A file or a folder; links, other special files and hidden names are left out.
    public struct Entry: Encodable, Sendable, Equatable {
        /// As the disk has it.
        public var name: String
        /// Whether it is a folder.
        public var isFolder: Bool
        /// Of a file; 0 for a folder.
        public var byteCount: Int
        /// Milliseconds since 1970.
        public var modifiedAt: Int64

        /// Takes the fields as they are.
        public init(name: String, isFolder: Bool, byteCount: Int, modifiedAt: Int64) {
            (self.name, self.isFolder, self.byteCount, self.modifiedAt) = (name, isFolder, byteCount, modifiedAt)
        }
    }

    /// Below the peer's directory; empty for the directory itself.
    public var path: String
    /// By name, folders first.
    public var entries: [Entry]
    /// Whether there are more.
    public var isCut: Bool

    /// Takes the fields as they are.
    public init(path: String, entries: [Entry], isCut: Bool) {
        (self.path, self.entries, self.isCut) = (path, entries, isCut)
    }
}

/// All transfers together.
public struct PeerTotals: Encodable, Sendable, Equatable {
    /// Bytes a second.
    public var downRate = 0
    /// Bytes a second.
    public var upRate = 0
    /// Since they were added.
    public var received = 0
    /// Since they were added.
    public var sent = 0
    /// How many there are.
    public var transfers = 0
    /// Those of them that are neither paused nor failed.
    public var active = 0

    /// Adds them up.
    public init(_ all: [PeerTransfer]) {
        for transfer in all {
            downRate += transfer.downRate
            upRate += transfer.upRate
            received += transfer.received
            sent += transfer.sent
            transfers += 1
            if transfer.state != .paused, transfer.state != .failed { active += 1 }
        }
    }
}

/// What holds for the whole peer.
public struct PeerSettings: Encodable, Sendable, Equatable {
    /// Bytes a second; nil for no limit.
    @OrNull public var maxDown: Int?
    /// Bytes a second; nil for no limit.
    @OrNull public var maxUp: Int?
    /// Where other peers may call.
    public var listen: [String]
    /// Where all torrents lie; absolute.
    public var directory: String
    /// Whether the local network is told of torrents (BEP 14).
    public var localDiscovery: Bool
    /// Of the program.
    public var version: String

    /// No limits.
    public init(listen: [String], directory: String, localDiscovery: Bool, version: String) {
        (self.listen, self.directory) = (listen, directory)
        (self.localDiscovery, self.version) = (localDiscovery, version)
    }
}
