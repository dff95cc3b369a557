/// Many datagrams in one buffer: what the hot path takes in and gives out, so that no datagram costs an
/// allocation. The buffer is kept and filled again.
@frozen
public struct Datagram: Sendable, Hashable {
    /// Where it came from, or where it goes.
    public var remote: SocketAddress
    /// The address of ours that was asked, so that the reply leaves from there (design 3.6);
    /// `.unspecified` where the socket has only one.
    public var local: SocketAddress
    /// Where its bytes begin in the batch.
    public var offset: UInt32
    /// How many bytes it has.
    public var byteCount: UInt16
    /// Which of the owner's sockets it belongs to.
    public var socket: UInt16

    @inlinable
    public init(remote: SocketAddress, local: SocketAddress, offset: UInt32, byteCount: UInt16, socket: UInt16) {
        self.remote = remote
        self.local = local
        self.offset = offset
        self.byteCount = byteCount
        self.socket = socket
    }
}

@frozen
public struct DatagramBatch: Sendable, Hashable {
    /// The bytes of all datagrams. Received ones stand in slots of equal length, sent ones one behind another.
    public var bytes: [UInt8]
    public var datagrams: [Datagram]

    @inlinable
    public init() {
        bytes = []
        datagrams = []
    }

    /// Forgets the datagrams and keeps the room.
    @inlinable
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        datagrams.removeAll(keepingCapacity: true)
    }

    /// Appends a datagram whose bytes are ready. For tests and simulations; the hot path writes in place.
    public mutating func append(
        _ payload: [UInt8], remote: SocketAddress, local: SocketAddress = .unspecified, socket: UInt16 = 0
    ) {
        datagrams.append(
            Datagram(
                remote: remote, local: local, offset: UInt32(bytes.count), byteCount: UInt16(clamping: payload.count),
                socket: socket))
        bytes.append(contentsOf: payload)
    }

    /// The bytes of one datagram, as an array of its own.
    public func payload(_ index: Int) -> [UInt8] {
        let datagram = datagrams[index]
        return Array(bytes[Int(datagram.offset)..<Int(datagram.offset) + Int(datagram.byteCount)])
    }
}
