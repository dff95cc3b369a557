import Client
import Foundation
import Primitives
import Synchronization
import Testing
import Wire

/// How we ask trackers, seen from a tracker that answers as it likes.
@Suite("Tracker client", .ownThreads)
struct TrackerClientTests {
    static let infoHash = InfoHash(hexadecimal: "0123456789abcdef0123456789abcdef01234567")!
    static let announce = ClientAnnounce(
        infoHash: infoHash, peerID: PeerID(Bytes20(Array("-SW0100-abcdefghijkl".utf8))!), port: 6881, left: 5)

    /// A client that waits 50 ms for the first answer, and gives up after a second.
    static func client(
        _ scheme: String, _ tracker: FakeTracker, path: String = "/announce", timeout: Duration = .seconds(120),
        retries: Seen<ClientRetry>? = nil
    ) throws -> any TrackerClient {
        var options = ClientOptions()
        options.timeout = timeout
        options.firstWait = .milliseconds(50)
        if let retries { options.onRetry = { retries.add($0) } }
        return try TrackerURL("\(scheme)://127.0.0.1:\(tracker.port)\(path)").client(options)
    }

    // MARK: BEP 15

    static func connectReply(to request: [UInt8], _ id: UInt64 = 0x0102_0304_0506_0708) -> [UInt8] {
        var reply: [UInt8] = [0, 0, 0, 0] + request[12..<16]
        reply.append(bigEndian: id)
        return reply
    }

    static func isConnect(_ request: [UInt8]) -> Bool { request.count == 16 }

    static let announceTail: [UInt8] = [
        0, 0, 7, 8, 0, 0, 0, 2, 0, 0, 0, 3, 192, 0, 2, 1, 0x1A, 0xE1, 192, 0, 2, 2, 0, 80,
    ]

    @Test
    func `an announce connects, asks with the connection id, and reads interval, counts and peers`() async throws {
        let seen = Seen<[UInt8]>()
        let tracker = try FakeTracker.udp { _, request in
            seen.add(request)
            if Self.isConnect(request) { return [Self.connectReply(to: request)] }
            return [[0, 0, 0, 1] + request[12..<16] + Self.announceTail]
        }
        defer { tracker.stop() }
        var announce = Self.announce
        announce.event = .started
        announce.numWant = 7
        let reply = try await Self.client("udp", tracker).announce(announce)
        #expect(reply.interval == 1800)
        #expect(reply.leechers == 2)
        #expect(reply.seeders == 3)
        #expect(reply.peers.map(\.address.description) == ["192.0.2.1:6881", "192.0.2.2:80"])
        #expect(reply.server == SocketAddress(ipv4: 0x7F00_0001, port: tracker.port))
        let requests = seen.all
        #expect(requests.count == 2)
        #expect(Array(requests[0][0..<12]) == [0, 0, 4, 0x17, 0x27, 0x10, 0x19, 0x80, 0, 0, 0, 0])
        #expect(requests[1].count == 98)
        #expect(Array(requests[1][0..<12]) == [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1])
        #expect(Array(requests[1][16..<36]) == Self.infoHash.bytes.bytes)
        #expect(Array(requests[1][80..<84]) == [0, 0, 0, 2])
        #expect(Array(requests[1][92..<98]) == [0, 0, 0, 7, 0x1A, 0xE1])
    }

    @Test
    func `a path other than the usual goes along as BEP 41 has it`() async throws {
        let seen = Seen<[UInt8]>()
        let tracker = try FakeTracker.udp { _, request in
            seen.add(request)
            if Self.isConnect(request) { return [Self.connectReply(to: request)] }
            return [[0, 0, 0, 1] + request[12..<16] + Self.announceTail]
        }
        defer { tracker.stop() }
        _ = try await Self.client("udp", tracker, path: "/secret/announce").announce(Self.announce)
        #expect(Array(seen.all[1].dropFirst(98)) == [2, 16] + Array("/secret/announce".utf8) + [0])
    }

