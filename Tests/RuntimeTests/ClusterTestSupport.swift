// Whole trackers in the test's process, with sockets on loopback, a record each, and a bus between them.

import Client
import Foundation
import Logging
import Primitives
import Server
import ServiceLifecycle
import Settings
import Synchronization
import Testing
import TrackerLogic
import Web
import Wire

/// One tracker that runs until it is stopped.
final class RunningTracker: Sendable {
    let bus: LocalBus
    private let group: ServiceGroup
    private let task: Task<Void, any Error>
    let udp: [Primitives.SocketAddress]
    let http: Primitives.SocketAddress?
    private let api: Primitives.SocketAddress
    let log: Seen<String>

    init(_ configuration: ServerConfiguration, on wire: LocalWire, manager: ServiceManager? = nil) async throws {
        let bus = wire.makeBus()
        self.bus = bus
        let log = Seen<String>()
        self.log = log
        let logger = Logger(label: "test") { _ in CollectingLog(lines: log) }
        let (ready, continuation) = AsyncThrowingStream.makeStream(of: ProcessFacts.self)
        let server = TrackerServer(
            configuration: configuration, version: "1", logger: logger, bus: bus, manager: manager,
            onReady: { facts in continuation.yield(facts) }, reload: { _ in configuration })
        group = ServiceGroup(configuration: .init(services: [server], logger: quiet))
        task = Task { [group] in
            do {
                try await group.run()
                continuation.finish()
            } catch {
                continuation.finish(throwing: error)
                throw error
            }
        }
        var facts: ProcessFacts?
        for try await told in ready {
            facts = told
            break
        }
        let listeners = try #require(facts).listeners
        udp = listeners.filter { $0.service == .udp }.map(\.address)
        http = listeners.first { $0.service == .http }?.address
        api = try #require(listeners.first { $0.service == .api }).address
    }

    /// Stops in good order.
    func stop() async throws {
        await group.triggerGracefulShutdown()
        try await task.value
    }

    /// Ends as if the machine were cut off first: the others hear no last word of it.
    func crash() async throws {
        bus.cut()
        try await stop()
    }

    var console: ConsoleClient { .patient(api) }

    func cluster() async throws -> ClusterView { try await console.cluster() }

    /// Waits until the cluster looks so from here.
    @discardableResult
    func sees(
        _ what: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ condition: (ClusterView) -> Bool
    ) async throws -> ClusterView {
        let end = ContinuousClock.now.advanced(by: Waiting.most)
        while true {
            let isLast = ContinuousClock.now >= end
            // A tracker that is busy says so, and is asked again.
            var view = try? await cluster()
            if view == nil, isLast { view = try await cluster() }
            if let view, condition(view) { return view }
            if let view, isLast {
                Issue.record("\(what): not within \(Waiting.most); it sees \(view)", sourceLocation: sourceLocation)
                return view
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Announces to this tracker; `client` makes the peer: its id, and its port.
    func announce(
        _ infoHash: InfoHash, client: UInt16 = 1, left: UInt64 = 1, event: AnnounceEvent = .started,
        firstWait: Primitives.Duration = .seconds(1)
    ) async throws -> ClientAnnounceReply {
        var options = ClientOptions()
        options.timeout = .milliseconds(Int64(Waiting.mostMilliseconds))
        options.firstWait = firstWait
        let url = try TrackerURL("udp://\(udp[0])/announce")
        var announce = ClientAnnounce(
            infoHash: infoHash, peerID: Self.peerID(client), port: 1000 + client, left: left)
        announce.event = event
        return try await url.client(options).announce(announce)
    }

    func scrape(_ infoHash: InfoHash) async throws -> ClientScrapeReply.Counts? {
        var options = ClientOptions()
        options.timeout = .milliseconds(Int64(Waiting.mostMilliseconds))
        options.firstWait = .seconds(1)
        return try await TrackerURL("udp://\(udp[0])/announce").client(options).scrape([infoHash]).first?.counts
    }

    private static func peerID(_ client: UInt16) -> PeerID {
        var bytes = [UInt8](repeating: 0x41, count: 20)
        (bytes[18], bytes[19]) = (UInt8(client >> 8), UInt8(truncatingIfNeeded: client))
        return PeerID(Bytes20(bytes)!)
    }
}

/// Keeps the lines of a log.
struct CollectingLog: LogHandler {
    var lines: Seen<String>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.debug

    init(lines: Seen<String>) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.add("\(event.level): \(event.message)") }
}

/// Three trackers, or as many as a test wants, that form a cluster.
final class TestCluster: Sendable {
    let wire = LocalWire()
    let directory: TemporaryDirectory
    private let flags: [SettingKey: [String]]

    /// For a cluster of three in which nobody fails: nobody is to be taken for dead whom a busy machine holds up.
    static let patient: [SettingKey: [String]] = [.members: ["1,2,3"], .missed: ["30"]]

    /// Trackers with these flags beside those that every tracker of a test has.
    init(_ flags: [SettingKey: [String]] = [.members: ["1,2,3"]]) throws {
        directory = try TemporaryDirectory()
        self.flags = flags
        let key = try directory.write("cluster.key", String(repeating: "k", count: 32))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
    }

    func configuration(_ id: Int, _ more: [SettingKey: [String]] = [:]) throws -> ServerConfiguration {
        let all: [SettingKey: [String]] = [
            .id: ["\(id)"], .bus: ["embedded"], .clusterKeyFile: [directory.path("cluster.key")],
            .keepalive: ["100ms"], .missed: ["5"], .udp: ["127.0.0.1:0"], .console: ["127.0.0.1:0"],
            .dataDirectory: [directory.path("\(id)")], .durability: ["process"],
        ]
        return try ServerConfiguration.load(
            environment: [:], flags: all.merging(flags) { $1 }.merging(more) { $1 })
    }

    func start(_ id: Int, _ more: [SettingKey: [String]] = [:]) async throws -> RunningTracker {
        try await RunningTracker(try configuration(id, more), on: wire)
    }
}

func infoHash(_ number: UInt8) -> InfoHash { InfoHash(Bytes20([UInt8](repeating: number, count: 20))!) }
