// A raw HTTP client over loopback, and stand-ins for the tracker's logic.

import Foundation
import Logging
import Primitives
import ServiceLifecycle
import Synchronization
import TrackerLogic
import Web
import Wire

#if canImport(Glibc)
    import Glibc
#endif

// MARK: - The client

/// A TCP connection that sends and shows every byte.
///
/// It blocks threads of its own, never those of the test's tasks.
final class RawConnection: Sendable {
    private let descriptor: Int32

    /// Connects; `receiveBuffer` is how many bytes the system keeps for the client, few for one that does not read.
    init(to address: Primitives.SocketAddress, receiveBuffer: Int32? = nil) async throws {
        descriptor = try await Self.offPool { try Self.connected(to: address, receiveBuffer) }
    }

    deinit { Glibc.close(descriptor) }

    private static func offPool<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result(catching: work)) }
        }
    }

    struct SystemError: Error { var number: Int32 }

    private static func connected(to address: Primitives.SocketAddress, _ receiveBuffer: Int32?) throws -> Int32 {
        let family = address.isIPv4 ? AF_INET : AF_INET6
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError(number: errno) }
        if var bytes = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        }
        // The layouts of sockaddr_in and sockaddr_in6.
        var bytes: [UInt8] = []
        withUnsafeBytes(of: UInt16(family)) { bytes.append(contentsOf: $0) }
        bytes.append(bigEndian: address.port)
        if address.isIPv4 {
            bytes.append(bigEndian: address.ipv4)
            bytes += Array(repeating: 0, count: 8)
        } else {
            bytes += [0, 0, 0, 0]
            bytes.append(bigEndian: address.high)
            bytes.append(bigEndian: address.low)
            bytes += [0, 0, 0, 0]
        }
        let result = bytes.withUnsafeBytes { raw in
            Glibc.connect(
                descriptor, raw.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
        }
        guard result == 0 else {
            defer { Glibc.close(descriptor) }
            throw SystemError(number: errno)
        }
        return descriptor
    }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) async throws {
        try await Self.offPool { [descriptor] in
            let sent = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            guard sent == bytes.count else { throw SystemError(number: errno) }
        }
    }

    /// Sends what the system takes without waiting.
    ///
    /// - Returns: the number of bytes.
    func sendAtOnce(_ bytes: [UInt8]) -> Int {
        max(Glibc.send(descriptor, bytes, bytes.count, Int32(Int(MSG_NOSIGNAL) | Int(MSG_DONTWAIT))), 0)
    }

    /// Whether the other end has neither reset the connection nor closed it on both sides.
    var isOpen: Bool {
        var asked = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&asked, 1, 0) == 0
    }

    func endSending() { _ = Glibc.shutdown(descriptor, Int32(SHUT_WR)) }

    /// The next bytes; empty at the end of the stream or after a reset; nil when time is up.
    func receive(within milliseconds: Int32 = Waiting.mostMilliseconds) async throws -> [UInt8]? {
        try await Self.offPool { [descriptor] in
            var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waited, 1, milliseconds) > 0 else { return nil }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            return Array(buffer.prefix(max(count, 0)))
        }
    }

    /// Whether the other end closes in time; what it sends before is thrown away.
    func closes(within milliseconds: Int32 = Waiting.mostMilliseconds) async throws -> Bool {
        let end = ContinuousClock.now.advanced(by: .milliseconds(Int(milliseconds)))
        while ContinuousClock.now < end {
            let left = (end - ContinuousClock.now).components
            let rest = Int32(left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000)
            guard let bytes = try await receive(within: max(rest, 1)) else { return false }
            if bytes.isEmpty { return true }
        }
        return false
    }

    /// The next response, by its Content-Length.
    func response(withBody: Bool = true) async throws -> RawResponse {
        let separator = Array("\r\n\r\n".utf8)
        while true {
            let pending = received.withLock { $0 }
            if let head = pending.firstRange(of: separator) {
                var response = RawResponse(head: String(decoding: pending[..<head.lowerBound], as: UTF8.self))
                let length = withBody ? Int(response["content-length"] ?? "") ?? 0 : 0
                if pending.count - head.upperBound >= length {
                    response.body = Array(pending[head.upperBound...].prefix(length))
                    received.withLock { $0 = Array(pending[(head.upperBound + length)...]) }
                    return response
                }
            }
            guard let bytes = try await receive() else { throw NoResponse(received: pending, closed: false) }
            guard !bytes.isEmpty else { throw NoResponse(received: pending, closed: true) }
            received.withLock { $0 += bytes }
        }
    }

    private let received = Mutex<[UInt8]>([])

    struct NoResponse: Error {
        var received: [UInt8]
        var closed: Bool
    }
}

struct RawResponse {
    let status: Int
    private let fields: [(name: String, value: String)]
    var body: [UInt8] = []

