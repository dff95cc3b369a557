// A socket could not be set up.

import Glibc
import Primitives

/// A socket could not be set up: what was tried, on which address, and the kernel's reason.
///
/// Only setting up throws. What goes wrong with a single datagram is counted (`DatagramCounters`): one peer that
/// cannot be reached is no reason to stop serving the others.
public struct SocketError: Error, Sendable, Hashable {
    /// What was tried.
    public enum Operation: Sendable, Hashable {
        /// Make the socket.
        case open
        /// Set or read an option of this name.
        case configure(String)
        /// Bind the socket to its address.
        case bind
        /// Find the network interface of this name or address.
        case interface(String)
        /// Set up or use a `Poller`.
        case poll
    }

    /// What was tried when the kernel refused.
    public var operation: Operation
    /// The address in question; nil where there is none.
    public var address: SocketAddress?
    /// The kernel's `errno`.
    public var code: CInt

    /// Takes what was tried, and `errno` as it was just afterwards.
    public init(_ operation: Operation, address: SocketAddress? = nil, code: CInt) {
        self.operation = operation
        self.address = address
        self.code = code
    }
}

extension SocketError: CustomStringConvertible {
    /// What failed, why, and what to do about it, for people.
    public var description: String { "\(attempt): \(reason). \(remedy)" }

    private var attempt: String {
        let place = address.map { " \($0)" } ?? ""
        switch operation {
        case .open: return "Cannot open a UDP socket for\(place.isEmpty ? " this host" : place)"
        case .configure(let option): return "Cannot set \(option) on the UDP socket\(place)"
        case .bind: return "Cannot listen for UDP on\(place)"
        case .interface(let name): return "Cannot hear the group\(place) on the network interface \(name)"
        case .poll: return "Cannot wait for datagrams"
        }
    }

    private var reason: String {
        switch code {
        case EADDRINUSE: return "the port is in use"
        case EACCES, EPERM: return "permission denied"
        case EADDRNOTAVAIL: return "this host has no such address"
        case EAFNOSUPPORT: return "\(family) is not available on this host"
        case ENODEV: return "this host has no such interface, or none for groups"
        case EMFILE: return "this process has too many open files"
        case ENFILE: return "this host has too many open files"
        default:
            // Static texts, safe on any thread, unlike strerror's.
            guard let text = strerrordesc_np(code) else { return "error \(code)" }
            return "\(String(cString: text)) (error \(code))"
        }
    }

    private var family: String { address?.isIPv4 == false ? "IPv6" : "IPv4" }

    private var remedy: String {
        let port = address?.port ?? 0
        switch code {
        case EADDRINUSE:
            return "Another program holds it, perhaps a tracker that is already running: "
                + "`ss -ulpn 'sport = :\(port)'` names it. Stop that one or choose another port."
        case EACCES, EPERM:
            if operation == .bind, (1..<1024).contains(port) {
                return "Ports below 1024 need the capability CAP_NET_BIND_SERVICE: use a higher port, or grant it "
                    + "(systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE; by hand: "
                    + "setcap cap_net_bind_service=+ep on the program)."
            }
            return "A sandbox, a container or a security module forbids it: see its rules for this program."
        case EADDRNOTAVAIL:
            let wildcard = family == "IPv6" ? "[::]" : "0.0.0.0"
            return "`ip address` lists those it has; \(wildcard) stands for all of them."
        case EAFNOSUPPORT:
            return family == "IPv6"
                ? "Enable it (sysctl net.ipv6.conf.all.disable_ipv6=0), or listen on IPv4 addresses only."
                : "Listen on addresses of the other family only."
        case ENODEV:
            return "`ip address` lists the interfaces and their addresses; name one that is up, or make a route to the "
                + "group."
        case EMFILE: return "Raise its limit (`ulimit -n`, or systemd's LimitNOFILE=)."
        case ENFILE: return "Raise sysctl fs.file-max, or close other programs."
        case EINVAL where operation == .bind && address?.isLinkLocal == true:
            return "A link-local address needs its zone: the number of its network interface."
        default: return "If it lasts, report it together with the output of `uname -a`."
        }
    }
}

extension SocketAddress {
    /// fe80::/10: means something only together with a zone.
    var isLinkLocal: Bool { high &>> 54 == 0xFE80 &>> 6 }

    /// ff00::/8: multicast.
    var isIPv6Group: Bool { high &>> 56 == 0xFF }
}
