// The API's pages that the console is fed with: state, history, events, swarms, faults.

import HTTPTypes
import NIOCore
import Primitives
import Wire

extension APIServer {
    // MARK: - What happens

    func eventRoutes(_ log: TransitionLog, _ history: History, _ door: Door) -> [APIRoute] {
        let board = StateBoard { try await state(history).body }
        let stream = EventStream(log: log, board: board)
        return [
            .get("/api/v1/state") { request in
                var response = Response.text("", type: "application/json; charset=utf-8")
                var (body, rest) = (try Self.logIn(request.caller, await door.wantsLogIn), try await board.current())
                body.writeBuffer(&rest)
                response.setBody(body)
                return response
            },
            .get("/api/v1/history") { _ in
                try .json(HistoryDocument(samples: history.all.map(SampleDocument.init)))
            },
            .get("/api/v1/events") { request in
                guard request.method == .get else { throw APIError(.methodNotAllowed, "a stream is read by GET") }
                let caller = request.caller
                let seen = request.headers[.lastEventID] ?? request.parameter("after")
                let place = try stream.enter(caller)
                // Made once: they stay the same for as long as the stream goes on.
                let (required, free) = (try Self.logIn(caller, true), try Self.logIn(caller, false))
                return Response(
                    headers: [.contentType: "text/event-stream; charset=utf-8", .cacheControl: "no-store"]
                ) { writer in
                    await stream.run(place, writer, after: seen) {
                        // Whoever has been logged out, or has another role, comes back as that.
                        guard let now = try? await door.caller(of: request), now == caller else { return nil }
                        return await door.wantsLogIn ? required : free
                    }
                }
            },
        ]
    }

    /// The beginning of the state, which says who its reader is: the rest is the same for all.
    private static func logIn(_ caller: Caller, _ isRequired: Bool) throws -> ByteBuffer {
        var beginning = ByteBuffer(string: "{\"login\":")
        var login = try Response.json(LoginDocument(required: isRequired, caller), isLine: true).body
        beginning.writeBuffer(&login)
        beginning.writeString(",")
        return beginning
    }

    /// The state without its first brace (`logIn`).
    private func state(_ history: History) async throws -> Response {
        let now = wallTimeNow()
        let status = try await statusDocument(now: now)
        var response = try Response.json(
            StateDocument(
                now: instantText(now), name: status.cluster.name, status: status,
                sample: history.last.map(SampleDocument.init), faults: FaultsDocument(parts.faults?.faults ?? [])),
            isLine: true)
        response.body.moveReaderIndex(forwardBy: 1)
        return response
    }

    // MARK: - Swarms

    func swarmRoutes(_ swarms: any SwarmProvider) -> [APIRoute] {
        [
            .get("/api/v1/swarms") { request in
                let query = try swarmQuery(request)
                return try .json(SwarmsDocument(try await known { await swarms.swarms(query) }))
            },
            .get("/api/v1/torrents") { request in
                var query = try swarmQuery(request)
                query.isRegisteredOnly = true
                if request.parameter("sort") == nil { query.order = .name }
                let wanted = query
                return try .json(TorrentsDocument(try await known { await swarms.swarms(wanted) }))
            },
            APIRoute(.get, "/api/v1/swarms/{hash}") { _, values in
                let infoHash = try infoHash(values["hash"])
                guard let (row, asOf) = try await swarm(infoHash, swarms) else { throw Self.noSuchSwarm }
                return try .json(SwarmsDocument.Swarm(row, asOf: asOf))
            },
            APIRoute(.get, "/api/v1/swarms/{hash}/peers") { request, values in
                let infoHash = try infoHash(values["hash"])
                var query = PeerQuery()
                query.order = try request.choice("sort", default: PeerQuery.Order.address)
                query.isDescending = try request.choice("order", default: Direction.asc) == .desc
                query.count = try request.number(
                    "limit", in: 1...SwarmQuery.maxCount, default: SwarmQuery.defaultCount)
                if let text = request.parameter("after") {
                    guard let cursor = PeerQuery.Cursor(text) else { throw Self.badCursor }
                    query.after = cursor
                }
                let wanted = query
                guard let page = try await known({ await swarms.peers(of: infoHash, wanted) }).found else {
                    throw Self.noSuchSwarm
                }
                return try .json(PeersDocument(page))
            },
        ]
    }

    private enum Direction: String, CaseIterable {
        case asc
        case desc
    }

    private static var noSuchSwarm: APIError {
        APIError(.notFound, "there is no swarm of this info hash: nobody has announced it lately")
    }

    private static var badCursor: APIError {
        APIError(.badRequest, "after has to be the \"next\" of the page before, in the same order")
    }

