// What the peer's page is shown: the values of its API, which go out as they are.

import Primitives
import Wire

/// A value that JSON has as `null` where it is not there, rather than leaving its key out.
@propertyWrapper
public struct OrNull<Value: Encodable & Sendable & Equatable>: Encodable, Sendable, Equatable {
    /// Nil for `null`.
    public var wrappedValue: Value?

    /// Takes the value as it is.
    public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    /// Writes the value, or `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
    }
}

/// A transfer, as a list shows it.
///
/// Sizes are bytes, rates bytes a second, times milliseconds since 1970.
public struct PeerTransfer: Encodable, Sendable, Equatable {
    /// What a transfer does, or waits for.
    public enum State: String, Encodable, Sendable {
        case checking
        case metadata
        case downloading
        case seeding
        case paused
        case waitingForPeers
        case waitingForDisk
        case verifying
        case failed
        case stopping
    }

    /// 40 hexadecimal digits.
    public var hash: String
    /// For people.
    public var name = ""
    /// What it does, or waits for.
    public var state = State.paused
    /// Of `waitingForDisk` and `failed`: why.
    @OrNull public var reason: String?
    /// From 0 to 1: of what is wanted, or of the check that is under way.
    public var progress = 0.0
    /// Of all files; nil while the metadata is not known.
    @OrNull public var byteCount: Int?
    /// Bytes that are wanted and not here.
    @OrNull public var missing: Int?
    /// Since the transfer was added.
    public var received = 0
    /// Since the transfer was added.
    public var sent = 0
    /// Bytes that came and were of no use, since the program has started.
    public var wasted = 0
    /// Smoothed.
    public var downRate = 0
    /// Smoothed.
    public var upRate = 0
    /// Until all that is wanted is here.
    @OrNull public var secondsLeft: Int?
    /// Sent for received; for the size, where nothing was received.
    @OrNull public var ratio: Double?
    /// Connections.
    public var peers = 0
    /// Peers that are known, connected or not.
    public var knownPeers = 0
    /// As the tracker says that answered last.
    @OrNull public var seeders: Int?
    /// As the tracker says that answered last.
    @OrNull public var leechers: Int?
    /// The URL of the tracker that answered last.
    @OrNull public var tracker: String?
    /// Where that answer came from.
    @OrNull public var trackerAddress: String?
    /// When it was added.
    public var addedAt: Int64 = 0
    /// When all that was wanted was here first.
    @OrNull public var completedAt: Int64?
    /// Below the peer's directory; empty for the directory itself.
    public var directory = ""
    /// Whether peers may come from the trackers only (BEP 27).
    public var isPrivate = false
    /// What it waits for, in a sentence.
    @OrNull public var problem: String?

    /// A transfer of which only the name of its swarm is known.
    public init(hash: InfoHash) { self.hash = "\(hash)" }
}

/// All that is told of one transfer.
public struct PeerTransferDetail: Encodable, Sendable, Equatable {
    /// Files that are listed; of more, only the number is told.
    public static let maxFiles = 2_000
    /// Connections that are listed.
    public static let maxPeers = 200

    /// What pieces there are.
    public struct Pieces: Encodable, Sendable, Equatable {
        /// How many.
        public var count: Int
        /// Bytes of each but the last.
        public var length: Int
        /// Those that are here: a bit each, as BEP 3 has them, in Base64.
        public var bits: String

        /// Takes the fields as they are.
        public init(count: Int, length: Int, bits: String) {
            (self.count, self.length, self.bits) = (count, length, bits)
        }
    }

    /// A file; padding is left out.
    public struct File: Encodable, Sendable, Equatable {
        /// Its place in the torrent.
        public var index: Int
        /// For people.
        public var path: String
        /// Its length.
        public var byteCount: Int
        /// Bytes of it that are verified.
        public var verified: Int
        /// Whether it is wanted.
        public var isWanted: Bool

        /// Takes the fields as they are.
        public init(index: Int, path: String, byteCount: Int, verified: Int, isWanted: Bool) {
            (self.index, self.path, self.byteCount) = (index, path, byteCount)
            (self.verified, self.isWanted) = (verified, isWanted)
        }
    }

