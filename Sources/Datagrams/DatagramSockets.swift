// The sockets of one server, used as one.

import Primitives

/// The sockets of one server, used as one.
///
/// It receives from all of them into one batch, and sends a mixed batch, each datagram from the socket that it names.
public final class DatagramSockets {
    /// `Datagram.socket` is an index of these.
    public let sockets: [DatagramSocket]
    /// Which socket is asked first; each in turn, so that a flooded one does not starve the others.
    private var first = 0

    /// Binds one socket an address.
    ///
    /// - Parameters:
    ///   - addresses: 0…64, in the order of `Datagram.socket`.
    ///   - groups: heard by the socket that is bound to all addresses on the group's port, or each by a further socket
    ///     that hears nothing else; several trackers of one host share its port. Replies leave from a unicast address
    ///     of this host.
    ///   - options: what is asked of the kernel for each of the sockets.
    /// - Throws: what the kernel refused; then none stays bound.
    public init(
        bind addresses: [SocketAddress], groups: [MulticastGroup] = [],
        options: DatagramSocket.Options = DatagramSocket.Options()
    ) throws(SocketError) {
        precondition(addresses.count + groups.count <= Poller.maxSocketCount, "a server has at most 64 sockets")
        var bound: [DatagramSocket] = []
        for address in addresses { bound.append(try DatagramSocket(bind: address, options: options)) }
        for group in groups {
            let everywhere = bound.first {
                $0.address.isUnspecified && $0.address.isIPv4 == group.address.isIPv4
                    && $0.address.port == group.address.port
            }
            if let everywhere {
                try everywhere.join(group)
                continue
            }
            var shared = options
            shared.sharesAddress = true
            let socket = try DatagramSocket(bind: group.address, options: shared)
            try socket.join(group)
            bound.append(socket)
        }
        sockets = bound
    }

    /// Has a poller wait for all of them; `Datagram.socket` is also the index in its `ReadySet`.
    public func register(with poller: Poller) {
        for (index, socket) in sockets.enumerated() { poller.add(socket, index: index) }
    }

    /// Takes what has arrived, without waiting, in place of what the batch had.
    ///
    /// - Parameters:
    ///   - batch: its bytes become `limit` slots of `DatagramSocket.slotByteCount`.
    ///   - limit: the most datagrams to take from all sockets together.
    ///   - ready: the sockets to ask; the others are left alone.
    /// - Returns: how many datagrams the batch has now.
    @discardableResult
    public func receive(into batch: inout DatagramBatch, limit: Int, from ready: ReadySet = .all) -> Int {
        batch.removeAll()
        guard !sockets.isEmpty else { return 0 }
        batch.makeSlots(limit)
        var slot = 0
        for turn in 0..<sockets.count where slot < limit {
            let index = (first + turn) % sockets.count
            guard ready.contains(index) else { continue }
            slot = sockets[index].append(to: &batch, from: slot, limit: limit, index: UInt16(index))
        }
        first = (first + 1) % sockets.count
        return batch.datagrams.count
    }

    /// Sends a batch in order, by runs of datagrams that name the same socket.
    public func send(_ batch: borrowing DatagramBatch) {
        var start = 0
        let count = batch.datagrams.count
        while start < count {
            let socket = batch.datagrams[start].socket
            var end = start + 1
            while end < count, batch.datagrams[end].socket == socket { end += 1 }
            precondition(Int(socket) < sockets.count, "a datagram names a socket that there is not")
            sockets[Int(socket)].send(batch, start..<end)
            start = end
        }
    }

    /// What became of the datagrams of all sockets together.
    public var counters: DatagramCounters {
        var sum = DatagramCounters()
        for socket in sockets { sum += socket.counters }
        return sum
    }

    /// See `DatagramSocket.lostByKernel`.
    public var lostByKernel: UInt64 { sockets.reduce(0) { $0 + $1.lostByKernel } }
}