    private func swarmQuery(_ request: Request) throws -> SwarmQuery {
        var query = SwarmQuery()
        query.text = try searchText(request) ?? ""
        query.order = try request.choice("sort", default: SwarmQuery.Order.hash)
        query.isDescending = try request.choice("order", default: Direction.asc) == .desc
        query.count = try request.number("limit", in: 1...SwarmQuery.maxCount, default: SwarmQuery.defaultCount)
        if let text = request.parameter("after") {
            guard let cursor = SwarmQuery.Cursor(text) else { throw Self.badCursor }
            query.after = cursor
        }
        return query
    }

    func infoHash(_ text: String) throws(APIError) -> InfoHash {
        guard let infoHash = InfoHash(hexadecimal: text) else {
            throw APIError(.badRequest, "an info hash has 40 hexadecimal digits")
        }
        return infoHash
    }

    /// One swarm; nil where it is not there.
    ///
    /// - Throws: `APIError`: 503 where the node does not answer.
    func swarm(_ infoHash: InfoHash, _ swarms: any SwarmProvider) async throws -> (row: SwarmRow, asOf: WallTime)? {
        try await known { await swarms.swarm(infoHash) }.found
    }

    private func known<Value: Sendable>(_ ask: @escaping @Sendable () async -> Value?) async throws -> Value {
        let outcome = await patience.wait(for: ask)
        guard case .finished(let value?) = outcome else {
            throw APIError(.serviceUnavailable, "the tracker's logic does not answer, try again later")
        }
        return value
    }

    // MARK: - The node

    private struct NodeOrder: Decodable {
        var name: String?
    }

    func nodeRoutes(_ node: any NodeSwitch) -> [APIRoute] {
        @Sendable func answer(_ outcome: NodeSwitchOutcome, isRunning: Bool) throws -> Response {
            switch outcome {
            case .done: return try .json(NodeSwitchDocument(isRunning: isRunning))
            case .refused(let reason): throw APIError(.conflict, reason)
            }
        }
        return [
            .post("/api/v1/node/stop") { request in
                let name = try request.json(NodeOrder.self).name
                return try answer(await node.stopNode(name: name), isRunning: false)
            },
            .post("/api/v1/node/start") { _ in try answer(await node.startNode(), isRunning: true) },
        ]
    }

    // MARK: - Faults

    private struct CutOrder: Decodable {
        enum From: String, Decodable {
            case peers
            case bus
            case both
            case tracker
        }

        var from: From
        var tracker: Int64?
        var seconds: Int
    }

    /// Seconds that a cut may last.
    private static let cutSeconds = 1...3600

    func faultRoutes(_ faults: any FaultProvider) -> [APIRoute] {
        [
            .get("/api/v1/faults") { _ in try .json(FaultsDocument(faults.faults)) },
            .post("/api/v1/faults") { request in
                for target in try targets(try request.json(CutOrder.self)) {
                    let (target, span) = target
                    guard faults.cut(target, for: span) else {
                        throw APIError(
                            .conflict,
                            "this tracker has no bus from which it could be cut off, or is cut off from as many "
                                + "already as it may be")
                    }
                }
                return try .json(FaultsDocument(faults.faults), status: .created)
            },
            APIRoute(.delete, "/api/v1/faults") { _, _ in
                _ = faults.mend(nil)
                return try .json(FaultsDocument(faults.faults))
            },
            APIRoute(.delete, "/api/v1/faults/{id}") { _, values in
                guard let target = FaultTarget(id: values["id"]), faults.mend(target) else {
                    throw APIError(.notFound, "this tracker is not cut off so; /api/v1/faults shows from what it is")
                }
                return try .json(FaultsDocument(faults.faults))
            },
        ]
    }

    private func targets(_ order: CutOrder) throws(APIError) -> [(FaultTarget, Duration)] {
        guard Self.cutSeconds.contains(order.seconds) else {
            throw APIError(
                .badRequest,
                "seconds has to be a number from \(Self.cutSeconds.lowerBound) to \(Self.cutSeconds.upperBound)")
        }
        let tracker = try id("tracker", order.tracker)
        let span = Duration.seconds(Int64(order.seconds))
        switch order.from {
        case .peers: return [(.peers, span)]
        case .bus: return [(.bus, span)]
        // The bus first: a tracker without one refuses, and is to be cut off from nothing then.
        case .both: return [(.bus, span), (.peers, span)]
        case .tracker:
            guard let tracker else {
                throw APIError(.badRequest, "name the tracker from which this one is to be cut off by \"tracker\"")
            }
            return [(.tracker(tracker), span)]
        }
    }
}

extension HTTPField.Name {
    /// The HTML standard, "Server-sent events".
    fileprivate static let lastEventID = Self("Last-Event-ID")!
}
