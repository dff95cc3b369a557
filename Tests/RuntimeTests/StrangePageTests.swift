// What pages of other sites can have a visitor's browser ask of the console.

import Primitives
import Testing

@Suite("Pages of others")
struct StrangePageTests {
    @Test(arguments: [
        (["Host: localhost:80@evil"], 403), (["Host: localhost:"], 200), (["Host: localhost:6970x"], 403),
        (["Host: [::1]@evil"], 403), (["Host: [::1"], 403), (["Host: [::1]:80"], 200),
        (["Host: localhost", "Host: evil.example"], 400), (["Host: localhost", "Host: localhost"], 400),
    ])
    func `a host that only looks like this machine is refused`(_ headers: [String], _ code: Int) async throws {
        try await withConsole { address in
            let response = try await fetch("/api/v1/status", from: address, headers: headers)
            #expect(response.status == code)
        }
    }

    @Test(arguments: [
        ([], 200), (["Origin: http://localhost"], 200), (["Origin: http://evil.example"], 403), (["Origin: null"], 403),
        (["Sec-Fetch-Site: cross-site"], 403), (["Sec-Fetch-Site: same-site"], 403),
        (["Sec-Fetch-Site: same-origin"], 200), (["Sec-Fetch-Site: none"], 200),
        (["Referer: http://evil.example/page"], 403), (["Referer: http://localhost/page"], 200),
        (["Content-Type: application/x-www-form-urlencoded"], 403),
        (["Content-Type: text/plain;charset=UTF-8"], 403),
        (["Content-Type: application/json"], 200),
    ])
    func `a page of another site may not change anything, whatever it leaves unsaid`(
        _ headers: [String], _ code: Int
    ) async throws {
        try await withConsole { address in
            let response = try await fetch(
                "/api/v1/cluster/handover", from: address, headers: ["Host: localhost"] + headers, method: "POST",
                body: "{\"to\":2}")
            #expect(response.status == code, "\(headers)")
        }
    }

    private func withConsole(
        _ body: @escaping @Sendable (Primitives.SocketAddress) async throws -> Void
    ) async throws {
        try await HTTPOpenAPITests().withServer(body)
    }
}
