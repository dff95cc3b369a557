// What the node's loop knows of a bus (docs/bus.md), whatever the bus is made of.

import Wire

/// A channel between trackers: may lose, repeat, delay and reorder; tells whether it works.
public protocol Bus: Sendable {
    /// Begins to connect and goes on until `stop`; tells `inbox` what comes. Called once.
    func start(inbox: any BusInbox)
    /// Takes encoded cluster messages to send, in order; never blocks. Over its bound, drops the oldest and counts
    /// them.
    func send(_ messages: [BusMessage])
    /// Sends what waits, for at most a second, closes, and returns when no more calls to the inbox come.
    func stop() async
    /// For status and metrics.
    var status: BusStatus { get }
}

/// A message on its way to the bus.
public struct BusMessage: Sendable, Equatable {
    /// nil: everybody on the bus; else the life (id, incarnation) that it is for: a bus that can, delivers only there.
    public var destination: Life?
    /// One encoded `ClusterMessage`, no MAC.
    public var bytes: [UInt8]

    /// Takes the fields as they are.
    public init(destination: Life?, bytes: [UInt8]) {
        self.destination = destination
        self.bytes = bytes
    }
}

/// Called from the bus's own threads; must not block.
public protocol BusInbox: Sendable {
    /// Authentic messages, as sent.
    func busReceived(_ messages: [[UInt8]])
    /// Authentic frames of trackers that speak another version of the bus; nothing else of them is known.
    func busRefused(_ foreigners: [BusFrameOrigin])
    func busConnected()
    /// It was lost, or cannot be found at the start; told again where the reason changes.
    ///
    /// `reason` in words for the log: what, why, what to do. Never holds credentials.
    func busLost(reason: String)
}

extension BusInbox {
    /// Foreigners are of no interest, unless an inbox says otherwise.
    public func busRefused(_ foreigners: [BusFrameOrigin]) {}
}

/// How a bus fares; totals since the process started.
public struct BusStatus: Sendable, Equatable, Codable {
    /// Whether the bus works now.
    public var isConnected: Bool
    /// Where to, without credentials: `stomp://broker:61613`, `multicast://239.…:…`, `embedded`.
    public var endpoint: String
    /// Which of its brokers it uses, as `HOST:PORT`; nil where it has none, or is not connected.
    public var broker: String?
    /// Messages handed to the network.
    public var sent: UInt64
    /// Authentic messages handed to the inbox.
    public var received: UInt64
    /// Messages that were to be sent and were not, because more waited than there is room for.
    public var dropped: UInt64
    /// Frames with a bad MAC, of a foreign cluster, malformed, or replayed.
    public var rejected: UInt64
    /// Lost datagrams that were asked for again, and came.
    public var repaired: UInt64
    /// How often the bus was found again after it had been lost.
    public var reconnections: UInt64
    /// Why it was last lost, or could not be reached.
    public var lastProblem: String?
    /// Whose frames were refused for their key or their cluster's name.
    public var refusals: [BusRefusal] = []

    /// A bus that was never connected.
    public init(endpoint: String) {
        isConnected = false
        self.endpoint = endpoint
        (sent, received, dropped, rejected, repaired, reconnections) = (0, 0, 0, 0, 0, 0)
        lastProblem = nil
    }
}
