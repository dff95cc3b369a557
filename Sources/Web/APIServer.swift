// The console's server.

import Bus
import Foundation
import HTTPTypes
import Logging
import Primitives
import TrackerLogic

/// The console's server: the state of this tracker and its cluster as JSON and as metrics, and the orders that a
/// cluster takes.
///
/// | path | answer |
/// |---|---|
/// | `/api/status` | `StatusDocument` |
/// | `/api/cluster` | `ClusterDocument` |
/// | POST `/api/members?add=&remove=` | `MembersDocument` |
/// | POST `/api/handover?to=` | `HandoverDocument` |
/// | POST `/api/stop` | `StopDocument` |
/// | `/api/torrents?search=&offset=&count=` | `TorrentsDocument` |
/// | `/api/openapi.yaml` | what all this means |
/// | `/metrics` | Prometheus |
/// | `/healthz` | 200 while this tracker can answer announces, else 503; never needs a token |
public struct APIServer: Sendable {
    /// Who may ask, and how much.
    public struct Options: Sendable {
        /// Whoever knows it may ask; without one, only those on this machine may.
        public var token: String?
        /// Narrower than the tracker's: people and monitors ask, not swarms.
        public var limits = HTTPLimits()
        /// For what goes wrong with the listener.
        public var logger = Logger(label: "swarmkeeper.api")

        /// No token, and limits for a few clients.
        public init() {
            // People and monitors, not swarms.
            limits.connections = 256
            limits.connectionsPerAddress = 128
            limits.answer = .seconds(5)
        }
    }

    private let status: any StatusProvider
    let cluster: any ClusterProvider
    private let torrents: (any TorrentProvider)?
    private let tally: HTTPTally
    private let facts: @Sendable () -> ProcessFacts
    let patience: BoundedWait

    /// A responder for the console's listener.
    ///
    /// - Parameters:
    ///   - status: tells how the node fares.
    ///   - cluster: tells of the cluster, and takes orders to it.
    ///   - torrents: nil where there is no registry to be read; `/api/torrents` is not there then.
    ///   - tally: what the HTTP listeners count.
    ///   - limits: how long, and how many, requests may wait for the node.
    ///   - facts: asked for at each request, for the listeners are known only when all of them are open.
    public init(
        status: any StatusProvider, cluster: any ClusterProvider, torrents: (any TorrentProvider)?,
        tally: HTTPTally, limits: HTTPLimits = Options().limits, facts: @escaping @Sendable () -> ProcessFacts
    ) {
        self.status = status
        self.cluster = cluster
        self.torrents = torrents
        self.tally = tally
        self.facts = facts
        patience = BoundedWait(limits)
    }

    /// Opens the listener.
    ///
    /// - Throws: `ListenFailure`; also where others could reach the address and there is no token.
    public func listen(on address: SocketAddress, _ options: Options) async throws(ListenFailure) -> HTTPService {
        let purpose = "the API"
        guard address.isLoopback || options.token != nil else {
            throw ListenFailure(purpose: purpose, address: address, cause: .tokenMissing)
        }
        var service = HTTPService.Options(name: "api", purpose: purpose)
        service.limits = options.limits
        service.logger = options.logger
        service.tally = tally
        return try await HTTPService.listen(on: address, service, responder: responder(token: options.token))
    }

    /// The description of the API: `openapi.yaml` beside this file, which the build puts into the program.
    private static let description = String(decoding: PackageResources.openapi_yaml, as: UTF8.self)

    /// What answers, without a listener.
    public func responder(token: String?) -> some Responder {
        var routes: [APIRoute] = [
            .get("/healthz") { _ in await health() },
            .get("/metrics") { _ in await metricsPage() },
            .get("/api/status") { _ in try await statusPage() },
            .get("/api/cluster") { _ in try await clusterPage() },
            .post("/api/members") { request in try await changeMembers(request) },
            .post("/api/stop") { _ in try await stopCluster() },
            .post("/api/handover") { request in try await handOver(request) },
            .get("/api/openapi.yaml") { _ in
                .text(Self.description, type: "application/yaml; charset=utf-8")
            },
        ]
        if let torrents {
            routes.append(.get("/api/torrents") { request in try await torrentsPage(torrents, request) })
        }
        return APIResponder(routes: routes, door: APIGuard(token: token))
    }

