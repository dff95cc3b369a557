// The simulator's page as it is served, and what it may do.

import Foundation
import Primitives
import Testing
import Web

@Suite("Simulator: page")
struct PlaygroundPageTests {
    private static let root = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL
    private static let module = SimulatorModule(bytes: [0, 0x61, 0x73, 0x6D, 1, 0, 0, 0, 7], gzipped: [0x1F, 0x8B, 9])
    private static let policy =
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
        + "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

    private func files(_ folder: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(
            at: Self.root.appending(path: "Sources/Web/\(folder)"), includingPropertiesForKeys: nil)
    }

    private func withModule<Value: Sendable>(
        _ module: SimulatorModule?, token: String? = nil,
        _ body: @Sendable (Primitives.SocketAddress) async throws -> Value
    ) async throws -> Value {
        try await HTTPOpenAPITests().withServer(token: token, with: { $0.simulator = module }, body)
    }

    @Test func `each file of the folder, and of the console's, is served beside the page, and its policy is theirs`()
        async throws
    {
        try await withModule(Self.module) { (address) async throws in
            for file in try files("Playground") + files("Console") {
                let name = file.lastPathComponent
                if name == "index.html" { continue }
                let path = name == "playground.html" ? "/simulator/" : "/simulator/\(name)"
                let response = try await fetch(path, from: address)
                #expect(response.status == 200, "\(name)")
                #expect(Data(response.body) == (try Data(contentsOf: file)), "\(name)")
                // A worker has the policy of its own file.
                #expect(response["content-security-policy"] == Self.policy, "\(name)")
                #expect(response["x-content-type-options"] == "nosniff", "\(name)")
                let tag = try #require(response["etag"])
                let again = try await fetch(path, from: address, headers: ["If-None-Match: \(tag)"])
                #expect(again.status == 304, "\(name)")
            }
        }
    }

    @Test func `whatever a file of the page names beside it is there`() async throws {
        let name = /["'`]\.\/([A-Za-z0-9_-]+\.(?:js|mjs|css|svg|wasm))["'`]/
        let texts = try files("Playground").map { try String(contentsOf: $0, encoding: .utf8) }
        let names = Set(texts.flatMap { $0.matches(of: name).map { String($0.output.1) } })
        #expect(names.contains("style.css"))
        try await withModule(Self.module) { (address) async throws in
            for name in names.sorted() {
                #expect(try await fetch("/simulator/\(name)", from: address).status == 200, "\(name)")
            }
        }
    }

    @Test func `nowhere else may a page compile modules or begin workers`() async throws {
        try await withModule(Self.module) { (address) async throws in
            for path in ["/", "/console/app.js", "/console/style.css"] {
                let policy = try #require(try await fetch(path, from: address)["content-security-policy"])
                #expect(!policy.contains("wasm") && !policy.contains("worker"), "\(path)")
            }
        }
    }

    @Test func `without its slash the page is elsewhere, where what it names is beside it`() async throws {
        try await withModule(nil) { (address) async throws in
            let response = try await fetch("/simulator?a=b", from: address)
            #expect(response.status == 308)
            #expect(response["location"] == "/simulator/")
        }
    }

    @Test func `the page is served without a log-in, for it holds no secret`() async throws {
        try await withModule(Self.module, token: "0123456789abcdef") { (address) async throws in
            #expect(try await fetch("/api/v1/status", from: address).status == 401)
            for path in ["/simulator/", "/simulator/simulator.mjs", "/simulator/simulator.wasm"] {
                #expect(try await fetch(path, from: address).status == 200, "\(path)")
            }
            #expect(try await fetch("/simulator/other", from: address).status == 401)
        }
    }

    @Test(arguments: [
        (nil, false), ("gzip", true), ("br, gzip;q=0.5, *", true), ("GZIP ; q=1", true), ("gzip;q=0", false),
        ("gzip; q=0.000", false), ("identity", false), ("xgzip", false), ("*", false),
    ])
    func `the module goes gzipped to those who take that`(taken: String?, isGzipped: Bool) async throws {
        try await withModule(Self.module) { (address) async throws in
            let headers = taken.map { ["Accept-Encoding: \($0)"] } ?? []
            let response = try await fetch("/simulator/simulator.wasm", from: address, headers: headers)
            #expect(response.status == 200)
            #expect(response["content-type"] == "application/wasm")
            #expect(response["content-encoding"] == (isGzipped ? "gzip" : nil))
            #expect(response.body == (isGzipped ? Self.module.gzipped : Self.module.bytes))
            #expect(response["vary"] == "Accept-Encoding")
            #expect(response["cache-control"] == "no-cache")
            // Each form has a tag of its own, and only its own is the one that is known.
            let tag = try #require(response["etag"])
            let again = try await fetch(
                "/simulator/simulator.wasm", from: address, headers: headers + ["If-None-Match: \(tag)"])
            #expect(again.status == 304)
            #expect(again.body.isEmpty)
            let other = isGzipped ? tag.replacing("-gzip", with: "") : tag.dropLast() + "-gzip\""
            #expect(
                try await fetch(
                    "/simulator/simulator.wasm", from: address, headers: headers + ["If-None-Match: \(other)"]
                ).status == 200)
        }
    }

    @Test func `a module that nobody has gzipped goes as it is`() async throws {
        try await withModule(SimulatorModule(bytes: Self.module.bytes, gzipped: nil)) { (address) async throws in
            let response = try await fetch(
                "/simulator/simulator.wasm", from: address, headers: ["Accept-Encoding: gzip"])
            #expect(response.body == Self.module.bytes)
            #expect(response["content-encoding"] == nil && response["vary"] == nil)
        }
    }

    @Test func `another module has another tag`() async throws {
        let other = SimulatorModule(bytes: Self.module.bytes + [1], gzipped: nil)
        func tag(_ module: SimulatorModule) async throws -> String? {
            try await withModule(module) { try await fetch("/simulator/simulator.wasm", from: $0)["etag"] }
        }
        let (first, second) = (try await tag(Self.module), try await tag(other))
        #expect(first != nil && second != nil && first != second)
    }

    @Test func `where there is no module, the answer says how to get it, and the page is there all the same`()
        async throws
    {
        try await withModule(nil) { (address) async throws in
            let response = try await fetch("/simulator/simulator.wasm", from: address)
            #expect(response.status == 404)
            #expect(response.text.contains("make wasm") && response.text.contains("--simulator FILE"))
            #expect(try await fetch("/simulator/", from: address).status == 200)
        }
    }
}
