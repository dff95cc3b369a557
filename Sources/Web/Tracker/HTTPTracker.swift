// The tracker over HTTP.

import Bus
import HTTPTypes
import Logging
import NIOCore
import Primitives
import TrackerLogic
import Wire

/// The way to the tracker's logic.
public protocol RequestHandler: Sendable {
    /// Has the logic answer a request.
    ///
    /// - Parameters:
    ///   - content: what it asks for.
    ///   - source: the client's address, as far as it can be believed.
    ///   - passkey: of the URL; empty where there was none.
    /// - Returns: an answer to what was asked, or a refusal.
    /// - Throws: anything, if no answer is to be had; the client is told to try again later. `CancellationError` if the
    ///   task is cancelled, which happens when the client has waited too long: an answer is of no use then.
    func handle(
        _ content: ClientRequest.Content, source: Primitives.SocketAddress, passkey: [UInt8]
    ) async throws -> Answer.Content

    /// Why nobody is answered, or nothing stored, in words for clients (`Finding.problem`); nil where that is not so.
    var problem: String? { get }
}

extension RequestHandler {
    /// Nothing is wrong, unless a handler knows better.
    public var problem: String? { nil }
}

/// The tracker over HTTP: reads announces and scrapes, has the logic answer them, and bencodes the answers.
///
/// - SeeAlso: BEP 3, "trackers"; BEP 7, 23, 24, 27, 31, 48.
public struct HTTPTracker: Responder {
    /// When a client whose request could not be answered is to come back (BEP 31).
    static let retry = HTTPFailure.Retry.after(minutes: 2)
    static let welcome = """
        This is a BitTorrent tracker: Swarmkeeper.

        It is made for BitTorrent clients, not for browsers. Put its announce URL into a torrent:
        this address followed by /announce (on a private tracker by /announce/YOUR-PASSKEY).

        """
    static let help = "There is nothing here. A tracker answers /announce and /scrape, for BitTorrent clients.\n"

    private let handler: any RequestHandler
    private let clientAddress: ClientAddress
    private let patience: BoundedWait
    private let tally: HTTPTally

    /// A responder for a listener.
    ///
    /// - Parameters:
    ///   - handler: the way to the logic.
    ///   - trusted: whose word on addresses is taken (`NodeConfiguration.trusted`).
    ///   - limits: how long, and how many, requests may wait for the logic.
    ///   - tally: counts requests and answers.
    public init(
        handler: any RequestHandler, trusted: [AddressPrefix], limits: HTTPLimits = HTTPLimits(),
        tally: HTTPTally = HTTPTally()
    ) {
        self.handler = handler
        clientAddress = ClientAddress(trusted: trusted)
        patience = BoundedWait(limits)
        self.tally = tally
    }

    /// Opens a listener for the tracker.
    ///
    /// - Throws: `ListenFailure`.
    public static func listen(
        on address: Primitives.SocketAddress, handler: any RequestHandler, trusted: [AddressPrefix],
        limits: HTTPLimits = HTTPLimits(), logger: Logger = Logger(label: "swarmkeeper.http"),
        tally: HTTPTally = HTTPTally()
    ) async throws(ListenFailure) -> HTTPService {
        var options = HTTPService.Options(name: "tracker", purpose: "the HTTP tracker")
        options.limits = limits
        options.trusted = trusted
        options.logger = logger
        options.tally = tally
        let tracker = HTTPTracker(handler: handler, trusted: trusted, limits: limits, tally: tally)
        return try await HTTPService.listen(on: address, options, responder: tracker)
    }

