// What a service manager is told: over real sockets, of the kinds that `NOTIFY_SOCKET` may name.

import Bus
import Client
import Datagrams
import Foundation
import Primitives
import Server
import ServiceLifecycle
import Synchronization
import Testing
import TrackerLogic
import Web
import Wire

/// A socket on which a manager would listen.
private final class ManagerSocket: Sendable {
    private let descriptor: Int32

    /// A socket with a name as `NOTIFY_SOCKET` has it.
    init(_ name: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address: [UInt8] = []
        withUnsafeBytes(of: sa_family_t(AF_UNIX)) { address.append(contentsOf: $0) }
        address += name.hasPrefix("@") ? [0] + Array(name.utf8.dropFirst()) : Array(name.utf8) + [0]
        let result = address.withUnsafeBytes {
            bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        try #require(result == 0, "errno \(errno)")
    }

    deinit { close(descriptor) }

    /// The lines of what has come so far.
    func take() -> [String] {
        var lines: [String] = []
        var room = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &room, room.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return lines }
            lines += String(decoding: room[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    /// Waits for a line; gives all that came until then.
    func lines(until line: String) async throws -> [String] {
        let end = ContinuousClock.now.advanced(by: Waiting.most)
        var all: [String] = []
        while !all.contains(line) {
            all += take()
            guard ContinuousClock.now < end else {
                Issue.record("\(line) has not come within \(Waiting.most), but \(all)")
                return all
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        return all
    }
}

/// A node that answers until it is told to hang.
private final class MoodyNode: ClusterProvider {
    private struct State {
        var hangs = false
        var waiting: [CheckedContinuation<ClusterReport?, Never>] = []
    }

    private let state = Mutex(State())

    /// Whether somebody waits for its answer.
    var keepsWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

    func hang() { state.withLock { $0.hangs = true } }

    func wake() {
        let waiting = state.withLock { state in
            state.hangs = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: StillCluster.report) }
    }

    func cluster() async -> ClusterReport? {
        await withCheckedContinuation { continuation in
            let answersNow = state.withLock { state in
                if state.hangs { state.waiting.append(continuation) }
                return !state.hangs
            }
            if answersNow { continuation.resume(returning: StillCluster.report) }
        }
    }

    func carryOut(_ order: ClusterOrder) async -> OrderOutcome { .stopped }
}

@Suite("Service manager")
struct ServiceManagerTests {
    private static func name() -> String { "@swarmkeeper-test-\(UUID().uuidString)" }

    private static func report(isServing: Bool, master: UInt32? = 2) -> ClusterReport {
        var report = StillCluster.report
        report.status.isServing = isServing
        report.status.master = master
        return report
    }

    private static let second = Primitives.Duration.seconds(1)

    @Test
    func `paths and abstract names are reached; what is neither is left alone`() throws {
        let directory = try TemporaryDirectory()
        for name in [Self.name(), directory.path("notify")] {
            let socket = try ManagerSocket(name)
            let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": name]))
            manager.stops()
            #expect(socket.take().first == "STOPPING=1")
        }
        for name in ["", "@", "/", "notify", "vsock:2:1234", "/" + String(repeating: "x", count: 107)] {
            #expect(ServiceManager(environment: ["NOTIFY_SOCKET": name]) == nil, "\(name)")
        }
        #expect(ServiceManager(environment: [:]) == nil)
    }

    @Test
    func `the watchdog is served twice a period, where it is meant for this process`() {
        func period(_ more: [String: String]) -> Primitives.Duration? {
            ServiceManager(environment: more.merging(["NOTIFY_SOCKET": "@x"]) { $1 }, processID: 7)?.heartbeatPeriod
        }
        #expect(period([:]) == nil)
        #expect(period(["WATCHDOG_USEC": "30000000"]) == .seconds(15))
        #expect(period(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"]) == .seconds(15))
        #expect(period(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"]) == nil)
        for junk in ["", "0", "-5", "soon", "99999999999999999999", "\(Int64.max)"] {
            #expect(period(["WATCHDOG_USEC": junk]) == nil, "\(junk)")
        }
    }

    @Test
    func `a tracker that waits for its cluster asks for time, and is ready once, when clients are answered`() throws {
        let name = Self.name()
        let socket = try ManagerSocket(name)
        let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": name]))
        var now = Instant(nanoseconds: 5_000_000_000)
        func look(_ report: ClusterReport?, after span: Primitives.Duration) -> [String] {
            now = now + span
            manager.looked(report, now: now)
            return socket.take()
        }
        #expect(look(nil, after: .zero) == [])
        let waiting = "STATUS=Knows no master, epoch 3.2; 2 of 3 known trackers are there; clients get no answer now"
        #expect(
            look(Self.report(isServing: false, master: nil), after: .zero) == [waiting, "EXTEND_TIMEOUT_USEC=60000000"])
        #expect(look(Self.report(isServing: false, master: nil), after: Self.second) == [])
        #expect(
            look(Self.report(isServing: false, master: nil), after: .seconds(9)) == ["EXTEND_TIMEOUT_USEC=60000000"])
        // Not ready: it has no say on reloading either, for READY=1 would end the wait.
        manager.beginsToReload(now: now)
        manager.hasReloaded()
        #expect(socket.take() == [])
        let follows = "STATUS=Follows tracker 2, epoch 3.2; 2 of 3 known trackers are there"
        #expect(look(Self.report(isServing: true), after: .seconds(20)) == ["READY=1", follows])
        #expect(look(Self.report(isServing: true), after: .seconds(20)) == [])
        // What was ready once stays so; the status tells the rest.
        #expect(look(Self.report(isServing: false, master: nil), after: .seconds(20)) == [waiting])
        #expect(
            look(Self.report(isServing: true, master: 1), after: Self.second)
                == ["STATUS=Master of epoch 3.2; 2 of 3 known trackers are there"])
        manager.beginsToReload(now: Instant(nanoseconds: 7_000_123_999))
        #expect(socket.take() == ["RELOADING=1", "MONOTONIC_USEC=7000123"])
        manager.hasReloaded()
        #expect(socket.take() == ["READY=1"])
        manager.stops()
        #expect(socket.take() == ["STOPPING=1", "STATUS=Handing over, and stopping"])
        #expect(look(Self.report(isServing: true), after: .seconds(20)) == [])
    }

    @Test
    func `a lost bus, and a tracker alone, are told as they are`() {
        var report = Self.report(isServing: false)
        report.bus?.isConnected = false
        #expect(ServiceManager.line(report) == "The bus is lost; clients get no answer")
        report.status.mode = nil
        report.bus = nil
        #expect(ServiceManager.line(report) == "Alone; clients get no answer now")
        report.status.isServing = true
        #expect(ServiceManager.line(report) == "Alone, epoch 3.2")
    }

    @Test
    func `heartbeats come while the node answers, and stop when its thread hangs`() async throws {
        let name = Self.name()
        let socket = try ManagerSocket(name)
        let manager = try #require(
            ServiceManager(environment: ["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"]))
        let node = MoodyNode()
        let clock = HandClock()
        let reporter = ServiceReporter(manager, node, now: { clock.now }, sleep: { try await clock.sleep($0) })
        let group = ServiceGroup(configuration: .init(services: [reporter], logger: quiet))
        let running = Task { try await group.run() }
        try await eventually("it has looked") { clock.hasSleeper }
        var lines = socket.take()
        #expect(lines.first == "READY=1" && lines.last == "WATCHDOG=1")
        // Twice in each 0.2 s, by its own clock.
        for _ in 0..<20 {
            var heartbeats = 0
            for _ in 0..<10 {
                clock.pass(.milliseconds(10))
                try await eventually("it has looked") { clock.hasSleeper }
                heartbeats += socket.take().count { $0 == "WATCHDOG=1" }
            }
            #expect((1...2).contains(heartbeats), "in a tenth of a second")
        }
        node.hang()
        clock.pass(.milliseconds(100))
        try await eventually("it waits for the node") { node.keepsWaiting }
        clock.pass(.seconds(3600))
        #expect(socket.take() == [])
        node.wake()
        _ = try await socket.lines(until: "WATCHDOG=1")
        await group.triggerGracefulShutdown()
        try await running.value
        lines = socket.take()
        #expect(lines.suffix(2) == ["STOPPING=1", "STATUS=Handing over, and stopping"])
    }