    /// A connection to another peer.
    public struct Peer: Encodable, Sendable, Equatable {
        /// Who wants what of whom.
        public struct Flags: Encodable, Sendable, Equatable {
            /// Whether it is given nothing.
            public var weChoke = true
            /// Whether it has something that is wanted here.
            public var weWant = false
            /// Whether it gives nothing.
            public var theyChoke = true
            /// Whether it wants something that is here.
            public var theyWant = false
            /// Whether it has called.
            public var incoming = false

            /// As a connection begins.
            public init() {}
        }

        /// With the port.
        public var address: String
        /// What it says that it is; empty where it says nothing.
        public var client: String
        /// That it gives.
        public var downRate = 0
        /// That it is given.
        public var upRate = 0
        /// From it.
        public var received = 0
        /// To it.
        public var sent = 0
        /// From 0 to 1: how much of the torrent it has.
        public var progress = 0.0
        /// Who wants what of whom.
        public var flags = Flags()

        /// A connection over which nothing has gone yet.
        public init(address: String, client: String) { (self.address, self.client) = (address, client) }
    }

    /// A tracker of the torrent.
    public struct Tracker: Encodable, Sendable, Equatable {
        /// As written.
        public var url: String
        /// From 0.
        public var tier: Int
        /// Where the last answer came from.
        @OrNull public var address: String?
        /// When it answered last.
        @OrNull public var answeredAt: Int64?
        /// As it says.
        @OrNull public var seeders: Int?
        /// As it says.
        @OrNull public var leechers: Int?
        /// What went wrong last.
        @OrNull public var problem: String?

        /// A tracker that has not been asked.
        public init(url: String, tier: Int) { (self.url, self.tier) = (url, tier) }
    }

    /// A mirror of the data (BEP 19).
    public struct WebSeed: Encodable, Sendable, Equatable {
        /// As written.
        public var url: String
        /// From it.
        public var received: Int
        /// What went wrong last.
        @OrNull public var problem: String?

        /// Takes the fields as they are.
        public init(url: String, received: Int, problem: String?) {
            (self.url, self.received) = (url, received)
            _problem = OrNull(wrappedValue: problem)
        }
    }

    /// What holds for the transfer alone.
    public struct Limits: Encodable, Sendable, Equatable {
        /// Nil for none.
        @OrNull public var maxDown: Int?
        /// Nil for none.
        @OrNull public var maxUp: Int?
        /// Connections at most.
        public var maxPeers: Int
        /// At which seeding ends; nil to seed for ever.
        @OrNull public var ratio: Double?

        /// Takes the fields as they are.
        public init(maxDown: Int?, maxUp: Int?, maxPeers: Int, ratio: Double?) {
            _maxDown = OrNull(wrappedValue: maxDown)
            _maxUp = OrNull(wrappedValue: maxUp)
            self.maxPeers = maxPeers
            _ratio = OrNull(wrappedValue: ratio)
        }
    }

    /// As in the list.
    public var transfer: PeerTransfer
    /// Nil while the metadata is not known.
    @OrNull public var pieces: Pieces?
    /// Those that are wanted, as `Pieces.bits`.
    @OrNull public var wantedBits: String?
    /// The first `maxFiles`.
    public var files: [File] = []
    /// How many files there are.
    public var fileCount = 0
    /// The first `maxPeers`, the fastest first.
    public var peerList: [Peer] = []
    /// Tier by tier.
    public var trackers: [Tracker] = []
    /// In the torrent's order.
    public var webSeeds: [WebSeed] = []
    /// With all trackers that are known.
    public var magnet: String
    /// What holds for the transfer alone.
    public var limits: Limits

    /// A transfer of which nothing else is known.
    public init(_ transfer: PeerTransfer, magnet: String, limits: Limits) {
        (self.transfer, self.magnet, self.limits) = (transfer, magnet, limits)
    }

    private enum CodingKeys: String, CodingKey {
        case pieces, wantedBits, files, fileCount, peerList, trackers, webSeeds, magnet, limits
    }

    /// Writes the transfer's own keys and those of the detail side by side.
    public func encode(to encoder: any Encoder) throws {
        try transfer.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(_pieces, forKey: .pieces)
        try container.encode(_wantedBits, forKey: .wantedBits)
        try container.encode(files, forKey: .files)
        try container.encode(fileCount, forKey: .fileCount)
        try container.encode(peerList, forKey: .peerList)
        try container.encode(trackers, forKey: .trackers)
        try container.encode(webSeeds, forKey: .webSeeds)
        try container.encode(magnet, forKey: .magnet)
        try container.encode(limits, forKey: .limits)
    }
}
