// Addresses as the system's calls want them.

import Glibc
import Primitives

/// Addresses as the system's calls want them, for sockets that others open.
///
/// Here and not where they are used: in a module that imports SwiftNIO, too, the compiler may take `sockaddr_in` for a
/// member of NIO's own C module, which nobody can import.
extension SocketAddress {
    /// Reads what `getaddrinfo` found; nil where it is of another family than IPv4 and IPv6.
    ///
    /// - Parameters:
    ///   - entry: one of its results.
    ///   - port: in place of the one in it.
    public init?(_ entry: addrinfo, port: UInt16) {
        guard let raw = UnsafeRawPointer(entry.ai_addr), [AF_INET, AF_INET6].contains(entry.ai_family) else {
            return nil
        }
        var address = SocketAddress(socketName: raw)
        address.port = port
        if !address.isIPv4 {
            // Whether it has one or not: a link-local address is of no use without its zone.
            address.scope = raw.load(fromByteOffset: 24, as: UInt32.self)
        }
        self = address
    }

    /// Lends the address as a `sockaddr_in` or `sockaddr_in6`.
    ///
    /// - Parameter body: gets the address and its length in bytes; the pointer means nothing once it has returned.
    /// - Returns: what `body` returns.
    public func withSystemAddress<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
        withUnsafeTemporaryAllocation(byteCount: MessageRoom.nameStride, alignment: 16) { room in
            guard let name = room.baseAddress else { preconditionFailure("a room has bytes") }
            let length = write(socketName: name, isIPv4: isIPv4)
            return body(UnsafePointer(name.assumingMemoryBound(to: sockaddr.self)), length)
        }
    }
}