    private func nodeStatus() async -> NodeStatus? {
        let outcome = await patience.wait { [status] in await status.status() }
        guard case .finished(let status) = outcome else { return nil }
        return status
    }

    private func health() async -> Response {
        guard let status = await nodeStatus() else {
            return .text("the tracker's logic does not answer\n", status: .serviceUnavailable)
        }
        // A slave that misses its master is one still, and yet answers nobody.
        let report = await clusterReport()
        // Nor is one well whose announces nobody can store, though it answers scrapes. Whoever asks needs no token, so
        // no addresses.
        let problem = report.flatMap { Finding.problem($0.findings) }
        let isHealthy = report?.status.isServing == true && answersClients(status.role) && problem == nil
        if isHealthy { return .text("\(status.role.rawValue)\n") }
        let reason = problem.map { "\($0)\n" } ?? ""
        return .text("\(status.role.rawValue)\n\(reason)", status: .serviceUnavailable)
    }

    private func answersClients(_ role: Role) -> Bool {
        switch role {
        case .master, .slave: true
        case .restoring, .newcomer, .candidate, .draining, .failed, .stopped: false
        }
    }

    private func metricsPage() async -> Response {
        var text = PrometheusText()
        NodeMetrics.write(await nodeStatus(), into: &text)
        if let report = await clusterReport() {
            ClusterMetrics.write(report, into: &text)
            report.figures.write(into: &text)
        }
        text.family("swarmkeeper_build_info", .gauge, help: "1, with the version as a label.")
        text.sample("swarmkeeper_build_info", PrometheusLabels([("version", facts().version)]), 1)
        tally.write(into: &text)
        ProcessMetrics.read()?.write(into: &text)
        return .text(text.text, type: PrometheusText.contentType)
    }

    private func statusPage() async throws -> Response {
        guard let status = await nodeStatus(), let cluster = await clusterReport() else {
            throw APIError(.serviceUnavailable, "the tracker's logic does not answer")
        }
        let now = WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
        return try .json(StatusDocument(status, cluster, facts(), now: now))
    }

    private func torrentsPage(_ torrents: any TorrentProvider, _ request: Request) async throws -> Response {
        func number(_ name: String, in range: ClosedRange<Int>, default standard: Int) throws -> Int {
            guard let text = request.parameter(name) else { return standard }
            guard let value = Int(text), range.contains(value) else {
                let words = "\(name) has to be a number from \(range.lowerBound) to \(range.upperBound)"
                throw APIError(.badRequest, words)
            }
            return value
        }
        let offset = try number("offset", in: 0...1_000_000_000, default: 0)
        let count = try number("count", in: 1...TorrentsPage.maxCount, default: TorrentsPage.defaultCount)
        let search = request.parameter("search").flatMap { $0.isEmpty ? nil : $0 }
        guard (search?.utf8.count ?? 0) <= TorrentsPage.maxTextByteCount else {
            throw APIError(.badRequest, "search may have \(TorrentsPage.maxTextByteCount) bytes")
        }
        let outcome = await patience.wait {
            try await torrents.torrents(matching: search, offset: offset, count: count)
        }
        switch outcome {
        case .finished(let page): return try .json(TorrentsDocument(page, offset: offset))
        case .failed(let error): throw error
        case .late, .busy, .stopping:
            throw APIError(.serviceUnavailable, "the registry does not answer, try again later")
        }
    }
}

extension Response {
    static func json(_ document: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(document), as: UTF8.self)
        return .text(text + "\n", status: status, type: "application/json; charset=utf-8")
    }
}
