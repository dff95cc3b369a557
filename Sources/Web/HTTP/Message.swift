// A request and its response, as the code that answers sees them.

import Foundation
import HTTPTypes
import Logging
import NIOCore
import NIOHTTPTypes
import Primitives

/// A request, with as much of a body as whoever answers it wants to see.
public struct Request: Sendable {
    /// The method, the target and the header fields, as they came.
    public let head: HTTPRequest
    /// The other end of the connection.
    public let remoteAddress: Primitives.SocketAddress
    /// For what only the operator is to hear of it.
    public let logger: Logger
    /// Whole; empty where there is none, or where nobody wants it (`Responder.bodyTerms`).
    public var body = ByteBuffer()
    /// Who asks, once that is known (`Door`).
    var caller = Caller.local

    init(head: HTTPRequest, remoteAddress: Primitives.SocketAddress, logger: Logger) {
        self.head = head
        self.remoteAddress = remoteAddress
        self.logger = logger
    }

    /// Whether it came over TLS to this listener.
    var isEncrypted = false
    /// Whether it came over TLS, or to a proxy that says so.
    var isSecure: Bool { isEncrypted || headers[values: .forwardedProto].contains { $0.lowercased() == "https" } }

    /// What is to be done with the target.
    public var method: HTTPRequest.Method { head.method }
    /// The header fields, in the order in which they came.
    public var headers: HTTPFields { head.headerFields }

    /// The target up to its query, as it was sent.
    var path: Substring { (head.path ?? "").prefix { $0 != "?" } }

    /// The value of a parameter of the query, decoded where that is possible; the first of several.
    func parameter(_ name: String) -> String? {
        let query = (head.path ?? "").drop { $0 != "?" }.dropFirst()
        for pair in query.split(separator: "&") where pair.prefix(while: { $0 != "=" }) == name {
            let value = String(pair.drop { $0 != "=" }.dropFirst())
            return value.removingPercentEncoding ?? value
        }
        return nil
    }
}

/// A response: whole, so that its length is known before its head is sent, or a stream.
public struct Response: Sendable {
    /// The status line's code and phrase.
    public var status: HTTPResponse.Status
    /// The header fields; `Content-Length` is among them.
    public var headers: HTTPFields
    /// All of the body; for HEAD it is not sent.
    public var body: ByteBuffer
    /// Writes the body bit by bit, for as long as it likes; nil for a body that is whole.
    var stream: (@Sendable (BodyWriter) async throws -> Void)?

    init(status: HTTPResponse.Status, headers: HTTPFields = [:], body: ByteBuffer = ByteBuffer()) {
        self.status = status
        self.headers = headers
        self.headers[.contentLength] = "\(body.readableBytes)"
        self.body = body
    }

    /// A body without a length: it ends when `write` returns, or when the client is gone and a write throws.
    init(headers: HTTPFields, stream: @escaping @Sendable (BodyWriter) async throws -> Void) {
        status = .ok
        self.headers = headers
        body = ByteBuffer()
        self.stream = stream
    }

    /// Gives it another body, with its length.
    mutating func setBody(_ body: ByteBuffer) {
        self.body = body
        headers[.contentLength] = "\(body.readableBytes)"
    }

    var head: HTTPResponse { HTTPResponse(status: status, headerFields: headers) }
}

/// Takes the parts of a body that is streamed.
struct BodyWriter: Sendable {
    let outbound: NIOAsyncChannelOutboundWriter<HTTPResponsePart>

    /// Writes a part; returns when there is room for more.
    ///
    /// - Throws: where the client is gone, or reads nothing any more.
    func write(_ bytes: ByteBuffer) async throws { try await outbound.write(.body(bytes)) }
}

/// On what terms a body is read.
public struct BodyTerms: Sendable {
    /// How many bytes, at most.
    public var byteCount: Int
    /// Who sends it: large bodies are counted by sender (`HTTPLimits.largeBodiesPerSender`).
    public var sender: String

    /// Takes the fields as they are.
    public init(byteCount: Int, sender: String) { (self.byteCount, self.sender) = (byteCount, sender) }
}

/// What answers requests.
public protocol Responder: Sendable {
    /// How much of a request's body it wants to see; nil where it wants none, and answers without.
    ///
    /// Asked before any of it is read, so that nobody can fill our memory who may not.
    func bodyTerms(of request: Request) async -> BodyTerms?

    /// - Throws: what is no answer but our own fault: 500, and a line in the log.
    func respond(to request: Request) async throws -> Response

    /// Says why a body is not read, to whoever sent it.
    ///
    /// - Parameters:
    ///   - words: a sentence.
    ///   - status: that says the same to programs.
    /// - Returns: the answer, after which the connection is closed.
    func refusal(_ words: String, status: HTTPResponse.Status) -> Response
}

extension Responder {
    /// None, unless a responder says otherwise.
    public func bodyTerms(of request: Request) async -> BodyTerms? { nil }

    /// Plain text, unless a responder says otherwise.
    public func refusal(_ words: String, status: HTTPResponse.Status) -> Response {
        .text("\(words)\n", status: status)
    }
}

extension HTTPField.Name {
    /// What a proxy says of the connection to it, by common usage.
    fileprivate static let forwardedProto = Self("X-Forwarded-Proto")!
}
