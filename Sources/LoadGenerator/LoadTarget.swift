/// Where the load goes: `udp://host:port[/announce]`, `host:port`, with an address or a name.

import Datagrams
import Glibc
import Primitives

extension LoadOptions {
    /// The port of a tracker where none is given.
    public static let defaultPort: UInt16 = 6969

    /// Reads a tracker's URL and looks its host up.
    ///
    /// - Parameter text: `udp://tracker.example:6969/announce`, `udp://[::1]:6969`, `127.0.0.1:6969`.
    /// - Throws: `.invalid` or `.noSuchHost`.
    public static func target(_ text: String) throws(LoadError) -> SocketAddress {
        let (host, port) = try split(text)
        if let address = SocketAddress(host: host, port: port) { return address }
        return try look(up: host, port: port)
    }

    static func split(_ text: String) throws(LoadError) -> (host: String, port: UInt16) {
        let malformed = LoadError.invalid("\"\(text)\" is no tracker's address such as udp://127.0.0.1:6969")
        var rest = text[...]
        if let scheme = rest.firstRange(of: "://") {
            guard rest[..<scheme.lowerBound].lowercased() == "udp" else {
                throw .invalid("\"\(text)\" is not a UDP tracker: its URL begins with udp://")
            }
            rest = rest[scheme.upperBound...]
        }
        if let path = rest.firstIndex(of: "/") { rest = rest[..<path] }
        var host = rest
        var digits: Substring?
        if rest.first == "[" {
            guard let bracket = rest.firstIndex(of: "]") else { throw malformed }
            host = rest[rest.index(after: rest.startIndex)..<bracket]
            let tail = rest[rest.index(after: bracket)...]
            if !tail.isEmpty {
                guard tail.first == ":" else { throw malformed }
                digits = tail.dropFirst()
            }
        } else if let colon = rest.firstIndex(of: ":"), colon == rest.lastIndex(of: ":") {
            host = rest[..<colon]
            digits = rest[rest.index(after: colon)...]
        }
        guard !host.isEmpty else { throw malformed }
        guard let digits else { return (String(host), defaultPort) }
        guard let port = UInt16(digits), port > 0 else { throw malformed }
        return (String(host), port)
    }

    private static func look(up host: String, port: UInt16) throws(LoadError) -> SocketAddress {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_DGRAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            throw .noSuchHost(host, reason: gai_strerror(code).map { String(cString: $0) } ?? "error \(code)")
        }
        defer { freeaddrinfo(list) }
        var next = list
        while let entry = next {
            if let address = SocketAddress(entry.pointee, port: port) { return address }
            next = entry.pointee.ai_next
        }
        throw .noSuchHost(host, reason: "it has no IP address")
    }
}
