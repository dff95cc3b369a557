import Bus
import Foundation
import Primitives
import Synchronization
import Testing
import Web
import Wire

/// Answers as it is told to, and keeps what it was asked for.
private final class FakePeer: TransferProvider {
    let asked = Mutex<[String]>([])
    let refusal = Mutex<PeerRefusal?>(nil)
    let transfers = Mutex<[PeerTransfer]>([PeerTransfer(hash: InfoHash(.zero))])

    private func note(_ what: String) throws(PeerRefusal) {
        asked.withLock { $0.append(what) }
        if let refusal = refusal.withLock({ $0 }) { throw refusal }
    }

    private var settings: PeerSettings {
        PeerSettings(listen: ["127.0.0.1:6881"], directory: "/data", localDiscovery: false, version: "1")
    }
    private var detail: PeerTransferDetail {
        PeerTransferDetail(
            PeerTransfer(hash: InfoHash(.zero)), magnet: "magnet:?xt=urn:btih:0",
            limits: .init(maxDown: nil, maxUp: nil, maxPeers: 50, ratio: nil))
    }

    func state() async -> PeerState {
        PeerState(
            transfers: transfers.withLock { $0 }, creations: [PeerCreation(id: "1", path: "a/b", name: "b")],
            settings: settings)
    }
    func transfer(_ hash: InfoHash) async throws(PeerRefusal) -> PeerTransferDetail {
        try note("transfer")
        return detail
    }
    func add(_ addition: PeerAddition) async throws(PeerRefusal) -> (transfer: PeerTransfer, isNew: Bool) {
        let source =
            switch addition.source {
            case .file(let bytes): "\(bytes.count) bytes"
            case .magnet(let text): text
            }
        try note("add \(source) \(addition.isPaused) «\(addition.directory)»")
        return (PeerTransfer(hash: InfoHash(.zero)), addition.isPaused)
    }
    func change(_ hash: InfoHash, _ change: PeerTransferChange) async throws(PeerRefusal) -> PeerTransferDetail {
        try note("change \(change.files) \(change.maxDown) \(change.ratio)")
        return detail
    }
    func order(_ hash: InfoHash, _ action: PeerAction) async throws(PeerRefusal) -> PeerTransfer {
        try note("\(action)")
        return PeerTransfer(hash: hash)
    }
    func addPeer(_ hash: InfoHash, _ address: Primitives.SocketAddress) async throws(PeerRefusal) -> PeerTransfer {
        try note("peer \(address)")
        return PeerTransfer(hash: hash)
    }
    func remove(_ hash: InfoHash, deletingData: Bool) async throws(PeerRefusal) { try note("remove \(deletingData)") }
    func file(_ hash: InfoHash) async throws(PeerRefusal) -> [UInt8] {
        try note("file")
        return [1, 2, 3]
    }
    func folder(_ path: String) async throws(PeerRefusal) -> PeerFolder {
        try note("folder «\(path)»")
        return PeerFolder(
            path: path, entries: [.init(name: "x", isFolder: true, byteCount: 0, modifiedAt: 1)], isCut: false)
    }
    func create(_ order: PeerCreationOrder) async throws(PeerRefusal) -> PeerCreation {
        try note("create \(order.path) \(order.trackers) \(order.seeds) \(order.publish?.url ?? "-")")
        return PeerCreation(id: "1", path: order.path, name: "x")
    }
    func endCreation(_ id: String) async throws(PeerRefusal) { try note("end \(id)") }
    func creationFile(_ id: String) async throws(PeerRefusal) -> [UInt8] {
        try note("creation's file \(id)")
        return [4]
    }
    func change(
        maxDown: PeerChange<Int>, maxUp: PeerChange<Int>
    ) async throws(PeerRefusal) -> PeerSettings {
        try note("limits \(maxDown) \(maxUp)")
        return settings
    }
}

@Suite("Peer: the API")
struct PeerServerTests {
    private static let zero = "/api/v1/transfers/\(String(repeating: "0", count: 40))"

    private func withServer<Value: Sendable>(
        token: String? = nil, _ body: @Sendable (FakePeer, Primitives.SocketAddress) async throws -> Value
    ) async throws -> Value {
        let peer = FakePeer()
        var options = PeerServer.Options()
        (options.token, options.logger) = (token, quiet)
        let service = try await PeerServer(peer).listen(on: loopback, options)
        return try await running([service]) { try await body(peer, service.address) }.value
    }

