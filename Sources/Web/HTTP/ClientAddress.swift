// Which address a request came from.

import Primitives
import TrackerLogic

/// Which address a request came from, where proxies stand between.
///
/// Whoever may name his own address may enter anybody's into a swarm, and have thousands of clients call there. So
/// `X-Forwarded-For` counts only as far as trusted proxies wrote it, and `ip=` only from a client that is itself
/// trusted.
struct ClientAddress: Sendable {
    let trusted: [AddressPrefix]

    /// - Parameters:
    ///   - remote: the other end of the connection.
    ///   - forwarded: the values of all `X-Forwarded-For` fields, in order. Each proxy appends whom it heard from.
    /// - Returns: the last hop that is not trusted, or, if all are, the first one.
    func resolve(remote: SocketAddress, forwarded: some BidirectionalCollection<String>) -> SocketAddress {
        var address = remote
        for field in forwarded.reversed() {
            for hop in field.split(separator: ",", omittingEmptySubsequences: false).reversed() {
                guard isTrusted(address), let next = Self.address(hop) else { return address }
                address = next
            }
        }
        return address
    }

    func isTrusted(_ address: SocketAddress) -> Bool { trusted.contains { $0.contains(address) } }

    /// Reads `192.0.2.1`, `2001:db8::1`, and both with a port, as some proxies write them.
    private static func address(_ hop: Substring) -> SocketAddress? {
        let text = hop.drop { $0 == " " || $0 == "\t" }
        let host = text.prefix { $0 != " " && $0 != "\t" }
        if host.first == "[" {
            return SocketAddress(host: host.dropFirst().prefix { $0 != "]" }, port: 0)
        }
        let hasPort = host.contains(".") && host.count { $0 == ":" } == 1
        return SocketAddress(host: hasPort ? host.prefix { $0 != ":" } : host, port: 0)
    }
}
