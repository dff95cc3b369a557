// A part of a file over HTTP/1.1, straight to its place in memory.

import Datagrams
import Primitives

/// A part of a file over HTTP/1.1, straight to its place in memory: what a web seed is asked for (BEP 19).
///
/// - SeeAlso: RFC 9110, 14 "Range Requests".
public struct HTTPRangeGet: Sendable {
    /// Where the file is.
    public var url: TrackerURL
    /// The first byte that is wanted, from 0.
    public var offset: Int
    /// For all of it, redirections and connecting included.
    public var deadline: Instant
    /// What the server is told that we are.
    public var userAgent: String

    /// Why it has not come.
    public enum Failure: Error, Sendable, Hashable {
        /// Not reachable, silent, cut short, or 5xx; for people.
        case unavailable(String)
        /// Another answer than what was asked for; for people.
        case unusable(String)

        /// For people.
        public var reason: String {
            switch self {
            case .unavailable(let reason), .unusable(let reason): reason
            }
        }
    }

    /// A part of the file at `url`.
    public init(url: TrackerURL, offset: Int, deadline: Instant, userAgent: String) {
        self.url = url
        self.offset = offset
        self.deadline = deadline
        self.userAgent = userAgent
    }

    private static let maxRedirections = 5

    /// Fetches as many bytes as there is room for, on the calling thread.
    public func run(into target: UnsafeMutableRawBufferPointer) throws(Failure) {
        guard !target.isEmpty else { return }
        var url = url
        for _ in 0...Self.maxRedirections {
            let socket: ClientSocket
            do throws(TrackerClientError) {
                socket = try HTTPGet(host: url.host, port: url.port, target: "/", deadline: deadline)
                    .connected(since: Clock.monotonic())
            } catch {
                throw .unavailable(error.description)
            }
            try say(request(url, byteCount: target.count), socket)
            let (head, rest) = try head(socket)
            if [301, 302, 303, 307, 308].contains(head.status), let location = head["location"] {
                url = try redirected(url, location)
                continue
            }
            try check(head, byteCount: target.count)
            return try body(socket, rest, into: target)
        }
        throw .unusable("it redirects more than \(Self.maxRedirections) times")
    }

    private func request(_ url: TrackerURL, byteCount: Int) -> [UInt8] {
        let host = url.host.contains(":") ? "[\(url.host)]" : url.host
        let text =
            "GET \(url.path.isEmpty ? "/" : url.path) HTTP/1.1\r\nHost: \(host):\(url.port)\r\nConnection: close\r\n"
            + "Accept-Encoding: identity\r\nUser-Agent: \(userAgent)\r\n"
            + "Range: bytes=\(offset)-\(offset + byteCount - 1)\r\n\r\n"
        return Array(text.utf8)
    }

    private func say(_ bytes: [UInt8], _ socket: ClientSocket) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            do {
                rest = rest.dropFirst(try socket.send(rest))
            } catch {
                throw .unavailable(error.description)
            }
            if !rest.isEmpty, ClientSocket.wait([socket], toWrite: true, until: deadline).isEmpty {
                throw .unavailable("it takes no request")
            }
        }
    }

    private func part(_ socket: ClientSocket) throws(Failure) -> [UInt8] {
        while true {
            if ClientSocket.wait([socket], until: deadline).isEmpty { throw .unavailable("it is silent, or too slow") }
            do {
                if let part = try socket.receive(atMost: 65_536) { return part }
            } catch {
                throw .unavailable(error.description)
            }
        }
    }

    /// - Returns: the head, and what has come of the body with it.
    private func head(_ socket: ClientSocket) throws(Failure) -> (HTTPHead, ArraySlice<UInt8>) {
        var bytes: [UInt8] = []
        while true {
            let next = try part(socket)
            guard !next.isEmpty, bytes.count <= HTTPHead.maxByteCount else { throw .unavailable("it is cut short") }
            let from = max(0, bytes.count - 3)
            bytes += next
            guard let end = HTTPAnswerReader.endOfHead(bytes, from: from) else { continue }
            do throws(TrackerClientError) {
                return (try HTTPHead(bytes[..<end]), bytes[end...])
            } catch {
                throw .unusable(error.description)
            }
        }
    }

    private func redirected(_ url: TrackerURL, _ location: String) throws(Failure) -> TrackerURL {
        guard location.utf8.allSatisfy({ (33...126).contains($0) }) else { throw .unusable("it redirects to nowhere") }
        if location.hasPrefix("/"), !location.hasPrefix("//") {
            var url = url
            url.path = location
            return url
        }
        do throws(TrackerURLError) {
            let next = try TrackerURL(location)
            guard next.scheme == .http else { throw TrackerURLError("it redirects to another protocol") }
            return next
        } catch {
            throw .unusable(error.description)
        }
    }

    private func check(_ head: HTTPHead, byteCount: Int) throws(Failure) {
        switch head.status {
        case 206: break
        case 500...599, 429, 408: throw .unavailable("the server answers \(head.status) \(head.reason)")
        case 200: throw .unusable("the server knows no ranges: it sends all instead of a part")
        default: throw .unusable("the server answers \(head.status) \(head.reason)")
        }
        guard head["transfer-encoding"] == nil, head["content-encoding"] ?? "identity" == "identity" else {
            throw .unusable("the part is encoded, though that was not asked for")
        }
        let range = head["content-range"] ?? ""
        guard range.hasPrefix("bytes \(offset)-\(offset + byteCount - 1)/") else {
            throw .unusable("the server sends another part (\(quoted(range)))")
        }
        if let length = head["content-length"], Int(length) != byteCount {
            throw .unusable("the part has \(quoted(length)) bytes instead of \(byteCount)")
        }
    }

    private func body(
        _ socket: ClientSocket, _ first: ArraySlice<UInt8>, into target: UnsafeMutableRawBufferPointer
    ) throws(Failure) {
        var next = first
        var done = 0
        while true {
            let count = min(next.count, target.count - done)
            UnsafeMutableRawBufferPointer(rebasing: target[done..<done + count]).copyBytes(from: next.prefix(count))
            done += count
            if done == target.count { return }
            next = try part(socket)[...]
            guard !next.isEmpty else { throw .unavailable("it is cut short") }
        }
    }
}