    init(head: String) {
        let lines = head.split(separator: "\r\n")
        status = Int(lines.first?.split(separator: " ").dropFirst().first ?? "") ?? 0
        fields = lines.dropFirst().map { line in
            let name = line.prefix { $0 != ":" }
            return (name.lowercased(), String(line.dropFirst(name.count + 1).drop { $0 == " " }))
        }
    }

    subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    /// The body, with what is not UTF-8 shown as Latin-1.
    var text: String {
        String(validating: body, as: UTF8.self) ?? String(String.UnicodeScalarView(body.map { Unicode.Scalar($0) }))
    }
}

/// One request over a connection of its own.
func fetch(
    _ target: String, from address: Primitives.SocketAddress, headers: [String] = [], method: String = "GET",
    body: String? = nil
) async throws -> RawResponse {
    let connection = try await RawConnection(to: address)
    var headers = headers
    if let body {
        headers += ["Content-Length: \(body.utf8.count)"]
        if !headers.contains(where: { $0.lowercased().hasPrefix("content-type:") }) {
            headers += ["Content-Type: application/json"]
        }
    }
    let fields = (headers.contains { $0.lowercased().hasPrefix("host:") } ? [] : ["Host: localhost"]) + headers
    try await connection.send(
        "\(method) \(target) HTTP/1.1\r\n\(fields.joined(separator: "\r\n"))\r\n\r\n\(body ?? "")")
    return try await connection.response(withBody: method != "HEAD")
}

// MARK: - The service

let loopback = Primitives.SocketAddress(ipv4: 0x7F00_0001, port: 0)
let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// Runs a service while the body runs, then stops it gracefully.
///
/// - Returns: how long the stop took, with what the body gives.
@discardableResult
func running<Value: Sendable>(
    _ services: [any Service], _ body: @Sendable () async throws -> Value
) async throws -> (value: Value, stop: Swift.Duration) {
    let group = ServiceGroup(configuration: .init(services: services, logger: quiet))
    return try await withThrowingTaskGroup { tasks in
        tasks.addTask { try await group.run() }
        let value: Value
        do {
            value = try await body()
        } catch {
            await group.triggerGracefulShutdown()
            throw error
        }
        let start = ContinuousClock.now
        await group.triggerGracefulShutdown()
        try await tasks.waitForAll()
        return (value, ContinuousClock.now - start)
    }
}

/// A tracker on a free port of loopback.
func tracker(
    _ handler: some RequestHandler, on address: Primitives.SocketAddress = loopback, trusted: [String] = [],
    limits: HTTPLimits = HTTPLimits(), tally: HTTPTally = HTTPTally()
) async throws -> HTTPService {
    try await HTTPTracker.listen(
        on: address, handler: handler, trusted: trusted.map { AddressPrefix($0)! }, limits: limits, logger: quiet,
        tally: tally)
}

extension HTTPTally {
    /// As the metrics show it.
    var page: String {
        var text = PrometheusText()
        write(into: &text)
        return text.text
    }
}

// MARK: - The logic

/// What reached the logic.
struct HandledRequest: Sendable, Equatable {
    var content: ClientRequest.Content
    var source: Primitives.SocketAddress
    var passkey: [UInt8]

    var announce: Announce? {
        guard case .announce(let announce) = content else { return nil }
        return announce
    }
}

/// Remembers what it was asked, and answers as it was told.
final class Logic: RequestHandler {
    private let requests = Mutex<[HandledRequest]>([])
    private let reply: @Sendable (HandledRequest) async throws -> Answer.Content

    init(_ reply: @escaping @Sendable (HandledRequest) async throws -> Answer.Content = Logic.standard) {
        self.reply = reply
    }

    var handled: [HandledRequest] { requests.withLock { $0 } }

    func handle(
        _ content: ClientRequest.Content, source: Primitives.SocketAddress, passkey: [UInt8]
    ) async throws -> Answer.Content {
        let request = HandledRequest(content: content, source: source, passkey: passkey)
        requests.withLock { $0.append(request) }
        return try await reply(request)
    }

    /// A swarm of nobody; the nth info hash of a scrape has n seeders.
    static let standard: @Sendable (HandledRequest) async throws -> Answer.Content = { request in
        switch request.content {
        case .announce:
            let counts = SwarmCounts(seeders: 1, leechers: 2, completed: 3)
            return .announce(
                AnnounceAnswer(interval: 1800, minInterval: 900, counts: counts, ipv4: [], ipv6: []))
        case .scrape(let infoHashes):
            return .scrape(infoHashes.indices.map { SwarmCounts(seeders: UInt32($0 + 1)) })
        }
    }

    /// Does not answer, and does not listen when told to give up.
    static let silent: @Sendable (HandledRequest) async throws -> Answer.Content = { request in
        while true { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
    }
}

let exampleHash = Array("abcdefghij0123456789".utf8)
let exampleQuery = "info_hash=abcdefghij0123456789&peer_id=-XX0001-000000000000&port=6881&left=0"