    @Test
    func `what is not answered is sent again, after waits that double, with the same transaction id`() async throws {
        let seen = Seen<[UInt8]>()
        let retries = Seen<ClientRetry>()
        let tracker = try FakeTracker.udp { number, request in
            seen.add(request)
            // Two connects and one announce are lost.
            guard number > 1, number != 3 else { return [] }
            if Self.isConnect(request) { return [Self.connectReply(to: request)] }
            return [[0, 0, 0, 1] + request[12..<16] + Self.announceTail]
        }
        defer { tracker.stop() }
        _ = try await Self.client("udp", tracker, retries: retries).announce(Self.announce)
        let requests = seen.all
        #expect(requests.map(\.count) == [16, 16, 16, 98, 98])
        #expect(Set(requests[0..<3].map { Array($0[12..<16]) }).count == 1)
        #expect(requests[3] == requests[4])
        let waited = retries.all.map { $0.waited.wholeMilliseconds }
        #expect(waited.count == 3)
        #expect(waited[0] >= 50)
        #expect(waited[1] >= 100)
        #expect(waited[2] >= 50)
    }

    @Test
    func `answers to nobody, junk and answers that come twice are passed over`() async throws {
        let tracker = try FakeTracker.udp { _, request in
            let other: [UInt8] = [0, 0, 0, 3] + request[12..<15] + [request[15] ^ 1] + Array("not yours".utf8)
            if Self.isConnect(request) {
                let reply = Self.connectReply(to: request)
                return [[], [1, 2, 3], other, reply, reply]
            }
            return [other, [0, 0, 0, 1] + request[12..<16] + Self.announceTail]
        }
        defer { tracker.stop() }
        #expect(try await Self.client("udp", tracker).announce(Self.announce).peers.count == 2)
    }

    /// What a tracker answers to an announce (behind action and transaction id), and what is made of it.
    static let answersAndErrors: [(action: UInt8, tail: [UInt8], error: TrackerClientError)] = [
        (3, Array("torrent not\nregistered".utf8), .refused("torrent not\u{FFFD}registered")),
        (3, [], .refused("")),
        (1, [0, 0, 7], .malformed("it is too short")),
        (1, announceTail + [1], .malformed("its length is no whole number of peers or counts")),
        (9, announceTail, .malformed("its action is 9")),
        (2, announceTail, .malformed("an announce is answered with something else")),
    ]

    @Test(arguments: answersAndErrors)
    func `refusals and nonsense are told apart`(action: UInt8, tail: [UInt8], error: TrackerClientError) async throws {
        let tracker = try FakeTracker.udp { _, request in
            if Self.isConnect(request) { return [Self.connectReply(to: request)] }
            return [[0, 0, 0, action] + request[12..<16] + tail]
        }
        defer { tracker.stop() }
        let client = try Self.client("udp", tracker)
        await #expect(throws: error) { try await client.announce(Self.announce) }
        #expect(error.isAnswer)
    }

    @Test
    func `silence ends when the time is over, and a closed port at once`() async throws {
        let tracker = try FakeTracker.udp { _, _ in [] }
        let client = try Self.client("udp", tracker, timeout: .milliseconds(300))
        do throws(TrackerClientError) {
            _ = try await client.announce(Self.announce)
            Issue.record("a silent tracker has answered")
        } catch {
            guard case .silent(let host, let waited) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(host == "127.0.0.1:\(tracker.port)")
            #expect(waited >= .milliseconds(300))
            #expect(!error.isAnswer)
        }
        // Its port is free again once its thread has seen the sign.
        tracker.stop()
        let nobody = TrackerClientError.unreachable("127.0.0.1:\(tracker.port)", reason: "nobody listens there")
        try await eventually("nobody listens there") {
            do throws(TrackerClientError) {
                _ = try await client.announce(Self.announce)
                return false
            } catch {
                return error == nobody
            }
        }
    }

