// A bound UDP socket that takes in and gives out datagrams by the batch.

import Glibc
import Primitives

/// A bound UDP socket that takes in and gives out datagrams by the batch: one system call for many, and no allocation
/// once it is set up.
///
/// Nothing here waits: `receive` takes what is there, and a `Poller` says when there is something. Only `send` may
/// wait a little (`patience`) for a socket whose buffer is full, and then drops and counts: UDP may lose, and a
/// tracker that waits for one slow interface serves nobody.
///
/// Not `Sendable`: one thread owns it.
public final class DatagramSocket {
    /// How long a received datagram may be; longer ones are dropped and counted.
    ///
    /// An announce is 98 bytes, with what BEP 41 lets a client append some hundred more; the longest scrape is 1,496.
    public static let slotByteCount = 2048
    /// How long one `send` may wait in all for room in the socket's buffer, in milliseconds.
    static let patience: CInt = 5

    /// What is asked of the kernel for a socket.
    public struct Options: Sendable, Hashable {
        /// Asked of the kernel, which gives up to `net.core.rmem_max`, or all of it to CAP_NET_ADMIN.
        public var receiveBufferByteCount = 8 << 20
        /// Asked of the kernel, which gives up to `net.core.wmem_max`, or all of it to CAP_NET_ADMIN.
        public var sendBufferByteCount = 4 << 20
        /// The most that one system call takes, 1…1,024; more than about 64 gains nothing.
        public var datagramsPerCall = 128
        /// Whether others on this host may be bound to the same address: each hears what is sent to a group.
        public var sharesAddress = false

        /// The defaults: buffers for a busy tracker, and an address of one's own.
        public init() {}
    }

    /// Where the socket is bound; a port of 0 has become the one that the kernel chose.
    public let address: SocketAddress
    /// For a `Poller`.
    let descriptor: CInt
    /// Whether each datagram says which address of ours was asked: only of use where there may be several.
    let tellsAsked: Bool
    /// What became of the socket's datagrams since it was bound.
    public private(set) var counters = DatagramCounters()

    private let incoming: MessageRoom
    private let outgoing: MessageRoom
    /// Where the vectors of `incoming` point to, so that they are written only when a batch moved.
    private var preparedBase: UnsafeMutableRawPointer?

    /// Opens and binds a socket.
    ///
    /// - Parameters:
    ///   - address: `0.0.0.0` and `::` stand for all addresses of this host of that family; `::` does not stand for
    ///     IPv4 ones.
    ///     Port 0 lets the kernel choose.
    ///   - options: what is asked of the kernel; smaller buffers than asked for are no error.
    /// - Throws: what the kernel refused.
    public init(bind address: SocketAddress, options: Options = Options()) throws(SocketError) {
        let descriptor = socket(
            address.isIPv4 ? AF_INET : AF_INET6,
            CInt(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SocketError(.open, address: address, code: errno) }
        do throws(SocketError) {
            try Self.configure(descriptor, for: address, options)
            self.address = try Self.bound(descriptor, to: address)
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        tellsAsked = address.isUnspecified || address.isGroup
        incoming = MessageRoom(capacity: options.datagramsPerCall)
        outgoing = MessageRoom(capacity: options.datagramsPerCall)
        for index in 0..<incoming.capacity { incoming.reset(index, wantsControl: tellsAsked) }
    }

    deinit { close(descriptor) }

    private static func configure(
        _ descriptor: CInt, for address: SocketAddress, _ options: Options
    ) throws(SocketError) {
        func set(_ level: Int, _ option: CInt, _ value: Int) -> Bool {
            var value = CInt(clamping: value)
            return setsockopt(descriptor, CInt(level), option, &value, socklen_t(MemoryLayout<CInt>.size)) == 0
        }
        func need(_ name: String, _ isSet: Bool) throws(SocketError) {
            guard isSet else { throw SocketError(.configure(name), address: address, code: errno) }
        }
        if !set(Int(SOL_SOCKET), SO_RCVBUFFORCE, options.receiveBufferByteCount) {
            try need("SO_RCVBUF", set(Int(SOL_SOCKET), SO_RCVBUF, options.receiveBufferByteCount))
        }
        if !set(Int(SOL_SOCKET), SO_SNDBUFFORCE, options.sendBufferByteCount) {
            try need("SO_SNDBUF", set(Int(SOL_SOCKET), SO_SNDBUF, options.sendBufferByteCount))
        }
        if options.sharesAddress { try need("SO_REUSEADDR", set(Int(SOL_SOCKET), SO_REUSEADDR, 1)) }
        hearOnlyJoinedGroups(descriptor, isIPv4: address.isIPv4)
        if address.isIPv4 {
            if address.isUnspecified || address.isGroup {
                try need("IP_PKTINFO", set(Int(IPPROTO_IP), IP_PKTINFO, 1))
            }
        } else {
            // Each family has a socket of its own, so that either can be left out, and neither hides the other.
            try need("IPV6_V6ONLY", set(Int(IPPROTO_IPV6), IPV6_V6ONLY, 1))
            if address.isUnspecified || address.isGroup {
                try need("IPV6_RECVPKTINFO", set(Int(IPPROTO_IPV6), IPV6_RECVPKTINFO, 1))
            }
        }
    }

    /// Binds a socket.
    ///
    /// - Parameters:
    ///   - descriptor: of a socket that is not bound yet.
    ///   - address: where to; port 0 lets the kernel choose.
    /// - Returns: the address that the socket got.
    /// - Throws: what the kernel refused.
    private static func bound(_ descriptor: CInt, to address: SocketAddress) throws(SocketError) -> SocketAddress {
        var code: CInt = 0
        let result = withUnsafeTemporaryAllocation(byteCount: MessageRoom.nameStride, alignment: 16) { room in
            let name = room.baseAddress!
            var length = address.write(socketName: name, isIPv4: address.isIPv4)
            let raw = name.assumingMemoryBound(to: sockaddr.self)
            guard bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: raw), length) == 0 else {
                code = errno
                return address
            }
            length = socklen_t(MessageRoom.nameStride)
            guard getsockname(descriptor, __SOCKADDR_ARG(__sockaddr__: raw), &length) == 0 else {
                code = errno
                return address
            }
            return SocketAddress(socketName: name)
        }
        guard code == 0 else { throw SocketError(.bind, address: address, code: code) }
        return result
    }
}