    @Test
    func `a whole tracker says that it reads its record, is ready, hangs by saying nothing, and stops`() async throws {
        let name = Self.name()
        let socket = try ManagerSocket(name)
        let cluster = try TestCluster([:])
        let manager = ServiceManager(environment: ["NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1000000"])
        let tracker = try await RunningTracker(
            try cluster.configuration(1), on: cluster.wire, manager: manager)
        var lines = try await socket.lines(until: "READY=1")
        #expect(lines.first == "STATUS=Reading the record")
        #expect(try await tracker.cluster().isServing)
        lines = try await socket.lines(until: "WATCHDOG=1") + lines
        #expect(lines.contains { $0.hasPrefix("STATUS=Master of epoch ") })
        // Its own thread hangs, and nothing else does: the next keepalive does not leave.
        try await tracker.bus.hang {
            try await eventually("the thread hangs") { tracker.bus.isHeld }
            _ = socket.take()
            try await Task.sleep(for: .milliseconds(1500))
            // What it had answered before may still have been on its way.
            #expect(socket.take().count { $0 == "WATCHDOG=1" } <= 1, "of at least three, were it well")
        }
        _ = try await socket.lines(until: "WATCHDOG=1")
        try await tracker.stop()
        lines = socket.take()
        #expect(lines.contains("STOPPING=1"))
        #expect(lines.last == "STATUS=Handing over, and stopping")
    }
}
