// Addresses in words: RFC 5952 out, and in whatever a person may have typed.

import Primitives
import Testing

@Suite("Addresses")
struct AddressTests {
    /// Texts as they are written, and the same address as it is told: RFC 5952, section 4, RFC 4291, section 2.2.
    static let hosts: [(String, String)] = [
        ("192.0.2.1", "192.0.2.1"), ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"),
        ("::", "::"), ("::1", "::1"), ("1::", "1::"), ("2001:db8::1", "2001:db8::1"),
        // 4.1: leading zeros go.
        ("2001:0db8::0001", "2001:db8::1"),
        // 4.2.1: as short as possible.
        ("2001:db8:0:0:0:0:2:1", "2001:db8::2:1"), ("2001:db8::0:1", "2001:db8::1"),
        // 4.2.2: one group of zeros stays.
        ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"), ("2001:db8::1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
        // 4.2.3: the longest run; the first of two as long.
        ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        // 4.3: lower case.
        ("2001:DB8::AaaA", "2001:db8::aaaa"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"), ("0:0:0:0:0:0:0:0", "::"), ("fe80::", "fe80::"),
        // Section 5: what carries an IPv4 address is told as one.
        ("::ffff:192.0.2.1", "192.0.2.1"), ("::ffff:c000:201", "192.0.2.1"), ("::192.0.2.1", "::c000:201"),
        ("64:ff9b::192.0.2.33", "64:ff9b::c000:221"), ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
    ]

    @Test(arguments: hosts)
    func `an address is read as typed and told in one form`(_ typed: String, _ told: String) throws {
        let address = try #require(SocketAddress(host: typed, port: 6969))
        #expect(address.host == told)
        #expect(address.description == (address.isIPv4 ? "\(told):6969" : "[\(told)]:6969"))
        #expect(SocketAddress(host: told, port: 6969) == address)
    }

    @Test(arguments: [
        "", " ", ".", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", "1.2.3.+4", "1.2..4", "1.2.3.4 ", "01.2.3.4",
        "1.2.3.04", "0x1.2.3.4", "1.2.3.1000", "١.2.3.4", "localhost", ":", ":::", "1:", ":1", "1:2", "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1::2::3", "::g", "::12345", "::+1", "::-0",
        "::-1", ":: 1", "[::1]", "::1.2.3", "::1.2.3.4:5", "1.2.3.4::", "::1.2.3.256", "1:2:3:4:5:6:7:1.2.3.4",
        "fe80::1%eth0", "::ffff:1.2.3.4.5", "192.0.2.1:80",
    ])
    func `what is no address is refused`(_ text: String) {
        #expect(SocketAddress(host: text, port: 1) == nil)
    }

    @Test func `every address comes back from its own text`() throws {
        var random = RandomStream(seed: 5)
        for _ in 0..<rounds(20_000) {
            func groups() -> UInt64 {
                (0..<4).reduce(0) { number, _ in
                    number << 16 | (random.oneIn(2) ? 0 : random.next() >> UInt64(48 + random.below(16)))
                }
            }
            let address =
                random.oneIn(4)
                ? SocketAddress(ipv4: UInt32(truncatingIfNeeded: random.next()), port: 1)
                : SocketAddress(high: groups(), low: groups(), port: 1)
            let read = SocketAddress(host: address.host, port: 1)
            guard read == address else {
                Issue.record("\(address.high) \(address.low) is told as \(address.host)")
                return
            }
        }
    }

    @Test func `texts that are nearly addresses trap nothing`() {
        var random = RandomStream(seed: 6)
        let letters = Array("0123456789abcdefF.:::.%+-/ g".utf8)
        var accepted = 0
        for _ in 0..<rounds(100_000) {
            let text = String(
                decoding: (0..<random.below(24)).map { _ in letters[random.below(letters.count)] }, as: UTF8.self)
            guard let address = SocketAddress(host: text, port: 1) else { continue }
            accepted += 1
            if SocketAddress(host: address.host, port: 1) != address { Issue.record("\(text)") }
        }
        #expect(accepted > 5)
    }

    @Test func `kinds of addresses are told apart`() throws {
        func address(_ host: String) throws -> SocketAddress { try #require(SocketAddress(host: host, port: 1)) }
        for host in ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"] { #expect(try address(host).isLoopback) }
        for host in ["128.0.0.1", "::2", "::", "0.0.0.0", "1::1"] { #expect(try !address(host).isLoopback) }
        for host in ["0.0.0.0", "::"] { #expect(try address(host).isUnspecified) }
        for host in ["0.0.0.1", "::1", "1::"] { #expect(try !address(host).isUnspecified) }
        #expect(try address("192.0.2.1").ipv4 == 0xC000_0201)
        #expect(try address("::ffff:192.0.2.1").isIPv4)
        #expect(try !address("::fffe:192.0.2.1").isIPv4)
        #expect(SocketAddress.unspecified.isUnspecified)
    }

    @Test func `the zone of a link-local address shows`() {
        let address = SocketAddress(high: 0xFE80_0000_0000_0000, low: 1, scope: 3, port: 6969)
        #expect(address.description == "[fe80::1%3]:6969")
    }
}
