// Asking a running tracker's console, as `tracker status` does, and giving its cluster orders.

import Datagrams
import Foundation
import Primitives

/// A tracker's status, as `GET /api/v1/status` tells it (docs/openapi.yaml).
public struct StatusReport: Sendable, Hashable, Decodable {
    /// An address at which the tracker listens.
    public struct Listener: Sendable, Hashable, Decodable {
        /// `udp`, `http` or `api`.
        public var service: String
        /// With its port.
        public var address: String
    }

    /// The term of one master.
    public struct Epoch: Sendable, Hashable, Decodable {
        /// Counts up with each election.
        public var round: UInt64
        /// The id of the tracker that stood for it.
        public var id: UInt32
    }

    /// Totals since the process started; they only grow (`TrackerLogic.Counters`).
    public struct Counters: Sendable, Hashable, Decodable {
        /// BEP 15's connect requests that were answered.
        public var connects: UInt64
        /// Announces that were granted or refused.
        public var announces: UInt64
        /// Scrapes that were granted or refused.
        public var scrapes: UInt64
        /// Error replies that were sent.
        public var errors: UInt64
        /// Error replies that the limit for each address withheld.
        public var errorsWithheld: UInt64
        /// Datagrams that got silence: junk or forged.
        public var ignored: UInt64
        /// Requests dropped because too many were waiting.
        public var dropped: UInt64
        /// Requests given up because nobody could answer in time.
        public var timedOut: UInt64
        /// Peers that fell silent and were taken out.
        public var expired: UInt64
        /// Downloads completed.
        public var completed: UInt64
    }

    /// What the tracker's logic tells about itself (`NodeStatus`).
    public struct Node: Sendable, Hashable, Decodable {
        /// The tracker's number; 0 where it has none yet.
        public var id: UInt32
        /// `restoring`, `newcomer`, `slave`, `candidate`, `master`, `draining`, `failed` or `stopped`.
        public var role: String
        /// The highest that it has promised or stood for.
        public var epoch: Epoch
        /// The last entry that was decided and applied.
        public var commitIndex: UInt64
        /// The last entry of the log.
        public var lastIndex: UInt64
        /// The state's fingerprint: hexadecimal, equal on trackers that hold the same at the same index.
        public var digest: String
        /// `open`, `allow`, `deny` or `private`.
        public var accessMode: String
        /// Torrents with peers, or with a count of completed downloads.
        public var torrents: Int
        /// Peers of both families in all swarms.
        public var peers: Int
        /// Peers with an IPv4 address.
        public var peersIPv4: Int
        /// Peers with an IPv6 address.
        public var peersIPv6: Int
        /// Peers that have everything.
        public var seeders: Int
        /// Torrents that are known by name.
        public var registeredTorrents: Int
        /// The interval that clients are told now.
        public var intervalSeconds: Int
        /// Requests that wait for their entry.
        public var waitingRequests: Int
        /// Totals since the process started.
        public var counters: Counters
    }

    /// Of the program.
    public var version: String
    /// On the tracker's host.
    public var processID: Int
    /// When the process started, in the form of ISO 8601.
    public var startedAt: String
    /// Since then.
    public var uptimeSeconds: Double
    /// All addresses at which it listens.
    public var listeners: [Listener]
    /// Nil where its operator has not told it.
    public var advertised: String?
    /// What its logic tells.
    public var node: Node
    /// Nil for a tracker of an earlier version.
    public var cluster: ClusterView?
}

/// The cluster as one tracker sees it, as `GET /api/v1/cluster` tells it (docs/openapi.yaml).
public struct ClusterView: Sendable, Hashable, Decodable {
    /// The cluster's; nil for a tracker of an earlier version.
    public var name: String?
    /// How the bus to the other trackers fares (`BusStatus`); totals since the process started.
    public struct Bus: Sendable, Hashable, Decodable {
        /// Whether the bus works now.
        public var isConnected: Bool
        /// Where to, without a login.
        public var endpoint: String
        /// Of several brokers, the one in use; nil where there is none, and for a tracker that does not tell.
        public var broker: String?
        /// Messages handed to the network.
        public var sent: UInt64
        /// Authentic messages that came.
        public var received: UInt64
        /// Messages that were not sent, because too many waited.
        public var dropped: UInt64
        /// Frames with a bad MAC, of another cluster, malformed, or replayed.
        public var rejected: UInt64
        /// Lost datagrams that were asked for again, and came.
        public var repaired: UInt64
        /// How often the bus was found again after it had been lost.
        public var reconnections: UInt64
        /// Why it was last lost, or could not be reached; nil where it never was.
        public var lastProblem: String?
    }

