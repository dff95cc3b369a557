// What happened in a simulated cluster.

import Primitives

/// What happened in a simulated cluster, for pictures (a space-time diagram) and captures (a file of datagrams).
public struct History: Sendable, Hashable {
    /// Something that happened to one tracker.
    public struct Transition: Sendable, Hashable {
        /// Since the world began.
        public var time: Instant
        /// The tracker's place, from 0.
        public var node: Int
        /// What it was.
        public var kind: Kind
        /// In a few words.
        public var text: String
    }

    /// What can happen to one tracker.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        case started
        case died
        case stopped
        case paused
        case busLost
        case busConnected
        case stands
        case becameMaster
        case steppedDown
        case follows
        case committed
        case transfer
        case aborted
        case storageFailed
        case clockStep
        case suspects
        case fenced
        case other
    }

    /// A message between two trackers.
    public struct Transmission: Sendable, Hashable {
        /// When its sender gave it to the bus.
        public var sentAt: Instant
        /// nil where it was lost, or nobody was there.
        public var receivedAt: Instant?
        /// The sender's place.
        public var from: Int
        /// The receiver's place.
        public var to: Int
        /// In the words of the design: KEEPALIVE, PREPARE and so on.
        public var name: String
        /// Which of `sentMessages` it is a copy of.
        public var letter: Int
    }

    /// A message as its sender gave it to the bus.
    public struct SentMessage: Sendable, Hashable {
        /// When it was given to the bus.
        public var time: Instant
        /// The sender's place.
        public var from: Int
        /// The sender's life, which is its session on the bus.
        public var incarnation: UInt64
        /// The incarnation that it is for; 0 for all.
        public var destination: UInt64
        /// To whom the bus was to bring it, one bit each.
        public var receivers: UInt32
        /// As `ClusterMessage` describes them.
        public var bytes: [UInt8]
    }

    /// Something that was wrong for a while by the simulator's doing.
    public struct Period: Sendable, Hashable {
        /// What was wrong.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// Links between trackers carry nothing, or hold it, or take longer.
            case links
            case down
            case held
            case noBus
            /// No client reaches the tracker.
            case dark
            case disk
        }

        /// What was wrong.
        public var kind: Kind
        /// When it began.
        public var from: Instant
        /// nil where it had not ended when the run did.
        public var until: Instant?
        /// Places.
        public var trackers: [Int]
        /// Whose doing, and what, and between whom.
        public var text: String
    }

    /// A datagram between a client and a tracker, or the group.
    public struct Capture: Sendable, Hashable {
        /// When it was seen.
        public var time: Instant
        /// Who sent it.
        public var source: SocketAddress
        /// To whom it was sent.
        public var destination: SocketAddress
        /// Without headers.
        public var bytes: [UInt8]
    }

    /// In order of time.
    public var transitions: [Transition] = []
    /// In the order in which they were sent.
    public var transmissions: [Transmission] = []
    /// In order of time.
    public var captures: [Capture] = []
    /// In the order in which they were sent.
    public var sentMessages: [SentMessage] = []
    /// In the order of their beginnings.
    public var periods: [Period] = []

    /// Nothing has happened.
    public init() {}
}
