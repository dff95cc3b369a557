// What a tracker hears over HTTP: BEP 3, 7, 23, 27 and 48. Its answers: `HTTPReplyTests`.

import Primitives
import Testing
import Wire

@Suite("Announces and scrapes over HTTP")
struct HTTPTrackerTests {
    /// BEP 23's example, without the line break.
    static let bep23 = """
        peer_id=aaaaaaaaaaaaaaaaaaaa&info_hash=aaaaaaaaaaaaaaaaaaaa&port=6881&left=0&downloaded=100&uploaded=0\
        &compact=1
        """

    /// As libtorrent 2.0 writes it.
    static let libtorrent = """
        info_hash=%c1%2f%e1%c0k%ba%25J%9d%c9%f5%19%b35%aa%7c%13g%a8%8a&peer_id=-LT20B0-%21.~%2b%20%26%3d%00%ff%0aab\
        &port=6881&uploaded=1&downloaded=2&left=3&corrupt=0&key=0ABCDEF1&event=started&numwant=200&compact=1\
        &no_peer_id=1&supportcrypto=1&redundant=0&trackerid=a%2Fb
        """

    static let minimum = "info_hash=aaaaaaaaaaaaaaaaaaaa&peer_id=bbbbbbbbbbbbbbbbbbbb&port=1&left=2"

    private func announce(_ query: String) throws -> HTTPAnnounceRequest {
        try HTTPAnnounceRequest(query: [UInt8](ascii: query))
    }

    private func refusal(_ query: String) -> HTTPRequestError? {
        #expect(throws: HTTPRequestError.self, "\(query.prefix(100))") { try announce(query) }
    }

    // MARK: - Announces

    @Test func `the example of BEP 23 is read`() throws {
        let request = try announce(HTTPTrackerTests.bep23)
        #expect(request.infoHash.description == String(repeating: "61", count: 20))
        #expect(request.peerID.description == String(repeating: "61", count: 20))
        #expect(request.port == 6881)
        #expect(request.left == 0)
        #expect(request.downloaded == 100)
        #expect(request.uploaded == 0)
        #expect(request.compact == true)
        #expect(request.event == .none)
        #expect(request.numWant == nil)
        #expect(!request.noPeerID)
        #expect(request.key == nil && request.trackerID == nil && request.passkey == nil)
    }

    @Test func `what libtorrent sends is read, and what we do not know is skipped`() throws {
        let request = try announce(HTTPTrackerTests.libtorrent)
        #expect(request.infoHash.description == "c12fe1c06bba254a9dc9f519b335aa7c1367a88a")
        #expect(printable(request.peerID.bytes.bytes) == "-LT20B0-!.~+ &=\\x00\\xff\\x0aab")
        #expect(request.uploaded == 1 && request.downloaded == 2 && request.left == 3)
        #expect(request.event == .started)
        #expect(request.numWant == 200)
        #expect(request.noPeerID)
        #expect(request.key == [UInt8](ascii: "0ABCDEF1"))
        #expect(request.keyNumber == 0x0ABC_DEF1)
        #expect(request.trackerID == [UInt8](ascii: "a/b"))
    }

    /// Recorded from aria2 1.36, Transmission 3.00 and rtorrent 0.9.8, all for one torrent.
    static let recorded = [
        """
        info_hash=%82%85%20%B9%5C%CBe%AFZ%B9%7C%CF%A5%93C%1CI%1C%14%87&peer_id=A2-1-36-0-%AAd%15%3F%1Dw%A1%E3%3CX\
        &uploaded=0&downloaded=0&left=100005&compact=1&key=%15%3F%1Dw%A1%E3%3CX&numwant=50&no_peer_id=1&port=17001\
        &event=started&supportcrypto=1
        """,
        """
        info_hash=%82%85%20%b9%5c%cbe%afZ%b9%7c%cf%a5%93C%1cI%1c%14%87&peer_id=-TR3000-ful9mlsjxkcm&port=17001\
        &uploaded=0&downloaded=0&left=100005&numwant=80&key=4cbdc4f9&compact=1&supportcrypto=1&event=started
        """,
        """
        info_hash=%82%85%20%B9%5C%CBe%AFZ%B9%7C%CF%A5%93C%1CI%1C%14%87\
        &peer_id=-lt0D80-%3C%DB%86%99%8D%BE%28%89%7D%7EN%EA&key=35320825&compact=1&port=17001\
        &uploaded=0&downloaded=0&left=100005&event=started
        """,
    ]

