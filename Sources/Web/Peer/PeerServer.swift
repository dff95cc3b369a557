// The peer's server: its page, and the API that the page uses.

import Bus
import Foundation
import HTTPTypes
import Logging
import NIOCore
import Primitives
import TrackerLogic
import Wire

/// The peer's server: transfers, torrents that are made, folders and settings as JSON, and the page that shows them.
///
/// Everything is under `/api/v1`, which `peer-openapi.yaml` describes; `/` is the page, `/peer/` has its own files and
/// `/console/` those that it shares with the tracker's. Door, bounds and policy are the tracker's, too.
public struct PeerServer: Sendable {
    /// Bytes of a .torrent file.
    public static let torrentFileByteCount = BencodeLimits.metainfo.byteCount
    /// Bytes of an order that may name many files.
    static let changeByteCount = 65_536

    /// Who may ask, and how much.
    public struct Options: Sendable {
        /// Whoever knows it may ask; without one, only those on this machine may.
        public var token: String?
        /// The certificate chain and its private key, as PEM files; nil for no TLS.
        public var tls: (certificates: String, key: String)?
        /// Narrower than a tracker's: people ask, not swarms.
        public var limits = HTTPLimits()
        /// For what goes wrong with the listener, and what people have done.
        public var logger = Logger(label: "swarmkeeper.peer")

        /// No token, and limits for a few people.
        public init() {
            limits.connections = 128
            limits.connectionsPerAddress = 64
            limits.bodyByteCount = PeerServer.torrentFileByteCount
            limits.largeBodies = 2
        }
    }

    let provider: any TransferProvider

    /// Answers by what a peer says.
    public init(_ provider: any TransferProvider) { self.provider = provider }

    /// Opens the listener.
    ///
    /// - Throws: `ListenFailure`; also where others could reach the address and there is no token.
    public func listen(
        on address: Primitives.SocketAddress, _ options: Options
    ) async throws(ListenFailure) -> HTTPService {
        let purpose = "the page"
        guard address.isLoopback || options.token != nil else {
            throw ListenFailure(purpose: purpose, address: address, cause: .tokenMissing)
        }
        var service = HTTPService.Options(name: "peer", purpose: purpose)
        service.limits = options.limits
        service.logger = options.logger
        if let tls = options.tls {
            do {
                service.tls = try APIServer.context(certificates: tls.certificates, key: tls.key)
            } catch {
                throw ListenFailure(purpose: purpose, address: address, cause: .other("\(error)"))
            }
        }
        return try await HTTPService.listen(on: address, service, responder: responder(token: options.token))
    }

    /// The description of the API, which the build puts into the program.
    private static let description = String(decoding: PackageResources.peer_openapi_yaml, as: UTF8.self)

    /// What answers, without a listener.
    ///
    /// - Parameter token: whoever knows it may ask; nil for none: then only this machine may.
    /// - Returns: all routes, behind a door.
    public func responder(token: String?) -> some Responder {
        let door = Door(token: token, logIns: nil, cookieName: "swarmkeeper-peer", insists: false)
        let offered = ResourcesDocument(
            resources: ["transfers", "creations", "folders", "settings", "events"],
            torrentFileByteCount: Self.torrentFileByteCount, product: "peer")
        var routes: [APIRoute] = [
            .get("/api/v1") { _ in try .json(offered) },
            .get("/api/v1/openapi.yaml") { _ in
                .text(Self.description, type: "application/yaml; charset=utf-8")
            },
        ]
        routes += transferRoutes + creationRoutes + settingsRoutes + eventRoutes
        routes += PeerPages.routes
        return APIResponder(routes: routes, door: door)
    }

    // MARK: - Folders and settings

    private var settingsRoutes: [APIRoute] {
        [
            .get("/api/v1/folders") { request in
                let path = request.words("path") ?? ""
                return try .json(try await answering { () throws(PeerRefusal) in try await provider.folder(path) })
            },
            .get("/api/v1/settings") { _ in try .json(await provider.state().settings) },
            APIRoute(.patch, "/api/v1/settings", bodyByteCount: APIRoute.jsonByteCount) { request, _ in
                let order = try request.order(SettingsOrder.self)
                let settings = try await answering { () throws(PeerRefusal) in
                    try await provider.change(maxDown: order.maxDown, maxUp: order.maxUp)
                }
                request.logger.notice("\(request.caller.name) has changed the limits of all transfers")
                return try .json(settings)
            },
        ]
    }

    // MARK: - Torrents that are made

    private var creationRoutes: [APIRoute] {
        [
            .get("/api/v1/creations") { _ in try .json(CreationsDocument(creations: await provider.state().creations))
            },
            .post("/api/v1/creations") { request in
                let order = try request.order(CreationOrder.self).checked()
                let creation = try await answering { () throws(PeerRefusal) in try await provider.create(order) }
                request.logger.notice("\(request.caller.name) has a torrent made of \(order.path.debugDescription)")
                return try .json(creation, status: .accepted)
            },
            APIRoute(.delete, "/api/v1/creations/{id}", bodyByteCount: APIRoute.jsonByteCount) { _, values in
                let id = values["id"]
                try await answering { () throws(PeerRefusal) in try await provider.endCreation(id) }
                return .nothing
            },
            APIRoute(.get, "/api/v1/creations/{id}/file") { _, values in
                let id = values["id"]
                let bytes = try await answering { () throws(PeerRefusal) in try await provider.creationFile(id) }
                return .torrent(bytes, name: id)
            },
        ]
    }
}

/// The peer's answer, with its refusal as the API's.
func answering<Value: Sendable>(
    _ ask: () async throws(PeerRefusal) -> Value
) async throws(APIError) -> Value {
    do {
        return try await ask()
    } catch {
        let status: HTTPResponse.Status =
            switch error.kind {
            case .invalid: .badRequest
            case .unknown: .notFound
            case .conflict: .conflict
            case .full, .disk, .stopped: .serviceUnavailable
            }
        throw APIError(status, error.words, retryAfter: error.kind == .full ? 10 : nil)
    }
}

extension Response {
    /// Done, and there is nothing to say.
    static var nothing: Response {
        var response = Response(status: .noContent)
        // RFC 9110, 8.6: not in an answer of 204.
        response.headers[.contentLength] = nil
        return response
    }

    /// A .torrent file, to be kept.
    ///
    /// - Parameters:
    ///   - bytes: of the file.
    ///   - name: of digits and letters: what people have called it may be anything.
    /// - Returns: with its type and length.
    static func torrent(_ bytes: [UInt8], name: String) -> Response {
        Response(
            status: .ok,
            headers: [
                .contentType: "application/x-bittorrent",
                .contentDisposition: "attachment; filename=\"\(name).torrent\"",
            ], body: ByteBuffer(bytes: bytes))
    }
}

extension Request {
    /// A parameter of the query that people have written: `URLSearchParams` has a plus for a blank.
    func words(_ name: String) -> String? {
        let query = (head.path ?? "").drop { $0 != "?" }.dropFirst()
        for pair in query.split(separator: "&") where pair.prefix(while: { $0 != "=" }) == name {
            let value = String(pair.drop { $0 != "=" }.dropFirst()).replacing("+", with: " ")
            return value.removingPercentEncoding ?? value
        }
        return nil
    }

    /// A parameter of the query that is `true` or `false`.
    func flag(_ name: String) throws(APIError) -> Bool {
        switch parameter(name) {
        case nil, "false": return false
        case "true": return true
        default: throw APIError(.badRequest, "\(name) has to be true or false")
        }
    }
}
