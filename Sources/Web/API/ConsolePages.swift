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
    static func route(_ path: String, _ name: String, _ bytes: [UInt8]) -> APIRoute {
        let file = PageFile(name, bytes)
        return APIRoute.get(path) { request in answer(file, to: request) }.open()
    }

    private static func answer(_ file: PageFile, to request: Request) -> Response {
        var headers: HTTPFields = [
            .contentType: file.type, .eTag: file.tag, .cacheControl: "no-cache",
            .contentSecurityPolicy: policy, .referrerPolicy: "no-referrer",
            .crossOriginOpenerPolicy: "same-origin", .crossOriginResourcePolicy: "same-origin",
        ]
        let known = request.headers[.ifNoneMatch]?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
        if known.contains(file.tag) || known.contains("*") {
            headers[.contentType] = nil
            return Response(status: .notModified, headers: headers)
        }
        return Response(status: .ok, headers: headers, body: file.bytes)
    }
}

/// One file of a page.
private struct PageFile {
    var type: String
    var bytes: ByteBuffer
    var tag: String

    init(_ name: String, _ bytes: [UInt8]) {
        let types = [
            "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
            "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
        ]
        guard let type = name.split(separator: ".").last.flatMap({ types[String($0)] }) else {
            preconditionFailure("\(name) is of a kind that no page needs")
        }
        self.type = type
        self.bytes = ByteBuffer(bytes: bytes)
        tag = "\"\(hexadecimal(SipHash(key0: 0, key1: 0).mac(bytes)))\""
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
