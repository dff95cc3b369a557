/// Asking a running tracker's console, as `tracker status` does.

import Datagrams
import Foundation
import Primitives

/// A tracker's status, as `GET /api/status` tells it (docs/openapi.yaml).
public struct StatusReport: Sendable, Hashable, Decodable {
    public struct Listener: Sendable, Hashable, Decodable {
        /// `udp`, `http` or `api`.
        public var service: String
        /// With its port.
        public var address: String
    }

    public struct Epoch: Sendable, Hashable, Decodable {
        public var round: UInt64
        public var id: UInt32
    }

    public struct Counters: Sendable, Hashable, Decodable {
        public var connects: UInt64
        public var announces: UInt64
        public var scrapes: UInt64
        public var errors: UInt64
        public var errorsWithheld: UInt64
        public var ignored: UInt64
        public var dropped: UInt64
        public var expired: UInt64
        public var completed: UInt64
    }

    public struct Node: Sendable, Hashable, Decodable {
        public var id: UInt32
        public var role: String
        public var epoch: Epoch
        public var commitIndex: UInt64
        public var lastIndex: UInt64
        public var digest: String
        public var accessMode: String
        public var torrents: Int
        public var peers: Int
        public var peersIPv4: Int
        public var peersIPv6: Int
        public var seeders: Int
        public var registeredTorrents: Int
        public var intervalSeconds: Int
        public var waitingRequests: Int
        public var counters: Counters
    }

    public var version: String
    public var processID: Int
    public var startedAt: String
    public var uptimeSeconds: Double
    public var listeners: [Listener]
    public var node: Node
}

public struct ConsoleClient: Sendable {
    public var host: String
    public var port: UInt16
    /// The console's bearer token, where it asks for one.
    public var token: String?
    public var timeout = Duration.seconds(5)

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
        let answer = try await onOwnThread { [self] () throws(TrackerClientError) in
            var headers = [("Accept", "application/json")]
            if let token { headers.append(("Authorization", "Bearer \(token)")) }
            // Never redirected: the token is for this host.
            return try HTTPGet(
                host: host, port: port, target: "/api/status", headers: headers,
                deadline: Clock.monotonic() + timeout
            ).run()
        }
        let data = Data(answer.body)
        guard answer.status == 200 else {
            struct Words: Decodable { var error: String }
            if let words = try? JSONDecoder().decode(Words.self, from: data) {
                throw .refused(shownText(words.error.utf8))
            }
            throw .status(answer.status, reason: answer.reason)
        }
        do {
            return (try JSONDecoder().decode(StatusReport.self, from: data), answer.body)
        } catch {
            throw .malformed("it is not the status of a tracker")
        }
    }
}
