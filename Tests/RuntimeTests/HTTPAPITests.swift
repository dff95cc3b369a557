import Foundation
import Primitives
import Synchronization
import Testing
import TrackerLogic
import Web
import Wire

@Suite("HTTP: the API")
struct HTTPAPITests {
    private struct Status: StatusProvider {
        var value: NodeStatus? = MetricsNodeTests.status()
        func status() async -> NodeStatus? { value }
    }

    /// A node that has stopped answering.
    private struct Hanging: StatusProvider {
        func status() async -> NodeStatus? {
            while true { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
        }
    }

    private static func facts() -> ProcessFacts {
        ProcessFacts(
            version: "1.2.3", processID: 4711, startedAt: WallTime(milliseconds: 1_700_000_000_123),
            listeners: [
                .init(.udp, SocketAddress(host: "0.0.0.0", port: 6969)!),
                .init(.http, SocketAddress(host: "::", port: 6969)!),
            ])
    }

    private func server(
        _ status: any StatusProvider = Status(), parts: ConsoleParts = ConsoleParts(), token: String? = nil,
        on address: SocketAddress = loopback, tally: HTTPTally = HTTPTally(),
        limits: HTTPLimits = APIServer.Options().limits
    ) async throws -> HTTPService {
        var server = APIServer(
            status: status, cluster: StillCluster(), tally: tally, limits: limits, facts: Self.facts)
        server.parts = parts
        var options = APIServer.Options()
        options.token = token
        options.logger = quiet
        return try await server.listen(on: address, options)
    }

    // MARK: Status

