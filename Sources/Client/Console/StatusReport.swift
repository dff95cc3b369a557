// What a running tracker says of itself to those who ask its console.

/// A tracker's status, as `GET /api/v1/status` tells it (docs/openapi.yaml).
public struct StatusReport: Sendable, Hashable, Decodable {
    /// An address at which the tracker listens.
    public struct Listener: Sendable, Hashable, Decodable {
        /// `udp`, `http` or `api`.
        public var service: String
        /// With its port.
        public var address: String
    }

    /// The term of one master.
    public struct Epoch: Sendable, Hashable, Decodable {
        /// Counts up with each election.
        public var round: UInt64
        /// The id of the tracker that stood for it.
        public var id: UInt32
    }

    /// Totals since the process started; they only grow (`TrackerLogic.Counters`).
    public struct Counters: Sendable, Hashable, Decodable {
        /// BEP 15's connect requests that were answered.
        public var connects: UInt64
        /// Announces that were granted and answered by this tracker; those refused are errors.
        public var announces: UInt64
        /// Scrapes that were granted and answered by this tracker; those refused are errors.
        public var scrapes: UInt64
        /// Error replies that were sent.
        public var errors: UInt64
        /// Error replies that the limit for each address withheld.
        public var errorsWithheld: UInt64
        /// Datagrams that got silence: junk or forged.
        public var ignored: UInt64
        /// Requests dropped because too many were waiting.
        public var dropped: UInt64
        /// Requests given up because nobody could answer in time.
        public var timedOut: UInt64
        /// Peers that fell silent and were taken out.
        public var expired: UInt64
        /// Downloads completed.
        public var completed: UInt64
    }

    /// What is recorded of the tracker.
    public struct Recording: Sendable, Hashable, Decodable {
        /// `ring` or `none`.
        public var mode: String
        /// That can be replayed; nil where nothing can.
        public var seconds: Double?
        /// Of the ring.
        public var bytes: Int
        /// Why nothing can be replayed, where that is wanted.
        public var problem: String?
    }

    /// What the tracker's logic tells about itself (`NodeStatus`).
    public struct Node: Sendable, Hashable, Decodable {
        /// The tracker's number; 0 where it has none yet.
        public var id: UInt32
        /// `restoring`, `newcomer`, `slave`, `candidate`, `master`, `draining`, `failed` or `stopped`.
        public var role: String
        /// The highest that it has promised or stood for.
        public var epoch: Epoch
        /// The last entry that was decided and applied.
        public var commitIndex: UInt64
        /// The last entry of the log.
        public var lastIndex: UInt64
        /// The state's fingerprint: hexadecimal, equal on trackers that hold the same at the same index.
        public var digest: String
        /// `open`, `allow`, `deny` or `private`.
        public var accessMode: String
        /// Torrents with peers, or with a count of completed downloads.
        public var torrents: Int
        /// Peers of both families in all swarms.
        public var peers: Int
        /// Peers with an IPv4 address.
        public var peersIPv4: Int
        /// Peers with an IPv6 address.
        public var peersIPv6: Int
        /// Peers that have everything.
        public var seeders: Int
        /// Torrents that are known by name.
        public var registeredTorrents: Int
        /// The interval that clients are told now.
        public var intervalSeconds: Int
        /// Requests that wait for their entry.
        public var waitingRequests: Int
        /// Totals since the process started.
        public var counters: Counters
    }

    /// Of the program.
    public var version: String
    /// On the tracker's host.
    public var processID: Int
    /// When the process started, in the form of ISO 8601.
    public var startedAt: String
    /// Since then.
    public var uptimeSeconds: Double
    /// All addresses at which it listens.
    public var listeners: [Listener]
    /// Nil where its operator has not told it.
    public var advertised: String?
    /// Nil where the process cannot record.
    public var recording: Recording?
    /// What its logic tells.
    public var node: Node
    /// Nil for a tracker of an earlier version.
    public var cluster: ClusterView?
}
