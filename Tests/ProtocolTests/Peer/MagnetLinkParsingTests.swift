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
        let link = MagnetLink(
            infoHash: InfoHash(hexadecimal: Self.digits), infoHashV2: v2, displayName: Array("a&b=c+d é".utf8),
            trackers: ["udp://[::1]:6969/announce?x=1&y=2"])
        #expect(try MagnetLink(parsing: link.text) == link)
    }

    @Test(arguments: [
        ("", MagnetLinkError.otherScheme), ("magnet:", .otherScheme), ("http://x/?xt=urn:btih:\(digits)", .otherScheme),
        ("magnet:?dn=x", .noInfoHash), ("magnet:?xt=urn:sha1:x", .noInfoHash),
        ("magnet:?xt=urn:btih:", .badInfoHash("urn:btih:")), ("magnet:?xt=urn:btih:12", .badInfoHash("urn:btih:12")),
        ("magnet:?xt=urn:btmh:1220ab", .badInfoHash("urn:btmh:1220ab")),
        ("magnet:?xt=urn:btih:\(digits)&dn=" + String(repeating: "x", count: 65_536), .tooLong),
    ])
    func `what is no link is refused with a reason`(text: String, expected: MagnetLinkError) {
        #expect(throws: expected) { try MagnetLink(parsing: text) }
    }

    @Test func `whatever a stranger pastes is read or refused`() {
        var random = RandomStream(seed: 9)
        let link = Array("magnet:?xt=urn:btih:\(Self.digits)&dn=%41+b&tr=udp%3A%2F%2Fa&xt=urn:btmh:1220ff".utf8)
        var readings = 0
        for _ in 0..<20_000 {
            var bytes = link
            for _ in 0..<3 { bytes[random.below(bytes.count)] = UInt8(random.below(256)) }
            if (try? MagnetLink(parsing: String(decoding: bytes, as: UTF8.self))) != nil { readings += 1 }
        }
        #expect(readings < 20_000)
    }
}
