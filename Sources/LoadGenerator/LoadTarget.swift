// Where the load goes: `udp://host:port[/announce]`, `host:port`, with an address or a name.

import Client
import Primitives

extension LoadOptions {
    /// Reads a tracker's URL and looks its host up.
    ///
    /// - Parameter text: `udp://tracker.example:6969/announce`, `udp://[::1]:6969`, `127.0.0.1:6969`.
    /// - Returns: the first address that the host has.
    /// - Throws: `.invalid` or `.noSuchHost`.
    public static func target(_ text: String) throws(LoadError) -> SocketAddress {
        // An IPv6 address may stand alone, without brackets.
        if let address = SocketAddress(host: text, port: TrackerURL.defaultUDPPort) { return address }
        let url: TrackerURL
        do throws(TrackerURLError) {
            url = try TrackerURL(text.contains("://") ? text : "udp://\(text)")
        } catch {
            throw .invalid("\(error)")
        }
        guard url.scheme == .udp else { throw .invalid("\"\(url)\" is not a UDP tracker: its URL begins with udp://") }
        do throws(TrackerClientError) {
            return try SocketAddress.lookUp(url.host, port: url.port)[0]
        } catch {
            throw .noSuchHost(error)
        }
    }
}
