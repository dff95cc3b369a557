// What a tracker sees of its cluster.

/// The cluster as one tracker sees it, as `GET /api/v1/cluster` tells it (docs/openapi.yaml).
public struct ClusterView: Sendable, Hashable, Decodable {
    /// The cluster's; nil for a tracker of an earlier version.
    public var name: String?
    /// How the bus to the other trackers fares (`BusStatus`); totals since the process started.
    public struct Bus: Sendable, Hashable, Decodable {
        /// Whether the bus works now.
        public var isConnected: Bool
        /// Where to, without a login.
        public var endpoint: String
        /// Of several brokers, the one in use; nil where there is none, and for a tracker that does not tell.
        public var broker: String?
        /// Messages handed to the network.
        public var sent: UInt64
        /// Authentic messages that came.
        public var received: UInt64
        /// Messages that were not sent, because too many waited.
        public var dropped: UInt64
        /// Frames with a bad MAC, of another cluster, malformed, or replayed.
        public var rejected: UInt64
        /// Lost datagrams that were asked for again, and came.
        public var repaired: UInt64
        /// How often the bus was found again after it had been lost.
        public var reconnections: UInt64
        /// Why it was last lost, or could not be reached; nil where it never was.
        public var lastProblem: String?
    }

    /// Cluster messages, counted by this tracker since its process started.
    public struct Messages: Sendable, Hashable, Decodable {
        /// For this tracker or for all.
        public var received: UInt64
        /// To one tracker or to all.
        public var sent: UInt64
        /// Of no use, though their frames were authentic.
        public var malformed: UInt64
        /// Of trackers that speak another version; nil for a tracker that does not count them.
        public var otherVersion: UInt64?
        /// Not sent, or not taken, for want of room.
        public var dropped: UInt64
    }

    /// One tracker as the one that was asked sees it (`TrackerSight`).
    public struct Tracker: Sendable, Hashable, Decodable {
        /// Its number; 0 where it has none yet.
        public var id: UInt32
        /// Of this life of it: hexadecimal.
        public var incarnation: String
        /// Whether it is the one that was asked.
        public var isThis: Bool
        /// `newcomer`, `slave`, `candidate`, `master` or `down`.
        public var role: String
        /// Of its last message.
        public var epoch: StatusReport.Epoch
        /// Since its last message; 0 for the one that was asked.
        public var silentSeconds: Double
        /// The last entry that it had applied when it last said so.
        public var commitIndex: UInt64
        /// Entries that it was behind the one that was asked when it last said where it is, never negative; of that one
        /// itself, entries that it is behind its master.
        public var lag: Int64
        /// `same`, `ahead`, `different` or `unknown`.
        public var agreement: String
        /// Whether it holds the whole state, as it says.
        public var isWhole: Bool
        /// Whether its OK counts.
        public var hasVote: Bool
        /// What it says of itself; nil where it has said nothing yet.
        public var report: TrackerSelfReport?
    }

    /// The number of the tracker that was asked.
    public var id: UInt32
    /// `quorum`, `survivor` or `alone`.
    public var mode: String
    /// The highest that it has promised.
    public var epoch: StatusReport.Epoch
    /// 0 while there is none.
    public var master: UInt32
    /// Whether it answers clients.
    public var isServing: Bool
    /// Whether it is cut off from the others, or has not been welcomed since.
    public var isFenced: Bool
    /// The ids that vote, as far as it knows.
    public var voters: [UInt32]
    /// The last entry that it has applied.
    public var commitIndex: UInt64
    /// The state's fingerprint there: hexadecimal.
    public var digest: String
    /// Nil for a tracker that is alone.
    public var bus: Bus?
    /// Nil for a tracker that is alone.
    public var messages: Messages?
    /// All that it has heard of and itself, by id.
    public var trackers: [Tracker]
    /// What is wrong, the cause of silence first; nil for a tracker of an earlier version.
    public var findings: [Finding]?

    /// Something that is wrong.
    public struct Finding: Sendable, Hashable, Decodable {
        /// For programs: the name of a `Finding.Code`.
        public var code: String
        /// Whether it is why nobody is answered there.
        public var isSilence: Bool
        /// For people: a sentence without its full stop.
        public var text: String
    }
}

/// What a tracker says of itself, to the others and to its console.
public struct TrackerSelfReport: Sendable, Hashable, Codable {
    /// How long something took lately, in seconds; zeros where there was none.
    public struct Latency: Sendable, Hashable, Codable {
        /// Half were faster.
        public var median: Double
        /// One of a hundred was slower.
        public var p99: Double
    }

    /// Of the program.
    public var version: String
    /// The name of the machine.
    public var host: String
    /// Where clients find it.
    public var clients: String
    /// Where its console listens; empty for nowhere.
    public var console: String
    /// Why it answers nobody; empty where it does.
    public var problem: String
    /// `disk` or `process`.
    public var durability: String
    /// `works`, `full`, `locked`, `readOnly` or `broken`.
    public var disk: String
    /// Announces answered in a second.
    public var announcesPerSecond: Int
    /// From the request to its answer.
    public var answerSeconds: Latency
    /// From the proposal of an entry, or its coming, until it is known to be decided.
    public var commitSeconds: Latency
    /// From the order to write until it is durable.
    public var writeSeconds: Latency
    /// From there over the bus to another tracker and back.
    public var roundTripSeconds: Latency
    /// File descriptors that its process has open.
    public var openFiles: Int
    /// How many it may have open; 0 where that is not known.
    public var maxFiles: Int
    /// The smallest receive buffer of its UDP sockets, as the kernel grants it.
    public var receiveBufferBytes: Int
    /// Bytes of receive buffer that were asked for.
    public var wantedReceiveBufferBytes: Int
    /// In the last five minutes.
    public var lostDatagrams: UInt64
    /// By how much its clock is ahead of that of the tracker that tells this.
    public var clockDifferenceSeconds: Double
}
