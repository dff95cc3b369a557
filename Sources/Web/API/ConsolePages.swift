// The console's pages: files that the build puts into the program.

import HTTPTypes
import NIOCore
import Primitives

/// The console's pages: plain HTML, CSS and JavaScript modules, which use nothing but the API.
///
/// They hold no secret, so they are given to whoever may reach the listener; the API asks for a login. Nothing in them
/// comes from elsewhere, and their policy lets nothing in: no script in markup, no other host, no frame around them.
///
/// - SeeAlso: W3C, "Content Security Policy Level 3".
enum ConsolePages {
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

    /// `/` is the page, `/console/NAME` whatever it needs.
    static let routes: [APIRoute] = {
        [route("/", "index.html", ConsoleFiles.index)]
            + ConsoleFiles.all.map { route("/console/\($0.name)", $0.name, $0.bytes) }
    }()

    /// A file that anybody may have who reaches the listener.
    static func route(_ path: String, _ name: String, _ bytes: [UInt8], policy: String = policy) -> APIRoute {
        let file = PageFile(name, bytes, policy: policy)
        return APIRoute.get(path) { request in file.answer(to: request) }.open()
    }
}

/// One file of a page.
///
/// A browser keeps it, and asks each time whether it is still the same.
struct PageFile {
    private var type: String
    private var bytes: ByteBuffer
    private var gzipped: ByteBuffer?
    /// Of the bytes as they are.
    private var hash: String
    private var policy: String

    /// - Parameters:
    ///   - name: says by its end what the file is.
    ///   - bytes: its content.
    ///   - gzipped: the same, for whoever takes that.
    ///   - policy: what the page may do.
    init(_ name: String, _ bytes: [UInt8], gzipped: [UInt8]? = nil, policy: String) {
        let types = [
            "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
            "js": "text/javascript; charset=utf-8", "mjs": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
            "wasm": "application/wasm",
        ]
        guard let type = name.split(separator: ".").last.flatMap({ types[String($0)] }) else {
            preconditionFailure("\(name) is of a kind that no page needs")
        }
        self.type = type
        self.bytes = ByteBuffer(bytes: bytes)
        self.gzipped = gzipped.map { ByteBuffer(bytes: $0) }
        self.policy = policy
        hash = hexadecimal(SipHash(key0: 0, key1: 0).mac(bytes))
    }

    /// The file, or that it is the one which the browser has.
    func answer(to request: Request) -> Response {
        let squeezed = request.takesGzip ? gzipped : nil
        let tag = squeezed == nil ? "\"\(hash)\"" : "\"\(hash)-gzip\""
        var headers: HTTPFields = [
            .contentType: type, .eTag: tag, .cacheControl: "no-cache",
            .contentSecurityPolicy: policy, .referrerPolicy: "no-referrer",
            .crossOriginOpenerPolicy: "same-origin", .crossOriginResourcePolicy: "same-origin",
        ]
        if gzipped != nil { headers[.vary] = "Accept-Encoding" }
        let known = request.headers[.ifNoneMatch]?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
        if known.contains(tag) || known.contains("*") {
            headers[.contentType] = nil
            return Response(status: .notModified, headers: headers)
        }
        if squeezed != nil { headers[.contentEncoding] = "gzip" }
        return Response(status: .ok, headers: headers, body: squeezed ?? bytes)
    }
}

extension Request {
    /// Whether the client has named gzip among the encodings it takes, not with the weight 0 (RFC 9110, 12.5.3).
    fileprivate var takesGzip: Bool {
        headers[values: .acceptEncoding].flatMap { $0.split(separator: ",") }.contains { coding in
            let words = coding.lowercased().split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" } }
            let isRefused = words.dropFirst().contains { word in
                word.hasPrefix("q=0") && word.dropFirst(2).allSatisfy { $0 == "0" || $0 == "." }
            }
            return words.first == "gzip" && !isRefused
        }
    }
}

extension HTTPField.Name {
    /// The Referrer Policy standard.
    fileprivate static let referrerPolicy = Self("Referrer-Policy")!
    /// The HTML standard, "Cross-origin opener policies".
    fileprivate static let crossOriginOpenerPolicy = Self("Cross-Origin-Opener-Policy")!
    /// The Fetch standard, "Cross-Origin-Resource-Policy header".
    fileprivate static let crossOriginResourcePolicy = Self("Cross-Origin-Resource-Policy")!
}