    @Test(arguments: recorded)
    func `what other clients send is read`(_ query: String) throws {
        let request = try announce(query)
        #expect(request.infoHash.description == "828520b95ccb65af5ab97ccfa593431c491c1487")
        #expect(request.port == 17_001 && request.left == 100_005 && request.event == .started)
        #expect(request.compact == true)
        #expect((4...8).contains(request.key?.count ?? 0))
        #expect(try HTTPAnnounceRequest(query: request.encodedQuery()) == request)
    }

    @Test func `a plus sign is a plus sign, and raw bytes stand for themselves`() throws {
        // An info hash with 0x2B in it must not become another with 0x20.
        let raw: [UInt8] = [0x2B, 0xFF, 0x80, 0x00, 0x20] + [UInt8](ascii: "+%2B%2b%20aaaaaaaaaaa")
        let query = [UInt8](ascii: "port=1&left=2&peer_id=++++++++++++++++++++&info_hash=") + raw
        let request = try HTTPAnnounceRequest(query: query)
        #expect(printable(request.infoHash.bytes.bytes) == "+\\xff\\x80\\x00 +++ aaaaaaaaaaa")
        #expect(printable(request.peerID.bytes.bytes) == "++++++++++++++++++++")
    }

    @Test(arguments: [
        ("started", AnnounceEvent.started), ("stopped", .stopped), ("completed", .completed), ("", .none),
        ("empty", .none), ("paused", .none), ("Started", .none), ("%00", .none),
    ])
    func `an event that we do not know is none`(_ text: String, _ event: AnnounceEvent) throws {
        #expect(try announce("\(HTTPTrackerTests.minimum)&event=\(text)").event == event)
    }

    @Test(arguments: [
        ("", nil as Int?), ("numwant=", nil), ("numwant=-1", nil), ("numwant=-50", nil), ("numwant=0", 0),
        ("numwant=1", 1), ("numwant=00050", 50), ("numwant=9223372036854775807", .max), ("num_want=7", nil),
    ])
    func `the number of peers wanted has a default`(_ text: String, _ numWant: Int?) throws {
        #expect(try announce("\(HTTPTrackerTests.minimum)&\(text)").numWant == numWant)
    }

    @Test(arguments: [("compact=1", true as Bool?), ("compact=0", false), ("compact=yes", nil), ("compact", nil)])
    func `compact is a wish`(_ text: String, _ compact: Bool?) throws {
        #expect(try announce("\(HTTPTrackerTests.minimum)&\(text)").compact == compact)
    }

    @Test(arguments: [
        ("DEADBEEF", 0xDEAD_BEEF as UInt32?), ("7f", 0x7F), ("", nil), ("+1", nil), ("-1", nil), ("123456789", nil),
        ("xyz", nil), ("12%00", nil),
    ])
    func `a key is a number where it is the one that UDP carries`(_ key: String, _ number: UInt32?) throws {
        #expect(try announce("\(HTTPTrackerTests.minimum)&key=\(key)").keyNumber == number)
    }

    @Test func `bytes may be as many as 64 bits count`() throws {
        // What a client with nothing but a magnet link says (anacrolix/torrent).
        let request = try announce(
            "\(HTTPTrackerTests.minimum)&uploaded=18446744073709551615&downloaded=0".replacing(
                "left=2", with: "left=18446744073709551615"))
        #expect(request.left == .max && request.uploaded == .max && request.downloaded == 0)
    }

