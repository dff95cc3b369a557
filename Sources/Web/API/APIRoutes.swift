// From method and path to an answer, and what all answers of the API have in common.

import Foundation
import HTTPTypes
import Logging
import NIOCore
import Wire

/// What stands in the place of a path's `{names}`.
struct PathValues: Sendable {
    var values: [String: String] = [:]

    subscript(name: String) -> String { values[name] ?? "" }
}

/// One path of the API, by one method.
struct APIRoute: Sendable {
    /// Bytes of a body of JSON.
    static let jsonByteCount = 16_384

    let method: HTTPRequest.Method
    let path: String
    /// Bytes of a body that it takes; nil where it takes none.
    let bodyByteCount: Int?
    /// What whoever asks has to be at least; nil where anybody may.
    private(set) var role: AccountRole?
    let answer: @Sendable (Request, PathValues) async throws -> Response

    private let parts: [Substring]

    init(
        _ method: HTTPRequest.Method, _ path: String, bodyByteCount: Int? = nil,
        _ answer: @escaping @Sendable (Request, PathValues) async throws -> Response
    ) {
        self.method = method
        self.path = path
        self.bodyByteCount = bodyByteCount
        self.answer = answer
        role = method == .get ? .viewer : .operator
        parts = path.split(separator: "/")
    }

    static func get(_ path: String, _ answer: @escaping @Sendable (Request) async throws -> Response) -> APIRoute {
        APIRoute(.get, path) { request, _ in try await answer(request) }
    }

    /// One whose body, if there is any, is JSON.
    static func post(_ path: String, _ answer: @escaping @Sendable (Request) async throws -> Response) -> APIRoute {
        APIRoute(.post, path, bodyByteCount: jsonByteCount) { request, _ in try await answer(request) }
    }

    /// The same for another role than looking (GET) or steering (all else) needs.
    func needing(_ role: AccountRole) -> APIRoute {
        var route = self
        route.role = role
        return route
    }

    /// The same, for anybody.
    func open() -> APIRoute {
        var route = self
        route.role = nil
        return route
    }

    /// What stands for the names of this path in a request's; nil where the request is for another.
    func match(_ path: [Substring]) -> PathValues? {
        guard path.count == parts.count else { return nil }
        var found = PathValues()
        for (part, given) in zip(parts, path) {
            if part.first == "{" {
                found.values[String(part.dropFirst().dropLast())] = given.removingPercentEncoding ?? String(given)
            } else if part != given {
                return nil
            }
        }
        return found
    }
}

/// Lets in who may ask, finds the route, and turns whatever goes wrong into JSON.
struct APIResponder: Responder {
    let routes: [APIRoute]
    let door: Door

    /// Nothing is read of those who may not ask.
    func bodyTerms(of request: Request) async -> BodyTerms? {
        guard let (route, _) = try? route(for: request), let caller = try? await admit(request, to: route) else {
            return nil
        }
        return route.bodyByteCount.map { BodyTerms(byteCount: $0, sender: caller.name) }
    }

    func respond(to request: Request) async throws -> Response {
        var response: Response
        do {
            let (route, values) = try await route(admitting: request)
            var known = request
            known.caller = try await admit(request, to: route)
            response = try await route.answer(known, values)
        } catch let error as APIError {
            response = try .json(ErrorDocument(error: error.words), status: error.status)
            if error.status == .unauthorized { response.headers[.wwwAuthenticate] = "Bearer" }
            if let seconds = error.retryAfter { response.headers[.retryAfter] = "\(seconds)" }
            if !error.allowed.isEmpty { response.headers[.allow] = error.allowed.joined(separator: ", ") }
        } catch {
            // The reason may name files or hold other people's data: it is for the log.
            request.logger.error(
                "an API request failed", metadata: ["error": "\(error)", "path": "\(request.path)"])
            response = try .json(ErrorDocument(error: "internal error, see the log"), status: .internalServerError)
        }
        return finished(response)
    }

    func refusal(_ words: String, status: HTTPResponse.Status) -> Response {
        finished((try? .json(ErrorDocument(error: words), status: status)) ?? .text("\(words)\n", status: status))
    }

