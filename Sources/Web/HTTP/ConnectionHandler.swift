// Between NIO's HTTP/1 parser and what answers.

import HTTPTypes
import NIOCore
import NIOExtras
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import Primitives

/// Between NIO's HTTP/1 parser and what answers: translates messages, and keeps connections in bounds.
///
/// It stands where swift-nio-extras' `HTTP1ToHTTPServerCodec` would, and differs from it on purpose:
/// - the target is passed on byte for byte, not through Foundation's `URLComponents`;
/// - HTTP/1.0 clients get `Connection: close` and a closed connection, which they wait for;
/// - a body without a length goes to them as it is, for they do not know `Transfer-Encoding`;
/// - a body that comes too slowly is refused (408), and when the listener is full, whoever brings nothing makes room;
/// - a client that sends requests but reads no answers is closed too, and at a shutdown so is one that is merely slow;
/// - a body is read by a listener that takes any (`HTTPLimits.bodyByteCount`), and is the last thing that a connection
///   brings; elsewhere it is not.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let limits: HTTPLimits
    private let escaper: RequestLineEscaper
    /// Whether the connection is one too many for its address.
    private let isRefused: Bool
    private let place: IdleConnections.Place
    /// Whether the last request is of an HTTP that knows no `Transfer-Encoding`.
    private var isOld = false
    private var state: ConnectionState
    /// Whether what comes belongs to the body of the last request.
    private var isInBody = false
    private var timer: Scheduled<Void>?

    init(limits: HTTPLimits, escaper: RequestLineEscaper, place: IdleConnections.Place, isRefused: Bool) {
        self.limits = limits
        self.escaper = escaper
        self.place = place
        self.isRefused = isRefused
        state = ConnectionState(limits, now: .now())
    }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        if isRefused {
            context.close(promise: nil)
        } else {
            arm(context)
            notePlace()
        }
    }

    /// Says whether the connection can be done without.
    private func notePlace() {
        // One that has had its last answer closes soon, when the client has had time to read it.
        if state.isBringing, state.lastRequest == nil || isInBody {
            place.idles(since: .now(), isKnown: isInBody || state.requestsRead > 0)
        } else {
            place.isAnswered()
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        timer = nil
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // After the last request, parts may still come out of bytes that were read together with it.
        guard state.lastRequest == nil || isInBody else { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            headReceived(head, context: context)
        case .body(let bytes):
            state.bodyReceived(bytes.readableBytes, now: .now())
            notePlace()
            context.fireChannelRead(wrapInboundOut(.body(bytes)))
        case .end:
            if isInBody {
                isInBody = false
                escaper.isShut = true
            }
            state.requestRead(now: .now())
            notePlace()
            context.fireChannelRead(wrapInboundOut(.end(nil)))
        }
    }

    private func headReceived(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
        guard let method = HTTPRequest.Method(head.method.rawValue) else {
            errorCaught(context: context, error: HTTPParserError.invalidMethod)
            return
        }
        let headers = head.headers
        // "A server MUST respond with a 400 … to any request message that contains more than one Host header field
        // line" (RFC 9112, 3.2): we would look at one, and a proxy before us at the other.
        guard headers["host"].count <= 1 else {
            errorCaught(context: context, error: HTTPParserError.invalidHeaderToken)
            return
        }
        let hasBody = headers.contains(name: "transfer-encoding") || headers["content-length"].contains { $0 != "0" }
        let isLast =
            hasBody || !head.isKeepAlive || head.version != .http1_1 || head.method == .CONNECT
            || headers.contains(name: "upgrade")
        state.requestBegan(isLast: isLast, now: .now())
        isOld = head.version == .http1_0 || head.version == .http0_9
        var request = HTTPRequest(
            method: method, scheme: "http", authority: headers["host"].first,
            path: Self.originForm(head.uri), headerFields: HTTPFields(headers, splitCookie: false))
        guard isLast else {
            context.fireChannelRead(wrapInboundOut(.head(request)))
            return
        }
        // `HTTPConnectionChannel` looks for this very value to know that it has done.
        request.headerFields[.connection] = "close"
        if hasBody, limits.bodyByteCount > 0, !headers.contains(name: "upgrade") {
            isInBody = true
            state.bodyBegan(now: .now())
            notePlace()
            context.fireChannelRead(wrapInboundOut(.head(request)))
            return
        }
        escaper.isShut = true
        state.requestRead(now: .now())
        notePlace()
        context.fireChannelRead(wrapInboundOut(.head(request)))
        context.fireChannelRead(wrapInboundOut(.end(nil)))
    }

    /// The target without scheme and host, which proxies are sent (RFC 9112, 3.2.2).
    private static func originForm(_ target: String) -> String {
        guard !target.hasPrefix("/"), let scheme = target.firstRange(of: "://") else { return target }
        guard let path = target[scheme.upperBound...].firstIndex(where: { $0 == "/" || $0 == "?" }) else { return "/" }
        return target[path] == "/" ? String(target[path...]) : "/" + target[path...]
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // `HTTPConnectionChannel` answers parse errors with 400; on others it lets go of the connection.
        state.parseFailed()
        escaper.isShut = true
        context.fireErrorCaught(error)
    }

    // MARK: Responses

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let response):
            var head = HTTPResponseHead(response)
            // "100 Continue" is not the response yet.
            if state.isLastResponse, response.status.kind != .informational {
                head.headers.replaceOrAdd(name: "connection", value: "close")
                // The encoder frames a body without a length by the version; this one ends with the connection.
                if isOld, response.headerFields[.contentLength] == nil { head.version = .http1_0 }
            }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body(let bytes):
            context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: watched(promise, context))
        case .end(let trailers):
            let isLast = state.isLastResponse
            state.responseEnded(now: .now())
            notePlace()
            let written = watched(promise, context)
            context.write(wrapOutboundOut(.end(trailers.map(HTTPHeaders.init))), promise: written)
            if isLast { closeSoon(context, after: written.futureResult) }
        }
    }

    /// Tells the state when the write has begun and ended.
    private func watched(
        _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext
    ) -> EventLoopPromise<Void> {
        let written = promise ?? context.eventLoop.makePromise()
        state.writeBegan(now: .now())
        written.futureResult.assumeIsolated().whenComplete { _ in
            self.state.writeEnded(now: .now())
            self.notePlace()
        }
        return written
    }

    /// After the last response: at once in a shutdown, else when the client has had time to read it.
    private func closeSoon(_ context: ChannelHandlerContext, after written: EventLoopFuture<Void>) {
        written.assumeIsolated().whenComplete { _ in
            guard !self.state.isStopping else {
                context.close(promise: nil)
                return
            }
            self.close(context, in: self.limits.linger)
        }
    }

    // MARK: Time

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else {
            context.fireUserInboundEventTriggered(event)
            return
        }
        state.stop()
        if state.isIdle {
            context.close(promise: nil)
        } else {
            close(context, in: limits.shutdownClose)
        }
    }

    private func close(_ context: ChannelHandlerContext, in delay: Duration) {
        timer?.cancel()
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(delay)) {
            context.close(promise: nil)
        }
    }

    /// Looks again when the deadline may have come.
    ///
    /// One timer a connection, not moved with each request: a deadline may be overstepped by as long again.
    private func arm(_ context: ChannelHandlerContext) {
        let latest = .now() + min(state.idle, state.writeStall, state.bodyPace)
        let deadline = min(state.deadline ?? latest, state.paceDeadline ?? latest, latest)
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            if let deadline = self.state.deadline, deadline <= .now() {
                context.close(promise: nil)
                return
            }
            if let deadline = self.state.paceDeadline, deadline <= .now() { self.refuseBody(context) }
            self.arm(context)
        }
    }

    /// Has the request answered without its body, of which nothing more is read.
    private func refuseBody(_ context: ChannelHandlerContext) {
        isInBody = false
        escaper.isShut = true
        state.bodyRefused(now: .now())
        notePlace()
        context.fireErrorCaught(BodyTooSlow())
    }
}

/// A body does not keep the pace that `HTTPLimits.bodyPace` asks for.
struct BodyTooSlow: Error {}

extension TimeAmount {
    init(_ duration: Duration) { self = .nanoseconds(duration.nanoseconds) }
}