// MARK: - Receiving

extension DatagramSocket {
    /// Takes what has arrived, without waiting, in place of what the batch had.
    ///
    /// - Parameters:
    ///   - batch: its bytes become `limit` slots of `slotByteCount`; they are allocated by the first call only.
    ///   - limit: the most datagrams to take.
    ///   - index: becomes `Datagram.socket`.
    /// - Returns: how many datagrams the batch has now.
    @discardableResult
    public func receive(into batch: inout DatagramBatch, limit: Int, index: UInt16 = 0) -> Int {
        batch.removeAll()
        batch.makeSlots(limit)
        append(to: &batch, from: 0, limit: limit, index: index)
        return batch.datagrams.count
    }

    /// Takes what has arrived into slots `firstSlot..<limit`.
    ///
    /// - Returns: the first slot that is still free.
    @discardableResult
    func append(to batch: inout DatagramBatch, from firstSlot: Int, limit: Int, index: UInt16) -> Int {
        var slot = firstSlot
        while slot < limit {
            let wanted = min(limit - slot, incoming.capacity)
            let count = batch.bytes.withUnsafeMutableBytes { bytes in
                receive(bytes.baseAddress! + slot * Self.slotByteCount, slots: wanted)
            }
            for message in 0..<count {
                keep(message, in: &batch, slot: slot + message, index: index)
                incoming.reset(message, wantsControl: tellsAsked)
            }
            slot += count
            // Fewer than wanted: there were no more. What has come since is for the next call.
            if count < wanted { break }
        }
        return slot
    }

    private func receive(_ base: UnsafeMutableRawPointer, slots: Int) -> Int {
        if base != preparedBase {
            for index in 0..<incoming.capacity {
                incoming.vectors[index] = iovec(
                    iov_base: base + index * Self.slotByteCount, iov_len: Self.slotByteCount)
            }
            preparedBase = base
        }
        // The kernel reports here, once, an error that a datagram of ours has met on its way; it is ignored.
        for _ in 0..<3 {
            let count = recvmmsg(descriptor, incoming.headers, UInt32(slots), CInt(MSG_DONTWAIT), nil)
            if count >= 0 { return Int(count) }
            if errno == EAGAIN { return 0 }
        }
        return 0
    }

    private func keep(_ message: Int, in batch: inout DatagramBatch, slot: Int, index: UInt16) {
        let header = incoming.headers[message]
        guard header.msg_hdr.msg_flags & CInt(MSG_TRUNC) == 0 else {
            counters.truncated += 1
            return
        }
        counters.received += 1
        batch.datagrams.append(
            Datagram(
                remote: incoming.remote(message),
                local: tellsAsked ? incoming.asked(message, port: address.port) : .unspecified,
                offset: UInt32(slot * Self.slotByteCount), byteCount: UInt16(header.msg_len), socket: index))
    }

