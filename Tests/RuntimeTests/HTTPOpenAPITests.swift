import Foundation
import Primitives
import Testing
import TrackerLogic
import Web
import Wire

/// The description of the API against what it really answers.
@Suite("HTTP: the API's description")
struct HTTPOpenAPITests {
    /// Does whatever is wanted.
    ///
    /// Nobody has an account, for none can be made from here: system tests have some.
    private struct Providers: StatusProvider, SwarmProvider, FaultProvider, NodeSwitch, AccountProvider,
        TorrentFileProvider, SettingsProvider
    {
        private let row = SwarmRow(
            infoHash: InfoHash(.zero), counts: SwarmCounts(),
            registered: RegisteredTorrent(infoHash: InfoHash(.zero), name: "x", byteCount: 1))

        func status() async -> NodeStatus? { MetricsNodeTests.status() }

        func swarms(_ query: SwarmQuery) async -> SwarmsPage? {
            SwarmsPage(rows: [row], next: .init(infoHash: row.infoHash), total: 2, asOf: WallTime(milliseconds: 0))
        }

        func swarm(_ infoHash: InfoHash) async -> Sought<(row: SwarmRow, asOf: WallTime)>? {
            .found((row, WallTime(milliseconds: 0)))
        }

        func peers(of infoHash: InfoHash, _ query: PeerQuery) async -> Sought<PeersPage>? {
            let id = PeerID(Bytes20(Array("-qB4520-abcdefghijkl".utf8))!)
            let peer = PeerImage(
                address: loopback, peerID: id, downloaded: 1, left: 2, lastSeen: 3, isCounted: false)
            let next = PeerQuery.Cursor(number: 0, address: loopback)
            return .found(PeersPage(peers: [peer], next: next, total: 2, asOf: WallTime(milliseconds: 0)))
        }

        let faults = [
            InjectedFault(
                target: .tracker(2), since: WallTime(milliseconds: 0), until: WallTime(milliseconds: 1),
                remaining: .milliseconds(1))
        ]
        func cut(_ target: FaultTarget, for span: Duration) -> Bool { true }
        func mend(_ target: FaultTarget?) -> Bool { true }
        func stopNode(name: String?) async -> NodeSwitchOutcome { .done }
        func startNode() async -> NodeSwitchOutcome { .done }

        let settings: SettingsInForce = {
            var setting = SettingsInForce.Setting(
                key: "id", value: "1", source: .flag, flag: "id", about: "Its number.")
            (setting.typed, setting.kept, setting.keptOverriddenBy) = ("1", "2", .flag)
            return SettingsInForce(
                name: "still", settings: [setting],
                profile: .init(name: "paxos", promises: "Much.", givesUp: "Little."))
        }()
        func change(
            _ wanted: [String: SettingValue], keeps: Bool, expected: Wire.Expectation
        ) async -> SettingsOutcome {
            wanted["moon"] == nil ? .done(settings) : .invalid([SettingProblem(key: "moon", message: "None.")])
        }
        func forget(expected: Wire.Expectation) async -> SettingsOutcome { .done(settings) }

        func accounts() async -> Accounts? { Accounts(secret: 1, keepsMergeData: false) }
        func isAbreast() async -> Bool { true }
        func change(_ change: ConsoleChange) async -> ChangeOutcome { .done(at: 5) }

        let maxByteCount = 1000
        private let file = UploadedTorrent(
            infoHash: InfoHash(.zero), name: "x", byteCount: 1, pieceByteCount: 16_384, fileByteCount: 3,
            files: [.init(path: "x/y", byteCount: 1)], fileCount: 1, magnet: "magnet:?xt=urn:btih:0", origin: .file,
            changedAt: 4)

        func upload(_ bytes: [UInt8], expected: Wire.Expectation) async -> UploadOutcome { .done(file, isNew: true) }
        func torrent(_ infoHash: InfoHash) async -> UploadedTorrent? { file }
        func bytes(of infoHash: InfoHash) async -> (parts: [[UInt8]], changedAt: UInt64)? { ([[1, 2], [3]], 4) }
        func remove(_ infoHash: InfoHash, expected: Wire.Expectation) async -> ChangeOutcome { .done(at: 5) }
        func reasonWithoutFile(_ infoHash: InfoHash) async -> String { "It is too long." }
        func magnet(_ infoHash: InfoHash, name: String) async -> String { file.magnet }
    }

    private struct Recordings: RecordingProvider {
        var figures: RecordingFigures {
            RecordingFigures(
                isOn: true, seconds: 4, byteCount: 5, imageByteCount: 6, isTooLarge: true, slowestImage: 0.7)
        }
        func copy() async -> RecordingCopy { .done("/r") }
    }

