// Magnet links, read.

import Primitives
import Testing
import Wire

@Suite("Magnet links, read")
struct MagnetLinkParsingTests {
    static let digits = "0123456789abcdef0123456789abcdef01234567"

    @Test(arguments: [
        "magnet:?xt=urn:btih:\(digits)", "MAGNET:?XT=URN:BTIH:\(digits.uppercased())",
        "magnet:?dn=x&xt=urn:btih:\(digits)&xt=urn:btih:\(String(repeating: "f", count: 40))",
        "magnet://?xt=urn:btih:\(digits)&unknown=1&=&&x", "magnet:?xt=urn%3Abtih%3A\(digits)",
        "magnet:?xt.1=urn:btih:\(digits)", "magnet:?xt=urn:btih:AERUKZ4JVPG66AJDIVTYTK6N54ASGRLH",
        "magnet:?xt=urn:btih:aerukz4jvpg66ajdivtytk6n54asgrlh",
    ])
    func `a link names its torrent, however it is written`(text: String) throws {
        #expect(try MagnetLink(parsing: text).infoHash?.description == Self.digits)
    }

    @Test func `name and trackers are read, and a plus is a blank in names alone`() throws {
        let link = try MagnetLink(
            parsing: "magnet:?xt=urn:btih:\(Self.digits)&dn=two+words%21&tr=udp%3A%2F%2Fa%3A1&tr.1=http://b/c?k=x+y"
                + "&tr=udp://a:1&tr=with%20blank")
        #expect(link.displayName == Array("two words!".utf8))
        #expect(link.trackers == ["udp://a:1", "http://b/c?k=x+y"])
    }

    @Test func `what is written is read again`() throws {
        let v2 = try #require(Bytes32(Array(1...32)))
        var link = MagnetLink(
            infoHash: InfoHash(hexadecimal: Self.digits), infoHashV2: v2, displayName: Array("a&b=c+d é".utf8),
            trackers: ["udp://[::1]:6969/announce?x=1&y=2"])
        link.webSeeds = ["http://mirror.example/data%20set/?a=b+c"]
        link.peers = [.init(host: "2001:db8::1", port: 6881), .init(host: "peer.example", port: 1)]
        link.selection = [0...0, 2...2, 4...6]
        #expect(try MagnetLink(parsing: link.text) == link)
    }

    @Test func `peers, web seeds and wanted files are read, and what is none is passed over`() throws {
        let link = try MagnetLink(
            parsing: "magnet:?xt=urn:btih:\(Self.digits)&x.pe=192.0.2.1:6881&x.pe=[2001:db8::1]:1"
                + "&x.pe=host.example:65535&x.pe=192.0.2.1:6881&x.pe=nowhere&x.pe=a:0&x.pe=a:70000&x.pe=:5"
                + "&x.pe=2001:db8::1:5&x.pe=[a]:5&x.pe=a:+5&x.pe=a%20b:5&x.pe=[]:5&ws=http%3A%2F%2Fa%2F&ws=&ws=http://a/&ws.2=https://b/c&so=0,2,4-6&so=9"
        )
        #expect(
            link.peers == [
                .init(host: "192.0.2.1", port: 6881), .init(host: "2001:db8::1", port: 1),
                .init(host: "host.example", port: 65_535),
            ])
        #expect(link.webSeeds == ["http://a/", "https://b/c"])
        #expect(link.selection == [0...0, 2...2, 4...6, 9...9])
    }

    @Test func `of everything there may be so many`() throws {
        var text = "magnet:?xt=urn:btih:\(Self.digits)"
        for number in 1...200 { text += "&x.pe=a:\(number)&ws=http://a/\(number)&tr=udp://a:\(number)" }
        let link = try MagnetLink(parsing: text)
        #expect(link.peers.count == MagnetLink.maxPeerCount)
        #expect(link.webSeeds.count == MagnetLink.maxPeerCount)
        #expect(link.trackers.count == MagnetLink.maxTrackerCount)
        let some = "&so=1" + String(repeating: ",1", count: MagnetLink.maxSelectionCount - 1)
        let all = try MagnetLink(parsing: "magnet:?xt=urn:btih:\(Self.digits)" + some)
        #expect(all.selection.count == MagnetLink.maxSelectionCount)
        #expect(throws: MagnetLinkError.self) {
            try MagnetLink(parsing: "magnet:?xt=urn:btih:\(Self.digits)" + some + ",1")
        }
    }

    @Test(arguments: [
        ("", MagnetLinkError.otherScheme), ("magnet:", .otherScheme), ("http://x/?xt=urn:btih:\(digits)", .otherScheme),
        ("magnet:?dn=x", .noInfoHash), ("magnet:?xt=urn:sha1:x", .noInfoHash),
        ("magnet:?xt=urn:btih:", .badInfoHash("urn:btih:")), ("magnet:?xt=urn:btih:12", .badInfoHash("urn:btih:12")),
        ("magnet:?xt=urn:btih:\(digits)&so=", .badSelection("")),
        ("magnet:?xt=urn:btih:\(digits)&so=1,,2", .badSelection("1,,2")),
        ("magnet:?xt=urn:btih:\(digits)&so=3-1", .badSelection("3-1")),
        ("magnet:?xt=urn:btih:\(digits)&so=-1", .badSelection("-1")),
        ("magnet:?xt=urn:btih:\(digits)&so=0-199999,0-199999", .badSelection("0-199999,0-199999")),
        ("magnet:?xt=urn:btih:\(digits)&so=1-2-3", .badSelection("1-2-3")),
        ("magnet:?xt=urn:btih:\(digits)&so=99999999999999999999", .badSelection("99999999999999999999")),
        ("magnet:?xt=urn:btmh:1220ab", .badInfoHash("urn:btmh:1220ab")),
        ("magnet:?xt=urn:btih:\(digits)&dn=" + String(repeating: "x", count: 65_536), .tooLong),
    ])
    func `what is no link is refused with a reason`(text: String, expected: MagnetLinkError) {
        #expect(throws: expected) { try MagnetLink(parsing: text) }
    }

    @Test func `whatever a stranger pastes is read or refused`() {
        var random = RandomStream(seed: 9)
        let link = Array(
            "magnet:?xt=urn:btih:\(Self.digits)&dn=%41+b&tr=udp%3A%2F%2Fa&x.pe=a:1&so=1-2&xt=urn:btmh:1220ff".utf8)
        var readings = 0
        for _ in 0..<20_000 {
            var bytes = link
            for _ in 0..<3 { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
            if (try? MagnetLink(parsing: String(decoding: bytes, as: UTF8.self))) != nil { readings += 1 }
        }
        #expect(readings < 20_000)
    }
}
