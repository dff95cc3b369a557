// How a connection is set up, and how its requests are answered.

import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOSSL
import Primitives
import Synchronization

/// How a connection is set up, and how its requests are answered: one after the other, in order.
struct HTTPConnectionChannel: Sendable {
    typealias Connection = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    private let responder: any Responder
    private let limits: HTTPLimits
    private let table: ConnectionTable
    private let idle: IdleConnections
    private let largeBodies = BodyCount()
    private let logger: Logger
    private let tls: NIOSSLContext?

    init(options: HTTPService.Options, responder: any Responder, idle: IdleConnections) {
        self.responder = responder
        self.idle = idle
        limits = options.limits
        table = ConnectionTable(
            limit: limits.connectionsPerAddress, trusted: options.trusted, listener: options.name,
            tally: options.tally)
        logger = options.logger
        tls = options.tls
    }

    func setup(_ channel: any Channel) -> EventLoopFuture<Connection> {
        let address = Primitives.SocketAddress(of: channel)
        let isRefused = !table.admit(address)
        channel.closeFuture.whenComplete { _ in table.release(address) }
        let place = idle.open(channel)
        return channel.eventLoop.makeCompletedFuture {
            var decoderLimits = NIOHTTPDecoderLimitConfiguration()
            decoderLimits.maxHeaderFieldSize = limits.fieldByteCount
            decoderLimits.maxHeaderListSize = limits.headByteCount
            decoderLimits.maxHeaderFieldCount = limits.fieldCount
            let escaper = RequestLineEscaper(escapes: limits.bodyByteCount == 0)
            let pipeline = channel.pipeline.syncOperations
            if let tls { try pipeline.addHandler(NIOSSLServerHandler(context: tls)) }
            try pipeline.addHandler(escaper)
            try pipeline.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoderLimits)
            try pipeline.addHandler(
                ConnectionHandler(limits: limits, escaper: escaper, place: place, isRefused: isRefused))
            return try NIOAsyncChannel(
                wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
        }
    }

    /// Answers until the connection closes.
    func serve(_ connection: Connection) async {
        let channel = connection.channel
        do {
            try await withTaskCancellationHandler {
                try await connection.executeThenClose { inbound, outbound in
                    // Kept until the end: without it nothing more would be read, and a client that is still sending a
                    // body would be cut off before it has read its answer.
                    var parts = inbound.makeAsyncIterator()
                    do {
                        try await answer(&parts, outbound, remoteAddress: Primitives.SocketAddress(of: channel))
                    } catch is HTTPParserError {
                        try await outbound.write(contentsOf: [.head(Response(status: .badRequest).head), .end(nil)])
                    } catch is BodyTooSlow {
                        try await write(slowBody, isHead: false, outbound)
                    }
                    outbound.finish()
                    // `ConnectionHandler` closes it, when the client has had time to read the last answer.
                    try await channel.closeFuture.get()
                }
            } onCancel: {
                channel.close(mode: .input, promise: nil)
            }
        } catch {
            logger.trace("a connection ended", metadata: ["error": "\(error)"])
        }
    }

    private var slowBody: Response {
        let (bytes, seconds) = (HTTPLimits.bodyPaceByteCount, limits.bodyPace.wholeSeconds)
        return signed(
            responder.refusal(
                "the body comes too slowly: \(seconds) s have to bring \(bytes) bytes, or its end; send it again",
                status: .requestTimeout))
    }

    /// With what all responses have in common.
    private func signed(_ response: Response) -> Response {
        var response = response
        response.headers[.date] = HTTPDate.now()
        response.headers[.server] = "Swarmkeeper"
        return response
    }

    /// Answers all requests up to the last one, or to the end of what the client sends.
    private func answer(
        _ parts: inout NIOAsyncChannelInboundStream<HTTPRequestPart>.AsyncIterator,
        _ outbound: NIOAsyncChannelOutboundWriter<HTTPResponsePart>, remoteAddress: Primitives.SocketAddress
    ) async throws {
        while let part = try await parts.next() {
            // Ends, and bodies that nobody wanted.
            guard case .head(let head) = part else { continue }
            var request = Request(head: head, remoteAddress: remoteAddress, logger: logger)
            request.isEncrypted = tls != nil
            let response: Response
            var isReadToEnd = true
            switch try await readBody(of: request, &parts, outbound) {
            case .body(let body):
                request.body = body
                response = await respond(to: request)
            case .none:
                isReadToEnd = false
                response = await respond(to: request)
            case .tooLarge(let limit):
                isReadToEnd = false
                response = responder.refusal("the body may have \(limit) bytes, and no more", status: .contentTooLarge)
            case .tooMany:
                isReadToEnd = false
                response = responder.refusal(
                    "others are sending as much already; try again in a moment", status: .serviceUnavailable)
            case .tooManyOfSender:
                isReadToEnd = false
                response = responder.refusal(
                    "you are sending \(limits.largeBodiesPerSender) large files already; send another after them",
                    status: .tooManyRequests)
            }
            try await write(signed(response), isHead: head.method == .head, outbound)
            guard head.headerFields[.connection] == "close" else { continue }
            // A client that is still sending would be cut off before it has read its answer.
            if !isReadToEnd {
                do { while try await parts.next() != nil {} } catch is BodyTooSlow {}
            }
            return
        }
    }