    private static let parts: ConsoleParts = {
        let log = TransitionLog(incarnation: 1)
        let history = History()
        history.append(
            HistorySample(
                MetricsNodeTests.status(), StillCluster.report.status, own: StillCluster.own,
                at: WallTime(milliseconds: 0)))
        var parts = ConsoleParts()
        parts.events = (log, history)
        parts.swarms = Providers()
        parts.faults = Providers()
        parts.node = Providers()
        parts.accounts = Providers()
        parts.files = Providers()
        parts.settings = Providers()
        parts.recordings = Recordings()
        return parts
    }()

    func withServer<Value: Sendable>(
        token: String? = nil, limits: HTTPLimits = APIServer.Options().limits,
        with change: (inout ConsoleParts) -> Void = { _ in },
        _ body: @Sendable (SocketAddress) async throws -> Value
    ) async throws -> Value {
        var server = APIServer(status: Providers(), cluster: StillCluster(), tally: HTTPTally()) {
            ProcessFacts(
                version: "1", processID: 1, startedAt: WallTime(milliseconds: 0), listeners: [.init(.udp, loopback)],
                advertised: "udp://tracker.example:6969/announce")
        }
        server.parts = Self.parts
        change(&server.parts)
        var options = APIServer.Options()
        (options.token, options.logger, options.limits) = (token, quiet, limits)
        let service = try await server.listen(on: loopback, options)
        return try await running([service]) { try await body(service.address) }.value
    }

    private static let logIn = "{\"name\":\"anna\",\"password\":\"wrong\"}"
    private static let account = "{\"role\":\"admin\",\"password\":\"long enough\"}"
    private static let torrentKind = "Content-Type: application/x-bittorrent"

