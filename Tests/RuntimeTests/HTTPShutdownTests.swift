import Primitives
import Runtime
import Testing
import TrackerLogic

extension HTTPTimedTests {
    /// Nothing that a client does or leaves undone delays a stop (by the bounds on clients, it would by 10 s and more).
    @Suite("HTTP: stopping")
    struct HTTPShutdownTests {}
}

extension HTTPTimedTests.HTTPShutdownTests {
    enum Client: CaseIterable {
        case idle
        case kept
        case halfAHead
        case waiting
        case notReading
        case notClosing
        case sendingABody
    }

    @Test("it stops without waiting for clients, whatever they do", arguments: Client.allCases)
    func stops(client: Client) async throws {
        let service = try await tracker(Logic(Logic.silent))
        let (connection, stop) = try await running([service]) {
            let connection = try await RawConnection(
                to: service.address, receiveBuffer: client == .notReading ? 4_096 : nil)
            switch client {
            case .idle:
                break
            case .kept:
                try await connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = try await connection.response()
            case .halfAHead:
                try await connection.send("GET /announce?info_")
            case .waiting:
                try await connection.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
            case .notReading:
                let requests = Array(String(repeating: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", count: 100).utf8)
                var stalled = 0
                while stalled < 20 {
                    stalled = connection.sendAtOnce(requests) == 0 ? stalled + 1 : 0
                    try await Task.sleep(for: .milliseconds(1))
                }
            case .notClosing:
                try await connection.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                _ = try await connection.response()
            case .sendingABody:
                try await connection.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nab")
            }
            try await Task.sleep(for: .milliseconds(100))
            return connection
        }
        #expect(stop < .seconds(5))
        #expect(try await connection.closes(within: 10_000))
    }

    @Test("a request that waits is told to go elsewhere, and one that is answered in time is answered")
    func lastAnswers() async throws {
        let service = try await tracker(
            Logic { request in
                guard request.passkey.isEmpty else { return try await Logic.slow(.milliseconds(150)) }
                return try await Logic.silent(request)
            })
        let (connections, stop) = try await running([service]) {
            let waiting = try await RawConnection(to: service.address)
            try await waiting.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
            let quick = try await RawConnection(to: service.address)
            try await quick.send("GET /announce/K?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
            try await Task.sleep(for: .milliseconds(50))
            return (waiting: waiting, quick: quick)
        }
        let refused = try await connections.waiting.response()
        #expect(refused.text.contains("tracker is going down, try again later"))
        #expect(refused.text.contains("8:retry ini2e"))
        #expect(refused["connection"] == "close")
        let answered = try await connections.quick.response()
        #expect(answered.text.hasPrefix("d8:complete"))
        #expect(stop < .seconds(5))
    }

    @Test("many listeners with many clients stop without waiting")
    func many() async throws {
        let services = try await [tracker(Logic()), tracker(Logic()), tracker(Logic())]
        let (connections, stop) = try await running(services) {
            var connections: [RawConnection] = []
            for index in 0..<150 {
                let connection = try await RawConnection(to: services[index % 3].address)
                if index.isMultiple(of: 2) { try await connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n") }
                connections.append(connection)
            }
            return connections
        }
        #expect(stop < .seconds(5))
        for connection in connections { #expect(try await connection.closes(within: 10_000)) }
    }

    @Test("nobody is let in after the stop, and the port is free")
    func portIsFree() async throws {
        let service = try await tracker(Logic())
        try await running([service]) { _ = try await fetch("/", from: service.address) }
        await #expect(throws: RawConnection.SystemError.self) { try await RawConnection(to: service.address) }
        let next = try await tracker(Logic(), on: service.address)
        await next.close()
    }

    @Test("cancelling the task stops it too")
    func cancelling() async throws {
        let service = try await tracker(Logic(Logic.silent))
        let task = Task { try await service.run() }
        let connection = try await RawConnection(to: service.address)
        try await connection.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
        try await Task.sleep(for: .milliseconds(100))
        let start = ContinuousClock.now
        task.cancel()
        try await task.value
        #expect(ContinuousClock.now - start < .seconds(5))
    }
}