    /// Answers one request: an announce, a scrape, or a page that says that this is a tracker.
    public func respond(to request: Request) async throws -> Response {
        guard request.method == .get || request.method == .head else {
            tally.count(.other, .malformed)
            var response = Response.text("Only GET and HEAD are understood here.\n", status: .methodNotAllowed)
            response.headers[.allow] = "GET, HEAD"
            return response
        }
        switch TrackerTarget(request.head.path ?? "") {
        case .announce(let passkey, let query):
            return await announce(query, passkey: passkey, source: source(of: request), request.logger)
        case .scrape(let passkey, let query):
            return await scrape(query, passkey: passkey, source: source(of: request), request.logger)
        case .root:
            tally.count(.other, .answered)
            return .text(Self.welcome)
        case .unknown:
            tally.count(.other, .malformed)
            return .text(Self.help, status: .notFound)
        }
    }

    private func source(of request: Request) -> Primitives.SocketAddress {
        clientAddress.resolve(remote: request.remoteAddress, forwarded: request.headers[values: .forwardedFor])
    }

    private func announce(
        _ query: [UInt8], passkey: [UInt8], source: Primitives.SocketAddress, _ logger: Logger
    ) async -> Response {
        let request: HTTPAnnounceRequest
        do {
            request = try HTTPAnnounceRequest(query: query)
        } catch {
            return malformed(.announce, error)
        }
        var source = source
        var port = request.port
        if let claimed = request.claimedAddress, clientAddress.isTrusted(source) {
            source = claimed
            port = claimed.port
        }
        let announce = Announce(
            infoHash: request.infoHash, peerID: request.peerID, downloaded: request.downloaded, left: request.left,
            event: request.event, numWant: request.numWant, port: port)
        let passkey = passkey.isEmpty ? request.passkey ?? [] : passkey
        return await answer(.announce, .announce(announce), source: source, passkey: passkey, logger) { content in
            guard case .announce(let answer) = content else { return nil }
            return Self.encoded(answer, to: request, from: source)
        }
    }

    private func scrape(
        _ query: [UInt8], passkey: [UInt8], source: Primitives.SocketAddress, _ logger: Logger
    ) async -> Response {
        let request: HTTPScrapeRequest
        do {
            request = try HTTPScrapeRequest(query: query)
        } catch {
            return malformed(.scrape, error)
        }
        let passkey = passkey.isEmpty ? request.passkey ?? [] : passkey
        let content = ClientRequest.Content.scrape(request.infoHashes)
        return await answer(.scrape, content, source: source, passkey: passkey, logger) { content in
            guard case .scrape(let counts) = content, counts.count == request.infoHashes.count else { return nil }
            let files = zip(request.infoHashes, counts).map { infoHash, counts in
                HTTPScrapeReply.File(
                    infoHash: infoHash, seeders: counts.seeders, completed: counts.completed,
                    leechers: counts.leechers)
            }
            return HTTPScrapeReply(files: files).encoded()
        }
    }

    private func malformed(_ route: HTTPTally.Route, _ error: HTTPRequestError) -> Response {
        tally.count(route, .malformed)
        return .bencoded(HTTPFailure(error).encoded())
    }

    /// Has the logic answer, within bounds.
    ///
    /// - Parameters:
    ///   - route: for the metrics.
    ///   - content: what is asked for.
    ///   - source: the client's address, as far as it can be believed.
    ///   - passkey: of the URL; empty where there was none.
    ///   - logger: of the request.
    ///   - encode: gives nil for an answer that is none to this request.
    /// - Returns: bencoded, also where it is a refusal.
    private func answer(
        _ route: HTTPTally.Route, _ content: ClientRequest.Content, source: Primitives.SocketAddress,
        passkey: [UInt8], _ logger: Logger, encode: (Answer.Content) -> [UInt8]?
    ) async -> Response {
        let start = ContinuousClock.now
        let outcome = await patience.wait { [handler] in
            try await handler.handle(content, source: source, passkey: passkey)
        }
        tally.record(route, ContinuousClock.now - start)
        let failure: HTTPFailure
        switch outcome {
        case .finished(.failure(.notServing)):
            failure = silence("\(Refusal.notServing.text)")
        case .finished(.failure(.notStored)):
            // Whose disk is full is for operators to mend: clients and status say the same of it.
            tally.count(route, .refused)
            return .bencoded(silence("\(Refusal.notStored.text)").encoded())
        case .finished(.failure(let refusal)):
            tally.count(route, .refused)
            return .bencoded(HTTPFailure(refusal).encoded())
        case .finished(let content):
            guard let bytes = encode(content) else {
                preconditionFailure("the tracker's logic answered another question than it was asked")
            }
            tally.count(route, .answered)
            return .bencoded(bytes)
        case .failed(let error):
            logger.debug("a request was not answered", metadata: ["error": "\(error)"])
            failure = silence("tracker cannot answer now, try again later")
        case .late, .busy:
            failure = silence("tracker is overloaded, try again later")
        case .stopping:
            failure = HTTPFailure("tracker is going down, try again later", retry: Self.retry)
        }
        tally.count(route, .unanswered)
        return .bencoded(failure.encoded())
    }

