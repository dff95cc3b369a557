// From method and path to an answer, and what all answers of the API have in common.

import HTTPTypes
import Logging

/// One path of the API, by one method.
struct APIRoute: Sendable {
    let method: HTTPRequest.Method
    let path: String
    let answer: @Sendable (Request) async throws -> Response

    static func get(_ path: String, _ answer: @escaping @Sendable (Request) async throws -> Response) -> APIRoute {
        APIRoute(method: .get, path: path, answer: answer)
    }

    static func post(_ path: String, _ answer: @escaping @Sendable (Request) async throws -> Response) -> APIRoute {
        APIRoute(method: .post, path: path, answer: answer)
    }
}

/// Lets in who may ask, finds the route, and turns whatever goes wrong into JSON.
struct APIResponder: Responder {
    let routes: [APIRoute]
    let door: APIGuard

    func respond(to request: Request) async throws -> Response {
        var response: Response
        do {
            try door.check(request)
            response = try await route(for: request).answer(request)
        } catch let error as APIError {
            response = try .json(ErrorDocument(error: error.words), status: error.status)
            if error.status == .unauthorized { response.headers[.wwwAuthenticate] = "Bearer" }
            if !error.allowed.isEmpty { response.headers[.allow] = error.allowed.joined(separator: ", ") }
        } catch {
            // The reason may name files or hold other people's data: it is for the log.
            request.logger.error(
                "an API request failed", metadata: ["error": "\(error)", "path": "\(request.path)"])
            response = try .json(ErrorDocument(error: "internal error, see the log"), status: .internalServerError)
        }
        response.headers[.cacheControl] = "no-store"
        return response
    }

    /// - Throws: `APIError`: 404 where the path has no route, 405 where it has none by this method.
    private func route(for request: Request) throws(APIError) -> APIRoute {
        let path = "/" + request.path.split(separator: "/").joined(separator: "/")
        let here = routes.filter { $0.path == path }
        guard !here.isEmpty else {
            throw APIError(.notFound, "there is nothing at this path; see /api/openapi.yaml")
        }
        // HEAD is answered as GET; the connection leaves the body out.
        let method = request.method == .head ? .get : request.method
        if let route = here.first(where: { $0.method == method }) { return route }
        let allowed = here.flatMap { $0.method == .get ? ["GET", "HEAD"] : [$0.method.rawValue] }
        throw APIError(
            .methodNotAllowed, "this path understands \(allowed.joined(separator: " and ")) only", allowed: allowed)
    }
}
