// The API's pages on the passkeys of accounts.

import HTTPTypes
import Logging
import NIOCore
import Primitives
import TrackerLogic
import Wire

extension APIServer {
    /// Bytes of chance in a passkey: 128 bits, which nobody guesses.
    private static let passkeyByteCount = 16

    /// Everybody gives himself a passkey, renews it, and takes it away; an admin does so for all.
    func passkeyRoutes(_ provider: any AccountProvider) -> [APIRoute] {
        let path = "/api/v1/users/{name}/passkey"
        return [
            APIRoute(.get, path) { request, values in
                let kept = try await Self.account(values["name"], for: request, provider)
                guard kept.account.passkey != nil else {
                    throw APIError(.notFound, "the account has no passkey: make one with PUT")
                }
                return tagged(try .json(await passkeyDocument(kept.account)), kept.changedAt)
            }.needing(.viewer),
            APIRoute(.put, path, bodyByteCount: APIRoute.jsonByteCount) { request, values in
                try await setPasskey(Self.newPasskey(), of: values["name"], request, provider)
            }.needing(.viewer),
            APIRoute(.delete, path, bodyByteCount: APIRoute.jsonByteCount) { request, values in
                try await setPasskey(nil, of: values["name"], request, provider)
            }.needing(.viewer),
        ]
    }

    /// The account whose passkey somebody asks for, who may.
    private static func account(
        _ name: String, for request: Request, _ provider: any AccountProvider
    ) async throws(APIError) -> KeptAccount {
        // Asked first, so that nobody learns which accounts there are.
        guard request.caller.role == .admin || request.caller.session != nil && name == request.caller.name else {
            throw APIError(.forbidden, "only an admin may see and change the passkeys of others")
        }
        guard let kept = try await known(provider, to: request.caller).find(Array(name.utf8)) else {
            throw APIError(.notFound, "there is no account of this name")
        }
        return kept
    }

    private func setPasskey(
        _ passkey: [UInt8]?, of name: String, _ request: Request, _ provider: any AccountProvider
    ) async throws -> Response {
        let kept = try await Self.account(name, for: request, provider)
        var account = kept.account
        account.passkey = passkey
        let asked = try Self.expectation(of: request)
        let expected = asked == .any ? .asOf(kept.changedAt) : asked
        let outcome = await provider.change(.putAccount(account, expected: expected))
        let index = try Self.index(outcome, was: "the account")
        let verb = passkey == nil ? "taken away" : "made"
        request.logger.notice("\(request.caller.name) has \(verb) the passkey of \(name.debugDescription)")
        return tagged(try .json(await passkeyDocument(account)), index)
    }

    private static func newPasskey() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        let digits = Array("0123456789abcdef".utf8)
        return (0..<2 * passkeyByteCount).map { _ in digits[Int.random(in: 0..<16, using: &random)] }
    }

    private func passkeyDocument(_ account: Account) async -> PasskeyDocument {
        let urls = await clusterReport()?.announceURLs ?? []
        return PasskeyDocument(account, announceURLs: urls)
    }
}

extension ClusterReport {
    /// Where clients reach the trackers of the cluster, as far as they say so: URLs of announces.
    public var announceURLs: [String] {
        status.trackers.compactMap { tracker in
            let told = tracker.life == status.life ? own : tracker.report?.report
            guard let clients = told.map({ "\($0.clients)" }), !clients.isEmpty else { return nil }
            return clients.contains("://") ? clients : "udp://\(clients)/announce"
        }
    }
}

struct PasskeyDocument: Encodable {
    var name: String
    /// Null where there is none.
    var passkey: String?
    /// With the passkey, for the tracker's clients; none where there is none.
    var announce: [String]

    init(_ account: Account, announceURLs: [String]) {
        name = LogIns.text(account.name)
        passkey = account.passkey.map { LogIns.text($0) }
        announce = passkey.map { passkey in announceURLs.map { Self.with(passkey, in: $0) } } ?? []
    }

    /// `udp://host:6969/announce` as `udp://host:6969/PASSKEY/announce`.
    static func with(_ passkey: String, in url: String) -> String {
        let word = "/announce"
        guard url.hasSuffix(word) else { return url + (url.contains("?") ? "&" : "?") + "passkey=\(passkey)" }
        return url.dropLast(word.count) + "/\(passkey)\(word)"
    }

    enum CodingKeys: CodingKey {
        case name, passkey, announce
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(passkey, forKey: .passkey)
        try container.encode(announce, forKey: .announce)
    }
}
