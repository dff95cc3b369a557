// Who may ask the API, and how it says no.

import HTTPTypes
import Primitives
import TrackerLogic
import Wire

/// A refusal or failure that whoever asks is told about.
struct APIError: Error {
    var status: HTTPResponse.Status
    var words: String
    /// The methods that would do.
    var allowed: [String]
    /// Seconds after which it may be tried again.
    var retryAfter: Int64?

    init(_ status: HTTPResponse.Status, _ words: String, allowed: [String] = [], retryAfter: Int64? = nil) {
        self.status = status
        self.words = words
        self.allowed = allowed
        self.retryAfter = retryAfter
    }
}

/// Lets in those who are logged in, or know a token, or, where there are neither accounts nor a token, those on this
/// machine.
///
/// Without a log-in the API listens on loopback only, but every page in a browser on this machine can reach it: a page
/// whose host name its owner has pointed at 127.0.0.1 even reads the answers (DNS rebinding). Its requests give it
/// away, since they name that host. A page of another site can send a log-in's cookie along; browsers tell where a
/// request is from, and those from elsewhere change nothing.
struct Door: Sendable {
    let token: String?
    /// Nil where there are no accounts.
    let logIns: LogIns?
    /// Holds the cluster's name and the port, so that two consoles of one host do not log each other out.
    let cookieName: String
    /// Whether a log-in is wanted even while no account is known: others than this machine can ask, or a file names
    /// accounts that are not in force yet.
    let insists: Bool

    /// What is changed at this tracker alone.
    private static let ownPaths = ["/api/v1/node/", "/api/v1/faults", "/api/v1/settings", "/api/v1/recording"]
    static let unknown = APIError(
        .serviceUnavailable,
        "this tracker does not know yet who has an account here; try again in a moment, or ask another", retryAfter: 2)
    private static let behind = APIError(
        .serviceUnavailable,
        "this tracker follows no master now, or has not caught up, so it cannot tell whether anybody has an account by "
            + "now; try again in a moment, or ask another", retryAfter: 2)

    /// Whether whoever asks has to say who it is.
    var wantsLogIn: Bool {
        get async {
            if token != nil || insists { return true }
            return await logIns?.hasAccounts ?? false
        }
    }

    /// Who asks.
    ///
    /// - Throws: `APIError`, for who may not ask at all.
    func caller(of request: Request) async throws(APIError) -> Caller {
        if let header = request.headers[.authorization] {
            if let token, Self.matches(header, token) { return .token }
            if let id = Self.bearer(header), let caller = await logIns?.holder(of: id, isToken: true) { return caller }
            throw APIError(.unauthorized, "this token is not known here, or has expired")
        }
        let isChange = request.method != .get && request.method != .head
        if let id = cookie(of: request), let caller = await logIns?.holder(of: id, isToken: false) {
            if isChange { try Self.refuseStrangers(request) }
            return caller
        }
        guard await !wantsLogIn else {
            throw APIError(
                .unauthorized, "log in first, or send a token by the header «Authorization: Bearer TOKEN»")
        }
        guard Self.isLocal(request.head.authority) else {
            throw APIError(.forbidden, "ask for this by the address 127.0.0.1, [::1] or localhost")
        }
        if isChange {
            try Self.refuseStrangers(request)
            // What it is told now would reach the cluster when it has joined, where it may not be asked by anybody.
            guard await logIns?.knowsAccounts ?? true else { throw Self.unknown }
            // It may have missed the first account. What is this tracker's own is obeyed, or nobody could mend it.
            let isOwn = Self.ownPaths.contains { request.path.hasPrefix($0) }
            if !isOwn { guard await logIns?.isAbreast ?? true else { throw Self.behind } }
        }
        return .local
    }

    /// A page from anywhere may send its visitors' browsers here; they say where it is from.
    static func refuseStrangers(_ request: Request) throws(APIError) {
        guard isOwn(request) else {
            throw APIError(.forbidden, "a page of another site may not change anything here")
        }
    }

