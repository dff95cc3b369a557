import Client
import Testing

/// How `tracker status` asks a tracker.
@Suite("Console client")
struct ConsoleClientTests {
    static let statusJSON = """
        {"version":"0.1.0","processID":7,"startedAt":"2026-01-02T03:04:05.000Z","uptimeSeconds":1.5,
        "listeners":[{"service":"udp","address":"0.0.0.0:6969"}],
        "node":{"id":1,"role":"master","epoch":{"round":2,"id":1},"commitIndex":3,"lastIndex":4,
        "digest":"00000000deadbeef","accessMode":"open","torrents":5,"peers":6,"peersIPv4":6,"peersIPv6":0,"seeders":1,
        "registeredTorrents":0,"intervalSeconds":1800,"waitingRequests":0,"new":[],
        "counters":{"connects":1,"announces":2,"scrapes":3,"errors":4,"errorsWithheld":5,"ignored":6,"dropped":7,
        "timedOut":8,"entries":8,"updates":9,"expired":10,"completed":11}}}
        """

    @Test
    func `asks with the token, and reads the status, whatever keys are new`() async throws {
        let seen = Seen<String>()
        let console = try FakeTracker.http { (request: String) -> [String] in
            seen.add(request)
            return [TrackerClientTests.answer(Self.statusJSON)]
        }
        defer { console.stop() }
        let client = ConsoleClient(host: "127.0.0.1", port: console.port, token: "0123456789abcdef")
        let (report, json) = try await client.status()
        #expect(report.node.peers == 6)
        #expect(report.node.epoch.round == 2)
        #expect(report.listeners.map(\.address) == ["0.0.0.0:6969"])
        #expect(json == Array(Self.statusJSON.utf8))
        let lines = try #require(seen.all.first).split(separator: "\r\n")
        #expect(lines.first == "GET /api/v1/status HTTP/1.1")
        #expect(lines.contains("Authorization: Bearer 0123456789abcdef"))
    }

    static let answersAndErrors: [(answer: String, error: TrackerClientError)] = [
        (
            TrackerClientTests.answer("{\"error\":\"the token is wrong\"}", status: "401 Unauthorized"),
            .refused("the token is wrong")
        ),
        (TrackerClientTests.answer("{}"), .malformed("it is not the status of a tracker")),
        (TrackerClientTests.answer("no", status: "404 Not Found"), .status(404, reason: "Not Found")),
        // The token is for this host, not for another.
        (
            TrackerClientTests.answer("", status: "302 Found", headers: "Location: http://127.0.0.1:1/\r\n"),
            .status(302, reason: "Found")
        ),
    ]

    @Test(arguments: answersAndErrors)
    func `says what is wrong otherwise`(answer: String, error: TrackerClientError) async throws {
        let console = try FakeTracker.http { (_: String) -> [String] in [answer] }
        defer { console.stop() }
        let client = ConsoleClient(host: "127.0.0.1", port: console.port)
        await #expect(throws: error) { try await client.status() }
    }
}
