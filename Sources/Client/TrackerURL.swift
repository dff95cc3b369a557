// The address of a tracker, as .torrent files and people write it: `udp://host:port/announce`, `http://host/announce`.

import Primitives

/// The address of a tracker, as .torrent files and people write it: `udp://host:port/announce`, `http://host/announce`.
public struct TrackerURL: Sendable, Hashable {
    /// The protocols in which a tracker can be asked.
    public enum Scheme: String, Sendable, Hashable {
        case udp
        case http
    }

    /// Which protocol is spoken.
    public var scheme: Scheme
    /// A name or an address, without brackets.
    public var host: String
    /// As written, else 6969 over UDP and 80 over HTTP; never 0.
    public var port: UInt16
    /// Path and query, with the slash in front, such as `/PASSKEY/announce?x=y`; empty where there is none.
    public var path: String

    /// The port of a UDP tracker whose URL names none.
    public static let defaultUDPPort: UInt16 = 6969
    /// No sensible URL is longer.
    public static let maxByteCount = 2048

    /// Reads a tracker's URL.
    ///
    /// - Throws: `TrackerURLError`, in words for whoever wrote it.
    public init(_ text: some StringProtocol) throws(TrackerURLError) {
        let shown = quoted(text)
        guard text.utf8.count <= Self.maxByteCount, text.utf8.allSatisfy({ (33...126).contains($0) }) else {
            throw TrackerURLError(
                "\(shown) is not a URL: write at most \(Self.maxByteCount) printable characters without blanks")
        }
        guard let mark = text.firstRange(of: "://") else {
            throw TrackerURLError("\(shown) has no scheme; write for example udp://\(text.prefix(60))")
        }
        let name = text[..<mark.lowerBound].lowercased()
        guard let scheme = Scheme(rawValue: name) else {
            let reason = name == "https" ? "HTTPS is not spoken" : "only udp:// and http:// are known"
            throw TrackerURLError("\(shown) cannot be asked: \(reason); use another of the tracker's URLs")
        }
        self.scheme = scheme
        let rest = text[mark.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        let authority = rest[..<end]
        let tail = rest[end...].prefix { $0 != "#" }
        path = tail.hasPrefix("?") ? "/\(tail)" : String(tail)
        guard let (host, port) = Self.split(authority, defaultPort: scheme == .udp ? Self.defaultUDPPort : 80) else {
            throw TrackerURLError(
                "\(shown) names no host and port; write for example \(name)://tracker.example:6969/announce")
        }
        self.host = host
        self.port = port
    }

    private static func split(_ authority: some StringProtocol, defaultPort: UInt16) -> (String, UInt16)? {
        guard !authority.contains("@") else { return nil }
        var host = String(authority)
        var digits: String?
        if authority.hasPrefix("[") {
            guard let bracket = authority.firstIndex(of: "]") else { return nil }
            host = String(authority[authority.index(after: authority.startIndex)..<bracket])
            let tail = authority[authority.index(after: bracket)...]
            guard tail.isEmpty || tail.hasPrefix(":") else { return nil }
            if !tail.isEmpty { digits = String(tail.dropFirst()) }
            // RFC 6874: the zone of a link-local address comes after a percent-encoded percent sign.
            host = host.replacing("%25", with: "%")
            guard host.contains(":") else { return nil }
        } else if let colon = authority.lastIndex(of: ":") {
            host = String(authority[..<colon])
            digits = String(authority[authority.index(after: colon)...])
            guard !host.contains(":") else { return nil }
        }
        guard !host.isEmpty, host.utf8.count <= 255 else { return nil }
        guard let digits else { return (host, defaultPort) }
        guard let port = UInt16(digits), port > 0, !digits.hasPrefix("+") else { return nil }
        return (host, port)
    }

    /// Path and query to announce to over HTTP.
    var announceTarget: String { path.isEmpty || path == "/" ? "/announce" : path }

    /// Path and query to scrape over HTTP: "if the text immediately following that '/' isn't 'announce' it will be
    /// taken as a sign that that tracker doesn't support the scrape convention" (BEP 48).
    ///
    /// - Returns: nil for such a tracker.
    var scrapeTarget: String? {
        let target = announceTarget
        let query = target.firstIndex(of: "?") ?? target.endIndex
        guard let slash = target[..<query].lastIndex(of: "/") else { return nil }
        let name = target[target.index(after: slash)...]
        guard name.hasPrefix("announce") else { return nil }
        return "\(target[...slash])scrape\(name.dropFirst("announce".count))"
    }
}

extension TrackerURL: CustomStringConvertible {
    /// As it would be written, with the port.
    public var description: String {
        "\(scheme.rawValue)://\(host.contains(":") ? "[\(host)]" : host):\(port)\(path)"
    }
}

/// What is wrong with a URL, in a sentence.
public struct TrackerURLError: Error, Equatable, CustomStringConvertible {
    /// A sentence that names the URL, the cause and the way out.
    public var description: String

    init(_ description: String) { self.description = description }
}
