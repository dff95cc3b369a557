// Bounds on what strangers can make an HTTP listener hold.

import Primitives

/// Bounds on what strangers can make an HTTP listener hold: memory, file descriptors and time.
///
/// NIO leaves most of these open. Who enforces each:
///
/// | bound | enforced by |
/// |---|---|
/// | `connections` | `AcceptGate`: one that brings nothing makes room, else further ones wait in `backlog` |
/// | `connectionsPerAddress` | `ConnectionTable`: one more is closed at once |
/// | `fieldByteCount`, `headByteCount`, `fieldCount` | `NIOHTTPDecoderLimitConfiguration`: 400 and close |
/// | socket buffers | SO_RCVBUF and SO_SNDBUF |
/// | `bodyByteCount`, `largeBodies`, `largeBodiesPerSender` | `HTTPConnectionChannel`: 413, 503, 429 |
/// | `idle`, `wholeBody`, `bodyPace`, `writeStall`, `linger` | `ConnectionHandler` |
/// | `answer`, `waitingRequests` | `BoundedWait` |
///
/// A connection holds at most about 100 KB in the process (a read of 16 KiB, the head being parsed, some parsed parts)
/// and 128 KB in the system. Measured: 2,000 connections take 29 MB when idle, 106 MB with 16 KB of a head each.
public struct HTTPLimits: Sendable, Equatable {
    /// Connections at once, for one listener; never more than a quarter of the files that the process may open.
    public var connections = 2_048
    /// Connections at once from one IPv4 address or one IPv6 /64, trusted ones apart: so that no stranger takes all,
    /// and a household or a carrier's gateway still has enough.
    public var connectionsPerAddress = 256
    /// Connections that wait to be accepted.
    public var backlog = 1_024
    /// Bytes of the request's target, and of any one header field.
    ///
    /// A scrape of 74 info hashes takes 5,262.
    public var fieldByteCount = 8_192
    /// Bytes of target and header together.
    public var headByteCount = 16_384
    /// Fields of one request's header.
    public var fieldCount = 64
    /// Bytes of a request's body, at most; 0 where none is read.
    public var bodyByteCount = 0
    /// Bodies of more than `smallBodyByteCount` that are read at once.
    public var largeBodies = 4
    /// Of them, those of one sender: so that nobody who sends slowly takes the room of all.
    public var largeBodiesPerSender = 2
    /// How long a body may take to bring `bodyPaceByteCount` bytes, or its end; then it is refused (408).
    public var bodyPace = Duration.seconds(10)
    /// How long a connection may take to bring a request with its body, however steadily it comes.
    public var wholeBody = Duration.seconds(120)
    /// How long a connection may take to bring a whole request, be it the first or a further one.
    public var idle = Duration.seconds(20)
    /// How long a client may take nothing of what is sent to it.
    public var writeStall = Duration.seconds(20)
    /// How long the tracker's logic may take over a request; then the client is told to try again.
    public var answer = Duration.seconds(10)
    /// Requests that wait for the logic, those given up but not yet answered among them.
    public var waitingRequests = 8_192

    /// How long a client has to take the last answer and close, before we do: a close with unread bytes would reset
    /// the connection and could destroy the answer on its way.
    package var linger = Duration.seconds(1)
    /// How long requests may still wait for an answer in a shutdown, before they are told to go elsewhere.
    package var shutdownAnswer = Duration.milliseconds(250)
    /// How long after the beginning of a shutdown the last connection is closed: a stop may take a second.
    package var shutdownClose = Duration.milliseconds(450)
    /// Up to here a body counts as small: no more than a head.
    static let smallBodyByteCount = 16_384
    /// Bytes of a body that have to come in each `bodyPace`.
    static let bodyPaceByteCount = 16_384
    /// The largest read, and so what one stranger's bytes can take before they are looked at.
    static let readByteCount = 16_384
    /// What the system keeps of a connection's bytes, each way; left alone it would keep up to 6 MB.
    ///
    /// The longest reply, 200 peers as dictionaries, has 15 KB. Linux doubles the number for its own needs.
    static let socketBufferByteCount = 32_768

    /// The limits of the tracker's own listener.
    public init() {}

    /// `connections`, or less where the process may not open so many files.
    var effectiveConnections: Int {
        let files = ProcessMetrics.maxFileCount()
        return files == 0 ? connections : max(16, min(connections, Int(clamping: files / 4)))
    }
}