    /// With what all answers have in common.
    private func finished(_ response: Response) -> Response {
        var response = response
        if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
        // What is sent as JSON is not to be taken for a page.
        response.headers[.xContentTypeOptions] = "nosniff"
        return response
    }

    /// Strangers learn nothing of which paths there are.
    private func route(admitting request: Request) async throws(APIError) -> (APIRoute, PathValues) {
        do {
            return try route(for: request)
        } catch {
            _ = try await door.caller(of: request)
            throw error
        }
    }

    /// Who asks, where it may ask this.
    private func admit(_ request: Request, to route: APIRoute) async throws(APIError) -> Caller {
        guard let role = route.role else { return .local }
        let caller = try await door.caller(of: request)
        guard caller.role >= role else {
            throw APIError(
                .forbidden,
                "this is for the role \(role.word) and above; you are logged in as \(caller.name), "
                    + "\(caller.role.oneOfThem)")
        }
        return caller
    }

    /// - Throws: `APIError`: 404 where the path has no route, 405 where it has none by this method.
    private func route(for request: Request) throws(APIError) -> (APIRoute, PathValues) {
        let path = request.path.split(separator: "/")
        let here = routes.compactMap { route in route.match(path).map { (route, $0) } }
        guard !here.isEmpty else {
            throw APIError(.notFound, "there is nothing at this path; see /api/v1/openapi.yaml")
        }
        // HEAD is answered as GET; the connection leaves the body out.
        let method = request.method == .head ? .get : request.method
        if let found = here.first(where: { $0.0.method == method }) { return found }
        let allowed = here.flatMap { $0.0.method == .get ? ["GET", "HEAD"] : [$0.0.method.rawValue] }
        throw APIError(
            .methodNotAllowed, "this path understands \(allowed.joined(separator: " and ")) only", allowed: allowed)
    }
}

extension Request {
    /// The body as JSON; without one, as an empty object.
    ///
    /// - Throws: `APIError`: 400 where it is no JSON, or lacks something; 415 where it says that it is something else.
    func json<Value: Decodable>(_ type: Value.Type) throws(APIError) -> Value {
        if let kind = headers[.contentType], body.readableBytes > 0,
            kind.prefix(while: { $0 != ";" }).lowercased().filter({ $0 != " " }) != "application/json"
        {
            throw APIError(.unsupportedMediaType, "the body has to be JSON: send Content-Type: application/json")
        }
        let bytes = body.readableBytes == 0 ? Data("{}".utf8) : Data(body.readableBytesView)
        do {
            return try JSONDecoder().decode(type, from: bytes)
        } catch let error as DecodingError {
            throw APIError(.badRequest, Self.words(error))
        } catch {
            throw APIError(.badRequest, "the body is not JSON")
        }
    }

    private static func words(_ error: DecodingError) -> String {
        func name(_ path: [any CodingKey]) -> String { path.map(\.stringValue).joined(separator: ".") }
        return switch error {
        case .keyNotFound(let key, let context): "the body lacks \"\(name(context.codingPath + [key]))\""
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            "\"\(name(context.codingPath))\" in the body is not what it has to be"
        case .dataCorrupted(let context) where !context.codingPath.isEmpty:
            "\"\(name(context.codingPath))\" in the body is not what it has to be"
        case .dataCorrupted: "the body is not JSON"
        @unknown default: "the body is not JSON"
        }
    }

    /// The number of a parameter of the query.
    func number(_ name: String, in range: ClosedRange<Int>, default standard: Int) throws(APIError) -> Int {
        guard let text = parameter(name) else { return standard }
        guard let value = Int(text), range.contains(value) else {
            throw APIError(
                .badRequest, "\(name) has to be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// One of the values that a parameter of the query may have.
    func choice<Choice: RawRepresentable & CaseIterable>(
        _ name: String, default standard: Choice
    ) throws(APIError) -> Choice where Choice.RawValue == String {
        guard let text = parameter(name) else { return standard }
        guard let value = Choice(rawValue: text) else {
            let known = Choice.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIError(.badRequest, "\(name) has to be one of \(known)")
        }
        return value
    }
}