    // MARK: - Cookies

    private func cookie(of request: Request) -> String? {
        for line in request.headers[values: .cookie] {
            for pair in line.split(separator: ";") {
                let pair = pair.drop { $0 == " " }
                guard pair.hasPrefix("\(cookieName)=") else { continue }
                return String(pair.dropFirst(cookieName.count + 1))
            }
        }
        return nil
    }

    /// What a browser is to keep: no script sees it, and no other site sends it along.
    ///
    /// - Parameters:
    ///   - id: nil to take it back.
    ///   - seconds: how long the browser is to keep it.
    ///   - isSecure: whether the browser is to send it over TLS only.
    /// - Returns: the value of `Set-Cookie`.
    func setCookie(_ id: String?, seconds: UInt32, isSecure: Bool) -> String {
        "\(cookieName)=\(id ?? ""); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(id == nil ? 0 : seconds)"
            + (isSecure ? "; Secure" : "")
    }

    // MARK: - Where a request is from

    /// Whether a request comes from a page of this very server, or from no page at all.
    ///
    /// Browsers say where a page is from in one of three fields, and some leave one out. A form of another site can
    /// send three kinds of bodies without asking (the Fetch standard's safelist), which no program has a reason to
    /// send.
    static func isOwn(_ request: Request) -> Bool {
        let own = ["http://\(request.head.authority ?? "")", "https://\(request.head.authority ?? "")"]
        if let origin = request.headers[.origin], !own.contains(origin) { return false }
        if let site = request.headers[.fetchSite], site != "same-origin", site != "none" { return false }
        if let referer = request.headers[.referer],
            !own.contains(where: { referer == $0 || referer.hasPrefix($0 + "/") })
        {
            return false
        }
        guard let kind = request.headers[.contentType]?.prefix(while: { $0 != ";" }).lowercased() else { return true }
        return !["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"].contains(kind)
    }

    /// Whether a `Host` header names this machine.
    static func isLocal(_ authority: String?) -> Bool {
        guard let authority, let host = host(of: authority) else { return false }
        return host.lowercased() == "localhost" || SocketAddress(host: host, port: 0)?.isLoopback == true
    }

    /// The host of `host`, `host:port`, `[address]` or `[address]:port`; nil for anything else, such as
    /// `localhost:80@evil`.
    private static func host(of authority: String) -> Substring? {
        let isBracketed = authority.first == "["
        let end = isBracketed ? authority.firstIndex(of: "]") : authority.firstIndex { $0 == ":" } ?? authority.endIndex
        guard let end else { return nil }
        let port = isBracketed ? authority[authority.index(after: end)...] : authority[end...]
        guard port.isEmpty || port.first == ":" && port.dropFirst().utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return isBracketed ? authority[..<end].dropFirst() : authority[..<end]
    }

    // MARK: - Tokens

    private static let scheme = Array("bearer ".utf8)

    /// What follows `Bearer `; nil for another kind of header.
    private static func bearer(_ header: String) -> String? {
        let given = Array(header.utf8)
        guard given.count > scheme.count,
            zip(given, scheme).allSatisfy({ byte, expected in byte | 0x20 == expected | 0x20 })
        else { return nil }
        return String(decoding: given.dropFirst(scheme.count), as: UTF8.self)
    }

    /// Takes as long for a token that is nearly right as for one that is all wrong, so that time tells nothing of it.
    static func matches(_ header: String, _ token: String) -> Bool {
        guard let given = bearer(header) else { return false }
        let offered = Array(given.utf8)
        let expected = Array(token.utf8)
        var difference: UInt8 = offered.count == expected.count ? 0 : 1
        for (index, byte) in offered.enumerated() {
            difference |= byte ^ (expected.isEmpty ? 0 : expected[index % expected.count])
        }
        return difference == 0 && !expected.isEmpty
    }
}

extension HTTPField.Name {
    /// W3C Fetch Metadata: where the page stands from which a browser asks.
    fileprivate static let fetchSite = Self("Sec-Fetch-Site")!
}
