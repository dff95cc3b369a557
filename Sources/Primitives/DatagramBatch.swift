/// One datagram of a batch: where it came from or goes, and where its bytes lie.
@frozen
public struct Datagram: Sendable, Hashable {
    /// Where it came from, or where it goes.
    public var remote: SocketAddress
    /// The address of ours that was asked, so that the reply leaves from there (docs/operations.md);
    /// `.unspecified` where the socket has only one.
    public var local: SocketAddress
    /// Where its bytes begin in the batch.
    public var offset: UInt32
    /// How many bytes it has.
    public var byteCount: UInt16
    /// Which of the owner's sockets it belongs to.
    public var socket: UInt16

    /// Takes the fields as they are; that `offset` and `byteCount` lie within the batch is the caller's to see to.
    @inlinable
    public init(remote: SocketAddress, local: SocketAddress, offset: UInt32, byteCount: UInt16, socket: UInt16) {
        self.remote = remote
        self.local = local
        self.offset = offset
        self.byteCount = byteCount
        self.socket = socket
    }
}

/// Many datagrams in one buffer: what the hot path takes in and gives out, so that no datagram costs an allocation.
///
/// The buffer is kept and filled again.
@frozen
public struct DatagramBatch: Sendable, Hashable {
    /// Room for the bytes of all datagrams; only those that a `Datagram` names mean anything.
    ///
    /// Received ones stand in slots of equal length, sent ones one behind another.
    public var bytes: [UInt8]
    /// The datagrams in the order in which they came, or are to go.
    public var datagrams: [Datagram]
    /// Where the next appended datagram begins in `bytes`.
    @usableFromInline var end: Int

    /// An empty batch without room.
    @inlinable
    public init() {
        bytes = []
        datagrams = []
        end = 0
    }

    /// Whether the batch holds no datagram; its room may be large all the same.
    @inlinable
    public var isEmpty: Bool { datagrams.isEmpty }

    /// Forgets the datagrams and keeps the room.
    @inlinable
    public mutating func removeAll() {
        datagrams.clear()
        end = 0
    }

    /// Appends a datagram that `fill` writes in place.
    ///
    /// - Parameters:
    ///   - remote: where it goes.
    ///   - local: the address of ours that it leaves from; `.unspecified` leaves the choice to the kernel.
    ///   - socket: which of the owner's sockets sends it.
    ///   - limit: the most bytes that it can have, up to 65,535.
    ///   - fill: writes into room for `limit` bytes and returns how many it wrote.
    @inlinable
    public mutating func append(
        to remote: SocketAddress, from local: SocketAddress, socket: UInt16, limit: Int,
        fill: (UnsafeMutableRawBufferPointer) -> Int
    ) {
        if bytes.count < end + limit { makeRoom(end + limit) }
        let start = end
        let count = bytes.withUnsafeMutableBytes { room in
            fill(UnsafeMutableRawBufferPointer(rebasing: room[start..<start + limit]))
        }
        precondition(count <= limit, "a datagram was written past its limit")
        datagrams.append(
            Datagram(
                remote: remote, local: local, offset: UInt32(start), byteCount: UInt16(count), socket: socket))
        end = start + count
    }

    @usableFromInline
    mutating func makeRoom(_ count: Int) {
        bytes.append(contentsOf: repeatElement(0, count: max(count, bytes.count * 2) - bytes.count))
    }

    /// Appends a datagram whose bytes are ready.
    ///
    /// For tests and simulations; the hot path writes in place.
    ///
    /// - Parameters:
    ///   - payload: at most 65,535 bytes.
    ///   - remote: where it comes from or goes.
    ///   - local: the address of ours that was asked, or that it leaves from.
    ///   - socket: which of the owner's sockets it belongs to.
    public mutating func append(
        _ payload: [UInt8], remote: SocketAddress, local: SocketAddress = .unspecified, socket: UInt16 = 0
    ) {
        append(to: remote, from: local, socket: socket, limit: payload.count) { room in
            room.copyBytes(from: payload)
            return payload.count
        }
    }

    /// The bytes of one datagram, as an array of its own; `index` is its place in `datagrams`.
    public func payload(_ index: Int) -> [UInt8] {
        let datagram = datagrams[index]
        return Array(bytes[Int(datagram.offset)..<Int(datagram.offset) + Int(datagram.byteCount)])
    }
}