    private func write(
        _ response: Response, isHead: Bool, _ outbound: NIOAsyncChannelOutboundWriter<HTTPResponsePart>
    ) async throws {
        if let stream = response.stream, !isHead {
            try await outbound.write(.head(response.head))
            try await stream(BodyWriter(outbound: outbound))
            return try await outbound.write(.end(nil))
        }
        var written: [HTTPResponsePart] = [.head(response.head)]
        // The answer to HEAD has the length of the answer to GET, and no body.
        if !isHead, response.body.readableBytes > 0 { written.append(.body(response.body)) }
        written.append(.end(nil))
        try await outbound.write(contentsOf: written)
    }

    // MARK: Bodies

    private enum Body {
        /// There is none, or nobody wants it.
        case none
        case body(ByteBuffer)
        case tooLarge(limit: Int)
        case tooMany
        case tooManyOfSender
    }

    private func readBody(
        of request: Request, _ parts: inout NIOAsyncChannelInboundStream<HTTPRequestPart>.AsyncIterator,
        _ outbound: NIOAsyncChannelOutboundWriter<HTTPResponsePart>
    ) async throws -> Body {
        let length = request.headers[.contentLength].map { Int($0) ?? .max }
        let isChunked = request.headers[.transferEncoding] != nil
        guard limits.bodyByteCount > 0, isChunked || (length ?? 0) > 0,
            let terms = await responder.bodyTerms(of: request)
        else { return .none }
        let limit = min(terms.byteCount, limits.bodyByteCount)
        if let length, length > limit { return .tooLarge(limit: limit) }
        let isLarge = (length ?? limit) > HTTPLimits.smallBodyByteCount
        if isLarge {
            switch largeBodies.begin(of: terms.sender, limits) {
            case .admitted: break
            case .tooMany: return .tooMany
            case .tooManyOfSender: return .tooManyOfSender
            }
        }
        defer { if isLarge { largeBodies.end(of: terms.sender) } }
        if request.headers[.expect]?.lowercased() == "100-continue" {
            try await outbound.write(.head(HTTPResponse(status: .continue)))
        }
        var body = ByteBuffer()
        while let part = try await parts.next() {
            switch part {
            case .head: return .none
            case .body(let bytes):
                guard body.readableBytes + bytes.readableBytes <= limit else { return .tooLarge(limit: limit) }
                body.writeImmutableBuffer(bytes)
            case .end: return .body(body)
            }
        }
        throw ChannelError.inputClosed
    }

    private func respond(to request: Request) async -> Response {
        do {
            return try await responder.respond(to: request)
        } catch {
            logger.error("a request failed", metadata: ["error": "\(error)", "path": "\(request.path)"])
            return Response(status: .internalServerError)
        }
    }
}

extension Primitives.SocketAddress {
    /// The other end of a connection; unspecified where it is gone already.
    fileprivate init(of channel: any Channel) {
        self = channel.remoteAddress.flatMap { Primitives.SocketAddress($0) } ?? .unspecified
    }
}

/// How many large bodies are being read, of each sender.
private final class BodyCount: Sendable {
    enum Admission {
        case admitted
        case tooMany
        case tooManyOfSender
    }

    private let counts = Mutex<[String: Int]>([:])

    func begin(of sender: String, _ limits: HTTPLimits) -> Admission {
        counts.withLock { counts in
            guard counts[sender, default: 0] < limits.largeBodiesPerSender else { return .tooManyOfSender }
            guard counts.values.reduce(0, +) < limits.largeBodies else { return .tooMany }
            counts[sender, default: 0] += 1
            return .admitted
        }
    }

    func end(of sender: String) {
        counts.withLock { counts in
            guard let count = counts[sender] else { return }
            counts[sender] = count > 1 ? count - 1 : nil
        }
    }
}
