// A connected socket of a client.

import Datagrams
import Foundation
import Glibc
import Primitives

/// A connected socket of a client, non-blocking, with waits that end.
///
/// Plain system calls on a thread of the client's own: a client asks once and waits, and needs no event loop.
final class ClientSocket {
    enum Kind {
        case datagram
        case stream

        var systemValue: CInt { CInt((self == .datagram ? SOCK_DGRAM : SOCK_STREAM).rawValue) }
    }

    let peer: SocketAddress
    private let descriptor: CInt

    /// Opens a socket and connects it, or begins to.
    ///
    /// - Throws: the kernel's reason.
    init(_ kind: Kind, to peer: SocketAddress) throws(SystemReason) {
        self.peer = peer
        let flags = CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue)
        descriptor = socket(peer.isIPv4 ? AF_INET : AF_INET6, kind.systemValue | flags, 0)
        guard descriptor >= 0 else { throw SystemReason(errno) }
        let result = peer.withSystemAddress { connect(descriptor, $0, $1) }
        guard result == 0 || errno == EINPROGRESS else {
            let reason = SystemReason(errno)
            close(descriptor)
            throw reason
        }
    }

    deinit { close(descriptor) }

    /// The error that is pending on the socket: how connecting went.
    var pendingError: SystemReason? {
        var code: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { return SystemReason(errno) }
        return code == 0 ? nil : SystemReason(code)
    }

    /// - Returns: bytes sent; 0 where the socket has no room now.
    func send(_ bytes: ArraySlice<UInt8>) throws(SystemReason) -> Int {
        while true {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if count >= 0 { return count }
            let code = errno
            if code == EAGAIN { return 0 }
            guard code == EINTR else { throw SystemReason(code) }
        }
    }

    /// - Returns: what came, a datagram or a part of a stream; nil where nothing is there now. An empty part is the end
    ///   of a stream.
    func receive(atMost limit: Int) throws(SystemReason) -> [UInt8]? {
        var code: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            let got = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if got < 0 { code = errno }
            count = max(0, got)
        }
        if code == 0 { return bytes }
        guard code != EAGAIN, code != EINTR else { return nil }
        throw SystemReason(code)
    }

    /// Waits until one of the sockets can be read (or written), or has failed.
    ///
    /// - Returns: those, by index; none where the time is over.
    static func wait(_ sockets: [ClientSocket], toWrite: Bool = false, until deadline: Instant) -> [Int] {
        var polled = sockets.map {
            pollfd(fd: $0.descriptor, events: Int16(toWrite ? POLLOUT : POLLIN), revents: 0)
        }
        while true {
            let left = deadline - Clock.monotonic()
            // Rounded up, so that the last millisecond is not spent spinning.
            let milliseconds = max(0, left.nanoseconds / 1_000_000 + (left.nanoseconds > 0 ? 1 : 0))
            let ready = poll(&polled, nfds_t(polled.count), CInt(clamping: milliseconds))
            if ready > 0 { return polled.indices.filter { polled[$0].revents != 0 } }
            if Clock.monotonic() >= deadline { return [] }
        }
    }
}

/// The kernel's reason for a failure.
struct SystemReason: Error, CustomStringConvertible {
    var code: CInt

    init(_ code: CInt) { self.code = code }

    var description: String {
        switch code {
        case ECONNREFUSED: "nobody listens there"
        case ENETUNREACH: "there is no route there"
        case EHOSTUNREACH: "the host does not answer"
        case EACCES, EPERM: "a firewall of this machine forbids it"
        case EAFNOSUPPORT: "this machine does not have the address's family"
        case ECONNRESET: "the connection was cut"
        case ETIMEDOUT: "it does not answer"
        default: String(cString: strerror(code))
        }
    }
}

extension SocketAddress {
    /// The addresses of a host, each once, in the order of the system's preference (RFC 6724).
    ///
    /// Takes as long as the system's resolver does.
    package static func lookUp(_ host: String, port: UInt16) throws(TrackerClientError) -> [SocketAddress] {
        if let address = SocketAddress(host: host, port: port) { return [address] }
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            throw .noSuchHost(host, reason: gai_strerror(code).map { String(cString: $0) } ?? "error \(code)")
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next, addresses.count < maxAddresses {
            if let address = SocketAddress(entry.pointee, port: port), !addresses.contains(address) {
                addresses.append(address)
            }
            next = entry.pointee.ai_next
        }
        guard !addresses.isEmpty else { throw .noSuchHost(host, reason: "it has no IP address") }
        return addresses
    }

    /// Addresses of one name that are tried.
    private static let maxAddresses = 8
}

/// Runs something that blocks on a thread of its own, so that it does not hold up other tasks.
package func onOwnThread<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    let result = await withCheckedContinuation { (continuation: CheckedContinuation<Result<Value, Failure>, Never>) in
        Thread.detachNewThread {
            continuation.resume(returning: Result(catching: body))
        }
    }
    return try result.get()
}
