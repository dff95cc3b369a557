// The files that operators begin with: each is taken as it stands, and the files of one cluster agree.

import Bus
import Foundation
import Primitives
import Settings
import Testing
import TrackerLogic

@Suite("Example files")
struct ExampleFileTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// All TOML files below `examples`, by their paths there.
    private static let files: [String] = {
        let examples = root.appending(path: "examples").path
        return FileManager.default.enumerator(atPath: examples)?.compactMap { $0 as? String }
            .filter { $0.hasSuffix(".toml") }.sorted() ?? []
    }()

    private static func load(_ path: String) throws -> ServerConfiguration {
        try ServerConfiguration.load(file: root.appending(path: "examples/\(path)").path, environment: [:])
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test
    func `there are examples, for one host and for three`() {
        #expect(Self.files.contains("tracker.toml"))
        #expect(Self.files.count { $0.hasPrefix("three-hosts/") } == 3)
    }

    @Test(arguments: files)
    func `an example has no problem`(path: String) throws {
        do throws(ConfigurationError) {
            _ = try ServerConfiguration.load(
                file: Self.root.appending(path: "examples/\(path)").path, environment: ["HOME": "/home/nobody"])
        } catch {
            Issue.record("\(error)")
        }
    }

    @Test
    func `the three hosts form one cluster: they differ in their numbers and in what they are called`() throws {
        let hosts = try (1...3).map { try Self.load("three-hosts/tracker\($0).toml") }
        for (number, host) in zip([1, 2, 3] as [UInt32], hosts) {
            #expect(host.node.id == number)
            #expect(host.cluster.members == [1, 2, 3])
            #expect(host.node.cluster.mode == .quorum)
            #expect(host.cluster.hooks.advertised == "udp://tracker\(number).example:6969/announce")
            #expect(host.cluster.keyFile?.hasSuffix("/cluster.key") == true)
            #expect(host.console?.isLoopback == true)
            var same = host
            same.node.id = hosts[0].node.id
            same.cluster.hooks = hosts[0].cluster.hooks
            #expect(same == hosts[0])
        }
        guard case .stomp(let stomp)? = hosts[0].cluster.bus?.endpoint else {
            Issue.record("the bus is no broker")
            return
        }
        #expect(stomp.brokers.count == 2)
    }

    @Test
    func `what unit, image and composition set is a setting, and their directory is the one of the files`() throws {
        let names = Set(SettingKey.allCases.map(\.environmentName) + [SettingKey.configurationFileVariable])
        let directory = try Self.load("three-hosts/tracker1.toml").dataDirectory
        for path in ["examples/systemd/swarmkeeper.service", "Dockerfile", "compose.yaml"] {
            let text = try Self.text(path)
            let named = text.matches(of: /SWARMKEEPER_[A-Z_]+/).map { String($0.output) }
            #expect(!named.isEmpty, "\(path)")
            for name in named { #expect(names.contains(name), "\(path): \(name)") }
            let state = path.hasSuffix(".service") ? "StateDirectory=swarmkeeper\n" : directory
            #expect(text.contains(state), "\(path)")
        }
        #expect(directory == "/var/lib/swarmkeeper")
        // Swift's backtracer would hold a tracker that has crashed for up to half a minute.
        for path in ["examples/systemd/swarmkeeper.service", "Dockerfile", "Makefile"] {
            #expect(try Self.text(path).contains("SWIFT_BACKTRACE=enable=no"), "\(path)")
        }
    }
}
