/// What became of the datagrams of a socket, in all since it was bound.
public struct DatagramCounters: Sendable, Hashable {
    /// Handed to the caller.
    public var received: UInt64 = 0
    /// Longer than a slot of the batch, and dropped: no request of a client is.
    public var truncated: UInt64 = 0
    /// Taken by the kernel.
    public var sent: UInt64 = 0
    /// Not sent, because the socket stayed full (EAGAIN, ENOBUFS, ENOMEM).
    public var noRoom: UInt64 = 0
    /// Not sent, because nobody there listens (ECONNREFUSED).
    public var refused: UInt64 = 0
    /// Not sent, because no route leads there, or the address is of the other family.
    public var unreachable: UInt64 = 0
    /// Not sent, because a firewall or a security module forbids it (EPERM, EACCES).
    public var forbidden: UInt64 = 0
    /// Not sent, because it is longer than the path allows (EMSGSIZE).
    public var tooLong: UInt64 = 0
    /// Not sent, for another reason.
    public var failed: UInt64 = 0

    /// Nothing has been counted.
    public init() {}

    /// Datagrams that were to be sent and were not.
    public var unsent: UInt64 { noRoom + refused + unreachable + forbidden + tooLong + failed }

    /// Adds the counts of another socket.
    public static func += (left: inout DatagramCounters, right: DatagramCounters) {
        left.received += right.received
        left.truncated += right.truncated
        left.sent += right.sent
        left.noRoom += right.noRoom
        left.refused += right.refused
        left.unreachable += right.unreachable
        left.forbidden += right.forbidden
        left.tooLong += right.tooLong
        left.failed += right.failed
    }
}
