// The simulator's page, and the module of WebAssembly that it runs.

import HTTPTypes
import NIOCore

/// The simulator for browsers: a module of WebAssembly (`Wasm/README.md`).
public struct SimulatorModule: Sendable {
    /// Of the module.
    public var bytes: [UInt8]
    /// The same, as gzip; nil where nobody has made that.
    public var gzipped: [UInt8]?

    /// Takes the fields as they are.
    public init(bytes: [UInt8], gzipped: [UInt8]?) { (self.bytes, self.gzipped) = (bytes, gzipped) }
}

/// The simulator's page: a document of its own, which asks no API and needs no log-in, for it knows nothing of this
/// tracker.
///
/// It compiles a module of WebAssembly, and does so in workers. Browsers let a page do that only where its policy says
/// so, and a worker only where the policy of the worker's own file does. So everything under `/simulator/` has a policy
/// that lets them, the console's files once more among it, and nothing else has.
///
/// - SeeAlso: W3C, "Content Security Policy Level 3", 4.2.2 and 6.1.
enum PlaygroundPages {
    static let policy =
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
        + "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

    /// `/simulator/` is the page, `/simulator/NAME` whatever it needs.
    ///
    /// - Parameter module: nil where there is none: then the page says how to get it.
    /// - Returns: all of them, open to whoever reaches the listener.
    static func routes(_ module: SimulatorModule?) -> [APIRoute] { files + [moduleRoute(module)] }

    private static let files: [APIRoute] = {
        let index = PageFile("playground.html", PlaygroundFiles.index, policy: policy)
        let page = APIRoute.get("/simulator") { request in
            // What it links to is beside it.
            guard request.path.hasSuffix("/") else {
                return Response(status: .permanentRedirect, headers: [.location: "/simulator/"])
            }
            return index.answer(to: request)
        }
        return [page.open()]
            + (PlaygroundFiles.all + ConsoleFiles.all).map {
                ConsolePages.route("/simulator/\($0.name)", $0.name, $0.bytes, policy: policy)
            }
    }()

    private static func moduleRoute(_ module: SimulatorModule?) -> APIRoute {
        let file = module.map { PageFile("simulator.wasm", $0.bytes, gzipped: $0.gzipped, policy: policy) }
        return APIRoute.get("/simulator/simulator.wasm") { request in
            guard let file else {
                throw APIError(
                    .notFound,
                    "this tracker has found no simulator.wasm at its start; make it with «make wasm», and start the "
                        + "tracker again, or name the file by --simulator FILE")
            }
            return file.answer(to: request)
        }.open()
    }
}