    /// Nobody could answer, or store what was asked: why, where that is known, else these words.
    ///
    /// It is known from the next look at the node on, which is at most a keepalive away.
    private func silence(_ words: String) -> HTTPFailure {
        let reason = handler.problem.map { "tracker cannot answer now: \($0); try again later" }
        return HTTPFailure(reason ?? words, retry: Self.retry)
    }

    private static func encoded(
        _ answer: AnnounceAnswer, to request: HTTPAnnounceRequest, from source: Primitives.SocketAddress
    ) -> [UInt8] {
        let reply = HTTPAnnounceReply(
            interval: answer.interval, minInterval: answer.minInterval, seeders: answer.counts.seeders,
            leechers: answer.counts.leechers, completed: answer.counts.completed, externalIP: source)
        guard request.compact != false else {
            let peers =
                answer.ipv4.map { ($0.peerID, $0.endpoint.socketAddress) }
                + answer.ipv6.map { ($0.peerID, $0.endpoint.socketAddress) }
            return reply.encoded(peers: peers, withPeerIDs: !request.noPeerID)
        }
        return reply.encoded(
            compactIPv4: bytes(answer.ipv4.lazy.map(\.endpoint)), compactIPv6: bytes(answer.ipv6.lazy.map(\.endpoint)))
    }

    private static func bytes<Endpoint: CompactEndpoint>(_ endpoints: some Collection<Endpoint>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(endpoints.count * Endpoint.byteCount)
        for endpoint in endpoints { withUnsafeBytes(of: endpoint) { bytes.append(contentsOf: $0) } }
        return bytes
    }
}

extension HTTPFailure {
    /// What the logic refuses, and when to try again where it may be otherwise in a while.
    init(_ refusal: Refusal) {
        switch refusal {
        case .trackerFull, .addressFull, .swarmFull, .notStored, .storageFailed, .busy, .notServing:
            self.init("\(refusal.text)", retry: HTTPTracker.retry)
        case .connectionIDExpired, .malformedAnnounce, .malformedScrape, .unknownAction, .portZero,
            .infoHashNotAllowed, .infoHashDenied, .passkeyMissing, .passkeyUnknown, .scrapeNeedsPasskey:
            self.init("\(refusal.text)")
        }
    }
}

extension HTTPField.Name {
    static let forwardedFor = Self("X-Forwarded-For")!
    static let contentTypeOptions = Self("X-Content-Type-Options")!
}

extension Response {
    /// Clients look at the bytes alone; `text/plain` is what trackers have always said.
    static func bencoded(_ bytes: [UInt8]) -> Response {
        Response(
            status: .ok, headers: [.contentType: "text/plain", .contentTypeOptions: "nosniff"],
            body: ByteBuffer(bytes: bytes))
    }

    static func text(
        _ text: String, status: HTTPResponse.Status = .ok, type: String = "text/plain; charset=utf-8"
    ) -> Response {
        Response(
            status: status, headers: [.contentType: type, .contentTypeOptions: "nosniff"],
            body: ByteBuffer(string: text))
    }
}
