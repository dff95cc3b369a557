/// What happened in a simulated cluster, for pictures (a space-time diagram) and captures (a file of datagrams).

import Primitives

public struct History: Sendable, Hashable {
    /// Something that happened to one tracker.
    public struct Transition: Sendable, Hashable {
        public var time: Instant
        public var node: Int
        public var kind: Kind
        /// In a few words.
        public var text: String
    }

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
        public var sentAt: Instant
        /// nil where it was lost, or nobody was there.
        public var receivedAt: Instant?
        public var from: Int
        public var to: Int
        /// In the words of the design: KEEPALIVE, PREPARE and so on.
        public var name: String
        /// Which of `letters` it is a copy of.
        public var letter: Int
    }

    /// A message as its sender gave it to the bus.
    public struct Letter: Sendable, Hashable {
        public var time: Instant
        public var from: Int
        /// The sender's life, which is its session on the bus.
        public var incarnation: UInt64
        /// The incarnation that it is for; 0 for all.
        public var destination: UInt64
        /// To whom the bus was to bring it, one bit each.
        public var receivers: UInt32
        public var bytes: [UInt8]
    }

    /// Something that was wrong for a while by the simulator's doing.
    public struct Period: Sendable, Hashable {
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

        public var kind: Kind
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
        public var time: Instant
        public var source: SocketAddress
        public var destination: SocketAddress
        public var bytes: [UInt8]
    }

    public var transitions: [Transition] = []
    public var transmissions: [Transmission] = []
    public var captures: [Capture] = []
    public var letters: [Letter] = []
    /// In the order of their beginnings.
    public var periods: [Period] = []

    public init() {}
}
