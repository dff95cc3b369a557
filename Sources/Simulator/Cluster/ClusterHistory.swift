/// What happened in a simulated cluster, for pictures (a space-time diagram) and captures (a file of datagrams).

import Primitives

public struct ClusterHistory: Sendable, Hashable {
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

    public init() {}
}