    @Test
    func `a scrape of many is asked 74 at a time, and answered in order`() async throws {
        let seen = Seen<Int>()
        let tracker = try FakeTracker.udp { _, request in
            if Self.isConnect(request) { return [Self.connectReply(to: request)] }
            seen.add((request.count - 16) / 20)
            var reply: [UInt8] = [0, 0, 0, 2] + request[12..<16]
            for offset in stride(from: 16, to: request.count, by: 20) {
                reply += [0, 0, 0, request[offset], 0, 0, 0, 2, 0, 0, 0, 3]
            }
            return [reply]
        }
        defer { tracker.stop() }
        let infoHashes = (0..<100).map { InfoHash(Bytes20([UInt8($0)] + [UInt8](repeating: 7, count: 19))!) }
        let replies = try await Self.client("udp", tracker).scrape(infoHashes)
        #expect(replies.map(\.infoHash) == infoHashes)
        #expect(replies.map { $0.counts?.seeders } == (0..<100).map { UInt32($0) })
        #expect(replies.allSatisfy { $0.counts?.completed == 2 && $0.counts?.leechers == 3 })
        #expect(seen.all == [74, 26])
    }

    // MARK: HTTP

    static func answer(_ body: String, status: String = "200 OK", headers: String = "") -> String {
        "HTTP/1.1 \(status)\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    @Test
    func `an announce over HTTP encodes each byte, and reads the dictionary`() async throws {
        let seen = Seen<String>()
        let body =
            "d8:completei3e10:incompletei2e8:intervali1800e12:min intervali60e5:peersld2:ip9:192.0.2.14:porti80eeee"
        let tracker = try FakeTracker.http { (request: String) -> [String] in
            seen.add(request)
            return [Self.answer(body)]
        }
        defer { tracker.stop() }
        let reply = try await Self.client("http", tracker, path: "/announce?key=a").announce(Self.announce)
        #expect(reply.interval == 1800)
        #expect(reply.minInterval == 60)
        #expect(reply.seeders == 3)
        #expect(reply.leechers == 2)
        #expect(reply.peers.map(\.address.description) == ["192.0.2.1:80"])
        let lines = try #require(seen.all.first).split(separator: "\r\n")
        #expect(
            lines.first?.hasPrefix(
                "GET /announce?key=a&info_hash=%01%23Eg%89%AB%CD%EF%01%23Eg%89%AB%CD%EF%01%23Eg&peer_id=")
                == true)
        #expect(lines.contains("Host: 127.0.0.1:\(tracker.port)"))
    }

    /// The same body however it is framed, whole and cut into parts.
    static let framings: [[String]] = [
        ["HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\nd8:intervali900ee"],
        ["HTTP/1.0 200 OK\r\n\r\nd8:intervali900ee"],
        ["HTTP/1.1 200\ncontent-length:17\n\nd8:intervali900ee trailing"],
        ["HT", "TP/1.1 200 OK\r", "\n\r", "\nd8:inter", "vali900ee"],
        ["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n", "d8:intervali900ee"],
        ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nd8:in\r\nc;x=y\r\ntervali900ee\r\n0\r\n\r\n"],
        [
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r", "\nd8:in\r", "\nC\r\ntervali9", "00ee\r\n0",
            "\r\n\r\n",
        ],
    ]

    @Test(arguments: framings)
    func `answers over HTTP are read however they are framed`(parts: [String]) async throws {
        let tracker = try FakeTracker.http { (_: String) -> [String] in parts }
        defer { tracker.stop() }
        #expect(try await Self.client("http", tracker).announce(Self.announce).interval == 900)
    }

