// The console's pages as they are served, and what they may hold.

import Foundation
import Primitives
import Testing
import Web

@Suite("Console: pages")
struct ConsolePageTests {
    private static let folder = URL(filePath: #filePath).appending(path: "../../../Sources/Web/Console")
        .standardizedFileURL

    private func files() throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: Self.folder, includingPropertiesForKeys: nil)
    }

    @Test func `each file of the folder is served as it is, with a policy that lets nothing else in`() async throws {
        try await HTTPOpenAPITests().withServer { address in
            for file in try files() {
                let name = file.lastPathComponent
                let response = try await fetch(name == "index.html" ? "/" : "/console/\(name)", from: address)
                #expect(response.status == 200, "\(name)")
                #expect(Data(response.body) == (try Data(contentsOf: file)), "\(name)")
                let policy = try #require(response["content-security-policy"])
                #expect(policy.contains("default-src 'none'") && !policy.contains("unsafe"))
                #expect(response["x-content-type-options"] == "nosniff")
                let tag = try #require(response["etag"])
                let again = try await fetch(
                    name == "index.html" ? "/" : "/console/\(name)", from: address, headers: ["If-None-Match: \(tag)"])
                #expect(again.status == 304)
                #expect(again.body.isEmpty)
            }
        }
    }

    @Test func `nothing in them is inline, nothing comes from elsewhere, and no text becomes markup`() throws {
        for file in try files() {
            let text = try String(contentsOf: file, encoding: .utf8)
            let name = file.lastPathComponent
            for pattern in [
                "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=\"",
                " onclick=", " onload=", "javascript:", "http://", "https://",
            ] {
                // The name space of SVG is no address.
                let rest = text.replacing("http://www.w3.org/2000/svg", with: "")
                #expect(!rest.contains(pattern), "\(pattern) in \(name)")
            }
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count <= 450, "\(name)")
        }
    }
}
