// The way to a service manager, by the protocol of sd_notify(3).

import Glibc

/// The way to a service manager, by the protocol of sd_notify(3): datagrams of text to a Unix socket.
public struct NotifySocket: Sendable, Hashable {
    /// Bytes of a name at most (unix(7)), less the zero that ends a path.
    static let maxNameByteCount = 107

    /// The name as the kernel wants it: a path, or a zero and the name in Linux's abstract space.
    private let name: [UInt8]

    /// Takes a name as `NOTIFY_SOCKET` has it: an absolute path, or `@` and an abstract name.
    ///
    /// Nothing is opened yet. The result is nil where the name is neither, or is too long.
    public init?(_ name: String) {
        var bytes = Array(name.utf8)
        guard (2...NotifySocket.maxNameByteCount).contains(bytes.count), !bytes.contains(0) else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "/"): break
        case UInt8(ascii: "@"): bytes[0] = 0
        default: return nil
        }
        self.name = bytes
    }

    /// Sends one message; never waits.
    ///
    /// - Parameter message: lines of `NAME=value`.
    /// - Returns: false where nobody hears, or too much waits already.
    public func send(_ message: String) -> Bool {
        let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address: [UInt8] = []
        withUnsafeBytes(of: sa_family_t(AF_UNIX)) { address.append(contentsOf: $0) }
        address += name
        // A path ends with a zero; an abstract name ends with the address.
        if name[0] != 0 { address.append(0) }
        let bytes = Array(message.utf8)
        let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
        let sent = address.withUnsafeBytes { raw in
            guard let start = raw.baseAddress else { preconditionFailure("an address has bytes") }
            let place = start.assumingMemoryBound(to: sockaddr.self)
            return sendto(
                descriptor, bytes, bytes.count, flags, __CONST_SOCKADDR_ARG(__sockaddr__: place),
                socklen_t(raw.count))
        }
        return sent == bytes.count
    }
}
