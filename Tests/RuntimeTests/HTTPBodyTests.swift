// Bodies of requests: read of those who may send them, within bounds.

import Foundation
import Primitives
import Testing
import TrackerLogic
import Web
import Wire

@Suite("HTTP: bodies")
struct HTTPBodyTests {
    private let order = "{\"to\":2}"
    private let head = "POST /api/v1/cluster/handover HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    private func ask(_ text: String) async throws -> RawResponse {
        try await HTTPOpenAPITests().withServer { address in
            let connection = try await RawConnection(to: address)
            try await connection.send(text)
            return try await connection.response()
        }
    }

    @Test func `a body comes at once, in pieces of any size, or chunked`() async throws {
        #expect(try await ask("\(head)Content-Length: 8\r\n\r\n\(order)").status == 200)
        let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\n{\"t\r\n5\r\no\":2}\r\n0\r\n\r\n"
        #expect(try await ask("\(head)\(chunked)").status == 200)
        let status = try await HTTPOpenAPITests().withServer { address in
            let connection = try await RawConnection(to: address)
            for byte in "\(head)Content-Length: 8\r\n\r\n\(order)".utf8 { try await connection.send([byte]) }
            return try await connection.response().status
        }
        #expect(status == 200)
    }

    @Test func `who waits to be told to go on is told so`() async throws {
        let statuses = try await HTTPOpenAPITests().withServer { address in
            let connection = try await RawConnection(to: address)
            try await connection.send("\(head)Content-Length: 8\r\nExpect: 100-continue\r\n\r\n")
            let first = try await connection.response(withBody: false).status
            try await connection.send(order)
            return [first, try await connection.response().status]
        }
        #expect(statuses == [100, 200])
    }

    @Test func `what is too long is refused in words, and what comes of it is not read`() async throws {
        let long = String(repeating: " ", count: 20_000) + order
        let response = try await ask("\(head)Content-Length: \(long.utf8.count)\r\n\r\n\(long)")
        #expect(response.status == 413)
        #expect(response.text.contains("16384 bytes"))
        // Who says nothing of the length is stopped at the limit.
        let chunk = "1000\r\n\(String(repeating: " ", count: 4096))\r\n"
        let chunked = "Transfer-Encoding: chunked\r\n\r\n" + String(repeating: chunk, count: 5)
        #expect(try await ask("\(head)\(chunked)").status == 413)
        #expect(try await ask("\(head)Content-Length: 99999999999999999999\r\n\r\n").status >= 400)
    }

    @Test func `a body that is no JSON, or lacks something, or is of another kind, is named`() async throws {
        for (body, kind, status, words) in [
            ("{", "application/json", 400, "is not JSON"), ("{}", "application/json", 400, "lacks \\\"to\\\""),
            ("{\"to\":\"x\"}", "application/json", 400, "\\\"to\\\" in the body is not what it has to be"),
            ("{\"to\":-1}", "application/json", 400, "to has to be"), ("[]", "application/json", 400, "in the body"),
            ("{\"to\":2}", "application/xml", 415, "application/json"), ("\u{0}", "application/json", 400, "not JSON"),
        ] {
            let response = try await HTTPOpenAPITests().withServer { address in
                try await fetch(
                    "/api/v1/cluster/handover", from: address, headers: ["Content-Type: \(kind)"], method: "POST",
                    body: body)
            }
            #expect(response.status == status, "\(body)")
            #expect(response.text.contains(words), "\(response.text)")
        }
    }

    /// Takes whatever is uploaded for a torrent.
    private final class Files: TorrentFileProvider {
        let maxByteCount = 100_000
        let seen = Seen<[UInt8]>()

        func upload(_ bytes: [UInt8], expected: Wire.Expectation) async -> UploadOutcome {
            seen.add(bytes)
            return .malformed("it is not looked at")
        }

        func torrent(_ infoHash: InfoHash) async -> UploadedTorrent? { nil }
        func bytes(of infoHash: InfoHash) async -> (parts: [[UInt8]], changedAt: UInt64)? { nil }
        func remove(_ infoHash: InfoHash, expected: Wire.Expectation) async -> ChangeOutcome { .refused("no") }
        func reasonWithoutFile(_ infoHash: InfoHash) async -> String { "" }
        func magnet(_ infoHash: InfoHash, name: String) async -> String { "" }
    }

    @Test(arguments: [1, 300, 20_000]) func `any bytes come as they were sent`(_ count: Int) async throws {
        let files = Files()
        try await HTTPOpenAPITests().withServer(with: { $0.files = files }) { address in
            // Lines, empty lines and bytes beyond ASCII, as a body that is taken for further requests would have them.
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 % 7 == 0 ? 10 : $0 * 31) }
            let connection = try await RawConnection(to: address)
            let head =
                "POST /api/v1/torrents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-bittorrent\r\n"
                + "Content-Length: \(count)\r\n\r\n"
            try await connection.send(Array(head.utf8) + bytes)
            #expect(try await connection.response().status == 400)
            #expect(files.seen.all == [bytes])
        }
    }

    @Test func `who sends slowly is told so, and who sends steadily is not`() async throws {
        var limits = APIServer.Options().limits
        limits.bodyPace = .seconds(1)
        let statuses = try await HTTPOpenAPITests().withServer(limits: limits) { address in
            let stalled = try await RawConnection(to: address)
            try await stalled.send("\(head)Content-Length: 8\r\n\r\n{")
            let refusal = try await stalled.response()
            #expect(refusal.text.contains("the body comes too slowly: 1 s have to bring 16384 bytes, or its end"))
            #expect(refusal["connection"] == "close")
            #expect(try await stalled.closes())
            return refusal.status
        }
        #expect(statuses == 408)
    }

    @Test func `one sender takes two of the places for large bodies, and the others stay free`() async throws {
        let bodies = try await HTTPOpenAPITests().withServer(with: { $0.files = Files() }) { address in
            let large =
                "POST /api/v1/torrents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-bittorrent\r\n"
                + "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
            var held: [RawConnection] = []
            for _ in 0..<2 {
                let connection = try await RawConnection(to: address)
                try await connection.send(large)
                #expect(try await connection.response(withBody: false).status == 100)
                held.append(connection)
            }
            let third = try await RawConnection(to: address)
            try await third.send(large)
            let refusal = try await third.response()
            return (refusal.status, refusal.text, held.count)
        }
        #expect(bodies.0 == 429)
        #expect(bodies.1.contains("you are sending 2 large files already"))
    }

    @Test func `of those who may not ask, nothing is read`() async throws {
        struct Status: StatusProvider {
            func status() async -> NodeStatus? { MetricsNodeTests.status() }
        }
        let server = APIServer(status: Status(), cluster: StillCluster(), tally: HTTPTally()) {
            ProcessFacts(version: "1", processID: 1, startedAt: WallTime(milliseconds: 0), listeners: [])
        }
        var options = APIServer.Options()
        (options.token, options.logger) = ("0123456789abcdef", quiet)
        let service = try await server.listen(on: loopback, options)
        try await running([service]) {
            let connection = try await RawConnection(to: service.address)
            // Most of the body never comes: the answer does not wait for it.
            try await connection.send("\(head)Content-Length: 9000\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await connection.response().status == 401)
        }
    }
}