    /// Cluster messages, counted by this tracker since its process started.
    public struct Messages: Sendable, Hashable, Decodable {
        /// For this tracker or for all.
        public var received: UInt64
        /// To one tracker or to all.
        public var sent: UInt64
        /// Of no use, though their frames were authentic.
        public var malformed: UInt64
        /// Of trackers that speak another version; nil for a tracker that does not count them.
        public var otherVersion: UInt64?
        /// Not sent, or not taken, for want of room.
        public var dropped: UInt64
    }

    /// One tracker as the one that was asked sees it (`TrackerSight`).
    public struct Tracker: Sendable, Hashable, Decodable {
        /// Its number; 0 where it has none yet.
        public var id: UInt32
        /// Of this life of it: hexadecimal.
        public var incarnation: String
        /// Whether it is the one that was asked.
        public var isThis: Bool
        /// `newcomer`, `slave`, `candidate`, `master` or `down`.
        public var role: String
        /// Of its last message.
        public var epoch: StatusReport.Epoch
        /// Since its last message; 0 for the one that was asked.
        public var silentSeconds: Double
        /// The last entry that it had applied when it last said so.
        public var commitIndex: UInt64
        /// Entries that it was behind the one that was asked when it last said where it is, never negative; of that one
        /// itself, entries that it is behind its master.
        public var lag: Int64
        /// `same`, `ahead`, `different` or `unknown`.
        public var agreement: String
        /// Whether it holds the whole state, as it says.
        public var isWhole: Bool
        /// Whether its OK counts.
        public var hasVote: Bool
        /// What it says of itself; nil where it has said nothing yet.
        public var report: TrackerSelfReport?
    }

    /// The number of the tracker that was asked.
    public var id: UInt32
    /// `quorum`, `survivor` or `alone`.
    public var mode: String
    /// The highest that it has promised.
    public var epoch: StatusReport.Epoch
    /// 0 while there is none.
    public var master: UInt32
    /// Whether it answers clients.
    public var isServing: Bool
    /// Whether it is cut off from the others, or has not been welcomed since.
    public var isFenced: Bool
    /// The ids that vote, as far as it knows.
    public var voters: [UInt32]
    /// The last entry that it has applied.
    public var commitIndex: UInt64
    /// The state's fingerprint there: hexadecimal.
    public var digest: String
    /// Nil for a tracker that is alone.
    public var bus: Bus?
    /// Nil for a tracker that is alone.
    public var messages: Messages?
    /// All that it has heard of and itself, by id.
    public var trackers: [Tracker]
    /// What is wrong, the cause of silence first; nil for a tracker of an earlier version.
    public var findings: [Finding]?

    /// Something that is wrong.
    public struct Finding: Sendable, Hashable, Decodable {
        /// For programs: the name of a `Finding.Code`.
        public var code: String
        /// Whether it is why nobody is answered there.
        public var isSilence: Bool
        /// For people: a sentence without its full stop.
        public var text: String
    }
}

/// What a tracker says of itself, to the others and to its console.
public struct TrackerSelfReport: Sendable, Hashable, Codable {
    /// How long something took lately, in seconds; zeros where there was none.
    public struct Latency: Sendable, Hashable, Codable {
        /// Half were faster.
        public var median: Double
        /// One of a hundred was slower.
        public var p99: Double
    }

