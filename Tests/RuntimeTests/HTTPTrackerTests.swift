import Primitives
import Testing
import TrackerLogic
import Web
import Wire

@Suite("HTTP: the tracker")
struct HTTPTrackerTests {
    private func address(_ text: String, _ port: UInt16) -> SocketAddress { SocketAddress(host: text, port: port)! }

    // MARK: Announces

    @Test
    func `an announce reaches the logic whole, and its answer the client, with peers of both families`() async throws {
        let logic = Logic { _ in
            .announce(
                AnnounceAnswer(
                    interval: 1801, minInterval: 900, counts: SwarmCounts(seeders: 1, leechers: 2, completed: 3),
                    ipv4: [(CompactIPv4(SocketAddress(host: "192.0.2.1", port: 258)!)!, .zero)],
                    ipv6: [(CompactIPv6(SocketAddress(host: "2001:db8::1", port: 772)!)!, .zero)]))
        }
        let service = try await tracker(logic)
        let query =
            "info_hash=abcdefghij0123456789&peer_id=-XX0001-000000000000&port=6881&uploaded=1&downloaded=22&left=333"
        let (response, _) = try await running([service]) {
            try await fetch("/announce?\(query)&event=started&numwant=7&compact=1", from: service.address)
        }
        #expect(response.status == 200)
        #expect(response["content-type"] == "text/plain")
        #expect(response["content-length"] == "\(response.body.count)")
        let expected =
            "d8:completei1e10:downloadedi3e11:external ip4:\u{7F}\u{0}\u{0}\u{1}10:incompletei2e8:intervali1801e"
            + "12:min intervali900e5:peers6:\u{C0}\u{0}\u{2}\u{1}\u{1}\u{2}6:peers618:\u{20}\u{1}\u{0D}\u{B8}"
            + String(repeating: "\u{0}", count: 11) + "\u{1}\u{3}\u{4}e"
        #expect(response.body == expected.unicodeScalars.map { UInt8($0.value) })
        let request = try #require(logic.handled.first)
        #expect(request.source.host == "127.0.0.1")
        #expect(request.passkey == [])
        #expect(
            request.announce
                == Announce(
                    infoHash: InfoHash(Bytes20(exampleHash)!),
                    peerID: PeerID(Bytes20(Array("-XX0001-000000000000".utf8))!), downloaded: 22, left: 333,
                    event: .started, numWant: 7, port: 6881))
    }

    @Test
    func `who does not want compact peers gets dictionaries, with peer ids unless he says otherwise`() async throws {
        let peerID = PeerID(Bytes20(Array("-PEER-00000000000000".utf8))!)
        let service = try await tracker(
            Logic { _ in
                .announce(
                    AnnounceAnswer(
                        interval: 1, minInterval: 1, counts: SwarmCounts(),
                        ipv4: [(CompactIPv4(SocketAddress(host: "192.0.2.1", port: 80)!)!, peerID)],
                        ipv6: [(CompactIPv6(SocketAddress(host: "2001:db8::1", port: 81)!)!, peerID)]))
            })
        try await running([service]) {
            let full = try await fetch("/announce?\(exampleQuery)&compact=0", from: service.address).text
            #expect(
                full.contains(
                    "5:peersld2:ip9:192.0.2.17:peer id20:-PEER-000000000000004:porti80ee"
                        + "d2:ip11:2001:db8::17:peer id20:-PEER-000000000000004:porti81eee"))
            let lean = try await fetch(
                "/announce?\(exampleQuery)&compact=0&no_peer_id=1", from: service.address
            ).text
            #expect(lean.contains("5:peersld2:ip9:192.0.2.14:porti80eed2:ip11:2001:db8::14:porti81eee"))
        }
    }

    /// All 256 byte values, twenty at a time.
    private static let hashes: [[UInt8]] = stride(from: 0, through: 240, by: 20).map { start in
        (start..<(start + 20)).map { UInt8(truncatingIfNeeded: $0) }
    }

    @Test(arguments: hashes)
    func `an info hash of any bytes arrives as it is, percent-encoded in either case`(hash: [UInt8]) async throws {
        let logic = Logic()
        let service = try await tracker(logic)
        let upper = hash.map { "%" + hexadecimal([$0]).uppercased() }.joined()
        let lower = hash.map { "%" + hexadecimal([$0]) }.joined()
        try await running([service]) {
            for encoded in [upper, lower] {
                let query = "info_hash=\(encoded)&peer_id=\(encoded)&port=1&left=0"
                let response = try await fetch("/announce?\(query)", from: service.address)
                #expect(response.status == 200)
            }
        }
        #expect(logic.handled.map(\.announce?.infoHash.bytes.bytes) == [hash, hash])
        #expect(logic.handled.map(\.announce?.peerID.bytes.bytes) == [hash, hash])
    }

    @Test
    func `bytes that a client sends raw arrive as they are, even one at a time and on a kept connection`() async throws
    {
        let logic = Logic()
        let service = try await tracker(logic)
        // What HTTP allows in a target, and everything above; 0x25, 0x26 and 0x3D have a meaning of their own.
        let allowed = (0x21...0xFF).map { UInt8($0) }.filter { ![0x23, 0x25, 0x26, 0x3D, 0x7F].contains($0) }
        let hashes = stride(from: 0, to: allowed.count - 19, by: 20).map { Array(allowed[$0..<($0 + 20)]) }
        try await running([service]) {
            let connection = try await RawConnection(to: service.address)
            for (index, hash) in hashes.enumerated() {
                let request =
                    Array("GET /announce?info_hash=".utf8) + hash + Array("&peer_id=".utf8) + hash
                    + Array("&port=1&left=0 HTTP/1.1\r\nHost: x\r\nX-Name: \u{FC}\r\n\r\n".utf8)
                if index == 0 {
                    for byte in request { try await connection.send([byte]) }
                } else {
                    try await connection.send(request)
                }
                let response = try await connection.response()
                #expect(response.text.hasPrefix("d8:complete"), "\(response.text)")
            }
        }
        #expect(logic.handled.map(\.announce?.infoHash.bytes.bytes) == hashes)
        #expect(logic.handled.map(\.announce?.peerID.bytes.bytes) == hashes)
    }

    @Test(arguments: ["announce", "scrape"])
    func `a passkey is read from each place where it may stand`(action: String) async throws {
        let logic = Logic()
        let service = try await tracker(logic)
        try await running([service]) {
            for target in [
                "/\(action)?", "/\(action)/K3y-~?", "/K3y-~/\(action)?", "/%4b3y%2D~/\(action)/?",
                "/\(action)?passkey=K3y-~&", "/K3y-~/\(action)?passkey=other&",
            ] {
                let response = try await fetch(target + exampleQuery, from: service.address)
                #expect(response.text.hasPrefix("d"), "\(target)")
                #expect(!response.text.contains("failure"), "\(target)")
            }
        }
        let passkey = Array("K3y-~".utf8)
        #expect(logic.handled.map(\.passkey) == [[], passkey, passkey, passkey, passkey, passkey])
    }

    @Test
    func `a proxy's absolute target is understood`() async throws {
        let logic = Logic()
        let service = try await tracker(logic)
        try await running([service]) {
            for target in ["http://tracker.example:80/announce?", "HTTP://tracker.example/K/announce?"] {
                let response = try await fetch(target + exampleQuery, from: service.address)
                #expect(response.status == 200)
            }
        }
        #expect(logic.handled.map(\.passkey) == [[], Array("K".utf8)])
    }

    // MARK: Scrapes

    @Test
    func `a scrape is answered for each info hash, up to 74 of them`() async throws {
        let logic = Logic()
        let service = try await tracker(logic)
        let hashes = (0..<75).map { number in
            "info_hash=" + (0..<20).map { "%" + hexadecimal([$0 == 0 ? UInt8(number) : 0xFF]) }.joined()
        }
        try await running([service]) {
            let one = try await fetch("/scrape?\(hashes[65])", from: service.address)
            let expected =
                "d5:filesd20:A" + String(repeating: "\u{FF}", count: 19)
                + "d8:completei1e10:downloadedi0e10:incompletei0eeee"
            #expect(one.body == expected.unicodeScalars.map { UInt8($0.value) })
            let most = try await fetch("/scrape?\(hashes.prefix(74).joined(separator: "&"))", from: service.address)
            #expect(most.text.contains("8:completei74e"))
            let more = try await fetch("/scrape?\(hashes.joined(separator: "&"))", from: service.address)
            #expect(more.status == 200)
            #expect(more.text == "d14:failure reason35:more than 74 torrents in one scrapee")
        }
        // The last may be given up before the logic is even asked.
        try await eventually("two have reached the logic") { logic.handled.count >= 2 }
        #expect(logic.handled.count == 2)
    }

    // MARK: Refusals

    @Test
    func `what cannot be read is refused with a reason, in HTTP 200, and does not reach the logic`() async throws {
        let logic = Logic()
        let service = try await tracker(logic)
        try await running([service]) {
            for (target, reason) in [
                ("/announce", "info_hash is missing"),
                ("/announce?info_hash=abc", "info_hash has 3 bytes instead of 20"),
                ("/announce?info_hash=%zz", "info_hash is not percent-encoded"),
                ("/announce?\(exampleQuery.replacing("6881", with: "0"))", "port is 0, where nobody can be reached"),
                ("/scrape", "info_hash is missing"),
            ] {
                let response = try await fetch(target, from: service.address)
                #expect(response.status == 200)
                #expect(response.text == "d14:failure reason\(reason.utf8.count):\(reason)e")
            }
        }
        #expect(logic.handled.isEmpty)
    }

    @Test
    func `what the logic refuses is said in its words; where it may pass, also when to try again`() async throws {
        let service = try await tracker(
            Logic { $0.passkey.isEmpty ? .failure(.passkeyMissing) : .failure(.trackerFull) })
        try await running([service]) {
            let missing = try await fetch("/announce?\(exampleQuery)", from: service.address)
            let reason = "private tracker: the announce URL needs your passkey"
            #expect(missing.text == "d14:failure reason\(reason.utf8.count):\(reason)e")
            let full = try await fetch("/announce/K?\(exampleQuery)", from: service.address)
            #expect(full.text.hasPrefix("d14:failure reason"))
            #expect(full.text.hasSuffix("8:retry ini2ee"))
        }
    }

    @Test
    func `a request that waits too long is told to come back, however deaf the logic is`() async throws {
        var limits = HTTPLimits()
        limits.answer = .milliseconds(200)
        let service = try await tracker(Logic(Logic.silent), limits: limits)
        let start = ContinuousClock.now
        try await running([service]) {
            let response = try await fetch("/announce?\(exampleQuery)", from: service.address)
            #expect(response.status == 200)
            #expect(response.text.contains("tracker is overloaded, try again later"))
            #expect(response.text.contains("8:retry ini2e"))
        }
        #expect(ContinuousClock.now - start >= .milliseconds(200))
    }

    @Test
    func `requests that were given up still count against the bound on those that wait`() async throws {
        var limits = HTTPLimits()
        limits.answer = .milliseconds(100)
        limits.waitingRequests = 2
        let logic = Logic(Logic.silent)
        let service = try await tracker(logic, limits: limits)
        try await running([service]) {
            for _ in 0..<4 {
                let response = try await fetch("/announce?\(exampleQuery)", from: service.address)
                #expect(response.text.contains("try again later"))
            }
        }
        // The last may be given up before the logic is even asked.
        try await eventually("two have reached the logic") { logic.handled.count >= 2 }
        #expect(logic.handled.count == 2)
    }

    @Test
    func `logic that fails is not the client's affair: try again later`() async throws {
        struct Broken: Error {}
        let service = try await tracker(Logic { _ in throw Broken() })
        try await running([service]) {
            let text = try await fetch("/announce?\(exampleQuery)", from: service.address).text
            #expect(text.contains("tracker cannot answer now, try again later"))
            #expect(!text.contains("Broken"))
        }
    }

    // MARK: Whose address

    @Test(
        arguments: [
            ([String](), ["203.0.113.1"], "127.0.0.1"),
            (["127.0.0.0/8"], [], "127.0.0.1"),
            (["127.0.0.0/8"], ["203.0.113.1"], "203.0.113.1"),
            (["127.0.0.0/8"], ["198.51.100.9, 203.0.113.1"], "203.0.113.1"),
            (["127.0.0.0/8"], ["198.51.100.9", "203.0.113.1"], "203.0.113.1"),
            (["127.0.0.0/8", "203.0.113.0/24"], ["198.51.100.9 , 203.0.113.1"], "198.51.100.9"),
            (["127.0.0.0/8", "203.0.113.0/24"], ["203.0.113.7,203.0.113.1"], "203.0.113.7"),
            (["127.0.0.0/8", "203.0.113.0/24"], ["nonsense, 203.0.113.1"], "203.0.113.1"),
            (["127.0.0.0/8"], ["203.0.113.1:4711"], "203.0.113.1"),
            (["127.0.0.0/8"], ["2001:db8::7"], "2001:db8::7"),
            (["127.0.0.0/8"], ["[2001:db8::7]:4711"], "2001:db8::7"),
            (["127.0.0.0/8"], ["unknown"], "127.0.0.1"),
            (["127.0.0.0/8"], ["203.0.113.1,"], "127.0.0.1"),
        ] as [([String], [String], String)])
    func `the client is the last hop that no trusted proxy vouches for`(
        trusted: [String], fields: [String], source: String
    ) async throws {
        let logic = Logic()
        let service = try await tracker(logic, trusted: trusted)
        try await running([service]) {
            let headers = fields.map { "X-Forwarded-For: \($0)" }
            _ = try await fetch("/announce?\(exampleQuery)", from: service.address, headers: headers)
        }
        #expect(logic.handled.map(\.source.host) == [source])
    }

    @Test
    func `an address in the query counts only if who sends it is trusted himself`() async throws {
        for (trusted, headers, source, port) in [
            ([String](), [String](), "127.0.0.1", 6881),
            (["127.0.0.1"], [], "203.0.113.5", 6881),
            (["127.0.0.1"], ["X-Forwarded-For: 198.51.100.9"], "198.51.100.9", 6881),
        ] as [([String], [String], String, UInt16)] {
            let logic = Logic()
            let service = try await tracker(logic, trusted: trusted)
            try await running([service]) {
                _ = try await fetch(
                    "/announce?\(exampleQuery)&ip=203.0.113.5", from: service.address, headers: headers)
            }
            #expect(logic.handled.map(\.source.host) == [source])
            #expect(logic.handled.map(\.announce?.port) == [port])
        }
    }

    @Test
    func `a client over IPv6 is known by its IPv6 address`() async throws {
        let logic = Logic()
        let service = try await tracker(logic, on: address("::1", 0))
        try await running([service]) {
            let response = try await fetch("/announce?\(exampleQuery)", from: service.address)
            #expect(response.text.contains("external ip16:"))
        }
        #expect(logic.handled.map(\.source.host) == ["::1"])
    }

    // MARK: Other paths

    @Test
    func `a browser is told what this is, and other paths that there is nothing`() async throws {
        let service = try await tracker(Logic())
        try await running([service]) {
            let root = try await fetch("/", from: service.address)
            #expect(root.status == 200)
            #expect(root["content-type"] == "text/plain; charset=utf-8")
            #expect(root.text.hasPrefix("This is a BitTorrent tracker: Swarmkeeper.\n"))
            for target in ["/favicon.ico", "/a/b/announce?\(exampleQuery)", "/announced", "/%zz/announce", "*"] {
                let response = try await fetch(target, from: service.address)
                #expect(response.status == 404, "\(target)")
                #expect(response.text.split(separator: "\n").count == 1)
            }
            let long = try await fetch("/\(String(repeating: "k", count: 65))/announce", from: service.address)
            #expect(long.status == 404)
        }
    }

    @Test
    func `HEAD is answered like GET, without the body`() async throws {
        let service = try await tracker(Logic())
        try await running([service]) {
            let connection = try await RawConnection(to: service.address)
            try await connection.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
            let head = try await connection.response(withBody: false)
            #expect(head.status == 200)
            try await connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            let get = try await connection.response()
            #expect(get.status == 200)
            #expect(head["content-length"] == "\(get.body.count)")
        }
    }

    @Test
    func `it counts requests by route and outcome`() async throws {
        let tally = HTTPTally()
        let service = try await tracker(Logic(), tally: tally)
        try await running([service]) {
            for target in ["/announce?\(exampleQuery)", "/announce?\(exampleQuery)", "/scrape", "/nothing"] {
                _ = try await fetch(target, from: service.address)
            }
        }
        let text = tally.page
        for sample in [
            "swarmkeeper_http_requests_total{outcome=\"answered\",route=\"announce\"} 2",
            "swarmkeeper_http_requests_total{outcome=\"malformed\",route=\"scrape\"} 1",
            "swarmkeeper_http_requests_total{outcome=\"malformed\",route=\"other\"} 1",
            "swarmkeeper_http_request_seconds_count{route=\"announce\"} 2",
            "swarmkeeper_http_connections{listener=\"tracker\"} 0",
        ] {
            #expect(text.contains("\n\(sample)\n"), "\(sample)")
        }
    }
}
