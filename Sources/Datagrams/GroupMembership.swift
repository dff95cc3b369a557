// Hearing a multicast group on a UDP socket that serves clients; `GroupSocket` is for those who also speak to one.

import Glibc
import Primitives

/// A multicast group, and the interface on which it is heard.
public struct MulticastGroup: Sendable, Hashable {
    /// The group's address, and the port on which it is heard.
    public var address: SocketAddress
    /// Name of an interface, or an address of it; nil for the system's choice.
    public var interface: String?

    /// A group on an interface; whether it is there, `join` finds out.
    public init(_ address: SocketAddress, interface: String? = nil) {
        self.address = address
        self.interface = interface
    }
}

extension SocketAddress {
    /// 224.0.0.0/4 and ff00::/8.
    public var isGroup: Bool { isIPv4 ? ipv4 >> 28 == 0xE : isIPv6Group }
}

extension DatagramSocket {
    /// Which options a socket has beside those that the caller chose.
    ///
    /// linux/in.h and linux/in6.h; Glibc's module does not show the second.
    private static var multicastAll: (ipv4: CInt, ipv6: CInt) { (49, 29) }

    /// Has the socket hear only the groups that it joins itself.
    ///
    /// Linux hands a datagram for a group to every socket that is bound to its port on any address, also to those that
    /// have not joined it, as long as anybody on this host has (`IP_MULTICAST_ALL`). All of our sockets have that
    /// switched off, so that a request is heard once. Kernels before 4.20 do not know it for IPv6; there the socket
    /// hears what others have joined.
    ///
    /// - Parameters:
    ///   - descriptor: of the socket.
    ///   - isIPv4: its family.
    /// - SeeAlso: ip(7), ipv6(7), RFC 3678.
    static func hearOnlyJoinedGroups(_ descriptor: CInt, isIPv4: Bool) {
        var off: CInt = 0
        let size = socklen_t(MemoryLayout<CInt>.size)
        _ =
            isIPv4
            ? setsockopt(descriptor, CInt(IPPROTO_IP), multicastAll.ipv4, &off, size)
            : setsockopt(descriptor, CInt(IPPROTO_IPV6), multicastAll.ipv6, &off, size)
    }

    /// Joins a group.
    ///
    /// - Parameter group: of the socket's own family; another one traps.
    /// - Throws: what the kernel refused, or that there is no such interface.
    public func join(_ group: MulticastGroup) throws(SocketError) {
        precondition(group.address.isIPv4 == address.isIPv4, "a socket joins groups of its own family")
        let index = try group.interfaceIndex
        let result: CInt
        let name: String
        if group.address.isIPv4 {
            name = "IP_ADD_MEMBERSHIP"
            var request = ip_mreqn()
            request.imr_multiaddr.s_addr = group.address.ipv4.bigEndian
            request.imr_ifindex = CInt(index)
            result = setsockopt(
                descriptor, CInt(IPPROTO_IP), IP_ADD_MEMBERSHIP, &request, socklen_t(MemoryLayout<ip_mreqn>.size))
        } else {
            name = "IPV6_JOIN_GROUP"
            var request = ipv6_mreq()
            withUnsafeMutableBytes(of: &request.ipv6mr_multiaddr) { bytes in
                bytes.storeBytes(of: group.address.high.bigEndian, as: UInt64.self)
                bytes.storeBytes(of: group.address.low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            request.ipv6mr_interface = index
            result = setsockopt(
                descriptor, CInt(IPPROTO_IPV6), IPV6_JOIN_GROUP, &request, socklen_t(MemoryLayout<ipv6_mreq>.size))
        }
        guard result == 0 else { throw SocketError(.configure(name), address: group.address, code: errno) }
    }
}

extension MulticastGroup {
    /// The index of the interface that is meant; 0 for the system's choice.
    fileprivate var interfaceIndex: UInt32 {
        get throws(SocketError) {
            guard let interface else { return address.scope }
            guard let found = HostInterface.find(interface, for: address) else {
                throw SocketError(.interface(interface), address: address, code: ENODEV)
            }
            return found.index
        }
    }
}