    /// How many bytes of datagrams the kernel keeps for us, counted its way; 0 where it does not say.
    public var receiveBufferByteCount: Int { Int(option(SO_RCVBUF)) / 2 }

    /// How many bytes the kernel keeps for datagrams on their way out, counted its way.
    public var sendBufferByteCount: Int { Int(option(SO_SNDBUF)) / 2 }

    private func option(_ name: CInt) -> CInt {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : 0
    }

    /// Datagrams that came while the socket's buffer was full, and were lost, since it was bound.
    ///
    /// - Complexity: a system call; for metrics, not for each batch.
    public var lostByKernel: UInt64 {
        // Nine numbers, the last of them the drops (linux/sock_diag.h, SK_MEMINFO_DROPS).
        var values: InlineArray<9, UInt32> = .init(repeating: 0)
        var length = socklen_t(MemoryLayout.size(ofValue: values))
        return getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, &values, &length) == 0 ? UInt64(values[8]) : 0
    }
}

// MARK: - Sending

extension DatagramSocket {
    /// Sends all datagrams of a batch from this socket, whichever they name.
    public func send(_ batch: borrowing DatagramBatch) { send(batch, 0..<batch.datagrams.count) }

    /// Sends some datagrams of a batch, in order.
    ///
    /// One that cannot be sent is counted and skipped, and does not stop the rest.
    ///
    /// - Parameters:
    ///   - batch: whose datagrams go out from this socket, whichever they name.
    ///   - range: of places in `batch.datagrams`.
    public func send(_ batch: borrowing DatagramBatch, _ range: Range<Int>) {
        var patience = Self.patience
        batch.bytes.withUnsafeBytes { bytes in
            batch.datagrams.withUnsafeBufferPointer { datagrams in
                var next = range.lowerBound
                while next < range.upperBound {
                    let end = min(range.upperBound, next + outgoing.capacity)
                    let count = prepare(datagrams[next..<end], bytes)
                    transmit(count, &patience)
                    next = end
                }
            }
        }
    }

    /// Writes the headers of the datagrams that can be sent.
    ///
    /// - Parameters:
    ///   - datagrams: at most as many as a system call takes.
    ///   - bytes: of their batch.
    /// - Returns: how many messages there are to send: datagrams for the other family are left out.
    private func prepare(_ datagrams: Slice<UnsafeBufferPointer<Datagram>>, _ bytes: UnsafeRawBufferPointer) -> Int {
        var message = 0
        for datagram in datagrams {
            let (start, count) = (Int(datagram.offset), Int(datagram.byteCount))
            precondition(start + count <= bytes.count, "a datagram lies outside of its batch")
            guard datagram.remote.isIPv4 == address.isIPv4 else {
                counters.unreachable += 1
                continue
            }
            outgoing.vectors[message] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress.map { $0 + start }), iov_len: count)
            outgoing.address(message, to: datagram.remote, from: datagram.local)
            message += 1
        }
        return message
    }

    private func transmit(_ count: Int, _ patience: inout CInt) {
        var next = 0
        while next < count {
            let sent = sendmmsg(descriptor, outgoing.headers + next, UInt32(count - next), CInt(MSG_DONTWAIT))
            if sent > 0 {
                next += Int(sent)
                counters.sent += UInt64(sent)
                continue
            }
            let code = errno
            if code == EINTR { continue }
            if code == EAGAIN {
                if waitForRoom(&patience) { continue }
                counters.noRoom += UInt64(count - next)
                return
            }
            countUnsent(code)
            next += 1
        }
    }

    private func countUnsent(_ code: CInt) {
        switch code {
        case ENOBUFS, ENOMEM: counters.noRoom += 1
        case ECONNREFUSED: counters.refused += 1
        case EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN, EADDRNOTAVAIL: counters.unreachable += 1
        case EPERM, EACCES: counters.forbidden += 1
        case EMSGSIZE: counters.tooLong += 1
        default: counters.failed += 1
        }
    }

    /// - Returns: false where the patience is at an end.
    private func waitForRoom(_ patience: inout CInt) -> Bool {
        guard patience > 0 else { return false }
        patience -= 1
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&entry, 1, 1)
        return true
    }
}

extension DatagramBatch {
    /// Makes room for received datagrams, where there is not yet enough.
    mutating func makeSlots(_ count: Int) {
        let missing = count * DatagramSocket.slotByteCount - bytes.count
        if missing > 0 { bytes.append(contentsOf: repeatElement(0, count: missing)) }
        datagrams.reserveCapacity(count)
    }
}
