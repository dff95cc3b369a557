// How a connection is set up, and how its requests are answered.

import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import Primitives

/// How a connection is set up, and how its requests are answered: one after the other, in order.
struct HTTPConnectionChannel: Sendable {
    typealias Connection = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    private let responder: any Responder
    private let limits: HTTPLimits
    private let table: ConnectionTable
    private let logger: Logger

    init(options: HTTPService.Options, responder: any Responder) {
        self.responder = responder
        limits = options.limits
        table = ConnectionTable(
            limit: limits.connectionsPerAddress, trusted: options.trusted, listener: options.name,
            tally: options.tally)
        logger = options.logger
    }

    func setup(_ channel: any Channel) -> EventLoopFuture<Connection> {
        let address = Primitives.SocketAddress(of: channel)
        let isRefused = !table.admit(address)
        channel.closeFuture.whenComplete { _ in table.release(address) }
        return channel.eventLoop.makeCompletedFuture {
            var decoderLimits = NIOHTTPDecoderLimitConfiguration()
            decoderLimits.maxHeaderFieldSize = limits.fieldByteCount
            decoderLimits.maxHeaderListSize = limits.headByteCount
            decoderLimits.maxHeaderFieldCount = limits.fieldCount
            let escaper = RequestLineEscaper()
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(escaper)
            try pipeline.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoderLimits)
            try pipeline.addHandler(ConnectionHandler(limits: limits, escaper: escaper, isRefused: isRefused))
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

    /// Answers all requests up to the last one, or to the end of what the client sends.
    private func answer(
        _ parts: inout NIOAsyncChannelInboundStream<HTTPRequestPart>.AsyncIterator,
        _ outbound: NIOAsyncChannelOutboundWriter<HTTPResponsePart>, remoteAddress: Primitives.SocketAddress
    ) async throws {
        while let part = try await parts.next() {
            // There are no bodies: `ConnectionHandler` shuts a connection after the head of a request that has one.
            guard case .head(let head) = part else { continue }
            let request = Request(head: head, remoteAddress: remoteAddress, logger: logger)
            let response = await respond(to: request)
            var written: [HTTPResponsePart] = [.head(response.head)]
            // The answer to HEAD has the length of the answer to GET, and no body.
            if head.method != .head, response.body.readableBytes > 0 { written.append(.body(response.body)) }
            written.append(.end(nil))
            try await outbound.write(contentsOf: written)
            if head.headerFields[.connection] == "close" { return }
        }
    }

    private func respond(to request: Request) async -> Response {
        var response: Response
        do {
            response = try await responder.respond(to: request)
        } catch {
            logger.error("a request failed", metadata: ["error": "\(error)", "path": "\(request.path)"])
            response = Response(status: .internalServerError)
        }
        response.headers[.date] = HTTPDate.now()
        response.headers[.server] = "Swarmkeeper"
        return response
    }
}

extension Primitives.SocketAddress {
    /// The other end of a connection; unspecified where it is gone already.
    fileprivate init(of channel: any Channel) {
        self = channel.remoteAddress.flatMap { Primitives.SocketAddress($0) } ?? .unspecified
    }
}
