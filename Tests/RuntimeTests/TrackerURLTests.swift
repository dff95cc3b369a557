import Client
import Testing

@Suite("Tracker URLs")
struct TrackerURLTests {
    static let goodURLs: [(text: String, scheme: TrackerURL.Scheme, host: String, port: UInt16, path: String)] = [
        ("udp://tracker.example:1337/announce", .udp, "tracker.example", 1337, "/announce"),
        ("udp://192.0.2.1", .udp, "192.0.2.1", 6969, ""),
        ("UDP://[2001:db8::1]:80", .udp, "2001:db8::1", 80, ""),
        ("udp://[fe80::1%25eth0]:80", .udp, "fe80::1%eth0", 80, ""),
        ("http://tracker.example/KEY/announce?a=b#c", .http, "tracker.example", 80, "/KEY/announce?a=b"),
        ("http://[::1]:8080?x", .http, "::1", 8080, "/?x"),
    ]

    @Test(arguments: goodURLs)
    func `are read`(text: String, scheme: TrackerURL.Scheme, host: String, port: UInt16, path: String) throws {
        let url = try TrackerURL(text)
        #expect(url.scheme == scheme)
        #expect(url.host == host)
        #expect(url.port == port)
        #expect(url.path == path)
        #expect(try TrackerURL(url.description.replacing("%eth0", with: "%25eth0")) == url)
    }

    static let badURLs: [(text: String, message: String)] = [
        ("", "\"\" has no scheme; write for example udp://"),
        ("tracker.example:80", "\"tracker.example:80\" has no scheme; write for example udp://tracker.example:80"),
        (
            "https://a/announce",
            "\"https://a/announce\" cannot be asked: HTTPS is not spoken; use another of the tracker's URLs"
        ),
        (
            "wss://a/announce",
            "\"wss://a/announce\" cannot be asked: only udp:// and http:// are known; use another of the tracker's URLs"
        ),
        (
            "udp://a b",
            "\"udp://a b\" is not a URL: write at most 2048 printable characters without blanks"
        ),
        (
            "udp://:80",
            "\"udp://:80\" names no host and port; write for example udp://tracker.example:6969/announce"
        ),
    ]

    @Test(arguments: badURLs)
    func `that are none are refused with a reason`(text: String, message: String) {
        #expect(throws: TrackerURLError.self) { try TrackerURL(text) }
        do throws(TrackerURLError) {
            _ = try TrackerURL(text)
        } catch {
            #expect(error.description == message)
        }
    }

    @Test(
        arguments: [
            "udp://a:0", "udp://a:65536", "udp://a:+1", "udp://a:", "udp://a:b", "udp://::1:80", "udp://[::1",
            "udp://[::1]x",
            "udp://[a]:80", "http://user@a/announce", "udp://\(String(repeating: "a", count: 256))",
            "udp://\(String(repeating: "a", count: 2050))", "http://a/\r\nX: y", "http://ä/announce",
        ])
    func `with a host or port that cannot be are refused`(text: String) {
        #expect(throws: TrackerURLError.self) { try TrackerURL(text) }
    }
}
