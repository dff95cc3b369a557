// Who may ask the API, and how it says no.

import HTTPTypes
import Primitives

/// A refusal or failure that whoever asks is told about.
struct APIError: Error {
    var status: HTTPResponse.Status
    var words: String
    /// The methods that would do.
    var allowed: [String]

    init(_ status: HTTPResponse.Status, _ words: String, allowed: [String] = []) {
        self.status = status
        self.words = words
        self.allowed = allowed
    }
}

/// Lets in those who know the token or, where there is none, those on this machine.
///
/// Without a token the API listens on loopback only, but every page in a browser on this machine can reach it: a page
/// whose host name its owner has pointed at 127.0.0.1 even reads the answers (DNS rebinding). Its requests give it
/// away, since they name that host.
struct APIGuard: Sendable {
    let token: String?

    /// - Throws: `APIError`, for who may not ask this.
    func check(_ request: Request) throws(APIError) {
        guard request.path != "/healthz", !ConsolePages.contains(request.path) else { return }
        if let token {
            guard Self.matches(request.headers[.authorization], token) else {
                throw APIError(.unauthorized, "this needs the token: send the header «Authorization: Bearer TOKEN»")
            }
        } else {
            guard Self.isLocal(request.head.authority) else {
                throw APIError(.forbidden, "ask for this by the address 127.0.0.1, [::1] or localhost")
            }
            // A page from anywhere may send its visitors' browsers here; they say where it is from.
            if request.method != .get, request.method != .head, !Self.isOwn(request) {
                throw APIError(.forbidden, "a page of another site may not change anything here")
            }
        }
    }

    /// Whether a request comes from a page of this very server, or from no page at all.
    ///
    /// Browsers say where a page is from in one of three fields, and some leave one out. A form of another site can
    /// send three kinds of bodies without asking (the Fetch standard's safelist), which no program has a reason to
    /// send.
    static func isOwn(_ request: Request) -> Bool {
        let own = "http://\(request.head.authority ?? "")"
        if let origin = request.headers[.origin], origin != own { return false }
        if let site = request.headers[.fetchSite], site != "same-origin", site != "none" { return false }
        if let referer = request.headers[.referer], referer != own, !referer.hasPrefix(own + "/") { return false }
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

    /// Takes as long for a token that is nearly right as for one that is all wrong, so that time tells nothing of it.
    static func matches(_ header: String?, _ token: String) -> Bool {
        let given = Array((header ?? "").utf8)
        let scheme = Array("bearer ".utf8)
        guard given.count > scheme.count,
            zip(given, scheme).allSatisfy({ byte, expected in byte | 0x20 == expected | 0x20 })
        else { return false }
        let offered = given.dropFirst(scheme.count)
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