    @Test
    func `the description that is served is openapi.yaml, to the byte`() async throws {
        let response = try await withServer { try await fetch("/api/v1/openapi.yaml", from: $0) }
        #expect(response["content-type"] == "application/yaml; charset=utf-8")
        for path in ["Sources/Web/openapi.yaml", "docs/openapi.yaml"] {
            let file = URL(filePath: #filePath).appending(path: "../../../\(path)").standardizedFileURL
            #expect(try String(contentsOf: file, encoding: .utf8) == response.text, "\(path)")
        }
    }

    @Test
    func `every key of an answer is described, and every key described is there`() async throws {
        let yaml = try await withServer { try await fetch("/api/v1/openapi.yaml", from: $0).text }
        let schemas = Outline(yaml)["components", "schemas"]
        func check(_ value: Any, _ schema: String) throws {
            guard let object = value as? [String: Any] else {
                for element in try #require(value as? [Any]) { try check(element, schema) }
                return
            }
            let properties = schemas[schema, "properties"]
            var described = Set(properties.keys)
            // Where there is a file, there is no reason why there is none.
            if object["hasFile"] as? Bool == true { described.remove("whyNoFile") }
            #expect(Set(object.keys) == described, "\(schema)")
            // Lists of numbers need no further description.
            for (key, inner) in object where inner is [String: Any] || inner is [[String: Any]] {
                let reference = properties[key].text.split(separator: "/").last?.prefix { $0 != "\"" }
                try check(inner, String(try #require(reference)))
            }
        }
        let hash = String(repeating: "0", count: 40)
        let answers = [
            ("GET", "/api/v1", "", "Resources"), ("GET", "/api/v1/status", "", "Status"),
            ("GET", "/api/v1/cluster", "", "Cluster"), ("GET", "/api/v1/trackers", "", "Trackers"),
            ("GET", "/api/v1/state", "", "State"), ("GET", "/api/v1/history", "", "History"),
            ("GET", "/api/v1/swarms", "", "Swarms"), ("GET", "/api/v1/swarms/\(hash)/peers", "", "Peers"),
            ("GET", "/api/v1/torrents", "", "Torrents"), ("GET", "/api/v1/settings", "", "Settings"),
            ("PUT", "/api/v1/settings", "{\"settings\":{}}", "Settings"),
            ("PUT", "/api/v1/settings", "{\"settings\":{\"moon\":1}}", "SettingProblems"),
            ("DELETE", "/api/v1/settings", "", "Settings"),
            ("GET", "/api/v1/faults", "", "Faults"), ("DELETE", "/api/v1/faults/tracker-2", "", "Faults"),
            ("POST", "/api/v1/torrents", "x", "TorrentNow"),
            ("GET", "/api/v1/torrents/\(hash)", "", "TorrentNow"),
            ("DELETE", "/api/v1/torrents/\(hash)", "", "Done"),
            ("POST", "/api/v1/sessions", Self.logIn, "Error"), ("GET", "/api/v1/sessions", "", "Sessions"),
            ("DELETE", "/api/v1/sessions/current", "", "Done"),
            ("GET", "/api/v1/users", "", "Users"), ("PUT", "/api/v1/users/anna", Self.account, "User"),
            ("POST", "/api/v1/node/stop", "{}", "NodeSwitch"), ("POST", "/api/v1/node/start", "{}", "NodeSwitch"),
            ("POST", "/api/v1/cluster/members", "{\"add\":4}", "Members"),
            ("POST", "/api/v1/cluster/handover", "{\"to\":2}", "Handover"),
            ("POST", "/api/v1/cluster/handover", "{\"to\":9}", "Error"),
            ("POST", "/api/v1/cluster/election", "{}", "Election"),
            ("POST", "/api/v1/cluster/stop", "{\"name\":\"still\"}", "Stop"),
        ]
        for (method, target, order, schema) in answers {
            // Who reads the state is told in it, but for those on this machine: so somebody comes with a token.
            let token = "0123456789abcdef"
            var headers = ["Authorization: Bearer \(token)"]
            if target == "/api/v1/torrents", method == "POST" { headers.append(Self.torrentKind) }
            let sent = headers
            let body = try await withServer(token: token) {
                try await fetch(
                    target, from: $0, headers: sent, method: method, body: order.isEmpty ? nil : order
                ).body
            }
            try check(try JSONSerialization.jsonObject(with: Data(body)), schema)
        }
    }

    @Test
    func `every path described is there, and needs what it is said to need`() async throws {
        try await withServer { address in
            let yaml = try await fetch("/api/v1/openapi.yaml", from: address).text
            let paths = Outline(yaml)["paths"]
            let orders = [
                "/api/v1/cluster/members": "{\"remove\":3}", "/api/v1/cluster/handover": "{\"to\":2}",
                "/api/v1/cluster/election": "{}", "/api/v1/cluster/stop": "{\"name\":\"still\"}",
                "/api/v1/node/stop": "{}", "/api/v1/node/start": "{}",
                "/api/v1/faults": "{\"from\":\"both\",\"seconds\":1}", "/api/v1/torrents": "x",
                "/api/v1/sessions": Self.logIn, "/api/v1/sessions/tokens": "{\"label\":\"x\"}",
                "/api/v1/users/{name}": Self.account, "/api/v1/settings": "{\"settings\":{}}",
            ]
            // All else is answered with 200. Nobody has an account, so nobody can log in, or make a token.
            let statuses = [
                "POST /api/v1/faults": 201, "POST /api/v1/recording": 201, "POST /api/v1/torrents": 201,
                "PUT /api/v1/users/{name}": 201,
                "POST /api/v1/sessions": 401, "POST /api/v1/sessions/tokens": 409, "DELETE /api/v1/users/{name}": 404,
                "GET /api/v1/users/{name}/passkey": 404, "PUT /api/v1/users/{name}/passkey": 404,
                "DELETE /api/v1/users/{name}/passkey": 404,
                "GET /api/v1/users/{name}/sessions": 404, "DELETE /api/v1/users/{name}/sessions/{id}": 404,
            ]
            let names = [
                "{hash}": String(repeating: "0", count: 40), "{id}": "bus", "{file}": "style.css", "{name}": "anna",
            ]
            // A stream has no end; `EventStreamTests` reads it.
            for path in paths.keys where path != "/api/v1/events" {
                let target = names.reduce(path) { $0.replacing($1.key, with: $1.value) }
                for method in paths[path].keys.map({ $0.uppercased() }) {
                    let body = ["POST", "PUT"].contains(method) ? orders[path] : nil
                    let isUpload = path == "/api/v1/torrents" && method == "POST"
                    let response = try await fetch(
                        target, from: address, headers: isUpload ? [Self.torrentKind] : [], method: method, body: body)
                    #expect(response.status == statuses["\(method) \(path)"] ?? 200, "\(method) \(path)")
                    let described = paths[path, method.lowercased(), "responses", "\"\(response.status)\""]
                    #expect(described.text != "", "\(path)")
                    let stranger = try await fetch(
                        target, from: address, headers: ["Host: evil.example"], method: method)
                    let isOpen = paths[path, method.lowercased()].keys.contains("security")
                    // A log-in without a name is none, wherever it comes from.
                    #expect(stranger.status == (isOpen ? (method == "GET" ? 200 : 400) : 403), "\(method) \(path)")
                }
            }
        }
    }
}

/// As much of YAML as the description uses: keys, nested by indentation.
private struct Outline {
    let lines: [Substring]

    init(_ text: String) { lines = text.split(separator: "\n") }

    private init(lines: [Substring]) { self.lines = lines }

    private func indentation(_ line: Substring) -> Int { line.prefix { $0 == " " }.count }

    var text: String { lines.joined(separator: "\n") }

    /// Of the outermost level.
    var keys: [String] {
        guard let level = lines.first.map(indentation) else { return [] }
        return lines.filter { indentation($0) == level && $0.contains(":") }
            .map { String($0.drop { $0 == " " }.prefix { $0 != ":" }) }
    }

    subscript(path: String...) -> Outline {
        path.reduce(self) { outline, key in
            guard let level = outline.lines.first.map(indentation),
                let start = outline.lines.firstIndex(where: {
                    indentation($0) == level && $0.drop { $0 == " " }.hasPrefix("\(key):")
                })
            else { return Outline(lines: []) }
            let inner = outline.lines[(start + 1)...].prefix { indentation($0) > level }
            return Outline(lines: Array(inner))
        }
    }
}