    @Test func `a transfer is told with every key, what is not there as null`() async throws {
        try await withServer { _, address in
            let response = try await fetch(Self.zero, from: address)
            #expect(response.status == 200)
            let told = try #require(
                try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
            #expect(
                Set(told.keys) == [
                    "hash", "name", "state", "reason", "progress", "byteCount", "missing", "received", "sent", "wasted",
                    "downRate", "upRate", "secondsLeft", "ratio", "peers", "knownPeers", "seeders", "leechers",
                    "tracker", "trackerAddress", "addedAt", "completedAt", "directory", "isPrivate", "problem",
                    "pieces", "wantedBits", "files", "fileCount", "peerList", "trackers", "webSeeds", "magnet",
                    "limits",
                ])
            for key in ["reason", "byteCount", "pieces", "wantedBits", "tracker"] { #expect(told[key] is NSNull) }
            #expect(told["state"] as? String == "paused")
        }
    }

    @Test func `orders reach the peer as they were meant`() async throws {
        try await withServer { (peer, address) async throws in
            func send(_ method: String, _ path: String, _ body: String? = nil, kind: String? = nil) async throws -> Int
            {
                let headers = kind.map { ["Content-Type: \($0)"] } ?? []
                return try await fetch(path, from: address, headers: headers, method: method, body: body).status
            }
            let file = "application/x-bittorrent"
            #expect(try await send("POST", "/api/v1/transfers?paused=true&directory=a+b%2Fc", "d4:", kind: file) == 201)
            #expect(try await send("POST", "/api/v1/transfers", "{\"magnet\":\"magnet:?x\"}") == 200)
            #expect(try await send("PATCH", Self.zero, "{\"files\":null,\"maxDown\":5000}") == 200)
            for action in ["pause", "resume", "recheck", "announce"] {
                #expect(try await send("POST", "\(Self.zero)/\(action)") == 200)
            }
            #expect(try await send("POST", "\(Self.zero)/peers", "{\"address\":\"[2001:db8::1]:6881\"}") == 200)
            #expect(try await send("DELETE", "\(Self.zero)?data=true") == 204)
            #expect(try await send("DELETE", Self.zero) == 204)
            #expect(try await send("GET", "/api/v1/folders?path=a+b") == 200)
            #expect(
                try await send(
                    "POST", "/api/v1/creations", "{\"path\":\"a\",\"trackers\":[[\"udp://x:1\"]],\"seed\":false}")
                    == 202)
            #expect(try await send("DELETE", "/api/v1/creations/7") == 204)
            #expect(try await send("PATCH", "/api/v1/settings", "{\"maxUp\":null}") == 200)
            #expect(
                peer.asked.withLock { $0 } == [
                    "add 3 bytes true «a b/c»", "add magnet:?x false «»", "change set(nil) set(Optional(5000)) leave",
                    "pause", "resume", "recheck", "announce", "peer [2001:db8::1]:6881", "remove true", "remove false",
                    "folder «a b»", "create a [[\"udp://x:1\"]] false -", "end 7", "limits leave set(nil)",
                ])
        }
    }

    @Test(arguments: [
        ("POST", "/api/v1/transfers", "{\"magnet\":\"m\",\"other\":1}", 400),
        ("POST", "/api/v1/transfers", "{}", 400),
        ("POST", "/api/v1/transfers", "[]", 400),
        ("POST", "/api/v1/transfers?paused=perhaps", "{\"magnet\":1}", 400),
        ("PATCH", "\(zero)", "{\"files\":\"all\"}", 400),
        ("PATCH", "\(zero)", "{\"ratio\":\"much\"}", 400),
        ("PATCH", "\(zero)", "{\"maxDown\":1.5}", 400),
        ("PATCH", "\(zero)", "{\"MaxDown\":15000}", 400),
        ("PATCH", "\(zero)", "nonsense", 400),
        ("POST", "\(zero)/pause", "{\"now\":true}", 400),
        ("POST", "\(zero)/peers", "{\"address\":\"host:1\"}", 400),
        ("POST", "\(zero)/peers", "{\"address\":\"127.0.0.1:0\"}", 400),
        ("DELETE", "\(zero)?data=1", "", 400),
        ("GET", "/api/v1/transfers/abc", "", 400),
        ("GET", "/api/v1/events?transfer=abc", "", 400),
        ("POST", "/api/v1/creations", "{\"path\":\"a\",\"trackers\":[[\"x\"]]}", 400),
        ("POST", "/api/v1/creations", "{\"path\":\"a\",\"webSeeds\":[\"udp://x\"]}", 400),
        ("POST", "/api/v1/creations", "{}", 400),
        ("POST", "/api/v1/creations", "{\"path\":\"a\",\"publish\":{\"console\":\"h:1\",\"tokn\":\"t\"}}", 400),
        ("PUT", "/api/v1/settings", "{}", 405),
        ("GET", "/api/v1/nothing", "", 404),
    ])
    func `what makes no sense is refused, and does not reach the peer`(
        _ method: String, _ path: String, _ body: String, _ status: Int
    ) async throws {
        try await withServer { peer, address in
            let response = try await fetch(path, from: address, method: method, body: body.isEmpty ? nil : body)
            #expect(response.status == status)
            #expect(response.text.contains("\"error\":"))
            #expect(peer.asked.withLock { $0 }.isEmpty)
        }
    }

    @Test(arguments: [
        (PeerRefusal.Kind.invalid, 400), (.unknown, 404), (.conflict, 409), (.full, 503), (.disk, 503), (.stopped, 503),
    ])
    func `each refusal of the peer has its status, and its words`(_ kind: PeerRefusal.Kind, _ status: Int) async throws
    {
        try await withServer { peer, address in
            peer.refusal.withLock { $0 = PeerRefusal(kind, "because of the moon") }
            for (method, path) in [("GET", Self.zero), ("POST", "\(Self.zero)/pause"), ("DELETE", Self.zero)] {
                let response = try await fetch(path, from: address, method: method)
                #expect(response.status == status)
                #expect(response.text.contains("because of the moon"))
            }
        }
    }

    @Test(arguments: [
        "Host: evil.example", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site",
        "Referer: http://evil.example/x",
        "Content-Type: text/plain",
    ])
    func `pages of other sites, and names that are not this machine's, change nothing`(_ header: String) async throws {
        try await withServer { peer, address in
            let response = try await fetch(
                "\(Self.zero)/pause", from: address, headers: [header], method: "POST", body: "{}")
            #expect(response.status == 403)
            #expect(peer.asked.withLock { $0 }.isEmpty)
        }
    }

    @Test func `a token is asked for where there is one, and its holder may come from anywhere`() async throws {
        try await withServer(token: "0123456789abcdef") { (_, address) async throws in
            #expect(try await fetch("/api/v1/transfers", from: address).status == 401)
            #expect(
                try await fetch("/api/v1/events", from: address, headers: ["Authorization: Bearer x"]).status == 401)
            let known = ["Authorization: Bearer 0123456789abcdef", "Host: peer.example"]
            #expect(try await fetch("/api/v1/transfers", from: address, headers: known).status == 200)
        }
    }

    @Test func `others are not let in without a token`() async throws {
        await #expect(throws: ListenFailure.self) {
            _ = try await PeerServer(FakePeer()).listen(
                on: Primitives.SocketAddress(ipv4: 0, port: 0), PeerServer.Options())
        }
    }

    @Test func `the page and all that it needs are served as they are`() async throws {
        let folder = URL(filePath: #filePath).appending(path: "../../../../Sources/Web/PeerPage").standardizedFileURL
        try await withServer { _, address in
            let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            #expect(files.contains { $0.lastPathComponent == "peer.html" })
            for file in files {
                let name = file.lastPathComponent
                let response = try await fetch(name == "peer.html" ? "/" : "/peer/\(name)", from: address)
                #expect(response.status == 200, "\(name)")
                #expect(Data(response.body) == (try Data(contentsOf: file)), "\(name)")
                #expect(response["content-security-policy"]?.contains("default-src 'none'") == true)
            }
            #expect(try await fetch("/console/style.css", from: address).status == 200)
        }
    }

    @Test func `the stream tells all at first, then what has changed, and what is gone`() async throws {
        try await withServer { peer, address in
            let connection = try await RawConnection(to: address)
            try await connection.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            var text = ""
            func wait(for part: String) async throws {
                while !text.contains(part) {
                    let bytes = try #require(try await connection.receive())
                    try #require(!bytes.isEmpty)
                    text += String(decoding: bytes, as: UTF8.self)
                }
            }
            let other = InfoHash(hexadecimal: String(repeating: "1", count: 40))!
            try await wait(for: "\"hash\":\"\(String(repeating: "0", count: 40))\"")
            text = ""
            peer.transfers.withLock { $0.append(PeerTransfer(hash: other)) }
            try await wait(for: "\"hash\":\"\(other)\"")
            #expect(!text.contains("\"hash\":\"\(String(repeating: "0", count: 40))\""))
            peer.transfers.withLock { $0 = [] }
            try await wait(for: "\"gone\":[\"\(String(repeating: "0", count: 40))\",\"\(other)\"]")
        }
    }
}
