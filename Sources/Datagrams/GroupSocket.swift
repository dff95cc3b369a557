// A socket that speaks and listens to a multicast group, on one network interface of this host.

import Glibc
import Primitives

/// A network interface, as it is now.
///
/// - SeeAlso: netdevice(7).
public struct HostInterface: Sendable, Hashable {
    /// As `ip address` shows it.
    public var name: String
    /// The kernel's number; also the zone of link-local addresses on it.
    public var index: UInt32
    /// Whether what is sent there never leaves this host.
    public var isLoopback: Bool
    /// Switched on, and its cable (or what stands for it) plugged in.
    public var isRunning: Bool
    /// Whether it is made for multicast (`IFF_MULTICAST`).
    public var carriesGroups: Bool
    /// Its addresses of both families, with port and zone 0.
    public var addresses: [SocketAddress]

    /// All interfaces of this host, in the kernel's order; none where the kernel does not tell.
    public static func all() -> [HostInterface] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [HostInterface] = []
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            let name = String(cString: entry.ifa_name)
            if !found.contains(where: { $0.name == name }) {
                let flags = Int(entry.ifa_flags)
                func has(_ flag: Int) -> Bool { flags & flag == flag }
                let running = IFF_UP | IFF_RUNNING
                found.append(
                    HostInterface(
                        name: name, index: if_nametoindex(entry.ifa_name), isLoopback: has(IFF_LOOPBACK),
                        isRunning: has(running), carriesGroups: has(IFF_MULTICAST), addresses: []))
            }
            guard let raw = entry.ifa_addr, [AF_INET, AF_INET6].contains(CInt(raw.pointee.sa_family)),
                let place = found.firstIndex(where: { $0.name == name })
            else { continue }
            var address = SocketAddress(socketName: UnsafeRawPointer(raw))
            (address.port, address.scope) = (0, 0)
            found[place].addresses.append(address)
        }
        return found
    }

    /// Finds the interface of that name, or with that address.
    ///
    /// - Parameters:
    ///   - text: nil chooses the first that runs, carries groups and has an address of the group's family; the loopback
    ///     interface where there is none, for trackers that are all on this host.
    ///   - group: whose family counts where `text` is nil.
    /// - Returns: nil where there is none.
    public static func find(_ text: String?, for group: SocketAddress) -> HostInterface? {
        let all = all()
        if let text {
            if let named = all.first(where: { $0.name == text }) { return named }
            guard let address = SocketAddress(host: text, port: 0) else { return nil }
            return all.first { $0.addresses.contains(address) }
        }
        let outside = all.first { interface in
            interface.isRunning && interface.carriesGroups && !interface.isLoopback
                && interface.addresses.contains { $0.isIPv4 == group.isIPv4 }
        }
        return outside ?? all.first { $0.isLoopback && $0.isRunning }
    }
}

extension DatagramSocket {
    /// Opens a socket that hears a group and sends to it; others on this host hear it, and so does it itself.
    ///
    /// The interface is always named, to the kernel too: else datagrams leave by the default route, and the group is
    /// heard wherever the kernel likes.
    ///
    /// - Parameters:
    ///   - group: address and port.
    ///   - interface: on which the group is heard, and datagrams for it leave.
    ///   - timeToLive: how many routers a datagram may pass, 0…255; 1 stays in the local network.
    ///   - options: what is asked of the kernel; the address is shared in any case.
    /// - Throws: what the kernel refused.
    /// - SeeAlso: ip(7), ipv6(7).
    public convenience init(
        group: SocketAddress, on interface: HostInterface, timeToLive: Int, options: Options = Options()
    ) throws(SocketError) {
        var (address, options) = (group, options)
        options.sharesAddress = true
        // ff?1:: and ff?2:: mean something only on one interface, as fe80:: does.
        if !group.isIPv4 { address.scope = interface.index }
        try self.init(bind: address, options: options)
        func need(_ name: String, _ result: CInt) throws(SocketError) {
            guard result == 0 else { throw SocketError(.configure(name), address: group, code: errno) }
        }
        func set(_ level: Int, _ option: CInt, _ value: CInt) -> CInt {
            var value = value
            return setsockopt(descriptor, CInt(level), option, &value, socklen_t(MemoryLayout<CInt>.size))
        }
        if group.isIPv4 {
            var request = ip_mreqn()
            request.imr_multiaddr.s_addr = group.ipv4.bigEndian
            request.imr_ifindex = CInt(interface.index)
            let size = socklen_t(MemoryLayout<ip_mreqn>.size)
            try need("IP_ADD_MEMBERSHIP", setsockopt(descriptor, CInt(IPPROTO_IP), IP_ADD_MEMBERSHIP, &request, size))
            try need("IP_MULTICAST_IF", setsockopt(descriptor, CInt(IPPROTO_IP), IP_MULTICAST_IF, &request, size))
            try need("IP_MULTICAST_LOOP", set(Int(IPPROTO_IP), IP_MULTICAST_LOOP, 1))
            try need("IP_MULTICAST_TTL", set(Int(IPPROTO_IP), IP_MULTICAST_TTL, CInt(clamping: timeToLive)))
        } else {
            let level = Int(IPPROTO_IPV6)
            var request = ipv6_mreq()
            withUnsafeMutableBytes(of: &request.ipv6mr_multiaddr) { bytes in
                bytes.storeBytes(of: group.high.bigEndian, as: UInt64.self)
                bytes.storeBytes(of: group.low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            request.ipv6mr_interface = interface.index
            let size = socklen_t(MemoryLayout<ipv6_mreq>.size)
            try need("IPV6_JOIN_GROUP", setsockopt(descriptor, CInt(level), IPV6_JOIN_GROUP, &request, size))
            try need("IPV6_MULTICAST_IF", set(level, IPV6_MULTICAST_IF, CInt(interface.index)))
            try need("IPV6_MULTICAST_LOOP", set(level, IPV6_MULTICAST_LOOP, 1))
            try need("IPV6_MULTICAST_HOPS", set(level, IPV6_MULTICAST_HOPS, CInt(clamping: timeToLive)))
        }
    }
}
