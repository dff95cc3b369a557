// One GET over HTTP/1.1, or a POST with a short body.

import Datagrams
import Primitives

/// One GET over HTTP/1.1, or a POST with a short body: what asking a tracker or its console takes, within bounds of
/// time and size.
///
/// Why not URLSession: it works here, but draws libcurl and twenty more libraries into every `tracker serve`, bounds
/// neither the size of an answer nor, together, the time of looking up, connecting and reading, and goes through
/// proxies that the environment names, where a console on loopback is not to be found.
///
/// - SeeAlso: RFC 9112.
struct HTTPGet {
    var host: String
    var port: UInt16
    /// Path and query.
    var target: String
    /// Beside `Host`, `Connection` and `Accept-Encoding`.
    var headers: [(name: String, value: String)] = []
    var deadline: Instant
    /// Redirections that are followed, to other paths and hosts.
    var redirections = 0
    var method = "GET"
    /// JSON unless the headers say otherwise; none is sent with GET.
    var body: [UInt8] = []

    struct Answer: Sendable {
        var status: Int
        var reason: String
        var body: [UInt8]
        /// Who answered.
        var server: SocketAddress
    }

    /// Bytes of an answer with its head; a tracker's longest have some 20,000.
    static let maxByteCount = 1 << 20

    private var place: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// Asks on the calling thread.
    func run() throws(TrackerClientError) -> Answer {
        let start = Clock.monotonic()
        var get = self
        var left = redirections
        while true {
            let socket = try get.connected(since: start)
            let (head, body) = try get.exchange(socket, since: start)
            if [301, 302, 303, 307, 308].contains(head.status), left > 0, let location = head["location"] {
                left -= 1
                try get.follow(location)
                continue
            }
            return Answer(status: head.status, reason: head.reason, body: body, server: socket.peer)
        }
    }

    private mutating func follow(_ location: String) throws(TrackerClientError) {
        if location.hasPrefix("/"), !location.hasPrefix("//") {
            target = location
        } else {
            let url: TrackerURL
            do {
                url = try TrackerURL(location)
            } catch {
                throw .malformed("it redirects to a place that cannot be asked: \(error)")
            }
            guard url.scheme == .http else { throw .malformed("it redirects to \(url)") }
            (host, port, target) = (url.host, url.port, url.path.isEmpty ? "/" : url.path)
        }
        guard target.utf8.allSatisfy({ (33...126).contains($0) }) else {
            throw .malformed("it redirects to \(quoted(location))")
        }
    }

    private func silent(since start: Instant) -> TrackerClientError { .silent(place, after: Clock.monotonic() - start) }

    /// Tries the host's addresses one after another; each has its share of the time.
    func connected(since start: Instant) throws(TrackerClientError) -> ClientSocket {
        let addresses = try SocketAddress.lookUp(host, port: port)
        var failure: SystemReason?
        for (index, address) in addresses.enumerated() {
            let now = Clock.monotonic()
            let share = Duration(nanoseconds: (deadline - now).nanoseconds / Int64(addresses.count - index))
            guard share > .zero else { break }
            do throws(SystemReason) {
                let socket = try ClientSocket(.stream, to: address)
                guard !ClientSocket.wait([socket], toWrite: true, until: now + share).isEmpty else { continue }
                if let error = socket.pendingError { throw error }
                return socket
            } catch {
                failure = error
            }
        }
        if let failure { throw .unreachable(place, reason: failure.description) }
        throw silent(since: start)
    }

    private func exchange(
        _ socket: ClientSocket, since start: Instant
    ) throws(TrackerClientError) -> (HTTPHead, [UInt8]) {
        var text = "\(method) \(target) HTTP/1.1\r\nHost: \(place)\r\nConnection: close\r\n"
        text += "Accept-Encoding: identity\r\n"
        if method != "GET" { text += "Content-Length: \(body.count)\r\n" }
        if !body.isEmpty, !headers.contains(where: { $0.name == "Content-Type" }) {
            text += "Content-Type: application/json\r\n"
        }
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        var rest = (Array("\(text)\r\n".utf8) + body)[...]
        while !rest.isEmpty {
            do {
                rest = rest.dropFirst(try socket.send(rest))
            } catch {
                throw .unreachable(place, reason: error.description)
            }
            if !rest.isEmpty, ClientSocket.wait([socket], toWrite: true, until: deadline).isEmpty {
                throw silent(since: start)
            }
        }
        var reader = HTTPAnswerReader(limit: Self.maxByteCount)
        while true {
            if ClientSocket.wait([socket], until: deadline).isEmpty { throw silent(since: start) }
            let part: [UInt8]?
            do {
                part = try socket.receive(atMost: 65_536)
            } catch {
                throw .unreachable(place, reason: error.description)
            }
            guard let part else { continue }
            if let answer = try reader.add(part) { return answer }
        }
    }
}
