// Accounts of the console.

import Foundation

extension ConsoleClient {
    /// An account of the console.
    public struct Account: Sendable, Hashable, Codable {
        /// Its name.
        public var name: String
        /// `viewer`, `uploader`, `operator` or `admin`.
        public var role: String
        /// `file` or `console`.
        public var origin: String
        /// Whether it lets clients announce on a private tracker.
        public var hasPasskey: Bool
    }

    /// The passkey of an account.
    public struct Passkey: Sendable, Hashable, Codable {
        /// Of the account.
        public var name: String
        /// Nil where it has none now.
        public var passkey: String?
        /// Announce URLs with the passkey, as far as the trackers tell theirs.
        public var announce: [String]
    }

    /// All accounts.
    public func users() async throws(TrackerClientError) -> [Account] {
        struct Answer: Decodable { var users: [Account] }
        let answer: Answer = try decode(
            try await ask("GET", "/api/v1/users", within: ConsoleClient.orderTimeout), "the accounts of a console")
        return answer.users
    }

    /// Makes an account, or changes it.
    ///
    /// - Parameters:
    ///   - name: of letters, digits and a few signs.
    ///   - role: nil to leave it.
    ///   - password: a new one.
    ///   - mustBeNew: whether it is an error that there is one of this name.
    /// - Throws: `.refused` with the console's words, for example where the name is taken.
    public func putUser(
        _ name: String, role: String?, password: String, mustBeNew: Bool
    ) async throws(TrackerClientError) {
        struct Order: Encodable {
            var role: String?
            var password: String
        }
        guard let body = try? JSONEncoder().encode(Order(role: role, password: password)) else {
            preconditionFailure("an order is numbers and text, which JSON can say")
        }
        let headers = mustBeNew ? [("If-None-Match", "*")] : []
        _ = try await ask(
            "PUT", "/api/v1/users/\(Self.escaped(name))", body: Array(body), headers: headers,
            within: ConsoleClient.orderTimeout)
    }

    /// Removes an account.
    public func removeUser(_ name: String) async throws(TrackerClientError) {
        _ = try await ask(
            "DELETE", "/api/v1/users/\(Self.escaped(name))", within: ConsoleClient.orderTimeout)
    }

    /// Gives an account a new passkey, in the place of the one that it may have, or takes it away.
    ///
    /// - Returns: the new one.
    /// - Throws: `.refused` with the console's words.
    public func setPasskey(of name: String, isRemoved: Bool) async throws(TrackerClientError) -> Passkey {
        try decode(
            try await ask(
                isRemoved ? "DELETE" : "PUT", "/api/v1/users/\(Self.escaped(name))/passkey",
                within: ConsoleClient.orderTimeout), "a passkey")
    }

    private static func escaped(_ name: String) -> String {
        name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
    }
}