    static let httpAnswersAndErrors: [(answer: String, error: TrackerClientError)] = [
        (answer("d14:failure reason6:bannede"), .refused("banned")),
        (answer("d14:failure reason6:bannede", status: "403 Forbidden"), .refused("banned")),
        (answer("<html>", status: "404 Not\u{7}Found"), .status(404, reason: "Not\u{FFFD}Found")),
        (answer("d8:intervali9ee", status: "500 Oops"), .status(500, reason: "Oops")),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", .malformed("it is not HTTP")),
        (
            "\u{15}\u{3}\u{1}\u{0}\u{2}\u{2}\u{28}\r\n\r\n",
            .malformed("it is TLS, which this program does not speak")
        ),
        ("", .malformed("it is empty; does the other side speak TLS? This program does not")),
        ("HTTP/1.1 2x0 OK\r\n\r\n", .malformed("it is not HTTP")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nd8:inter", .malformed("it was cut short")),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", .malformed("its length is \"-1\"")),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n",
            .malformed("it is longer than 1_048_576 bytes")
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
            .malformed("its chunks are not framed")
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcde\r\n",
            .malformed("its chunks are not framed")
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: https://example.org/\r\nContent-Length: 0\r\n\r\n",
            .malformed(
                "it redirects to a place that cannot be asked: \"https://example.org/\" cannot be asked: "
                    + "HTTPS is not spoken; use another of the tracker's URLs")
        ),
    ]

    @Test(arguments: httpAnswersAndErrors)
    func `refusals, nonsense and what is no tracker are told apart`(answer: String, error: TrackerClientError)
        async throws
    {
        let tracker = try FakeTracker.http { (_: String) -> [String] in [answer] }
        defer { tracker.stop() }
        let client = try Self.client("http", tracker)
        await #expect(throws: error) { try await client.announce(Self.announce) }
    }

    @Test
    func `a redirection is followed three times, not for ever`() async throws {
        let seen = Seen<String>()
        let tracker = try FakeTracker.http { (request: String) -> [String] in
            seen.add(String(request.prefix(7)))
            if request.hasPrefix("GET /end?") { return [Self.answer("d8:intervali900ee")] }
            let to = request.hasPrefix("GET /announce?") ? "/b?" : request.hasPrefix("GET /b?") ? "/end?" : "/c?"
            return [Self.answer("", status: "301 Moved", headers: "Location: \(to)x\r\n")]
        }
        defer { tracker.stop() }
        #expect(try await Self.client("http", tracker).announce(Self.announce).interval == 900)
        let client = try Self.client("http", tracker, path: "/loop/announce")
        await #expect(throws: TrackerClientError.status(301, reason: "Moved")) {
            try await client.announce(Self.announce)
        }
        #expect(seen.all.count == 7)
    }

    @Test
    func `an endless answer is cut off, and one that stalls is given up`() async throws {
        let endless = try FakeTracker.http { (_: String) -> [[UInt8]] in
            [Array("HTTP/1.1 200 OK\r\n\r\n".utf8)] + Array(repeating: [UInt8](repeating: 65, count: 300_000), count: 5)
        }
        defer { endless.stop() }
        let client = try Self.client("http", endless)
        await #expect(throws: TrackerClientError.malformed("it is longer than 1_048_576 bytes")) {
            try await client.announce(Self.announce)
        }
        let isGivenUp = Atomic(false)
        defer { isGivenUp.store(true, ordering: .relaxed) }
        let stalling = try FakeTracker.http { (_: String) -> [String] in
            while !isGivenUp.load(ordering: .relaxed) { usleep(10_000) }
            return []
        }
        defer { stalling.stop() }
        let patient = try Self.client("http", stalling, timeout: .milliseconds(200))
        do throws(TrackerClientError) {
            _ = try await patient.announce(Self.announce)
            Issue.record("a stalling server has answered")
        } catch {
            guard case .silent = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test
    func `a scrape over HTTP goes to the scrape URL, and says what is unknown`() async throws {
        let other = InfoHash(Bytes20([UInt8](repeating: 1, count: 20))!)
        let seen = Seen<String>()
        let body: [UInt8] =
            Array("d5:filesd20:".utf8) + Self.infoHash.bytes.bytes
            + Array("d8:completei5e10:downloadedi50e10:incompletei6eeee".utf8)
        let tracker = try FakeTracker.http { (request: String) -> [[UInt8]] in
            seen.add(request)
            return [Array("HTTP/1.1 200 OK\r\n\r\n".utf8) + body]
        }
        defer { tracker.stop() }
        let client = try Self.client("http", tracker, path: "/x/announce.php?a=/announce")
        let replies = try await client.scrape([other, Self.infoHash])
        #expect(replies.map(\.infoHash) == [other, Self.infoHash])
        #expect(replies[0].counts == nil)
        #expect(replies[1].counts?.seeders == 5)
        #expect(replies[1].counts?.leechers == 6)
        #expect(replies[1].counts?.completed == 50)
        #expect(seen.all.first?.hasPrefix("GET /x/scrape.php?a=/announce&info_hash=") == true)
        let odd = try Self.client("http", tracker, path: "/a")
        await #expect(throws: TrackerClientError.noScrape("\(odd.url)")) { try await odd.scrape([other]) }
    }
}