    @Test func `a passkey in the query is kept apart from the path's`() throws {
        #expect(try announce("passkey=0a1b&\(HTTPTrackerTests.minimum)").passkey == [UInt8](ascii: "0a1b"))
        #expect(
            refusal("passkey=\(String(repeating: "a", count: 65))&\(HTTPTrackerTests.minimum)") == .outOfRange(.passkey)
        )
        // Opaque values of no use to us are not worth an error.
        let long = String(repeating: "a", count: 65)
        let request = try announce("\(HTTPTrackerTests.minimum)&key=\(long)&trackerid=\(long)")
        #expect(request.key == nil && request.trackerID == nil)
    }

    // MARK: - Claimed addresses

    @Test(arguments: [
        ("ip=192.0.2.7", "192.0.2.7:1" as String?), ("ip=192.0.2.7:81", "192.0.2.7:81"),
        ("ip=2001:db8::7", "[2001:db8::7]:1"), ("ip=%5B2001%3Adb8%3A%3A7%5D%3A81", "[2001:db8::7]:81"),
        ("ip=[2001:db8::7]", "[2001:db8::7]:1"), ("ip=tracker.example", nil), ("ip=", nil), ("ip=192.0.2.7:0", nil),
        ("ip=192.0.2.7:99999", nil), ("ip=192.0.2.7:", nil), ("ip=[2001:db8::7", nil), ("ip=[2001:db8::7]x", nil),
        ("ip=1.2.3.4.5", nil), ("ip=%zz", nil), ("ip=[]", nil), ("ip=:", nil), ("ip=:1", nil),
    ])
    func `a claimed address is read or ignored`(_ text: String, _ address: String?) throws {
        #expect(try announce("\(HTTPTrackerTests.minimum)&\(text)").claimedAddress?.description == address)
    }

    @Test func `claims of one family are of that family`() throws {
        let request = try announce(
            "\(HTTPTrackerTests.minimum)&ipv4=192.0.2.1&ipv6=2001:db8::1&ipv6=2001:db8::2&ipv4=192.0.2.2:9")
        #expect(request.claimedIPv4?.description == "192.0.2.2:9")
        #expect(request.claimedIPv6?.description == "[2001:db8::2]:1")
        let crossed = try announce("\(HTTPTrackerTests.minimum)&ipv6=192.0.2.1&ipv4=2001:db8::1")
        #expect(crossed.claimedIPv4 == nil && crossed.claimedIPv6 == nil)
    }

    // MARK: - Refusals

    @Test(arguments: [
        ("", HTTPRequestError.missing(.infoHash)),
        ("&&&=&=x&", .missing(.infoHash)),
        ("info_hash", .wrongLength(.infoHash, expected: 20, found: 0)),
        ("info_hash=aaaaaaaaaaaaaaaaaaa", .wrongLength(.infoHash, expected: 20, found: 19)),
        ("info_hash=aaaaaaaaaaaaaaaaaaaaa", .wrongLength(.infoHash, expected: 20, found: 21)),
        (
            "info_hash=c12fe1c06bba254a9dc9f519b335aa7c1367a88a",
            .wrongLength(.infoHash, expected: 20, found: 40)
        ),
        ("info_hash=aaaaaaaaaaaaaaaaaaa%", .notPercentEncoded(.infoHash)),
        ("info_hash=aaaaaaaaaaaaaaaaaaa%4", .notPercentEncoded(.infoHash)),
        ("info_hash=aaaaaaaaaaaaaaaaaaa%4g", .notPercentEncoded(.infoHash)),
        ("info_hash=aaaaaaaaaaaaaaaaaaaa", .missing(.peerID)),
        ("info_hash=aaaaaaaaaaaaaaaaaaaa&peer_id=b", .wrongLength(.peerID, expected: 20, found: 1)),
        ("info_hash=aaaaaaaaaaaaaaaaaaaa&peer_id=bbbbbbbbbbbbbbbbbbbb", .missing(.port)),
        ("info_hash=aaaaaaaaaaaaaaaaaaaa&peer_id=bbbbbbbbbbbbbbbbbbbb&port=1", .missing(.left)),
        ("info_hash=aaaaaaaaaaaaaaaaaaaa&peer_id=bbbbbbbbbbbbbbbbbbbb&port=0&left=1", .portZero),
        ("port=", .missing(.port)), ("port=65536", .outOfRange(.port)), ("port=-1", .notANumber(.port)),
        ("port=6881x", .notANumber(.port)), ("port=%36", .notANumber(.port)), ("port=+1", .notANumber(.port)),
        ("left=", .missing(.left)), ("left=-1", .notANumber(.left)), ("left", .missing(.left)),
        // Transmission issue 1974.
        ("left=9.2233720368548E+18", .notANumber(.left)),
        ("left=18446744073709551616", .outOfRange(.left)),
        ("uploaded=99999999999999999999999999999999", .outOfRange(.uploaded)),
        ("downloaded=0x10", .notANumber(.downloaded)),
        ("numwant=-", .missing(.numWant)), ("numwant=many", .notANumber(.numWant)),
        ("numwant=9223372036854775808", .outOfRange(.numWant)), ("numwant=--1", .notANumber(.numWant)),
        ("\(minimum)&info_hash=aaaaaaaaaaaaaaaaaaaa", .repeated(.infoHash)),
        ("\(minimum)&left=2", .repeated(.left)), ("\(minimum)&port=2", .repeated(.port)),
        ("\(minimum)&peer_id=cccccccccccccccccccc", .repeated(.peerID)),
        ("\(minimum)&key=%", .notPercentEncoded(.key)),
    ])
    func `a bad announce is refused with a sentence for its sender`(_ query: String, _ error: HTTPRequestError) throws {
        #expect(refusal(query) == error)
        let failure = try BencodeValue(decoding: HTTPFailure(error).encoded())
        let reason = try #require(failure["failure reason"]?.bytes)
        #expect(reason.count > 10 && reason.allSatisfy { (0x20..<0x7F).contains($0) })
        #expect(reason.count <= HTTPFailure.maxTextByteCount)
    }

    @Test func `a query has an end`() throws {
        let room = String(
            repeating: "&", count: HTTPAnnounceRequest.maxQueryByteCount - HTTPTrackerTests.minimum.utf8.count)
        #expect(try announce(HTTPTrackerTests.minimum + room).port == 1)
        #expect(refusal("\(HTTPTrackerTests.minimum)\(room)&") == .tooLong(limit: 4_096))
    }

    @Test func `a key that we do not know may be garbled`() throws {
        _ = try announce("corrupt=%zz&\(HTTPTrackerTests.minimum)&redundant=-1&%=%&=&info_hash2=x&?=?")
    }

    // MARK: - Scrapes

    private func scrape(_ query: String) throws -> HTTPScrapeRequest {
        try HTTPScrapeRequest(query: [UInt8](ascii: query))
    }

    @Test func `a scrape keeps the order of its info hashes, and repeats`() throws {
        // BEP 48's example, with one asked twice.
        let (x, y) = (String(repeating: "x", count: 20), String(repeating: "%79", count: 20))
        let request = try scrape("info_hash=\(x)&info_hash=\(y)&passkey=k&info_hash=\(x)&other=1")
        #expect(request.infoHashes.map { printable($0.bytes.bytes.prefix(1)) } == ["x", "y", "x"])
        #expect(request.passkey == [UInt8](ascii: "k"))
    }

    @Test func `a scrape asks for as many as a datagram holds, and for something`() throws {
        let one = "info_hash=" + String(repeating: "%fF", count: 20)
        let all = Array(repeating: one, count: HTTPScrapeRequest.maxInfoHashes).joined(separator: "&")
        #expect(HTTPScrapeRequest.maxInfoHashes == 74)
        #expect(try scrape(all).infoHashes.count == 74)
        #expect(throws: HTTPRequestError.tooManyInfoHashes(limit: 74)) { try scrape("\(all)&\(one)") }
        #expect(throws: HTTPRequestError.missing(.infoHash)) { try scrape("") }
        #expect(throws: HTTPRequestError.wrongLength(.infoHash, expected: 20, found: 3)) { try scrape("info_hash=abc") }
        #expect(throws: HTTPRequestError.tooLong(limit: HTTPScrapeRequest.maxQueryByteCount)) {
            try scrape(all + String(repeating: "&", count: 1_000))
        }
    }

    // MARK: - Torture

    static let announceCodec = CodecTorture(
        name: "HTTP announce",
        decode: { try? HTTPAnnounceRequest(query: $0) },
        encode: { $0.encodedQuery() },
        spice: Array("&=%+-0123456789abcdefF:.[]".utf8) + [0, 0xFF])

    static let scrapeCodec = CodecTorture(
        name: "HTTP scrape",
        decode: { try? HTTPScrapeRequest(query: $0) },
        encode: { $0.encodedQuery() },
        spice: announceCodec.spice)

    static let announces = [
        bep23, libtorrent, minimum, "\(minimum)&ip=[2001:db8::7]:81&ipv4=192.0.2.1&ipv6=::ffff:1.2.3.4&passkey=%2f",
        "\(minimum)&numwant=50&event=stopped&key=%00%01&compact=0",
    ].map { [UInt8](ascii: $0) }

    @Test func `what a client writes is what a tracker reads`() throws {
        var request = try announce(HTTPTrackerTests.libtorrent)
        request.passkey = [0, 0x26, 0x3D, 0x25]
        request.numWant = 0
        request.compact = false
        request.claimedAddress = SocketAddress(host: "2001:db8::9", port: 99)
        request.claimedIPv4 = SocketAddress(ipv4: 0xC000_0201, port: request.port)
        for event in [AnnounceEvent.none, .started, .completed, .stopped] {
            request.event = event
            #expect(try HTTPAnnounceRequest(query: request.encodedQuery()) == request)
        }
        let written = HTTPAnnounceRequest(
            infoHash: request.infoHash, peerID: .zero, port: 1, left: 5, compact: nil
        ).encodedQuery()
        #expect(
            printable(written) == """
                info_hash=%C1%2F%E1%C0k%BA%25J%9D%C9%F5%19%B35%AA%7C%13g%A8%8A\
                &peer_id=\(String(repeating: "%00", count: 20))&port=1&uploaded=0&downloaded=0&left=5
                """)
        let scrape = HTTPScrapeRequest(infoHashes: [request.infoHash, request.infoHash], passkey: [0x26])
        #expect(try HTTPScrapeRequest(query: scrape.encodedQuery()) == scrape)
    }

    @Test(arguments: announces)
    func `a query that is cut off is read or refused`(_ query: [UInt8]) {
        _ = HTTPTrackerTests.announceCodec.acceptedCuts(of: query)
        // Until the last thing that an announce needs, nothing is accepted.
        let needed = query.split(separator: UInt8(ascii: "&")).prefix { !$0.starts(with: "left".utf8) }
        let prefix = needed.reduce(0) { $0 + $1.count + 1 } + "left=".utf8.count
        #expect(HTTPTrackerTests.announceCodec.acceptedCuts(of: Array(query.prefix(prefix))).isEmpty)
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `mutated queries are read or refused`(_ seed: UInt64) {
        let announces = HTTPTrackerTests.announceCodec.mutate(HTTPTrackerTests.announces, seed: seed, rounds: 4_000)
        #expect(announces.accepted > 300 && announces.refused > 300)
        let scrapes = HTTPTrackerTests.scrapeCodec.mutate(
            [
                HTTPTrackerTests.announces[1],
                [UInt8](ascii: "info_hash=xxxxxxxxxxxxxxxxxxxx&info_hash=%79yyyyyyyyyyyyyyyyyyy"),
            ],
            seed: seed, rounds: 2_000)
        #expect(scrapes.accepted > 200 && scrapes.refused > 200)
    }
}
