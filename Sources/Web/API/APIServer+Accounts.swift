// The API's pages on accounts.

import HTTPTypes
import Logging
import NIOCore
import Primitives
import TrackerLogic
import Wire

extension APIServer {
    // MARK: - Accounts

    private struct UserOrder: Decodable {
        var role: String?
        var password: String?
    }

    func userRoutes(_ logIns: LogIns, _ provider: any AccountProvider) -> [APIRoute] {
        [
            .get("/api/v1/users") { _ in
                try .json(UsersDocument(try await Self.known(provider)))
            }.needing(.admin),
            APIRoute(.put, "/api/v1/users/{name}", bodyByteCount: APIRoute.jsonByteCount) { request, values in
                try await put(values["name"], request, logIns, provider)
            }.needing(.viewer),
            APIRoute(.delete, "/api/v1/users/{name}", bodyByteCount: APIRoute.jsonByteCount) { request, values in
                let name = values["name"]
                guard try await Self.known(provider, to: request.caller).find(Array(name.utf8)) != nil else {
                    throw APIError(.notFound, "there is no account of this name")
                }
                let outcome = await provider.change(
                    .removeAccount(name: Array(name.utf8), expected: try Self.expectation(of: request)))
                _ = try Self.index(outcome, was: "the account")
                await logIns.forget(name)
                request.logger.notice("\(request.caller.name) has removed the account \(name.debugDescription)")
                return try .json(DoneDocument())
            }.needing(.admin),
        ]
    }

    /// Makes an account or changes it; everybody may change the own password.
    private func put(
        _ name: String, _ request: Request, _ logIns: LogIns, _ provider: any AccountProvider
    ) async throws -> Response {
        let order = try request.json(UserOrder.self)
        let accounts = try await Self.known(provider, to: request.caller)
        let known = accounts.find(Array(name.utf8))
        // Asked first, so that nobody learns which accounts there are.
        let isOwn = name == request.caller.name && known != nil
        guard request.caller.role == .admin || isOwn else { throw Self.forAdmins }
        let role: AccountRole
        if let text = order.role {
            guard let found = AccountRole(word: text) else {
                throw APIError(
                    .badRequest, "role has to be one of \(AccountRole.allCases.map(\.word).joined(separator: ", "))")
            }
            role = found
        } else {
            guard let known else { throw APIError(.badRequest, "a new account needs a \"role\"") }
            role = known.account.role
        }
        guard request.caller.role == .admin || role == known?.account.role else { throw Self.forAdmins }
        guard role == .admin || accounts.adminCount > 0 else {
            throw APIError(.conflict, "the first account has to be an admin: nobody else could make another")
        }
        guard Account.isName(name) else { throw APIError(.badRequest, Account.nameRule) }
        var account = Account(
            name: Array(name.utf8), role: role, origin: .console, password: known?.account.password,
            passkey: known?.account.passkey)
        if let password = order.password {
            guard PasswordHasher.isAcceptable(password) else {
                throw APIError(.badRequest, PasswordHasher.passwordRule)
            }
            guard let hash = await logIns.hash(password) else {
                throw APIError(.serviceUnavailable, "too many log in just now; try again in a moment", retryAfter: 2)
            }
            account.password = hash
        } else if known == nil {
            throw APIError(.badRequest, "a new account needs a \"password\"")
        }
        // While the password was hashed, an admin may have taken the account or the role away: neither comes back. Or
        // somebody has made the first account.
        let now = try await Self.known(provider, to: request.caller)
        if request.caller.session != nil {
            let own = now.find(Array(request.caller.name.utf8))
            guard own?.account.role == request.caller.role else { throw Self.forAdmins }
        }
        var expected = try Self.expectation(of: request)
        if expected == .any, let known { expected = .asOf(known.changedAt) }
        if request.caller == .local {
            if case .asOf = expected { throw APIError(.preconditionFailed, "the account is not there any more") }
            // Which the log judges, for another tracker may know more.
            expected = .noAccounts
        }
        let outcome = await provider.change(.putAccount(account, expected: expected))
        let index = try Self.index(outcome, was: "the account")
        if order.password != nil { await logIns.forget(name) }
        request.logger.notice("\(request.caller.name) has changed the account \(name.debugDescription)")
        var response = try Response.json(
            UserDocument(account, changedAt: index),
            status: known == nil ? .created : .ok)
        response.headers[.eTag] = "\"\(index)\""
        return response
    }

