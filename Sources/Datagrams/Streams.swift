// TCP and plain UDP sockets that do not block, as descriptors: for loops that have many of them.

import Glibc
import Primitives

/// TCP and plain UDP sockets that do not block, as descriptors whose owner closes them.
public enum Streams {
    /// Listens for connections; a wildcard address of IPv6 takes no calls over IPv4.
    ///
    /// - Returns: the descriptor, and the address with the port that the kernel has chosen where it was 0.
    public static func listen(on address: SocketAddress) throws(SocketError) -> (CInt, SocketAddress) {
        let descriptor = make(SOCK_STREAM, isIPv4: address.isIPv4)
        guard descriptor >= 0 else { throw SocketError(.open, address: address, code: errno) }
        set(descriptor, SOL_SOCKET, SO_REUSEADDR)
        if !address.isIPv4 { set(descriptor, CInt(IPPROTO_IPV6), IPV6_V6ONLY) }
        guard address.withSystemAddress({ bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0, Glibc.listen(descriptor, 256) == 0 else {
            let code = errno
            close(descriptor)
            throw SocketError(.bind, address: address, code: code)
        }
        return (descriptor, localAddress(of: descriptor) ?? address)
    }

    /// Takes a connection that waits; nil where there is none, or no descriptor is left.
    public static func accept(from listener: CInt) -> (CInt, SocketAddress)? {
        withUnsafeTemporaryAllocation(byteCount: MessageRoom.nameStride, alignment: 16) {
            space -> (CInt, SocketAddress)? in
            guard let name = space.baseAddress else { return nil }
            var length = socklen_t(space.count)
            let flags = CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
            let descriptor = accept4(listener, room(name), &length, flags)
            guard descriptor >= 0 else { return nil }
            set(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY)
            return (descriptor, SocketAddress(socketName: name))
        }
    }

    /// Begins to connect; writable, with `pendingError`, when it is known how that went.
    ///
    /// - Throws: the kernel's reason where it will not even begin.
    public static func connect(to address: SocketAddress) throws(SocketError) -> CInt {
        let descriptor = make(SOCK_STREAM, isIPv4: address.isIPv4)
        guard descriptor >= 0 else { throw SocketError(.open, address: address, code: errno) }
        set(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY)
        guard address.withSystemAddress({ Glibc.connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0 || errno == EINPROGRESS else {
            let code = errno
            close(descriptor)
            throw SocketError(.open, address: address, code: code)
        }
        return descriptor
    }

    /// How connecting went: 0, or the kernel's `errno`.
    public static func pendingError(of descriptor: CInt) -> CInt {
        var code: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno
    }

    /// Opens a UDP socket on a port of the kernel's choice.
    public static func datagrams(isIPv4: Bool) throws(SocketError) -> CInt {
        let descriptor = make(SOCK_DGRAM, isIPv4: isIPv4)
        guard descriptor >= 0 else { throw SocketError(.open, code: errno) }
        return descriptor
    }

    /// Takes a datagram that waits, and where it comes from; nil where there is none.
    public static func receive(from descriptor: CInt, upTo limit: Int) -> ([UInt8], SocketAddress)? {
        var source: SocketAddress?
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            withUnsafeTemporaryAllocation(byteCount: MessageRoom.nameStride, alignment: 16) { space in
                guard let name = space.baseAddress else { return }
                var length = socklen_t(space.count)
                let got = recvfrom(
                    descriptor, buffer.baseAddress, buffer.count, 0, room(name), &length)
                count = max(0, got)
                if got >= 0 { source = SocketAddress(socketName: name) }
            }
        }
        return source.map { (bytes, $0) }
    }

    /// Sends a datagram; false where the kernel does not take it.
    @discardableResult
    public static func send(_ bytes: [UInt8], to address: SocketAddress, over descriptor: CInt) -> Bool {
        bytes.withUnsafeBytes { buffer in
            address.withSystemAddress {
                sendto(
                    descriptor, buffer.baseAddress, buffer.count, 0, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) >= 0
            }
        }
    }

    /// The address that a socket is bound to.
    public static func localAddress(of descriptor: CInt) -> SocketAddress? {
        withUnsafeTemporaryAllocation(byteCount: MessageRoom.nameStride, alignment: 16) { space -> SocketAddress? in
            guard let name = space.baseAddress else { return nil }
            var length = socklen_t(space.count)
            guard getsockname(descriptor, room(name), &length) == 0 else { return nil }
            return SocketAddress(socketName: name)
        }
    }

    private static func room(_ name: UnsafeMutableRawPointer) -> __SOCKADDR_ARG {
        __SOCKADDR_ARG(__sockaddr__: name.assumingMemoryBound(to: sockaddr.self))
    }

    private static func make(_ type: __socket_type, isIPv4: Bool) -> CInt {
        let flags = CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        return socket(isIPv4 ? AF_INET : AF_INET6, CInt(type.rawValue) | flags, 0)
    }

    private static func set(_ descriptor: CInt, _ level: CInt, _ option: CInt) {
        var one: CInt = 1
        // An option that is refused costs speed, nothing else.
        _ = setsockopt(descriptor, level, option, &one, socklen_t(MemoryLayout<CInt>.size))
    }
}

/// Waits for any number of descriptors, for a deadline, or to be woken.
///
/// `ppoll`, as in `Poller`: its list is filled anew for each wait, which for some hundred descriptors costs less than a
/// microsecond. One thread owns it; its `Waker` is for all the others.
public final class StreamPoller {
    /// Ends a wait, from any thread.
    public let waker: Waker
    private var entries: [pollfd]

    /// A poller that waits for nothing but wake-ups yet.
    public init() throws(SocketError) {
        waker = try Waker()
        entries = [pollfd(fd: waker.readEnd, events: Int16(POLLIN), revents: 0)]
    }

    /// Forgets all descriptors.
    public func clear() { entries.removeLast(entries.count - 1) }

    /// Waits for a descriptor, too.
    ///
    /// - Returns: its place, for `isReadable` and `isWritable`.
    public func add(_ descriptor: CInt, reads: Bool, writes: Bool) -> Int {
        let events = (reads ? Int16(POLLIN) : 0) | (writes ? Int16(POLLOUT) : 0)
        entries.append(pollfd(fd: descriptor, events: events, revents: 0))
        return entries.count - 1
    }

    /// Waits until a descriptor is ready, `wake` was called since the last wait, or the time is over.
    public func wait(timeout: Duration?) {
        var time = timespec()
        if let timeout {
            let nanoseconds = max(0, timeout.nanoseconds)
            time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        }
        let result = entries.withUnsafeMutableBufferPointer {
            timeout == nil
                ? ppoll($0.baseAddress, nfds_t($0.count), nil, nil)
                : ppoll($0.baseAddress, nfds_t($0.count), &time, nil)
        }
        if result <= 0 {
            for index in entries.indices { entries[index].revents = 0 }
        } else if entries[0].revents != 0 {
            waker.drain()
        }
    }

    /// Whether there is something to read, or an error or the end to be read.
    public func isReadable(_ place: Int) -> Bool {
        entries[place].revents & Int16(POLLIN | POLLERR | POLLHUP) != 0
    }

    /// Whether there is room to write, or an error to be met.
    public func isWritable(_ place: Int) -> Bool {
        entries[place].revents & Int16(POLLOUT | POLLERR | POLLHUP) != 0
    }
}

extension Streams {
    /// Opens a UDP socket on a group's port that hears the group, as others on this host may, too.
    public static func group(_ group: SocketAddress) throws(SocketError) -> CInt {
        precondition(group.isIPv4, "a group of IPv4")
        let descriptor = try datagrams(isIPv4: true)
        set(descriptor, SOL_SOCKET, SO_REUSEADDR)
        set(descriptor, SOL_SOCKET, SO_REUSEPORT)
        var request = ip_mreq()
        request.imr_multiaddr.s_addr = group.ipv4.bigEndian
        let size = socklen_t(MemoryLayout<ip_mreq>.size)
        guard SocketAddress(ipv4: 0, port: group.port).withSystemAddress({ bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }) == 0,
            setsockopt(descriptor, CInt(IPPROTO_IP), IP_ADD_MEMBERSHIP, &request, size) == 0
        else {
            let code = errno
            close(descriptor)
            throw SocketError(.bind, address: group, code: code)
        }
        return descriptor
    }
}
