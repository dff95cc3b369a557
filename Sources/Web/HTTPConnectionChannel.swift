// How a connection is set up.

import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import Primitives

/// What answers requests: a hummingbird router's responder, or anything that takes the address of the client.
public typealias TrackerResponder = HTTPResponder<ClientContext>

/// What is known of the connection that a request came over.
public struct ClientContext: RequestContext {
    /// What hummingbird keeps for a request.
    public var coreContext: CoreRequestContextStorage
    /// The other end of the connection.
    public let remoteAddress: Primitives.SocketAddress

    /// The context of a request that came over this channel.
    public init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        remoteAddress = Primitives.SocketAddress(of: source.channel)
    }
}

/// How a connection is set up, and how its requests reach the code that answers them.
struct HTTPConnectionChannel: HTTPChannelHandler {
    typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    let responder: HTTPChannelHandler.Responder
    private let limits: HTTPLimits
    private let table: ConnectionTable

    init(options: HTTPService.Options, responder: some TrackerResponder) {
        limits = options.limits
        table = ConnectionTable(
            limit: limits.connectionsPerAddress, trusted: options.trusted, listener: options.name,
            tally: options.tally)
        var logger = options.logger
        logger[metadataKey: "hb.request.id"] = "-"
        self.responder = { [logger] request, writer, channel in
            let context = ClientContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
            var response: Response
            do {
                response = try await responder.respond(to: request, context: context)
            } catch let error as HTTPParserError {
                throw error
            } catch {
                logger.error("a request failed", metadata: ["error": "\(error)", "path": "\(request.uri.path)"])
                response = Response(status: .internalServerError)
            }
            response.headers[.date] = HTTPDate.now()
            response.headers[.server] = "Swarmkeeper"
            // The answer to HEAD has the length of the answer to GET, and no body.
            let body = request.method == .head ? ResponseBody() : response.body
            try await writer.write(response: response.head, body: body)
        }
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
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

    func handle(value: Value, logger: Logger) async {
        await handleHTTP(asyncChannel: value, logger: logger)
    }
}

extension Primitives.SocketAddress {
    /// The other end of a connection; unspecified where it is gone already.
    fileprivate init(of channel: any Channel) {
        self = channel.remoteAddress.flatMap { Primitives.SocketAddress($0) } ?? .unspecified
    }
}