    /// Of the program.
    public var version: String
    /// The name of the machine.
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
    /// Announces answered in a second.
    public var announcesPerSecond: Int
    /// From the request to its answer.
    public var answerSeconds: Latency
    /// From the proposal of an entry, or its coming, until it is known to be decided.
    public var commitSeconds: Latency
    /// From the order to write until it is durable.
    public var writeSeconds: Latency
    /// From there over the bus to another tracker and back.
    public var roundTripSeconds: Latency
    /// File descriptors that its process has open.
    public var openFiles: Int
    /// How many it may have open; 0 where that is not known.
    public var maxFiles: Int
    /// The smallest receive buffer of its UDP sockets, as the kernel grants it.
    public var receiveBufferBytes: Int
    /// Bytes of receive buffer that were asked for.
    public var wantedReceiveBufferBytes: Int
    /// In the last five minutes.
    public var lostDatagrams: UInt64
    /// By how much its clock is ahead of that of the tracker that tells this.
    public var clockDifferenceSeconds: Double
}

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
    private static let orderTimeout = Duration.seconds(20)
    /// A file of some megabytes has to come to a tracker, and from there to all.
    private static let uploadTimeout = Duration.seconds(90)

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

    /// Changes who votes.
    ///
    /// - Parameters:
    ///   - added: the id of a tracker that is to vote; nil for none.
    ///   - removed: the id of a voter that is to lose its vote; nil for none.
    /// - Returns: the ids that vote now.
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    public func changeMembers(adding added: UInt32?, removing removed: UInt32?) async throws(TrackerClientError)
        -> [UInt32]
    {
        struct Members: Decodable { var members: [UInt32] }
        struct Order: Encodable {
            var add: UInt32?
            var remove: UInt32?
        }
        let body = try await order("members", Order(add: added, remove: removed))
        let answer: Members = try decode(body, "the members of a cluster")
        return answer.members
    }

    /// Makes another tracker master.
    ///
    /// - Parameter id: the tracker that is to be master.
    /// - Returns: whether it was master already.
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    @discardableResult
    public func handOver(to id: UInt32) async throws(TrackerClientError) -> Bool {
        struct Outcome: Decodable { var wasMaster: Bool? }
        struct Order: Encodable { var to: UInt32 }
        let body = try await order("handover", Order(to: id))
        let outcome: Outcome = try decode(body, "what came of a handover")
        return outcome.wasMaster == true
    }

    /// Stops all trackers of the cluster.
    ///
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    public func stopCluster() async throws(TrackerClientError) {
        struct Order: Encodable { var name: String }
        // The API wants the name, so that nobody stops a cluster by a slip of the hand; this is no slip.
        _ = try await order("stop", Order(name: try await cluster().name ?? ""))
    }

    /// Has a cluster elect a master anew.
    ///
    /// - Returns: the tracker that was master, and may be elected again.
    /// - Throws: `.refused` with the reason of the master, to which any tracker hands the order.
    public func elect() async throws(TrackerClientError) -> UInt32 {
        struct Outcome: Decodable { var formerMaster: UInt32 }
        struct Order: Encodable {}
        let outcome: Outcome = try decode(try await order("election", Order()), "what came of an election")
        return outcome.formerMaster
    }

    // MARK: - Torrents

    /// A torrent that a cluster has taken in.
    public struct Published: Sendable, Hashable {
        /// As the console says it: 40 hexadecimal digits.
        public var infoHash: String
        /// For people.
        public var name: String
        /// With the trackers of the cluster and of the torrent.
        public var magnet: String
        /// Whether the file was not there before.
        public var isNew: Bool

        /// Those of the cluster, as far as they tell theirs, and behind them the torrent's own.
        public var trackers: [String] {
            (URLComponents(string: magnet)?.queryItems ?? []).filter { $0.name == "tr" }.compactMap(\.value)
        }
    }

    /// Gives a .torrent file to a cluster, which registers it by that.
    ///
    /// - Parameters:
    ///   - file: its bytes.
    ///   - mustBeNew: whether it is an error that it is there already.
    /// - Returns: what the cluster calls it.
    /// - Throws: `.refused` with the console's words, and a way out where there is one.
    public func publish(_ file: [UInt8], mustBeNew: Bool = false) async throws(TrackerClientError) -> Published {
        struct Answer: Decodable {
            var infoHash: String
            var name: String
            var magnet: String
        }
        var headers = [("Content-Type", "application/x-bittorrent")]
        if mustBeNew { headers.append(("If-None-Match", "*")) }
        let reply = try await reply(
            "POST", "/api/v1/torrents", body: file, headers: headers, within: ConsoleClient.uploadTimeout)
        if let advice = Self.advice(reply.status) {
            throw .refused((Self.words(reply) ?? "\(reply.status) \(reply.reason)") + "; " + advice)
        }
        let answer: Answer = try decode(try Self.body(of: reply), "a torrent that was taken in")
        return Published(
            infoHash: shownText(answer.infoHash.utf8), name: shownText(answer.name.utf8), magnet: answer.magnet,
            isNew: reply.status == 201)
    }

    /// What to do about an upload that was refused.
    private static func advice(_ status: Int) -> String? {
        switch status {
        case 401: "give the console's token with --token-file"
        case 403: "publishing needs the role uploader"
        case 412: "without --new that is no error"
        case 413: "make it smaller with larger pieces (torrent create --piece-length)"
        case 429: "try again in a minute"
        default: nil
        }
    }

    // MARK: - Accounts

    /// An account of the console.
    public struct Account: Sendable, Hashable, Codable {
        /// Its name.
        public var name: String
        /// `viewer`, `uploader`, `operator` or `admin`.
        public var role: String
        /// `file` or `console`.
        public var origin: String
        /// Whether it lets clients announce on a private tracker.
        public var hasPasskey: Bool
    }

    /// The passkey of an account.
    public struct Passkey: Sendable, Hashable, Codable {
        /// Of the account.
        public var name: String
        /// Nil where it has none now.
        public var passkey: String?
        /// Announce URLs with the passkey, as far as the trackers tell theirs.
        public var announce: [String]
    }

    /// All accounts.
    public func users() async throws(TrackerClientError) -> [Account] {
        struct Answer: Decodable { var users: [Account] }
        let answer: Answer = try decode(
            try await ask("GET", "/api/v1/users", within: ConsoleClient.orderTimeout), "the accounts of a console")
        return answer.users
    }

    /// Makes an account, or changes it.
    ///
    /// - Parameters:
    ///   - name: of letters, digits and a few signs.
    ///   - role: nil to leave it.
    ///   - password: a new one.
    ///   - mustBeNew: whether it is an error that there is one of this name.
    /// - Throws: `.refused` with the console's words, for example where the name is taken.
    public func putUser(
        _ name: String, role: String?, password: String, mustBeNew: Bool
    ) async throws(TrackerClientError) {
        struct Order: Encodable {
            var role: String?
            var password: String
        }
        guard let body = try? JSONEncoder().encode(Order(role: role, password: password)) else {
            preconditionFailure("an order is numbers and text, which JSON can say")
        }
        let headers = mustBeNew ? [("If-None-Match", "*")] : []
        _ = try await ask(
            "PUT", "/api/v1/users/\(Self.escaped(name))", body: Array(body), headers: headers,
            within: ConsoleClient.orderTimeout)
    }

    /// Removes an account.
    public func removeUser(_ name: String) async throws(TrackerClientError) {
        _ = try await ask(
            "DELETE", "/api/v1/users/\(Self.escaped(name))", within: ConsoleClient.orderTimeout)
    }

    /// Gives an account a new passkey, in the place of the one that it may have, or takes it away.
    ///
    /// - Returns: the new one.
    /// - Throws: `.refused` with the console's words.
    public func setPasskey(of name: String, isRemoved: Bool) async throws(TrackerClientError) -> Passkey {
        try decode(
            try await ask(
                isRemoved ? "DELETE" : "PUT", "/api/v1/users/\(Self.escaped(name))/passkey",
                within: ConsoleClient.orderTimeout), "a passkey")
    }

    private static func escaped(_ name: String) -> String {
        name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
    }

    private func order(_ name: String, _ order: some Encodable) async throws(TrackerClientError) -> [UInt8] {
        guard let body = try? JSONEncoder().encode(order) else {
            preconditionFailure("an order is numbers and text, which JSON can say")
        }
        return try await ask(
            "POST", "/api/v1/cluster/\(name)", body: Array(body), within: ConsoleClient.orderTimeout)
    }

    private func decode<Value: Decodable>(_ body: [UInt8], _ what: String) throws(TrackerClientError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(body))
        } catch {
            throw .malformed("it is not \(what)")
        }
    }

    private func ask(
        _ method: String, _ target: String, body: [UInt8] = [], headers extra: [(String, String)] = [],
        within span: Duration
    ) async throws(TrackerClientError) -> [UInt8] {
        try Self.body(of: await reply(method, target, body: body, headers: extra, within: span))
    }

    private func reply(
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
    private static func words(_ answer: HTTPGet.Answer) -> String? {
        struct Words: Decodable { var error: String }
        return (try? JSONDecoder().decode(Words.self, from: Data(answer.body))).map { shownText($0.error.utf8) }
    }

    private static func body(of answer: HTTPGet.Answer) throws(TrackerClientError) -> [UInt8] {
        guard answer.status == 200 || answer.status == 201 else {
            if let words = words(answer) { throw .refused(words) }
            throw .status(answer.status, reason: answer.reason)
        }
        return answer.body
    }
}
