// The local network is told of torrents, and asked for peers (BEP 14).

import Datagrams
import Glibc
import Primitives
import Wire

/// The local network is told of torrents, and asked for peers (BEP 14): over IPv4.
final class LocalDiscovery {
    static let group = SocketAddress(ipv4: 0xEFC0_988F, port: 6_771)
    static let maxByteCount = 1_400

    let descriptor: CInt
    /// Tells our own words from those of others on this host.
    private let cookie = UInt32.random(in: 0...(.max))

    init() throws(SocketError) { descriptor = try Streams.group(Self.group) }

    deinit { close(descriptor) }

    func announce(_ infoHash: InfoHash, port: UInt16) {
        guard port != 0 else { return }
        let text =
            "BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\nPort: \(port)\r\nInfohash: \(infoHash)\r\n"
            + "cookie: \(String(cookie, radix: 16))\r\n\r\n\r\n"
        Streams.send(Array(text.utf8), to: Self.group, over: descriptor)
    }

    /// Reads what somebody says: which torrents it has, and where it listens; nil for our own words and for nonsense.
    func read(_ bytes: [UInt8], from source: SocketAddress) -> (infoHashes: [InfoHash], address: SocketAddress)? {
        guard let text = String(validating: bytes, as: UTF8.self), text.hasPrefix("BT-SEARCH * HTTP/1.1\r\n") else {
            return nil
        }
        var port: UInt16?
        var infoHashes: [InfoHash] = []
        for line in text.split(separator: "\r\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            switch line[..<colon].lowercased() {
            case "port": port = UInt16(value)
            case "infohash": if let infoHash = InfoHash(hexadecimal: String(value)) { infoHashes.append(infoHash) }
            case "cookie": if value == String(cookie, radix: 16) { return nil }
            default: break
            }
        }
        guard let port, port != 0, !infoHashes.isEmpty else { return nil }
        var address = source
        address.port = port
        return (infoHashes, address)
    }
}
