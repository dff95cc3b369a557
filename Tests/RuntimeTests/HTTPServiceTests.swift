import Bus
import Primitives
import Testing
import TrackerLogic
import Web
import Wire

/// One after another, for they watch the clock and some send as much as they can.
@Suite("HTTP: by the clock", .serialized)
enum HTTPTimedTests {}

extension HTTPTimedTests {
    @Suite("HTTP: listeners")
    struct HTTPServiceTests {}
}

extension HTTPTimedTests.HTTPServiceTests {
    // MARK: Opening

    @Test
    func `a port in use is refused before anything runs, with the address and the way out`() async throws {
        try await thoughOthersTakePorts {
            let first = try await tracker(Logic())
            await #expect {
                _ = try await tracker(Logic(), on: first.address)
            } throws: { error in
                "\(error)"
                    == "cannot listen for the HTTP tracker on \(first.address): "
                    + "another program has this port; stop it, or choose another port"
            }
            await first.close()
            let second = try await tracker(Logic(), on: first.address)
            await second.close()
        }
    }

    /// Between a test's two uses of a port, another test may have been given it: then it begins anew.
    private func thoughOthersTakePorts(_ body: () async throws -> Void) async throws {
        for _ in 1..<5 {
            do {
                return try await body()
            } catch let error as ListenFailure where error.cause == .addressInUse {}
        }
        try await body()
    }

    @Test(arguments: ["192.0.2.1", "2001:db8::1"])
    func `an address that is not ours is refused, in either family`(host: String) async throws {
        let address = SocketAddress(host: host, port: 6969)!
        await #expect {
            _ = try await tracker(Logic(), on: address)
        } throws: { error in
            (error as? ListenFailure)?.cause == .noSuchAddress && "\(error)".contains("on \(address): ")
        }
    }

    @Test
    func `IPv6 leaves the same port to IPv4, also where both listen on all addresses`() async throws {
        try await thoughOthersTakePorts {
            let ipv4 = try await tracker(Logic(), on: SocketAddress(host: "0.0.0.0", port: 0)!)
            let ipv6: HTTPService
            do {
                ipv6 = try await tracker(Logic(), on: SocketAddress(host: "::", port: ipv4.address.port)!)
            } catch {
                await ipv4.close()
                throw error
            }
            #expect("\(ipv6.address)" == "[::]:\(ipv4.address.port)")
            try await running([ipv4, ipv6]) {
                for host in ["127.0.0.1", "::1"] {
                    let response = try await fetch("/", from: SocketAddress(host: host, port: ipv4.address.port)!)
                    #expect(response.status == 200)
                }
            }
        }
    }

    @Test
    func `who comes before it runs is served when it does, and let go if it never does`() async throws {
        let service = try await tracker(Logic())
        let early = try await RawConnection(to: service.address)
        try await early.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try await early.receive(within: 100) == nil)
        try await running([service]) {
            let response = try await early.response()
            #expect(response.status == 200)
        }
        let idle = try await tracker(Logic())
        let unlucky = try await RawConnection(to: idle.address)
        await idle.close()
        #expect(try await unlucky.closes())
    }

    // MARK: Connections

    @Test
    func `a connection is kept for further requests, also for those sent ahead`() async throws {
        let service = try await tracker(Logic())
        try await running([service]) {
            let connection = try await RawConnection(to: service.address)
            for _ in 0..<3 {
                try await connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                let response = try await connection.response()
                #expect(response.status == 200)
                #expect(response["connection"] == nil)
                #expect(response["server"] == "Swarmkeeper")
                #expect(response["date"]?.hasSuffix(" GMT") == true)
            }
            let ahead = String(repeating: "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", count: 50)
            try await connection.send(ahead + "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            for _ in 0..<50 {
                let response = try await connection.response()
                #expect(response.status == 404)
                #expect(response["connection"] == nil)
            }
            let last = try await connection.response()
            #expect(last.status == 200)
            #expect(last["connection"] == "close")
            #expect(try await connection.closes())
        }
    }

    enum Closing: String, CaseIterable {
        case version10 = "GET / HTTP/1.0\r\n\r\n"
        case version10Kept = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
        case asked = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n"
        case askedAmongOthers = "GET / HTTP/1.1\r\nHost: x\r\nConnection: TE, close\r\n\r\n"
    }

    @Test(arguments: Closing.allCases)
    func `it closes after the answer where the client waits for that`(request: Closing) async throws {
        let service = try await tracker(Logic())
        try await running([service]) {
            let connection = try await RawConnection(to: service.address)
            try await connection.send(request.rawValue)
            let response = try await connection.response()
            #expect(response.status == 200)
            #expect(response["connection"] == "close")
            #expect(try await connection.closes())
        }
    }

    @Test
    func `a client that does not close its side after the last answer is let go too`() async throws {
        let service = try await tracker(Logic())
        try await running([service]) {
            let connection = try await RawConnection(to: service.address)
            try await connection.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            #expect(try await connection.closes())
            // The server's side is closed; once the connection is gone, what we send is refused.
            try await eventually { connection.sendAtOnce([0]) == 0 }
        }
    }

    @Test
    func `a client that ends its side still gets its answer`() async throws {
        let service = try await tracker(Logic { _ in try await Logic.slow(.milliseconds(100)) })
        try await running([service]) {
            let connection = try await RawConnection(to: service.address)
            try await connection.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.endSending()
            let response = try await connection.response()
            #expect(response.text.hasPrefix("d8:complete"))
            #expect(try await connection.closes())
        }
    }

    // MARK: Bounds

    enum Refused: CaseIterable {
        case longTarget, longField, manyFields, longHead, notHTTP, version20, spaceInTarget, http2

        var text: String {
            func long(_ count: Int) -> String { String(repeating: "a", count: count) }
            return switch self {
            case .longTarget: "GET /\(long(8_193)) HTTP/1.1\r\n\r\n"
            case .longField: "GET / HTTP/1.1\r\nX: \(long(8_193))\r\n\r\n"
            case .manyFields: "GET / HTTP/1.1\r\n" + (0..<65).map { "X\($0): y\r\n" }.joined() + "\r\n"
            case .longHead: "GET / HTTP/1.1\r\n" + (0..<3).map { "X\($0): \(long(6_000))\r\n" }.joined()
            case .notHTTP: "\u{16}\u{3}\u{1} this is TLS\r\n\r\n"
            case .version20: "GET / HTTP/2.0\r\n\r\n"
            case .spaceInTarget: "GET / a HTTP/1.1\r\n\r\n"
            case .http2: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            }
        }
    }

    @Test(arguments: Refused.allCases)
    func `what is too long or no HTTP is refused with 400, and the connection closed`(request: Refused) async throws {
        let service = try await tracker(Logic())
        try await running([service]) {
            let connection = try await RawConnection(to: service.address)
            try await connection.send(request.text)
            let response = try await connection.response()
            #expect(response.status == 400)
            #expect(response["connection"] == "close")
            #expect(try await connection.closes())
        }
    }

    enum Body: String, CaseIterable {
        case long = "POST /announce HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n"
        case chunked = "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        case upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        case connect = "CONNECT example.org:80 HTTP/1.1\r\nHost: x\r\n\r\n"
    }

    @Test(arguments: Body.allCases)
    func `a body is not kept: the client is answered and the connection closed`(request: Body) async throws {
        // So that all of it is taken, however long that takes.
        var patient = HTTPLimits()
        patient.linger = .seconds(600)
        patient.idle = .seconds(600)
        let (service, closing) = try await (tracker(Logic(), limits: patient), tracker(Logic()))
        try await running([service, closing]) {
            // Other tests of this process take memory meanwhile, though hardly each time. Connections stay open, so
            // that nothing that is kept for one can make room for the next.
            var open: [RawConnection] = []
            var growths: [Int] = []
            while growths.count < 5, growths.last.map({ $0 >= 32_000_000 }) ?? true {
                let before = try #require(ProcessMetrics.read()).residentByteCount
                let connection = try await RawConnection(to: service.address)
                open.append(connection)
                try await connection.send(request.rawValue)
                let response = try await connection.response()
                #expect([200, 405].contains(response.status))
                #expect(response["connection"] == "close")
                let junk = [UInt8](repeating: UInt8(ascii: "x"), count: 65_536)
                var sent = 0
                try await eventually("a body of 64 MB is taken") {
                    while case let taken = connection.sendAtOnce(junk), taken > 0 { sent += taken }
                    return sent > 64_000_000
                }
                growths.append(Int(try #require(ProcessMetrics.read()).residentByteCount) - Int(before))
            }
            #expect(growths.contains { $0 < 32_000_000 }, "64 MB and more were sent each time: \(growths)")
            withExtendedLifetime(open) {}
            let other = try await RawConnection(to: closing.address)
            try await other.send(request.rawValue)
            #expect(try await other.closes())
        }
    }

    @Test
    func `a client that is idle, or sends its head drop by drop, is let go`() async throws {
        var limits = HTTPLimits()
        limits.idle = .seconds(2)
        let service = try await tracker(Logic(), limits: limits)
        try await running([service]) {
            let silent = try await RawConnection(to: service.address)
            // Once more, should this test itself be held up for so long.
            var kept = silent
            try await eventually("one is answered") {
                kept = try await RawConnection(to: service.address)
                try await kept.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                return try await kept.response().status == 200
            }
            let slow = try await RawConnection(to: service.address)
            let head = Array("GET /announce?info_hash=\(String(repeating: "a", count: 150)) HTTP/1.1\r\n\r\n".utf8)
            let sent = try await drip(head, over: slow)
            #expect(sent < head.count)
            for connection in [silent, kept, slow] {
                #expect(try await connection.closes())
            }
        }
    }

    /// - Returns: how many bytes could be sent, one every 50 ms, before the connection was closed.
    private func drip(_ bytes: [UInt8], over connection: RawConnection) async throws -> Int {
        for (index, byte) in bytes.enumerated() {
            do { try await connection.send([byte]) } catch { return index }
            try await Task.sleep(for: .milliseconds(50))
        }
        return bytes.count
    }

    @Test
    func `a client that asks and asks and does not read the answers is let go`() async throws {
        var limits = HTTPLimits()
        limits.writeStall = .milliseconds(500)
        let tally = HTTPTally()
        let service = try await tracker(Logic(), limits: limits, tally: tally)
        try await running([service]) {
            let connection = try await RawConnection(to: service.address, receiveBuffer: 4_096)
            try await connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            _ = try await connection.response()
            let requests = Array(String(repeating: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", count: 1_000).utf8)
            try await eventually {
                _ = connection.sendAtOnce(requests)
                return tally.page.contains("_http_connections{listener=\"tracker\"} 0\n")
            }
        }
    }

    @Test
    func `an address may hold so many connections and no more, unless it is trusted`() async throws {
        var limits = HTTPLimits()
        limits.connectionsPerAddress = 2
        for (trusted, isAdmitted) in [([String](), false), (["127.0.0.0/8"], true)] {
            let tally = HTTPTally()
            let service = try await tracker(Logic(), trusted: trusted, limits: limits, tally: tally)
            try await running([service]) {
                var kept: [RawConnection] = []
                for _ in 0..<2 {
                    let connection = try await RawConnection(to: service.address)
                    try await connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    let response = try await connection.response()
                    #expect(response.status == 200)
                    kept.append(connection)
                }
                let third = try await RawConnection(to: service.address)
                if isAdmitted {
                    try await third.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    let response = try await third.response()
                    #expect(response.status == 200)
                } else {
                    #expect(try await third.closes())
                    kept.removeAll()
                    // Room again, as soon as the server has seen the others go.
                    try await eventually { try await fetch("/", from: service.address).status == 200 }
                }
            }
            let refused = "swarmkeeper_http_connections_refused_total{listener=\"tracker\"} "
            #expect(tally.page.contains("\n\(refused)0\n") == isAdmitted)
        }
    }

    @Test
    func `who comes to a full listener takes the place of one that brings nothing, the longest first`() async throws {
        var limits = HTTPLimits()
        limits.connections = 16
        let service = try await tracker(Logic(), limits: limits)
        try await running([service]) {
            var kept: [RawConnection] = []
            for _ in 0..<16 { kept.append(try await RawConnection(to: service.address)) }
            for _ in 0..<24 {
                let connection = try await RawConnection(to: service.address)
                try await connection.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                let response = try await connection.response()
                #expect(response.status == 200)
                kept.append(connection)
            }
            #expect(try await kept[0].closes())
        }
    }

    @Test
    func `those who are being answered keep their places, and further ones wait until one is done`() async throws {
        var limits = HTTPLimits()
        limits.connections = 16
        limits.answer = .seconds(5)
        let logic = Logic(Logic.silent)
        let service = try await tracker(logic, limits: limits)
        try await running([service]) {
            var kept: [RawConnection] = []
            for _ in 0..<40 {
                let connection = try await RawConnection(to: service.address)
                try await connection.send("GET /announce?\(exampleQuery) HTTP/1.1\r\nHost: x\r\n\r\n")
                kept.append(connection)
            }
            try await eventually { logic.handled.count >= 16 }
            try await Task.sleep(for: .milliseconds(300))
            // NIO accepts up to four at a time, so that it may be a few more.
            #expect((16...20).contains(logic.handled.count))
            // They are told that it is late, and then make room.
            try await eventually { logic.handled.count == 40 }
        }
    }
}

extension Logic {
    static func slow(_ duration: Swift.Duration) async throws -> Answer.Content {
        try await Task.sleep(for: duration)
        return .announce(
            AnnounceAnswer(interval: 1, minInterval: 1, counts: SwarmCounts(), ipv4: [], ipv6: []))
    }
}