    @Test
    func `the status says all, exactly so`() async throws {
        let service = try await server()
        let (response, _) = try await running([service]) { try await fetch("/api/v1/status", from: service.address) }
        #expect(response.status == 200)
        #expect(response["content-type"] == "application/json; charset=utf-8")
        #expect(response["cache-control"] == "no-store")
        let uptime = try #require(response.text.firstMatch(of: /"uptimeSeconds":([0-9.]+)/))
        #expect(try #require(Double(uptime.1)) > 1_000_000)
        let report = /"report":(\{.*?"writeSeconds":\{[^}]*\}\}),/
        let reports = response.text.matches(of: report).map { String($0.1) }
        let own = """
            {"ageSeconds":0,"announcesPerSecond":231,"answerSeconds":{"median":0,"p99":0},\
            "clients":"udp://one.example:6969",\
            "clockDifferenceSeconds":0,"commitSeconds":{"median":0.00086,"p99":0.0025},"console":"127.0.0.1:1",\
            "disk":"full","durability":"process","hears":[\
            {"id":2,"isUp":true,"silentSeconds":0.125},{"id":3,"isUp":false,"silentSeconds":70}],\
            "host":"one.example","lostDatagrams":236,"maxFiles":233,\
            "openFiles":232,"problem":"","receiveBufferBytes":234,\
            "roundTripSeconds":{"median":0.00025,"p99":0.001},"version":"1",\
            "wantedReceiveBufferBytes":235,"writeSeconds":{"median":0,"p99":0}}
            """
        let other = own.replacing("\"clockDifferenceSeconds\":0,", with: "\"clockDifferenceSeconds\":0.25,")
            .replacing("\"ageSeconds\":0,", with: "\"ageSeconds\":0.5,")
            .replacing("{\"id\":2,\"isUp\":true,", with: "{\"id\":1,\"isUp\":true,")
            .replacing("\"silentSeconds\":0.125", with: "\"silentSeconds\":1")
            .replacing("\"silentSeconds\":70", with: "\"silentSeconds\":65535")
        #expect(reports == [own, other, other])
        let text = response.text.replacing(uptime.0, with: "\"uptimeSeconds\":0").replacing(report, with: "")
        #expect(
            text == """
                {"cluster":{"bus":{"broker":"broker:61613","dropped":203,"endpoint":"stomp://broker:61613",\
                "isConnected":true,"lastProblem":"it was closed","received":202,"reconnections":206,\
                "refusals":[{"count":9,"reason":"otherKey",\
                "sender":"10.0.0.7","silentSeconds":0.5}],"rejected":204,"repaired":205,\
                "sent":201},"commitIndex":20,"digest":"0000000000000abc","elections":{"candidacies":222,\
                "divergences":227,"merges":226,"stepDowns":224,"suspicions":221,"transfers":225,"victories":223},\
                "epoch":{"id":2,"round":3},"findings":[{"code":"otherKey","isSilence":false,\
                "text":"another key (9 messages from 10.0.0.7)"}],"id":1,"isFenced":false,"isServing":true,"master":2,\
                "messages":{"dropped":214,"malformed":213,"otherVersion":215,"received":211,"sent":212},\
                "mode":"quorum","name":"still",\
                "trackers":[{"agreement":"same","commitIndex":20,"epoch":{"id":2,"round":3},\
                "hasVote":true,"id":1,"incarnation":"1000000000000000","isThis":true,"isWhole":true,"lag":0,\
                "role":"slave","silentSeconds":0},{"agreement":"ahead","commitIndex":21,\
                "epoch":{"id":2,"round":3},"hasVote":true,"id":2,\
                "incarnation":"2000000000000000","isThis":false,"isWhole":true,"lag":0,"role":"master",\
                "silentSeconds":0.125},{"agreement":"same","commitIndex":15,"epoch":{"id":2,"round":3},\
                "hasVote":true,"id":3,"incarnation":"3000000000000000","isThis":false,"isWhole":true,"lag":5,\
                "role":"down","silentSeconds":70}],"unlike":[{"id":4,"settings":["--keepalive"]}],"voters":[1,2,3]},\
                "listeners":[{"address":"0.0.0.0:6969","service":"udp"},{"address":"[::]:6969","service":"http"}],\
                "node":{"accessMode":"private","commitIndex":20,"counters":{"announces":102,\
                "completed":18446744073709551615,"connects":101,"dropped":107,"entries":108,"errors":104,\
                "errorsWithheld":105,"expired":110,"ignored":106,"scrapes":103,"timedOut":111,\
                "updates":109},\
                "digest":"0000000000000abc","epoch":{"id":7,"round":3},"id":7,"intervalSeconds":1800,\
                "lastIndex":21,"peers":25,"peersIPv4":12,"peersIPv6":13,"registeredTorrents":15,"role":"master",\
                "seeders":14,"torrents":11,"waitingRequests":16},"processID":4711,\
                "startedAt":"2023-11-14T22:13:20.123Z","uptimeSeconds":0,"version":"1.2.3"}

                """)
    }

    @Test
    func `where the node does not answer, it says so in time`() async throws {
        var limits = HTTPLimits()
        limits.answer = .milliseconds(200)
        let service = try await server(Hanging(), limits: limits)
        try await running([service]) {
            let status = try await fetch("/api/v1/status", from: service.address)
            #expect(status.status == 503)
            #expect(status.text == "{\"error\":\"the tracker's logic does not answer\"}\n")
            let health = try await fetch("/healthz", from: service.address)
            #expect(health.status == 503)
            let metrics = try await fetch("/metrics", from: service.address)
            #expect(metrics.status == 200)
            #expect(metrics.text.contains("\nswarmkeeper_up 0\n"))
        }
    }

    @Test(
        arguments: [
            (Role.restoring, 503), (.newcomer, 503), (.slave, 200), (.candidate, 503), (.master, 200), (.draining, 503),
            (.failed, 503), (.stopped, 503),
        ])
    func `it is healthy while it answers announces`(role: Role, code: Int) async throws {
        let service = try await server(Status(value: MetricsNodeTests.status(role: role)), token: "secret")
        try await running([service]) {
            let response = try await fetch("/healthz", from: service.address, headers: ["Host: balancer.example"])
            #expect(response.status == code)
            #expect(response.text == "\(role.rawValue)\n")
        }
    }

    // MARK: Metrics

    @Test
    func `the metrics are the node's, the listeners' and the process's`() async throws {
        let service = try await server()
        try await running([service]) {
            let response = try await fetch("/metrics", from: service.address)
            #expect(response["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
            for sample in [
                "swarmkeeper_announces_total 102", "swarmkeeper_build_info{version=\"1.2.3\"} 1",
                "swarmkeeper_http_connections{listener=\"api\"} 1",
            ] {
                #expect(response.text.contains("\n\(sample)\n"), "\(sample)")
            }
            #expect(response.text.contains("\nprocess_resident_memory_bytes "))
            #expect(response.text.contains("# HELP swarmkeeper_http_connections Open connections.\n"))
            let lines = response.text.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.last == "")
            let names = lines.filter { $0.hasPrefix("# TYPE ") }
            #expect(Set(names).count == names.count)
            let sample = /[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^{}]*\})? [-+0-9.eInfNa]+/
            for line in lines where !line.hasPrefix("#") && !line.isEmpty {
                #expect(line.wholeMatch(of: sample) != nil, "\(line)")
            }
        }
    }

    // MARK: Who may ask

    @Test
    func `with a token, only those who know it get anything`() async throws {
        let service = try await server(token: "s3cret-Token")
        try await running([service]) {
            for (authorization, code) in [
                (nil, 401), ("Bearer s3cret-Token", 200), ("bearer s3cret-Token", 200), ("Bearer s3cret-token", 401),
                ("Bearer s3cret-Toke", 401), ("Bearer s3cret-Token1", 401), ("Bearer s3cret-Tokens3cret-Token", 401),
                ("Bearer ", 401), ("Basic s3cret-Token", 401), ("s3cret-Token", 401),
            ] {
                for path in ["/api/v1/status", "/api/v1", "/api/v1/openapi.yaml", "/metrics"] {
                    let headers = authorization.map { ["Authorization: \($0)"] } ?? []
                    let response = try await fetch(
                        path, from: service.address, headers: headers + ["Host: tracker.example"])
                    #expect(response.status == code, "\(authorization ?? "nothing") \(path)")
                    #expect(response["www-authenticate"] == (code == 401 ? "Bearer" : nil))
                }
            }
        }
    }

    @Test(
        arguments: [
            ("127.0.0.1", 200), ("127.0.0.1:6970", 200), ("localhost:6970", 200), ("LOCALHOST", 200),
            ("[::1]:6970", 200), ("127.9.9.9", 200), ("evil.example", 403), ("evil.example:6970", 403),
            ("127.0.0.1.evil.example", 403), ("localhost.evil.example", 403), ("192.0.2.1", 403), ("", 403),
        ])
    func `without a token, a request that names another host is refused, as in DNS rebinding`(host: String, code: Int)
        async throws
    {
        let service = try await server()
        try await running([service]) {
            for path in ["/api/v1/status", "/metrics"] {
                let response = try await fetch(path, from: service.address, headers: ["Host: \(host)"])
                #expect(response.status == code)
            }
        }
    }

    @Test
    func `it does not open to others without a token`() async throws {
        for host in ["0.0.0.0", "::"] {
            let address = SocketAddress(host: host, port: 0)!
            await #expect {
                _ = try await server(on: address)
            } throws: { error in
                "\(error)" == "cannot listen for the API on \(address): others can reach this address, so a log-in "
                    + "is needed, and there are no accounts yet; name a file of accounts (--console-accounts-file) or "
                    + "of a token (--console-token-file), or listen on 127.0.0.1 and make an account there "
                    + "(tracker user add)"
            }
            let service = try await server(token: "secret", on: address)
            await service.close()
        }
        let ipv6 = try await server(on: SocketAddress(host: "::1", port: 0)!)
        try await running([ipv6]) {
            let response = try await fetch("/api/v1/status", from: ipv6.address, headers: ["Host: [::1]"])
            #expect(response.status == 200)
        }
    }

    @Test
    func `HEAD has the head of GET and no body, and slashes too many do not matter`() async throws {
        let service = try await server()
        try await running([service]) {
            let page = try await fetch("/api/v1/openapi.yaml", from: service.address)
            let connection = try await RawConnection(to: service.address)
            try await connection.send("HEAD /api/v1/openapi.yaml HTTP/1.1\r\nHost: localhost\r\n\r\n")
            let head = try await connection.response(withBody: false)
            #expect(head.status == 200)
            #expect(head["content-length"] == "\(page.body.count)")
            // A body would stand before the next answer.
            try await connection.send("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await connection.response().status == 200)
            #expect(try await fetch("//api/v1/openapi.yaml/", from: service.address).body == page.body)
        }
    }

    @Test
    func `what is not there, or not meant so, is an error in JSON`() async throws {
        let service = try await server()
        try await running([service]) {
            for (method, path, code, allowed) in [
                ("GET", "/console/x", 404, nil), ("GET", "/api", 404, nil),
                ("POST", "/api/v1/status", 405, "GET, HEAD"),
                ("GET", "/api/v1/cluster/stop", 405, "POST"), ("DELETE", "/api/v1/cluster/members", 405, "POST"),
            ] {
                let response = try await fetch(path, from: service.address, method: method)
                #expect(response.status == code)
                #expect(response["allow"] == allowed)
                #expect(response.text.hasPrefix("{\"error\":\""))
            }
        }
    }
}
