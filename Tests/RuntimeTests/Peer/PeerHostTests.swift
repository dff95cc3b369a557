import Foundation
import PeerHost
import Primitives
import Testing
import Web
import Wire

@Suite("Peer: the host")
struct PeerHostTests {
    private func host(_ directory: TemporaryDirectory) async throws -> PeerHost {
        var options = PeerHostOptions(
            directory: directory.path(""), listen: [SocketAddress(ipv4: 0x7F00_0001, port: 0)], version: "test")
        options.logger = quiet
        return try await PeerHost.start(options)
    }

    private static let magnet = "magnet:?xt=urn:btih:\(String(repeating: "ab", count: 20))&dn=moon"
    private static let hash = InfoHash(hexadecimal: String(repeating: "ab", count: 20))!

    @Test func `the record brings each transfer back as it was`() async throws {
        let directory = try TemporaryDirectory()
        var host = try await host(directory)
        let made = try await host.add(PeerAddition(.magnet(Self.magnet), isPaused: true, directory: "a/b"))
        #expect(made.isNew)
        var change = PeerTransferChange()
        (change.maxDown, change.maxPeers, change.ratio) = (.set(50_000), .set(9), .set(1.5))
        _ = try await host.change(Self.hash, change)
        _ = try await host.change(maxDown: .set(1 << 20), maxUp: .leave)
        let before = try await host.transfer(Self.hash)
        await host.stop()
        host = try await self.host(directory)
        let after = try await host.transfer(Self.hash)
        #expect(after == before)
        #expect(after.transfer.name == "moon")
        #expect(after.transfer.state == .paused)
        #expect(after.transfer.directory == "a/b")
        #expect(after.limits == .init(maxDown: 50_000, maxUp: nil, maxPeers: 9, ratio: 1.5))
        #expect(await host.state().settings.maxDown == 1 << 20)
        #expect(try await !host.add(PeerAddition(.magnet(Self.magnet), isPaused: false, directory: "")).isNew)
        try await host.remove(Self.hash, deletingData: true)
        await host.stop()
        host = try await self.host(directory)
        #expect(await host.state().transfers.isEmpty)
        await host.stop()
        withExtendedLifetime(directory) {}
    }

    @Test func `one process has a directory at a time`() async throws {
        let directory = try TemporaryDirectory()
        let first = try await host(directory)
        await #expect(throws: PeerHostError.self) { _ = try await self.host(directory) }
        await first.stop()
        withExtendedLifetime(directory) {}
    }

    @Test(arguments: [
        "..", "../x", "/", "/etc", "a/..", "a//b", "a/", ".hidden", "a/.hidden", "./a", "a\u{0}b", "a\nb", "link",
        "link/x",
        "file", String(repeating: "x", count: 256), Array(repeating: "x", count: 33).joined(separator: "/"),
    ])
    func `no path leads out of the directory`(_ path: String) async throws {
        let directory = try TemporaryDirectory()
        let outside = try TemporaryDirectory()
        _ = try directory.write("file", "x")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path("link"), withDestinationPath: outside.path(""))
        let host = try await host(directory)
        let addition = PeerAddition(.magnet(Self.magnet), isPaused: true, directory: path)
        let refusal = await #expect(throws: PeerRefusal.self) { _ = try await host.add(addition) }
        #expect(refusal?.kind == .invalid)
        if path != "file" {
            await #expect(throws: PeerRefusal.self) { _ = try await host.create(PeerCreationOrder(path: path)) }
        }
        await #expect(throws: PeerRefusal.self) { _ = try await host.folder(path) }
        #expect(await host.state().transfers.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside.path("")).isEmpty)
        await host.stop()
        withExtendedLifetime(directory) {}
    }

    @Test func `limits that make no sense change nothing`() async throws {
        let directory = try TemporaryDirectory()
        let host = try await host(directory)
        _ = try await host.add(PeerAddition(.magnet(Self.magnet), isPaused: true, directory: ""))
        let before = try await host.transfer(Self.hash)
        var changes: [PeerTransferChange] = []
        func add(_ body: (inout PeerTransferChange) -> Void) {
            var change = PeerTransferChange()
            body(&change)
            changes.append(change)
        }
        for rate in [0, -1, 1_023, .max] {
            add { $0.maxDown = .set(rate) }
            add { $0.maxUp = .set(rate) }
        }
        for count in [0, -1, 1_001] { add { $0.maxPeers = .set(count) } }
        for ratio in [-0.1, 10_001, .infinity, .nan] { add { $0.ratio = .set(ratio) } }
        add { $0.files = .set([]) }
        add { $0.files = .set([0]) }
        for change in changes {
            await #expect(throws: PeerRefusal.self) { _ = try await host.change(Self.hash, change) }
        }
        #expect(try await host.transfer(Self.hash) == before)
        await host.stop()
        withExtendedLifetime(directory) {}
    }
}
