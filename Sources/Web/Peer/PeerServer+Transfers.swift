// The peer's API on transfers: add, look, change, order, remove.

import HTTPTypes
import Logging
import NIOCore
import Primitives
import Wire

extension PeerServer {
    var transferRoutes: [APIRoute] {
        [
            .get("/api/v1/transfers") { _ in
                let transfers = await provider.state().transfers
                return try .json(TransfersDocument(transfers: transfers, totals: PeerTotals(transfers)))
            },
            APIRoute(.post, "/api/v1/transfers", bodyByteCount: Self.torrentFileByteCount) { request, _ in
                try await add(request)
            },
            APIRoute(.get, "/api/v1/transfers/{hash}") { _, values in
                let hash = try Self.hash(values)
                return try .json(try await answering { () throws(PeerRefusal) in try await provider.transfer(hash) })
            },
            APIRoute(.patch, "/api/v1/transfers/{hash}", bodyByteCount: Self.changeByteCount) { request, values in
                let hash = try Self.hash(values)
                let change = try request.order(TransferOrder.self).change
                return try .json(
                    try await answering { () throws(PeerRefusal) in try await provider.change(hash, change) })
            },
            APIRoute(.delete, "/api/v1/transfers/{hash}", bodyByteCount: APIRoute.jsonByteCount) { request, values in
                let hash = try Self.hash(values)
                let deletesData = try request.flag("data")
                try await answering { () throws(PeerRefusal) in
                    try await provider.remove(hash, deletingData: deletesData)
                }
                let data = deletesData ? "with its data" : "without its data"
                request.logger.notice("\(request.caller.name) has removed \(hash), \(data)")
                return .nothing
            },
            APIRoute(.get, "/api/v1/transfers/{hash}/file") { _, values in
                let hash = try Self.hash(values)
                let bytes = try await answering { () throws(PeerRefusal) in try await provider.file(hash) }
                return .torrent(bytes, name: "\(hash)")
            },
            APIRoute(.post, "/api/v1/transfers/{hash}/peers", bodyByteCount: APIRoute.jsonByteCount) {
                request, values in
                let hash = try Self.hash(values)
                let address = try request.order(AddressOrder.self).checked()
                return try .json(
                    try await answering { () throws(PeerRefusal) in try await provider.addPeer(hash, address) })
            },
        ]
            + PeerAction.allCases.map { action in
                let path = "/api/v1/transfers/{hash}/\(action.rawValue)"
                return APIRoute(.post, path, bodyByteCount: APIRoute.jsonByteCount) { request, values in
                    let hash = try Self.hash(values)
                    _ = try request.order(EmptyOrder.self)
                    return try .json(
                        try await answering { () throws(PeerRefusal) in try await provider.order(hash, action) })
                }
            }
    }

    private static func hash(_ values: PathValues) throws(APIError) -> InfoHash {
        guard let hash = InfoHash(hexadecimal: values["hash"]) else {
            throw APIError(.badRequest, "an info hash has 40 hexadecimal digits")
        }
        return hash
    }

    private func add(_ request: Request) async throws -> Response {
        let kind = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
        let addition: PeerAddition
        switch kind {
        case "application/x-bittorrent":
            guard request.body.readableBytes > 0 else { throw APIError(.badRequest, "the file is empty") }
            addition = PeerAddition(
                .file(Array(request.body.readableBytesView)), isPaused: try request.flag("paused"),
                directory: request.words("directory") ?? "")
        case "application/json":
            guard request.body.readableBytes <= Self.changeByteCount else {
                throw APIError(.contentTooLarge, "a magnet link has \(Self.changeByteCount) bytes at most")
            }
            let order = try request.order(MagnetOrder.self)
            addition = PeerAddition(
                .magnet(order.magnet), isPaused: order.paused ?? false, directory: order.directory ?? "")
        default:
            throw APIError(
                .unsupportedMediaType,
                "send a .torrent file with Content-Type: application/x-bittorrent, or a magnet link as JSON")
        }
        let (transfer, isNew) = try await answering { () throws(PeerRefusal) in try await provider.add(addition) }
        if isNew { request.logger.notice("\(request.caller.name) has added \(transfer.hash)") }
        return try .json(transfer, status: isNew ? .created : .ok)
    }
}

struct TransfersDocument: Encodable {
    var transfers: [PeerTransfer]
    var totals: PeerTotals
}

struct CreationsDocument: Encodable {
    var creations: [PeerCreation]
}
