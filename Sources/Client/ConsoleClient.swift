/// Asking a running tracker's console, as `tracker status` does, and giving its cluster orders.

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
        public var timedOut: UInt64
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
    /// Nil where its operator has not told it.
    public var advertised: String?
    public var node: Node
    /// Nil for a tracker of an earlier version.
    public var cluster: ClusterView?
}

/// The cluster as one tracker sees it, as `GET /api/cluster` tells it (docs/openapi.yaml).
public struct ClusterView: Sendable, Hashable, Decodable {
    public struct Bus: Sendable, Hashable, Decodable {
        public var isConnected: Bool
        public var endpoint: String
        /// Of several brokers, the one in use; nil where there is none, and for a tracker that does not tell.
        public var broker: String?
        public var sent: UInt64
        public var received: UInt64
        public var dropped: UInt64
        public var rejected: UInt64
        public var repaired: UInt64
        public var reconnections: UInt64
        public var lastProblem: String?
    }

    public struct Messages: Sendable, Hashable, Decodable {
        public var received: UInt64
        public var sent: UInt64
        public var malformed: UInt64
        /// Of trackers that speak another version; nil for a tracker that does not count them.
        public var otherVersion: UInt64?
        public var dropped: UInt64
    }

    public struct Tracker: Sendable, Hashable, Decodable {
        public var id: UInt32
        public var incarnation: String
        public var isThis: Bool
        /// `newcomer`, `slave`, `candidate`, `master` or `down`.
        public var role: String
        public var epoch: StatusReport.Epoch
        public var silentSeconds: Double
        public var commitIndex: UInt64
        /// Entries that it was behind the one that was asked when it last said where it is, never negative; of that one
        /// itself, entries that it is behind its master.
        public var lag: Int64
        /// `same`, `ahead`, `different` or `unknown`.
        public var agreement: String
        public var isWhole: Bool
        public var hasVote: Bool
        /// What it says of itself; nil where it has said nothing yet.
        public var report: TrackerSelfReport?
    }

    public var id: UInt32
    /// `quorum`, `survivor` or `alone`.
    public var mode: String
    public var epoch: StatusReport.Epoch
    /// 0 while there is none.
    public var master: UInt32
    public var isServing: Bool
    public var isFenced: Bool
    public var voters: [UInt32]
    public var commitIndex: UInt64
    public var digest: String
    public var bus: Bus?
    public var messages: Messages?
    public var trackers: [Tracker]
    /// What is wrong, the cause of silence first; nil for a tracker of an earlier version.
    public var findings: [Finding]?

    public struct Finding: Sendable, Hashable, Decodable {
        public var code: String
        public var isSilence: Bool
        public var text: String
    }
}

/// What a tracker says of itself, to the others and to its console.
public struct TrackerSelfReport: Sendable, Hashable, Codable {
    public struct Latency: Sendable, Hashable, Codable {
        public var median: Double
        public var p99: Double
    }

    public var version: String
    public var host: String
    /// Where clients find it.
    public var clients: String
    /// Where its console listens; empty for nowhere.
    public var console: String
    /// Why it answers nobody; empty where it does.
    public var problem: String
    /// `disk` or `process`.
    public var durability: String
    /// `works`, `full`, `locked`, `readOnly` or `broken`.
    public var disk: String
    public var announcesPerSecond: Int
    public var answerSeconds: Latency
    public var commitSeconds: Latency
    public var writeSeconds: Latency
    public var roundTripSeconds: Latency
    public var openFiles: Int
    public var maxFiles: Int
    public var receiveBufferBytes: Int
    public var wantedReceiveBufferBytes: Int
    /// In the last five minutes.
    public var lostDatagrams: UInt64
    /// By how much its clock is ahead of that of the tracker that tells this.
    public var clockDifferenceSeconds: Double
}

public struct ConsoleClient: Sendable {
    public var host: String
    public var port: UInt16
    /// The console's bearer token, where it asks for one.
    public var token: String?
    public var timeout = Duration.seconds(5)

    /// An order may take as long as the tracker waits for what comes of it, and a little.
    private static let orderTimeout = Duration.seconds(20)

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
        let body = try await ask("GET", "/api/status", within: timeout)
        return (try decode(body, "the status of a tracker"), body)
    }

    /// Asks for the cluster as this tracker sees it.
    public func cluster() async throws(TrackerClientError) -> ClusterView {
        try decode(try await ask("GET", "/api/cluster", within: timeout), "a tracker's view of its cluster")
    }

    /// Changes who votes.
    ///
    /// - Returns: the ids that vote now.
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    public func changeMembers(adding added: UInt32?, removing removed: UInt32?) async throws(TrackerClientError)
        -> [UInt32]
    {
        struct Members: Decodable { var members: [UInt32] }
        let query = [added.map { "add=\($0)" }, removed.map { "remove=\($0)" }].compactMap { $0 }
        let body = try await ask(
            "POST", "/api/members?\(query.joined(separator: "&"))", within: ConsoleClient.orderTimeout)
        let answer: Members = try decode(body, "the members of a cluster")
        return answer.members
    }

    /// Makes another tracker master.
    ///
    /// - Returns: whether it was master already.
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    @discardableResult
    public func handOver(to id: UInt32) async throws(TrackerClientError) -> Bool {
        struct Outcome: Decodable { var wasMaster: Bool? }
        let body = try await ask("POST", "/api/handover?to=\(id)", within: ConsoleClient.orderTimeout)
        let outcome: Outcome = try decode(body, "what came of a handover")
        return outcome.wasMaster == true
    }

    /// Stops all trackers of the cluster.
    ///
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    public func stopCluster() async throws(TrackerClientError) {
        _ = try await ask("POST", "/api/stop", within: ConsoleClient.orderTimeout)
    }

    private func decode<Value: Decodable>(_ body: [UInt8], _ what: String) throws(TrackerClientError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(body))
        } catch {
            throw .malformed("it is not \(what)")
        }
    }

    private func ask(
        _ method: String, _ target: String, within span: Duration
    ) async throws(TrackerClientError) -> [UInt8] {
        let answer = try await onOwnThread { [self] () throws(TrackerClientError) in
            var headers = [("Accept", "application/json")]
            if let token { headers.append(("Authorization", "Bearer \(token)")) }
            // Never redirected: the token is for this host.
            return try HTTPGet(
                host: host, port: port, target: target, headers: headers, deadline: Clock.monotonic() + span,
                method: method
            ).run()
        }
        guard answer.status == 200 else {
            struct Words: Decodable { var error: String }
            if let words = try? JSONDecoder().decode(Words.self, from: Data(answer.body)) {
                throw .refused(shownText(words.error.utf8))
            }
            throw .status(answer.status, reason: answer.reason)
        }
        return answer.body
    }
}
