// A request and its response, as the code that answers sees them.

import Foundation
import HTTPTypes
import Logging
import NIOCore
import Primitives

/// A request without its body, which is never read.
public struct Request: Sendable {
    /// The method, the target and the header fields, as they came.
    public let head: HTTPRequest
    /// The other end of the connection.
    public let remoteAddress: Primitives.SocketAddress
    /// For what only the operator is to hear of it.
    public let logger: Logger

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

/// A response that is whole: its length is known before its head is sent.
public struct Response: Sendable {
    /// The status line's code and phrase.
    public var status: HTTPResponse.Status
    /// The header fields; `Content-Length` is among them.
    public var headers: HTTPFields
    /// All of the body; for HEAD it is not sent.
    public var body: ByteBuffer

    init(status: HTTPResponse.Status, headers: HTTPFields = [:], body: ByteBuffer = ByteBuffer()) {
        self.status = status
        self.headers = headers
        self.headers[.contentLength] = "\(body.readableBytes)"
        self.body = body
    }

    var head: HTTPResponse { HTTPResponse(status: status, headerFields: headers) }
}

/// What answers requests.
public protocol Responder: Sendable {
    /// - Throws: what is no answer but our own fault: 500, and a line in the log.
    func respond(to request: Request) async throws -> Response
}
