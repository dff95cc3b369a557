// The API's pages on sessions and tokens.

import HTTPTypes
import Logging
import NIOCore
import Primitives
import TrackerLogic
import Wire

extension APIServer {
    private struct LogInOrder: Decodable {
        var name: String
        var password: String
    }

    private struct TokenOrder: Decodable {
        var label: String
        var days: UInt32?
    }

    /// Routes that are open to those who have not logged in yet.
    func logInRoutes(_ logIns: LogIns, _ door: Door) -> [APIRoute] {
        [
            APIRoute.post("/api/v1/sessions") { request in
                try Door.refuseStrangers(request)
                let order = try request.json(LogInOrder.self)
                guard order.password.utf8.count <= PasswordHasher.maxPasswordByteCount,
                    order.name.utf8.count <= Account.maxNameByteCount
                else { throw Self.wrongLogIn }
                switch await logIns.logIn(order.name, order.password, from: request.remoteAddress) {
                case .wrong: throw Self.wrongLogIn
                case .unknown: throw Door.unknown
                case .busy:
                    throw APIError(
                        .serviceUnavailable, "too many log in just now; try again in a moment", retryAfter: 2)
                case .limited(let wait):
                    let seconds = max(wait.wholeSeconds, 1)
                    throw APIError(
                        .tooManyRequests, "too many attempts from this address; try again in \(seconds) s",
                        retryAfter: seconds)
                case .refused(let reason): throw APIError(.serviceUnavailable, reason, retryAfter: 1)
                case .loggedIn(let id, let caller, let isLocal):
                    request.logger.notice("\(caller.name) has logged in at the console")
                    var response = try Response.json(
                        SessionDocument(caller, isLocal: isLocal), status: .created)
                    response.headers[.setCookie] = door.setCookie(
                        id, seconds: LogIns.span, isSecure: request.isSecure)
                    return response
                }
            }.open()
        ]
    }

    private static var wrongLogIn: APIError { APIError(.unauthorized, "name or password is wrong") }

    func sessionRoutes(_ logIns: LogIns, _ door: Door, _ provider: any AccountProvider) -> [APIRoute] {
        [
            .get("/api/v1/sessions") { request in
                let accounts = try await Self.known(provider)
                let sessions = accounts.sessions(of: Array(request.caller.name.utf8))
                return try .json(SessionsDocument(sessions, askedBy: request.caller))
            },
            APIRoute(.delete, "/api/v1/sessions/current", bodyByteCount: APIRoute.jsonByteCount) { request, _ in
                var problem: String?
                if let key = request.caller.session { problem = await logIns.logOut(key) }
                var response = try Response.json(DoneDocument())
                if let problem {
                    response = try .json(
                        ErrorDocument(error: "the session goes on, though not in this browser: \(problem)"),
                        status: .serviceUnavailable)
                }
                // The browser forgets it in any case.
                response.headers[.setCookie] = door.setCookie(nil, seconds: 0, isSecure: request.isSecure)
                return response
            }.needing(.viewer),
            APIRoute.post("/api/v1/sessions/tokens") { request in
                guard request.caller.session != nil else {
                    throw APIError(.conflict, "a token belongs to an account: log in first")
                }
                let order = try request.json(TokenOrder.self)
                let days = order.days ?? 365
                guard (1...3650).contains(days), (1...Session.maxLabelByteCount).contains(order.label.utf8.count) else {
                    throw APIError(.badRequest, "a token has a label of 1 to 64 bytes, and is good for 1 to 3650 days")
                }
                let (token, outcome) = await logIns.makeToken(
                    order.label, for: request.caller.name, seconds: days * 86_400)
                _ = try Self.index(outcome, was: "the account")
                return try .json(TokenDocument(token: token, label: order.label, days: days), status: .created)
            }.needing(.viewer),
        ]
    }

    // MARK: - Of one account

    /// The sessions and tokens of an account, and the end of one of them: of the own for everybody, of all for admins.
    func keptSessionRoutes(_ logIns: LogIns, _ provider: any AccountProvider) -> [APIRoute] {
        [
            APIRoute(.get, "/api/v1/users/{name}/sessions") { request, values in
                let sessions = try await Self.sessions(of: values["name"], for: request.caller, provider)
                return try .json(SessionsDocument(sessions, askedBy: request.caller))
            },
            APIRoute(.delete, "/api/v1/users/{name}/sessions/{id}", bodyByteCount: APIRoute.jsonByteCount) {
                request, values in
                let (name, id) = (values["name"], values["id"])
                let sessions = try await Self.sessions(of: name, for: request.caller, provider)
                guard let session = sessions.first(where: { "\($0.session.key)" == id })?.session else {
                    throw APIError(
                        .notFound, "the account has no such session or token; it may have ended meanwhile")
                }
                if let problem = await logIns.logOut(session.key) {
                    throw APIError(.serviceUnavailable, "it goes on: \(problem)", retryAfter: 2)
                }
                let what = session.isToken ? "the token \(LogIns.text(session.label).debugDescription)" : "a session"
                request.logger.notice("\(request.caller.name) has ended \(what) of \(name.debugDescription)")
                return try .json(DoneDocument())
            }.needing(.viewer),
        ]
    }

    /// The sessions of an account, for itself and for admins.
    private static func sessions(
        of name: String, for caller: Caller, _ provider: any AccountProvider
    ) async throws(APIError) -> [KeptSession] {
        // Asked first, so that nobody learns which accounts there are.
        guard caller.role == .admin || caller.name == name else {
            throw APIError(.forbidden, "only an admin may look at the sessions of others, and end them")
        }
        let accounts = try await known(provider)
        guard accounts.find(Array(name.utf8)) != nil else {
            throw APIError(.notFound, "there is no account of this name")
        }
        return accounts.sessions(of: Array(name.utf8))
    }
}

struct SessionDocument: Encodable {
    var name: String
    var role: String
    /// Whether it is good at this tracker alone, since nothing can be decided now.
    var isLocal: Bool

    init(_ caller: Caller, isLocal: Bool) {
        (name, role, self.isLocal) = (caller.name, caller.role.word, isLocal)
    }
}

struct SessionsDocument: Encodable {
    struct Session: Encodable {
        var id: String
        var label: String
        var isToken: Bool
        var expires: String
        /// Whether it is the one that asks.
        var isCurrent: Bool
    }

    var sessions: [Session]

    init(_ sessions: [KeptSession], askedBy caller: Caller) {
        self.sessions = sessions.map { kept in
            Session(
                id: "\(kept.session.key)", label: LogIns.text(kept.session.label), isToken: kept.session.isToken,
                expires: instantText(WallTime(milliseconds: Int64(kept.session.expires) * 1000)),
                isCurrent: kept.session.key == caller.session)
        }
    }
}

struct TokenDocument: Encodable {
    /// Shown once.
    var token: String
    var label: String
    var days: UInt32
}
