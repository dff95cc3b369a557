// Addresses, from NIO's form and to it.

import NIOCore
import Primitives

extension Primitives.SocketAddress {
    /// - Returns: nil for the address of a socket in the file system.
    init?(_ address: NIOCore.SocketAddress) {
        // By offset: which module owns the fields of `sockaddr_in6` depends on who is asked.
        switch address {
        case .v4:
            self = address.withSockAddr { pointer, _ in
                let raw = UnsafeRawPointer(pointer)
                return Self(
                    ipv4: UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)),
                    port: UInt16(bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
            }
        case .v6:
            self = address.withSockAddr { pointer, _ in
                let raw = UnsafeRawPointer(pointer)
                return Self(
                    high: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
                    low: UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 16, as: UInt64.self)),
                    scope: raw.loadUnaligned(fromByteOffset: 24, as: UInt32.self),
                    port: UInt16(bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
            }
        case .unixDomainSocket:
            return nil
        }
    }

    /// Without the zone, which no listener here is given.
    func nioAddress() throws -> NIOCore.SocketAddress {
        var bytes = ByteBuffer()
        if isIPv4 {
            bytes.writeInteger(ipv4)
        } else {
            bytes.writeInteger(high)
            bytes.writeInteger(low)
        }
        return try NIOCore.SocketAddress(packedIPAddress: bytes, port: Int(port))
    }
}
