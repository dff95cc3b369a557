import Foundation
import Primitives
import Testing
import TrackerLogic
import Web
import Wire

/// The description of the API against what it really answers.
@Suite("HTTP: the API's description")
struct HTTPOpenAPITests {
    private struct Providers: StatusProvider, TorrentProvider {
        func status() async -> NodeStatus? { MetricsNodeTests.status() }

        func torrents(matching text: String?, offset: Int, count: Int) async throws -> TorrentsPage {
            let torrent = RegisteredTorrent(infoHash: InfoHash(.zero), name: "x", byteCount: 1)
            return TorrentsPage(torrents: [.init(registered: torrent, counts: SwarmCounts())], total: 1)
        }
    }

    func withServer<Value: Sendable>(
        _ body: @Sendable (SocketAddress) async throws -> Value
    ) async throws -> Value {
        let server = APIServer(
            status: Providers(), cluster: StillCluster(), torrents: Providers(), tally: HTTPTally()
        ) {
            ProcessFacts(
                version: "1", processID: 1, startedAt: WallTime(milliseconds: 0), listeners: [.init(.udp, loopback)],
                advertised: "udp://tracker.example:6969/announce")
        }
        var options = APIServer.Options()
        options.logger = quiet
        let service = try await server.listen(on: loopback, options)
        return try await running([service]) { try await body(service.address) }.value
    }

    @Test
    func `the description that is served is openapi.yaml, to the byte`() async throws {
        let response = try await withServer { try await fetch("/api/openapi.yaml", from: $0) }
        #expect(response["content-type"] == "application/yaml; charset=utf-8")
        for path in ["Sources/Web/openapi.yaml", "docs/openapi.yaml"] {
            let file = URL(filePath: #filePath).appending(path: "../../../\(path)").standardizedFileURL
            #expect(try String(contentsOf: file, encoding: .utf8) == response.text, "\(path)")
        }
    }

    @Test
    func `every key of an answer is described, and every key described is there`() async throws {
        let yaml = try await withServer { try await fetch("/api/openapi.yaml", from: $0).text }
        let schemas = Outline(yaml)["components", "schemas"]
        func check(_ value: Any, _ schema: String) throws {
            guard let object = value as? [String: Any] else {
                for element in try #require(value as? [Any]) { try check(element, schema) }
                return
            }
            let properties = schemas[schema, "properties"]
            #expect(Set(object.keys) == Set(properties.keys), "\(schema)")
            // Lists of numbers need no further description.
            for (key, inner) in object where inner is [String: Any] || inner is [[String: Any]] {
                let reference = properties[key].text.split(separator: "/").last?.prefix { $0 != "\"" }
                try check(inner, String(try #require(reference)))
            }
        }
        let answers = [
            ("GET", "/api/status", "Status"), ("GET", "/api/cluster", "Cluster"), ("GET", "/api/torrents", "Torrents"),
            ("POST", "/api/members?add=4", "Members"), ("POST", "/api/handover?to=2", "Handover"),
            ("POST", "/api/handover?to=9", "Error"), ("POST", "/api/stop", "Stop"),
        ]
        for (method, target, schema) in answers {
            let body = try await withServer { try await fetch(target, from: $0, method: method).body }
            try check(try JSONSerialization.jsonObject(with: Data(body)), schema)
        }
    }

    @Test
    func `every path described is there, and needs what it is said to need`() async throws {
        try await withServer { address in
            let yaml = try await fetch("/api/openapi.yaml", from: address).text
            let paths = Outline(yaml)["paths"]
            #expect(Set(paths.keys).count == 9)
            for path in paths.keys {
                let method = paths[path].keys == ["post"] ? "POST" : "GET"
                let example = ["/api/members": "?remove=3", "/api/handover": "?to=2"][path] ?? ""
                let response = try await fetch(path + example, from: address, method: method)
                #expect(response.status == 200, "\(path)")
                #expect(paths[path, method.lowercased(), "responses", "\"200\""].text != "", "\(path)")
                let stranger = try await fetch(path, from: address, headers: ["Host: evil.example"], method: method)
                let isOpen = paths[path, "get"].keys.contains("security")
                #expect(stranger.status == (isOpen ? 200 : 403), "\(path)")
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