    private static var forAdmins: APIError {
        APIError(.forbidden, "only an admin may make accounts and change those of others")
    }

    // MARK: - What changes have in common

    static func known(_ provider: any AccountProvider) async throws(APIError) -> Accounts {
        guard let accounts = await provider.accounts() else {
            throw APIError(.serviceUnavailable, "the tracker's logic does not answer")
        }
        return accounts
    }

    /// The same, to somebody who changes them: whoever was let in because there were none has to log in by now.
    static func known(_ provider: any AccountProvider, to caller: Caller) async throws(APIError) -> Accounts {
        let accounts = try await known(provider)
        guard caller != .local || accounts.count == 0 else {
            throw APIError(.unauthorized, "log in first: there are accounts by now")
        }
        return accounts
    }

    /// `If-Match` and `If-None-Match` as an expectation: tags are indices of entries.
    static func expectation(of request: Request) throws(APIError) -> Expectation {
        if let none = request.headers[.ifNoneMatch] {
            guard none == "*" else { throw APIError(.badRequest, "If-None-Match can be * only") }
            return .nothing
        }
        guard let match = request.headers[.ifMatch], match != "*" else { return .any }
        let digits = match.filter { $0 != "\"" }
        guard let index = UInt64(digits), index > 0 else {
            throw APIError(.badRequest, "If-Match has to be the ETag of what is to be changed")
        }
        return .asOf(index)
    }

    /// The index of the entry that made a change.
    ///
    /// - Throws: `APIError`: 412 with what is there now, 409 where it is forbidden, 503 where nothing can be decided.
    static func index(_ outcome: ChangeOutcome, was what: String) throws(APIError) -> UInt64 {
        switch outcome {
        case .done(let index): return index
        case .outdated(0): throw APIError(.preconditionFailed, "\(what) is not there any more")
        case .outdated(let index):
            throw APIError(
                .preconditionFailed,
                "\(what) has been changed meanwhile, or is there already: its ETag is \"\(index)\" now")
        case .refused(let reason): throw APIError(.conflict, reason)
        case .partWanted: throw APIError(.serviceUnavailable, "the upload was interrupted; try again")
        case .dropped(let reason): throw APIError(.serviceUnavailable, reason)
        }
    }
}

extension AccountRole {
    /// As the API has it.
    var word: String {
        switch self {
        case .viewer: "viewer"
        case .uploader: "uploader"
        case .operator: "operator"
        case .admin: "admin"
        }
    }

    /// As a sentence has somebody with this role.
    var oneOfThem: String {
        switch self {
        case .viewer: "a viewer"
        case .uploader: "an uploader"
        case .operator: "an operator"
        case .admin: "an admin"
        }
    }
}

struct DoneDocument: Encodable {
    var isDone = true
}

struct UserDocument: Encodable {
    var name: String
    var role: String
    var origin: String
    /// Whether it lets clients announce on a private tracker.
    var hasPasskey: Bool
    /// The number in its ETag.
    var changedAt: UInt64

    init(_ account: Account, changedAt: UInt64) {
        name = LogIns.text(account.name)
        (role, origin) = (account.role.word, account.origin.word)
        hasPasskey = account.passkey != nil
        self.changedAt = changedAt
    }
}

struct UsersDocument: Encodable {
    var users: [UserDocument]

    init(_ accounts: Accounts) {
        users = accounts.all.map { UserDocument($0.account, changedAt: $0.changedAt) }
    }
}

/// Who the reader of a state is.
struct LoginDocument: Encodable {
    struct User: Encodable {
        var name: String
        var role: String
    }

    var required: Bool
    /// Left out where nobody is logged in.
    var user: User?

    init(required: Bool, _ caller: Caller) {
        self.required = required
        user = required ? User(name: caller.name, role: caller.role.word) : nil
    }
}
