// The console's server.

import Bus
import Foundation
import HTTPTypes
import Logging
import NIOSSL
import Primitives
import TrackerLogic
import Wire

import struct NIOCore.TimeAmount

/// The console's server: the state of this tracker and its cluster as JSON and as metrics, and the orders that a
/// cluster takes.
///
/// Everything is under `/api/v1`, which `openapi.yaml` describes; beside it:
///
/// | path | answer |
/// |---|---|
/// | `/` and `/console/` | the pages (`ConsolePages`), which use nothing but the API |
/// | `/simulator/` | the simulator's page (`PlaygroundPages`), which uses nothing but what is under it |
/// | `/metrics` | Prometheus |
/// | `/healthz` | 200 while this tracker can answer announces, else 503; never needs a token |
public struct APIServer: Sendable {
    /// Who may ask, and how much.
    public struct Options: Sendable {
        /// Whoever knows it may ask; without one, only those on this machine may.
        public var token: String?
        /// The certificate chain and its private key, as PEM files; nil for no TLS.
        public var tls: (certificates: String, key: String)?
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
            limits.bodyByteCount = UploadPart.maxFileByteCount
        }
    }

    private let status: any StatusProvider
    let cluster: any ClusterProvider
    private let tally: HTTPTally
    private let facts: @Sendable () -> ProcessFacts
    let patience: BoundedWait
    /// What the pages are fed with beyond status and orders; to be set before `responder` is asked for.
    public var parts = ConsoleParts()

    /// A responder for the console's listener.
    ///
    /// - Parameters:
    ///   - status: tells how the node fares.
    ///   - cluster: tells of the cluster, and takes orders to it.
    ///   - tally: what the HTTP listeners count.
    ///   - limits: how long, and how many, requests may wait for the node.
    ///   - facts: asked for at each request, for the listeners are known only when all of them are open.
    public init(
        status: any StatusProvider, cluster: any ClusterProvider, tally: HTTPTally,
        limits: HTTPLimits = Options().limits,
        facts: @escaping @Sendable () -> ProcessFacts
    ) {
        self.status = status
        self.cluster = cluster
        self.tally = tally
        self.facts = facts
        patience = BoundedWait(limits)
    }

    /// Opens the listener.
    ///
    /// - Throws: `ListenFailure`; also where others could reach the address and there is no token.
    public func listen(on address: SocketAddress, _ options: Options) async throws(ListenFailure) -> HTTPService {
        let purpose = "the API"
        guard address.isLoopback || options.token != nil || parts.hasAccounts else {
            throw ListenFailure(purpose: purpose, address: address, cause: .tokenMissing)
        }
        var service = HTTPService.Options(name: "api", purpose: purpose)
        service.limits = options.limits
        service.logger = options.logger
        service.tally = tally
        if let tls = options.tls {
            do {
                service.tls = try Self.context(certificates: tls.certificates, key: tls.key)
            } catch {
                throw ListenFailure(purpose: purpose, address: address, cause: .other("\(error)"))
            }
        }
        let responder = responder(token: options.token, isOpenToOthers: !address.isLoopback)
        return try await HTTPService.listen(on: address, service, responder: responder)
    }

    /// What is wrong with a certificate, or its key.
    private struct CertificateUnusable: Error, CustomStringConvertible {
        var path: String
        var reason: any Error
        var description: String { "\(path) cannot be used: \(reason)" }
    }

    static func context(certificates: String, key: String) throws -> NIOSSLContext {
        let chain: [NIOSSLCertificateSource]
        do {
            chain = try NIOSSLCertificate.fromPEMFile(certificates).map { .certificate($0) }
        } catch {
            throw CertificateUnusable(path: certificates, reason: error)
        }
        do {
            let privateKey = try NIOSSLPrivateKey(file: key, format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain, privateKey: .privateKey(privateKey))
            configuration.minimumTLSVersion = .tlsv12
            // Whoever does not answer the good-bye holds no stop up: by default five seconds.
            configuration.shutdownTimeout = .milliseconds(300)
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw CertificateUnusable(path: key, reason: error)
        }
    }

    /// The description of the API: `openapi.yaml` beside this folder, which the build puts into the program.
    private static let description = String(decoding: PackageResources.openapi_yaml, as: UTF8.self)

    /// What answers, without a listener.
    ///
    /// - Parameters:
    ///   - token: whoever knows it may ask; nil for none.
    ///   - isOpenToOthers: whether others than this machine reach it: then nobody is let in who has not logged in.
    /// - Returns: all routes, behind a door.
    public func responder(token: String?, isOpenToOthers: Bool = false) -> some Responder {
        let logIns = parts.accounts.map { LogIns($0) }
        let door = Door(
            token: token, logIns: logIns, cookieName: "swarmkeeper-\(parts.cookieSuffix)",
            insists: isOpenToOthers || parts.expectsAccounts)
        var routes: [APIRoute] = [
            APIRoute.get("/healthz") { _ in await health() }.open(),
            .get("/metrics") { _ in await metricsPage() },
            .get("/api/v1/status") { _ in try await statusPage() },
            .get("/api/v1/cluster") { _ in try await clusterPage() },
            .get("/api/v1/trackers") { _ in try await trackersPage() },
            .post("/api/v1/cluster/members") { request in try await changeMembers(request) },
            APIRoute.post("/api/v1/cluster/stop") { request in try await stopCluster(request) }.needing(.admin),
            .post("/api/v1/cluster/handover") { request in try await handOver(request) },
            .post("/api/v1/cluster/election") { _ in try await forceElection() },
            .get("/api/v1/openapi.yaml") { _ in
                .text(Self.description, type: "application/yaml; charset=utf-8")
            },
        ]
        var resources = ["status", "cluster", "trackers"]
        if let swarms = parts.swarms {
            routes += swarmRoutes(swarms)
            resources += ["swarms", "torrents"]
        }
        if let faults = parts.faults {
            routes += faultRoutes(faults)
            resources.append("faults")
        }
        if let settings = parts.settings {
            routes += settingsRoutes(settings)
            resources.append("settings")
        }
        if let (log, history) = parts.events {
            routes += eventRoutes(log, history, door)
            resources += ["state", "history", "events"]
        }
        if let recordings = parts.recordings {
            routes += recordingRoutes(recordings)
            resources.append("recording")
        }
        if let node = parts.node {
            routes += nodeRoutes(node)
            resources.append("node")
        }
        if let logIns, let accounts = parts.accounts {
            routes += logInRoutes(logIns, door) + sessionRoutes(logIns, door, accounts)
            routes += userRoutes(logIns, accounts) + keptSessionRoutes(logIns, accounts) + passkeyRoutes(accounts)
            resources += ["users", "sessions"]
        }
        if let files = parts.files, let swarms = parts.swarms {
            routes += torrentRoutes(files, swarms)
            resources.append("uploads")
        }
        let offered = ResourcesDocument(resources: resources, torrentFileByteCount: parts.files?.maxByteCount)
        routes.append(.get("/api/v1") { _ in try .json(offered) })
        routes += ConsolePages.routes + PlaygroundPages.routes(parts.simulator)
        return APIResponder(routes: routes, door: door)
    }

    func nodeStatus() async -> NodeStatus? {
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

    func statusDocument(now: WallTime = wallTimeNow()) async throws -> StatusDocument {
        guard let status = await nodeStatus(), let cluster = await clusterReport() else {
            throw APIError(.serviceUnavailable, "the tracker's logic does not answer")
        }
        return StatusDocument(status, cluster, facts(), parts.recordings?.figures, now: now)
    }

    private func statusPage() async throws -> Response { try .json(try await statusDocument()) }

    /// What is searched for; nil for all.
    func searchText(_ request: Request) throws(APIError) -> String? {
        let search = request.parameter("q").flatMap { $0.isEmpty ? nil : $0 }
        guard (search?.utf8.count ?? 0) <= SwarmQuery.maxTextByteCount else {
            throw APIError(.badRequest, "q may have \(SwarmQuery.maxTextByteCount) bytes")
        }
        return search
    }
}

extension Response {
    /// A response of JSON.
    ///
    /// - Parameters:
    ///   - document: what it says.
    ///   - status: 200, unless something else is said.
    ///   - isLine: without an end of line, as the data of an event has to be.
    /// - Returns: with its type and length.
    /// - Throws: where the document cannot be encoded.
    static func json(
        _ document: some Encodable, status: HTTPResponse.Status = .ok, isLine: Bool = false
    ) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(document), as: UTF8.self)
        return .text(isLine ? text : text + "\n", status: status, type: "application/json; charset=utf-8")
    }
}
