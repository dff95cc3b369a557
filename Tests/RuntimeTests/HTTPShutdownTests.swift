import Primitives
import Testing
import TrackerLogic
import Web

extension HTTPTimedTests {
    /// Nothing that a client does or leaves undone delays a stop (by the bounds on clients, it would).
    @Suite("HTTP: stopping")
    struct HTTPShutdownTests {}
}

extension HTTPTimedTests.HTTPShutdownTests {
    /// Limits under which a stop that waited for a client would take ten minutes.
    static let patient: HTTPLimits = {
        var limits = HTTPLimits()
        (limits.idle, limits.writeStall, limits.answer) = (.seconds(600), .seconds(600), .seconds(600))
        return limits
    }()
    /// Far less than that, and far more than the half of a second that a stop takes: machines are busy.
    static let bound = Swift.Duration.seconds(60)

    enum Client: CaseIterable {
        case idle
        case kept
        case halfAHead
        case waiting
        case notReading
        case notClosing
        case sendingABody
    }

    @Test(arguments: Client.allCases)
    func `it stops without waiting for clients, whatever they do`(client: Client) async throws {
        let service = try await tracker(Logic(Logic.silent), limits: Self.patient)
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
        #expect(stop < Self.bound)
        #expect(try await connection.closes())
    }

    @Test
    func `a request that waits is told to go elsewhere`() async throws {
        var limits = Self.patient
        limits.shutdownClose = .seconds(600)
        let logic = Logic(Logic.silent)
        let service = try await tracker(logic, limits: limits)
        let (waiting, stop) = try await running([service]) {
            let waiting = try await RawConnection(to: service.address)
            try await waiting.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
            try await eventually("the logic has it") { logic.handled.count == 1 }
            return waiting
        }
        let refused = try await waiting.response()
        #expect(refused.text.contains("tracker is going down, try again later"))
        #expect(refused.text.contains("8:retry ini2e"))
        #expect(refused["connection"] == "close")
        #expect(stop < Self.bound)
    }

    @Test
    func `a request that is answered while the tracker stops gets its answer`() async throws {
        var limits = Self.patient
        (limits.shutdownAnswer, limits.shutdownClose) = (.seconds(600), .seconds(600))
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        let logic = Logic { _ in
            for await _ in gate {}
            return .announce(
                AnnounceAnswer(interval: 1, minInterval: 1, counts: SwarmCounts(), ipv4: [], ipv6: []))
        }
        let service = try await tracker(logic, limits: limits)
        let ((waiting, opening), stop) = try await running([service]) {
            let waiting = try await RawConnection(to: service.address)
            try await waiting.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
            try await eventually("the logic has it") { logic.handled.count == 1 }
            // The stop has begun when nobody is let in any more.
            let opening = Task {
                try await eventually("nobody is let in") {
                    (try? await RawConnection(to: service.address)) == nil
                }
                opener.finish()
            }
            return (waiting, opening)
        }
        try await opening.value
        #expect(try await waiting.response().text.hasPrefix("d8:complete"))
        #expect(stop < Self.bound)
    }

    @Test
    func `many listeners with many clients stop without waiting`() async throws {
        let services = try await [
            tracker(Logic(), limits: Self.patient), tracker(Logic(), limits: Self.patient),
            tracker(Logic(), limits: Self.patient),
        ]
        let (connections, stop) = try await running(services) {
            var connections: [RawConnection] = []
            for index in 0..<150 {
                let connection = try await RawConnection(to: services[index % 3].address)
                if index.isMultiple(of: 2) { try await connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n") }
                connections.append(connection)
            }
            return connections
        }
        #expect(stop < Self.bound)
        for connection in connections { #expect(try await connection.closes()) }
    }

    @Test
    func `nobody is let in after the stop, and the port is free`() async throws {
        let service = try await tracker(Logic())
        try await running([service]) { _ = try await fetch("/", from: service.address) }
        await #expect(throws: RawConnection.SystemError.self) { try await RawConnection(to: service.address) }
        let next = try await tracker(Logic(), on: service.address)
        await next.close()
    }

    @Test
    func `cancelling the task stops it too`() async throws {
        let service = try await tracker(Logic(Logic.silent), limits: Self.patient)
        let task = Task { try await service.run() }
        let connection = try await RawConnection(to: service.address)
        try await connection.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
        try await Task.sleep(for: .milliseconds(100))
        let start = ContinuousClock.now
        task.cancel()
        try await task.value
        #expect(ContinuousClock.now - start < Self.bound)
    }
}
