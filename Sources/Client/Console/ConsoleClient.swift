// Asking a running tracker's console, as `tracker status` does, and giving its cluster orders.

import Datagrams
import Foundation
import Primitives

/// Asks one tracker's console, as `tracker status` does, and gives its cluster orders.
public struct ConsoleClient: Sendable {
    /// A name or an address, without brackets.
    public var host: String
    /// Of the console, 6970 unless its operator chose another.
    public var port: UInt16
    /// The console's bearer token, where it asks for one.
    public var token: String?
    /// For a question; an order may take longer.
    public var timeout = Duration.seconds(5)

    /// An order may take as long as the tracker waits for what comes of it, and a little.
    static let orderTimeout = Duration.seconds(20)
    /// A file of some megabytes has to come to a tracker, and from there to all.
    static let uploadTimeout = Duration.seconds(90)

    /// Takes the fields as they are.
    public init(host: String, port: UInt16, token: String? = nil) {
        self.host = host
        self.port = port
        self.token = token
    }

    /// Asks for the status.
    ///
    /// - Returns: the status, and the JSON that it came as.
    /// - Throws: `TrackerClientError`: `.refused` with the console's words, for example where the token is wrong.
    public func status() async throws(TrackerClientError) -> (report: StatusReport, json: [UInt8]) {
        let body = try await ask("GET", "/api/v1/status", within: timeout)
        return (try decode(body, "the status of a tracker"), body)
    }

    /// Asks for the cluster as this tracker sees it.
    ///
    /// - Returns: its view; what it says of others may be an interval old.
    /// - Throws: `TrackerClientError`: `.refused` with the console's words, for example where the token is wrong.
    public func cluster() async throws(TrackerClientError) -> ClusterView {
        try decode(try await ask("GET", "/api/v1/cluster", within: timeout), "a tracker's view of its cluster")
    }

    func decode<Value: Decodable>(_ body: [UInt8], _ what: String) throws(TrackerClientError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(body))
        } catch {
            throw .malformed("it is not \(what)")
        }
    }

    func ask(
        _ method: String, _ target: String, body: [UInt8] = [], headers extra: [(String, String)] = [],
        within span: Duration
    ) async throws(TrackerClientError) -> [UInt8] {
        try Self.body(of: await reply(method, target, body: body, headers: extra, within: span))
    }

    func reply(
        _ method: String, _ target: String, body: [UInt8], headers extra: [(String, String)], within span: Duration
    ) async throws(TrackerClientError) -> HTTPGet.Answer {
        try await onOwnThread { [self] () throws(TrackerClientError) in
            var headers = [("Accept", "application/json")] + extra
            if let token { headers.append(("Authorization", "Bearer \(token)")) }
            // Never redirected: the token is for this host.
            return try HTTPGet(
                host: host, port: port, target: target, headers: headers, deadline: Clock.monotonic() + span,
                method: method, body: body
            ).run()
        }
    }

    /// Why a console says no, where it says so in words.
    static func words(_ answer: HTTPGet.Answer) -> String? {
        struct Words: Decodable { var error: String }
        return (try? JSONDecoder().decode(Words.self, from: Data(answer.body))).map { shownText($0.error.utf8) }
    }

    static func body(of answer: HTTPGet.Answer) throws(TrackerClientError) -> [UInt8] {
        guard answer.status == 200 || answer.status == 201 else {
            if let words = words(answer) { throw .refused(words) }
            throw .status(answer.status, reason: answer.reason)
        }
        return answer.body
    }
}
